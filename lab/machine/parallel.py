"""Many runs at once: jobs handed to processes that share nothing, results as they come."""

from __future__ import annotations

import multiprocessing
import os
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from lab.errors import RunError
from lab.machine.stopped import telling_of_stopped
from lab.progress import Stages

J = TypeVar("J")
R = TypeVar("R")

_LOOK_S = 0.2  # between two looks at whether to go on
_SEMAPHORES = Path("/dev/shm")  # noqa: S108  (where Linux has those with names)


def in_parallel(
    work: Callable[[J], R], jobs: Sequence[J], processes: int | None, stages: Stages
) -> Iterator[tuple[J, R]]:
    """Each job with what came of it; ``work`` is a function of a module."""
    workers = min(len(jobs), processes or os.cpu_count() or 1)
    strangers = set(multiprocessing.active_children())
    with (
        own_semaphores(),
        _pool(workers) as pool,
        stages(f"Running on {workers} processors", len(jobs)) as stage,
        telling_of_stopped(),
    ):
        try:
            # For workers already before they can say how to take them.
            with _interrupts_held(), without_main():
                futures = {pool.submit(work, job): job for job in jobs}
            pending = set(futures)
            while pending:
                done, pending = wait(pending, _LOOK_S, FIRST_COMPLETED)
                for future in done:
                    yield futures[future], future.result()
                    stage.advance()
                stage.look()
        except BaseException as error:
            # Whatever they are at, nobody waits for it any more, but for the pool's thread to see
            # that they are gone: one that is left ends beside Python, which then writes to a pipe
            # that it has just closed.
            for worker in set(multiprocessing.active_children()) - strangers:
                worker.terminate()
            if isinstance(error, BrokenProcessPool):
                raise RunError(
                    "a worker was killed, and with it what all were at",
                    "Was there too little memory? Fewer at a time need less: --processes 1",
                ) from None
            raise
        stage.note = f"{len(jobs)} runs"


def _pool(workers: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")  # nothing of this process is theirs
    try:
        return ProcessPoolExecutor(workers, mp_context=context, initializer=_serve_one)
    except BrokenPipeError:  # of Python's tracker; who meets it takes it for our own output
        raise RunError(
            "Python's resource_tracker, which workers need, was killed as it began", "Once more?"
        ) from None


@contextmanager
def own_semaphores() -> Iterator[None]:
    """Give what Python's processes wait for one another by names of ours meanwhile: of one whose
    tracker was killed as it was made nobody else knows."""
    config = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    usual, own = config["semprefix"], f"closlab-{secrets.token_hex(6)}"
    config["semprefix"] = f"/{own}"
    try:
        yield
    except BaseException:
        for left in _SEMAPHORES.glob(f"sem.{own}-*"):
            left.unlink(missing_ok=True)
        raise
    finally:
        config["semprefix"] = usual


@contextmanager
def without_main() -> Iterator[None]:
    """Processes that are started meanwhile do not run the caller's script again, to no purpose."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C counts only afterwards; processes that are started meanwhile never see it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve_one() -> None:
    """What a worker is told first: it lives for the process that hands out the jobs.

    Ctrl-C reaches all processes of a terminal and is for that one. A worker waits for jobs at a
    pipe it holds both ends of, so that it would never notice that nobody is left to send any.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)

"""Many runs at once: jobs handed to processes that share nothing, results as they come."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console

from lab.show import Stages

J = TypeVar("J")
R = TypeVar("R")


def in_parallel(
    work: Callable[[J], R], jobs: Sequence[J], processes: int | None, console: Console
) -> Iterator[tuple[J, R]]:
    """Each job with what came of it; ``work`` is a function of a module."""
    workers = min(len(jobs), processes or os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")  # nothing of this process is theirs
    strangers = set(multiprocessing.active_children())
    with (
        ProcessPoolExecutor(workers, mp_context=context, initializer=_ignore_interrupts) as pool,
        Stages(console)(f"Running on {workers} processors", len(jobs)) as stage,
    ):
        try:
            with _interrupts_held():  # for workers already before they can say how to take them
                futures = {pool.submit(work, job): job for job in jobs}
            for future in as_completed(futures):
                yield futures[future], future.result()
                stage.advance()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in set(multiprocessing.active_children()) - strangers:
                worker.terminate()  # whatever it is at, nobody waits for it any more
            raise
        stage.note = f"{len(jobs)} runs"


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C counts only afterwards; processes that are started meanwhile never see it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; it is for the one that hands out the jobs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

"""Processes that a run starts, listens to and ends."""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

from lab.machine.patience import Patience
from lab.machine.supervisor import supervisor
from params.data import Data

_STOP_S = 3.0
_LOOK_S = 0.2
_POLL_S = 0.05
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Have the kernel kill this process once the thread that started it is gone; Linux does."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def as_shells_tell(code: int) -> int:
    """How a process ended, as one number: of one that a signal ended 128 and the signal's."""
    return code if code >= 0 else 128 - code


def say(process: subprocess.Popen[str], line: str) -> None:
    """Hand a process a line; if it is gone, whoever waits for its answer will notice."""
    assert process.stdin is not None
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        pass


def stop(process: subprocess.Popen[Any]) -> None:
    """End a process, gently at first."""
    supervisor.spare(process.pid)
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


class Job(Data):
    """A command to run."""

    words: Sequence[str]
    gives_way: bool = False  # takes no more of a processor than others leave

    def start(self, output: IO[bytes] | None) -> subprocess.Popen[bytes]:
        """Start it; what it says goes to a file if there is one."""
        return subprocess.Popen(
            self.words,
            stdout=output,
            stderr=output and subprocess.STDOUT,
            preexec_fn=_give_way if self.gives_way else None,  # noqa: PLW1509 - no threads here
        )


def _give_way() -> None:
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def side_by_side(*courses: Sequence[Job]) -> list[list[int]]:
    """Follow courses at the same time, each its jobs one by one; their exit codes.

    What the first course says is seen as it says it, what others say when all are done. An
    interrupt ends them all.
    """
    started: list[list[subprocess.Popen[bytes]]] = [[] for _ in courses]
    with ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in courses[1:]]
        following = [*map(_follow, courses, (None, *files), started)]
        try:
            while sum(next(course, 0) for course in following):
                time.sleep(_POLL_S)
        except KeyboardInterrupt:
            # A terminal told them as well, and they tell what they have; who told only us means
            # them.
            until = time.monotonic() + _STOP_S
            for process in chain(*started):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0, until - time.monotonic()))
                stop(process)
            raise
        for file in files:
            file.seek(0)
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.flush()
    return [[process.returncode for process in course] for course in started]


def _follow(
    course: Sequence[Job], output: IO[bytes] | None, started: list[subprocess.Popen[bytes]]
) -> Iterator[int]:
    """Start one job when the one before has ended; a one is yielded as long as any runs."""
    for job in course:
        started.append(job.start(output))
        while started[-1].poll() is None:
            yield 1


def line_of(stream: IO[str], patience: Patience, watch: Callable[[], None] = lambda: None) -> str:
    """The next line of a pipe, without its end; empty if it closes or patience is over.

    ``watch`` is called now and then and may raise, when waiting on has become pointless.
    """
    received = b""
    poll = select.poll()  # select() knows no descriptor above 1023
    poll.register(stream, select.POLLIN)
    while not received.endswith(b"\n") and not patience.is_over():
        if poll.poll(_LOOK_S * 1000):
            chunk = os.read(stream.fileno(), 1 << 16)
            if not chunk:
                return ""
            received += chunk
        else:
            watch()
    return received.decode().strip()


def last_line(log: Path) -> str:
    """What a process said last."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "it said nothing"

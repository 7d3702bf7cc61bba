"""Threads that had no memory to begin are told of, not waited for.

CPython's Thread.start waits for ever for a thread whose first steps found no memory: it ends before
it can say that it began (python/cpython 140746, mended in later versions than those we run on).
"""

from __future__ import annotations

import threading
from pathlib import Path

_LOOK_S = 1.0
_TASKS = Path("/proc/self/task")


def mind_threads() -> None:
    """From now on whoever starts such a thread, in this process, meets a MemoryError."""
    start = threading.Thread.start

    def minded(thread: threading.Thread) -> None:
        if not thread._started.is_set():  # type: ignore[attr-defined]
            thread._started = _Begun()  # type: ignore[attr-defined]
        start(thread)

    threading.Thread.start = minded  # type: ignore[method-assign, assignment]


def _tasks() -> set[str]:
    """This process' threads, as the kernel knows them; nothing where that cannot be seen."""
    try:
        return {task.name for task in _TASKS.iterdir()}
    except OSError:
        return set()


class _Begun(threading.Event):
    """Whether a thread has begun; of one that is gone nobody waits to hear it."""

    def __init__(self) -> None:
        super().__init__()
        self._before = _tasks()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it as Thread.start does, for as long as some thread is new here."""
        if timeout is not None:
            return super().wait(timeout)
        while not super().wait(_LOOK_S):
            now = _tasks()
            if now and now <= self._before and not self.is_set():
                raise MemoryError("a thread had no memory to begin")
        return True

"""Waiting for other processes: for as long as they get on, however slow the machine.

A number of seconds says nothing about a process: a laptop needs one for what an interpreted
processor needs thirty for. What says something is whether it does anything: uses a processor, wants
one, or waits for a disk. One that has done nothing for a while, and has not said what it should
have, waits for something that will not come.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

QUIET_S = 20.0  # without doing anything
_MIN_SHARE = 0.01  # of a processor: less is a timer that ticks
_TELL_S = 10.0  # between two words on what is waited for
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_AT_WORK = "RD"  # wants a processor, or waits for a disk

Still = Callable[[str, float], None]
"""Who is told what is still waited for, and for how many seconds by now."""


class Patience:
    """Whether it makes sense to go on waiting for processes, and those they started."""

    def __init__(
        self,
        pids: Iterable[int],
        *,
        quiet_s: float = QUIET_S,
        tell: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._pids = tuple(pids)
        self._quiet_s = quiet_s
        self._tell = tell
        self._began = self._reported = time.monotonic()
        self._mark()

    def is_over(self) -> bool:
        """Whether they have done nothing for too long; to be asked again and again."""
        now = time.monotonic()
        if now - self._reported > _TELL_S:
            self._reported = now
            self._tell(now - self._began)
        seen = list(self._seen())
        self._was_at_work |= any(state in _AT_WORK for state, _ in seen)
        quiet_s = now - self._since
        if quiet_s < self._quiet_s:
            return False
        used_s = sum(used for _, used in seen) - self._used_s
        if self._was_at_work or abs(used_s) > _MIN_SHARE * quiet_s:
            self._mark()
            return False
        return True

    def _mark(self) -> None:
        self._since = time.monotonic()
        self._used_s = sum(used for _, used in self._seen())
        self._was_at_work = False

    def _seen(self) -> Iterator[tuple[str, float]]:
        """State and processor time of the processes' first threads, and of all they started."""
        left = list(self._pids)
        while left:
            thread = Path(f"/proc/{(pid := left.pop())}/task/{pid}")
            try:
                words = (thread / "stat").read_text().rpartition(")")[2].split()
                left += map(int, (thread / "children").read_text().split())
            except OSError:
                continue  # it has ended
            yield words[0], (int(words[11]) + int(words[12])) / _TICKS_PER_S

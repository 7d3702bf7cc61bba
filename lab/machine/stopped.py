"""Processes that somebody stopped (SIGSTOP): they may go on at any time, or never, and others wait.

It is told for whom, at a second look: many are stopped for a moment.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LOOK_S = 0.5
_MAX_WORDS = 60  # letters of a command that is shown
_STOPPED = "T"

Tell = Callable[[str], object]


def waiting_for(name: str, pid: int) -> str:
    """Who was stopped, and what lets it go on."""
    return f"waiting for {name}: process {pid} was stopped, and SIGCONT lets it go on"


class Standstill:
    """Which processes that this one started, or those did, were stopped."""

    def __init__(
        self,
        tell: Tell,
        names: dict[int, str] | None = None,
        meant: set[int] | None = None,
        stood: dict[str, None] | None = None,
        only: Collection[int] | None = None,
    ) -> None:
        self._tell = tell
        self._only = only
        self._names = {} if names is None else names
        self._meant = set() if meant is None else meant
        self._stood = {} if stood is None else stood
        self._before: set[int] = set()
        self._reported: set[int] = set()

    def know(self, pid: int, name: str) -> None:
        """Who a process is."""
        self._names[pid] = name

    def look(self) -> None:
        """Tell of each that stands still for a second look."""
        now = {pid for pid in stopped() if pid not in self._meant}
        if self._only is not None:
            now &= {*self._only}
        for pid in (now & self._before) - self._reported:
            name = self._names.get(pid) or _command(pid)
            self._stood[name] = None
            self._tell(waiting_for(name, pid))
        for pid in self._reported - now:
            self._tell(f"{self._names.get(pid) or f'process {pid}'} goes on, or has ended")
        self._reported = now & (self._before | self._reported)
        self._before = now


def stopped() -> list[int]:
    """Processes below this one that were stopped."""
    states: dict[int, tuple[str, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            states[int(entry.name)] = _stat(int(entry.name))
    here = os.getpid()

    def is_below(pid: int) -> bool:
        while pid in states:
            pid = states[pid][1]
            if pid == here:
                return True
        return False

    return [pid for pid, (state, _) in states.items() if state == _STOPPED and is_below(pid)]


def _stat(pid: int) -> tuple[str, int]:
    """Of a process, its state and who started it."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", 0  # it has ended
    return words[0], int(words[1])


def _command(pid: int) -> str:
    with suppress(OSError):
        if words := Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").strip():
            return f"'{words.decode(errors='replace')[:_MAX_WORDS]}'"
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return "a process"


@contextmanager
def telling_of_stopped(only: Collection[int] | None = None) -> Iterator[None]:
    """For as long as the context lasts, tell on standard error of processes that were stopped; of
    these alone, where they see to their own.

    If somebody tells of them already, that is enough; and elsewhere than on Linux nobody can see.
    """
    if telling or sys.platform != "linux":
        yield
        return
    over = threading.Event()
    telling.append(over)
    still = Standstill(
        lambda text: print(f"closlab: {text}", file=sys.stderr, flush=True), only=only
    )

    def look() -> None:
        while not over.wait(LOOK_S):
            still.look()

    supervisor = threading.Thread(target=look, name="supervisor", daemon=True)
    supervisor.start()
    try:
        yield
    finally:
        telling.remove(over)
        over.set()
        supervisor.join(LOOK_S)


telling: list[threading.Event] = []  # who tells of processes that were stopped, until when

"""The supervisor of the processes that a run relies on: which died, and which stand still.

Whoever waits for another process has a way of his own to do so, and some never see an end: Mininet
reads from a shell, an idle prompt from the user. So a thread looks out for all of them.

A death is told to who asks (`failure`), as a run that measures does: it keeps what it saw. Who does
not ask within a moment is waiting, and is woken by an error that names the dead. If even that does
not end the process within reason, the supervisor does: it is the first of a sandbox, and all else
goes with it.

A process that was stopped (SIGSTOP) may go on at any time, or never: it is told for whom all wait.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from types import FrameType

from lab.errors import RunError
from lab.machine.speed import slowness
from lab.machine.stopped import LOOK_S, Standstill, Tell, telling

_ASKED_WITHIN_S = 2.0
_KNOWN_WITHIN_S = 1.0  # a death, after what came of it: others want the processor too
_ENDS_WITHIN_S = 30.0  # once it was woken
_WAKE = signal.SIGUSR2
_DIED = "died"


class Supervisor:
    """What is known of the processes that a run relies on."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._doors: dict[int, int] = {}  # of processes that are relied on: descriptor by number
        self._halted: set[int] = set()
        self._failure: str | None = None
        self._unreported_since: float | None = None
        self._asked_of: Exception | None = None
        self._lock = threading.Lock()
        self.stood: dict[str, None] = {}  # who was stopped by others, in that order

    @cached_property
    def _deaths(self) -> select.epoll:
        return select.epoll()  # which Linux has alone, as all that is relied on

    def know(self, pid: int, name: str) -> None:
        """Who a process is, whose end somebody else sees."""
        self._names[pid] = name

    def rely(self, pid: int, name: str) -> None:
        """Without this process nothing goes on."""
        self.know(pid, name)
        with self._lock:
            self._doors[pid] = os.pidfd_open(pid)
            self._deaths.register(self._doors[pid], select.EPOLLIN)

    def spare(self, pid: int) -> None:
        """It is meant to end from now on; if it is over by now, it was not."""
        with self._lock:
            door = self._doors.get(pid)
            is_over = door is not None and _is_over(door)
        if door is not None and is_over:
            self._died(door)
        with self._lock:
            if (door := self._doors.pop(pid, None)) is not None:
                self._deaths.unregister(door)
                os.close(door)

    def halt(self, pid: int, *, is_halted: bool) -> None:
        """It is meant to stand still, or no longer."""
        (self._halted.add if is_halted else self._halted.discard)(pid)

    @property
    def failure(self) -> str | None:
        """Who has died, for who goes by it."""
        self._unreported_since = None
        return self._failure

    @property
    def befallen(self) -> str | None:
        """Who has died by this very moment, for who goes on all the same."""
        with self._lock:
            over = [door for door in self._doors.values() if _is_over(door)]
        for door in over:
            self._died(door)
        return self._failure

    @contextmanager
    def watching(self, tell: Tell) -> Iterator[None]:
        """For as long as the context lasts, in a main thread: which may be woken by a RunError.

        What fails as somebody has died is told as that: a lost connection names nobody.
        """
        over = threading.Event()
        self._failure = self._unreported_since = self._asked_of = None
        self.stood = {}
        before = signal.signal(_WAKE, self._wake)
        args = (tell, over, slowness())
        threading.Thread(target=self._watch, args=args, name="supervisor", daemon=True).start()
        telling.append(over)
        try:
            yield
        except Exception as error:
            if (explained := self.explained(error)) is None:
                raise
            raise explained from None
        finally:
            telling.remove(over)
            over.set()
            signal.signal(_WAKE, signal.SIG_IGN if before is None else before)

    def explained(self, error: Exception) -> RunError | None:
        """What to say of an error that came of a death; nothing if nobody died.

        To be asked at once: who dies shuts its sockets first, and is soon ended with all others.
        """
        died = self._died_by_now() if error is not self._asked_of else self._failure
        self._asked_of = error
        if died is None or _DIED in str(error):
            return None
        parts = filter(None, (str(error), getattr(error, "cure", None)))
        return RunError(died, "\n".join(parts))

    def _died_by_now(self) -> str | None:
        """Who, if anybody; it may be known a little later than what came of it."""
        until = time.monotonic() + _KNOWN_WITHIN_S
        while self._failure is None and time.monotonic() < until:
            time.sleep(_KNOWN_WITHIN_S / 20)
        return self.failure

    def _wake(self, _number: int, _frame: FrameType | None) -> None:
        assert self._failure is not None
        raise RunError(self._failure)

    def _watch(self, tell: Tell, over: threading.Event, times: float) -> None:
        still = Standstill(tell, self._names, self._halted, self.stood)
        woken: float | None = None
        while not over.is_set():
            for door, _ in self._deaths.poll(LOOK_S):
                self._died(door)
            still.look()
            now, since = time.monotonic(), self._unreported_since
            if over.is_set():
                return
            if since is not None and now - since > _ASKED_WITHIN_S * times:
                self._unreported_since, woken = None, now
                first = threading.main_thread().ident
                assert first is not None
                signal.pthread_kill(first, _WAKE)
            if woken is not None and now - woken > _ENDS_WITHIN_S * times:
                print(f"closlab: {self._failure}", file=sys.stderr, flush=True)
                os._exit(1)

    def _died(self, door: int) -> None:
        with self._lock:
            pid = next((pid for pid, each in self._doors.items() if each == door), None)
            if pid is None:
                return  # it was just spared
            how = _end_of(door)
            self._deaths.unregister(door)
            os.close(self._doors.pop(pid))
        self._failure = f"{self._names[pid]} {_DIED}{how}"
        self._unreported_since = time.monotonic()


def _is_over(door: int) -> bool:
    poll = select.poll()
    poll.register(door, select.POLLIN)
    return bool(poll.poll(0))


def _end_of(door: int) -> str:
    """How a child ended, which its parent may still ask."""
    with suppress(OSError):
        if end := os.waitid(os.P_PIDFD, door, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return how_ended(end.si_status if end.si_code == os.CLD_EXITED else -end.si_status)
    return ""


def how_ended(code: int | None) -> str:
    """To stand behind a word on a process that ended, with what Python has for an exit code."""
    if code is None:
        return ""
    if code >= 0:
        return f" (exit code {code})"
    try:
        return f" ({signal.Signals(-code).name})"
    except ValueError:
        return f" (signal {-code})"


supervisor = Supervisor()
"""Over this process's run: there is one at a time."""

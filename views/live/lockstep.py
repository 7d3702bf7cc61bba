"""A run in the simulator and somebody who looks at it in turns: a thread each, never both at once.

run ──snapshot──► queue ──► iterator          virtual time waits while the iterator's user works
    ◄── go on ────────────┘
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator

from lab.results.snapshot import Snapshot
from lab.scenario.live_actions import LiveAction


class Lockstep:
    """An audience that hands what it sees to an iterator, and waits until that wants more."""

    reads_books = False

    def __init__(self, every_ns: int) -> None:
        self._every_ns = every_ns
        self.next_ns = every_ns
        self._seen: queue.SimpleQueue[Snapshot | BaseException | None] = queue.SimpleQueue()
        self._go = threading.Semaphore(0)
        self._is_enough = False
        self.wishes: list[LiveAction] = []

    def see(self, snapshot: Snapshot) -> Iterable[LiveAction]:
        """Hand it over, and wait."""
        self.next_ns = (snapshot.time_ns // self._every_ns + 1) * self._every_ns
        self._seen.put(snapshot)
        self._go.acquire()
        if self._is_enough:
            raise KeyboardInterrupt
        wishes, self.wishes = self.wishes, []
        return wishes

    def snapshots(self, run: Callable[[], object]) -> Iterator[Snapshot]:
        """What is seen while it runs, in a thread; closed early, it ends the run."""

        def carry_out() -> None:
            try:
                run()
                self._seen.put(None)
            except BaseException as error:
                self._seen.put(error)

        thread = threading.Thread(target=carry_out, name="closlab-watched")
        thread.start()
        try:
            while (seen := self._seen.get()) is not None:
                if isinstance(seen, BaseException):
                    raise seen
                yield seen
                self._go.release()
        finally:
            self._is_enough = True
            self._go.release()
            thread.join()

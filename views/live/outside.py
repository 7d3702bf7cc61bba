"""A run on Mininet and somebody who looks at it: it has a process of its own, and waits for nobody.

thread ── run_in_child ──► lab                         the lab is found among the running ones,
caller ◄── snapshots ─── tail ◄── what it writes down    and watched as by a second terminal
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

from lab.engines.mininet.running import running
from lab.errors import RunError
from lab.progress import Hear, Progress
from lab.results.snapshot import Snapshot
from views.live.tail import Tail, must_tell

_LOOK_S = 0.05
Tell = Callable[[str], object]  # the lab's name, once it has one


class Outside:
    """Looks at a run while it lasts, at most so often; whoever has seen enough ends it."""

    def __init__(self, every_ns: int) -> None:
        self._every_ns = every_ns
        self._name: str | None = None
        self._tail: Tail | None = None
        self._enough = threading.Event()
        self._is_interrupted = False

    def do(self, words: str) -> None:
        """Have something done to the fabric, now."""
        if self._tail is None:
            raise RunError("the lab is not up yet: ask for a snapshot first")
        self._tail.do(words)

    def snapshots(self, run: Callable[[Hear, Tell], object]) -> Iterator[Snapshot]:
        """What is seen of a run that is made in a thread; closed early, it ends the run."""
        failure: list[BaseException] = []

        def carry_out() -> None:
            try:
                run(self._hear, self._found)
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=carry_out, name="closlab-watched")
        thread.start()
        try:
            while thread.is_alive() and self._tail is None:
                thread.join(_LOOK_S)
                self._look_for_it()
            if self._tail is not None:
                yield from self._tail.snapshots(self._enough)
        except BaseException:
            self._enough.set()
            raise
        finally:
            thread.join()
        if failure:
            raise failure[0]

    def _hear(self, _: Progress | None) -> None:
        if self._enough.is_set() and not self._is_interrupted:
            self._is_interrupted = True  # once, or nothing could be concluded
            raise KeyboardInterrupt

    def _found(self, name: str) -> None:
        self._name = name

    def _look_for_it(self) -> None:
        for lab in running():
            if lab.name == self._name:
                self._tail = Tail(must_tell(lab), self._every_ns)

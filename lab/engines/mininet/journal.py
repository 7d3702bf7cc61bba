"""What was done to a fabric that is up, for those who watch from outside of its sandbox.

It stands in a file of the lab's folder among the running ones, written anew at each change: what is
cut, the load balancer, and the last events by the machine's monotonic clock, which all processes
share.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path

from lab.scenario.live_actions import ByHand

NOTES = ".notes"
_MAX = 200  # events


class Journal:
    """Of one fabric. The lab writes, and whoever has something done from outside meanwhile."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._path: Path | None = None
        self._cut: set[str] = set()
        self._events: deque[tuple[int, str, str, str]] = deque(maxlen=_MAX)
        self._by_hand: list[tuple[int, str]] = []

    def keep_in(self, path: Path) -> None:
        """From now on in a file."""
        with self._lock:
            self._path = path
            self._write()

    def notes_of(self, host: str) -> Path | None:
        """Where a host's program writes down what it sends and has received, if anybody can see."""
        return self._path and self._path.with_name(f"{host}{NOTES}")

    def note(self, kind: str, what: str, link: str = "") -> None:
        """Something happened."""
        with self._lock:
            self._events.append((time.monotonic_ns(), kind, what, link))
            self._write()

    def turned(self, cable: str, *, is_up: bool) -> None:
        """A cable was cut, or mended."""
        with self._lock:
            (self._cut.discard if is_up else self._cut.add)(cable)
            self.note("fault", f"{cable} {'up' if is_up else 'down'}", cable)

    @property
    def cut(self) -> frozenset[str]:
        """The cables that are cut at the moment."""
        return frozenset(self._cut)

    def did(self, words: str) -> None:
        """Somebody had something done."""
        self._by_hand.append((time.monotonic_ns(), words))
        self.note("hand", words)

    def by_hand(self, epoch_ns: int, dilation: float) -> Iterable[ByHand]:
        """What somebody had done by the fabric's time; before it began is at 0, and lasts."""
        for at_ns, words in self._by_hand:
            yield ByHand(max(0, round((at_ns - epoch_ns) / dilation)), words)

    def _write(self) -> None:
        if self._path is not None:
            draft = self._path.with_suffix(".tmp")
            draft.write_text(json.dumps({"cut": sorted(self._cut), "events": list(self._events)}))
            draft.replace(self._path)

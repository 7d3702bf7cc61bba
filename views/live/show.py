"""A run in the simulator that is shown: as fast as one likes to watch it, and one may interfere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from lab.errors import LabError
from lab.results.snapshot import Snapshot, rates_of
from lab.scenario.experiment import Experiment
from lab.scenario.live_actions import LiveAction
from params.quantity import duration
from views.live.hub import Hub, Scene
from views.live.pace import nanoseconds, round_ns, share_of

_USUAL_S = 20.0  # that a run is to last which nobody asked to be slower or faster
_SNAPSHOTS_A_SECOND = 25
_SNAPSHOTS = 400  # of a run as fast as it can be
_LONGEST_WAIT_S = 0.5  # where nothing happens for long, time is skipped


class Show:
    """An audience whose snapshots go to a hub, and whose wishes come from there."""

    reads_books = True

    def __init__(self, experiment: Experiment, pace_ns: int | None) -> None:
        fabric = experiment.fabric
        self._fabric = fabric
        self._unhurried_ns = share_of(experiment, _SNAPSHOTS)
        usual_ns = round_ns(experiment.least_ns / _USUAL_S)
        self._pace_ns = usual_ns if pace_ns is None else pace_ns  # 0: as fast as it can
        self._wishes: list[LiveAction] = []
        self._is_stopped = False
        self._news = threading.Event()
        self._last: tuple[float, int] | None = None  # by the wall's clock and the fabric's
        self.next_ns = self._interval_ns
        bps = {link.name: experiment.cable(link).rate_bps for link in fabric.links}
        rates = rates_of(fabric, bps)
        scene = Scene(experiment.scenario, fabric, rates, "sim", pace_ns=self._pace_ns)
        self.hub = Hub(scene, self)

    @property
    def _interval_ns(self) -> int:
        if not self._pace_ns:
            return self._unhurried_ns
        return max(1, self._pace_ns // _SNAPSHOTS_A_SECOND)

    # --- as an audience --------------------------------------------------------------------------

    def see(self, snapshot: Snapshot) -> Iterable[LiveAction]:
        """Show it, and let time pass."""
        self.hub.publish(snapshot)
        if not snapshot.is_last:
            self._wait(snapshot.time_ns)
        self.next_ns = snapshot.time_ns + self._interval_ns
        wishes, self._wishes = self._wishes, []
        return wishes

    def _wait(self, now_ns: int) -> None:
        began = time.monotonic()
        due = began
        if self._last is not None and self._pace_ns:
            then, before_ns = self._last
            due = max(began, then + (now_ns - before_ns) / self._pace_ns)
            due = min(due, began + _LONGEST_WAIT_S)
        while self._is_stopped or (left := due - time.monotonic()) > 0:
            self._news.wait(None if self._is_stopped else left)
            self._news.clear()
            if self._wishes and not self._is_stopped:
                break
        self._last = (max(due, time.monotonic() - _LONGEST_WAIT_S), now_ns)

    # --- as hands --------------------------------------------------------------------------------

    words = ("lb", "fail", "mend", "drain", "undrain", "pace", "stop", "go")

    def do(self, words: str) -> str:
        """Change the pace, or have it done at the next snapshot."""
        word, _, value = words.partition(" ")
        match word:
            case "stop" | "go":
                self._is_stopped = word == "stop"
                said = "Time stands still." if self._is_stopped else "Time passes."
            case "pace":
                self._pace_ns = 0 if value == "0" else nanoseconds(value, "pace")
                how = f"{duration(self._pace_ns)} a second" if self._pace_ns else "all it can"
                said = f"Time passes at {how}."
            case _:
                if self.hub.is_over:
                    raise LabError("the run is over")
                self._wishes.append(LiveAction.read(words, self._fabric))
                said = f"{words}: done at the next snapshot."
        self._news.set()
        return said

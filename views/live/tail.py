"""A lab that runs on Mininet, as snapshots: from what its switches write down, read from outside.

Nothing of it happens in the sandbox: a run is the same whoever watches. Times are the fabric's,
from when the lab was up.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from lab.engines.mininet import hands
from lab.engines.mininet.notes import HostNotes
from lab.engines.mininet.running import JOURNAL, RunningLab, running
from lab.errors import LabError
from lab.results.course import Course
from lab.results.snapshot import Books, Happening, Looker, Messages, Snapshot, Way, rates_of
from lab.results.watch import Watch
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.data import Data
from views.live.hub import Hub, Scene

_LOOK_S = 0.05
_IDLE = Way(0, 0, 0.0, 0.0, 0, 0, 0)
_SESSIONS_S = 1.0  # between two questions for what routing daemons say
_LIVES_S = 0.5  # between two looks at whether the lab is there


class Tail(Data, frozen=False):
    """A lab that is watched, and what may be asked of it."""

    lab: RunningLab
    every_ns: int = 0  # of the fabric's time between two snapshots, at least
    words: tuple[str, ...] = ("lb", "fail", "mend", "drain", "undrain", "traffic")
    hub: Hub = field(init=False)

    def __post_init__(self) -> None:
        watch = self.lab.watch
        experiment = Experiment.of(Scenario.model_validate(watch["scenario"]))
        fabric = experiment.fabric
        bps = {link.name: experiment.cable(link).rate_bps for link in fabric.links}
        rates = rates_of(fabric, bps)
        self._watch = Watch(fabric, Path(watch["record"]), remembers=False)
        self._since_ns, self._dilation = int(watch["since_ns"]), float(watch["dilation"])
        self._looker = Looker(rates)
        self._course = Course(experiment.schedule, fabric.hosts)
        hosts = [host.name for host in fabric.hosts] if self._course.is_known else []
        self._notes = HostNotes(self.lab.folder, hosts, len(experiment.schedule))
        self._at_ns = 0
        self._asking, self._asked_s = threading.Lock(), float("-inf")
        self._said: Mapping[str, Any] = {}
        self._journal: tuple[int, dict[str, list[list[object]]]] = 0, {}
        adapters = self.lab.adapters
        scene = Scene(
            experiment.scenario, fabric, rates, "mininet", routing=self._sessions, adapters=adapters
        )
        self.hub = Hub(scene, self)

    def do(self, words: str) -> str:
        """Ask the lab to do it."""
        return hands.ask(self.lab.folder, words)

    def _sessions(self) -> Mapping[str, Any]:
        """What switches' routing daemons say of theirs, as it was a moment ago."""
        with self._asking:
            if time.monotonic() > self._asked_s + _SESSIONS_S:
                with suppress(LabError, ValueError):  # a lab that goes says nothing more
                    self._said = json.loads(hands.ask(self.lab.folder, hands.SESSIONS))
                self._asked_s = time.monotonic()
            return self._said

    def follow(self, enough: threading.Event) -> None:
        """Publish what is new until the lab is gone, or somebody has enough."""
        for snapshot in self.snapshots(enough):
            self.hub.publish(snapshot)

    def snapshots(self, enough: threading.Event) -> Iterator[Snapshot]:
        """What is new, until the lab is gone or somebody has enough."""
        links, books = dict.fromkeys(self.hub.scene.rates, _IDLE), None
        checked = time.monotonic()
        while not enough.wait(_LOOK_S):
            snapshot = self._look()
            if snapshot is not None:
                links, books = dict(snapshot.links), snapshot.books
                yield snapshot
            if time.monotonic() - checked > _LIVES_S:
                checked = time.monotonic()
                if not self._is_there():
                    break
        at_ns = self._time(time.monotonic_ns())
        messages = self._messages()
        self._notes.close()
        yield Snapshot(at_ns, links, messages, is_last=True, books=books)

    def _is_there(self) -> bool:
        return any(lab.name == self.lab.name for lab in running())

    def _time(self, at_ns: int) -> int:
        return max(0, round((at_ns - self._since_ns) / self._dilation))

    def _look(self) -> Snapshot | None:
        notes = self._watch.latest()
        at_ns = self._watch.at_ns
        if not notes or at_ns <= self._at_ns or self._is_soon(self._time(at_ns)):
            return None
        record = self._record()
        events = [*self._events(record, at_ns)]
        self._at_ns = at_ns
        cut = frozenset(str(name) for name in record.get("cut", ()))
        time_ns = self._time(at_ns)
        snapshot = self._looker.look(time_ns, notes, self._messages(), events, cut)
        counted = {switch.name: found for switch, found in self._watch.counts().items()}
        return replace(snapshot, books=Books(time_ns, counted, self._watch.longest_queues()))

    def _is_soon(self, time_ns: int) -> bool:
        """Whether the last snapshot is too near, as they are told: all before the start is one."""
        return self._at_ns > 0 and time_ns < self._time(self._at_ns) + self.every_ns

    def _messages(self) -> Messages:
        if not self._course.is_known:
            return Messages()
        self._notes.read()
        since_ns = self._time(self._notes.epoch_ns)
        return self._course.messages(self._notes.starts, self._notes.ends, since_ns)

    def _record(self) -> dict[str, list[list[object]]]:
        """The lab's journal, read again when it is another."""
        path = self.lab.folder / JOURNAL
        with suppress(OSError, ValueError):
            changed = path.stat().st_mtime_ns
            if changed != self._journal[0]:
                self._journal = changed, json.loads(path.read_text())
        return self._journal[1]

    def _events(self, record: dict[str, list[list[object]]], now_ns: int) -> Iterator[Happening]:
        """Those since the last look; the first look sees all."""
        for at, kind, what, link in record.get("events", ()):
            assert isinstance(at, int)
            if self._at_ns < at <= now_ns:
                yield Happening(self._time(at), str(kind), str(what), str(link))


def must_tell(lab: RunningLab) -> RunningLab:
    """The lab, if its switches write down what they hold."""
    if not Path(lab.watch["record"]).exists():
        raise LabError(
            f"the switches of {lab.name} do not say what they hold",
            "BMv2 does not; --switch soft does, and the simulator: run --engine sim --live.",
        )
    return lab

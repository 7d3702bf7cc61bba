"""Where snapshots come together and all who want them are served: the page, Prometheus, gNMI.

A source publishes from a thread of its own; readers take what is new when they like. Nobody waits
for anybody: a reader that is slow finds fewer snapshots, and one that is gone is not missed.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Protocol

from lab.results.snapshot import Happening, Snapshot
from lab.runs.adapter_files import counted
from lab.scenario.live_actions import cables
from lab.scenario.model import Scenario
from params.data import Data
from topologies import Fabric
from views.report.steps import Step
from views.report.topology import CLASSES, outline

_MAX_CELLS = 3_000_000  # directions in all snapshots that are remembered
_MAX_SNAPSHOTS = 2_000
_MANY = 1000  # shares as whole numbers


class Hands(Protocol):
    """What can be done to a fabric that is watched."""

    @property
    def words(self) -> tuple[str, ...]:
        """Those it knows, such as lb, fail and pace."""

    def do(self, words: str) -> str:
        """Do it, or see to it that it is done; what to tell who asked. Raises a LabError."""


class NoHands:
    """What is over, nobody can change."""

    words: tuple[str, ...] = ()

    def do(self, words: str) -> str:
        """Refuse."""
        raise NotImplementedError(words)  # nobody asks: the words are none


class Scene(Data):
    """What does not change while a run lasts."""

    scenario: Scenario
    fabric: Fabric
    rates: dict[str, float]  # by direction, in their order: bytes a nanosecond; 0: unknown
    engine: str
    is_replay: bool = False
    pace_ns: int | None = None  # of the fabric in a second, where it can be chosen
    steps: Sequence[Step] = ()  # of a run that is over: what happened
    # What switches' own routing daemons say of their sessions, by switch; of none nothing.
    routing: Callable[[], Mapping[str, Any]] = dict
    adapters: Path | None = None  # where hosts' adapters of verbs keep their files
    id: str = field(default_factory=lambda: secrets.token_hex(8))  # another run has another

    def adapters_counted(self) -> dict[str, dict[str, int]]:
        """By host, what adapters of verbs have counted, of those that programs have used."""
        return counted(self.adapters) if self.adapters else {}

    @property
    def names(self) -> list[str]:
        """Directions, by their numbers in frames."""
        return list(self.rates)

    def content(self, hands: Hands, room: int) -> dict[str, Any]:
        """What the page has to know before anything moves."""
        drawing = outline(self.fabric)
        numbers = {name: number for number, name in enumerate(self.rates)}
        return {
            "id": self.id,
            "name": self.scenario.name,
            "about": self.scenario.about.strip(),
            "engine": self.engine,
            "replay": self.is_replay,
            "room": room,
            "pace_ns": self.pace_ns,
            "directions": self.names,
            "gbps": [round(rate * 8, 3) for rate in self.rates.values()],
            "switches": [switch.name for switch in self.fabric.switches],
            "cables": [*cables(self.fabric)],
            "lb": self.scenario.lb.policy.value,
            "policies": [policy.value for policy in type(self.scenario.lb.policy)],
            "words": list(hands.words),
            "busy": [kind[0] for kind in CLASSES],
            "steps": [_step(step, numbers) for step in self.steps],
            "moving": [[numbers[name] for name in names] for names in drawing.moving],
            "drawing": drawing.render(),
        }


def _step(step: Step, numbers: dict[str, int]) -> list[Any]:
    """Its moment, what is said, and the directions it is about."""
    return [step.at_ns, step.said, [numbers[name] for name in step.links if name in numbers]]


Cells = tuple[int, int, int, int, int]  # queue, busy, paused, marked, dropped


class Frame(Data):
    """A snapshot with its number, and its directions as the page is told of them."""

    number: int
    snapshot: Snapshot
    cells: tuple[Cells, ...]
    wall_ns: int  # when it was had, by the machine's calendar

    def since(self, before: Frame | None) -> dict[str, Any]:
        """What is new since another; all of it if there was none."""
        snapshot = self.snapshot
        earlier = before.cells if before else ((0, 0, 0, 0, 0),) * len(self.cells)
        changed: list[int] = []
        for number, (now, was) in enumerate(zip(self.cells, earlier, strict=True)):
            if now != was:
                changed += (number, *now)
        record: dict[str, Any] = {"n": self.number, "t": snapshot.time_ns, "d": changed}
        if before is None:
            record["key"] = True
        messages = snapshot.messages
        if before is None or before.snapshot.messages != messages:
            record["m"] = [messages.count, messages.done, [list(m) for m in messages.under_way]]
        if before is None or before.snapshot.dead != snapshot.dead:
            record["dead"] = sorted(snapshot.dead)
        if snapshot.events:
            record["e"] = [list(event) for event in snapshot.events]
        if snapshot.is_last:
            record["last"] = True
        return record


class Hub(Data, frozen=False):
    """The snapshots of a run so far, the last of them remembered."""

    scene: Scene
    hands: Hands = field(default_factory=NoHands)
    _frames: deque[Frame] = field(init=False)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _bells: set[Callable[[], None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        most = max(2, min(_MAX_SNAPSHOTS, _MAX_CELLS // max(1, len(self.scene.rates))))
        self._frames = deque(maxlen=most)

    @property
    def room(self) -> int:
        """How many snapshots are remembered."""
        return self._frames.maxlen or 0

    def publish(self, snapshot: Snapshot) -> None:
        """Add one."""
        cells = tuple(
            (
                way.queue_bytes,
                round(_MANY * way.utilisation),
                round(_MANY * way.paused),
                way.marked,
                way.dropped,
            )
            for way in snapshot.links.values()
        )
        with self._lock:
            self._frames.append(Frame(self._count, snapshot, cells, time.time_ns()))
            self._count += 1
            bells = list(self._bells)
        for ring in bells:
            ring()

    def since(self, number: int) -> list[Frame]:
        """The frames that are remembered from a number on."""
        with self._lock:
            if not self._frames or number >= self._count:
                return []
            first = self._frames[0].number
            return [*self._frames][max(0, number - first) :]

    @property
    def latest(self) -> Frame | None:
        """The last of them."""
        with self._lock:
            return self._frames[-1] if self._frames else None

    @property
    def is_over(self) -> bool:
        """Whether there will be no more."""
        latest = self.latest
        return latest is not None and latest.snapshot.is_last

    def attach(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Have something called at every snapshot, by whoever publishes; returns what ends that."""
        with self._lock:
            self._bells.add(ring)

        def detach() -> None:
            with self._lock:
                self._bells.discard(ring)

        return detach


def recorded(scene: Scene, snapshots: Iterable[Snapshot]) -> Hub:
    """A hub of a run that is over: as many of its snapshots as there is room for, evenly."""
    hub = Hub(scene)
    found = list(snapshots)
    stride = max(1, -(-len(found) // hub.room))
    events: list[Happening] = []
    for number, snapshot in enumerate(found, 1):
        events += snapshot.events
        if number % stride == 0 or number == len(found):
            hub.publish(replace(snapshot, events=tuple(events)))
            events = []
    return hub

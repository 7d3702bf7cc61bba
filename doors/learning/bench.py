"""A simulated fabric that stands still between two decisions.

The same experiment, switches and hosts as a run's: the only difference is who says how long it goes
on, and what switches mark by meanwhile. What is random follows from the seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from controller.entities import Entity, TableEntry
from controller.tables import SwitchSite, buffering, marking
from doors.learning.actions import Decision
from lab.engines.sim.engine import build
from lab.engines.sim.simulation import Simulation
from lab.errors import LabError
from lab.machine.scratch import kept_by_us
from lab.progress import HeardStages
from lab.results.alone import Alone
from lab.results.outcome import Note
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.data import Data
from topologies import Node, NodeKind
from traffic.collectives import NEVER

Vector = NDArray[np.float32]

FEATURES = ("queue", "rate", "paused", "marked")  # of a port, since the decision before
_QUEUE_BYTES = 200_000.0  # that a queue of 1 has
_KEPT = 1000  # of notes that nobody asks for
_MAX_EVENTS = 2**62
_MAX = 2**31  # of steps, and of nanoseconds between two


def whole(name: str, value: object) -> int:
    """A count that somebody gives."""
    if type(value) is not int or not 1 <= value < _MAX:
        raise LabError(
            f"{name} is {str(value)[:80]}", f"Give a whole number from 1 to {_MAX - 1:,}."
        )
    return value


class Port(Data):
    """A direction of a link that a switch sends into."""

    switch: str
    name: str
    leads: str  # host, up or down
    bytes_per_ns: float


class Bench:
    """One episode after the other of a scenario, each from the beginning."""

    def __init__(self, scenario: Scenario, every_ns: int) -> None:
        if scenario.faults:
            raise LabError(
                f"'{scenario.name}': where one learns nothing breaks, and this has faults",
                "Leave them out (faults: []), or choose another scenario.",
            )
        if not scenario.ecn.enabled:
            raise LabError(
                f"'{scenario.name}': its switches do not mark", "Set ecn.enabled to true."
            )
        self.every_ns = whole("every_ns", every_ns)
        self._scenario = scenario
        self._fabric = scenario.fabric()
        self._stack: ExitStack | None = None
        self._held = kept_by_us()
        self._is_closed = False
        self._decided: dict[Node, Decision] = {}
        self._known: dict[object, tuple[Entity, ...]] = {}

    @cached_property
    def switches(self) -> tuple[str, ...]:
        """Who decides, in the fabric's order."""
        return tuple(switch.name for switch in self._fabric.switches)

    @cached_property
    def ports(self) -> tuple[Port, ...]:
        """All that switches send into."""
        experiment = Experiment.of(self._scenario)
        found = []
        for link in self._fabric.links:
            rate = experiment.cable(link).rate_bps / 8e9
            for sender, peer, name in ((link.a, link.b, link.up), (link.b, link.a, link.down)):
                if sender.kind is not NodeKind.HOST:
                    is_up = name == link.up
                    leads = "host" if peer.kind is NodeKind.HOST else "up" if is_up else "down"
                    found.append(Port(sender.name, name, leads, rate))
        return tuple(found)

    @cached_property
    def ports_of(self) -> Mapping[str, tuple[int, ...]]:
        """By switch: which of all ports are its own."""
        return {
            name: tuple(at for at, port in enumerate(self.ports) if port.switch == name)
            for name in self.switches
        }

    def check_open(self) -> None:
        """Refuse to go on with an episode that has not begun, or is over."""
        if self._stack is None:
            raise LabError("no episode is under way", "Call reset first.")

    def begin(self, seed: int) -> Vector:
        """The first look at an episode."""
        if self._is_closed:
            raise LabError("the environment is closed", "Make another.")
        self.end()
        scenario = self._scenario.model_copy(update={"seed": seed})
        self._experiment = Experiment.of(scenario)
        with ExitStack() as stack:
            self._switches, self._simulation = build(
                self._experiment, Path(self._held.name), HeardStages(lambda _: None), stack
            )
            self._stack = stack.pop_all()
        settings = self._experiment.settings
        watch = self._switches.watch(self._experiment.pausable, settings.lossless)
        self._simulation.sample(watch, None, _KEPT)
        self._simulation.start()
        self._decided.clear()
        self.messages = max(1, self._simulation.open_transfers)
        self.now_ns = 0
        self._before = self._noted()
        return self._seen(self._before)

    @property
    def simulation(self) -> Simulation:
        """The one under way."""
        return self._simulation

    @property
    def open_share(self) -> float:
        """The share of all messages that have not arrived yet."""
        return self._simulation.open_transfers / self.messages

    @property
    def is_over(self) -> bool:
        """Whether all have, or none ever will."""
        return not self._simulation.open_transfers or self._simulation.is_quiet

    def decide(self, decisions: Mapping[str, Decision]) -> None:
        """Let switches mark and share by this from now on."""
        for switch in self._fabric.switches:
            decision = decisions.get(switch.name)
            if decision is not None and self._decided.get(switch) != decision:
                self._switches.change(switch, self._entries(switch, decision))
                self._simulation.wake(switch)
                self._decided[switch] = decision

    def _entries(self, switch: Node, decision: Decision) -> Iterator[Entity]:
        """What a switch is told then, of the classes that lose nothing."""
        fabric, settings = self._experiment.fabric, self._experiment.settings
        marks, shares = (switch, decision.marks), (switch, decision.alpha)
        if marks not in self._known:
            site = SwitchSite(fabric, switch, decision.marking(settings))
            self._known[marks] = tuple(marking(site))
        if shares not in self._known:
            site = SwitchSite(fabric, switch, decision.sharing(settings))
            whole = (each for each in buffering(site) if isinstance(each, TableEntry))
            self._known[shares] = tuple(each for each in whole if _is_lossless(each))
        yield from self._known[marks]
        yield from self._known[shares]

    def go_on(self) -> Vector:
        """Until the next decision; what is seen then."""
        self.now_ns += self.every_ns
        self._simulation.run(self.now_ns, _MAX_EVENTS)
        now = self._noted()
        seen = self._seen(now)
        self._before = now
        return seen

    def _noted(self) -> NDArray[np.float64]:
        """A row a port: queue, bytes, time paused, packets marked."""
        notes: dict[str, Note] = {note.link: note for note in self._simulation.look()}
        rows = [notes[port.name] for port in self.ports]
        return np.array([(n.queue_bytes, n.bytes, n.paused_ns, n.marked) for n in rows], float)

    def _seen(self, now: NDArray[np.float64]) -> Vector:
        gained = now - self._before
        packets = np.maximum(1.0, gained[:, 1] / self._packet_bytes)
        seen = np.stack(
            (
                now[:, 0] / _QUEUE_BYTES,
                gained[:, 1] / (self.every_ns * self._rates),
                gained[:, 2] / self.every_ns,
                gained[:, 3] / packets,
            ),
            axis=1,
        )
        return np.clip(seen, 0.0, 10.0).astype(np.float32)

    @cached_property
    def _rates(self) -> NDArray[np.float64]:
        return np.array([port.bytes_per_ns for port in self.ports])

    @property
    def _packet_bytes(self) -> float:
        return float(self._experiment.settings.max_frame)

    def came_to(self) -> dict[str, Any]:
        """What the episode came to: of messages that arrived, against being alone."""
        hosts, schedule = self._experiment.fabric.hosts, self._experiment.schedule
        timeline = self._simulation.timeline(hosts, len(schedule))
        alone = Alone(self._experiment)
        times = [
            ((end - start), (end - start) / alone.takes_ns(n))
            for n, (start, end) in enumerate(zip(timeline.start_ns, timeline.end_ns, strict=True))
            if NEVER not in (start, end) and schedule.src[n] != schedule.dst[n]
        ]
        if not times:
            return {"arrived": 0}
        took, slowed = (np.array(each) for each in zip(*times, strict=True))
        return {
            "arrived": len(times),
            "mean_fct_ns": float(took.mean()),
            "mean_slowdown": float(slowed.mean()),
            "p99_slowdown": float(np.percentile(slowed, 99)),
        }

    def end(self) -> None:
        """Release the episode."""
        if self._stack is not None:
            self._stack.close()
            self._stack = None

    def close(self) -> None:
        """Release everything."""
        self.end()
        self._is_closed = True
        self._held.cleanup()


def _is_lossless(entry: TableEntry) -> bool:
    return entry.action == "lossless"


def by_switch(bench: Bench, seen: Vector, wide: int) -> dict[str, Vector]:
    """What each switch sees of its own ports, filled up with nothing to so many."""
    found = {}
    for name, own in bench.ports_of.items():
        rows = np.zeros((wide, len(FEATURES)), np.float32)
        rows[: len(own)] = seen[list(own)]
        found[name] = rows.reshape(-1)
    return found


def summed(bench: Bench, seen: Vector) -> Vector:
    """What a fabric looks like in few numbers: by where ports lead, mean and most of everything."""
    leads = np.array([port.leads for port in bench.ports])
    rows: list[Sequence[float]] = []
    for kind in ("host", "up", "down"):
        own = seen[leads == kind]
        nothing = [0.0] * len(FEATURES)
        rows += [own.mean(axis=0), own.max(axis=0)] if len(own) else [nothing, nothing]
    return np.concatenate([np.asarray(row, np.float32) for row in rows])

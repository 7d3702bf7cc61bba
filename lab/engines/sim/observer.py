"""Where those sit who watch a simulated run: what is seen from there, and nothing is touched."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lab.engines import Audience
from lab.engines.sim.control import SimulatedSwitches
from lab.engines.sim.simulation import Simulation
from lab.results.course import Course
from lab.results.snapshot import Books, Happening, Looker, Messages, rates_of
from lab.scenario.experiment import Experiment
from lab.scenario.faults import dead_at, fault_notes, reroutes
from lab.scenario.live_actions import LiveAction
from lab.scenario.model import Scenario

_BOOKS_S = 0.2  # of the machine's time, between two looks at what switches count


class Observer:
    """An audience, and how it looks at a simulation."""

    def __init__(
        self,
        audience: Audience,
        experiment: Experiment,
        simulation: Simulation,
        switches: SimulatedSwitches,
    ) -> None:
        self._audience = audience
        self._switches = switches
        self._books: Books | None = None
        self._counted_s = float("-inf")
        self._experiment = experiment
        self._simulation = simulation
        fabric = experiment.fabric
        bps = {link.name: experiment.cable(link).rate_bps for link in fabric.links}
        self._looker = Looker(rates_of(fabric, bps))
        self._at_ns = -1
        self._pauses = 0
        self._idle_until_ns = 0
        self._by_hand: list[Happening] = []
        self._course = Course(experiment.schedule, fabric.hosts)

    @property
    def next_ns(self) -> int:
        """When it wants to look; where nothing happens there is nothing to see."""
        return max(self._audience.next_ns, self._idle_until_ns)

    def look(self, scenario: Scenario, now_ns: int, *, is_last: bool) -> Sequence[LiveAction]:
        """Let it look; what it wishes."""
        snapshot = self._looker.look(
            now_ns,
            self._simulation.look(),
            self._messages(),
            [*self._events(scenario, now_ns)],
            dead_at(scenario, self._experiment.fabric, now_ns),
            is_last=is_last,
        )
        self._at_ns = now_ns
        self._idle_until_ns = self._simulation.next_ns
        if self._audience.reads_books and (
            is_last or time.monotonic() > self._counted_s + _BOOKS_S
        ):
            self._books, self._counted_s = self._counted(now_ns), time.monotonic()
        wishes = list(self._audience.see(replace(snapshot, books=self._books)))
        self._by_hand = [Happening(now_ns, "hand", str(wish), wish.link) for wish in wishes]
        return wishes

    def _counted(self, now_ns: int) -> Books:
        fabric = self._experiment.fabric
        counted = {
            switch.name: self._switches.counts(switch, fabric.ports(switch), now_ns)
            for switch in fabric.switches
        }
        ways = [name for link in fabric.links for name in link.directions]
        longest = {name: self._simulation.channel(name).max_queue_bytes for name in ways}
        return Books(now_ns, counted, longest)

    def _events(self, scenario: Scenario, now_ns: int) -> Iterator[Happening]:
        yield from self._by_hand
        for event in (*fault_notes(scenario), *reroutes(scenario, self._experiment.fabric)):
            if self._at_ns < event.at_ns <= now_ns:
                yield Happening(*event)
        pauses = self._simulation.pauses(self._pauses)
        self._pauses += len(pauses)
        for note in pauses:
            if note.what == "stuck":
                yield Happening(note.time_ns, "watchdog", f"watchdog: {note.link}", note.link)

    def _messages(self) -> Messages:
        if not self._course.is_known:
            return Messages()
        hosts, count = self._experiment.fabric.hosts, len(self._experiment.schedule)
        timeline = self._simulation.timeline(hosts, count)
        return self._course.messages(timeline.start_ns, timeline.end_ns)

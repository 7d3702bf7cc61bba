"""What repeats is left out of a run, and what it would have added is added.

A cut is a moment from which on all goes on as it did a period before, and a number of periods that
are left out there. Whoever makes a run with cuts gives it so many steps less, and lets what is to
happen later come so much sooner. Here is proved that it may: the moment and those one and two
periods before it find the fabric empty and in one state (`likeness.h`). Then counters, books and
times become those of the whole.

Lots decide between what happens in one instant, and follow from the time. Behind a cut they fall as
they would in the whole run.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from lab.engines.sim.control import SimulatedSwitches
from lab.engines.sim.simulation import Simulation, State
from lab.results.outcome import Cut, Line, Note, Outcome
from lab.scenario.experiment import Experiment
from params.data import Data
from traffic.collectives import NEVER, Schedule, Timeline

_LOOKS = 3  # at a cut: the last is the cut itself

Counted = Mapping[str, Any]  # what of an outcome adds up


class NoRepetitionError(Exception):
    """What seemed to repeat does not: the cut's number, and why."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number


class _Look(Data):
    state: State
    counted: Counted
    notes: Sequence[Note]


class Cuts:
    """A run's cuts, and how it was when it came to them."""

    def __init__(
        self,
        cuts: Sequence[Cut],
        switches: SimulatedSwitches,
        simulation: Simulation,
        *,
        lots: bool,
    ) -> None:
        self._cuts = cuts
        self._lots = lots
        self._switches, self._simulation = switches, simulation
        self._looks: list[_Look] = []

    @property
    def next_ns(self) -> int | None:
        """When it is to be looked at next."""
        number, turn = divmod(len(self._looks), _LOOKS)
        if number == len(self._cuts):
            return None
        cut = self._cuts[number]
        return cut.at_ns - (_LOOKS - 1 - turn) * cut.period_ns

    def look(self, count: Callable[[], Counted]) -> None:
        """It is time to: prove that it repeats, and let it be as if the periods had passed."""
        number, turn = divmod(len(self._looks), _LOOKS)
        cut = self._cuts[number]
        state = self._simulation.state(self._switches.tallies, lots=self._lots)
        if state is None:
            raise NoRepetitionError(number, "packets were under way")
        self._looks.append(_Look(state, count(), self._simulation.look()))
        if turn < _LOOKS - 1:
            return
        earlier, before, now = (each.state for each in self._looks[-_LOOKS:])
        if not now.repeats(before, earlier, cut.period_ns):
            raise NoRepetitionError(number, "switches or hosts were in another state")
        self._simulation.pretend(cut.left_out_ns)

    def whole(self, outcome: Outcome, experiment: Experiment) -> Outcome:
        """What would have come of it without cuts."""
        # It may have ended before it came to all of them.
        self._cuts = self._cuts[: len(self._looks) // _LOOKS]
        for number, cut in enumerate(self._cuts):
            early, late = (self._looks[number * _LOOKS + turn] for turn in (_LOOKS - 2, _LOOKS - 1))
            counted = {
                name: grown(
                    getattr(outcome, name), early.counted[name], late.counted[name], cut.times
                )
                for name in late.counted
            }
            outcome = replace(outcome, **counted)
        if not self._cuts:
            return outcome
        return replace(
            outcome,
            cuts=tuple(self._cuts),
            end_ns=self._later(outcome.end_ns),
            timeline=_whole_timeline(outcome.timeline, experiment.schedule, self._cuts),
            notes=tuple(map(self._whole_note, outcome.notes)),
            stocks=tuple(
                each._replace(time_ns=self._later(each.time_ns)) for each in outcome.stocks
            ),
            pauses=tuple(
                each._replace(time_ns=self._later(each.time_ns)) for each in outcome.pauses
            ),
        )

    def _later(self, time_ns: int) -> int:
        return time_ns + sum(cut.left_out_ns for cut in self._cuts if cut.at_ns < time_ns)

    def _whole_note(self, note: Note) -> Note:
        for number, cut in enumerate(self._cuts):
            if cut.at_ns < note.time_ns:
                early, late = self._growth[number][note.link]
                note = note._replace(
                    bytes=note.bytes + cut.times * (late.bytes - early.bytes),
                    paused_ns=note.paused_ns + cut.times * (late.paused_ns - early.paused_ns),
                    marked=note.marked + cut.times * (late.marked - early.marked),
                    dropped=note.dropped + cut.times * (late.dropped - early.dropped),
                )
        return note._replace(time_ns=self._later(note.time_ns))

    @cached_property
    def _growth(self) -> list[dict[str, tuple[Note, Note]]]:
        """By cut and direction: how it was a period before, and then."""
        return [
            {early.link: (early, late) for early, late in zip(*pair, strict=True)}
            for at in range(_LOOKS - 1, len(self._looks), _LOOKS)
            for pair in [[self._looks[at - 1].notes, self._looks[at].notes]]
        ]


def grown(value: Any, early: Any, late: Any, times: int) -> Any:
    """A count, or many, after so many more periods in which it grew as from early to late."""
    if isinstance(value, int):
        return value + times * ((late or 0) - (early or 0))
    if isinstance(value, Mapping):
        early, late = early or {}, late or {}
        return {
            key: grown(each, early.get(key), late.get(key), times) for key, each in value.items()
        }
    if isinstance(value, tuple):
        return _grown_lines(value, early or (), late or (), times)
    assert is_dataclass(value) and not isinstance(value, type)
    return replace(
        value,
        **{
            name: grown(
                getattr(value, name), getattr(early, name, None), getattr(late, name, None), times
            )
            for name in (field.name for field in fields(value))
        },
    )


def _grown_lines(
    lines: tuple[Line, ...], early: tuple[Line, ...], late: tuple[Line, ...], times: int
) -> tuple[Line, ...]:
    """The same of books, whose lines are only there if they count anything."""
    before, then = ({line[:4]: line for line in each} for each in (early, late))

    def grown(line: Line) -> Line:
        none = line._replace(packets=0, bytes=0)
        old, new = before.get(line[:4], none), then.get(line[:4], none)
        return line._replace(
            packets=line.packets + times * (new.packets - old.packets),
            bytes=line.bytes + times * (new.bytes - old.bytes),
        )

    return tuple(map(grown, lines))


def _whole_timeline(timeline: Timeline, schedule: Schedule, cuts: Sequence[Cut]) -> Timeline:
    """When everything happens that is not left out."""
    later = [
        sum(
            cut.left_out_ns
            for cut in cuts
            if each.job in cut.steps and each.step >= cut.steps[each.job].stop
        )
        for each in schedule.activities
    ]

    def shifted(times: Sequence[int]) -> array[int]:
        pairs = zip(times, schedule.activity, strict=True)
        return array("q", (time if time == NEVER else time + later[what] for time, what in pairs))

    return Timeline(shifted(timeline.start_ns), shifted(timeline.end_ns))

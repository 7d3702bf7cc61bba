"""A run that leaves out what repeats: steps of jobs that go exactly as those before.

First a run of few steps is looked at. If for four periods on end every message and computation of
all jobs begins and ends when it did a period before, to the nanosecond, there may be a cut in it: a
moment of that at which nothing is under way (`lab/engines/sim/skipping.py`). As many periods are
left out there as there are steps left, or until something else is to happen: a fault, the end of
another job. Then the shorter run is looked at, with what comes after; and in the end it is made,
cuts and all, and proves of each that the fabric is in the same state there, or is made without.

Nothing is known of steps that were not simulated but that they are alike, so jobs that draw lots
for their steps are not skipped, nor is what goes by no steps. Steps that only nearly repeat are
told from some of them (`lab/runs/sampled_steps.py`), with a bound on how wrong that may be.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.console import Console

from lab.engines import RunOptions
from lab.engines.sim import engine as sim
from lab.engines.sim.skipping import NoRepetitionError
from lab.errors import RunError, first_reason
from lab.progress import Stages
from lab.results.outcome import INTERRUPTION, Cut, Outcome, Skipping
from lab.runs import sampled_steps
from lab.scenario.controls import algorithm_file
from lab.scenario.experiment import Experiment
from lab.scenario.faults import events_of
from lab.scenario.model import Fault, MeasureSettings, Scenario
from params.link import Replay
from params.load_balancing import Policy
from traffic.collectives import NEVER, Spec, Timeline
from traffic.jobs import Job, MixSpec, SimpleJob, TrainingJob

_FEWEST_STEPS = 24  # of the longest job
_FIRST_LOOK = 6  # steps
_LONGEST_PERIOD = 4  # steps
_PERIODS = 4  # that have to be alike; in the first some of the state is made for the first time
_LOOKS_BEFORE = 2  # a cut: periods of which it is proved that the state is the same
_FEWEST_TIMES = 4  # that are worth another look
_FIRST_LOOKS = 24  # steps; what does not repeat in as many may still have settled
_WHOLE_SHARE = 4  # a look takes no more than one step in so many


def hindrance(scenario: Scenario) -> str | None:
    """Why nothing of a scenario can be skipped, if that is known beforehand."""
    jobs = _jobs(scenario.traffic)
    if jobs is None:
        return "its traffic goes by no steps, or draws lots for them"
    if max(job.steps for job in jobs) < _FEWEST_STEPS:
        return f"no job has {_FEWEST_STEPS} steps or more"
    has_chance = scenario.loss.rate or any(fault.rate for fault in scenario.faults)
    has_storm = any(fault.action == "storm" for fault in scenario.faults)
    return first_reason(
        (has_storm, "a storm has a time of its own"),
        (scenario.transport.kind != "roce", f"{scenario.transport.kind} keeps state of its own"),
        (algorithm_file(scenario.transport), "a congestion control that was brought keeps its own"),
        (scenario.link.cbfc, "credits are counted, not compared"),
        (scenario.link.llr is not Replay.NONE, "links that try again keep what they sent"),
        (has_chance, "packets are lost at random"),
        (scenario.telemetry.share, "telemetry tells of each packet"),
    )


def simulated(
    scenario: Scenario, options: RunOptions, stages: Stages
) -> tuple[Experiment, Outcome]:
    """Run a scenario, without what repeats; what was run, and what the whole comes to."""
    why = hindrance(scenario)
    cuts: list[Cut] = []
    may_be_told = why is None
    if may_be_told:
        with stages("Looking for what repeats") as stage:
            cuts, why = _found(scenario, options, _FIRST_LOOKS)
            stage.note = f"{_left_out(cuts):,} steps" if cuts else why or ""
    repeats = bool(cuts)
    while True:
        if may_be_told and not cuts:
            may_be_told = False
            told = sampled_steps.simulated(scenario, options, stages)
            if not isinstance(told, str):
                small, outcome = told
                _keep_limit(scenario, outcome)
                skipping = Skipping(options.accuracy, None)
                return small, replace(outcome, scenario=scenario, skipping=skipping)
            why = f"{why}, and {told}"
            if not repeats:
                with stages("Looking on for what repeats") as stage:
                    cuts, _ = _found(scenario, options)
                    stage.note = f"{_left_out(cuts):,} steps" if cuts else told
        experiment = Experiment.of(shortened(scenario, cuts))
        try:
            with sim.bring_up(experiment, options, stages) as up:
                outcome = up.measure(cuts=cuts, lots=_lots_matter(scenario))
            _prove(experiment, outcome)
            break
        except NoRepetitionError as said:
            cuts, why = cuts[: said.number], str(said)
    _keep_limit(scenario, outcome)
    why = None if cuts else why
    return experiment, replace(outcome, scenario=scenario, skipping=Skipping(options.accuracy, why))


def _keep_limit(scenario: Scenario, outcome: Outcome) -> None:
    if (outcome.cuts or outcome.sampled) and outcome.end_ns > scenario.limit_ns:
        raise RunError(
            f"the run ends at {outcome.end_ns:,} ns, which is behind its limit_ns",
            f"Say --set limit_ns={outcome.end_ns}, or --accuracy exact.",
        )


def shortened(scenario: Scenario, cuts: Sequence[Cut], most: int | None = None) -> Scenario:
    """The same without the steps that are left out, and with what happens so much sooner."""
    traffic = scenario.traffic
    if isinstance(traffic, MixSpec):
        parts = tuple(_shorter(job, cuts, most) for job in traffic.parts)
        traffic = traffic.model_copy(update={"parts": parts})
    else:
        traffic = _shorter(traffic, cuts, most)
    faults = tuple(_sooner(fault, cuts) for fault in scenario.faults)
    return scenario.model_copy(update={"traffic": traffic, "faults": faults})


def _shorter(job: Spec, cuts: Sequence[Cut], most: int | None) -> Spec:
    if not isinstance(job, Job):
        return job
    left = job.steps - sum(cut.times * len(cut.steps.get(job.name, ())) for cut in cuts)
    return job.model_copy(update={"steps": left if most is None else min(left, most)})


def _sooner(fault: Fault, cuts: Sequence[Cut]) -> Fault:
    """As it is in a run with these cuts, in the middle of which some may be."""
    at_ns = fault.at_ns
    until_ns = None if fault.for_ns is None else at_ns + fault.for_ns
    for cut in cuts:
        at_ns -= cut.left_out_ns if at_ns > cut.at_ns else 0
        if until_ns is not None and until_ns > cut.at_ns:
            until_ns -= cut.left_out_ns
    for_ns = None if until_ns is None else until_ns - at_ns
    return fault.model_copy(update={"at_ns": at_ns, "for_ns": for_ns})


def _jobs(traffic: Spec) -> list[Job] | None:
    """All of it, if it is jobs whose steps are alike."""
    parts = traffic.parts if isinstance(traffic, MixSpec) else (traffic,)
    jobs: list[Job] = [part for part in parts if isinstance(part, SimpleJob | TrainingJob)]
    names = {job.name for job in jobs}
    return jobs if len(jobs) == len(parts) == len(names) else None


def _left_out(cuts: Sequence[Cut]) -> int:
    return sum(cut.times * len(steps) for cut in cuts for steps in cut.steps.values())


def _lots_matter(scenario: Scenario) -> bool:
    """Whether more than marks, which nobody heeds, is drawn by lot."""
    return (
        scenario.transport.cc != "none"
        or scenario.lb.policy is not Policy.ECMP
        or scenario.ecn.fast_cnp
    )


def _prove(experiment: Experiment, outcome: Outcome) -> None:
    """That before its cuts a run was what was seen before it: periods that are alike."""
    jobs = _steps_of(experiment, outcome.timeline) if outcome.cuts else {}
    for number, cut in enumerate(outcome.cuts):
        for name, repeated in cut.steps.items():
            begins, shapes = jobs[name].begins, jobs[name].shapes
            count = len(repeated)
            for at in (*repeated, *(step - count for step in repeated)):
                is_late = begins[at] - begins[at - count] != cut.period_ns
                if is_late or shapes[at] != shapes[at - count]:
                    raise NoRepetitionError(number, f"steps of {name} took another time then")


# --- looking --------------------------------------------------------------------------------------


class _Steps(NamedTuple):
    """A job's steps that came to their end."""

    begins: list[int]
    ends: list[int]
    shapes: list[bytes]  # when everything of it happened, since it began


class _Lock(NamedTuple):
    """A job repeats, so many steps at a time."""

    steps: int
    begin_ns: int
    end_ns: int


def _found(
    scenario: Scenario, options: RunOptions, longest_look: int = sys.maxsize
) -> tuple[list[Cut], str | None]:
    """Where there may be cuts; why there are none, if no look is longer than that."""
    cuts: list[Cut] = []
    why, most = "no steps were alike", _FIRST_LOOK
    while True:
        whole = shortened(scenario, cuts)
        jobs = _jobs(whole.traffic)
        assert jobs is not None
        totals = {job.name: job.steps for job in jobs}
        # A look at half of it would cost more than what it finds can spare.
        if most * _WHOLE_SHARE > max(totals.values()) or (most > longest_look and not cuts):
            return cuts, why
        view = _View(whole, totals, shortened(whole, (), most), options)
        found = next(view.cuts(), None)
        if found is not None:
            cuts.append(found)
        else:
            why, most = view.why, 2 * most


class _View:
    """A run of few steps, and what of it repeats."""

    def __init__(
        self, whole: Scenario, totals: dict[str, int], scenario: Scenario, options: RunOptions
    ) -> None:
        lightest = MeasureSettings(flows=False, series=False)
        experiment = Experiment.of(scenario.model_copy(update={"measures": lightest}))
        with sim.bring_up(experiment, options, Stages(Console(quiet=True))) as up:
            outcome = up.measure()
        if outcome.ended == INTERRUPTION:
            raise KeyboardInterrupt
        timeline = outcome.timeline
        self.why = "no steps were alike"
        self._adds_up = bool(experiment.settings.groups)
        self._totals = totals
        self._jobs = _steps_of(experiment, timeline)
        self._back_ns = experiment.round_trip_ns // 2  # which its answer takes
        schedule = experiment.schedule
        self._messages = sorted(
            (timeline.start_ns[number], timeline.end_ns[number]) for number in schedule.messages()
        )
        events = {event.at_ns for event in events_of(whole, experiment.fabric)}
        self._events = sorted(at_ns for at_ns in events if at_ns)
        reroute_ns = whole.reroute_ns or 0
        # What a controller is told later is as much later in any run.
        self._reroutings = [(at_ns, at_ns + reroute_ns) for at_ns in self._events if reroute_ns]

    def cuts(self) -> Iterator[Cut]:
        """What could be left out, from the beginning on."""
        if self._adds_up:
            self.why = "what switches add up is not compared"
            return
        ends = [steps.ends[-1] for steps in self._jobs.values() if steps.ends]
        for since_ns in sorted({0, *self._events, *ends}):
            if any(begin_ns <= since_ns < end_ns for begin_ns, end_ns in self._reroutings):
                continue
            later = bisect_left(self._events, since_ns + 1)
            until_ns = self._events[later] if later < len(self._events) else None
            cut = self._cut(since_ns, until_ns)
            if cut is not None and cut.times >= _FEWEST_TIMES:
                yield cut

    def _cut(self, since_ns: int, until_ns: int | None) -> Cut | None:
        """One between two moments at which something happens."""
        at_work = {
            name: steps
            for name, steps in self._jobs.items()
            if len(steps.ends) < self._totals[name] or steps.ends[-1] > since_ns
        }
        if not at_work:
            return None
        lead = max(at_work.values(), key=lambda steps: len(steps.begins))
        for period_ns in _periods(lead, since_ns):
            locks = {name: _lock(steps, period_ns, since_ns) for name, steps in at_work.items()}
            begin_ns = max((lock.begin_ns for lock in locks.values() if lock), default=0)
            end_ns = min((lock.end_ns for lock in locks.values() if lock), default=0)
            if None in locks.values() or end_ns - begin_ns < _PERIODS * period_ns:
                continue
            first_ns = begin_ns + (_PERIODS - _LOOKS_BEFORE - 1) * period_ns
            quiet_ns = self._quiet(first_ns, first_ns + period_ns)
            if quiet_ns is None:
                self.why = "packets are always under way"
                continue
            at_ns = quiet_ns + _LOOKS_BEFORE * period_ns
            done = {name: bisect_left(at_work[name].begins, at_ns) for name in locks}
            times = [
                (self._totals[name] - done[name] - 1) // lock.steps
                for name, lock in locks.items()
                if lock
            ]
            if until_ns is not None:
                times.append((until_ns - at_ns) // period_ns - 1)
            steps = {
                name: range(done[name] - lock.steps, done[name])
                for name, lock in locks.items()
                if lock
            }
            return Cut(at_ns, period_ns, min(times), steps)
        return None

    def _quiet(self, begin_ns: int, end_ns: int) -> int | None:
        """The end of the longest time in which no message was under way, nor its answer."""
        longest, found, reached = self._back_ns, None, 0
        for start_ns, over_ns in self._messages:
            if start_ns > end_ns:
                break
            if start_ns > begin_ns and start_ns - max(reached, begin_ns) > longest:
                longest, found = start_ns - max(reached, begin_ns), start_ns - 1
            reached = max(reached, over_ns)
        return found


def _steps_of(experiment: Experiment, timeline: Timeline) -> dict[str, _Steps]:
    """By job: steps that came to their end, from the first on."""
    schedule = experiment.schedule
    numbers: dict[str, dict[int, list[int]]] = {}
    for number, what in enumerate(schedule.activity):
        activity = schedule.activities[what]
        numbers.setdefault(activity.job, {}).setdefault(activity.step, []).append(number)
    return {job: _in_order([steps[at] for at in sorted(steps)], timeline)
            for job, steps in numbers.items()}  # fmt: skip


def _in_order(steps: Sequence[Sequence[int]], timeline: Timeline) -> _Steps:
    found = _Steps([], [], [])
    for numbers in steps:
        starts = [timeline.start_ns[number] for number in numbers]
        ends = [timeline.end_ns[number] for number in numbers]
        if NEVER in starts or NEVER in ends:
            break
        begin = min(starts)
        found.begins.append(begin)
        found.ends.append(max(ends))
        found.shapes.append(array("q", (time - begin for time in (*starts, *ends))).tobytes())
    return found


def _periods(steps: _Steps, since_ns: int) -> Iterator[int]:
    """How long some steps of a job took."""
    first = bisect_left(steps.begins, since_ns)
    found = dict.fromkeys(
        steps.begins[at + count] - steps.begins[at]
        for at in range(first, len(steps.begins))
        for count in range(1, _LONGEST_PERIOD + 1)
        if at + count < len(steps.begins)
    )
    yield from found


def _lock(steps: _Steps, period_ns: int, since_ns: int) -> _Lock | None:
    """From when on, and until when, a job repeats in this time; none if it does not for long."""
    begins, shapes = steps.begins, steps.shapes
    for count in range(1, 2 * _LONGEST_PERIOD + 1):
        for first in range(bisect_left(begins, since_ns), len(begins) - _PERIODS * count):
            at = first
            while at + count < len(begins) and begins[at + count] - begins[at] == period_ns:
                if shapes[at + count] != shapes[at]:
                    at += 1  # it began in time
                    break
                at += 1
            last = at + count - 1
            if last - first >= _PERIODS * count:
                return _Lock(count, begins[first], begins[last])
    return None

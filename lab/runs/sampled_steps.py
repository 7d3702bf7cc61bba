"""A run of many steps, told from one of few: each step that is simulated stands for as many others.

Steps that never repeat to the nanosecond may still take the same time on average. Jobs are given
one step in so many, all of them, so that they end one after the other as in the whole, and what
goes on beside the last of them has its share. What of a job never waits for the rest of it, as the
rails of a model whose tensors are split inside nodes, is a *strand* that goes at a pace of its own.
Between two moments at which one ends each strand that is left has a pace, and whether that is known
is judged by its steps (`lab/runs/steady_state.py`). From paces follows when every step of the whole
begins: the first ones when they did, those after the first sixth at the pace of all that follow.

Two jobs that go at almost the same pace drift past each other so slowly that few steps do not show
how they may meet. They are simulated again, one of them *led* round the other: each of its steps is
delayed by as little as takes it there twice. What is told is without these delays.

Counts of packets, messages and bytes are those of the run, so many times; when things happen within
a step is what it was in the one that is simulated. Nothing may come from outside meanwhile, and
nothing be lost, for what is rare and dear no mean tells.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from math import ceil, gcd
from typing import NamedTuple

from lab.engines import RunOptions
from lab.engines.sim import engine as sim
from lab.engines.sim.skipping import grown
from lab.errors import first_reason
from lab.progress import Stages
from lab.results.outcome import INTERRUPTION, Outcome, Sampled
from lab.runs.leading import Lead, led, longest_ns, without
from lab.runs.steady_state import FEWEST, Drift, Led, Steps, few_paces, settled
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.data import Data
from traffic.collectives import Schedule, Timeline
from traffic.jobs import Job, MixSpec

_FEWEST_STEPS = 48  # of the shortest job, in the first run of few
_WHOLE_SHARE = 4  # a run of few takes no more than one step in so many
_FIRST_SHARE = 6  # of the steps simulated: as many of the first stand for themselves alone
# Rounds of one job in the other's steps: how they meet is seen, and seen again halfway between.
_ROUNDS = 2.01
_MOST = 2  # strands, of which one can be led round the other
_COUNTS = "switches", "endpoints", "books", "link_books"


def hindrance(scenario: Scenario) -> str | None:
    """Why a run cannot be told from one of few steps, if that is known beforehand."""
    return first_reason(
        (any(fault.at_ns or fault.for_ns for fault in scenario.faults), "something is to happen"),
        (not scenario.pfc.enabled, "packets may be lost"),
        (scenario.measures.series, "a series is to be kept (measures.series)"),
    )


def simulated(
    scenario: Scenario, options: RunOptions, stages: Stages
) -> tuple[Experiment, Outcome] | str:
    """A run of few steps and what the whole comes to by it; why it cannot be told."""
    why = hindrance(scenario)
    if why is not None:
        return why
    jobs = jobs_of(scenario)
    why = "its jobs' steps have no divisor that would do"
    for times in _scales([job.steps for job in jobs]):
        experiment = Experiment.of(smaller(scenario, times))
        told = _told(experiment, times, options, stages)
        if not isinstance(told, str):
            return experiment, told
        why = told
    return why


def jobs_of(scenario: Scenario) -> list[Job]:
    """All traffic, which is jobs."""
    traffic = scenario.traffic
    parts = traffic.parts if isinstance(traffic, MixSpec) else (traffic,)
    return [part for part in parts if isinstance(part, Job)]


def smaller(scenario: Scenario, times: int) -> Scenario:
    """The same with one step in so many."""
    traffic = scenario.traffic
    jobs = [job.model_copy(update={"steps": job.steps // times}) for job in jobs_of(scenario)]
    is_mix = isinstance(traffic, MixSpec)
    made = traffic.model_copy(update={"parts": tuple(jobs)}) if is_mix else jobs[0]
    return scenario.model_copy(update={"traffic": made})


def _scales(steps: Sequence[int]) -> Iterator[int]:
    """For how many steps one may stand: ever fewer, and at least half as many each time."""
    whole, least = gcd(*steps), min(steps)
    before = None
    for times in range(whole, _WHOLE_SHARE - 1, -1):
        if whole % times or least // times < _FEWEST_STEPS:
            continue
        if before is None or before >= 2 * times:
            yield times
            before = times


# --- what the whole comes to ----------------------------------------------------------------------


class _Strand(Data, frozen=False):
    """What of a job depends on each other."""

    job: str
    begins: list[int]  # of steps, and when the last of them ended
    ends: list[int]
    shapes: list[bytes]
    hosts: set[int]
    is_wide: bool  # it leaves its racks
    led: Led | None = None  # if one was led round another; times are without its delay
    knots: list[tuple[float, float]] = field(default_factory=list)  # of the whole: step, and when

    @property
    def steps(self) -> int:
        """How many it has."""
        return len(self.ends)

    @property
    def pace(self) -> float:
        """How long a step takes, by all but the first."""
        return (self.later[-1] - self.later[0]) / (len(self.later) - 1)

    @property
    def later(self) -> list[int]:
        """When all but the first of its steps begin, and the last ends."""
        return self.begins[self.steps // _FIRST_SHARE :]

    @property
    def extremes(self) -> tuple[int, int]:
        """Its shortest step, and its longest."""
        lengths = [b - a for a, b in pairwise(self.begins)]
        return min(lengths), max(lengths)

    @property
    def lasts(self) -> list[int]:
        """How long each of its steps takes, until the last of it is over."""
        return [b - a for a, b in zip(self.begins, self.ends, strict=False)]

    def like(self, step: int, times: int) -> int:
        """Which of its steps one of the whole is told by."""
        first = int(self.knots[0][0])
        if step < first:
            return step
        return first + (step - first) * (self.steps - first) // (times * self.steps - first)

    def meets(self, other: _Strand) -> bool:
        """Whether they may share a link."""
        return (self.is_wide and other.is_wide) or bool(self.hosts & other.hosts)

    def between(self, begin_ns: int, end_ns: int) -> range:
        """Which of its steps begin and end then."""
        last = bisect_right(self.begins, end_ns) - 1
        return range(bisect_left(self.begins, begin_ns), last)

    def whole(self, times: int) -> list[int]:
        """When all steps of the whole begin."""
        (first, _), *_ = self.knots
        found = self.begins[: int(first)]
        at = 1
        for step in range(int(first), times * self.steps):
            while step > self.knots[at][0] and at < len(self.knots) - 1:
                at += 1
            (before, before_ns), (after, after_ns) = self.knots[at - 1 : at + 1]
            found.append(
                round(before_ns + (step - before) * (after_ns - before_ns) / (after - before))
            )
        return found


class _Strands(NamedTuple):
    all: list[_Strand]
    of: Mapping[tuple[str, int], _Strand]  # by job and host
    timeline: Timeline


def _told(experiment: Experiment, times: int, options: RunOptions, stages: Stages) -> Outcome | str:
    """The whole by a run, and by another with one job led round the other if these drift."""
    outcome = _measured(experiment, options, stages)
    if isinstance(outcome, str):
        return outcome
    plain = _strands(experiment, outcome.timeline)
    whole = _whole(experiment, outcome, plain, times, options)
    if not isinstance(whole, Drift) or (lead := _lead(plain.all)) is None:
        return whole
    outcome = _measured(led(experiment, lead), options, stages)
    if isinstance(outcome, str):
        return outcome
    late = without(experiment.schedule, outcome.timeline, lead)
    strands = _strands(experiment, _after(plain, late, experiment.schedule))
    for strand, before in zip(strands.all, plain.all, strict=True):
        delay_ns = lead.delay_ns if strand.job == lead.job else 0
        collide_ns = partial(longest_ns, experiment, strand.job)
        strand.led = Led(delay_ns, few_paces(before.later), collide_ns)
    return _whole(experiment, outcome, strands, times, options)


def _after(plain: _Strands, late: Timeline, schedule: Schedule) -> Timeline:
    """The first steps as they were, and all that follow as those that were led; a strand a job."""
    activities = [schedule.activities[what] for what in schedule.activity]
    starts, ends = array("q", plain.timeline.start_ns), array("q", plain.timeline.end_ns)
    for strand in plain.all:
        first = strand.steps // _FIRST_SHARE
        its = [
            number
            for number, each in enumerate(activities)
            if each.job == strand.job and each.step >= first
        ]
        by_ns = strand.begins[first] - min(late.start_ns[number] for number in its)
        for number in its:
            starts[number] = late.start_ns[number] + by_ns
            ends[number] = late.end_ns[number] + by_ns
    return Timeline(starts, ends)


def _measured(experiment: Experiment, options: RunOptions, stages: Stages) -> Outcome | str:
    """A run, if it can tell anything; why it cannot."""
    with sim.bring_up(experiment, options, stages) as up:
        outcome = up.measure()
    if outcome.ended == INTERRUPTION:
        raise KeyboardInterrupt
    return outcome.ended or ("packets were lost" if has_lost(outcome) else outcome)


def _lead(strands: Sequence[_Strand]) -> Lead | None:
    """Which of two jobs goes twice round the other if it is delayed, and does not by itself."""
    if len(strands) != len({strand.job for strand in strands}) or len(strands) > _MOST:
        return None
    quick, slow = sorted(strands, key=lambda strand: strand.pace)
    delay_ns = ceil(_ROUNDS * quick.pace / (len(slow.later) - 1) - (slow.pace - quick.pace))
    return Lead(slow.job, delay_ns) if delay_ns > 0 else None


def _whole(
    experiment: Experiment, outcome: Outcome, strands: _Strands, times: int, options: RunOptions
) -> Outcome | str:
    """What the whole comes to; why that is not known."""
    bound = _enlarge(strands.all, times)
    if isinstance(bound, str):
        return bound
    if bound > float(options.accuracy.rstrip("%")) / 100:
        return "what steps take varies by too much"
    moments = {strand.job: _moments(strands.all, strand.job, times) for strand in strands.all}
    end_ns = max(end_ns for each in moments.values() for _, end_ns in each)
    more_ns = outcome.end_ns - outcome.timeline.finish_ns
    return replace(
        outcome,
        **{name: grown(getattr(outcome, name), None, getattr(outcome, name), times - 1)
           for name in _COUNTS},
        timeline=_whole_timeline(experiment.schedule, strands, times),
        end_ns=end_ns + more_ns,
        stocks=(),
        pauses=(),
        sampled=Sampled(times, outcome.end_ns, bound, moments),
    )  # fmt: skip


def has_lost(outcome: Outcome) -> bool:
    """Whether anything was lost, or waited for too long."""
    return any(counts.lost for counts in outcome.switches.values()) or any(
        counters.get("timeouts") for counters in outcome.endpoints.values()
    )


def _strands(experiment: Experiment, timeline: Timeline) -> _Strands:
    """All of a run's, from the first message on."""
    schedule = experiment.schedule
    above: dict[tuple[str, int], tuple[str, int]] = {}

    def root(of: tuple[str, int]) -> tuple[str, int]:
        while (over := above.setdefault(of, of)) != of:
            above[of] = above[over]
            of = above[of]
        return of

    jobs = [activity.job for activity in schedule.activities]
    columns = schedule.activity, schedule.src, schedule.dst
    pairs = {(jobs[what], src, dst) for what, src, dst in zip(*columns, strict=True)}
    for job, src, dst in sorted(pairs):
        above[root((job, src))] = root((job, dst))
    steps: dict[tuple[str, int], dict[int, list[int]]] = {}
    for number, (what, src) in enumerate(zip(schedule.activity, schedule.src, strict=True)):
        its = steps.setdefault(root((jobs[what], src)), {})
        its.setdefault(schedule.activities[what].step, []).append(number)
    found = {at: _strand(at[0], its, timeline) for at, its in steps.items()}
    for at in above:
        found[root(at)].hosts.add(at[1])
    racks = [set(experiment.fabric.leaves_of(host)) for host in experiment.fabric.hosts]
    for job, src, dst in pairs:
        found[root((job, src))].is_wide |= racks[src] != racks[dst]
    return _Strands([*found.values()], {each: found[root(each)] for each in above}, timeline)


def _strand(job: str, steps: Mapping[int, Sequence[int]], timeline: Timeline) -> _Strand:
    found = _Strand(job, [], [], [], set(), is_wide=False)
    for step in sorted(steps):
        starts = [timeline.start_ns[number] for number in steps[step]]
        ends = [timeline.end_ns[number] for number in steps[step]]
        begin = min(starts)
        found.begins.append(begin)
        found.ends.append(max(ends))
        found.shapes.append(array("q", (time - begin for time in (*starts, *ends))).tobytes())
    found.begins.append(found.ends[-1])
    return found


def _enlarge(strands: Sequence[_Strand], times: int) -> float | str:
    """Say of each strand when steps of the whole begin; by how much that may be wrong."""
    since_ns = min(strand.begins[strand.steps // _FIRST_SHARE] for strand in strands)
    now_ns, wrong_ns, bound = float(since_ns), 0.0, 0.0
    odd_ns = max(max(strand.lasts) - min(strand.lasts) for strand in strands)
    for strand in strands:
        first = bisect_left(strand.begins, since_ns)
        strand.knots = [(first, float(strand.begins[first]))]
    for begin_ns, end_ns in pairwise(_moments_between(strands, since_ns)):
        at_work = [strand for strand in strands if strand.begins[-1] > begin_ns]
        seen = [strand.between(begin_ns, end_ns) for strand in at_work]
        known = settled(
            {
                f"{strand.job} ({number})": Steps(
                    strand.begins[its.start : its.stop + 1],
                    strand.extremes,
                    strand.shapes[its.start : its.stop],
                    strand.led,
                )
                for number, (strand, its) in enumerate(zip(at_work, seen, strict=True))
            },
            _meetings(at_work),
        )
        if isinstance(known, str):
            return known
        until_ns = _go_on(at_work, seen, end_ns, times)
        for spent_ns, more_ns in ((0.0, 2 * known.wander_ns), (until_ns - now_ns, 0)):
            now_ns += spent_ns
            wrong_ns += more_ns + known.error * spent_ns
            bound = max(bound, (wrong_ns + odd_ns) / now_ns)
    return bound


def _meetings(strands: Sequence[_Strand]) -> Callable[[int, int], bool]:
    return lambda one, other: strands[one].meets(strands[other])


def _go_on(strands: Sequence[_Strand], seen: Sequence[range], end_ns: int, times: int) -> float:
    """At their paces, until those have ended whose last steps these are; when that is."""
    arrivals = []
    for strand, its in zip(strands, seen, strict=True):
        step, when_ns = strand.knots[-1]
        pace = (strand.begins[its.stop] - strand.begins[its.start]) / len(its)
        arrivals.append((when_ns + (times * strand.steps - step) * pace, pace))
    until_ns = max(
        at_ns
        for strand, (at_ns, _) in zip(strands, arrivals, strict=True)
        if strand.begins[-1] <= end_ns
    )
    for strand, (at_ns, pace) in zip(strands, arrivals, strict=True):
        step, when_ns = strand.knots[-1]
        if strand.begins[-1] <= end_ns or at_ns <= until_ns:
            strand.knots.append((times * strand.steps, at_ns))
        else:
            strand.knots.append((step + (until_ns - when_ns) / pace, until_ns))
    return until_ns


def _moments_between(strands: Sequence[_Strand], since_ns: int) -> list[int]:
    """Between which paces are looked at: when strands end, if others have enough steps between."""
    found = [since_ns]
    *ends, last_ns = sorted({strand.begins[-1] for strand in strands})
    for end_ns in ends:
        left = [strand for strand in strands if strand.begins[-1] > end_ns]
        if all(
            len(strand.between(found[-1], end_ns)) >= FEWEST
            and len(strand.between(end_ns, last_ns)) >= FEWEST
            for strand in left
        ):
            found.append(end_ns)
    return [*found, last_ns]


def _moments(strands: Sequence[_Strand], job: str, times: int) -> list[tuple[int, int]]:
    """When each of a job's steps begins and ends in the whole."""
    begins: list[int] = []
    ends: list[int] = []
    for strand in strands:
        if strand.job != job:
            continue
        its, lasts = strand.whole(times), strand.lasts
        over = [begin + lasts[strand.like(step, times)] for step, begin in enumerate(its)]
        begins = [*map(min, begins, its)] if begins else its
        ends = [*map(max, ends, over)] if ends else over
    return [*zip(begins, ends, strict=True)]


def _whole_timeline(schedule: Schedule, strands: _Strands, times: int) -> Timeline:
    """When what was simulated happens in the whole, as the first of what it stands for."""
    later = {
        id(strand): [
            whole - small
            for whole, small in zip(strand.whole(times)[::times], strand.begins, strict=False)
        ]
        for strand in strands.all
    }
    timeline = strands.timeline
    columns = timeline.start_ns, timeline.end_ns, schedule.activity, schedule.src
    starts, ends = array("q"), array("q")
    for start_ns, end_ns, what, src in zip(*columns, strict=True):
        activity = schedule.activities[what]
        by_ns = later[id(strands.of[activity.job, src])][activity.step]
        starts.append(start_ns + by_ns)
        ends.append(end_ns + by_ns)
    return Timeline(starts, ends)

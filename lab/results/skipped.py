"""What a run comes to of which steps were left out: those that are there count for these, too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lab.results.outcome import Cut, Outcome, Sampled
from lab.results.part import Part
from params.quantity import duration, percent, summed
from traffic.collectives import Schedule
from traffic.measures import JobMeasure, StepMeasure

# Where the state is the same so is all that follows (`lab/engines/sim/skipping.py`), but for whose
# turn it is of packets that come in one nanosecond. That moves a step by nanoseconds.
_TIES = 0.001


class Skipped(Part):
    """What was left out of a run because it repeats."""

    accuracy: str  # that was asked for
    bound: float  # moments differ from an exact run's by no more than this share of them
    steps: dict[str, int]  # by job: how many are not simulated, but others told again
    time_ns: int  # of the run's duration, that was not simulated
    why: str | None = None  # nothing is left out

    @property
    def text(self) -> str:
        """In words."""
        if self.why is not None:
            return f"Nothing was left out, though {self.accuracy} would do: {self.why}."
        steps = " and ".join(f"{count:,} steps of {job}" for job, count in self.steps.items())
        return (
            f"Not simulated, as they go like others: {steps}, {duration(self.time_ns)} in all. "
            f"When steps, jobs and the run end might differ by {self.accuracy} for that, and does "
            f"by {percent(self.bound)} at most."
        )


def skipped(outcome: Outcome) -> Skipped | None:
    """What of a run was left out; nothing if it was to be exact."""
    if outcome.skipping is None:
        return None
    if (small := outcome.sampled) is not None:
        return Skipped(
            accuracy=outcome.skipping.accuracy,
            bound=max(_TIES, small.bound),
            steps={job: len(its) - len(its) // small.times for job, its in small.steps.items()},
            time_ns=outcome.end_ns - small.simulated_ns,
        )
    steps: dict[str, int] = {}
    for cut in outcome.cuts:
        for job, repeated in cut.steps.items():
            steps[job] = steps.get(job, 0) + cut.times * len(repeated)
    return Skipped(
        accuracy=outcome.skipping.accuracy,
        bound=_TIES if outcome.cuts else 0.0,
        steps=steps,
        time_ns=sum(cut.left_out_ns for cut in outcome.cuts),
        why=outcome.skipping.why,
    )


def weights(schedule: Schedule, outcome: Outcome) -> list[int] | None:
    """By activity: for how many of its kind it stands; none if that is one, of all."""
    cuts = outcome.cuts
    if outcome.sampled is not None:
        return [outcome.sampled.times] * len(schedule.activities)
    if not cuts:
        return None
    return [
        1 + sum(cut.times for cut in cuts if cut.repeats(each.job, each.step))
        for each in schedule.activities
    ]


def with_skipped(job: JobMeasure, outcome: Outcome) -> JobMeasure:
    """A job with the steps that were left out."""
    if outcome.sampled is not None:
        return _enlarged(job, outcome.sampled)
    if not outcome.cuts:
        return job
    steps = tuple(_steps(job, outcome.cuts))
    busy = summed(step.compute_ns for step in steps) / job.jct_ns if job.jct_ns else None
    return replace(job, steps=steps, gpu_utilisation=busy)


def _enlarged(job: JobMeasure, small: Sampled) -> JobMeasure:
    """A job of which one step in so many was simulated."""
    steps = tuple(
        replace(job.steps[number // small.times], step=number, start_ns=begin_ns, end_ns=end_ns)
        for number, (begin_ns, end_ns) in enumerate(small.steps[job.job])
    )
    jct_ns = max(end_ns for _, end_ns in small.steps[job.job]) - job.start_ns
    busy = summed(step.compute_ns for step in steps) / jct_ns
    return replace(job, steps=steps, jct_ns=jct_ns, gpu_utilisation=busy)


def _steps(job: JobMeasure, cuts: Sequence[Cut]) -> list[StepMeasure]:
    found: list[StepMeasure] = []
    for step in job.steps:
        found.append(step)
        for cut in cuts:
            repeated = cut.steps.get(job.job, range(0))
            if step.step == repeated.stop - 1:
                period = found[len(found) - len(repeated) :]
                found += [
                    _later(each, turn * cut.period_ns)
                    for turn in range(1, cut.times + 1)
                    for each in period
                ]
    return [replace(step, step=number) for number, step in enumerate(found)]


def _later(step: StepMeasure, by_ns: int) -> StepMeasure:
    end_ns = None if step.end_ns is None else step.end_ns + by_ns
    return replace(step, start_ns=step.start_ns + by_ns, end_ns=end_ns)

"""What a run means: times and rates of transfers, flows, collectives, steps and jobs.

- A transfer lasts from when it was posted to when it was delivered; a *flow* is all an activity
  sends over one queue pair. *Slowdown* is how much longer a transfer took than alone on an empty
  path: ``alpha_ns`` for the first byte and the rate of a port for all of them. A flow has that of
  its slowest transfer.
- ``algbw`` is a collective's bytes by its time; ``busbw`` weighs it so that it can be compared
  with the rate of a port, whatever the number of ranks. Both as nccl-tests defines them, but in
  gigabits a second, like every rate here. A collective lasts from the first transfer posted to the
  last one delivered.
- A *step* lasts from its first beginning to its last end. Its compute time is what a rank computed,
  averaged over the ranks; GPU utilisation is that by the step's time, so waiting for a straggler
  counts as idle. Its communication time is when anything of it was under way, overlapped or not.
- *JCT* is from the start of a job's first step to the end of its last rank. A job with a transfer
  that never ended has none.

A percentile is a value that occurred: the smallest that so many percent do not exceed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from params.data import Data
from params.quantity import summed
from traffic.collectives import NEVER, Activity, Schedule, ScheduleError, Timeline

_BUS_FACTORS: dict[str, Callable[[int], float]] = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-gather": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
    "broadcast": lambda _: 1.0,
}


class FlowMeasure(Data):
    """What an activity sent over one queue pair."""

    activity: Activity
    src: int
    dst: int
    channel: int
    bytes: int
    messages: int
    start_ns: int
    end_ns: int | None  # None: not all of it arrived
    slowdown: float | None

    @property
    def fct_ns(self) -> int | None:
        """Its completion time."""
        return None if self.end_ns is None else self.end_ns - self.start_ns


class CollectiveMeasure(Data):
    """One collective."""

    activity: Activity
    op: str
    algorithm: str
    bytes: int
    ranks: int
    start_ns: int
    end_ns: int | None
    algbw_gbps: float | None
    busbw_gbps: float | None


class StepMeasure(Data):
    """One step of a job."""

    job: str
    step: int
    start_ns: int
    end_ns: int | None
    compute_ns: float
    comm_ns: int

    @property
    def gpu_utilisation(self) -> float | None:
        """Compute time by step time."""
        if self.end_ns is None or self.end_ns == self.start_ns:
            return None
        return self.compute_ns / (self.end_ns - self.start_ns)


class JobMeasure(Data):
    """One job."""

    job: str
    start_ns: int
    jct_ns: int | None
    gpu_utilisation: float | None
    steps: tuple[StepMeasure, ...]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that so many percent of them do not exceed."""
    if not values:
        raise ValueError("no values have no percentile")
    if not 0 <= percent <= 100:
        raise ValueError(f"{percent} is not a percentage")
    ordered = sorted(values)
    return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1]


def algbw_gbps(size: int, duration_ns: int) -> float:
    """Bytes by time."""
    return size * 8 / duration_ns


def busbw_gbps(op: str, ranks: int, size: int, duration_ns: int) -> float:
    """The rate every port would need if the algorithm wasted none of it."""
    return algbw_gbps(size, duration_ns) * _BUS_FACTORS[op](ranks)


class Measures(Data):
    """A schedule and what an engine reports of it."""

    schedule: Schedule
    timeline: Timeline
    alpha_ns: float
    rate_gbps: float

    def __post_init__(self) -> None:
        if len(self.timeline.end_ns) != len(self.schedule):
            raise ScheduleError(
                f"a timeline of {len(self.timeline.end_ns)} transfers for a schedule of"
                f" {len(self.schedule)}"
            )

    @cached_property
    def failed(self) -> int:
        """How many transfers never ended."""
        schedule, ends = self.schedule, self.timeline.end_ns
        return sum(
            end == NEVER and src != dst
            for src, dst, end in zip(schedule.src, schedule.dst, ends, strict=True)
        )

    @property
    def span_ns(self) -> int | None:
        """From the first start of all to the last end."""
        start, end = self._span(range(len(self.schedule)))
        return None if end is None else end - start

    @cached_property
    def failures(self) -> list[str]:
        """What did not finish, by name."""
        said = []
        for number, activity in enumerate(self.schedule.activities):
            lost = [
                transfer
                for transfer in self._by_activity[number]
                if self.timeline.end_ns[transfer] == NEVER
                and self.schedule.src[transfer] != self.schedule.dst[transfer]
            ]
            if lost:
                src, dst = self.schedule.src[lost[0]], self.schedule.dst[lost[0]]
                job = f"job {activity.job}, step {activity.step}: " if activity.job else ""
                said.append(
                    f"{job}{activity.name}: {len(lost)} of {len(self._by_activity[number])}"
                    f" transfers never ended, the first from {src} to {dst}"
                )
        return said

    def transfer_slowdown(self, number: int) -> float | None:
        """How much longer a transfer took than alone."""
        start, end = self.timeline.start_ns[number], self.timeline.end_ns[number]
        if NEVER in (start, end):
            return None
        alone_ns = self.alpha_ns + self.schedule.size[number] * 8 / self.rate_gbps
        return (end - start) / alone_ns

    @cached_property
    def flows(self) -> list[FlowMeasure]:
        """Every flow, in the order of their first transfers."""
        schedule = self.schedule
        parts: dict[tuple[int, int, int, int], list[int]] = {}
        keys = zip(schedule.activity, schedule.src, schedule.dst, schedule.channel, strict=True)
        for number, key in enumerate(keys):
            if key[1] != key[2]:
                parts.setdefault(key, []).append(number)
        return [self._flow(key, numbers) for key, numbers in parts.items()]

    @cached_property
    def collectives(self) -> list[CollectiveMeasure]:
        """Every collective, in the order they were written."""
        return [
            self._collective(activity, self._by_activity[number])
            for number, activity in enumerate(self.schedule.activities)
            if activity.collective is not None
        ]

    @cached_property
    def jobs(self) -> list[JobMeasure]:
        """Every job; what belongs to none is not here."""
        steps: dict[str, dict[int, list[int]]] = {}
        for number, activity in enumerate(self.schedule.activities):
            if activity.job:
                steps.setdefault(activity.job, {}).setdefault(activity.step, []).append(number)
        return [
            self._job(job, [self._step(job, step, parts[step]) for step in sorted(parts)])
            for job, parts in steps.items()
        ]

    @cached_property
    def _by_activity(self) -> list[list[int]]:
        parts: list[list[int]] = [[] for _ in self.schedule.activities]
        for number, activity in enumerate(self.schedule.activity):
            parts[activity].append(number)
        return parts

    def _span(self, numbers: Iterable[int]) -> tuple[int, int | None]:
        """First start and last end; no end if something never ended."""
        first, last = None, 0
        for number in numbers:
            start, end = self.timeline.start_ns[number], self.timeline.end_ns[number]
            if start != NEVER:
                first = start if first is None else min(first, start)
            last = NEVER if NEVER in (last, end) else max(last, end)
        return first or 0, None if last == NEVER else last

    def _flow(self, key: tuple[int, int, int, int], numbers: list[int]) -> FlowMeasure:
        activity, src, dst, channel = key
        start, end = self._span(numbers)
        size = sum(self.schedule.size[number] for number in numbers)
        slowdowns = [self.transfer_slowdown(number) for number in numbers]
        whole = [slowdown for slowdown in slowdowns if slowdown is not None]
        return FlowMeasure(
            self.schedule.activities[activity],
            src,
            dst,
            channel,
            size,
            len(numbers),
            start,
            end,
            None if end is None else max(whole),
        )

    def _collective(self, activity: Activity, numbers: list[int]) -> CollectiveMeasure:
        what = activity.collective
        assert what is not None
        start, end = self._span(numbers)
        algbw = busbw = None
        if end is not None and end > start and what.op in _BUS_FACTORS:
            algbw = algbw_gbps(what.bytes, end - start)
            busbw = busbw_gbps(what.op, what.size, what.bytes, end - start)
        return CollectiveMeasure(
            activity, what.op, what.algorithm, what.bytes, what.size, start, end, algbw, busbw
        )

    def _step(self, job: str, step: int, activities: list[int]) -> StepMeasure:
        numbers = [number for activity in activities for number in self._by_activity[activity]]
        start, end = self._span(numbers)
        compute, ranks = 0, set()
        moves: list[tuple[int, int]] = []
        for number in numbers:
            began, ended = self.timeline.start_ns[number], self.timeline.end_ns[number]
            src = self.schedule.src[number]
            ranks.add(src)
            if NEVER in (began, ended):
                continue
            kind = self.schedule.activities[self.schedule.activity[number]].kind
            if kind == "compute":
                compute += ended - began
            else:
                moves.append((began, ended))
        return StepMeasure(job, step, start, end, compute / max(1, len(ranks)), _covered(moves))

    def _job(self, job: str, steps: list[StepMeasure]) -> JobMeasure:
        start = min(step.start_ns for step in steps)
        ends = [step.end_ns for step in steps]
        jct = None if None in ends else max(end for end in ends if end is not None) - start
        utilisation = summed(step.compute_ns for step in steps) / jct if jct else None
        return JobMeasure(job, start, jct, utilisation, tuple(steps))


def _covered(spans: list[tuple[int, int]]) -> int:
    """The time in which at least one span was open."""
    total, reached = 0, -1
    for begin, end in sorted(spans):
        total += max(0, end - max(begin, reached))
        reached = max(reached, end)
    return total

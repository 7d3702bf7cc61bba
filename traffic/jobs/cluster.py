"""A cluster: jobs arrive, wait for hosts, run, and may be put off for more urgent ones.

Endpoints have to know before a run what waits for what. So the scheduler decides on estimates, as
schedulers do: a job lasts as long as it would alone on a fabric that never blocks. What it decides
is who runs where, after whom on each host, and after which step a job is put off. When that happens
is the run's: a job begins when it has arrived and all its hosts are free in fact, which they tell
each other by a barrier, and goes on for as long as the fabric makes it.

    host   job A steps 0..9 ──► barrier of B ──► B steps 0..4 ──► barrier of A ──► ...
    timer  B arrives ───────────────┘
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import cached_property
from random import Random
from typing import Annotated, Literal

from pydantic import Field, model_validator

from params.data import Data
from params.units import DurationNs
from traffic.collectives import (
    Activity,
    AlphaBeta,
    PlacementError,
    Schedule,
    ScheduleBuilder,
    Site,
    Spec,
    SpecError,
    Timeline,
    add_collective,
    channel_room,
    collective,
)
from traffic.jobs.placement import Placer, Policy
from traffic.jobs.simple import SimpleJob
from traffic.jobs.training import TrainingJob

_ALPHA_NS = 2000  # of an estimate: a message's way
_MAX_JOBS = 10_000

AnyJob = Annotated[SimpleJob | TrainingJob, Field(discriminator="kind")]


class Arrivals(Spec):
    """A job, or several alike, and when they come."""

    job: AnyJob
    """What comes: a section of kind job or training, with a number of ranks."""
    at_ns: tuple[Annotated[DurationNs, Field(ge=0, le=10**15)], ...] = ()
    """When one comes; a time for each."""
    random: int = Field(default=0, ge=0, le=_MAX_JOBS)
    """How many more come, at times drawn from the scenario's seed,"""
    until_ns: DurationNs = Field(default=10**7, ge=1, le=10**15)
    """all of them before this."""
    urgency: int = Field(default=0, ge=0, le=1000)
    """Those of more go before those of less."""

    @model_validator(mode="after")
    def _check(self) -> Arrivals:
        if not self.at_ns and not self.random:
            raise ValueError("this job never comes: give at_ns, or random")
        if isinstance(self.job, SimpleJob) and self.job.ranks is None:
            raise ValueError("say how many ranks it has: job.ranks")
        return self


class ClusterSpec(Spec):
    """Jobs that share a cluster: they arrive, wait, are placed, run."""

    kind: Literal["cluster"] = "cluster"
    jobs: Annotated[tuple[Arrivals, ...], Field(min_length=1)]
    """What comes, and when."""
    placement: Policy | None = None
    """Where all of them are placed, whatever each of them says."""
    queue: Literal["fifo", "shortest", "backfill"] = "fifo"
    """Who of those that wait is next: the first, the one that takes least, or the first, and those
    that fit beside without delaying it."""
    preemption: bool = False
    """Whether a job that waits puts off less urgent ones, at their next step's end."""

    @model_validator(mode="after")
    def _check(self) -> ClusterSpec:
        names = [each.job.name for each in self.jobs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two entries are named '{twice}': give each job a name of its own")
        if sum(len(each.at_ns) + each.random for each in self.jobs) > _MAX_JOBS:
            raise ValueError(f"more than {_MAX_JOBS:,} jobs")
        return self


class Piece(Data):
    """Some steps of a job, on hosts, without a break."""

    hosts: tuple[int, ...]
    first_step: int
    steps: int
    began_ns: float  # by the scheduler's estimates


class ClusterJob(Data, frozen=False):
    """One job of a cluster, and what the scheduler made of it."""

    name: str
    number: int  # in the order of arrival
    spec: SimpleJob | TrainingJob
    ranks: int
    urgency: int
    arrived_ns: int
    alone_ns: int  # that it takes on a fabric that never blocks
    pieces: list[Piece] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)  # by piece: its transfers

    @property
    def step_ns(self) -> float:
        """What a step takes alone."""
        return self.alone_ns / self.spec.steps

    def steps_left(self) -> int:
        """How many no piece has yet."""
        return self.spec.steps - sum(piece.steps for piece in self.pieces)

    def times(self, timeline: Timeline) -> list[tuple[int, int] | None]:
        """By piece: when it began and ended; None if it did not end."""
        return [_span(timeline, *span) for span in self.spans]


def _span(timeline: Timeline, first: int, last: int) -> tuple[int, int] | None:
    begins, ends = timeline.start_ns[first:last], timeline.end_ns[first:last]
    if min(begins) < 0 or min(ends) < 0:
        return None
    return min(begins), max(ends)


class Cluster(Data):
    """What a cluster's scheduler decided."""

    spec: ClusterSpec
    site: Site
    jobs: tuple[ClusterJob, ...]  # in the order they arrive

    @cached_property
    def schedule(self) -> Schedule:
        """All of it, as endpoints carry it out."""
        return _Writer(self).schedule()


def plan(spec: ClusterSpec, site: Site) -> Cluster:
    """Decide who runs where and after whom."""
    jobs = tuple(sorted(_arriving(spec, site), key=lambda job: job.arrived_ns))
    names: set[str] = set()
    for number, job in enumerate(jobs):
        if job.name in names:
            raise SpecError(f"two jobs are named '{job.name}'", "give each a name of its own")
        names.add(job.name)
        job.number = number
    _Scheduler(spec, site, jobs).run()
    return Cluster(spec, site, jobs)


def _arriving(spec: ClusterSpec, site: Site) -> Iterator[ClusterJob]:
    for entry in spec.jobs:
        ranks = entry.job.size(site)
        if ranks > site.hosts:
            raise PlacementError(
                f"job '{entry.job.name}' has {ranks} ranks, and the cluster {site.hosts} hosts",
                "use fewer ranks or a larger fabric",
            )
        fabric = AlphaBeta(_ALPHA_NS, site.rate_gbps)
        alone_ns = max(1, fabric.run(entry.job.schedule(ranks)).finish_ns)
        # Of its own, so that the times of one entry do not depend on what others there are.
        chance = Random(f"{site.seed} {entry.job.name}")  # noqa: S311  (no secret)
        drawn = sorted(chance.randrange(entry.until_ns) for _ in range(entry.random))
        times = [*entry.at_ns, *drawn]
        for number, at_ns in enumerate(times, 1):
            name = f"{entry.job.name}-{number}" if len(times) > 1 else entry.job.name
            yield ClusterJob(name, 0, entry.job, ranks, entry.urgency, at_ns, alone_ns)


class _Running(Data, frozen=False):
    job: ClusterJob
    hosts: list[int]
    began_ns: float
    ends_ns: float
    steps: int
    is_cut: bool = False  # it is put off after these steps


class _Scheduler:
    """Goes through the cluster's day on estimates."""

    def __init__(self, spec: ClusterSpec, site: Site, jobs: Sequence[ClusterJob]) -> None:
        self._spec = spec
        self._placer = Placer(site)
        self._arrivals = list(jobs)
        self._waiting: list[ClusterJob] = []
        self._running: list[_Running] = []
        self._now = 0.0

    def run(self) -> None:
        """Until nobody waits."""
        arrivals = [(job.arrived_ns, at) for at, job in enumerate(self._arrivals)]
        heapq.heapify(arrivals)
        while arrivals or self._running or self._waiting:
            times = [each.ends_ns for each in self._running]
            times += [float(arrivals[0][0])] if arrivals else []
            self._now = min(times)
            while arrivals and arrivals[0][0] <= self._now:
                self._waiting.append(self._arrivals[heapq.heappop(arrivals)[1]])
            for each in [each for each in self._running if each.ends_ns <= self._now]:
                self._end(each)
            self._start_some()

    def _end(self, over: _Running) -> None:
        self._running.remove(over)
        self._placer.release(over.hosts)
        done = sum(piece.steps for piece in over.job.pieces)
        over.job.pieces.append(Piece(tuple(over.hosts), done, over.steps, over.began_ns))
        if over.job.steps_left():
            self._waiting.append(over.job)

    def _start_some(self) -> None:
        """Start who can, in their order; the first who cannot may hold up the others."""
        is_held_up = False
        for job in sorted(self._waiting, key=self._turn):
            if is_held_up and not self._fits_beside(job):
                continue
            if not self._start(job) and not is_held_up:
                if self._spec.preemption:
                    self._put_off_others(job)
                if self._spec.queue != "backfill":
                    return
                is_held_up = True
                self._until, self._spare = self._reservation(job)

    def _turn(self, job: ClusterJob) -> tuple[float, float, int]:
        left_ns = job.step_ns * job.steps_left()
        first = left_ns if self._spec.queue == "shortest" else 0
        return -job.urgency, first, job.number

    def _start(self, job: ClusterJob) -> bool:
        if job.ranks > self._placer.free:
            return False
        spec = job.spec
        node = spec.node.gpus if isinstance(spec, TrainingJob) and spec.node.gpus > 1 else None
        try:
            hosts = self._placer.place(job.ranks, self._spec.placement or spec.placement, node=node)
        except PlacementError:
            if not self._running:
                raise
            return False  # its hosts are not free yet
        steps = job.steps_left()
        ends_ns = self._now + job.step_ns * steps
        self._running.append(_Running(job, hosts, self._now, ends_ns, steps))
        self._waiting.remove(job)
        return True

    def _put_off_others(self, job: ClusterJob) -> None:
        """Have as few of the less urgent end early as make room, the least urgent and latest."""
        coming = self._placer.free + sum(len(each.hosts) for each in self._running if each.is_cut)
        victims = []
        for each in sorted(self._running, key=lambda one: (one.job.urgency, -one.began_ns)):
            if coming >= job.ranks:
                break
            steps = self._steps_by_now(each)
            if each.job.urgency < job.urgency and not each.is_cut and steps < each.steps:
                victims.append((each, steps))
                coming += len(each.hosts)
        if coming < job.ranks:
            return
        for each, steps in victims:
            each.is_cut, each.steps = True, steps
            each.ends_ns = each.began_ns + steps * each.job.step_ns

    def _steps_by_now(self, running: _Running) -> int:
        """How many it will have done when the one it is at ends."""
        return int((self._now - running.began_ns) / running.job.step_ns) + 1

    def _reservation(self, job: ClusterJob) -> tuple[float, int]:
        """When there will be room for who is first, and how many hosts will be left then."""
        free = self._placer.free
        for each in sorted(self._running, key=lambda one: one.ends_ns):
            free += len(each.hosts)
            if free >= job.ranks:
                return each.ends_ns, free - job.ranks
        return self._now, 0

    def _fits_beside(self, job: ClusterJob) -> bool:
        """Whether it does not delay who is first: it is over by then, or leaves it room."""
        if job.ranks > self._placer.free:
            return False
        if self._now + job.step_ns * job.steps_left() <= self._until:
            return True
        if job.ranks > self._spare:
            return False
        self._spare -= job.ranks
        return True


class _Writer:
    """Writes the pieces one after the other, each after those before it on its hosts."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._world = cluster.site.hosts
        self._builder = ScheduleBuilder(self._world)
        self._wait = self._builder.activity(Activity("wait", "waits"))
        self._busy: dict[int, list[int]] = {}  # by host: what its last piece ends with
        self._channel = 0

    def schedule(self) -> Schedule:
        """All pieces, in an order in which hosts can be had."""
        pieces = [(piece, job) for job in self._cluster.jobs for piece in job.pieces]
        for piece, job in sorted(pieces, key=lambda each: (each[0].began_ns, each[1].number)):
            self._piece(job, piece)
        return self._builder.build()

    def _piece(self, job: ClusterJob, piece: Piece) -> None:
        builder, hosts = self._builder, piece.hosts
        gates = []
        for host in hosts:
            timer = builder.work(host, job.arrived_ns, activity=self._wait)
            gates.append([timer, *self._busy.get(host, [])])
        begin = [[gate] for gate in self._met(hosts, gates)]
        if len(hosts) > 1:
            barrier = collective("barrier", hosts, world=self._world)
            begin = add_collective(
                *(builder, barrier),
                gates=begin,
                first_channel=self._channel,
                priority=job.spec.priority,
                ecn_capable=job.spec.ecn_capable,
            )
            self._channel += channel_room(1)
        first = len(builder)
        spec = job.spec.model_copy(update={"steps": piece.steps, "name": job.name})
        steps = job.spec.classed(spec.schedule(job.ranks).place(hosts, self._world))
        self._append(steps, dict(zip(hosts, begin, strict=True)), piece.first_step)
        job.spans.append((first, len(builder)))
        ends = builder.open_ends(first)
        waits = [ends.get(host, []) for host in hosts]
        self._busy.update(zip(hosts, ([end] for end in self._met(hosts, waits)), strict=True))

    def _met(self, hosts: Sequence[int], waits: Sequence[Sequence[int]]) -> list[int]:
        """By host: one completion for several."""
        return [
            self._builder.work(host, activity=self._wait, after=each)
            for host, each in zip(hosts, waits, strict=True)
        ]

    def _append(self, schedule: Schedule, begin: dict[int, list[int]], first_step: int) -> None:
        """A schedule of its own, whose first transfers wait for what it begins with."""
        builder, offset = self._builder, len(self._builder)
        activities = [
            builder.activity(replace(each, step=each.step + first_step))
            for each in schedule.activities
        ]
        for number in range(len(schedule)):
            src = schedule.src[number]
            waits = [wait + offset for wait in schedule.waits(number)]
            after = waits or begin[src]
            activity = activities[schedule.activity[number]]
            if src == schedule.dst[number]:
                builder.work(src, schedule.delay_ns[number], activity=activity, after=after)
                continue
            builder.transfer(
                src, schedule.dst[number], schedule.size[number], activity=activity,
                channel=schedule.channel[number] + self._channel,
                delay_ns=schedule.delay_ns[number], after=after,
            )  # fmt: skip
        self._channel += max(schedule.channel, default=-1) + 1

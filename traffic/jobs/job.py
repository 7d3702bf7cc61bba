"""What all jobs have in common: a name, stragglers, steps, and how a step is written.

A rank's part of a job is a thread of work and collectives. `Threads` keeps, for every rank, what
its next piece must wait for, and every piece is written against that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from traffic.collectives import (
    Activity,
    ClassedSpec,
    Collective,
    RankError,
    ScheduleBuilder,
    Spec,
    add_collective,
    channel_room,
)
from traffic.jobs.placement import Policy

Steps = Annotated[int, Field(ge=1, le=100_000)]


class Straggler(Spec):
    """A rank that computes slower than the others."""

    rank: int = Field(ge=0)
    """Which."""
    slowdown: float = Field(ge=1, le=1000)
    """How many times longer it computes."""


class SlowLink(Spec):
    """A rank whose port has only a share of its rate."""

    rank: int = Field(ge=0)
    """Whose."""
    rate_share: float = Field(gt=0, le=1)
    """The share of its rate that is left."""


class Job(ClassedSpec):
    """The keys every job has."""

    name: str = Field(default="job", min_length=1)
    """What results call it."""
    steps: Steps = 1
    """How many times it computes and communicates."""
    placement: Policy = "packed"
    """Which host a rank runs on: packed, spread, random, rail-aligned or topology-aware."""
    stragglers: tuple[Straggler, ...] = ()
    """Ranks that compute slower than the others."""
    slow_links: tuple[SlowLink, ...] = ()
    """Ranks whose port has only a share of its rate."""

    def check_ranks(self, ranks: int) -> None:
        """Refuse stragglers and slow links the job does not have."""
        slow = [*(each.rank for each in self.stragglers), *(each.rank for each in self.slow_links)]
        for rank in slow:
            if rank >= ranks:
                raise RankError(
                    f"{self.name}: there is no rank {rank} to slow down",
                    f"its ranks are 0 to {ranks - 1}",
                )

    def port_shares(self, hosts: Sequence[int]) -> dict[int, float]:
        """By host: the share of its rate that a slow link leaves it."""
        return {hosts[link.rank]: link.rate_share for link in self.slow_links}

    def slowdowns(self) -> dict[int, float]:
        """By rank: how much slower it computes."""
        return {straggler.rank: straggler.slowdown for straggler in self.stragglers}


class Threads:
    """Where each rank of a job has got to."""

    def __init__(self, builder: ScheduleBuilder, job: str, slowdowns: Mapping[int, float]) -> None:
        self.builder = builder
        self.ends: list[list[int]] = [[] for _ in range(builder.ranks)]
        self._job = job
        self._slowdowns = slowdowns
        self.step = 0
        self._compute = 0
        self._backward = 0
        self._inside = 0
        self._channels = 0

    def reserve_channels(self, count: int) -> int:
        """Channel numbers for the collectives of a communicator; the first of them."""
        first = self._channels
        self._channels += channel_room(count)
        return first

    def begin_step(self, step: int, *, has_passes: bool = False) -> None:
        """Label what follows; computing by passes if it has these."""
        self.step = step
        name = "forward" if has_passes else "compute"
        self._compute = self.builder.activity(Activity("compute", name, job=self._job, step=step))
        self._backward = self._compute
        if has_passes:
            self._backward = self.builder.activity(
                Activity("compute", "backward", job=self._job, step=step)
            )
        self._inside = self.builder.activity(
            Activity("node", "inside nodes", job=self._job, step=step)
        )

    def compute(
        self, rank: int, duration_ns: float, *, also: Sequence[int] = (), backward: bool = False
    ) -> int:
        """A rank computes, after its last piece and what else is named."""
        activity = self._backward if backward else self._compute
        return self._work(rank, duration_ns * self._slowdowns.get(rank, 1.0), activity, also)

    def compute_beside(self, rank: int, duration_ns: float, gates: Sequence[int]) -> int:
        """A rank computes beside whatever else it does."""
        lasts = round(duration_ns * self._slowdowns.get(rank, 1.0))
        return self.builder.work(rank, lasts, activity=self._compute, after=gates)

    def inside_node(self, rank: int, duration_ns: float) -> int:
        """A rank exchanges data within its node, off the fabric."""
        return self._work(rank, duration_ns, self._inside, ())

    def inside_node_beside(self, rank: int, duration_ns: float, gates: Sequence[int]) -> int:
        """The same, overlapping what the rank does next."""
        return self.builder.work(rank, round(duration_ns), activity=self._inside, after=gates)

    def meet(self, rank: int, also: Sequence[int] = ()) -> int:
        """Bundle everything a rank waits for into one completion."""
        return self._work(rank, 0, self._compute, also)

    def collective(self, what: Collective, first_channel: int) -> None:
        """The members take part as their next piece."""
        gates = [self.ends[rank] for rank in what.ranks]
        for rank, end in zip(what.ranks, self.beside(what, first_channel, gates), strict=True):
            self.ends[rank] = end

    def beside(
        self, what: Collective, first_channel: int, gates: Sequence[Sequence[int]]
    ) -> list[list[int]]:
        """A collective that overlaps what its members do next; by member, what ends it."""
        return add_collective(
            self.builder,
            what,
            gates=gates,
            first_channel=first_channel,
            job=self._job,
            step=self.step,
        )

    def _work(self, rank: int, duration_ns: float, activity: int, also: Sequence[int]) -> int:
        number = self.builder.work(
            rank, round(duration_ns), activity=activity, after=[*self.ends[rank], *also]
        )
        self.ends[rank] = [number]
        return number

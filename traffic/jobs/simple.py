"""The plain job: every step computes, then runs one collective over all ranks.

With ``buckets`` the data is exchanged in parts, one collective after the other. With ``overlap``
part k starts as soon as that part of the compute is done, as gradients do in a backward pass, so
only what is left when the compute ends is exposed. A barrier may close the step.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from params.units import DurationNs
from traffic.collectives import CollectiveOptions, Schedule, ScheduleBuilder, Site, collective
from traffic.collectives.collective import Even
from traffic.jobs.job import Job, Threads


class SimpleJob(Job):
    """Steps of compute, then a collective."""

    kind: Literal["job"] = "job"
    ranks: Annotated[int, Field(ge=2)] | None = None
    """How many; without it one on every host."""
    compute_ns: Annotated[DurationNs, Field(ge=0, le=10**15)]
    """How long a step computes."""
    collective: CollectiveOptions
    """What it exchanges then."""
    buckets: int = Field(default=1, ge=1, le=10_000)
    """In how many parts, one after the other."""
    overlap: bool = False
    """Whether a part is sent while the rest is still computed."""
    barrier: bool = True
    """Whether ranks wait for each other at a step's end."""

    def size(self, site: Site) -> int:
        """How many ranks it has on a site of its own."""
        return site.hosts if self.ranks is None else self.ranks

    def schedule(self, ranks: int) -> Schedule:
        """The job's schedule, by rank."""
        self.check_ranks(ranks)
        builder = ScheduleBuilder(ranks)
        threads = Threads(builder, self.name, self.slowdowns())
        whole = self.collective.among(range(ranks), ranks)
        parts = Even(whole.bytes, self.buckets) if whole.bytes else None
        buckets = [
            self.collective.among(range(ranks), ranks, parts.bytes(part, 1) if parts else 0)
            for part in range(self.buckets)
        ]
        first_channel = threads.reserve_channels(whole.channels)
        barrier_channel = threads.reserve_channels(1)
        barrier = collective("barrier", ranks)
        for step in range(self.steps):
            threads.begin_step(step)
            marks = [
                [threads.compute(rank, self.compute_ns / self.buckets) for rank in range(ranks)]
                for _ in buckets
            ]
            ready = marks if self.overlap else [marks[-1]] * self.buckets
            ends: list[list[int]] = [[] for _ in range(ranks)]
            for bucket, computed in zip(buckets, ready, strict=True):
                gates = [[mark, *end] for mark, end in zip(computed, ends, strict=True)]
                ends = threads.beside(bucket, first_channel, gates)
            for rank, end in enumerate(ends):
                threads.meet(rank, end)
            if self.barrier:
                threads.collective(barrier, barrier_channel)
        return builder.build()

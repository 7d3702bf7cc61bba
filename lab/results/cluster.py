"""A cluster's day: what became of each job, and how well hosts were used."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from lab.results.part import Part
from lab.results.percentiles import Percentiles, percentiles
from lab.scenario.experiment import Experiment
from params.quantity import summed
from traffic.collectives import NEVER, Timeline
from traffic.jobs import Cluster, ClusterJob

_Spell = tuple[Sequence[int], int, int]  # hosts, and from when to when one job had them


class JobOfCluster(Part):
    """One job of a cluster; without an end if it did not come to it."""

    name: str
    ranks: int
    arrived_ns: int
    started_ns: int | None = None
    ended_ns: int | None = None
    queued_ns: int | None = None  # from its arrival until its hosts were its own
    alone_ns: int  # that it would take on a fabric that never blocks
    slowdown: float | None = None  # the time it had hosts, by that
    racks: int  # that it was spread over, at most
    breaks: int = 0  # how often it was put off
    pieces: tuple[tuple[tuple[str, ...], int, int], ...]  # hosts, and when it had them


class ClusterResult(Part):
    """A cluster's day."""

    completed: int
    failed: int
    jct_ns: Percentiles | None = None  # from arrival to end
    queued_ns: Percentiles | None = None
    slowdown: Percentiles | None = None
    allocated: float  # share of all hosts' time that jobs had them
    utilisation: float  # share of all hosts' time that they computed
    fragmentation: float  # of what was free, the share in racks that were taken in part, over time
    racks: float  # over how many more racks jobs were spread than they needed; 1 is none
    jobs: tuple[JobOfCluster, ...]

    @property
    def slowest(self) -> list[JobOfCluster]:
        """Jobs that came to their end, whom the fabric slowed most first."""
        done = (job for job in self.jobs if job.slowdown)
        return sorted(done, key=lambda job: -(job.slowdown or 0))

    @property
    def longest_queued(self) -> JobOfCluster:
        """Who waited longest for hosts."""
        return max(self.jobs, key=lambda job: job.queued_ns or 0)

    def freed_for(self, job: JobOfCluster) -> str:
        """Who had hosts that a job got, last of all before it began."""
        own = {host for hosts, _, _ in job.pieces[:1] for host in hosts}
        gave = [
            (end, other.name)
            for other in self.jobs
            for hosts, _, end in other.pieces
            if other is not job and own & {*hosts} and end <= (job.started_ns or 0)
        ]
        return max(gave)[1] if gave else ""


def cluster_result(experiment: Experiment, timeline: Timeline) -> ClusterResult | None:
    """What became of a cluster's jobs; None where the traffic is none."""
    cluster = experiment.workload.cluster
    if cluster is None:
        return None
    names = [host.name for host in experiment.fabric.hosts]
    racks = _racks(cluster)
    jobs = tuple(_job(job, timeline, names, racks) for job in cluster.jobs)
    over = [job for job in jobs if job.ended_ns is not None]
    spells = [spell for job in cluster.jobs for spell in _spells(job, timeline)]
    begin = min(job.arrived_ns for job in jobs)
    hosts_ns = len(names) * max(1, max((end for _, _, end in spells), default=begin) - begin)
    least = max(len(rack) for rack in _rack_hosts(cluster))
    spread = [job.racks / math.ceil(job.ranks / least) for job in jobs]
    return ClusterResult(
        completed=len(over),
        failed=len(jobs) - len(over),
        jct_ns=percentiles([job.ended_ns - job.arrived_ns for job in over if job.ended_ns]),
        queued_ns=percentiles([job.queued_ns for job in over if job.queued_ns is not None]),
        slowdown=percentiles([job.slowdown for job in over if job.slowdown is not None]),
        allocated=sum(len(hosts) * (end - start) for hosts, start, end in spells) / hosts_ns,
        utilisation=_computed_ns(experiment, timeline) / hosts_ns,
        fragmentation=fragmentation(_rack_hosts(cluster), spells),
        racks=summed(spread) / len(spread),
        jobs=jobs,
    )


def _rack_hosts(cluster: Cluster) -> Sequence[Sequence[int]]:
    return cluster.site.racks or (tuple(range(cluster.site.hosts)),)


def _racks(cluster: Cluster) -> dict[int, int]:
    """By host."""
    return {host: at for at, rack in enumerate(_rack_hosts(cluster)) for host in rack}


def _spells(job: ClusterJob, timeline: Timeline) -> Iterator[_Spell]:
    for piece, when in zip(job.pieces, job.times(timeline), strict=True):
        if when is not None:
            yield piece.hosts, *when


def _job(
    job: ClusterJob, timeline: Timeline, names: Sequence[str], racks: dict[int, int]
) -> JobOfCluster:
    spells = list(_spells(job, timeline))
    is_over = len(spells) == len(job.pieces)
    had_ns = sum(end - start for _, start, end in spells)
    started = spells[0][1] if spells else None
    return JobOfCluster(
        name=job.name,
        ranks=job.ranks,
        arrived_ns=job.arrived_ns,
        started_ns=started,
        ended_ns=spells[-1][2] if is_over else None,
        queued_ns=None if started is None else started - job.arrived_ns,
        alone_ns=job.alone_ns,
        slowdown=had_ns / job.alone_ns if is_over else None,
        racks=max(len({racks[host] for host in piece.hosts}) for piece in job.pieces),
        breaks=len(job.pieces) - 1,
        pieces=tuple(
            (tuple(names[host] for host in hosts), start, end) for hosts, start, end in spells
        ),
    )


def _computed_ns(experiment: Experiment, timeline: Timeline) -> int:
    schedule = experiment.schedule
    computing = {at for at, each in enumerate(schedule.activities) if each.kind == "compute"}
    return sum(
        timeline.end_ns[number] - timeline.start_ns[number]
        for number, activity in enumerate(schedule.activity)
        if activity in computing
        and NEVER not in (timeline.end_ns[number], timeline.start_ns[number])
    )


def fragmentation(racks: Sequence[Sequence[int]], spells: Sequence[_Spell]) -> float:
    """Of the time that hosts were free while jobs ran, the share in racks that jobs had in part."""
    moments = sorted({at for _, start, end in spells for at in (start, end)})
    free_ns = broken_ns = 0
    for begin, end in pairwise(moments):
        taken = {host for hosts, start, over in spells if start <= begin < over for host in hosts}
        for rack in racks:
            free = len(rack) - len(taken.intersection(rack))
            free_ns += free * (end - begin)
            broken_ns += free * (end - begin) if free < len(rack) else 0
    return broken_ns / free_ns if free_ns else 0.0

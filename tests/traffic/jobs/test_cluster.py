"""Clusters: who runs where and when, held against models of these tests' own."""

from itertools import combinations
from math import ceil
from random import Random
from typing import Any

import pytest

from traffic.collectives import AlphaBeta, Site, SpecError, TrafficError
from traffic.jobs import Cluster, Placer, make_workload, read_traffic

SITE = Site(16, 100, tuple(tuple(range(4 * at, 4 * at + 4)) for at in range(4)))
JOB = {"kind": "job", "compute_ns": "10us", "collective": {"op": "all-reduce", "bytes": "100KB"}}


def planned(*jobs: dict[str, Any], site: Site = SITE, **keys: Any) -> Cluster:
    spec = read_traffic({"kind": "cluster", "jobs": list(jobs), **keys})
    cluster = make_workload(spec, site).cluster
    assert cluster is not None
    return cluster


def entry(name: str, ranks: int, at_ns: int = 0, steps: int = 1, **keys: Any) -> dict[str, Any]:
    job = {**JOB, "name": name, "ranks": ranks, "steps": steps}
    return {"at_ns": [at_ns], "job": job, **keys}


def by_lot(seed: int, most: int = 12) -> list[dict[str, Any]]:
    draw = Random(seed)
    return [
        entry(
            f"j{at}",
            draw.choice((2, 3, 4, 6, 8, 16)),
            draw.randrange(200_000),
            draw.randint(1, 4),
            urgency=draw.randrange(3),
        )
        for at in range(draw.randint(1, most))
    ]


@pytest.mark.by_day(15)
@pytest.mark.parametrize("seed", range(40))
def test_each_host_has_one_job_at_a_time_and_all_steps_are_done(seed: int) -> None:
    draw = Random(seed)
    cluster = planned(
        *by_lot(seed),
        queue=draw.choice(("fifo", "shortest", "backfill")),
        preemption=draw.random() < 0.5,
        placement=draw.choice(("packed", "spread", "random", "topology-aware")),
    )
    timeline = AlphaBeta(alpha_ns=3000, rate_gbps=40).run(cluster.schedule)  # not as estimated
    spells = []
    for job in cluster.jobs:
        steps = [each for piece in job.pieces for each in range(piece.steps)]
        assert len(steps) == job.spec.steps
        assert [piece.first_step for piece in job.pieces] == [
            sum(piece.steps for piece in job.pieces[:at]) for at in range(len(job.pieces))
        ]
        before = job.arrived_ns
        for piece, when in zip(job.pieces, job.times(timeline), strict=True):
            assert when is not None and before <= when[0] < when[1]
            before = when[1]
            assert len(set(piece.hosts)) == job.ranks
            spells += [(host, *when) for host in piece.hosts]
    for one, other in combinations(spells, 2):
        assert one[0] != other[0] or one[2] <= other[1] or other[2] <= one[1]


@pytest.mark.by_day(12)
@pytest.mark.parametrize("seed", range(30))
def test_who_comes_first_is_served_first(seed: int) -> None:
    """Counting hosts alone: each begins as soon as there are enough, and not before its elders."""
    jobs = by_lot(seed)
    for each in jobs:
        del each["urgency"]
    cluster = planned(*jobs)
    held: list[tuple[float, float, int]] = []  # from, to, how many
    before = 0.0
    for job in cluster.jobs:
        earliest = max(before, float(job.arrived_ns))
        for at in sorted({earliest, *(end for _, end, _ in held if end > earliest)}):
            taken = sum(count for begin, end, count in held if begin <= at < end)
            if taken + job.ranks <= SITE.hosts:
                break
        assert [piece.began_ns for piece in job.pieces] == [pytest.approx(at)]
        held.append((at, at + job.alone_ns, job.ranks))
        before = at


def test_who_is_first_is_not_delayed_by_those_that_are_let_past() -> None:
    jobs = (
        entry("long", 12, steps=8),
        entry("large", 16, 1000),
        entry("small", 4, 2000),
        entry("slow", 4, 3000, steps=20),
    )
    began = {}
    for queue in ("fifo", "backfill"):
        cluster = planned(*jobs, queue=queue)
        began[queue] = {job.name: job.pieces[0].began_ns for job in cluster.jobs}
    assert began["backfill"]["large"] == began["fifo"]["large"]
    assert began["fifo"]["small"] > began["fifo"]["large"]
    assert began["backfill"]["small"] == 2000  # over before there is room for the large one
    assert began["backfill"]["slow"] >= began["backfill"]["large"]


def test_the_shortest_goes_first() -> None:
    jobs = entry("now", 16), entry("long", 16, 1, steps=5), entry("short", 16, 2)
    names = [
        job.name
        for job in sorted(
            planned(*jobs, queue="shortest").jobs, key=lambda job: job.pieces[0].began_ns
        )
    ]
    assert names == ["now", "short", "long"]


def test_an_urgent_job_waits_for_a_step_and_not_for_a_job() -> None:
    jobs = entry("patient", 16, steps=10), entry("urgent", 8, 50_000, urgency=5)
    waits = planned(*jobs).jobs[1].pieces[0].began_ns
    cluster = planned(*jobs, preemption=True)
    patient, urgent = cluster.jobs
    assert waits == pytest.approx(patient.alone_ns)
    assert 50_000 <= urgent.pieces[0].began_ns <= 50_000 + patient.step_ns
    done = ceil(50_000 / patient.step_ns)
    assert [piece.steps for piece in patient.pieces] == [done, 10 - done]
    assert patient.pieces[1].began_ns == pytest.approx(urgent.pieces[0].began_ns + urgent.alone_ns)
    steps = {each.step for each in cluster.schedule.activities if each.job == "patient"}
    assert steps == set(range(10))


@pytest.mark.parametrize("seed", range(60))
def test_topology_aware_takes_as_few_racks_as_can_be(seed: int) -> None:
    draw = Random(seed)
    sizes = [draw.randint(1, 6) for _ in range(draw.randint(1, 5))]
    firsts = [sum(sizes[:at]) for at in range(len(sizes))]
    racks = tuple(
        tuple(range(first, first + size)) for first, size in zip(firsts, sizes, strict=True)
    )
    placer = Placer(Site(sum(sizes), 100, racks))
    taken = placer.place(draw.randint(0, sum(sizes) - 1), "random") if sum(sizes) > 1 else []
    free = [[host for host in rack if host not in taken] for rack in racks]
    ranks = draw.randint(1, sum(map(len, free)))
    hosts = placer.place(ranks, "topology-aware")
    used = sum(bool(set(rack) & set(hosts)) for rack in racks)
    least = next(
        count
        for count in range(1, len(racks) + 1)
        if any(sum(map(len, some)) >= ranks for some in combinations(free, count))
    )
    assert used == least
    assert set(hosts) <= {host for rack in free for host in rack} and len(set(hosts)) == ranks


def test_released_hosts_are_given_again() -> None:
    placer = Placer(SITE)
    first = placer.place(6, "spread")
    placer.release(first)
    assert placer.place(16, "packed") == list(range(16))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"jobs": []}, "traffic.jobs"),
        ({"jobs": [{"job": {**JOB, "ranks": 2}}]}, "this job never comes"),
        ({"jobs": [{"at_ns": [0], "job": JOB}]}, "say how many ranks"),
        ({"jobs": [entry("a", 2), entry("a", 2)]}, "two entries are named 'a'"),
        ({"jobs": [entry("a", 2, 0) | {"at_ns": [0, 1]}, entry("a-1", 2)]}, "two jobs are named"),
        ({"jobs": [entry("a", 17)]}, "17 ranks, and the cluster 16 hosts"),
        ({"jobs": [entry("a", 2)], "placement": "packt"}, "traffic.placement"),
        ({"jobs": [{"random": 20_000, "job": JOB}]}, "traffic.jobs.0.random"),
    ],
)
def test_what_makes_no_sense_is_named(data: dict[str, Any], said: str) -> None:
    with pytest.raises((SpecError, TrafficError)) as caught:
        make_workload(read_traffic({"kind": "cluster", **data}), SITE)
    assert said in str(caught.value)


def test_times_of_one_entry_do_not_depend_on_others() -> None:
    drawn = {"random": 5, "until_ns": 10**6, "job": {**JOB, "name": "a", "ranks": 2}}
    alone = [job.arrived_ns for job in planned(drawn).jobs]
    beside = [job for job in planned(drawn, entry("b", 4)).jobs if job.name.startswith("a")]
    assert alone == [job.arrived_ns for job in beside] == sorted(alone)
    assert len(set(alone)) == 5 and max(alone) < 10**6

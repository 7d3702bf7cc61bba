"""Schedules put on hosts by `Deployment`: run on endpoints, and at scale."""

from __future__ import annotations

import time
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from tests.traffic.endpoint.star import GBPS, mac, run
from traffic.collectives import Schedule, collective, plan
from traffic.deployment import Adapter, Deployment, DeploymentError
from traffic.endpoint import CongestionControl, EndpointConfig, TransferKind

CONFIG = EndpointConfig(link_bps=100 * GBPS, payload="none")


def adapters(count: int) -> list[Adapter]:
    addresses = [str(IPv4Address("10.0.0.1") + rank) for rank in range(count)]
    return [Adapter(IPv4Address(text), mac(text), "02:01:00:00:00:01") for text in addresses]


def on_hosts(schedule: Schedule, **settings: CongestionControl) -> Deployment:
    return Deployment(schedule, adapters(schedule.ranks), CONFIG, **settings)


@pytest.mark.parametrize("cc", CongestionControl)
@pytest.mark.parametrize(
    ("op", "algorithm"),
    [("all-reduce", "ring"), ("all-reduce", "double-binary-tree"), ("all-to-all", "staggered")],
)
def test_a_collective_runs(
    strict_star: Path, op: str, algorithm: str, cc: CongestionControl
) -> None:
    schedule = plan(collective(op, 8, 8 * 100_000, algorithm))
    deployment = on_hosts(schedule, cc=cc)
    where = adapters(8)
    outcome = run(
        strict_star, {str(where[rank].address): deployment.plan(rank) for rank in range(8)}
    )
    reports = {rank: outcome.hosts[str(where[rank].address)] for rank in range(8)}
    assert not any(report.unfinished for report in reports.values())
    timeline = deployment.timeline(reports)
    assert all(
        0 <= start <= end for start, end in zip(timeline.start_ns, timeline.end_ns, strict=True)
    )
    assert timeline.finish_ns <= outcome.end_ns


def test_ends_of_a_connection_name_each_other() -> None:
    schedule = plan(collective("all-to-all", 6, 6 * 1000, "pairwise"))
    deployment = on_hosts(schedule)
    ends = {
        (rank, pair.number): pair for rank in range(6) for pair in deployment.plan(rank).queue_pairs
    }
    assert len(ends) == 6 * 5  # both ways over one connection
    for (_, number), pair in ends.items():
        (other,) = (p for (_, n), p in ends.items() if n == pair.flow.queue_pair)
        assert other.flow.queue_pair == number
        assert (other.flow.src, other.flow.dst) == (pair.flow.dst, pair.flow.src)
        assert other.flow.src_port == pair.flow.src_port
    assert len({pair.flow.src_port for pair in ends.values()}) == 6 * 5 // 2


def test_work_becomes_computing() -> None:
    schedule = plan(collective("barrier", 4, 0, "dissemination"))
    kinds = {t.kind for rank in range(4) for t in on_hosts(schedule).plan(rank).transfers}
    assert kinds <= set(TransferKind)


def test_too_few_hosts_are_refused() -> None:
    schedule = plan(collective("all-reduce", 8, 8000, "ring"))
    with pytest.raises(DeploymentError, match="8 ranks need as many hosts, and there are 3"):
        Deployment(schedule, adapters(3), CONFIG)


def test_plans_of_many_ranks_are_written_quickly() -> None:
    """The plan of one rank of an all-to-all among 256, as text; a thousand ranks take seconds."""
    schedule = plan(collective("all-to-all", 256, 256 * 65536, "staggered"))
    deployment = on_hosts(schedule)
    began = time.process_time()
    lines = list(deployment.plan(7).lines())
    assert time.process_time() - began < 0.5
    assert len(lines) >= 1 + 255 + 2 * 255

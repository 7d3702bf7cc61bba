"""Schedules on the endpoint core: 64 adapters around one switch that never blocks, virtual time.

Acknowledgements, headers, the switch's store-and-forward and fair queueing among queue pairs are
real here, so these are the alpha-beta bounds without the model that was made for them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.traffic.collectives.single import bound_ns, schedule_of
from tests.traffic.endpoint.star import GBPS, Outcome, compile_star, ends, run
from traffic.collectives import (
    ALGORITHMS,
    IN_NETWORK,
    Schedule,
    Timeline,
    collective,
    local_part,
)
from traffic.endpoint import EndpointConfig, EndpointPlan, QueuePair, Transfer, TransferKind
from traffic.measures import Measures

BY_HOSTS = [
    (op, algorithm)
    for op, algorithms in ALGORITHMS.items()
    for algorithm in algorithms
    if algorithm != IN_NETWORK
]
CONFIG = EndpointConfig(link_bps=100 * GBPS)
DELAY_NS = 1000
MTU = 4096
OVERHEAD = 58 + 24  # headers and what a frame takes on the wire beside its bytes
RATE_GBPS = 100 * MTU / (MTU + OVERHEAD)
KINDS = {
    "send": TransferKind.SEND, "receive": TransferKind.RECEIVE, "work": TransferKind.COMPUTE,
}  # fmt: skip


@pytest.fixture(scope="module")
def star() -> Path:
    return compile_star()


def address(rank: int) -> str:
    return f"10.0.0.{rank + 1}"


def plans(schedule: Schedule) -> dict[str, EndpointPlan]:
    """What each rank's adapter is told; a (src, dst, channel) has the queue pairs 2k and 2k + 1."""
    numbers = {key: 2 * at + 2 for at, key in enumerate(schedule.queue_pairs())}
    queue_pairs: list[list[QueuePair]] = [[] for _ in range(schedule.ranks)]
    for (src, dst, _), number in numbers.items():
        here, there = ends(address(src), address(dst), number)
        queue_pairs[src].append(here)
        queue_pairs[dst].append(there)

    def transfers(rank: int) -> tuple[Transfer, ...]:
        return tuple(
            Transfer(
                id=t.id,
                kind=KINDS[t.kind],
                queue_pair={
                    "send": lambda t=t: numbers[rank, t.peer, t.channel],
                    "receive": lambda t=t: numbers[t.peer, rank, t.channel] + 1,
                    "work": lambda: None,
                }[t.kind](),
                size=t.size,
                delay_ns=t.delay_ns,
                after=t.after,
            )
            for t in local_part(schedule, rank)
        )

    return {
        address(rank): EndpointPlan(
            config=CONFIG, queue_pairs=tuple(queue_pairs[rank]), transfers=transfers(rank)
        )
        for rank in range(schedule.ranks)
    }


def timeline(schedule: Schedule, outcome: Outcome) -> Timeline:
    starts: dict[int, int] = {}
    finished: dict[int, int] = {}
    for host in outcome.hosts.values():
        for number, report in host.transfers.items():
            if report.kind is not TransferKind.RECEIVE and report.start_ns is not None:
                starts[number] = report.start_ns
            if report.kind is not TransferKind.SEND and report.end_ns is not None:
                finished[number] = report.end_ns
    return Timeline.gather(len(schedule), starts, finished)


@pytest.mark.by_day(5)
@pytest.mark.parametrize(
    "n", [2, 3, 8, 16, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 7, 64))]
)
@pytest.mark.parametrize(("op", "algorithm"), BY_HOSTS)
def test_takes_its_alpha_beta_time(star: Path, op: str, algorithm: str, n: int) -> None:
    size = 0 if op == "barrier" else 4 * MTU * 64 * 7
    what = collective(op, n, size, algorithm)
    schedule = schedule_of(what)
    outcome = run(star, plans(schedule), delay=DELAY_NS, limit=1e12, rate=100 * GBPS)
    measures = Measures(schedule, timeline(schedule, outcome), 2 * DELAY_NS, RATE_GBPS)
    assert not measures.failures
    (measured,) = measures.collectives
    assert measured.end_ns is not None
    through_the_switch_ns = min(MTU, *schedule.size) * 8 / 100 + OVERHEAD * 8 / 100
    alpha_ns = 2 * DELAY_NS + through_the_switch_ns
    bound = bound_ns(what, alpha_ns=alpha_ns, rate_gbps=RATE_GBPS)
    assert measured.end_ns <= 1.1 * bound

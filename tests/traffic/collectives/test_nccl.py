"""What NCCL adds: servers' order in rings and trees, and latencies, flags and shares of ports."""

from __future__ import annotations

from math import log2
from random import Random

import pytest

from tests.traffic.collectives.single import schedule_of
from traffic.collectives import AlphaBeta, Collective, collective, prove
from traffic.collectives.errors import AlgorithmError, SpecError
from traffic.collectives.nccl import NcclProtocol
from traffic.collectives.spec import CollectiveSpec

# As NCCL's tuner has them (us): by protocol the launch, a step over NVLink, and one over a network.
RING = {"simple": (8.4, 3.4, 14.0), "ll128": (14.0, 1.9, 4.0), "ll": (6.6, 0.6, 2.7)}
TREE = {"simple": (8.4, 4.0, 14.0), "ll128": (14.0, 1.25, 8.5), "ll": (6.8, 0.6, 5.0)}
POST = {"simple": 3.0, "ll128": 1.0, "ll": 1.0}
WIRE = {"simple": 1, "ll128": 128 / 120, "ll": 2}
NO_WIRE = AlphaBeta(0, 1e9)


def made(op: str, algorithm: str, ranks: int, size: int, **options: object) -> Collective:
    protocol = options.pop("protocol", None)
    kind = NcclProtocol(protocol) if isinstance(protocol, str) else None
    return collective(op, ranks, size, algorithm, protocol=kind, **options)


@pytest.mark.parametrize("seed", range(20))
def test_any_order_of_servers_computes_the_same(seed: int) -> None:
    rng = Random(seed)
    node, nodes = rng.randint(1, 8), rng.randint(1, 4)
    ranks = max(2, node * nodes)
    node = node if ranks % node == 0 else 1
    op, algorithm = rng.choice(
        [
            *((op, "ring") for op in ("all-reduce", "reduce-scatter", "all-gather")),
            ("all-reduce", "double-binary-tree"),
        ]
    )
    channels = rng.randint(1, 5)
    protocol = rng.choice(["simple", "ll128", "ll", None])
    what = made(
        op, algorithm, ranks, rng.randint(500, 10**6),
        node_size=node, channels=channels, protocol=protocol, pieces=rng.randint(1, 4),
    )  # fmt: skip
    prove(schedule_of(what))
    alone = schedule_of(made(op, algorithm, ranks, what.bytes, channels=channels, pieces=2))
    times = WIRE[protocol] if protocol else 1
    assert sum(schedule_of(what).sent_bytes()) == pytest.approx(
        times * sum(alone.sent_bytes()), rel=0.05
    )


@pytest.mark.parametrize("algorithm", ["ring", "double-binary-tree"])
@pytest.mark.parametrize("nodes", [2, 4])
def test_hops_between_servers_keep_to_their_rails_and_share_them_evenly(
    algorithm: str, nodes: int
) -> None:
    what = made("all-reduce", algorithm, 8 * nodes, 1 << 20, node_size=8, channels=16, pieces=1)
    across = [t for t in schedule_of(what) if t.src // 8 != t.dst // 8]
    assert {(t.dst - t.src) % 8 for t in across} == {0}
    by_rail = [sum(t.size for t in across if t.src % 8 == rail) for rail in range(8)]
    assert max(by_rail) - min(by_rail) <= 0.01 * max(by_rail)


@pytest.mark.parametrize("protocol", RING)
@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_small_ones_take_what_the_tuner_reckons(protocol: str, nodes: int) -> None:
    ranks = 8 * nodes
    options = {"node_size": 8, "protocol": protocol, "pieces": 1}
    launch, inside, across = RING[protocol]
    inside = max(inside, POST[protocol]) if nodes > 1 else inside
    ring = NO_WIRE.run(schedule_of(made("all-reduce", "ring", ranks, 4096, **options)))
    # A shard goes twice around but for one hop each time: over all but two, or one of them twice.
    hops, over = 2 * (ranks - 1), 2 * nodes if nodes > 1 else 0
    assert ring.finish_ns == pytest.approx(
        1000 * (launch + (hops - over) * inside + over * across), abs=1000 * across
    )
    launch, inside, across = TREE[protocol]
    tree = NO_WIRE.run(
        schedule_of(made("all-reduce", "double-binary-tree", ranks, 4096, **options))
    )
    assert tree.finish_ns == pytest.approx(
        1000 * (launch + 2 * (7 * inside + log2(nodes) * across)), abs=100
    )


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("op", ["all-reduce", "all-gather", "barrier"])
def test_switches_that_add_up_take_the_tuners_latency(op: str, nodes: int) -> None:
    size = 0 if op == "barrier" else 4096
    what = made(op, "in-network", 8 * nodes, size, node_size=8, protocol="simple")
    prove(schedule_of(what))
    assert NO_WIRE.run(schedule_of(what)).finish_ns == 25_000 + 20_900 * (nodes - 1)
    with pytest.raises(AlgorithmError, match="only simple"):
        made(op, "in-network", 8, size, protocol="ll")


def test_channels_share_a_port() -> None:
    what = made("all-reduce", "ring", 16, 1 << 20, node_size=8, channels=16, protocol="simple")
    assert (what.sharers(0, 1), what.sharers(0, 8)) == (16, 2)
    free = made("all-reduce", "ring", 16, 1 << 20, node_size=8, channels=16)
    assert free.sharers(0, 1) == 1


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(SpecError, match="protocol"):
        CollectiveSpec.read({"kind": "collective", "op": "all-reduce", "protocol": "ll256"})

"""Selective recovery under disorder: what is late is not sent again, what is lost soon is."""

import random
from pathlib import Path

import pytest

from lab.results.result import Result
from tests.lab.simulated import simulate_sparely

TOPOLOGIES = (
    "{kind: leaf-spine, leaves: 4, spines: 4, hosts_per_leaf: 4}",
    "{kind: leaf-spine, leaves: 2, spines: 8, hosts_per_leaf: 8}",
    "{kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 4}",
    "{kind: fat-tree, k: 4}",
)
TRAFFIC = (
    "kind: incast",
    "kind: permutation",
    "kind: elephants",
    "kind: collective, op: all-to-all",
)


def sprayed(seed: int, out: Path, sizes: tuple[str, ...]) -> Result:
    """A lossless fabric drawn at random, whose packets go different ways."""
    rng = random.Random(seed)
    changes = (
        f"topology={rng.choice(TOPOLOGIES)}",
        f"traffic={{{rng.choice(TRAFFIC)}, bytes: {rng.choice(sizes)}}}",
        f"link={{rate_gbps: {rng.choice((25, 100, 400))}, mtu: {rng.choice((1024, 4096))}, "
        f"delay_ns: {rng.choice((100, 1000, 3000))}}}",
        f"buffer.bytes={rng.choice((16, 32))}MB",
        f"lb.policy={rng.choice(('spray', 'adaptive', 'drill'))}",
        f"transport.cc={rng.choice(('none', 'dcqcn'))}",
        *("transport.recovery=selective", "measures.series=false", f"seed={seed}"),
    )
    result = simulate_sparely("hello", *changes, out=out).result
    assert result.drops.total == 0 and result.flows.failed == 0, changes
    assert result.roce.retransmitted_packets == 0, changes
    assert result.roce.data_bytes == result.flows.bytes, changes
    return result


def test_where_nothing_is_lost_nothing_is_sent_again(tmp_path: Path) -> None:
    results = [
        sprayed(seed, tmp_path / str(seed), ("64KB", "300KB", "1MB")) for seed in range(400, 406)
    ]
    early = sum(result.roce.out_of_order_packets for result in results)
    assert early > 200
    # One NAK for a gap, whatever comes behind it.
    assert sum(result.roce.naks for result in results) < 0.7 * early


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1150))
def test_nor_is_it_in_many_fabrics(seed: int, tmp_path: Path) -> None:
    sprayed(seed, tmp_path, ("64KB", "300KB", "1MB", "4MB"))


@pytest.mark.parametrize("policy", ["ecmp", "spray"])
def test_what_is_lost_is_sent_again_and_little_else(policy: str, tmp_path: Path) -> None:
    """A ring all-reduce, for which each loss holds everybody up; time-outs hardly have a part."""
    changes = (
        "traffic={kind: collective, op: all-reduce, algorithm: ring, bytes: 8MB}",
        *(f"lb.policy={policy}", "transport.recovery=selective", "measures.series=false"),
    )
    clean = simulate_sparely("lossy-link", *changes, "loss.rate=0", out=tmp_path / "clean").result
    assert clean.jct_ns
    longest = []
    for seed in range(1, 4):
        lossy = simulate_sparely(
            "lossy-link", *changes, f"seed={seed}", out=tmp_path / "lossy"
        ).result
        lost = lossy.drops.total
        assert lost > 10 and lossy.flows.failed == 0
        assert lossy.roce.retransmitted_packets < 1.5 * lost + 5
        assert lossy.jct_ns
        waits = 4_200_000 * lossy.roce.timeouts
        longest.append((lossy.jct_ns - clean.jct_ns - waits) / lost)
    # A round trip or a few for each loss in a row, unless a message's end waits for its time:
    # as a rule, so in the middle of three.
    assert sorted(longest)[1] < 100_000


def test_a_fixed_patience_is_kept(tmp_path: Path) -> None:
    """With none at all every packet that comes early has another sent again."""
    spray = ("lb.policy=spray", "traffic.bytes=1MB", "transport.recovery=selective")
    hasty = simulate_sparely(
        "hash-collision", *spray, "transport.reorder=0", out=tmp_path / "a"
    ).result
    patient = simulate_sparely(
        "hash-collision", *spray, "transport.reorder=1ms", out=tmp_path / "b"
    ).result
    assert hasty.roce.retransmitted_packets > 20 and hasty.flows.failed == 0
    assert patient.roce.retransmitted_packets == 0

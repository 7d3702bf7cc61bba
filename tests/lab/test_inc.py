"""Collectives in the network: how long whole runs of them take, and what is left without a tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import ScenarioError
from lab.results.result import InNetwork, Result
from tests.lab.simulated import Run as Simulated
from tests.lab.simulated import simulate, simulate_sparely
from traffic.collectives import CHUNK_BYTES

NAME = "in-network-allreduce"
FRAME_BYTES = 58 + 24  # of a part, and of the wire around it, besides what it carries


def inc(result: Result) -> InNetwork:
    assert result.inc is not None
    return result.inc


def jct(run: Simulated) -> int:
    assert run.result.jct_ns is not None
    assert inc(run.result).wrong_results == inc(run.result).without_result == 0
    return run.result.jct_ns


def predicted_ns(kib: int, *, gbps: int, delay_ns: int, links: int, slots: int) -> float:
    """The equation of docs/inc.md."""
    frame_ns = (CHUNK_BYTES + FRAME_BYTES) * 8 / gbps
    way_ns = links * (delay_ns + frame_ns)
    rounds, rest = divmod(kib - 1, slots)
    return way_ns + rounds * max(way_ns, slots * frame_ns) + rest * frame_ns


@pytest.mark.parametrize(
    ("kib", "gbps", "delay_ns", "slots", "topology", "links"),
    [
        (256, 100, 1000, 512, "{kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 2}", 4),
        (64, 400, 500, 128, "{kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 3}", 4),
        (96, 100, 1000, 16, "{kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}", 4),
        (192, 25, 200, 256, "{kind: fat-tree, k: 4}", 6),
    ],
)
def test_takes_as_long_as_the_equation_says(
    kib: int, gbps: int, delay_ns: int, slots: int, topology: str, links: int, tmp_path: Path
) -> None:
    run = simulate_sparely(
        *(NAME, f"traffic.bytes={kib}KiB", f"link.rate_gbps={gbps}", f"link.delay_ns={delay_ns}"),
        *(f"inc.slots={slots}", f"topology={topology}"),
        out=tmp_path,
    )
    wanted = predicted_ns(kib, gbps=gbps, delay_ns=delay_ns, links=links, slots=slots)
    assert jct(run) == pytest.approx(wanted, rel=0.05)
    assert run.result.drops.total == 0


@pytest.mark.parametrize("op", ["reduce-scatter", "all-gather", "broadcast", "barrier"])
def test_every_collective_loses_packets_and_is_right(op: str, tmp_path: Path) -> None:
    size = "traffic.bytes=0" if op == "barrier" else "traffic.bytes=48KiB"
    run = simulate_sparely(
        *(NAME, f"traffic.op={op}", size, "traffic.repeat=3"),
        "loss={rate: 0.02, links: [leaf1-spine2, h1-leaf1, h7-leaf4]}",
        out=tmp_path,
    )
    assert jct(run) > 0
    assert set(run.result.drops.by_reason) <= {"injected_loss", "old_part"}


def test_a_tree_that_breaks_is_made_up_for_by_a_host(tmp_path: Path) -> None:
    run = simulate_sparely(
        *(NAME, "traffic.bytes=48KiB", "reroute_ns=5us", "inc.tries=1", "inc.rto_ns=20us"),
        "faults=[{at_ns: 4000, action: down, link: leaf1-spine2}]",
        out=tmp_path,
    )
    assert jct(run) > 0
    assert inc(run.result).added_by_hosts > 0


def test_more_jobs_than_slots_have_no_tree_and_yet_a_result(tmp_path: Path) -> None:
    jobs = ", ".join(
        f"{{kind: collective, op: all-reduce, algorithm: in-network, bytes: 16KiB, ranks: {ranks}}}"
        for ranks in ("[h1, h3]", "[h2, h5]", "[h4, h6, h8]")
    )
    run = simulate(NAME, f"traffic={{kind: mix, parts: [{jobs}]}}", "inc.slots=2", out=tmp_path)
    found = inc(run.result)
    assert found.without_result == found.wrong_results == 0
    assert found.results == 16 * 7


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ("link.mtu=512", "link.mtu"),
        ("transport.endpoint=scapy", "transport.endpoint"),
    ],
)
def test_what_does_not_go_with_it_is_refused(change: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=place):
        simulate(NAME, change, out=tmp_path)

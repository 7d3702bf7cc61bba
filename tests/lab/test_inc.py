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
MANY = "{leaves: 8, spines: 4, hosts_per_leaf: 16}"
FRAME_BYTES = 58 + 24  # of a part, and of the wire around it, besides what it carries


def inc(result: Result) -> InNetwork:
    assert result.inc is not None
    return result.inc


def jct(run: Simulated) -> int:
    assert run.result.jct_ns is not None
    assert inc(run.result).wrong_results == inc(run.result).without_result == 0
    return run.result.jct_ns


def predicted_ns(
    kib: int, *, gbps: int, delay_ns: int, links: int, slots: int, numbers: str
) -> float:
    """The equation of docs/inc.md."""
    frame_ns = (CHUNK_BYTES + FRAME_BYTES) * 8 / gbps
    way_ns = links * (delay_ns + frame_ns)
    rounds, rest = divmod(kib - 1, slots)
    ahead_ns = 0.0
    if numbers == "floats":
        empty_ns = FRAME_BYTES * 8 / gbps
        ahead_ns = max(links * (delay_ns + empty_ns), min(kib, slots) * empty_ns)
    return ahead_ns + way_ns + rounds * max(way_ns, slots * frame_ns) + rest * frame_ns


@pytest.mark.parametrize(
    ("kib", "gbps", "delay_ns", "slots", "numbers", "topology", "links"),
    [
        (256, 100, 1000, 512, "integers", "{leaves: 4, spines: 2, hosts_per_leaf: 2}", 4),
        (64, 400, 500, 128, "floats", "{leaves: 2, spines: 1, hosts_per_leaf: 3}", 4),
        (64, 400, 500, 128, "integers", "{leaves: 2, spines: 1, hosts_per_leaf: 3}", 4),
        (96, 100, 1000, 16, "integers", "{leaves: 2, spines: 2, hosts_per_leaf: 2}", 4),
        (96, 100, 1000, 16, "floats", "{leaves: 2, spines: 2, hosts_per_leaf: 2}", 4),
        (192, 25, 200, 256, "integers", "{kind: fat-tree, k: 4}", 6),
        (4, 100, 1000, 512, "integers", MANY, 4),
    ],
)
def test_takes_as_long_as_the_equation_says(
    kib: int,
    gbps: int,
    delay_ns: int,
    slots: int,
    numbers: str,
    topology: str,
    links: int,
    tmp_path: Path,
) -> None:
    run = simulate_sparely(
        *(NAME, f"traffic.bytes={kib}KiB", f"link.rate_gbps={gbps}", f"link.delay_ns={delay_ns}"),
        *(f"inc.slots={slots}", f"inc.numbers={numbers}", f"topology={topology}"),
        out=tmp_path,
    )
    wanted = predicted_ns(
        kib, gbps=gbps, delay_ns=delay_ns, links=links, slots=slots, numbers=numbers
    )
    assert jct(run) == pytest.approx(wanted, rel=0.05)
    assert run.result.drops.total == 0


def test_128_hosts_meet_in_a_way_up_and_down(tmp_path: Path) -> None:
    run = simulate_sparely(
        NAME, "traffic.op=barrier", "traffic.bytes=0", f"topology={MANY}", out=tmp_path
    )
    assert jct(run) == pytest.approx(4 * (1000 + FRAME_BYTES * 8 / 100), rel=0.05)


@pytest.mark.parametrize("llr", ["selective", "go-back-n"])
@pytest.mark.parametrize("of_hosts", [False, True])
def test_over_links_that_try_again_nothing_is_lost(
    of_hosts: bool, llr: str, tmp_path: Path
) -> None:
    cables = "[leaf1-spine2, leaf2-spine2, leaf3-spine2, leaf4-spine2]"
    run = simulate_sparely(
        *("reliable-tree", "traffic.bytes=256KiB", f"link.llr={llr}"),
        f"link.llr_hosts={of_hosts}",
        f"loss={{rate: 0.02, links: {'[]' if of_hosts else cables}}}",
        out=tmp_path,
    )
    assert jct(run) > 0
    assert run.result.llr is not None and run.result.llr.spoilt_frames > 10
    assert set(run.result.drops.by_reason) <= {"old_part"}
    assert inc(run.result).parts_again < 0.01 * inc(run.result).parts


@pytest.mark.parametrize(
    ("op", "numbers"),
    [
        *((op, "integers") for op in ("reduce-scatter", "all-gather", "broadcast", "barrier")),
        *((op, "floats") for op in ("all-reduce", "reduce-scatter", "all-gather")),
    ],
)
def test_every_collective_loses_packets_and_is_right(op: str, numbers: str, tmp_path: Path) -> None:
    size = "traffic.bytes=0" if op == "barrier" else "traffic.bytes=48KiB"
    run = simulate_sparely(
        *(NAME, f"traffic.op={op}", size, "traffic.repeat=3", f"inc.numbers={numbers}"),
        "loss={rate: 0.02, links: [leaf1-spine2, h1-leaf1, h7-leaf4]}",
        out=tmp_path,
    )
    assert jct(run) > 0
    assert set(run.result.drops.by_reason) <= {"injected_loss", "old_part"}


@pytest.mark.parametrize("numbers", ["integers", "floats"])
def test_a_tree_that_breaks_is_made_up_for_by_a_host(numbers: str, tmp_path: Path) -> None:
    run = simulate_sparely(
        *(NAME, "traffic.bytes=48KiB", "reroute_ns=1ms", "inc.tries=1", "inc.rto_ns=20us"),
        *("inc.slots=8", f"inc.numbers={numbers}"),
        "faults=[{at_ns: 4000, action: down, link: leaf1-spine2}]",
        out=tmp_path,
    )
    assert jct(run) > 0
    assert inc(run.result).added_by_hosts > 0


def test_a_copy_of_a_result_that_finds_a_port_dead_is_accounted_for(tmp_path: Path) -> None:
    """Of some of the cuts, since a run that is wrong in its books is refused."""
    dead = 0
    for us in range(4, 16, 2):
        run = simulate_sparely(
            *(NAME, "traffic.bytes=24KiB", "inc.rto_ns=20us"),
            f"faults=[{{at_ns: {us}000, action: down, link: h4-leaf2, for_ns: 1us}}]",
            out=tmp_path,
        )
        assert jct(run) > 0
        dead += run.result.drops.by_reason.get("port_down", 0)
    assert dead > 0


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

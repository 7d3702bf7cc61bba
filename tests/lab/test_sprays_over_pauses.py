"""UET and MRC where nothing is lost: over pauses nothing goes twice, however long they hold a way.

Fabrics, traffic and adapters are drawn by lot. `closlab test` takes a few, `closlab test --slow`
some hundreds. What damage takes is still found, and only that goes again.
"""

import random
from pathlib import Path

import pytest

from lab.results.cautions import cautions
from lab.results.result import Result
from tests.lab.simulated import simulate_sparely

TOPOLOGIES = {
    "dual-tor": "{{kind: dual-tor, racks: {}, spines: {}, hosts_per_rack: {}}}",
    "leaf-spine": "{{kind: leaf-spine, leaves: {}, spines: {}, hosts_per_leaf: {}}}",
    "planes": "{{kind: planes, planes: 2, leaves: {}, spines: {}, hosts_per_leaf: {}}}",
}
ENTROPIES = ("reps", "oblivious", "bitmap", "single", "mrc")
BY_HASH = ("ecmp", "structured")  # a way is a way
PER_PACKET = ("spray", "adaptive", "drill", "flowlet")  # each packet has one of its own, or may


def drawn(seed: int, policies: tuple[str, ...]) -> tuple[str, ...]:
    """A fabric that pauses, with adapters that spray."""
    rng = random.Random(seed)
    kind = rng.choice(list(TOPOLOGIES))
    shape = rng.choice(((2, 2, 4), (2, 4, 4), (3, 2, 3), (2, 1, 4), (2, 2, 6)))
    hosts = shape[0] * shape[2]
    incast = f"{{kind: incast, senders: {hosts - 1}, bytes: {rng.choice((100, 400))}KB}}"
    poisson = (
        f"{{kind: poisson, load: {rng.choice((0.3, 0.9))}, duration_ns: 200us, sizes: storage}}"
    )
    traffic = rng.choice(
        (
            incast,
            poisson,
            f"{{kind: permutation, bytes: {rng.choice((400, 2000))}KB}}",
            f"{{kind: mix, parts: [{incast}, {poisson}]}}",
        )
    )
    cc, entropy = rng.choice(("nscc", "swift", "none")), rng.choice(ENTROPIES)
    changes = [
        f"topology={TOPOLOGIES[kind].format(*shape)}",
        f"link={{rate_gbps: {rng.choice((25, 100, 400))}, mtu: {rng.choice((1024, 4096))}, "
        f"delay_ns: {rng.choice((100, 500, 1000, 5000))}}}",
        f"transport={{kind: {rng.choice(('uet', 'mrc'))}, cc: {cc}, entropy: {entropy}}}",
        f"lb.policy={rng.choice(policies)}",
        f"traffic={traffic}",
        f"seed={seed}",
        f"buffer.bytes={rng.choice((8, 16, 32))}MB",
        "limit_ns=400ms",
    ]
    if kind == "leaf-spine" and rng.random() < 0.5:
        host, length = rng.randrange(1, hosts + 1), rng.randrange(10_000, 1_000_000)
        changes.append(f"faults=[{{at_ns: 5us, action: storm, host: h{host}, for_ns: {length}}}]")
    return tuple(changes)


def check(seed: int, policies: tuple[str, ...], out: Path) -> None:
    changes = drawn(seed, policies)
    said = f"seed {seed}: " + " ".join(f"--set '{change}'" for change in changes)
    result = simulate_sparely("hello", *changes, out=out).result
    assert result.drops.total == result.flows.failed == 0, said
    assert result.roce.retransmitted_packets == result.roce.timeouts == 0, (said, result.roce)
    assert not list(cautions(result)), said


@pytest.mark.parametrize("seed", [5, 9])
def test_nothing_goes_twice_where_nothing_is_lost(seed: int, tmp_path: Path) -> None:
    check(seed, BY_HASH, tmp_path)


def test_nor_where_switches_choose_ways(tmp_path: Path) -> None:
    check(3, PER_PACKET, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("policies", [BY_HASH, PER_PACKET], ids=["hash", "packet"])
@pytest.mark.parametrize("seed", range(1000, 1150))
def test_nothing_goes_twice_in_hundreds_of_fabrics(
    seed: int, policies: tuple[str, ...], tmp_path: Path
) -> None:
    check(seed, policies, tmp_path)


def lossy(kind: str, out: Path, *changes: str) -> Result:
    """An incast over pauses, of which every hundredth packet is damaged."""
    settings = (f"transport={{kind: {kind}, cc: nscc}}", "loss.rate=0.01", *changes)
    return simulate_sparely("incast", *settings, out=out).result


@pytest.mark.parametrize("kind", ["uet", "mrc"])
def test_what_damage_takes_goes_again_and_nothing_else(kind: str, tmp_path: Path) -> None:
    """Of what is lost, acknowledgements need not go again; all is done soon, with no time-out."""
    found = lossy(kind, tmp_path)
    assert found.flows.failed == found.roce.timeouts == 0
    assert 0 < found.roce.retransmitted_packets <= found.drops.total
    assert (
        found.duration_ns
        < 1.5
        * simulate_sparely(
            "incast", f"transport={{kind: {kind}, cc: nscc}}", out=tmp_path / "whole"
        ).result.duration_ns
    )


def test_acknowledgements_are_as_safe_as_their_data_unless_told_otherwise(tmp_path: Path) -> None:
    """In class 6 they find no room beside lossless traffic that takes it all, and that is said."""
    full = (
        *("buffer.alpha=128", "buffer.lossy_alpha=0.00390625", "buffer.bytes=1MB"),
        "traffic={kind: mix, parts: [{kind: incast, bytes: 400KB}, "
        "{kind: permutation, bytes: 400KB}]}",
    )
    for transport in ("kind: roce", "kind: uet", "kind: mrc, cc: nscc"):
        safe = simulate_sparely("incast", *full, f"transport={{{transport}}}", out=tmp_path).result
        assert safe.drops.total == safe.roce.retransmitted_packets == 0
        assert safe.roce.lost_acks is None and not list(cautions(safe))

        acks = f"transport={{{transport}, acks: control, rto_ns: 1ms}}"
        loses = simulate_sparely("incast", *full, acks, out=tmp_path).result
        assert loses.roce.lost_acks
        assert loses.roce.lost_acks <= loses.drops.total
        (caution,) = cautions(loses)
        assert "class 6" in caution and "leave transport.acks out" in caution

        kept = simulate_sparely("incast", *full, acks, "pfc.priorities=[3, 6]", out=tmp_path).result
        assert kept.drops.total == 0 and not list(cautions(kept))


def test_who_waits_too_short_is_told_that_it_was_in_vain(tmp_path: Path) -> None:
    """A pause that outlasts the time-out, by a scenario's own wish."""
    storm = "faults=[{at_ns: 5us, action: storm, host: h1, for_ns: 2ms}]"
    hasty = ("transport={kind: uet, cc: nscc, rto_ns: 50us, retry_limit: 250}", storm)
    found = simulate_sparely("incast", *hasty, out=tmp_path).result
    assert found.drops.total == found.flows.failed == 0
    assert found.roce.timeouts and found.roce.retransmitted_packets
    (caution,) = cautions(found)
    assert "in vain" in caution and "raise transport.rto_ns" in caution

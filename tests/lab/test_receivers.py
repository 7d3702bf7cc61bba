"""Hosts that take less than their links bring: they pause the fabric, and nothing is lost."""

import random
from pathlib import Path

import pytest

from controller.headroom import headroom
from lab.errors import ScenarioError
from lab.scenario import catalogue, translate
from tests.lab.simulated import Run, simulate

WIRE = 4096 + 62 + 16 + 4 + 8  # of a data packet, at most


def changes_of(seed: int) -> tuple[dict[str, float], tuple[str, ...]]:
    """Anything that may vary, by lot; and the figures the answer follows from."""
    draw = random.Random(seed)
    gbps = draw.choice((25, 50, 100, 200, 400))
    takes = round(gbps * draw.uniform(0.02, 0.8), 2)
    size, senders = draw.randrange(200_000, 2_000_000), draw.randrange(1, 8)
    buffer = draw.randrange(10_000, 300_000)
    return {"takes": takes, "bytes": size * senders}, (
        f"transport.receive_gbps={{h1: {takes}}}",
        f"transport.receive_buffer={buffer}",
        f"link={{rate_gbps: {gbps}, fabric_rate_gbps: {draw.choice((100, 400))}, delay_ns: "
        f"{draw.randrange(100, 3000)}}}",
        f"pfc.response_ns={draw.choice((0, 1000, 4000))}",
        f"traffic={{kind: incast, senders: {senders}, bytes: {size}}}",
        "buffer.bytes=20MB",
    )


def run(seed: int, out: Path, *more: str) -> tuple[dict[str, float], Run]:
    given, changes = changes_of(seed)
    return given, simulate("incast", *changes, *more, out=out)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", range(6))
def test_the_job_takes_as_long_as_the_host_and_nothing_is_lost(seed: int, tmp_path: Path) -> None:
    given, found = run(seed, tmp_path)
    result = found.result
    assert result.drops.total == 0
    assert result.fidelity.ok
    assert result.roce.retransmitted_packets == 0
    # Payload at the host's rate, and the packets' headers, which it has to take as well.
    least = given["bytes"] * 8 / given["takes"]
    assert least <= max(f.max for f in [result.flows.fct_ns] if f) <= least * 1.03 + 100_000


def test_an_adapter_that_is_paused_in_the_control_class_can_still_pause(tmp_path: Path) -> None:
    """What it says of its link is in no class that its leaf could hold."""
    changes = (
        *("traffic.bytes=400KB", "traffic.priority=6", "pfc.priorities=[6]"),
        *("transport.receive_gbps={h1: 30}", "buffer.static=1", "pfc.xon=1"),
    )
    found = simulate("hello", *changes, out=tmp_path)
    assert found.outcome.endpoints[found.experiment.fabric.node("h1")]["paused_6_ns"]
    assert found.result.drops.total == 0
    assert found.result.fidelity.ok


def test_it_is_the_adapter_that_pauses_its_leaf(tmp_path: Path) -> None:
    changes = ("transport.receive_gbps={h1: 20}", "traffic.senders=1", "traffic.bytes=2MB")
    found = simulate("incast", *changes, out=tmp_path)
    # Full speed for a fifth of the time is the host's rate: its leaf stands still for the rest.
    assert stood_still(found) == pytest.approx(0.8 * found.result.duration_ns, rel=0.1)
    assert found.outcome.endpoints[found.experiment.fabric.node("h1")]["tx_pfc_frames"] > 2
    # The result tells of this direction as of one that a switch paused, frame by frame.
    link = found.result.pfc.by_link["leaf1>h1"]
    assert link.paused_ns == stood_still(found) and found.result.pfc.paused_ns >= link.paused_ns
    noted = [note for note in found.outcome.pauses if note.link == "leaf1>h1"]
    assert link.xoff_frames == pytest.approx(sum(n.what == "xoff" for n in noted), abs=1) and noted
    assert stood_still(simulate("incast", *changes[1:], out=tmp_path)) == 0


def stood_still(found: Run) -> int:
    """How long leaf1 might not send to h1."""
    fabric = found.experiment.fabric
    leaf = fabric.node("leaf1")
    port = fabric.port_towards(leaf, fabric.node("h1"))
    return found.outcome.switches[leaf].port(port).paused_ns


@pytest.mark.parametrize("seed", range(4))
def test_room_for_two_frames_less_is_not_enough(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is computed is what it takes: XOFF may have to wait for a whole frame of the host's."""
    monkeypatch.setattr(
        translate, "headroom", lambda cable, frame, *rest: headroom(cable, frame, *rest) - 2 * frame
    )
    busy = (
        "traffic={kind: flows, flows: [{src: h8, dst: h1, bytes: 4MB}, {src: h1, dst: h8, bytes: "
        "4MB}]}",
        "pfc.response_ns=0",
        f"link.delay_ns={100 + seed}",
    )
    found = simulate(
        "incast", "transport.receive_gbps={h1: 5}", *busy, "transport.rto_ns=1ms", out=tmp_path
    ).result
    assert found.drops.by_reason["receive_buffer_full"] > 0
    assert not found.fidelity.ok


@pytest.mark.parametrize("seed", range(3))
def test_what_no_pause_stops_takes_no_room_from_what_is_paused(seed: int, tmp_path: Path) -> None:
    """A lossy class that overruns the adapter is lost there; the lossless one beside it is not."""
    rng = random.Random(seed)
    size, dscp = rng.randrange(100, 400), rng.randrange(33, 48)
    found = simulate(
        "incast",
        "traffic={kind: mix, parts: ["
        f"{{kind: incast, senders: 3, bytes: {size}KB, priority: 4}}, "
        f"{{kind: incast, senders: 5, bytes: {size}KB, priority: 0}}]}}",
        *("pfc.priorities=[4]", f"classes.dscp={{32: 0, 26: 0, {dscp}: 4}}"),
        f"transport.receive_gbps={{h1: {rng.uniform(2, 50):.2f}}}",
        f"transport.receive_buffer={rng.randrange(10, 100_000)}",
        *("transport.recovery=selective", "transport.rto_ns=200us", "transport.retry_limit=250"),
        out=tmp_path,
    )
    assert found.result.drops.by_reason["receive_buffer_full"] > 0
    assert found.outcome.endpoints[found.experiment.fabric.node("h1")]["rx_discards_lossless"] == 0
    assert found.result.fidelity.ok
    assert found.result.flows.failed == 0


def test_without_pauses_the_adapter_loses_and_says_where(tmp_path: Path) -> None:
    changes = ("pfc.enabled=false", "transport.recovery=selective", "transport.rto_ns=200us")
    _, found = run(1, tmp_path, *changes, "limit_ns=1s", "transport.retry_limit=200")
    assert found.result.drops.by_reason["receive_buffer_full"] > 0
    assert found.result.fidelity.ok  # nobody promised anything


def test_a_host_that_is_not_there_is_named() -> None:
    with pytest.raises(ScenarioError, match="no host 'h99'"):
        catalogue.check(catalogue.load("incast", ("transport.receive_gbps={h99: 5}",)))

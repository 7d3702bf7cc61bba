"""What each scenario says of itself, asserted of its run in the simulator."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lab import scenario
from tests.lab.simulated import Run, simulate

RunScenario = Callable[..., Run]


@pytest.fixture
def run(tmp_path: Path) -> RunScenario:
    runs = iter(range(100))
    return lambda name, *changes: simulate(name, *changes, out=tmp_path / str(next(runs)))


def test_none_is_forgotten() -> None:
    told = {name.removeprefix("test_").replace("_", "-") for name in globals()}
    assert set(scenario.names()) <= told


def test_hello(run: RunScenario) -> None:
    """Everything arrives; no spine is idle, but they are not evenly loaded."""
    found = run("hello")
    assert found.result.flows.completed == 8 * 7
    assert found.result.drops.total == 0
    for leaf in range(1, 5):
        assert min(found.links(f"leaf{leaf}>spine").values()) > 0
    assert len(set(found.links("leaf1>spine").values())) > 1


def test_incast(run: RunScenario) -> None:
    """Nothing is lost, the last hop pauses both spines, and the receiver's link is the limit."""
    found = run("incast")
    result = found.result
    assert result.drops.total == 0
    assert result.roce.retransmitted_packets == 0
    pauses = result.pfc.by_link
    for link in ("spine1>leaf1", "spine2>leaf1", "h2>leaf1"):
        assert pauses[link].xoff_frames > 0
    senders = [pauses[f"h{number}>leaf{(number + 1) // 2}"] for number in range(2, 9)]
    assert all(pause.paused_ns > 0 for pause in senders)
    assert result.flows.fct_ns is not None
    alone_ns = 7 * 2_000_000 * 8 / 100
    assert alone_ns < result.flows.fct_ns.max < 1.03 * alone_ns
    use = {use.name: use.utilisation for use in result.links}
    assert use["leaf1>h1"] > 0.95

    without = run("incast", "pfc.enabled=false").result
    assert without.drops.by_reason["buffer_full"] > 0
    assert without.pfc.xoff_frames == 0
    assert without.flows.fct_ns is not None
    assert without.flows.fct_ns.max > result.flows.fct_ns.max


def test_hash_collision(run: RunScenario) -> None:
    """Some uplinks are idle beside full ones; sprayed, all are used and the end comes sooner."""
    collided, sprayed = run("hash-collision"), run("hash-collision", "lb.policy=spray")
    up = [collided.links(f"leaf{leaf}>spine").values() for leaf in range(1, 5)]
    assert any(min(loads) < 0.1 * max(loads) for loads in up)
    for leaf in range(1, 5):
        loads = sprayed.links(f"leaf{leaf}>spine").values()
        assert min(loads) > 0.7 * max(loads)


def test_allreduce_ring(run: RunScenario) -> None:
    """No queue to speak of, and bus bandwidth near the rate of a port."""
    result = run("allreduce-ring").result
    assert result.collective is not None and result.collective.busbw_gbps is not None
    assert 90 < result.collective.busbw_gbps < 100
    assert result.drops.total == 0
    assert result.pfc.xoff_frames == 0
    assert max(use.max_queue_bytes or 0 for use in result.links) < 20_000


def test_alltoall(run: RunScenario) -> None:
    """All links work at once, and some flows wait for others."""
    result = run("alltoall").result
    assert result.flows.completed == 56
    assert result.drops.total == 0
    assert all(use.bytes > 1_000_000 for use in result.links if ">h" in use.name)
    assert result.flows.slowdown is not None
    assert result.flows.slowdown.max > 2


def test_lossy_link(run: RunScenario) -> None:
    """Going back to the lost packet sends far more again than sending what was lost."""
    back = run("lossy-link").result
    selective = run("lossy-link", "transport.recovery=selective").result
    for result in (back, selective):
        assert result.flows.failed == 0
        assert set(result.drops.by_reason) == {"injected_loss"}
        assert 5 < result.drops.total < 60
    assert selective.roce.retransmitted_packets < 2 * selective.drops.total
    assert back.roce.retransmitted_packets > 5 * back.drops.total
    assert back.flows.fct_ns is not None and selective.flows.fct_ns is not None
    assert selective.flows.fct_ns.max < back.flows.fct_ns.max

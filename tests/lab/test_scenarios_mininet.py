"""Every scenario on real namespaces, in slow motion: in time, and as it says of itself.

What needs a second run to compare with is asserted in the simulator (test_scenarios_sim); what one
run shows is asserted here. Where the machine could not keep up, a result says so, and what depends
on exact times is not held against it.
"""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.machine.speed import slowness
from lab.results.result import Control, Result
from lab.scenario import catalogue, shipped
from tests.lab.conftest import closlab, needs_frr
from views.report import read_run

pytestmark = [pytest.mark.mininet, pytest.mark.clock]

MAX_S = 60
ALWAYS = ("link-failure",)


def carried(result: Result, *parts: str) -> int:
    """Bytes on all directions of links whose names contain one of these."""
    return sum(u.bytes for u in result.links if any(part in u.name for part in parts))


def busbw(result: Result) -> float:
    assert result.collective is not None and result.collective.busbw_gbps is not None
    return result.collective.busbw_gbps


def slowdown(result: Result, part: str) -> float:
    found = (result.parts or {})[part].slowdown
    assert found is not None
    return found.max


def lossless(result: Result) -> None:
    """Nothing is dropped but what a host sent that obeyed a pause too late.

    A run is believed if its hosts were seldom late; on a busy machine one of them may still be
    later, once, than headroom allows for. That exactly nothing is lost is for the simulator.
    """
    assert set(result.drops.by_reason) <= {"headroom_full"}
    if result.fidelity.ok:
        assert result.drops.total <= 0.005 * result.roce.data_packets


def check_hello(result: Result) -> None:
    assert result.drops.total == 0
    assert all(u.packets for u in result.links if "leaf1>spine" in u.name)


def check_incast(result: Result) -> None:
    lossless(result)
    assert result.pfc.by_link["spine1>leaf1"].xoff_frames > 0
    assert result.flows.fct_ns is not None
    assert 0.95 < result.flows.fct_ns.max / 1_120_000 < 1.25


def check_ring(result: Result) -> None:
    lossless(result)
    assert 60 < busbw(result) < 100


def check_tree(result: Result) -> None:
    assert result.collective is not None
    assert result.collective.algorithm == "double-binary-tree"
    assert result.flows.count == 60


def check_alltoall(result: Result) -> None:
    lossless(result)
    assert all(u.bytes > 1_000_000 for u in result.links if ">h" in u.name)


def check_degraded_uplink(result: Result) -> None:
    lossless(result)
    assert 18 < busbw(result) < 26


def check_oversubscription(result: Result) -> None:
    lossless(result)
    use = {u.name: u.utilisation for u in result.links}
    assert min(use[f"leaf{leaf}>spine1"] for leaf in range(1, 5)) > 0.6


def check_straggler(result: Result) -> None:
    lossless(result)
    assert result.gpu_utilisation is not None
    assert 0.35 < result.gpu_utilisation < 0.5


def check_hash_collision(result: Result) -> None:
    ways = [
        [u.bytes for u in result.links if f"leaf{leaf}>spine" in u.name] for leaf in range(1, 5)
    ]
    assert any(min(loads) < 0.1 * max(loads) for loads in ways)


def check_lossy_link(result: Result) -> None:
    assert 5 < result.drops.by_reason["injected_loss"] < 60
    assert result.roce.retransmitted_packets > 5 * result.drops.by_reason["injected_loss"]


def check_link_failure(result: Result) -> None:
    assert result.drops.by_reason["port_down"] > 0
    assert result.roce.timeouts > 0
    assert carried(result, "leaf1>spine2") > 8_000_000


def check_victim_flow(result: Result) -> None:
    lossless(result)
    assert 3.5 < slowdown(result, "bystander") < 8
    assert result.pfc.by_link["leaf2>spine1"].paused_ns > 0


def check_pfc_storm(result: Result) -> None:
    assert result.drops.by_reason["watchdog"] > 100
    others = [f"h{number}>leaf{(number + 1) // 2}" for number in range(3, 9)]
    assert sum(result.pfc.by_link[link].paused_ns for link in others) > 1_000_000


def check_deadlock(result: Result) -> None:
    assert result.drops.by_reason["watchdog"] > 10
    assert result.flows.fct_ns is not None
    assert result.flows.fct_ns.max > 1_000_000  # a tenth of it without the circle


def check_noisy_neighbour(result: Result) -> None:
    lossless(result)
    assert slowdown(result, "collective") > 3


def check_north_south(result: Result) -> None:
    assert slowdown(result, "collective") > 1.5
    assert (result.parts or {})["north-south hadoop"].count > 100


def check_rails(result: Result) -> None:
    lossless(result)
    assert carried(result, ">spine", "spine1>", "spine2>") == 0


def check_training(result: Result) -> None:
    lossless(result)
    assert result.gpu_utilisation is not None
    assert 0.5 < result.gpu_utilisation < 0.75


def check_gpt3(result: Result) -> None:
    """The same job twice, placed well and badly."""
    lossless(result)
    jobs = {name: job.jct_ns or 0 for name, job in (result.jobs or {}).items()}
    assert 1.3 * jobs["aligned"] < jobs["scattered"] < 1.8 * jobs["aligned"]


def check_two_elephants(result: Result) -> None:
    lossless(result)
    ways = sorted(u.bytes for u in result.links if "leaf1>spine" in u.name)
    assert ways[0] == 0
    assert ways[1] > 48_000_000


def check_usid_steering(result: Result) -> None:
    """Each elephant has a spine to itself, and 40 bytes more in every packet."""
    lossless(result)
    ways = [link.bytes for link in result.links if "leaf1>spine" in link.name]
    assert len(ways) == 4
    assert max(ways) < 1.02 * min(ways)


def check_evpn_tenants(result: Result) -> None:
    """Tenants with the same addresses, side by side."""
    lossless(result)
    assert result.flows.completed == 48


def check_degraded_path(result: Result) -> None:
    ways = {u.name: u.bytes for u in result.links}
    assert ways["spine1>leaf2"] < 0.4 * ways["spine2>leaf2"]


def check_trimming(result: Result) -> None:
    assert result.trim is not None
    assert result.pfc.xoff_frames == 0
    assert set(result.drops.by_reason) <= {"buffer_full"}


def check_trim_incast(result: Result) -> None:
    check_trimming(result)
    assert result.trim is not None
    assert result.trim.cut_packets == result.trim.arrived_packets > 300
    assert result.roce.naks == result.trim.arrived_packets - result.trim.known_packets


def check_pfc_or_trim(result: Result) -> None:
    check_trim_incast(result)
    assert slowdown(result, "bystander") < 2


def routed(result: Result) -> Control:
    """What BGP did, for all switches and hosts of these scenarios."""
    assert result.control is not None
    assert result.control.routes == 4 * (2 + 3) + 2 * 4
    return result.control


def check_bgp_clos(result: Result) -> None:
    down, up = routed(result).faults
    for fault in (down, up):
        assert fault.switches == 5  # all but spine2
    assert set(result.drops.by_reason) <= {
        *("link_cut", "port_down", "no_route", "headroom_full"),
        "send_failed",  # on its way when the cable was cut
    }
    assert carried(result, "leaf1>spine1") > 0


def check_silent_failure(result: Result) -> None:
    (silence,) = routed(result).faults
    assert silence.switches == 5
    assert silence.first_s is not None
    assert silence.first_s > 0.5  # three words that did not come
    if result.fidelity.ok:
        assert silence.first_s < 1.5
    assert result.drops.by_reason["injected_loss"] > 0


def check_leaf_restart(result: Result) -> None:
    """Nothing is dropped for want of a route, and no switch is told another."""
    lossless(result)
    (restart,) = routed(result).faults
    assert restart.entries == 0


def check_cluster_day(result: Result) -> None:
    lossless(result)
    day = result.cluster
    assert day is not None
    assert (day.completed, day.failed) == (40, 0)


def check_hot_experts(result: Result) -> None:
    """The host of the hottest expert is sent about twice what the coldest is."""
    lossless(result)
    arrived = sorted(u.bytes for u in result.links if ">h" in u.name)
    assert arrived[-1] > 1.8 * arrived[0]


def check_kv_cache(result: Result) -> None:
    lossless(result)
    assert result.inference is not None
    assert (result.inference.completed, result.inference.failed) == (24, 0)


def check_checkpoint_burst(result: Result) -> None:
    lossless(result)
    assert (result.parts or {})["checkpoint"].completed == 8 * 4
    assert carried(result, "leaf3>h") > 8_000_000


def check_two_fabrics(result: Result) -> None:
    """The checkpoint goes through the front-end alone, gradients through the other."""
    lossless(result)
    assert (result.parts or {})["checkpoint"].completed == 8 * 4
    assert carried(result, "leaf3>h", "leaf4>h") > 8_000_000
    steps = [(step.end_ns or 0) - step.start_ns for step in result.steps or ()]
    assert steps[1] < 1.1 * min(steps[2:])


def check_dual_tor(result: Result) -> None:
    """A leaf dies, and the job is done all the same, by the other."""
    assert result.jct_ns is not None
    assert carried(result, "leaf2>h1") > 2 * carried(result, "leaf1>h1")


def check_dragonfly(result: Result) -> None:
    """Of each group the one cable that leads to the next carries everything."""
    lossless(result)
    full = ("leaf1>leaf6", "leaf4>leaf9", "leaf7>leaf12", "leaf10>leaf3")
    assert all(carried(result, link) > 3_000_000 for link in full)
    assert carried(result, "leaf2>leaf8", "leaf8>leaf2", "leaf5>leaf11", "leaf11>leaf5") < 500_000


def check_planes(result: Result) -> None:
    """Nothing is late for good, though ports and spines die."""
    assert (result.flows.failed, result.pfc.xoff_frames) == (0, 0)
    assert result.roce.retransmitted_packets >= 1


def check_victim_mrc(result: Result) -> None:
    assert result.drops.total == result.pfc.xoff_frames == 0


def check_congestion_signals(result: Result) -> None:
    lossless(result)
    assert result.roce.cnps == 0  # tags tell, and not marks
    (uplink,) = (u for u in result.links if u.name == "leaf1>spine1")
    assert 0.35 < uplink.utilisation < 0.6  # 10 MB in the time that h10's port takes for its 12


def check_path_trace(result: Result) -> None:
    lossless(result)
    assert result.telemetry is not None and result.telemetry.reports >= 5 * 98
    assert set(result.telemetry.by_switch) >= {"leaf1", "spine1", "spine2"}


def check_in_network_allreduce(result: Result) -> None:
    lossless(result)
    assert result.inc is not None
    assert result.inc.results == result.inc.parts == 8 * 1954
    assert result.inc.wrong_results == result.inc.without_result == 0


def check_delivery_modes(result: Result) -> None:
    """Whatever was lost had everything behind it sent again; by how much is for test_delivery."""
    assert result.roce.retransmitted_packets > result.drops.total > 0
    assert result.roce.data_packets == 7813 + result.roce.retransmitted_packets


def check_reliable_tree(result: Result) -> None:
    """Spoilt frames of one cable; no host sends a part again, and every sum is right."""
    check_in_network_allreduce(result)
    assert result.llr is not None and result.llr.spoilt_frames > 0


def check_scale_up(result: Result) -> None:
    lossless(result)
    assert result.roce.retransmitted_packets == result.roce.out_of_order_packets == 0
    assert result.credits is not None and result.credits.waits == 0


def check_encrypted(result: Result) -> None:
    lossless(result)
    assert result.security is not None
    assert (result.security.domains, result.security.rekeyed) == (2, 2)
    assert result.security.refused_packets == 0


def check_own_algorithm(result: Result) -> None:
    assert result.trim is not None and result.trim.cut_packets == result.roce.naks > 0


def check_joules(result: Result) -> None:
    assert result.energy is not None and result.energy.idle_share > 0.9


CHECKS: dict[str, Callable[[Result], None]] = {
    "bgp-clos": check_bgp_clos,
    "silent-failure": check_silent_failure,
    "leaf-restart": check_leaf_restart,
    "cluster-day": check_cluster_day,
    "hot-experts": check_hot_experts,
    "kv-cache": check_kv_cache,
    "checkpoint-burst": check_checkpoint_burst,
    "congestion-signals": check_congestion_signals,
    "dragonfly": check_dragonfly,
    "path-trace": check_path_trace,
    "in-network-allreduce": check_in_network_allreduce,
    "reliable-tree": check_reliable_tree,
    "joules": check_joules,
    "delivery-modes": check_delivery_modes,
    "scale-up": check_scale_up,
    "encrypted": check_encrypted,
    "own-algorithm": check_own_algorithm,
    "two-fabrics": check_two_fabrics,
    "dual-tor": check_dual_tor,
    "trim-incast": check_trim_incast,
    "pfc-or-trim": check_pfc_or_trim,
    "spray-permutation": check_trimming,
    "degraded-spray": check_trimming,
    "hello": check_hello,
    "incast": check_incast,
    "allreduce-ring": check_ring,
    "allreduce-tree": check_tree,
    "alltoall": check_alltoall,
    "hash-collision": check_hash_collision,
    "degraded-uplink": check_degraded_uplink,
    "oversubscription": check_oversubscription,
    "straggler": check_straggler,
    "lossy-link": check_lossy_link,
    "link-failure": check_link_failure,
    "victim-flow": check_victim_flow,
    "pfc-storm": check_pfc_storm,
    "deadlock": check_deadlock,
    "noisy-neighbour": check_noisy_neighbour,
    "north-south": check_north_south,
    "rails": check_rails,
    "two-elephants": check_two_elephants,
    "usid-steering": check_usid_steering,
    "evpn-tenants": check_evpn_tenants,
    "planes": check_planes,
    "path-health": check_planes,
    "victim-mrc": check_victim_mrc,
    "degraded-path": check_degraded_path,
    "training-gpt3": check_gpt3,
    "training-llama": check_training,
}


def test_none_is_forgotten() -> None:
    assert set(CHECKS) == set(shipped.names())


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ALWAYS else pytest.mark.slow)
        for name in shipped.names()
    ],
)
def test_runs_in_time_and_as_it_says(name: str, tmp_path: Path, own_cache: Path) -> None:
    if catalogue.load(name).control.kind == "bgp":
        needs_frr()
    began = time.monotonic()
    done = closlab("run", name, "--engine", "mininet", "--out", str(tmp_path))
    took_s = time.monotonic() - began
    assert (tmp_path / "result.json").exists(), done.stderr
    result = read_run(tmp_path).result
    assert took_s < MAX_S * slowness()
    assert result.ended is None
    assert result.flows.failed == 0
    CHECKS[name](result)
    assert list(own_cache.glob("*")) == []

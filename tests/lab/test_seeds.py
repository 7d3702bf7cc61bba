"""What seeds of chaos and of drawn fabrics found: each as small as it became, and mended since."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.tables import SwitchSite, needed_headroom
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from tests.lab import any_settings
from tests.lab.simulated import simulate_sparely

# Of a fabric that was drawn: four planes, by which a host's answers leave too.
PLANES = """\
name: planes-by-lot
topology: {kind: planes, planes: 4, leaves: 3, spines: 1, hosts_per_leaf: 3}
link: {rate_gbps: 100, mtu: 256, ip: 6, delay_ns: 20, fabric_rate_gbps: 25, fabric_delay_ns: 20,
  slow: {leaf7-spine3: 0.984}, llr: selective}
traffic: {kind: htsim, file: flows.cm, priority: 0}
ecn: {enabled: false}
pfc: {priorities: [0], response_ns: 10, watchdog_ns: 0, xon_gap: 719}
lb: {policy: conga}
transport: {kind: mrc, cc: none, entropy: reps, entropies: 128, window: 4096, timeout: 14}
buffer: {alpha: 0.0625, bytes: 144125}
seed: 4000511
"""
FLOWS = """\
Nodes 9
Connections 9
6->2 start 5000 size 100916
1->7 start 2000 size 75917
3->6 start 2722000 size 53134
6->3 start 1275000 size 42031
0->5 start 22000 size 13468
4->2 start 33000 size 77223
8->4 start 63000 size 49969
8->3 start 1977000 size 35129
3->8 start 2279000 size 144556
"""
TWO = "topology={kind: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2}"


def test_credit_comes_to_a_sender_whose_link_is_slower_than_its_peers(tmp_path: Path) -> None:
    """It begins with less than the receiver would, and has to be granted the difference too."""
    run = simulate_sparely(
        "hello",
        TWO,
        "link={mtu: 256, rate_gbps: 10, slow: {h2-leaf1: 0.6}}",
        "traffic={kind: incast, bytes: 23519}",
        "transport={kind: uet, cc: rccc, rto_ns: 200us}",
        out=tmp_path,
    )
    assert run.result.flows.completed == 1


def test_what_waits_for_credits_of_a_link_that_is_cut_lets_go_of_its_own(tmp_path: Path) -> None:
    """Held in a dead port's queue for ever it kept its host's credits, who had other ways to go."""
    run = simulate_sparely(
        "hello",
        "topology={kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}",
        "traffic={kind: incast, senders: 3, bytes: 1594KB}",
        "link.cbfc=true",
        "lb.policy=dlb",
        "transport={cc: dcqcn, rto_ns: 200us, retry_limit: 250}",
        "reroute_ns=20us",
        "faults=[{at_ns: 77us, action: down, link: leaf2-spine2}, "
        "{at_ns: 28us, action: restart, switch: leaf1}]",
        "limit_ns=60ms",
        "seed=700086",
        out=tmp_path,
    )
    assert run.result.flows.completed == 3


def test_what_a_watchdog_forwards_to_a_slow_adapter_is_its_price(tmp_path: Path) -> None:
    """It is deaf to the adapter's pauses by choice: nothing was computed too low."""
    run = simulate_sparely(
        "incast",
        "traffic.bytes=400KB",
        "pfc={watchdog_ns: 100us, watchdog_action: forward}",
        "transport={receive_gbps: {h1: 0.1}, receive_buffer: 14, retry_limit: 250, rto_ns: 200us}",
        "limit_ns=20ms",
        out=tmp_path,
    )
    price = run.result.drops.price
    assert run.result.pfc.storms
    assert run.result.fidelity.ok
    assert price and "no room in adapters: queues that were stuck went on" in price


def test_a_queue_let_go_waits_for_the_pauses_it_was_told(tmp_path: Path) -> None:
    """A restored queue sent into a pause in force, of which no frame had to come for long."""
    run = simulate_sparely(
        "hello",
        "topology={kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 4}",
        "link={rate_gbps: 25, delay_ns: 35876, fabric_delay_ns: 41}",
        "traffic={kind: mix, parts: [{kind: permutation, bytes: 1200KB, priority: 1},"
        " {kind: incast, senders: 6, receiver: h11, bytes: 488KB, priority: 0}]}",
        "pfc={priorities: [0, 1, 3], watchdog_ns: 100us}",
        "limit_ns=60ms",
        out=tmp_path,
    )
    assert run.result.pfc.storms
    assert "headroom_full" not in run.result.drops.by_reason
    assert run.result.fidelity.ok


def test_what_a_link_held_back_leaves_when_it_has_room_and_not_before(tmp_path: Path) -> None:
    """Behind a link that tried again packets left in the past, before others could hear of it."""
    run = simulate_sparely(
        "hello",
        "topology={kind: leaf-spine, leaves: 2, spines: 3, hosts_per_leaf: 1}",
        "traffic={kind: collective, op: all-to-all, bytes: 1951KB}",
        "lb.policy=dlb",
        "transport={recovery: selective, rto_ns: 200us, retry_limit: 250}",
        "pfc.watchdog_ns=1ms",
        "link.llr=selective",
        "reroute_ns=5us",
        "faults=[{at_ns: 56us, action: corrupt, link: leaf2-spine3, rate: 0.5, for_ns: 158us}, "
        "{at_ns: 23us, action: halt, host: h2, for_ns: 73us}]",
        "limit_ns=60ms",
        "seed=2000464",
        out=tmp_path,
    )
    assert run.result.flows.completed == 2


def test_what_is_let_go_by_a_dead_port_is_let_go_then(tmp_path: Path) -> None:
    """Words of credits for it left as early as it might have, had it not waited."""
    run = simulate_sparely(
        "hello",
        "topology={kind: leaf-spine, leaves: 4, spines: 2, hosts_per_leaf: 1}",
        "traffic={kind: incast, senders: 3, bytes: 2160KB}",
        "transport={cc: dcqcn, rto_ns: 200us, retry_limit: 250}",
        "pfc.watchdog_ns=1ms",
        "link.cbfc=true",
        "reroute_ns=50us",
        "faults=[{at_ns: 50us, action: restart, switch: leaf1}, "
        "{at_ns: 65us, action: down, link: leaf1-spine2, for_ns: 155us}]",
        "limit_ns=60ms",
        "seed=2000316",
        out=tmp_path,
    )
    assert run.result.flows.completed == 3


def test_an_answer_that_waits_for_its_port_hears_of_a_pause(tmp_path: Path) -> None:
    """Hosts with several ports handed answers over before theirs was free: dozens of them came
    after a pause, for which no headroom is."""
    (tmp_path / "planes.yaml").write_text(PLANES)
    (tmp_path / "flows.cm").write_text(FLOWS)
    run = simulate_sparely(str(tmp_path / "planes.yaml"), out=tmp_path / "out")
    assert run.result.flows.completed == 9
    assert run.result.drops.total == 0


def test_a_pause_lost_by_a_dead_cable_is_sent_again_when_it_is_up(tmp_path: Path) -> None:
    """A host did not hear for how long it was to be silent, and headroom was for one pause."""
    run = simulate_sparely(
        "hello",
        "topology={kind: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 2}",
        "traffic={kind: incast, senders: 5, bytes: 2060KB}",
        "lb.policy=conga",
        "transport={recovery: go-back-n, cc: none, rto_ns: 50us, retry_limit: 250}",
        "pfc.watchdog_ns=200ms",
        "reroute_ns=50us",
        "segments={enabled: true, policies: [{at: leaf2, to: leaf3, via: [[spine2]]}]}",
        "faults=[{at_ns: 140us, action: down, link: h5-leaf3, for_ns: 10us}]",
        "limit_ns=60ms",
        "seed=4000320",
        out=tmp_path,
    )
    assert "headroom_full" not in run.result.drops.by_reason
    assert run.result.fidelity.ok


def test_a_host_that_stands_still_hears_of_pauses(tmp_path: Path) -> None:
    """An adapter takes them itself. One that was lost meanwhile was sent again too late."""
    run = simulate_sparely(
        "hello",
        "topology={kind: leaf-spine, leaves: 3, spines: 2, hosts_per_leaf: 2}",
        "traffic={kind: incast, senders: 5, bytes: 2593KB}",
        "lb.policy=dlb",
        "transport={recovery: go-back-n, cc: none, rto_ns: 100us, retry_limit: 250}",
        "reroute_ns=5us",
        "pfc.watchdog_ns=100us",
        "link.llr=go-back-n",
        "limit_ns=60ms",
        "seed=5009038",
        "faults=[{at_ns: 103us, action: halt, host: h6, for_ns: 7us}]",
        out=tmp_path,
    )
    assert run.result.flows.completed == 5
    assert "headroom_full" not in run.result.drops.by_reason


def test_a_pause_waits_for_a_frame_at_the_rate_that_its_own_way_has(tmp_path: Path) -> None:
    """A host sent on at the link's whole rate while its leaf's way to it had a tenth of it."""
    changes = (
        "topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 3}",
        "link={rate_gbps: 50, mtu: 9000, delay_ns: 26}",
        "pfc={response_ns: 3, xon: 150}",
        "traffic={kind: incast, receiver: h4, senders: 3, bytes: 2MB}",
    )
    settings = Experiment.of(catalogue.load("hello", changes)).settings
    slow = "faults=[{at_ns: 5us, action: slow, link: h2-leaf1, share: 0.1, direction: down}]"
    experiment = Experiment.of(catalogue.load("hello", (*changes, slow)))
    fabric, leaf = experiment.fabric, experiment.fabric.node("leaf1")
    before, now = SwitchSite(fabric, leaf, settings), SwitchSite(fabric, leaf, experiment.settings)
    more = {
        str(now.ports[port]): needed_headroom(now, port) - needed_headroom(before, port)
        for port in now.ports
    }
    frame = settings.max_frame + 24
    assert more.pop("h2") == pytest.approx(9 * (frame + 84) * settings.max_frame / frame, abs=2)
    assert set(more.values()) == {0}
    any_settings.check(7004236, tmp_path)  # where one packet was lost

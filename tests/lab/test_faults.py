"""What happens to cables, in order, and when the controller has led everyone round it."""

from typing import Any

import pytest
from scapy.utils import rdpcap

from controller.routes import cable
from lab import scenario
from lab.faults import Replan, Turn, events_of
from tests.lab.simulated import simulate

MAC_CONTROL_PFC = bytes.fromhex("88080101")
DOWN = "{{at_ns: {at}, action: down, link: {link}}}"


def story(*faults: str, **changes: Any) -> list[tuple[int, str]]:
    """The events of these faults, as words."""
    settings = (f"faults=[{', '.join(faults)}]", *(f"{k}={v}" for k, v in changes.items()))
    chosen = scenario.load("hello", settings)
    fabric = chosen.topology.build()
    told = []
    for event in events_of(chosen, fabric):
        match event:
            case Turn(at_ns=at_ns, link=link, is_up=is_up):
                told.append((at_ns, f"{link.name} {'up' if is_up else 'down'}"))
            case Replan(at_ns=at_ns, dead=dead, losses=losses):
                names = sorted(link.name for link in fabric.links if cable(link.a, link.b) in dead)
                rates = "".join(f", {loss.switch} loses {loss.share:.0%}" for loss in losses)
                told.append((at_ns, f"round {' and '.join(names) or 'nothing'}{rates}"))
    return told


def test_a_dead_cable_is_led_round_after_a_while() -> None:
    fault = DOWN.format(at=1000, link="leaf1-spine1")
    assert story(fault) == [(1000, "leaf1-spine1 down")]
    assert story(fault, reroute_ns=50) == [
        (1000, "leaf1-spine1 down"),
        (1050, "round leaf1-spine1"),
    ]


def test_one_that_flaps_is_led_round_and_taken_back() -> None:
    flap = "{at_ns: 1000, action: down, link: leaf1-spine1, for_ns: 200}"
    assert story(flap, reroute_ns=50) == [
        (1000, "leaf1-spine1 down"),
        (1050, "round leaf1-spine1"),
        (1200, "leaf1-spine1 up"),
        (1250, "round nothing"),
    ]


def test_several_at_once_are_one_repair_and_what_was_dead_is_known_at_once() -> None:
    faults = [DOWN.format(at=0, link=f"leaf{leaf}-spine2") for leaf in (1, 2)]
    faults.append(DOWN.format(at=10, link="leaf3-spine1"))
    assert story(*faults, reroute_ns=100) == [
        (0, "leaf1-spine2 down"),
        (0, "leaf2-spine2 down"),
        (0, "round leaf1-spine2 and leaf2-spine2"),
        (10, "leaf3-spine1 down"),
        (110, "round leaf1-spine2 and leaf2-spine2 and leaf3-spine1"),
    ]


def test_nobody_is_led_round_a_hosts_only_cable() -> None:
    assert story(DOWN.format(at=5, link="h1-leaf1"), reroute_ns=1) == [(5, "h1-leaf1 down")]


def test_a_link_loses_packets_for_a_while() -> None:
    """Both ways, beside what is usual, and not at the price of what is known to be dead."""
    lose = "{at_ns: 30, action: lose, link: leaf1-spine2, rate: 0.5, for_ns: 100}"
    down = DOWN.format(at=10, link="leaf2-spine1")
    assert story(lose, down, reroute_ns=50) == [
        (10, "leaf2-spine1 down"),
        (30, "round nothing, leaf1 loses 50%, spine2 loses 50%"),
        (60, "round leaf2-spine1, leaf1 loses 50%, spine2 loses 50%"),
        (130, "round leaf2-spine1"),
    ]
    usual = {"loss.rate": 0.25, "loss.links": "[leaf1-spine2]"}
    assert story(lose, **usual) == [
        (30, "round nothing, leaf1 loses 50%, spine2 loses 50%"),
        (130, "round nothing, leaf1 loses 25%, spine2 loses 25%"),
    ]


def test_what_is_lost_meanwhile_is_sent_again(tmp_path: Any) -> None:
    lose = "faults=[{at_ns: 100us, action: lose, link: h1-leaf1, rate: 0.2, for_ns: 100us}]"
    result = simulate("lossy-link", lose, "loss.rate=0", out=tmp_path).result
    assert result.flows.failed == 0
    # 100 us at 100 Gb/s are some 300 packets each way, and go-back-n sends in bursts.
    assert 5 < result.drops.by_reason["injected_loss"] < 150
    assert set(result.drops.by_reason) == {"injected_loss"}
    assert result.drops.by_switch == {"leaf1": result.drops.total}


def test_a_link_that_flaps_carries_again(tmp_path: Any) -> None:
    """After the repair is undone, the link that was cut is used as before."""
    flap = "faults=[{at_ns: 100us, action: down, link: leaf1-spine1, for_ns: 200us}]"
    run = simulate("link-failure", flap, "reroute_ns=100us", out=tmp_path)
    assert run.result.flows.failed == 0
    cut = simulate("link-failure", "reroute_ns=100us", out=tmp_path / "cut")
    name = "leaf1>spine1"
    assert run.links(name)[name] > 2 * cut.links(name)[name]


def test_pauses_of_a_storm_come_when_they_should(tmp_path: Any) -> None:
    """One each half of the longest pause, from the beginning to the end, and none besides."""
    storm = "faults=[{at_ns: 100us, action: storm, host: h1, for_ns: 1ms}]"
    run = simulate("pfc-storm", storm, out=tmp_path, pcap=("h1-leaf1",))
    sent = rdpcap(str(tmp_path / "pcaps" / "h1-leaf1.pcap"))
    frames = [round(float(p.time) * 1e9) for p in sent if bytes(p)[12:16] == MAC_CONTROL_PFC]
    longest_ns = 0xFFFF * 64 * 8 / 100
    assert len(frames) == pytest.approx(1_000_000 / (longest_ns / 2), abs=1)
    assert frames[0] == pytest.approx(101_000, abs=2000)  # and the cable's delay
    assert frames[-1] < 1_102_000
    assert run.result.flows.failed == 0

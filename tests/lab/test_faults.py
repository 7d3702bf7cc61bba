"""What happens to cables, in order, and when the controller has led everyone round it."""

from pathlib import Path
from typing import Any

import pytest
from scapy.utils import rdpcap

from controller import switch_plans
from lab.runs.run import UNBELIEVED
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.faults import (
    Agenda,
    Halt,
    Pace,
    Replan,
    Restart,
    Spoil,
    Turn,
    events_of,
    fault_notes,
    reroutes,
)
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate_sparely
from views.report import read_run

MAC_CONTROL_PFC = bytes.fromhex("88080101")
DOWN = "{{at_ns: {at}, action: down, link: {link}}}"


def story(*faults: str, **changes: Any) -> list[tuple[int, str]]:
    """The events of these faults, as words."""
    settings = (f"faults=[{', '.join(faults)}]", *(f"{k}={v}" for k, v in changes.items()))
    chosen = catalogue.load("hello", settings)
    fabric = chosen.topology.build()
    words = []
    for event in events_of(chosen, fabric):
        match event:
            case Turn(at_ns=at_ns, link=link, is_up=is_up):
                words.append((at_ns, f"{link.name} {'up' if is_up else 'down'}"))
            case Spoil(at_ns=at_ns, link=link, chances=chances):
                words.append((at_ns, f"{link.name} {chances}"))
            case Restart(at_ns=at_ns, switch=switch):
                words.append((at_ns, f"{switch} restarts"))
            case Halt(at_ns=at_ns, host=host, is_halted=is_halted, for_good=for_good):
                how = "for good" if for_good else "halts" if is_halted else "goes on"
                words.append((at_ns, f"{host or 'collector'} {how}"))
            case Pace(at_ns=at_ns, link=link, share=share, senders=senders):
                ways = " and ".join(link.direction(sender) for sender in senders)
                words.append((at_ns, f"{ways} at {share:.0%}"))
            case Replan(at_ns=at_ns, dead=dead, slowed=slowed, losses=losses):
                names = sorted(dead)
                known = "".join(f", {way} at {share:.0%}" for way, share in slowed.items())
                rates = "".join(f", {loss.switch} loses {loss.share:.0%}" for loss in losses)
                words.append((at_ns, f"round {' and '.join(names) or 'nothing'}{known}{rates}"))
    return words


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


def test_a_cable_spoils_as_all_faults_of_its_own_say() -> None:
    corrupt = "{at_ns: 5, action: corrupt, link: leaf1-spine1, rate: 0.1, for_ns: 10}"
    double = "{at_ns: 8, action: duplicate, link: leaf1-spine1, rate: 0.2}"
    assert story(corrupt, double) == [
        (5, "leaf1-spine1 {'corrupt': 0.1}"),
        (8, "leaf1-spine1 {'corrupt': 0.1, 'duplicate': 0.2}"),
        (15, "leaf1-spine1 {'corrupt': 0.0, 'duplicate': 0.2}"),
    ]


def test_a_switch_starts_again_and_is_told_anew() -> None:
    restart = "{at_ns: 100, action: restart, switch: leaf2}"
    assert story(restart) == [(100, "leaf2 restarts")]
    assert story(restart, reroute_ns=50) == [(100, "leaf2 restarts"), (150, "round nothing")]


def test_who_halts_goes_on_unless_it_is_for_good() -> None:
    host = "{at_ns: 10, action: halt, host: h2, for_ns: 5}"
    collector = "{at_ns: 12, action: halt, part: collector}"
    assert story(host, collector) == [
        (10, "h2 halts"),
        (12, "collector for good"),
        (15, "h2 goes on"),
    ]


def test_what_a_controller_misses_it_does_once_it_is_back() -> None:
    """The last word counts; and of one that is gone for good nothing more is heard."""
    flap = "{at_ns: 1000, action: down, link: leaf1-spine1, for_ns: 200}"
    later = "{at_ns: 1100, action: down, link: leaf1-spine2}"
    away = "{at_ns: 900, action: halt, part: controller, for_ns: 2000}"
    gone = "{at_ns: 900, action: halt, part: controller}"
    cables = [(1000, "leaf1-spine1 down"), (1100, "leaf1-spine2 down"), (1200, "leaf1-spine1 up")]
    assert story(flap, later, away, reroute_ns=50) == [*cables, (2900, "round leaf1-spine2")]
    assert story(flap, later, gone, reroute_ns=50) == cables


def test_a_job_outlives_a_restart_and_is_told_of_a_dead_host(tmp_path: Path) -> None:
    """After the restart the leaf forwards again; without its host a job fails, and says so."""
    ring = ("transport.rto_ns=200us", "reroute_ns=20us", "traffic.bytes=1MB")
    again = simulate_sparely(
        "allreduce-ring", *ring, "faults=[{at_ns: 30us, action: restart, switch: leaf1}]",
        out=tmp_path / "again",
    )  # fmt: skip
    assert again.result.flows.failed == 0
    assert again.result.drops.by_reason["no_route"], again.result.drops
    dead = simulate_sparely(
        "allreduce-ring", *ring, "faults=[{at_ns: 30us, action: halt, host: h2}]",
        out=tmp_path / "dead",
    )  # fmt: skip
    assert dead.result.ended
    assert dead.result.drops.by_reason["host_halted"]
    assert dead.result.roce.qp_errors


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


SLOW_TURNS = ((100_000, "25%"), (300_000, "100%"))
SLOW = "{at_ns: 100us, action: slow, link: leaf1-spine1, share: 0.25, for_ns: 200us}"


def test_a_link_is_slow_for_a_while_and_the_controller_hears_of_it_if_ever() -> None:
    ways = ("leaf1>spine1", "spine1>leaf1")
    turns = [(at, f"{' and '.join(ways)} at {share}") for at, share in SLOW_TURNS]
    assert story(SLOW) == turns
    assert story(SLOW, reroute_ns=50) == [
        turns[0],
        (100_050, "round nothing, leaf1>spine1 at 25%, spine1>leaf1 at 25%"),
        turns[1],
        (300_050, "round nothing, leaf1>spine1 at 100%, spine1>leaf1 at 100%"),
    ]


@pytest.mark.parametrize(
    ("direction", "way", "where"),
    [("up", "leaf1>spine1", "away from"), ("down", "spine1>leaf1", "towards")],
)
def test_a_link_may_be_slow_one_way_alone(direction: str, way: str, where: str) -> None:
    slow = SLOW.replace("}", f", direction: {direction}}}")
    turns = [(at, f"{way} at {share}") for at, share in SLOW_TURNS]
    heard = [(at + 50, f"round nothing, {way} at {share}") for at, share in SLOW_TURNS]
    assert story(slow) == turns
    assert story(slow, reroute_ns=50) == [turns[0], heard[0], turns[1], heard[1]]
    scenario = catalogue.load("hello", (f"faults=[{slow}]", "reroute_ns=50"))
    assert next(fault_notes(scenario)).what == f"leaf1-spine1 slow {where} hosts"
    assert [each.what for each in reroutes(scenario, scenario.topology.build())] == [
        "routes know of leaf1-spine1"
    ] * 2


def test_what_the_controller_hears_of_changes_paths_and_loads_but_no_headroom() -> None:
    """The link may have all of its rate again sooner than anyone hears of it."""
    slow = (f"faults=[{SLOW}]", "reroute_ns=50", "lb.policy=dlb")
    experiment = Experiment.of(catalogue.load("allreduce-ring", slow))
    fabric, settings = experiment.fabric, experiment.settings
    agenda = Agenda(experiment.scenario, fabric)
    _, news = agenda.due(100_050)
    assert isinstance(news, Replan)
    before = switch_plans(fabric, settings)["leaf1"]
    after = switch_plans(fabric, news.applied(settings), news.dead)["leaf1"]
    changed = {type(e).__name__ + getattr(e, "table", "") for e in set(after) ^ set(before)}
    assert any("link_loads" in name for name in changed)
    assert not any("buffer_profiles" in name or "pause" in name for name in changed)


@pytest.mark.parametrize("link", ["h1-leaf1", "leaf1-spine1", "h8-leaf4"])
def test_a_slow_link_takes_as_long_as_its_rate_says(tmp_path: Any, link: str) -> None:
    """Of three megabytes one goes out before, and the rest at a quarter of the rate."""
    one = "traffic={kind: flows, flows: [{src: h1, dst: h8, bytes: 3MB}]}"
    only = ("topology.spines=1", one, "link.delay_ns=0", "ecn.enabled=false")
    slow = "faults=[{at_ns: 86us, action: slow, link: %s, share: 0.25%s}]"
    data, answers = ("down", "up") if link.startswith("h8") else ("up", "down")
    took = {}
    for name, faults in (
        ("whole", "faults=[]"),
        ("slow", slow % (link, "")),
        ("back", slow % (link, ", for_ns: 80us")),
        ("one way", slow % (link, f", direction: {data}")),
        ("other way", slow % (link, f", direction: {answers}")),
    ):
        result = simulate_sparely("allreduce-ring", *only, faults, out=tmp_path / name).result
        assert result.flows.failed == result.drops.total == 0
        took[name] = result.duration_ns
    whole = took["whole"]
    assert took["slow"] == pytest.approx(86_000 + 4 * (whole - 86_000), rel=0.02)
    assert took["back"] == pytest.approx(whole + 0.75 * 80_000, rel=0.02)
    assert took["one way"] == pytest.approx(took["slow"], rel=0.001)
    assert took["other way"] == pytest.approx(whole, rel=0.001)


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
@pytest.mark.parametrize(
    ("link", "other"),
    [
        ("leaf1-spine1", "leaf4-spine1"),
        pytest.param("h1-leaf1", "h8-leaf4", marks=pytest.mark.slow),
    ],
)
def test_on_mininet_a_link_is_slow_for_as_long_and_by_as_much(
    tmp_path: Path, link: str, other: str
) -> None:
    """And one way alone: of the other link only answers would notice."""
    slow = "{at_ns: 40us, action: slow, direction: up, for_ns: 150us"
    changes = [
        "topology.spines=1",
        "traffic={kind: flows, flows: [{src: h1, dst: h8, bytes: 1500KB}]}",
        f"faults=[{slow}, link: {link}, share: 0.25}}, {slow}, link: {other}, share: 0.1}}]",
        "reroute_ns=20us",
    ]
    simulated = simulate_sparely("allreduce-ring", *changes, out=tmp_path / "sim").result
    words = [word for change in changes for word in ("--set", change)]
    done = closlab("run", "allreduce-ring", *words, "--out", str(tmp_path / "mininet"))
    emulated = read_run(tmp_path / "mininet").result
    if done.returncode == UNBELIEVED:  # others were busy, less than is noticed: in slower motion
        words += ["--dilation", str(10 * round(emulated.dilation))]
        done = closlab("run", "allreduce-ring", *words, "--out", str(tmp_path / "mininet"))
        emulated = read_run(tmp_path / "mininet").result
    assert done.returncode == 0, done.stderr
    assert emulated.duration_ns == pytest.approx(simulated.duration_ns, rel=0.1)
    assert emulated.drops.total == 0


def test_what_is_lost_meanwhile_is_sent_again(tmp_path: Any) -> None:
    lose = "faults=[{at_ns: 100us, action: lose, link: h1-leaf1, rate: 0.2, for_ns: 100us}]"
    result = simulate_sparely("lossy-link", lose, "loss.rate=0", out=tmp_path).result
    assert result.flows.failed == 0
    # 100 us at 100 Gb/s are some 300 packets each way, and go-back-n sends in bursts.
    assert 5 < result.drops.by_reason["injected_loss"] < 150
    assert set(result.drops.by_reason) == {"injected_loss"}
    assert result.drops.by_switch == {"leaf1": result.drops.total}


def test_a_link_that_flaps_carries_again(tmp_path: Any) -> None:
    """After the repair is undone, the link that was cut is used as before."""
    flap = "faults=[{at_ns: 100us, action: down, link: leaf1-spine1, for_ns: 200us}]"
    run = simulate_sparely("link-failure", flap, "reroute_ns=100us", out=tmp_path)
    assert run.result.flows.failed == 0
    cut = simulate_sparely("link-failure", "reroute_ns=100us", out=tmp_path / "cut")
    name = "leaf1>spine1"
    assert run.links(name)[name] > 2 * cut.links(name)[name]


def test_pauses_of_a_storm_come_when_they_should(tmp_path: Any) -> None:
    """One each half of the longest pause, from the beginning to the end, and none besides."""
    storm = "faults=[{at_ns: 100us, action: storm, host: h1, for_ns: 1ms}]"
    run = simulate_sparely("pfc-storm", storm, "measures.pcap=[h1-leaf1]", out=tmp_path)
    sent = rdpcap(str(tmp_path / "pcaps" / "h1-leaf1.pcap"))
    frames = [round(float(p.time) * 1e9) for p in sent if bytes(p)[12:16] == MAC_CONTROL_PFC]
    longest_ns = 0xFFFF * 64 * 8 / 100
    assert len(frames) == pytest.approx(1_000_000 / (longest_ns / 2), abs=1)
    assert frames[0] == pytest.approx(101_000, abs=2000)  # and the cable's delay
    assert frames[-1] < 1_102_000
    assert run.result.flows.failed == 0

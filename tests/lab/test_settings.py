"""What switches are told of a scenario: how long frames can get."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller import Settings
from controller.tables import SwitchSite, pool_of
from lab.engines.mininet.switches.bmv2 import Bmv2Switches
from lab.engines.mininet.switches.soft import SoftSwitches
from lab.errors import RunError, ScenarioError
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.translate import controller_settings
from params.link import LinkLevel, Replay
from params.schedule import Schedule
from tests.fabric.runs import CAPTURED, Place, Runner


@pytest.mark.by_day(6)
@pytest.mark.parametrize(
    "topology",
    [
        "{kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 1}",
        "{kind: fat-tree, k: 4}",
    ],
)
@pytest.mark.parametrize("ip", [4, 6])
@pytest.mark.parametrize(
    "change",
    ["int.share=1", "transport.cc=hpcc", "transport.cc=powertcp", "pfc.enabled=true"],
    ids=str,
)
def test_the_longest_frame_is_known_to_the_byte(
    topology: str, change: str, ip: int, tmp_path: Path
) -> None:
    """A packet that is a whole message, under conga, from one end of the fabric to the other."""
    changes = (f"topology={topology}", "lb.policy=conga", f"link.ip={ip}", change, CAPTURED)
    last = Experiment.of(catalogue.load("hello", changes)).fabric.hosts[-1]
    flow = f"traffic={{kind: flows, flows: [{{src: h1, dst: {last}, bytes: 4096}}]}}"
    run = Runner(Place.SIM, tmp_path)("hello", *changes, flow)
    longest = run.longest_frame
    most = run.experiment.settings.max_frame
    assert longest == most if "int" in change else longest < most


def test_what_adapters_say_themselves_goes_where_the_control_class_is() -> None:
    """CNPs, and acknowledgements that are to travel there, with whatever DSCP leads to class 6."""
    moved = "classes.dscp={48: 0, 57: 6}"
    for change in ("transport.cc=dcqcn", "transport.acks=control"):
        experiment = Experiment.of(catalogue.load("incast", (moved, change)))
        lines = experiment.plan(0, carries_payload=False).lines()
        pairs = [line for line in lines if line.startswith("qp ")]
        tos = {bytes.fromhex(line.rsplit("control=", 1)[1])[15] for line in pairs}
        assert tos == {57 << 2 | 2}  # ECN-capable


@pytest.mark.parametrize("priority", [0, 3, 6])
def test_notifications_travel_in_the_class_that_they_are_told(priority: int) -> None:
    """Their DSCP leads there, and their adapter holds them while that class is paused."""
    changes = ("transport.cc=dcqcn", f"transport.cnp_priority={priority}")
    experiment = Experiment.of(catalogue.load("incast", changes))
    lines = [*experiment.plan(0, carries_payload=False).lines()]
    pairs = [line for line in lines if line.startswith("qp ")]
    dscps = {bytes.fromhex(line.rsplit("control=", 1)[1])[15] >> 2 for line in pairs}
    assert {experiment.settings.dscp_priorities.get(dscp, 0) for dscp in dscps} == {priority}
    assert (f" control-priority={priority} " in lines[0]) == (priority != 6)


def test_no_class_is_chosen_for_notifications_that_nobody_sends() -> None:
    with pytest.raises(ScenarioError, match=r"transport.cnp_priority: there are no CNPs with"):
        catalogue.load("incast", ("transport.cc=hpcc", "transport.cnp_priority=3"))


@pytest.mark.parametrize(
    ("changes", "priority"),
    [
        (("classes.dscp={26: 0}",), 3),
        (("classes.dscp={48: 5}", "transport.cc=dcqcn"), 6),
        (("classes.dscp={48: 5}", "transport.acks=control"), 6),
    ],
)
def test_a_class_that_no_packet_can_have_is_named(changes: tuple[str, ...], priority: int) -> None:
    with pytest.raises(ScenarioError, match=f"no DSCP leads to priority {priority}; give it one"):
        Experiment.of(catalogue.load("incast", changes))


def test_a_buffer_is_held_against_links_as_slow_as_they_are() -> None:
    """A quarter of the rate needs less headroom: what is enough for that is not refused."""
    changes = ["topology.spines=1", "link.delay_ns=20us"]
    slow = "link.slow={leaf1-spine1: 0.1, leaf2-spine1: 0.1, leaf3-spine1: 0.1, leaf4-spine1: 0.1}"
    changes += ["topology.hosts_per_leaf=1", "link.rate_gbps=10", "link.fabric_rate_gbps=100"]
    roomy = Experiment.of(catalogue.load("incast", (*changes, slow, "buffer.bytes=1GB")))
    needed = max(
        10**9 - pool_of(SwitchSite(roomy.fabric, switch, roomy.settings))
        for switch in roomy.fabric.switches
    )
    enough = f"buffer.bytes={needed + 2 * roomy.settings.max_frame}"
    catalogue.load("incast", (*changes, slow, enough))
    with pytest.raises(ScenarioError, match="too small"):
        catalogue.load("incast", (*changes, enough))


def test_bmv2_refuses_a_schedule_that_it_cannot_keep() -> None:
    plain, *kinds = (
        Settings(schedule=schedule)
        for schedule in (
            Schedule(),
            Schedule(kind="ets", weights={3: 1}),
            Schedule(shape={3: 1}),
            Schedule(port_gbps=1),
        )
    )
    assert Bmv2Switches.configured(plain, 1000).control_queue == 0
    for settings in kinds:
        with pytest.raises(RunError, match="BMv2 serves queues strictly"):
            Bmv2Switches.configured(settings, 1000)


def test_mininet_says_that_its_hosts_send_no_frame_again() -> None:
    settings = Settings(link=LinkLevel(llr=Replay.SELECTIVE, llr_hosts=True))
    with pytest.raises(RunError, match=r"link\.llr_hosts: hosts of Mininet") as refused:
        SoftSwitches.configured(settings, 1000)
    assert "--engine sim" in refused.value.cure


def test_a_schedule_becomes_what_switches_are_told() -> None:
    changes = ("schedule={kind: dwrr, weights: {3: 3}, shape: {0: 40}, port_gbps: 80, burst: 0}",)
    schedule = settings_of("hello", changes).schedule
    assert schedule.shares == {0: 1, 1: 1, 2: 1, 3: 3, 4: 1, 5: 1}
    assert schedule.limits == {0: 40 * 10**9}
    assert (schedule.port_limit, schedule.burst) == (80 * 10**9, 0)
    for wrong, complaint in (
        ("kind: strict, weights: {3: 1}", "give a kind"),
        ("kind: ets", "ets needs weights"),
        ("kind: ets, strict: [3], weights: {3: 1}", "is strict and has a weight"),
        ("kind: ets, weights: {7: 1}", "schedule.weights"),
    ):
        with pytest.raises(ScenarioError, match=complaint):
            settings_of("hello", (f"schedule={{{wrong}}}",))


def settings_of(name: str, changes: tuple[str, ...] = ()) -> Settings:
    scenario = catalogue.load(name, changes)
    return controller_settings(scenario, scenario.topology.build())


@pytest.mark.parametrize("most", [1, 3, 4, 16])
def test_channels_share_queue_pairs_in_turn(most: int) -> None:
    """As many as are told at most, alike at both ends, and all of a channel's messages by one."""
    channels = 8
    changes = f"traffic.channels={channels}", f"transport.queue_pairs={most}"
    experiment = Experiment.of(catalogue.load("allreduce-ring", changes))
    plans = [[*experiment.plan(rank, carries_payload=False).lines()] for rank in range(2)]
    qp_lines = [[dict(_words(line)) for line in plan if line.startswith("qp ")] for plan in plans]
    pairs = [{(pair["number"], pair["remote"]) for pair in each} for each in qp_lines]
    between = pairs[0] & {(remote, number) for number, remote in pairs[1]}
    assert len(between) == min(most, channels)
    assert len(pairs[0]) == 2 * len(between)  # from the host before as well
    carried: dict[str, set[int]] = {}
    for line in plans[0]:
        if line.startswith("send "):
            send = dict(_words(line))
            carried.setdefault(send["qp"], set()).add(experiment.schedule.channel[int(send["id"])])
    flows = sorted(sorted(each) for each in carried.values())
    assert flows == sorted(
        list(range(first, channels, most)) for first in range(min(most, channels))
    )


def _words(line: str) -> Iterator[tuple[str, str]]:
    """The keys of a plan's line."""
    for word in line.split()[1:]:
        key, _, value = word.partition("=")
        yield key, value


def test_a_scenario_goes_from_process_to_process_whole() -> None:
    """Sweeps hand scenarios and results to processes of their own."""
    changes = ("transport.dcqcn=mlx5", "transport.timely.beta=0.5")
    scenario = catalogue.load("incast", ("transport.cc=timely", *changes))
    assert pickle.loads(pickle.dumps(scenario)) == scenario

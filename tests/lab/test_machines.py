"""One emulated run on several machines: ``closlab run --machines FILE``, and the ``closlab part``
that it starts on each.

Machines are network namespaces (machines_here.py). What a run comes to there is held against the
simulator, which knows nothing of machines.
"""

import pickle
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from lab.engines import RunOptions
from lab.engines.mininet.endpoints import Doubts, Measured
from lab.errors import LabError, RunError
from lab.results.outcome import MachinesNote, Outcome
from lab.runs.machines.containers import MAKERS
from lab.runs.machines.file import read
from lab.runs.machines.lead import check_shareable, shares
from lab.runs.machines.line import packed, unpacked
from lab.runs.machines.merging import merged
from lab.scenario.catalogue import load
from lab.scenario.experiment import Experiment
from tests.lab.conftest import closlab
from tests.lab.machines_here import on_machines
from tests.lab.simulated import simulate
from topologies import fat_tree, leaf_spine

SMALL = "topology.leaves=2", "traffic.bytes=100KB"
NOTHING_APART = MachinesNote({}, (), 0.0, 0.0, {})
QUIET = Doubts(0, 0, {})


def words(*changes: str) -> list[str]:
    """A scenario with changes, as a command names it."""
    return ["incast", *(word for change in changes for word in ("--set", change))]


# --- on machines ----------------------------------------------------------------------------------


@pytest.mark.mininet
@pytest.mark.clock
def test_an_incast_over_two_machines_loses_nothing_and_takes_what_it_takes(tmp_path: Path) -> None:
    found = on_machines(2, *words(*SMALL), "--dilation", "12000")
    result, alone = found["result"], simulate("incast", *SMALL, out=tmp_path).result
    assert result, found["said"]
    assert found["left"] == []
    assert result["flows"]["completed"] == alone.flows.completed == 3
    assert result["roce"]["data_bytes"] == alone.roce.data_bytes
    assert result["drops"]["total"] == result["roce"]["retransmitted_packets"] == 0
    # leaf1 is on the first machine, spine2 on the second, which it has stand still.
    assert result["machines"]["cables"] == ["leaf2-spine1", "leaf1-spine2"]
    assert result["pfc"]["by_link"]["spine2>leaf1"]["xoff_frames"] > 0
    assert result["pfc"]["by_link"]["spine2>leaf1"]["paused_ns"] > 0
    if result["fidelity"]["ok"]:
        assert alone.flows.fct_ns is not None
        times = result["flows"]["fct_ns"]["max"] / alone.flows.fct_ns.max
        assert 0.9 < times < 1.1


@pytest.mark.mininet
@pytest.mark.slow
def test_three_machines_are_as_good_as_two() -> None:
    found = on_machines(3, *words("traffic.bytes=100KB"), "--dilation", "12000")
    result = found["result"]
    assert result, found["said"]
    assert found["left"] == []
    assert result["flows"]["completed"] == 7
    assert result["roce"]["data_bytes"] == 700_000
    assert result["drops"]["total"] == 0
    assert len(result["machines"]["switches"]) == 3


@pytest.mark.mininet
@pytest.mark.slow
@pytest.mark.parametrize("signal", ["kill", "interrupt", "abandon"])
def test_who_ends_one_ends_all_and_leaves_nothing(signal: str) -> None:
    run = words("topology.leaves=2", "traffic.bytes=1MB")
    found = on_machines(2, *run, "--dilation", "20000", **{signal: 0.3})
    assert found["left"] == []
    if signal == "kill":
        assert found["code"] == 1
        assert "machine m2: its part of the run ended (SIGKILL)" in found["said"]
    elif signal == "abandon":
        assert found["code"] == -9
    else:
        assert found["code"] == 130
        assert found["result"]["ended"] == "interrupted"


@pytest.mark.mininet
@pytest.mark.slow
def test_datagrams_are_not_given_up_by_a_machine_that_none_of_them_comes_to() -> None:
    long = "traffic={kind: flows, flows: [{src: h1, dst: h2, bytes: 1200KB}]}"
    run = words("topology.leaves=2", long, "transport={kind: uet, delivery: uud}")
    result = on_machines(2, *run, "--dilation", "90000")["result"]
    assert "ended" not in result
    assert result["flows"]["completed"] == 1


@pytest.mark.mininet
@pytest.mark.slow
@pytest.mark.clock
@pytest.mark.parametrize("drift", [2e-4, 0.04])
def test_clocks_that_are_far_apart_and_drift_are_told_how_well_they_agree(
    drift: float, tmp_path: Path
) -> None:
    """One is a day ahead. What it drifts by in a run is either little, or makes it not believed."""
    clocks = [(0, -drift), (86_400, drift)]
    found = on_machines(2, *words(*SMALL), "--dilation", "12000", clocks=clocks)
    result, alone = found["result"], simulate("incast", *SMALL, out=tmp_path).result
    assert result, found["said"]
    assert result["flows"]["completed"] == 3
    assert result["drops"]["total"] == result["roce"]["retransmitted_packets"] == 0
    assert result["machines"]["clock_error_ns"] > 2 * drift * result["duration_ns"]
    assert alone.flows.fct_ns is not None
    if drift == 2e-4 and result["fidelity"]["ok"]:
        assert 0.9 < result["flows"]["fct_ns"]["max"] / alone.flows.fct_ns.max < 1.1
    if drift == 0.04:
        assert not result["fidelity"]["ok"]
        assert "clocks of machines pass unlike" in result["fidelity"]["note"]
    assert found["left"] == []


@pytest.mark.mininet
@pytest.mark.slow
def test_frames_that_the_network_between_loses_are_told() -> None:
    # It ends before the time-out of who waits for what was lost.
    run = words(*SMALL, "limit_ns=200000")
    found = on_machines(2, *run, "--dilation", "12000", loss=0.1, seed=3)
    fidelity = found["result"]["fidelity"]
    assert not fidelity["ok"]
    assert "frames were lost" in fidelity["note"]
    assert "from machine m" in fidelity["note"]
    assert found["left"] == []


@pytest.mark.mininet
@pytest.mark.slow
def test_who_leads_hears_that_all_wait_for_what_was_lost() -> None:
    said = "machine m1: Nothing has come to any host for"
    found = on_machines(2, *words(*SMALL), "--dilation", "12000", loss=0.3, interrupt=0, once=said)
    assert said in " ".join(found["said"].split())
    assert found["code"] == 130
    assert found["left"] == []


@pytest.mark.mininet
@pytest.mark.slow
def test_a_network_that_is_too_slow_for_the_cables_is_told_and_how_slow_is_right() -> None:
    found = on_machines(2, *words(*SMALL), "--dilation", "4000", delay_ms=20)
    fidelity = found["result"]["fidelity"]
    assert not fidelity["ok"]
    assert "by the way between its machines" in fidelity["note"]
    assert int(fidelity["note"].rpartition("--dilation ")[2]) * 1_000 >= 20e6  # a cable's 1 us
    assert found["result"]["machines"]["longer_ns"]["leaf1-spine2"] >= 3_900
    assert found["left"] == []


@pytest.mark.mininet
@pytest.mark.slow
def test_a_network_whose_packets_are_too_short_is_refused() -> None:
    found = on_machines(2, *words(*SMALL), mtu=1500)
    assert found["code"] == 1
    assert "its MTU (1,500) does not let" in found["said"]
    assert "link.mtu=1024" in found["said"]
    assert found["left"] == []


# --- what is shared out, and put together again ---------------------------------------------------


@pytest.mark.parametrize("machines", [1, 2, 3, 4])
def test_every_node_is_on_one_machine_and_hosts_are_where_their_leaf_is(machines: int) -> None:
    for fabric in (leaf_spine(4, 2, 2), leaf_spine(2, 2, 2), fat_tree(4)):
        names = [f"m{number}" for number in range(machines)]
        parts = shares(fabric, names)
        nodes = [node for part in parts.values() for node in part]
        assert sorted(nodes) == sorted((*fabric.hosts, *fabric.switches))
        for part in parts.values():
            here = fabric.part(part)
            assert here.switches
            assert {*here.hosts} == {host for host in fabric.hosts if fabric.leaf_of(host) in part}
            assert all(link.a in part and link.b in part for link in here.links)
            assert all(here.ports(node) == fabric.ports(node) for node in here.switches)


def test_more_machines_than_switches_are_refused() -> None:
    with pytest.raises(RunError, match="3 switches are not enough for 4 machines"):
        shares(leaf_spine(2, 1, 1), ["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        (("control.kind=bgp",), "control.kind=bgp"),
        (("faults=[{at_ns: 1000, link: leaf1-spine1, action: down}]",), "faults"),
        (("measures.pcap=[all]",), "--pcap"),
    ],
)
def test_what_one_machine_knows_alone_is_refused_by_name(
    changes: tuple[str, ...], what: str, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match=what):
        check_shareable(load("incast", changes), RunOptions(out=tmp_path))


def parts_of(experiment: Experiment, outcome: Outcome, machines: int) -> list[Measured]:
    """What machines would have measured of a run."""
    parts = shares(experiment.fabric, [str(number) for number in range(machines)])
    found = []
    for nodes in parts.values():
        here = {node.name for node in nodes}
        found.append(
            replace(
                outcome,
                switches={node: each for node, each in outcome.switches.items() if node in nodes},
                endpoints={node: each for node, each in outcome.endpoints.items() if node in nodes},
                books={node: each for node, each in outcome.books.items() if node in nodes},
                notes=tuple(note for note in outcome.notes if note.link.split(">")[0] in here),
                telemetry=None,
            )
        )
    return [Measured(each, None, QUIET) for each in found]


@pytest.mark.parametrize("machines", [1, 2, 3])
def test_parts_put_together_are_the_whole(machines: int, tmp_path: Path) -> None:
    run = simulate("incast", *SMALL, out=tmp_path)
    parts = [unpacked(packed(part)) for part in parts_of(run.experiment, run.outcome, machines)]
    whole = merged(run.experiment, parts, NOTHING_APART, {})
    assert whole.switches == run.outcome.switches
    assert whole.endpoints == run.outcome.endpoints
    assert whole.books == run.outcome.books
    assert sorted(whole.notes) == sorted(run.outcome.notes)
    assert whole.timeline == run.outcome.timeline
    assert whole.fidelity.ok


def test_a_frame_that_is_missing_between_machines_is_named(tmp_path: Path) -> None:
    run = simulate("incast", *SMALL, out=tmp_path)
    leaf, spine = map(run.experiment.fabric.node, ("leaf1", "spine2"))
    port = run.experiment.fabric.port_towards(leaf, spine)
    counts = run.outcome.switches[leaf]
    seen = counts.port(port)
    fewer = replace(seen, received=seen.received.since(replace(seen.received, packets=2, bytes=0)))
    switches = {
        **run.outcome.switches,
        leaf: replace(counts, ports={**counts.ports, port: fewer}),
    }
    parts = parts_of(run.experiment, replace(run.outcome, switches=switches), 2)
    names = {"spine2>leaf1": "spine2>leaf1 from machine m2 to m1"}
    found = merged(run.experiment, parts, NOTHING_APART, names).fidelity
    assert not found.ok
    assert "2 frames were lost between processes (spine2>leaf1 from machine m2 to m1)" in (
        found.note or ""
    )


@pytest.mark.parametrize(
    ("note", "says", "times"),
    [
        (replace(NOTHING_APART, clock_error_ns=5_000), "clocks of machines were 5 µs apart", 4),
        (replace(NOTHING_APART, longer={"leaf1-spine2": 2_000}), "2 µs longer than its 1 µs", 3),
    ],
)
def test_machines_too_far_apart_are_not_believed(
    note: MachinesNote, says: str, times: int, tmp_path: Path
) -> None:
    run = simulate("incast", *SMALL, out=tmp_path)
    found = merged(run.experiment, parts_of(run.experiment, run.outcome, 2), note, {}).fidelity
    assert not found.ok and found.note is not None
    assert says in found.note
    assert found.note.endswith(f"--dilation {times}")


def test_clocks_that_drift_are_no_reason_to_slow_time_down(tmp_path: Path) -> None:
    run = simulate("incast", *SMALL, out=tmp_path)
    note = replace(NOTHING_APART, clock_error_ns=6_000, drift_ns=5_000)
    found = merged(run.experiment, parts_of(run.experiment, run.outcome, 2), note, {}).fidelity
    assert not found.ok and found.note is not None
    assert "NTP or PTP" in found.note and "clocks of machines were 6 µs apart" in found.note
    assert "--dilation" not in found.note


# --- what is read ---------------------------------------------------------------------------------


class Harm:
    """What somebody might send in place of what was measured."""

    def __reduce__(self) -> tuple[object, ...]:
        return subprocess.run, (["true"],)


def test_nothing_that_does_anything_is_taken_for_measured() -> None:
    for harm in (Harm(), Path("/etc/passwd"), subprocess.run):
        with pytest.raises(pickle.UnpicklingError, match="is nothing that is measured"):
            unpacked(packed(harm))


def test_a_file_of_machines_is_read(tmp_path: Path) -> None:
    file = tmp_path / "machines.yaml"
    file.write_text(
        "machines:\n- {name: here}\n"
        "- {name: there, start: ssh -p 22 root@there, address: 10.0.0.2, closlab: /opt/closlab}\n"
    )
    here, there = read(file)
    assert here.words[-1] == "part"
    assert there.words == ("ssh", "-p", "22", "root@there", "/opt/closlab", "part")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("machines: []", "machines: "),
        ("machines: [{name: a}, {name: a}]", "two machines are called a"),
        ("machines: [{name: a, adress: 10.0.0.1}]", "adress"),
        ("machines: [{name: a, address: nowhere}]", "address"),
        ("[]", "it: "),
        ("{", "machines.yaml"),
    ],
)
def test_what_is_wrong_with_a_file_of_machines_is_told(
    text: str, says: str, tmp_path: Path
) -> None:
    file = tmp_path / "machines.yaml"
    file.write_text(text)
    with pytest.raises(LabError) as caught:
        read(file)
    assert says in caught.value.message
    assert "machines: [{name: here" in (caught.value.cure or "")


def test_a_part_that_nobody_leads_says_so() -> None:
    done = closlab("part")
    assert done.returncode == 1
    assert "is started by closlab run --machines FILE" in done.stderr


# --- machines that an orchestrator starts ---------------------------------------------------------


def containers(kind: str, folder: Path) -> list[str]:
    """What the orchestrator will call those of its file."""
    (file,) = set(folder.iterdir()) - {folder / "machines.yaml"}
    content = yaml.safe_load(file.read_text())
    if kind == "containerlab":
        return [f"clab-{content['name']}-{node}" for node in content["topology"]["nodes"]]
    spec = content["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    return [f"{content['metadata']['name']}-{at}" for at in range(spec["replicas"])]


@pytest.mark.parametrize("kind", MAKERS)
def test_an_orchestrators_containers_are_the_machines_of_a_run(kind: str, tmp_path: Path) -> None:
    done = closlab("export", "incast", "--as", kind, "--machines", "3", "-o", str(tmp_path))
    assert done.returncode == 0, done.stderr
    machines = read(tmp_path / "machines.yaml")
    assert [
        next(w for w in each.start if w in containers(kind, tmp_path)) for each in machines
    ] == (containers(kind, tmp_path))
    assert len(shares(load("incast").fabric(), [each.name for each in machines])) == 3
    assert f"closlab run incast --machines {tmp_path}/machines.yaml" in done.stdout


def test_more_machines_than_there_are_switches_are_refused_before_any_is_started() -> None:
    done = closlab("export", "incast", "--as", "kubernetes", "--machines", "40")
    assert (done.returncode, done.stdout) == (1, "")
    assert "6 switches are not enough for 40 machines" in done.stderr

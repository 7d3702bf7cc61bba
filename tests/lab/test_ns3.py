"""ns-3's flow.txt and topology.txt, in and out, and what HPCC's simulator said of an incast."""

import io
import json
from pathlib import Path

import networkx as nx
import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.runs.run import measure
from lab.scenario import catalogue
from lab.scenario.fabrics import described, read_fabric
from tests.lab.conftest import closlab
from topologies import NodeKind, TopologyError
from topologies.ns3_topo import import_ns3
from traffic.traces import TraceError, kind_of, ns3

# Two leaves of two hosts, and a spine, as HPCC's simulator has a fabric.
TOPOLOGY = """7 3 6
4 5 6
0 4 25Gbps 1us 0
1 4 25Gbps 0.001ms 0.000000
2 5 25Gbps 1000ns 0
3 5 25Gbps 1us 0
4 6 100Gbps 2us 0
5 6 100Gbps 2us 0
"""
HPCC = "3\n0 2 3 100 20000 2.0\n1 3 3 100 5000 2.00000125\n0 2 3 100 7 2.5\n"
CONWEAVE = "2\n0 2 3 20000 2.000000000\n3 1 3 5000 2.000001250\n"


def test_a_topology_is_read_with_its_rates_and_delays(tmp_path: Path) -> None:
    file = tmp_path / "topology.txt"
    file.write_text(TOPOLOGY)
    assert described(file).kind == "ns3"
    fabric = read_fabric(file).fabric
    assert [len(fabric.hosts), len(fabric.switches), len(list(fabric.links))] == [4, 3, 6]
    assert sorted(node.kind for node in fabric.switches) == [
        NodeKind.LEAF, NodeKind.LEAF, NodeKind.SPINE,
    ]  # fmt: skip
    speeds = {link.name: (link.speed.rate_bps, link.speed.delay_ns) for link in fabric.links}
    assert speeds["h2-leaf1"] == (25 * 10**9, 1000)
    assert speeds["leaf2-spine1"] == (100 * 10**9, 2000)


@pytest.mark.parametrize("text", [HPCC, CONWEAVE])
def test_flows_begin_when_they_say_counted_from_the_first(text: str, tmp_path: Path) -> None:
    file = tmp_path / "flow.txt"
    file.write_text(text)
    assert kind_of(file) == "ns3"
    schedule = ns3.read(file).schedule()
    assert list(schedule.size)[:2] == [20_000, 5000]
    assert list(schedule.delay_ns)[:2] == [0, 1250]
    if text is HPCC:
        assert schedule.delay_ns[2] == 500_000_000
        assert (
            len(schedule.queue_pairs()) == 3
        )  # the second from 0 to 2 does not wait for the first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x\n0 1 3 100 5 2.0\n", ":1: how many flows follow"),
        ("2\n0 1 3 100 5 2.0\n", "says 2 flows, and it has 1"),
        ("1\n0 1 3 5\n", ":2: 4 words; a flow is: src dst pg dport bytes start"),
        ("1\n0 0 3 100 5 2.0\n", ":2: host 0 sends to itself"),
        ("1\n0 1 9 100 5 2.0\n", ":2: pg: '9' is no whole number from 0 to 7"),
        ("1\n0 1 3 100 0 2.0\n", ":2: bytes: '0' is no whole number from 1"),
        ("1\n0 1 3 100 5 nan\n", ":2: start: 'nan' is no time"),
        ("1\n0 1 3 100 5 -1\n", ":2: start: '-1' is no time"),
        ("1\n0 1 3 100 5 1e300\n", ":2: start: '1e300' is no time"),
        ("1\n0 99999999 3 100 5 2.0\n", ":2: a host:"),
        ("", ":1: how many flows follow"),
    ],
)
def test_what_is_wrong_with_flows_is_told_with_its_place(
    text: str, expected: str, tmp_path: Path
) -> None:
    file = tmp_path / "flow.txt"
    file.write_text(text)
    with pytest.raises(TraceError) as caught:
        ns3.read(file)
    assert expected in str(caught.value) and str(file) in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (("7 3 6", "7 3"), "line 1: it does not say nodes, switches and cables"),
        (("7 3 6", "7 3 7"), "says 7 cables, and it has 6"),
        (("7 3 6", "3 7 6"), "line 1: 3 nodes, 7 of them switches"),
        (("7 3 6", "7 3 999999999"), "line 1: 999999999 cables"),
        (("4 5 6", "4 5"), "line 2: it does not say the 3 switches"),
        (("4 5 6", "4 5 5"), "line 2: a switch is named twice"),
        (("4 5 6", "4 5 9"), "is none of the 7 nodes"),
        (("0 4 25Gbps 1us 0", "0 4 25Gbps"), "line 3: a cable is: from to rate delay"),
        (("0 4 25Gbps 1us 0", "0 4 25Gb 1us 0"), "line 3: '25Gb' is no rate"),
        (("0 4 25Gbps 1us 0", "0 4 0Gbps 1us 0"), "line 3: '0Gbps' is no rate"),
        (("0 4 25Gbps 1us 0", "0 4 25Gbps 1 0"), "line 3: '1' is no delay"),
        (("0 4 25Gbps 1us 0", "0 4 25Gbps 1us 0.01"), "line 3: it loses a share of packets"),
        (("0 4 25Gbps 1us 0", "0 9 25Gbps 1us 0"), "line 3: there is no node 9"),
        (("0 4 25Gbps 1us 0", "0 1 25Gbps 1us 0"), "0 and 1 are both hosts"),
    ],
)
def test_what_is_wrong_with_a_topology_is_told_with_its_place(
    changed: tuple[str, str], expected: str
) -> None:
    with pytest.raises(TopologyError) as caught:
        import_ns3(TOPOLOGY.replace(*changed))
    assert expected in str(caught.value)


def test_both_are_brought_run_written_and_brought_again(tmp_path: Path) -> None:
    (tmp_path / "flow.txt").write_text(HPCC)
    (tmp_path / "topology.txt").write_text(TOPOLOGY)
    words = ("import", str(tmp_path / "flow.txt"), "--topology", str(tmp_path / "topology.txt"))
    done = closlab(*words, "--out", str(tmp_path / "lab"))
    assert done.returncode == 0, done.stderr
    assert "flows of ns-3: 3 ranks" in done.stdout or "flows of ns-3: 4 ranks" in done.stdout
    assert "a topology of ns-3" in done.stdout
    ran = closlab(
        *("run", str(tmp_path / "lab" / "scenario.yaml"), "--engine", "sim"),
        *("--out", str(tmp_path / "run")),
    )
    assert ran.returncode == 0, ran.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["flows"]["completed"] == 3
    out = closlab("export", str(tmp_path / "run"), "--as", "ns3", "-o", str(tmp_path / "out"))
    assert out.returncode == 0, out.stderr
    written = (tmp_path / "out" / "flow.txt").read_text().splitlines()
    assert written[0] == "3" and written[1].split()[:5] == ["0", "2", "3", "100", "20000"]
    first, again = (read_fabric(tmp_path / at / "topology.txt").fabric for at in (".", "out"))
    assert {(link.name, link.speed) for link in first.links} == {
        (link.name, link.speed) for link in again.links
    }
    assert nx.is_isomorphic(
        nx.Graph((link.a, link.b) for link in first.links),
        nx.Graph((link.a, link.b) for link in again.links),
    )
    schedules = [ns3.read(tmp_path / at / "flow.txt").schedule() for at in (".", "out")]
    assert list(schedules[0].delay_ns) == list(schedules[1].delay_ns)
    assert list(schedules[0].size) == list(schedules[1].size)


@pytest.mark.parametrize(("follows", "over"), [(True, 1.0), (False, 1.038)])
def test_an_incast_takes_as_long_as_in_hpcc_s_simulator(
    follows: bool, over: float, tmp_path: Path
) -> None:
    """40 messages of 200 KB there by HPCC: the last arrived after 741,333 ns."""
    scenario = catalogue.made(
        {
            "name": "incast", "about": "What was run there.",
            "topology": {"kind": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 41},
            "link": {"rate_gbps": 100.23, "overhead": 0, "delay_ns": 1000, "mtu": 1000},
            "buffer": {"bytes": 32 << 20, "alpha": 0.125, "reserved": 4096},
            "ecn": {"enabled": False},
            "transport": {
                "cc": "hpcc", "ack_every": 1, "window": 1 << 20, "timeout": 0,
                "follow_rate": follows,
                "hpcc": {"max_stage": 0, "minimum_mbps": 1000, "additive": 21},
            },
            "traffic": {"kind": "incast", "senders": 40, "bytes": 200_000},
        },
        (),
        "incast",
    )  # fmt: skip
    result = measure(scenario, RunOptions(out=tmp_path, engine="sim"), Console(file=io.StringIO()))
    assert result.flows.completed == 40
    assert result.flows.fct_ns is not None
    assert result.flows.fct_ns.max / 741_333 == pytest.approx(over, abs=0.01)

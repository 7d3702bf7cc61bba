"""`closlab import`: what a file is, and a scenario that runs it from wherever one stands."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import networkx as nx
import pytest
import yaml

from lab.errors import ScenarioError
from lab.scenario import catalogue
from lab.scenario.import_workload import import_workload
from tests.lab.conftest import closlab
from tests.lab.simulated import simulate
from tests.traffic.traces.programs import as_chakra, random_program
from tests.traffic.traces.xml_rings import ring


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("flows.csv", "start_ns,src,dst,bytes\n0,h1,h2,100000\n1000,h3,h1,7\n",
         "flows in a table: 3 ranks, 2 messages, 100 KB"),
        ("perm.cm", "Nodes 4\nConnections 2\n0->1 start 0 size 5000\n3->2 start 0 size 70\n",
         "a connection matrix of htsim: 4 ranks, 2 messages, 5.07 KB"),
    ],
)  # fmt: skip
def test_a_file_becomes_a_scenario(name: str, text: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    done = closlab("import", str(tmp_path / name), "--out", str(tmp_path / "lab"))
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
    (tmp_path / name).unlink()  # the scenario has a copy beside it
    scenario = str(tmp_path / "lab" / "scenario.yaml")
    ran = closlab("run", scenario, "--engine", "sim", "--out", str(tmp_path / "run"))
    assert ran.returncode == 0, ran.stderr
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["flows"]["completed"] == 2
    again = closlab("import", scenario, "--out", str(tmp_path / "lab"))
    assert again.returncode == 1
    assert "it is not known what this is" in again.stderr


def test_traces_and_schedules_are_brought_whole(tmp_path: Path) -> None:
    ranks, deeds = random_program(Random(5), step_ns=1000)
    folder = tmp_path / "4 Traces_of.today"
    folder.mkdir()
    as_chakra(ranks, deeds, folder, Random(5))
    done = closlab("import", str(folder), "--out", str(tmp_path / "a"))
    assert f"execution traces of Chakra: {ranks} ranks" in done.stdout, done.stderr
    assert len(list((tmp_path / "a").glob("*.et"))) == ranks
    assert "name: 4-traces-of\n" in (tmp_path / "a" / "scenario.yaml").read_text()
    listed = closlab("list", str(tmp_path / "a" / "scenario.yaml"))
    assert listed.returncode == 0, listed.stderr
    (tmp_path / "ring.xml").write_text(ring(4))
    done = closlab("import", str(tmp_path / "ring.xml"))
    assert done.returncode == 1
    assert "say it: --bytes 1MB" in done.stderr
    done = closlab(
        "import", str(tmp_path / "ring.xml"), "--bytes", "1MB", "-o", str(tmp_path / "b")
    )
    assert "4 ranks, 24 messages, 6 MB" in done.stdout, done.stderr


def test_a_fabric_is_brought_and_a_workload_onto_it(tmp_path: Path) -> None:
    """A graph in which a's cable is ten times slower than the others."""
    graph: nx.Graph[str] = nx.Graph(name="two tors")
    for tor, hosts in (("t1", "ab"), ("t2", "cd")):
        graph.add_edge(tor, "top", rate_gbps=100)
        for host in hosts:
            graph.add_node(host, kind="host")
            graph.add_edge(host, tor, rate_gbps=10 if host == "a" else 100)
    nx.write_graphml(graph, tmp_path / "mine.graphml")
    (tmp_path / "flows.csv").write_text("start_ns,src,dst,bytes\n0,h1,h3,1000000\n")
    done = closlab("import", str(tmp_path / "mine.graphml"), "--out", str(tmp_path / "a"))
    assert "a graph in GraphML: 4 hosts, 2 leaves, 1 spine, 6 cables" in done.stdout, done.stderr
    assert closlab("list", str(tmp_path / "a" / "scenario.yaml")).returncode == 0
    done = closlab(
        "import", str(tmp_path / "flows.csv"), "--topology", str(tmp_path / "mine.graphml"),
        "--out", str(tmp_path / "b"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for host, rate in (("h1", 10), ("h2", 100)):
        found = simulate(
            str(tmp_path / "b" / "scenario.yaml"), f"traffic.hosts=[{host}, h3, h4]",
            out=tmp_path / host,
        )  # fmt: skip
        ideal = 8_000_000 / rate
        assert ideal < found.result.duration_ns < 1.25 * ideal + 10_000
    (tmp_path / "broken.json").write_text('{"nodes": [')
    done = closlab("import", str(tmp_path / "broken.json"))
    assert (done.returncode, "it is not JSON" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    "name",
    [
        'a"; faults: [] #.csv',
        "a\nfaults: [{at_ns: 0, action: down, link: leaf1-spine1}].csv",
        "&a *a !!python.csv",
        "../../a.csv",
        "$(touch intruder).csv",
        "-rf.csv",
        "scenario.yaml.csv",
    ],
)
def test_a_files_name_says_nothing(name: str, tmp_path: Path) -> None:
    """In the scenario, to a shell, or of where to write."""
    there = tmp_path / "there"
    there.mkdir()
    file = there / name.replace("/", "_")
    file.write_text("start_ns,src,dst,bytes\n0,h1,h2,100000\n")
    brought = import_workload(file, tmp_path / "lab", {})
    content = yaml.safe_load(brought.scenario.read_text())
    assert set(content) == {"name", "about", "topology", "link", "buffer", "traffic"}
    assert content["traffic"] == {"kind": "table", "file": file.name}
    written = {path.name for path in (tmp_path / "lab").iterdir()}
    assert written == {"scenario.yaml", file.name} == {brought.scenario.name, *written}
    assert {path.name for path in tmp_path.iterdir()} == {"there", "lab"}


def test_text_does_not_command_a_terminal() -> None:
    for text in ("\x1b]0;intruder\x07", "\x1b[31mred", "a\rb", "a\x9bb", "a\x00b", "\x7f"):
        with pytest.raises(ScenarioError, match=r"about: .* control character"):
            catalogue.made({"name": "a", "about": text})
    assert catalogue.made({"name": "a", "about": "two\nlines,\ttwo words"}).about

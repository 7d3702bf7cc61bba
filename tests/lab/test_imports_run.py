"""What `closlab import` writes runs as it stands: files of every kind, drawn by seeds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pytest
import yaml

from lab.errors import ScenarioError
from lab.scenario.import_workload import import_workload
from lab.scenario.near import FABRICS, WORKLOADS, nearest_kinds
from tests.lab.simulated import simulate
from tests.lab.test_fabric_files import drawn, infrastructure, tier, topo
from tests.traffic.traces.programs import as_chakra, as_goal, random_program
from tests.traffic.traces.xml_rings import ring

Made = tuple[Path, dict[str, Any]]


def _table(chance: Random, folder: Path) -> Made:
    rows = [
        f"{chance.randint(0, 9000)},h{src + 1},h{dst + 1},{chance.randint(1, 9000)}"
        for src, dst in (chance.sample(range(40), 2) for _ in range(chance.randint(1, 9)))
    ]
    (folder / "flows.csv").write_text("\n".join(["start_ns,src,dst,bytes", *rows]))
    return folder / "flows.csv", {}


def _matrix(chance: Random, folder: Path) -> Made:
    """Of more nodes than send or receive; some flows never end in htsim."""
    nodes = chance.randint(2, 140)
    some = [chance.sample(range(nodes), 2) for _ in range(chance.randint(1, 9))]
    flows = [f"{a}->{b} start 0.000000 size {chance.choice([0, 1, 5000])}" for a, b in some]
    head = f"Nodes {nodes}\nConnections {len(flows)}\n"
    (folder / "few.cm").write_text(head + "\n".join(flows))
    return folder / "few.cm", {"bytes": "3KB"}


def _goal(chance: Random, folder: Path) -> Made:
    (folder / "x.goal").write_text(as_goal(*random_program(chance, 10), chance))
    return folder / "x.goal", {}


def _chakra(chance: Random, folder: Path) -> Made:
    as_chakra(*random_program(chance, step_ns=1000), folder, chance)
    return folder, {}


def _ring(chance: Random, folder: Path) -> Made:
    (folder / "ring.xml").write_text(ring(chance.randint(2, 6), chance.randint(1, 2)))
    return folder / "ring.xml", {"bytes": "100KB"}


def _layers(chance: Random, folder: Path) -> Made:
    """An older file, which tells no number of GPUs; groups may be of one GPU each."""
    tensor = chance.choice([1, 2, 4])
    ops = [chance.choice(["ALLREDUCE", "ALLGATHER", "NONE"]) for _ in range(3)]
    row = " ".join(["layer -1", *(f"10 {op} {0 if op == 'NONE' else 40_000}" for op in ops), "5"])
    head = f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tensor}"
    (folder / "layers.txt").write_text(f"{head}\n1\n{row}\n")
    return folder / "layers.txt", {"gpus": chance.choice([4, 8])}


def _graph(chance: Random, folder: Path) -> Made:
    graph, _ = drawn(chance)
    (folder / "graph.json").write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    return folder / "graph.json", {}


def _graphml(chance: Random, folder: Path) -> Made:
    """Its links are so fast and long that a switch's usual memory has no room for them."""
    graph: nx.Graph[str] = nx.Graph()
    for host in range(chance.randint(2, 12)):
        graph.add_edge(f"h{host}", "s", rate_gbps=1600, delay_ns=chance.choice([10, 9000]))
    nx.write_graphml(graph, folder / "scenario.graphml")
    return folder / "scenario.graphml", {}


def _tree(chance: Random, folder: Path) -> Made:
    half = chance.choice([1, 2])
    tiers = [tier(half, half), tier(half, half), tier(2 * half, None)]
    (folder / "x.topo").write_text(topo(*tiers, nodes=2 * half**3, pod=half * half))
    return folder / "x.topo", {}


def _infrastructure(chance: Random, folder: Path) -> Made:
    (folder / "scenario.yaml").write_text(yaml.safe_dump(infrastructure(chance)[0]))
    return folder / "scenario.yaml", {}


def _first_form(chance: Random, folder: Path) -> Made:
    """Cables one by one, how many there are of nothing, and devices in files beside it."""
    servers, cards, spines = chance.randint(1, 4), chance.randint(1, 3), chance.randint(1, 2)
    cables = [
        f"gpu.{server}.nic.{card}.down.leaf.{server // 2}.port.{server % 2 * cards + card}"
        for server in range(servers)
        for card in range(cards)
    ]
    cables += [
        f"leaf.{leaf}.port.{9 + spine}.up.spine.{spine}.port.{leaf}"
        for leaf in range((servers + 1) // 2)
        for spine in range(spines)
    ]
    rate = {"bandwidth": {"choice": "gigabytes_per_second", "gigabytes_per_second": 50}}
    files = {
        "fabric": {
            "links": [{"name": name, **rate} for name in ("down", "up")],
            "instances": [
                {"name": name, "device": "box" if name == "gpu" else "switch"}
                for name in ("gpu", "leaf", "spine")
            ],
            "connections": cables,
        },
        "server": {"devices": [{"name": "box", "components": [
            {"name": "xpu", "type": "xpu"}, {"name": "nic", "type": "nic", "external": True}]}]},
        "switch": {"devices": [{"name": "switch", "components": [
            {"name": "asic", "type": "custom"}, {"name": "port", "type": "nic"}]}]},
    }  # fmt: skip
    for name, content in files.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump({"infrastructure": content}))
    (folder / "other.yaml").write_text("devices: [{name: box")  # which is none of it
    return folder / "fabric.yaml", {}


MAKERS: dict[str, Callable[[Random, Path], Made]] = {
    "table": _table, "matrix": _matrix, "goal": _goal, "chakra": _chakra, "ring": _ring,
    "layers": _layers, "graph": _graph, "graphml": _graphml, "tree": _tree,
    "infrastructure": _infrastructure, "first form": _first_form,
}  # fmt: skip


def brought_and_run(kind: str, seed: int, folder: Path) -> bool:
    """Whether a drawn file came to messages; then all of them arrived."""
    (folder / "there").mkdir(parents=True)
    path, extras = MAKERS[kind](Random(seed), folder / "there")
    try:
        brought = import_workload(path, folder / "lab", extras)
    except ScenarioError as error:
        few = "comes to no message" in error.message or "1 host" in str(error)
        assert few, f"{kind}, seed {seed}: {error}"
        return False
    ran = simulate(str(brought.scenario), out=folder / "run")
    flows = ran.result.flows
    assert flows.completed == flows.count > 0, f"{kind}, seed {seed}"
    return True


@pytest.mark.by_day(5)
@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_brought_runs(kind: str, tmp_path: Path) -> None:
    assert brought_and_run(kind, 1, tmp_path / "1") or brought_and_run(kind, 2, tmp_path / "2")


@pytest.mark.slow
@pytest.mark.parametrize("kind", MAKERS)
def test_much_that_is_brought_runs(kind: str, tmp_path: Path) -> None:
    assert sum(brought_and_run(kind, seed, tmp_path / str(seed)) for seed in range(3, 33)) > 10


def test_layers_of_one_gpu_each_are_said(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    row = "layer -1 1 NONE 0 1 ALLREDUCE 4000 1 ALLREDUCE 4000 1"
    path.write_text(f"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8\n1\n{row}\n")
    brought = import_workload(path, tmp_path / "lab", {"gpus": 8})
    assert brought.notes[-1].startswith("of 2 exchanges 1 are a GPU's with itself: --gpus 16")
    path.write_text(path.read_text().replace("ALLREDUCE", "NONE", 1))
    with pytest.raises(ScenarioError, match="comes to no message") as caught:
        import_workload(path, tmp_path / "none", {"gpus": 8})
    assert "--gpus 16" in str(caught.value.cure)
    assert not (tmp_path / "none").exists()
    assert "8 x all-reduce ring" in import_workload(path, tmp_path / "two", {"gpus": 16}).notes[1]


def test_a_file_that_says_its_gpus_is_changed_by_hand_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 all_gpus:"
    row = "layer -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 4000 1"
    path.write_text(f"{head} 8\n1\n{row}\n")
    with pytest.raises(ScenarioError, match="comes to no message") as caught:
        import_workload(path, tmp_path / "none", {})
    assert "all_gpus: 16 in its first line would have two" in str(caught.value.cure)
    with pytest.raises(ScenarioError, match="it says all_gpus: 8, and gpus says 16") as caught:
        import_workload(path, tmp_path / "none", {"gpus": 16})
    assert "change all_gpus in the file" in str(caught.value.cure)
    path.write_text(f"{head} 16\n1\n{row}\n")
    assert "8 x all-reduce ring" in import_workload(path, tmp_path / "two", {"gpus": 16}).notes[1]
    path.write_text(f"{head} 16\n1\n{row.replace('ALLREDUCE 4000', 'NONE 0')}\n")
    with pytest.raises(ScenarioError, match="comes to no message") as caught:
        import_workload(path, tmp_path / "none", {})
    assert "nothing in it goes from one rank to another" in str(caught.value.cure)


def test_what_an_infrastructure_does_not_describe_is_said_with_where_to(tmp_path: Path) -> None:
    path, _ = _first_form(Random(1), tmp_path)
    (tmp_path / "server.yaml").unlink()
    with pytest.raises(
        ScenarioError, match=r"connections\[0\]: device 'box' is not described"
    ) as no:
        import_workload(path, tmp_path / "none", {})
    assert "add a .yaml or .json file" in str(no.value)
    path.write_text(path.read_text().replace("name: gpu", "name: apu"))
    with pytest.raises(
        ScenarioError, match=r"connections\[0\]: there is no instance 'gpu'; .* apu"
    ):
        import_workload(path, tmp_path / "none", {})


@pytest.mark.parametrize(
    ("name", "text", "near"),
    [
        ("x.xml", "<schedule><gpu/></schedule>", "MSCCL"),
        ("x.csv", "time,source,destination,size\n0,1,2,3\n", "flows in a table"),
        ("x.txt", "flows: 0->1 some bytes\nConnections 3\nNodes\n", "htsim's connection matrix"),
        ("x.txt", "layer -1 5 ALLREDUCE 6 7 NONE 0\n", "AICB"),
        ("x", "rank 0 { l1: calc 5 }", "GOAL"),
        ("x.yaml", "name: x\ntopology: {kind: leaf-spine}\ntraffic: {kind: all-pairs}\n",
         "closlab run FILE"),
        ("x.yaml", "device: [{name: a, components: []}]\n", "InfraGraph"),
        ("x.json", '{"edges": [], "directed": false, "multigraph": true}', "networkx"),
        ("x", "nothing of all this", None),
    ],
)  # fmt: skip
def test_a_refusal_says_what_a_file_is_nearest_to(
    name: str, text: str, near: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    nearest = nearest_kinds(tmp_path / name, (*WORKLOADS, *FABRICS))
    assert near in nearest.partition(";")[0] if near else not nearest
    with pytest.raises(ScenarioError) as caught:
        import_workload(tmp_path / name, tmp_path / "lab", {})
    assert (near or "known: ") in str(caught.value.cure)


def test_the_command_is_one_for_a_shell(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("start_ns,src,dst,bytes\n0,h1,h2,100\n")
    brought = import_workload(tmp_path / "x.csv", tmp_path / "my lab; rm", {})
    assert f"closlab run '{brought.scenario}'" in brought.lines()[-1]

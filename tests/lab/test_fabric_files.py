"""Fabrics that others wrote down: what is built is what a file says, what is wrong is named."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pytest
import yaml

from lab.scenario.fabrics import NoFabricError, described, read_fabric
from tests.traffic.traces.test_damaged import damaged
from topologies import Imported, NodeKind, TopologyError, fat_tree, leaf_spine
from traffic.traces import TraceError, kind_of

Cables = Counter[tuple[frozenset[str], int | None, int | None]]


def cables_of(imported: Imported) -> Cables:
    """What lies between what, by the file's own names."""
    names = {node: name for name, node in imported.aliases.items()}
    return Counter(
        (frozenset((names[link.a], names[link.b])), link.speed.rate_bps, link.speed.delay_ns)
        for link in imported.fabric.links
    )


def drawn(chance: Random) -> tuple[nx.MultiGraph[str], Cables]:
    """A graph of tiers at random, with the cables that have to come of it."""
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    want: Cables = Counter()

    def cable(a: str, b: str) -> None:
        rate, delay = chance.choice([None, 25, 400]), chance.choice([None, 0, 750])
        one, other = chance.sample([a, b], 2)
        said = {"rate_gbps": rate, "delay_ns": delay}
        known = {key: value for key, value in said.items() if value is not None}
        graph.add_edge(one, other, **known)
        want[frozenset((a, b)), None if rate is None else rate * 10**9, delay] += 1

    tors = [f"tor {n}" for n in range(chance.randint(1, 4))]
    tops = [f"top/{n}" for n in range(chance.randint(1, 3))]
    for name in chance.sample([*tors, *tops], len(tors) + len(tops)):
        graph.add_node(name, kind="switch")
    for number in range(chance.randint(len(tors), 9)):
        graph.add_node(f"gpu-{number}", kind=chance.choice(["host", "gpu", "Server"]))
        cable(f"gpu-{number}", tors[number % len(tors)])
    for tor in tors:
        for top in tops:
            for _ in range(chance.randint(1, 2)):
                cable(tor, top)
    return graph, want


WRITERS: dict[str, Callable[[nx.MultiGraph[str], Path], None]] = {
    "links": lambda graph, path: write(path, nx.node_link_data(graph, edges="links")),
    "edges": lambda graph, path: write(path, nx.node_link_data(graph, edges="edges")),
    "adjacency": lambda graph, path: write(path, nx.adjacency_data(graph)),
    "directed": lambda graph, path: write(
        path, nx.node_link_data(nx.MultiDiGraph(graph), edges="edges")
    ),
    "graphml": nx.write_graphml,
}


def write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("form", WRITERS)
def test_what_networkx_writes_is_built(form: str, tmp_path: Path) -> None:
    for seed in range(12):
        graph, want = drawn(Random(seed))
        path = tmp_path / "graph"
        WRITERS[form](graph, path)
        imported = read_fabric(path)
        assert cables_of(imported) == want
        kinds = {name: node.kind for name, node in imported.aliases.items()}
        for name in graph:
            hops = min(
                nx.shortest_path_length(graph, name, host) for host in graph if "gpu" in host
            )
            assert kinds[name] == hops
        assert [node.number for name, node in imported.aliases.items() if "gpu" in name] == list(
            range(1, len(imported.fabric.hosts) + 1)
        )


def test_where_nobody_says_what_it_is_those_with_one_cable_are_hosts(tmp_path: Path) -> None:
    path = tmp_path / "star.graphml"
    nx.write_graphml(nx.star_graph(5), path)
    assert len(read_fabric(path).fabric.hosts) == 5
    graph = nx.Graph([("s", "a", {"bandwidth": "1.6 Tbps", "latency": "2 us", "source_port": 7})])
    graph.add_edge("s", "b")
    write(path, nx.node_link_data(graph, edges="links"))
    fabric = read_fabric(path).fabric
    (speed,) = (link.speed for link in fabric.links if link.speed.rate_bps)
    assert (speed.rate_bps, speed.delay_ns) == (1_600_000_000_000, 2000)
    assert sorted(fabric.ports(fabric.switches[0])) == [1, 7]


# --- htsim ----------------------------------------------------------------------------------------


def topo(*tiers: dict[str, int], nodes: int, pod: int) -> str:
    lines = [f"Nodes {nodes}", f"Tiers {len(tiers)}", f"Podsize {pod}", "# tiers"]
    for number, tier in enumerate(tiers):
        lines += ["", f"Tier {number}", *(f"{key} {value}" for key, value in tier.items())]
    return "\n".join(lines)


def tier(down: int, up: int | None, **more: int) -> dict[str, int]:
    plain = {"Downlink_speed_Gbps": 100, "Downlink_Latency_ns": 1000, "Radix_Down": down}
    return plain | ({} if up is None else {"Radix_Up": up}) | more


@pytest.mark.parametrize("half", [1, 2])
def test_htsims_fat_trees_are_those_of_the_lab(half: int, tmp_path: Path) -> None:
    path = tmp_path / "x.topo"
    three = [tier(half, half), tier(half, half), tier(2 * half, None)]
    path.write_text(topo(*three, nodes=2 * half**3, pod=half * half))
    assert described(path).kind == "topo"
    found, ours = read_fabric(path).fabric, fat_tree(2 * half)

    def like(a: dict[str, Any], b: dict[str, Any]) -> bool:
        return bool(a["kind"] == b["kind"])

    for fabric in (found, ours):
        nx.set_node_attributes(fabric.graph, {node: node.kind for node in fabric.graph}, "kind")
    assert nx.is_isomorphic(found.graph, ours.graph, node_match=like)
    path.write_text(
        topo(tier(4, 2, Oversubscribed=2), tier(3 * half, None), nodes=12 * half, pod=12 * half)
    )
    found, ours = read_fabric(path).fabric, leaf_spine(3 * half, 2, 4)
    assert [link.name for link in found.links] != []
    assert {link.name for link in found.links} == {link.name for link in ours.links}


def test_a_way_takes_as_long_as_in_htsim(tmp_path: Path) -> None:
    """Cables and switches on it, with their own delays; bundles are cables side by side."""
    chance = Random(4)
    for _ in range(10):
        cables = [chance.randint(0, 900) for _ in range(3)]
        switches = [2 * chance.randint(0, 300) for _ in range(3)]
        tiers = [
            tier(2, 4, Switch_Latency_ns=switches[0], Downlink_speed_Gbps=200),
            tier(4, 4, Switch_Latency_ns=switches[1], Bundle=2),
            tier(2, None, Switch_Latency_ns=switches[2]),
        ]
        for each, delay in zip(tiers, cables, strict=True):
            each["Downlink_Latency_ns"] = delay
        path = tmp_path / "x.topo"
        path.write_text(topo(*tiers, nodes=8, pod=4))
        fabric = read_fabric(path).fabric
        assert Counter(link.a.kind for link in fabric.links) == {0: 8, 1: 4 * 2 * 2, 2: 4 * 4}
        delays: nx.Graph[Any] = nx.Graph()
        for link in fabric.links:
            delays.add_edge(link.a, link.b, ns=link.speed.delay_ns)
        h1, h8 = fabric.hosts[0], fabric.hosts[-1]
        far = 2 * sum(cables) + 2 * switches[0] + 2 * switches[1] + switches[2]
        assert nx.shortest_path_length(delays, h1, h8, "ns") == far
        assert nx.shortest_path_length(delays, h1, fabric.hosts[1], "ns") == (
            2 * cables[0] + switches[0]
        )


# --- InfraGraph -----------------------------------------------------------------------------------


def infrastructure(chance: Random) -> tuple[dict[str, Any], Cables]:
    """Servers of several cards below leaves and spines, said by slices or one by one."""
    servers, cards = chance.randint(1, 5), chance.randint(1, 3)
    leaves, spines = chance.randint(1, 3), chance.randint(1, 2)
    want: Cables = Counter()
    edges: list[dict[str, Any]] = []

    def edge(ep1: tuple[str, str], ep2: tuple[str, str], link: str, scheme: str) -> None:
        ends = ({"instance": end[0], "component": end[1]} for end in (ep1, ep2))
        edges.append(
            dict(zip(("ep1", "ep2"), ends, strict=True)) | {"link": link, "scheme": scheme}
        )

    for server in range(servers):
        leaf = chance.randrange(leaves)
        first = server * cards
        card = "card.port" if cards > 1 else "card[0].port[0]"
        if chance.random() < 0.5:
            ports = f"port[{first}:{first + cards}]"
            edge((f"gpu[{server}]", card), (f"leaf[{leaf}]", ports), "slow", "one2one")
        else:
            for at in range(cards):
                nic = f"card[{at - cards}].port"
                edge(
                    (f"leaf[{leaf}]", f"port[{first + at}]"),
                    (f"gpu[{server}]", nic),
                    "slow",
                    "one2one",
                )
        for at in range(cards):
            want[frozenset((f"gpu.{server}.card.{at}.port.0", f"leaf.{leaf}")), 8 * 10**11, 50] += 1
    for leaf in range(leaves):
        for spine in range(spines):
            edge(
                (f"leaf[{leaf}]", f"port[{100 + spine}]"),
                (f"top[{spine}]", f"port[{leaf}]"),
                "fast",
                "many2many",
            )
            want[frozenset((f"leaf.{leaf}", f"top.{spine}")), 25 * 10**8, None] += 1
    devices = [
        {"name": "switch", "components": [{"name": "port", "count": 128, "choice": "port"}]},
        {"name": "card", "components": [{"name": "port", "count": 1, "choice": "nic"}]},
        {"name": "server", "components": [{"name": "cpu", "count": 2, "choice": "cpu"},
                                          {"name": "card", "count": cards, "choice": "device"}]},
    ]  # fmt: skip
    links = [
        {"name": "slow", "physical": {
            "bandwidth": {"choice": "gigabytes_per_second", "gigabytes_per_second": 100},
            "latency": {"choice": "us", "us": 0.05}}},
        {"name": "fast", "physical": {
            "bandwidth": {"choice": "gigabits_per_second", "gigabits_per_second": 2.5}}},
    ]  # fmt: skip
    instances = [
        {"name": name, "device": device, "count": count}
        for name, device, count in (
            ("gpu", "server", servers),
            ("leaf", "switch", leaves),
            ("top", "switch", spines),
        )
    ]
    content = {
        "name": "x",
        "devices": devices,
        "links": links,
        "instances": instances,
        "edges": edges,
    }
    return content, want


def test_infrastructures_are_built_as_their_slices_say(tmp_path: Path) -> None:
    for seed in range(30):
        chance = Random(seed)
        content, want = infrastructure(chance)
        used = {name for ends, _, _ in want for name in ends if name.startswith("leaf")}
        below = {
            n for ends, _, _ in want if any("gpu" in e for e in ends) for n in ends if "leaf" in n
        }
        path = tmp_path / "infra"
        path.write_text(yaml.safe_dump(content) if seed % 2 else json.dumps(content))
        kind, imported, *_ = described(path)
        assert kind == "infragraph"
        assert cables_of(imported) == want
        hosts = [name for name, node in imported.aliases.items() if node.kind is NodeKind.HOST]
        assert hosts == sorted(hosts, key=lambda name: [int(n) for n in name.split(".")[1:4:2]])
        assert {
            name for name, node in imported.aliases.items() if node.kind is NodeKind.LEAF
        } == below
        assert below <= used


# --- what is wrong --------------------------------------------------------------------------------

HOST = {"id": "a", "kind": "host"}
SWITCH = {"id": "s", "kind": "switch"}
CABLE = {"source": "a", "target": "s"}
BROKEN: list[tuple[Any, str]] = [
    ({"nodes": [HOST, SWITCH], "links": []}, "host a has no link"),
    ({"nodes": [HOST], "links": []}, "there is no switch"),
    ({"nodes": [HOST, HOST], "links": []}, "node a is there twice"),
    ({"nodes": [HOST, SWITCH], "links": [CABLE | {"target": "t"}]}, "edge 1: there is no node t"),
    ({"nodes": [HOST, SWITCH], "links": [CABLE, CABLE]}, "host a has two links"),
    ({"nodes": [HOST, SWITCH], "links": [CABLE | {"target": "a"}]}, "a is cabled to itself"),
    ({"nodes": [HOST, SWITCH], "links": [CABLE | {"rate": 100}]}, "edge 1, a to s: 100 is no rate"),
    ({"nodes": [HOST, SWITCH], "links": [CABLE | {"rate_gbps": -1}]}, "a number from 1e-06 to"),
    ({"nodes": [HOST, SWITCH], "links": [CABLE | {"latency": "soon"}]}, "'soon' is no delay"),
    ({"nodes": [HOST, SWITCH], "links": [CABLE | {"rate_gbps": 1, "rate": "2Gbps"}]}, "two rates"),
    ({"nodes": [HOST, SWITCH], "links": [CABLE | {"target_port": 509}]}, "a number from 0 to 508"),
    ({"nodes": [HOST, SWITCH, {"id": "t", "kind": "switch"}], "links": [CABLE]},
     "no cable leads from a to t"),
    ({"nodes": [HOST, SWITCH, {"id": "b", "kind": "host"}], "links": [CABLE | {"target": "b"}]},
     "a and b are both hosts"),
    ({"nodes": [{"kind": "host"}]}, "node 0 has no 'id'"),
    ({"instances": [], "edges": [{}]}, r"edges\[0\]: 'link' is missing"),
    ({"instances": [], "edges": "x"}, "'edges' is no list of sections"),
    ({"what": 5}, "it is not known what this is; known: "),
    ("<graphml><graph/><graph/></graphml>", "it has 2 graphs"),
    ("<svg/>", "it begins with <svg>"),
    ("<graphml", "is not XML"),
    ('<!DOCTYPE a [<!ENTITY b "c">]><graphml/>', "it defines names of its own"),
    ('<graphml><graph><node id="a"><data key="d0">x</data></node></graph></graphml>',
     "node 1: there is no key 'd0'"),
    (topo(tier(2, 1), tier(2, None), nodes=4, pod=4), "tier 0 has 200 Gb/s down and 100 up"),
    (topo(tier(2, 2), tier(3, None), nodes=4, pod=4), "tier 1: Radix_Down 3, and below are 2"),
    (topo(tier(2, 2), tier(2, None), nodes=5, pod=4), "Nodes, 5, is no multiple of Podsize, 4"),
    (topo(tier(2, None), tier(2, None), nodes=4, pod=4), "tier 0 does not say 'Radix_up N'"),
    (topo(tier(2, 2), nodes=4, pod=4).replace("Tiers 1", "Tiers 3"), "it says Tiers 3"),
    ("Nodes 4\nTiers 2\nPodsize four\n", "line 3: 'Podsize' is followed by a whole number"),
    ("Nodes 4\nTiers 2\nSize 7\n", "line 3: 'Size' is not known"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "wrong"), BROKEN)
def test_what_is_wrong_in_a_fabric_is_named(content: Any, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "fabric"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(TopologyError, match=wrong) as error:
        read_fabric(path)
    assert str(path) in str(error.value)


WRONG_EDGES = {
    "gpu[9]": r"there is no gpu\[9\]: they are 0 to 1", "gpu[0:9]": "goes too far: there are 2",
    "gpu[::0]": "its step is 0", "gpu[x]": r"gpu\[x\]: write a number", "tpu": "no instance 'tpu'",
    "gpu[0": "is no component",
}  # fmt: skip


@pytest.mark.parametrize("instance", WRONG_EDGES)
def test_what_is_wrong_in_a_slice_is_named(instance: str, tmp_path: Path) -> None:
    content, _ = infrastructure(Random(3))
    next(one for one in content["instances"] if one["name"] == "gpu")["count"] = 2
    content["edges"][0]["ep1"] = {"instance": instance, "component": "card.port"}
    write(tmp_path / "x.json", content)
    with pytest.raises(TopologyError, match=WRONG_EDGES[instance]):
        read_fabric(tmp_path / "x.json")


def test_a_fabric_is_no_workload_and_a_workload_no_fabric(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("Nodes 4\nConnections 1\n0->1 start 0 size 5\n")
    assert kind_of(path) == "htsim"
    with pytest.raises(NoFabricError):
        described(path)
    path.write_text(topo(tier(2, 2), tier(2, None), nodes=4, pod=4))
    with pytest.raises(TraceError, match="it is not known what this is"):
        kind_of(path)


# --- damage ---------------------------------------------------------------------------------------


def sound(form: str, chance: Random, path: Path) -> None:
    if form == "topo":
        path.write_text(topo(tier(2, 2), tier(2, 2), tier(2, None), nodes=8, pod=4))
    elif form in ("infragraph", "infragraph-yaml"):
        content, _ = infrastructure(chance)
        path.write_text(json.dumps(content) if form == "infragraph" else yaml.safe_dump(content))
    else:
        WRITERS[form](drawn(chance)[0], path)


def attack(form: str, path: Path, rounds: int, seed: int) -> int:
    """How many of so many damaged files were refused."""
    chance = Random(seed)
    sound(form, chance, path)
    assert read_fabric(path).fabric.hosts
    data = path.read_bytes()
    refused = 0
    for _ in range(rounds):
        path.write_bytes(damaged(data, chance))
        try:
            read_fabric(path)
        except TopologyError as error:
            refused += 1
            assert str(path) in str(error)
            assert len(str(error)) < 900
    return refused


FORMS = ("links", "adjacency", "graphml", "topo", "infragraph", "infragraph-yaml")


@pytest.mark.parametrize("form", FORMS)
def test_damage_is_told_and_never_more(form: str, tmp_path: Path) -> None:
    rounds = 15 if form == "infragraph-yaml" else 100
    assert attack(form, tmp_path / "x", rounds, seed=1) > rounds / 5


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_much_damage_is_told_and_never_more(form: str, tmp_path: Path) -> None:
    assert sum(attack(form, tmp_path / "x", 1000, seed) for seed in range(10)) > 5000

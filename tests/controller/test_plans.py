"""Plans in parts are plans, and routes of all places at once are those of one after the other."""

from __future__ import annotations

import random
from ipaddress import ip_network
from pathlib import Path

import networkx as nx
import pytest

from controller import LinkSpec, Settings, routes_of, switch_plans
from controller.entities import TableEntry
from controller.tables import Plans
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from topologies import (
    Fabric,
    Link,
    Node,
    NodeKind,
    Speed,
    dragonfly,
    dual_tor,
    fat_tree,
    leaf_spine,
)

SCENARIOS = Path(__file__).parents[2] / "scenarios"
LONG = 2.5  # what a drained cable counts as (controller/routes.py)


def drawn(rng: random.Random) -> Fabric:
    """A fabric, some of whose cables are others."""
    fabric = rng.choice(
        (
            lambda: leaf_spine(rng.randrange(2, 6), rng.randrange(1, 4), 2, rng.randrange(1, 3)),
            lambda: fat_tree(rng.choice((2, 4, 6)), rng.randrange(1, 3)),
            lambda: dragonfly(3, 2, 1, 1),
            lambda: dual_tor(2, 2, 2),
        )
    )()
    unlike = rng.sample(fabric.links, rng.choice((0, 0, 3)))
    return fabric.at_speeds({link.name: Speed(rng.choice((10**10, 10**11))) for link in unlike})


def drawn_settings(rng: random.Random, fabric: Fabric) -> Settings:
    """What matters to who is told the same as others."""
    links = [link for link in fabric.links if link.joins_switches]
    some = [rng.choice(links).direction(rng.choice((links[0].a, links[0].b))) for _ in range(2)]
    return Settings(
        fabric_link=LinkSpec(rng.choice((10**11, 4 * 10**11))),
        slowed=dict.fromkeys(some, 0.5) if rng.random() < 0.3 else {},
        drained=frozenset(link.name for link in rng.sample(links, rng.choice((0, 0, 1)))),
    )


@pytest.mark.parametrize("fabric", [leaf_spine(2, 2, 2), dual_tor(2, 2, 2), dragonfly(3, 2, 1, 1)])
def test_no_entry_is_there_twice(fabric: Fabric) -> None:
    """Not even where hosts have two ports, and tenants: of one address, or of two."""
    settings = Settings(tenants={host.name: 1 + n % 2 for n, host in enumerate(fabric.hosts)})
    for plan in switch_plans(fabric, settings).values():
        entries = [entry for entry in plan if isinstance(entry, TableEntry)]
        keys = {(each.table, each.match, each.priority) for each in entries}
        assert len(keys) == len(entries) > 0


@pytest.mark.parametrize("seed", range(25))
def test_parts_are_the_plan(seed: int) -> None:
    rng = random.Random(seed)
    fabric = drawn(rng)
    settings = drawn_settings(rng, fabric)
    whole, parts = switch_plans(fabric, settings), Plans(fabric, settings)
    for switch in fabric.switches:
        plan = parts.parts(switch).plan
        assert len({entity.key for entity in plan}) == len(plan)
        assert set(plan) == set(whole[switch.name])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(file.stem for file in SCENARIOS.glob("*.yaml")))
def test_parts_are_the_plan_of_all_that_ships(name: str) -> None:
    experiment = Experiment.of(catalogue.load(name))
    if len(experiment.fabric.switches) > 40:
        pytest.skip("a small fabric of its kind is drawn above")
    whole = switch_plans(experiment.fabric, experiment.settings)
    parts = Plans(experiment.fabric, experiment.settings)
    for switch in experiment.fabric.switches:
        assert set(parts.parts(switch).plan) == set(whole[switch.name])


def test_switches_of_a_kind_share_what_they_are_told() -> None:
    """Else 5,120 switches take as much as they hold."""
    fabric = fat_tree(8)
    plans = Plans(fabric)
    parts_of = {switch: plans.parts(switch) for switch in fabric.switches}
    whole = sum(len(parts.plan) for parts in parts_of.values())
    once = {id(part): len(part) for parts in parts_of.values() for part in parts.alike}
    own = sum(len(parts.own) for parts in parts_of.values())
    assert sum(once.values()) + own < whole / 4


def weighed(fabric: Fabric, dead: frozenset[str], drained: frozenset[str]) -> nx.Graph[Node]:
    graph: nx.Graph[Node] = nx.Graph()
    graph.add_nodes_from(fabric.switches)
    for link in fabric.links:
        if link.joins_switches and link.name not in dead:
            far = LONG if link.name in drained else 1
            known = graph.get_edge_data(link.a, link.b, {"far": far})["far"]
            graph.add_edge(link.a, link.b, far=min(far, known))
    return graph


@pytest.mark.parametrize("seed", range(30))
def test_routes_are_the_shortest_ways(seed: int) -> None:
    rng = random.Random(seed)
    kinds = fat_tree(4), fat_tree(6, 1), leaf_spine(4, 3, 1, 2), dragonfly(3, 2, 1, 1)
    fabric = rng.choice(kinds)
    cables = [link for link in fabric.links if link.joins_switches]

    def some(most: int) -> frozenset[str]:
        return frozenset(link.name for link in rng.sample(cables, rng.randrange(most + 1)))

    dead, drained = some(4), some(3)
    graph = weighed(fabric, dead, drained)
    far = dict(nx.all_pairs_dijkstra_path_length(graph, weight="far"))

    def is_way(link: Link, here: Node, to: Node) -> bool:
        there = link.b if link.a == here else link.a
        if there.kind is NodeKind.HOST or link.name in dead or to not in far[there]:
            return False
        length = graph.edges[here, there]["far"]
        counts = LONG if link.name in drained else 1
        return bool(counts == length and far[there][to] + length == far[here][to])

    for switch, routes in routes_of(fabric, dead, drained).items():
        found = {route.prefix: {hop.port for hop in route.next_hops} for route in routes}
        own = {ip_network(fabric.address(host)) for host in fabric.hosts_of(switch)}
        wanted = {
            fabric.prefix(leaf): {
                port
                for port in fabric.ports(switch)
                if is_way(fabric.link_at(switch, port), switch, leaf)
            }
            for leaf in fabric.switches
            if fabric.hosts_of(leaf) and leaf != switch and leaf in far[switch]
        }
        assert {at: ports for at, ports in found.items() if at not in own} == wanted, (switch, dead)

"""Drained cables: nobody chooses them who has another way, and nothing is lost meanwhile.

The judge is networkx's graph without them, in which the ways are looked for anew.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import pairwise

import networkx as nx
import pytest

from controller import Settings, Steering, segments, still_taken, switch_plans
from controller.routes import Route, routes_of
from topologies import Fabric, Link, Node, fat_tree, leaf_spine, planes

Routes = dict[Node, tuple[Route, ...]]
MAX_HOPS = 24


def drawn_fabric(rng: random.Random) -> Fabric:
    make: Callable[[], Fabric] = rng.choice(
        (
            lambda: leaf_spine(rng.randrange(2, 5), rng.randrange(1, 5), 1),
            lambda: doubled(leaf_spine(rng.randrange(2, 4), rng.randrange(1, 4), 1)),
            lambda: fat_tree(4),
            lambda: planes(2, rng.randrange(2, 4), rng.randrange(1, 3), 1),
        )
    )
    return make()


def doubled(fabric: Fabric) -> Fabric:
    """The same with two cables wherever there was one between switches."""
    for link in [link for link in fabric.links if link.joins_switches]:
        fabric.add_link(link.a, link.b)
    return fabric


def between(fabric: Fabric) -> list[Link]:
    return [link for link in fabric.links if link.joins_switches]


def pairs(fabric: Fabric) -> Iterator[tuple[Node, Node]]:
    leaves = [switch for switch in fabric.switches if fabric.hosts_of(switch)]
    for one in leaves:
        for other in leaves:
            if one != other and fabric.plane_of(one) == fabric.plane_of(other):
                yield one, other


def without(fabric: Fabric, names: frozenset[str]) -> nx.Graph[Node]:
    graph: nx.Graph[Node] = nx.Graph()
    graph.add_nodes_from(fabric.switches)
    graph.add_edges_from((link.a, link.b) for link in between(fabric) if link.name not in names)
    return graph


def walks(fabric: Fabric, routes: Routes, src: Node, dst: Node) -> Iterator[tuple[Link, ...]]:
    """Every way that the routes let a packet take from leaf to leaf, by its cables."""

    def on_from(at: Node, gone: tuple[Link, ...]) -> Iterator[tuple[Link, ...]]:
        if at == dst:
            yield gone
            return
        assert len(gone) < MAX_HOPS, f"from {src} to {dst} packets go round"
        (found,) = (route for route in routes[at] if route.leaf == dst.number)
        assert found.next_hops
        for hop in found.next_hops:
            link = fabric.link_at(at, hop.port)
            yield from on_from(link.b if link.a == at else link.a, (*gone, link))

    yield from on_from(src, ())


def nodes_of(src: Node, way: tuple[Link, ...]) -> tuple[Node, ...]:
    nodes = [src]
    for link in way:
        nodes.append(link.b if link.a == nodes[-1] else link.a)
    return tuple(nodes)


@pytest.mark.parametrize("seed", range(60))
def test_drained_cables_are_left_to_who_has_no_other_way(seed: int) -> None:
    rng = random.Random(seed)
    fabric = drawn_fabric(rng)
    links = between(fabric)
    drained = frozenset(
        link.name for link in rng.sample(links, min(len(links), rng.randrange(1, 4)))
    )
    whole, free = without(fabric, frozenset()), without(fabric, drained)
    before, after = routes_of(fabric), routes_of(fabric, frozenset(), drained)
    taken: set[str] = set()
    for src, dst in pairs(fabric):
        ways = set(walks(fabric, after, src, dst))
        assert ways
        wanted = (
            set(map(tuple, nx.all_shortest_paths(free, src, dst)))
            if nx.has_path(free, src, dst)
            else set()
        )
        is_as_short = bool(wanted) and nx.shortest_path_length(
            free, src, dst
        ) == nx.shortest_path_length(whole, src, dst)
        used = {link.name for way in ways for link in way} & drained
        if is_as_short:
            assert not used
            assert {nodes_of(src, way) for way in ways} == wanted
        taken |= used
    assert taken == still_taken(fabric, frozenset(), drained)

    # Some have heard of it and some have not: nothing goes round, nothing ends.
    for _ in range(4):
        heard = {switch for switch in fabric.switches if rng.random() < 0.5}
        mixed = {
            switch: after[switch] if switch in heard else before[switch]
            for switch in fabric.switches
        }
        for src, dst in pairs(fabric):
            assert list(walks(fabric, mixed, src, dst))


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(60))
def test_segment_lists_name_the_ways_that_are_left_in_places_that_stay(seed: int) -> None:
    """What a list says is walked cable by cable; a list's number never leads elsewhere."""
    rng = random.Random(seed)
    fabric = drawn_fabric(rng).speaking(6)
    links = between(fabric)
    leaves = [leaf for leaf in fabric.switches if fabric.hosts_of(leaf)]
    leaf = rng.choice(leaves)
    others = [
        other
        for other in leaves
        if other != leaf and fabric.plane_of(other) == fabric.plane_of(leaf)
    ]
    steering = tuple(Steering(leaf.name, other.name) for other in rng.sample(others, len(others)))
    ends: dict[int, Node] = {}
    for _ in range(4):
        drained = frozenset(link.name for link in links if rng.random() < 0.2)
        dead = frozenset(link.name for link in links if rng.random() < 0.15)
        settings = Settings(segments=True, steering=steering, drained=drained)
        free = without(fabric, drained | dead)
        length = nx.shortest_path_length
        for policy in segments.policies_of(fabric, leaf, settings, dead):
            living = without(fabric, dead)
            dst = policy.target
            clean = nx.has_path(free, leaf, dst) and (
                length(free, leaf, dst) == length(living, leaf, dst)
            )
            for number, (path, first) in enumerate(policy.ways, policy.first):
                assert ends.setdefault(number, dst) == dst
                assert path[0] == leaf and path[-1] == dst and first.name not in dead
                usids = segments.usids_along(path)
                named = [segments.usid_of(switch) for switch in path[1:]]
                assert list(usids) == [*named, segments.END]
                for here, there in pairwise(path):
                    cables = {link.name for link in fabric.links_between(here, there)} - dead
                    assert cables
                    if clean:
                        assert cables - drained
                if clean:
                    assert first.name not in drained
        plan = switch_plans(fabric, settings, dead)[leaf.name]
        lists = {
            dict(e.match)["chosen"] for e in plan if getattr(e, "table", "") == "segment_lists"
        }
        for choice in (e for e in plan if getattr(e, "table", "") == "segment_policies"):
            first_list, count = dict(choice.params)["first_list"], dict(choice.params)["lists"]
            assert {*range(first_list, first_list + count)} <= lists


def test_a_drained_cable_without_another_way_is_named() -> None:
    fabric = leaf_spine(2, 2, 1)
    assert not still_taken(fabric, frozenset(), {"leaf1-spine1"})
    assert still_taken(fabric, {"leaf1-spine2"}, {"leaf1-spine1"}) == {"leaf1-spine1"}
    both = {"leaf1-spine1", "leaf1-spine2"}
    assert still_taken(fabric, frozenset(), both) == both

"""Segment lists, walked: what switches were told is read digit by digit, as their tables go by it,
and where that leads is held to networkx's shortest ways over what lives.

Nothing of `controller.segments` is asked. A uSID is told by its digits, as docs/fabric.md has them.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from ipaddress import IPv6Address
from itertools import pairwise

import networkx as nx
import pytest

from controller import Settings, Steering, SwitchPlan, switch_plans
from controller.entities import Match, TableEntry
from lab.scenario.ways import Ways
from params.data import Data
from topologies import Fabric, Link, Node, fat_tree, leaf_spine, planes

BLOCK = 0xFCBBBB00


class Switch(Data, frozen=False):
    """What one was told, as far as carriers go."""

    node: Node
    fabric: Fabric
    plan: SwitchPlan

    def entries(self, table: str) -> Iterator[TableEntry]:
        return (e for e in self.plan if isinstance(e, TableEntry) and e.table == table)

    def find(self, table: str, key: str, value: Match) -> list[TableEntry]:
        """The entries for a value of a key."""
        return [each for each in self.entries(table) if dict(each.match)[key] == value]

    def longest(self, table: str, address: int) -> TableEntry | None:
        """The entry with the longest prefix that an address begins with."""
        found: dict[int, TableEntry] = {}
        for each in self.entries(table):
            ((_, prefix),) = each.match
            assert isinstance(prefix, tuple)
            value, length = prefix
            if address >> (128 - length) == value >> (128 - length):
                found[length] = each
        return found[max(found)] if found else None

    def ports(self, entry: TableEntry) -> list[int]:
        """By which a packet may leave that an entry is hit by."""
        params = dict(entry.params)
        if entry.action == "to_port":
            return [params["port"]]
        assert entry.action == "to_group", entry
        slots = self.find("group_slots", "meta.group", params["group"])
        return [dict(slot.params)["port"] for slot in slots]


def shifted(address: int, digits: int) -> int:
    """An address without its first uSIDs: the others move up, the block stays."""
    left = address % (1 << 96) << 16 * digits
    return address >> 96 << 96 | left % (1 << 96)


def walks(
    switches: Mapping[Node, Switch], at: Node, address: int, segments: tuple[int, ...]
) -> Iterator[tuple[Link, ...]]:
    """Every way, by its cables, on which a carrier that comes to a switch gets to its end."""
    here = switches[at]
    local = here.longest("local_sids", address)
    if local is not None:
        own_first = dict(local.params).get("own_first", 0)
        address = shifted(address, 1 + own_first)
        left = address % (1 << 96)
        if local.action == "decapsulate":
            assert not left and not segments, f"{at}: a list goes on behind its end"
            yield ()
            return
        if not left:
            assert segments, f"{at}: a list ends, and nothing says where"
            address, segments = segments[0], segments[1:]
    if local is not None and local.action == "adjacency":
        ports = [dict(local.params)["port"]]
    else:
        entry = here.longest("sid_routes", address)
        assert entry is not None, f"{at} knows no way to {IPv6Address(address)}"
        ports = here.ports(entry)
    assert ports
    for port in ports:
        link = here.fabric.link_at(at, port)
        for rest in walks(switches, link.b if link.a == at else link.a, address, segments):
            yield (link, *rest)


def nodes(start: Node, way: tuple[Link, ...]) -> tuple[Node, ...]:
    found = [start]
    for link in way:
        found.append(link.b if link.a == found[-1] else link.a)
    return tuple(found)


def named(address: int, segments: tuple[int, ...] = ()) -> list[str]:
    """The switches that a list names, by the digits of their uSIDs."""
    usids = [each >> 16 * at & 0xFFFF for each in (address, *segments) for at in range(5, -1, -1)]
    usids = [usid for usid in usids if usid]
    assert usids[-1] == 0xF000
    assert all(each >> 96 == BLOCK for each in (address, *segments))
    kinds = {1: "leaf", 2: "spine", 3: "core"}
    return [f"{kinds[usid >> 12]}{usid & 0xFFF}" for usid in usids[:-1]]


def drawn(rng: random.Random) -> Fabric:
    kind = rng.randrange(4)
    if kind == 0:
        return fat_tree(4)
    if kind == 1:
        return planes(rng.choice((1, 2, 4)), rng.randrange(2, 4), rng.randrange(1, 4), 1)
    fabric = leaf_spine(rng.randrange(2, 6), rng.randrange(1, 6), 1)
    if kind == 2:
        for link in [each for each in fabric.links if each.joins_switches]:
            if rng.random() < 0.5:
                fabric.add_link(link.a, link.b)
    return fabric


def living(fabric: Fabric, dead: frozenset[str]) -> nx.Graph[Node]:
    graph: nx.Graph[Node] = nx.Graph()
    graph.add_nodes_from(fabric.switches)
    links = (link for link in fabric.links if link.joins_switches and link.name not in dead)
    graph.add_edges_from((link.a, link.b) for link in links)
    return graph


SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 200))]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_list_reaches_its_end_over_the_links_that_it_names(seed: int) -> None:
    rng = random.Random(seed)
    fabric = drawn(rng).speaking(6)
    leaves = [switch for switch in fabric.switches if fabric.hosts_of(switch)]
    steerings = tuple(
        Steering(one.name, other.name)
        for one in leaves
        for other in leaves
        if one != other and fabric.plane_of(one) == fabric.plane_of(other) and rng.random() < 0.7
    )
    cables = [link.name for link in fabric.links if link.joins_switches]
    dead = frozenset(rng.sample(cables, rng.randrange(min(4, len(cables)))))
    plans = switch_plans(fabric, Settings(segments=True, steering=steerings), dead)
    switches = {node: Switch(node, fabric, plans[node.name]) for node in fabric.switches}
    graph = living(fabric, dead)
    for steering in steerings:
        leaf, target = fabric.node(steering.leaf), fabric.node(steering.to)
        here = switches[leaf]
        prefix = int(fabric.prefix(target).network_address), 64
        routes = here.find("ipv6_routes", "hdr.ipv6.dst_addr", prefix)
        if not nx.has_path(graph, leaf, target):
            assert all(route.action != "to_segments" for route in routes)
            continue
        (route,) = routes
        number = dict(route.params)["policy"]
        (policy,) = (dict(e.params) for e in here.find("segment_policies", "meta.steering", number))
        numbers = range(policy["first_list"], policy["first_list"] + policy["lists"])
        found: set[tuple[Node, ...]] = set()
        for entry in here.entries("segment_lists"):
            if dict(entry.match)["chosen"] not in numbers:
                continue
            params = dict(entry.params)
            left = params.get("segments", 0)
            behind = tuple(params[f"segment{at}"] for at in reversed(range(left)))
            first = fabric.link_at(leaf, params["port"])
            begins = first.b if first.a == leaf else first.a
            ways = [(first, *way) for way in walks(switches, begins, params["sids"], behind)]
            assert ways
            for way in ways:
                assert not {link.name for link in way} & dead
                went = nodes(leaf, way)
                assert [node.name for node in went[1:]] == named(params["sids"], behind)
                found.add(went)
        assert found == set(map(tuple, nx.all_shortest_paths(graph, leaf, target)))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_adapters_write_reaches_its_end_and_what_they_are_denied_would_not(seed: int) -> None:
    """Entropy by entropy, in both directions; a way that is whole and free is never denied."""
    rng = random.Random(~seed)
    fabric = drawn(rng).speaking(6)
    hosts = list(fabric.hosts)
    ways = Ways(fabric, 16)
    cables = [link.name for link in fabric.links if link.joins_switches]
    lost = rng.sample(cables, rng.randrange(min(5, len(cables))))
    dead, drained = frozenset(lost[::2]), frozenset(lost[1::2])
    settings = Settings(segments=True, hosts_steer=True, drained=drained)
    plans = switch_plans(fabric, settings, dead)
    switches = {node: Switch(node, fabric, plans[node.name]) for node in fabric.switches}
    alive, free = living(fabric, dead), living(fabric, dead | drained)
    for _ in range(6):
        src, dst = rng.sample(hosts, 2)
        denied = ways.denied({(src, 1): (src, dst)}, dead, drained)[src, 1]
        there, back = ways.lists(src, dst), ways.lists(dst, src)
        bad = [0.0] * len(there)
        for entropy, (out, home) in enumerate(zip(there, back, strict=True)):
            plane = entropy % fabric.planes
            leaf, last = fabric.leaf_of(src, plane), fabric.leaf_of(dst, plane)
            if out is None or home is None:
                assert leaf == last
                continue
            names = [leaf.name, *named(int(out))]
            assert names == [last.name, *named(int(home))][::-1]
            path = [fabric.node(name) for name in names]
            whole, clean = (set(map(frozenset, graph.edges)) for graph in (alive, free))
            steps = list(map(frozenset, pairwise(path)))
            bad[entropy] = sum(step not in clean for step in steps)
            if not whole.issuperset(steps):
                bad[entropy] = math.inf
            if not bad[entropy]:
                for way in walks(switches, leaf, int(out), ()):
                    assert nodes(leaf, way) == tuple(path)
                    assert not {link.name for link in way} & (dead | drained)
        assert denied == {entropy for entropy, each in enumerate(bad) if each > min(bad)}

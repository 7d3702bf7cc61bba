"""Routes from the graph: for every destination, every neighbour that lies on a shortest path.

A leaf knows each of its own hosts; everything else is known by the prefix of its leaf. Where
several neighbours are equally near, the route has several next hops, in the order of their names.

Cables between the same two switches are ways of their own.

Hosts that hang at a pair of leaves are known by both, and ways lead to both; where one of the two
has lost its cable to a host, that host is known by an address of its own, at the other.

Round dead cables the shortest way may lead down and up again, through a leaf that is neither end.
That keeps hosts connected, and may close a cycle of buffers: the watchdog of p4src/pause.p4 is
there for such.

A cable that is drained carries as well as ever, and counts as longer than it is: more than a
way by one switch further, less than one down and up again. Whoever has an equally short way takes
that, and the switch before it goes on by it with what is still on its way there: nothing turns back
towards who has not heard of it yet, and nothing is lost.

That holds for one cable in any fabric: to go round between who has heard and who has not, a packet
must have been sent a whole link further back at every other step, which 1.5 links more are too few
for. It holds for several at once where ways round are longer by an even number of links.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from ipaddress import ip_network

import networkx as nx

from topologies import Fabric, Link, Network, Node

MOST_WAYS = 64  # of a group of next hops (p4src/path.p4)
FAR = "far"  # what an edge is called that counts as more than one, and a graph that has some
_DRAINED = 2.5  # links that a drained one counts as


@dataclass(frozen=True, slots=True)
class NextHop:
    """A way to leave a switch."""

    port: int
    mac: str


@dataclass(frozen=True, slots=True)
class Route:
    """A prefix and the equally good ways towards it."""

    prefix: Network
    next_hops: tuple[NextHop, ...]
    leaf: int = 0  # whose hosts these are, if not this switch's own


Distances = dict[Node, float]
Ways = list[tuple[Node, float, list[NextHop]]]  # a neighbour, how far it counts as, its cables


def routes_of(
    fabric: Fabric,
    dead: Collection[str] = frozenset(),
    drained: Collection[str] = frozenset(),
) -> dict[Node, tuple[Route, ...]]:
    """Every switch's routes, over the links that are not dead, which are called by their names."""
    living = living_switches(fabric, dead, drained)
    leaves = [switch for switch in fabric.switches if fabric.hosts_of(switch)]
    distances = {leaf: distances_from(living, leaf) for leaf in leaves}
    places = _places(fabric, leaves, dead)
    nearest = {ends: _nearest([distances[leaf] for leaf in ends]) for ends in places.values()}
    routes = {}
    for switch in fabric.switches:
        ways = _ways(fabric, living, switch, {*dead}, {*drained})
        routes[switch] = (
            *_to_own_hosts(fabric, switch, dead),
            *(
                Route(prefix, hops, ends[0].number)
                for prefix, ends in places.items()
                if switch not in ends and switch in nearest[ends]
                for hops in [_towards(ways, nearest[ends][switch], nearest[ends], dead)]
            ),
        )
    return routes


def routes_behind(
    fabric: Fabric,
    behind: Mapping[Network, Mapping[Node, tuple[NextHop, ...]]],
    dead: Collection[str] = frozenset(),
) -> dict[Node, tuple[Route, ...]]:
    """Every switch's routes to what is behind leaves, who know themselves how they send there."""
    living = living_switches(fabric, dead)
    nearest = {
        prefix: _nearest([distances_from(living, leaf) for leaf in leaves])
        for prefix, leaves in behind.items()
    }
    routes = {}
    for switch in fabric.switches:
        ways = _ways(fabric, living, switch, {*dead}, set())
        routes[switch] = tuple(
            Route(prefix, leaves.get(switch) or _towards(ways, far[switch], far, dead))
            for prefix, leaves in behind.items()
            for far in [nearest[prefix]]
            if switch in far
        )
    return routes


def _nearest(distances: list[Distances]) -> Distances:
    """How far every switch is from the nearest of several."""
    if len(distances) == 1:
        return distances[0]
    found: Distances = {}
    for each in distances:
        found |= {node: min(far, found.get(node, far)) for node, far in each.items()}
    return found


def _places(
    fabric: Fabric, leaves: Collection[Node], dead: Collection[str]
) -> dict[Network, tuple[Node, ...]]:
    """By prefix: the leaves that it is behind."""
    found: dict[Network, tuple[Node, ...]] = {}
    for leaf in leaves:
        if not fabric.has_pairs or any(
            _is_here(fabric, host, leaf, dead) for host in fabric.hosts_of(leaf)
        ):
            for prefix in fabric.prefixes(leaf):
                found[prefix] = *found.get(prefix, ()), leaf
    if fabric.has_pairs and dead:
        for host in fabric.hosts:
            both = fabric.leaves_of(host)
            here = tuple(leaf for leaf in both if _is_here(fabric, host, leaf, dead))
            if here and here != found.get(fabric.prefix(both[0])):
                found[ip_network(fabric.address(host))] = here
    return found


def _is_here(fabric: Fabric, host: Node, leaf: Node, dead: Collection[str]) -> bool:
    return any(link.name not in dead for link in fabric.links_between(host, leaf))


def _to_own_hosts(fabric: Fabric, switch: Node, dead: Collection[str]) -> tuple[Route, ...]:
    """By its own cables; of a pair's leaves only if these live: the other's may."""
    return tuple(
        Route(
            ip_network(fabric.address(host, switch)),
            (NextHop(fabric.port_towards(switch, host), fabric.mac(host, switch)),),
        )
        for host in fabric.plain_hosts_of(switch)
        if not fabric.has_pairs or _is_here(fabric, host, switch, dead)
    )


def living_switches(
    fabric: Fabric,
    dead: Collection[str] = frozenset(),
    drained: Collection[str] = frozenset(),
) -> nx.Graph[Node]:
    """Switches, and who is joined by a cable that is not dead; by drained ones alone it is far."""
    graph: nx.Graph[Node] = nx.Graph()
    graph.add_nodes_from(fabric.switches)
    living = [link for link in fabric.links if link.joins_switches and link.name not in dead]
    graph.add_edges_from((link.a, link.b) for link in living)
    if drained:
        near = {frozenset((link.a, link.b)) for link in living if link.name not in drained}
        for link in living:
            if frozenset((link.a, link.b)) not in near:
                graph.edges[link.a, link.b][FAR] = _DRAINED
                graph.graph[FAR] = True
    return graph


def in_turn(
    fabric: Fabric, before: frozenset[str], after: frozenset[str]
) -> Iterator[frozenset[str]]:
    """What switches are to be told is drained, one after the other, the last being ``after``."""
    now = before
    if not nx.is_bipartite(living_switches(fabric)):
        for name in sorted(before ^ after)[:-1]:
            now ^= {name}
            yield now
    yield after


def distances_from(graph: nx.Graph[Node], switch: Node) -> Distances:
    """How far everybody is who can be reached."""
    if graph.graph.get(FAR):
        return dict(nx.single_source_dijkstra_path_length(graph, switch, weight=FAR))
    return dict(nx.single_source_shortest_path_length(graph, switch))


def ways_to(
    fabric: Fabric,
    switch: Node,
    dead: Collection[str] = frozenset(),
    drained: Collection[str] = frozenset(),
) -> dict[Node, tuple[NextHop, ...]]:
    """The next hops to every other switch that can be reached."""
    graph = living_switches(fabric, dead, drained)
    near = distances_from(graph, switch)
    ways = _ways(fabric, graph, switch, {*dead}, {*drained})
    found = {}
    for other in sorted(near):
        if other != switch:
            distance = distances_from(graph, other)
            found[other] = _towards(ways, distance[switch], distance, dead)
    return found


def still_taken(
    fabric: Fabric,
    dead: Collection[str] = frozenset(),
    drained: Collection[str] = frozenset(),
) -> frozenset[str]:
    """The drained links that some two leaves have no other way than."""
    graph = living_switches(fabric, dead, drained)
    leaves = [switch for switch in fabric.switches if fabric.hosts_of(switch)]
    distances = [distances_from(graph, leaf) for leaf in leaves]
    links = [link for link in fabric.links if link.name in drained and link.name not in dead]

    def is_taken(link: Link) -> bool:
        cost = graph.edges[link.a, link.b].get(FAR)
        return cost is not None and any(
            near[link.a] + cost + far[link.b] == near[leaf]
            for near in distances
            for leaf, far in zip(leaves, distances, strict=True)
            if link.a in near and leaf in near
        )

    return frozenset(link.name for link in links if is_taken(link))


def _ways(
    fabric: Fabric,
    graph: nx.Graph[Node],
    switch: Node,
    dead: Set[str],
    drained: Set[str],
) -> Ways:
    """A switch's neighbours, how far each counts as, and every living cable to it that may be
    chosen."""
    ways: Ways = []
    for peer in sorted(graph.neighbors(switch)):
        cost = graph.edges[switch, peer].get(FAR, 1)
        left_out = dead if cost > 1 else dead | drained
        cables = [each for each in fabric.links_between(switch, peer) if each.name not in left_out]
        mac = fabric.mac(peer)
        ways.append((peer, cost, [NextHop(link.port_of(switch), mac) for link in cables]))
    return ways


def _towards(
    ways: Ways, near: float, distance: dict[Node, float], dead: Collection[str]
) -> tuple[NextHop, ...]:
    """The next hops to the leaf that everybody is so far from, of who is that near."""
    hops = [hop for peer, cost, hops in ways if distance[peer] + cost == near for hop in hops]
    # A way round may lead over any leaf: as many as a group holds are enough.
    return tuple(hops[:MOST_WAYS] if dead else hops)

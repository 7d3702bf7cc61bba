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

from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from ipaddress import ip_network
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from params.data import Data
from topologies import Fabric, Link, Network, Node

if TYPE_CHECKING:
    import networkx as nx

MAX_WAYS = 64  # of a group of next hops (p4src/path.p4)
FAR = "far"  # what an edge is called that counts as more than one, and a graph that has some
_DRAINED = 2.5  # links that a drained one counts as


class NextHop(Data):
    """A way to leave a switch."""

    port: int
    mac: str


class Route(Data):
    """A prefix and the equally good ways towards it."""

    prefix: Network
    next_hops: tuple[NextHop, ...]
    leaf: int = 0  # whose hosts these are, if not this switch's own


Distances = dict[Node, float]
Places = int  # a set of them, a bit each by their numbers
_Neighbour = tuple[Node, int, tuple[NextHop, ...]]  # who, how far, and the cables to take


def routes_of(
    fabric: Fabric,
    dead: Collection[str] = frozenset(),
    drained: Collection[str] = frozenset(),
) -> dict[Node, tuple[Route, ...]]:
    """Every switch's routes, over the links that are not dead, which are called by their names."""
    routes = RouteMap(fabric, dead, drained)
    return {switch: tuple(routes.of(switch)) for switch in fabric.switches}


class Ways(NamedTuple):
    """Equally good ways from a switch, and the places they lead to."""

    hops: tuple[NextHop, ...]
    places: Places


class Directions:
    """The ways from every switch to every place, which is at one switch or at several.

    What is as far from a switch, and what is that near to its neighbour, is found for all places
    at once.
    """

    def __init__(
        self,
        fabric: Fabric,
        places: Iterable[Collection[Node]],
        dead: Collection[str] = frozenset(),
        drained: Collection[str] = frozenset(),
    ) -> None:
        self._most = MAX_WAYS if dead else None  # a way round may lead over any leaf
        self._neighbours = _neighbours(fabric, {*dead}, {*drained})
        here = dict.fromkeys(fabric.switches, 0)
        for number, switches in enumerate(places):
            for switch in switches:
                here[switch] |= 1 << number
        self._far = self._reached(here)

    def _reached(self, here: dict[Node, Places]) -> dict[Node, dict[int, Places]]:
        """By switch and distance: the places that are so far away."""
        found = {switch: {0: places} for switch, places in here.items()}
        known = dict(here)
        most = max((far for near in self._neighbours.values() for _, far, _ in near), default=1)
        distance = latest = 0
        while distance - latest < most:
            distance += 1
            for switch, neighbours in self._neighbours.items():
                places = 0
                for peer, far, _ in neighbours:
                    places |= found[peer].get(distance - far, 0)
                if places := places & ~known[switch]:
                    found[switch][distance] = places
                    known[switch] |= places
                    latest = distance
        return found

    def ways(self, switch: Node) -> list[Ways]:
        """A switch's ways to what is not its own, in the order of the first places there."""
        found: dict[tuple[NextHop, ...], Places] = {}
        for distance, places in self._far[switch].items():
            kinds = [Ways((), places)] if distance else []
            for peer, far, hops in self._neighbours[switch]:
                if towards := self._far[peer].get(distance - far, 0) & places:
                    kinds = [*_parted(kinds, towards, hops)]
            for ways in kinds:
                hops = ways.hops[: self._most]
                found[hops] = found.get(hops, 0) | ways.places
        return sorted(starmap(Ways, found.items()), key=lambda ways: ways.places & -ways.places)

    def hops(self, switch: Node) -> dict[int, tuple[NextHop, ...]]:
        """The same by the number of a place."""
        return {number: hops for hops, places in self.ways(switch) for number in numbers_of(places)}


def _parted(kinds: Iterable[Ways], towards: Places, hops: tuple[NextHop, ...]) -> Iterator[Ways]:
    """The same, where these ways lead to some of the places, too."""
    for known, places in kinds:
        if both := places & towards:
            yield Ways((*known, *hops), both)
        if others := places & ~towards:
            yield Ways(known, others)


def numbers_of(places: Places) -> Iterator[int]:
    """The numbers of places, in order."""
    while places:
        first = places & -places
        yield first.bit_length() - 1
        places ^= first


class RouteMap:
    """Every switch's routes: to its own hosts, and to what is behind others."""

    def __init__(
        self,
        fabric: Fabric,
        dead: Collection[str] = frozenset(),
        drained: Collection[str] = frozenset(),
    ) -> None:
        self._fabric, self._dead = fabric, dead
        leaves = [switch for switch in fabric.switches if fabric.hosts_of(switch)]
        self._prefixes = _places(fabric, leaves, dead)
        behind: dict[tuple[Node, ...], list[Network]] = {}
        for prefix, ends in self._prefixes.items():
            behind.setdefault(ends, []).append(prefix)
        self._numbers = {ends: number for number, ends in enumerate(behind)}
        self.places = [(ends[0].number, prefixes) for ends, prefixes in behind.items()]
        """By number: which leaf, or which pair's first, and what is there."""
        self._directions = Directions(fabric, behind, dead, drained)

    def of(self, switch: Node) -> Iterator[Route]:
        """A switch's routes."""
        yield from self.own(switch)
        hops = self._directions.hops(switch)
        for prefix, ends in self._prefixes.items():
            if found := hops.get(self._numbers[ends]):
                yield Route(prefix, found, ends[0].number)

    def own(self, switch: Node) -> tuple[Route, ...]:
        """Those to its own hosts."""
        return _to_own_hosts(self._fabric, switch, self._dead)

    def ways(self, switch: Node) -> list[Ways]:
        """The others' next hops, and the places they lead to."""
        return self._directions.ways(switch)


def routes_behind(
    fabric: Fabric,
    behind: Mapping[Network, Mapping[Node, tuple[NextHop, ...]]],
    dead: Collection[str] = frozenset(),
) -> dict[Node, tuple[Route, ...]]:
    """Every switch's routes to what is behind leaves, who know themselves how they send there."""
    directions = Directions(fabric, behind.values(), dead)
    routes = {}
    for switch in fabric.switches:
        hops = directions.hops(switch)
        routes[switch] = tuple(
            Route(prefix, hops[number] if number in hops else leaves[switch])
            for number, (prefix, leaves) in enumerate(behind.items())
            if number in hops or switch in leaves
        )
    return routes


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
    import networkx as nx  # as below: routes do without

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
    import networkx as nx

    now = before
    if not nx.is_bipartite(living_switches(fabric)):
        for name in sorted(before ^ after)[:-1]:
            now ^= {name}
            yield now
    yield after


def distances_from(graph: nx.Graph[Node], switch: Node) -> Distances:
    """How far everybody is who can be reached."""
    import networkx as nx

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
    directions = Directions(fabric, ((other,) for other in fabric.switches), dead, drained)
    return {
        fabric.switches[number]: hops for number, hops in sorted(directions.hops(switch).items())
    }


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


def _neighbours(fabric: Fabric, dead: Set[str], drained: Set[str]) -> dict[Node, list[_Neighbour]]:
    """By switch: who is joined to it by a living cable, in order."""
    unit, far = (2, round(2 * _DRAINED)) if drained else (1, 0)
    found: dict[Node, list[_Neighbour]] = {}
    for switch, others in fabric.joined.items():
        found[switch] = beside = []
        for peer in sorted(others):
            living = [each for each in fabric.links_between(switch, peer) if each.name not in dead]
            near = [each for each in living if each.name not in drained] if drained else living
            if living:
                mac = fabric.mac(peer)
                hops = tuple(NextHop(link.port_of(switch), mac) for link in near or living)
                beside.append((peer, unit if near else far, hops))
    return found

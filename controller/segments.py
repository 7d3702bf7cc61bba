"""Segment lists of micro-segments: who has which, which ways they name, and how they are written.

The block is 32 bits and a uSID 16 (F3216), as p4src/usid.p4 takes them out. A switch's follows from
its kind and number, those of its ports and of its end from a range of their own:

    leaf1  fcbb:bb00:1001::/48            its port 3  fcbb:bb00:1001:e003::/64
    spine2 fcbb:bb00:2002::/48            its end     fcbb:bb00:1001:f000::/64
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from enum import Enum
from ipaddress import IPv6Address
from itertools import pairwise
from typing import TYPE_CHECKING

from controller.routes import FAR, living_switches
from controller.settings import Settings, SettingsError, Steering
from params.data import Data
from topologies import Fabric, Link, Node, NodeKind

if TYPE_CHECKING:
    import networkx as nx

BLOCK = 0xFCBBBB00
END = 0xF000
_FIRST_PORT = 0xE000
_KIND_BITS = 12
MAX_IN_CARRIER = 6
MAX_SEGMENTS = 3  # behind a carrier
CARRIER_BYTES, SRH_BYTES, SEGMENT_BYTES = 40, 8, 16


def usid_of(switch: Node) -> int:
    """A switch's uSID."""
    if switch.number >> _KIND_BITS:
        raise SettingsError(f"{switch} has no uSID: there are {(1 << _KIND_BITS) - 1:,} of a kind")
    return switch.kind << _KIND_BITS | switch.number


def usid_of_port(port: int) -> int:
    """The uSID of a switch's port."""
    return _FIRST_PORT + port


def sid(*usids: int) -> int:
    """An IPv6 address that begins with the block and these."""
    if len(usids) > MAX_IN_CARRIER:
        raise SettingsError(f"{len(usids)} uSIDs do not fit one address: {MAX_IN_CARRIER} do")
    value = BLOCK
    for usid in usids:
        value = value << 16 | usid
    return value << 16 * (MAX_IN_CARRIER - len(usids))


def carriers(usids: Sequence[int]) -> tuple[int, ...]:
    """A list of any length, six to an address, the first to be gone by first.

    The last is an end, and stands behind its switch's own uSID: where that one takes the next
    address up, it does not look again whether it is meant.
    """
    cuts = [*range(0, len(usids), MAX_IN_CARRIER), len(usids)]
    if len(cuts) > 2 and cuts[-1] - cuts[-2] == 1:
        cuts[-2] -= 1
    made = tuple(sid(*usids[here:there]) for here, there in pairwise(cuts))
    if len(made) > 1 + MAX_SEGMENTS:
        raise SettingsError(
            f"a segment list has {len(usids)} uSIDs; switches read "
            f"{(1 + MAX_SEGMENTS) * MAX_IN_CARRIER} at most"
        )
    return made


def overhead(n_usids: int) -> int:
    """The bytes that so many uSIDs add to a packet."""
    behind = -(-n_usids // MAX_IN_CARRIER) - 1
    return CARRIER_BYTES + (SRH_BYTES + SEGMENT_BYTES * behind if behind else 0)


def source_of(switch: Node) -> IPv6Address:
    """The address from which a switch steers."""
    return IPv6Address(sid(usid_of(switch)))


Path = tuple[Node, ...]  # from the first leaf to the last, both included
Way = tuple[Path, Link]  # and the cable that it begins with


class Policy(Data):
    """How one leaf steers what goes to a place."""

    number: int  # of the place
    steering: Steering
    target: Node  # a host or a leaf
    first: int  # of its lists' numbers, whatever is dead: so many are its own
    ways: tuple[Way, ...]


def paths_between(graph: nx.Graph[Node], one: Node, other: Node) -> tuple[Path, ...]:
    """All shortest ways from leaf to leaf, in the order of their switches."""
    import networkx as nx

    if not nx.has_path(graph, one, other):
        return ()
    weight = FAR if graph.graph.get(FAR) else None
    found = nx.all_shortest_paths(graph, one, other, weight=weight)
    return tuple(sorted(tuple(path) for path in found))


def policies_of(
    fabric: Fabric,
    leaf: Node,
    settings: Settings,
    dead: Collection[str] = frozenset(),
) -> Iterator[Policy]:
    """What a leaf steers, and by which ways: living ones that are not drained.

    Those without one are left to the routes.
    """
    steering = [policy for policy in settings.steering if policy.leaf == leaf.name]
    if not steering:
        return
    drained = settings.drained
    whole = living_switches(fabric)
    graph = living_switches(fabric, dead, drained) if dead or drained else whole
    numbers: dict[str, int] = {}
    first = 0
    for policy in steering:
        number = numbers.setdefault(policy.to, len(numbers) + 1)
        target = fabric.node(policy.to)
        is_host = target.kind is NodeKind.HOST
        last = fabric.leaf_of(target, fabric.plane_of(leaf)) if is_host else target
        if last == leaf:
            raise SettingsError(f"segments: {target} is at {leaf} itself: nothing is to be steered")
        named = tuple((leaf, *(fabric.node(name) for name in via), last) for via in policy.via)
        for path in named:
            _check(fabric, path)
        paths = named or paths_between(whole, leaf, last)
        most = len(_ways(fabric, paths, frozenset()))
        if named:
            paths = tuple(path for path in named if not drained_on(graph, path))
        elif graph is not whole:
            paths = paths_between(graph, leaf, last)
        ways = _ways(fabric, paths, {*dead})
        free = tuple(way for way in ways if way[1].name not in drained) or ways
        if free:
            # Ways round may be more than those that there were.
            yield Policy(number, policy, target, first, free[:most])
        first += most


class State(Enum):
    """What the controller makes of a way."""

    FREE = "free"
    DENIED = "denied"  # something of it is drained
    DEAD = "dead"


class Listed(Data):
    """A way from leaf to leaf as a segment list."""

    path: Path
    state: State

    @property
    def carriers(self) -> tuple[IPv6Address, ...]:
        """The list as packets have it, the first address first."""
        return tuple(map(IPv6Address, carriers(usids_along(self.path))))


def lists_between(
    fabric: Fabric,
    leaf: Node,
    other: Node,
    dead: Collection[str] = frozenset(),
    drained: Collection[str] = frozenset(),
) -> tuple[Listed, ...]:
    """All shortest ways of a whole fabric from leaf to leaf, and what is to be thought of each."""
    graph = living_switches(fabric, dead, drained)
    paths = paths_between(living_switches(fabric), leaf, other)
    states = {0: State.FREE, math.inf: State.DEAD}
    return tuple(Listed(path, states.get(drained_on(graph, path), State.DENIED)) for path in paths)


def drained_on(graph: nx.Graph[Node], path: Path) -> float:
    """How many steps of a way are drained, by `living_switches`; infinity: it is dead."""
    import networkx as nx

    if not nx.is_path(graph, path):
        return math.inf
    return sum(FAR in graph.edges[ends] for ends in pairwise(path))


def _ways(fabric: Fabric, paths: Iterable[Path], dead: Set[str]) -> tuple[Way, ...]:
    return tuple(
        (path, link)
        for path in paths
        for link in fabric.links_between(*path[:2])
        if link.name not in dead
    )


def _check(fabric: Fabric, path: Path) -> None:
    for here, there in pairwise(path):
        if not fabric.links_between(here, there):
            known = sorted(n.name for n in fabric.graph[here] if n.kind is not NodeKind.HOST)
            raise SettingsError(
                f"segments: no cable leads from {here} to {there}; from {here} one gets to "
                f"{', '.join(known)}"
            )


def usids_along(path: Path) -> tuple[int, ...]:
    """What a packet is told that leaves the first switch of a path for the second."""
    return (*(usid_of(switch) for switch in path[1:]), END)

"""Routes from the graph: for every destination, every neighbour that lies on a shortest path.

A leaf knows each of its own hosts; everything else is known by the prefix of its leaf. Where
several neighbours are equally near, the route has several next hops, in the order of their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network

import networkx as nx

from topologies import Fabric, Node, NodeKind


@dataclass(frozen=True, slots=True)
class NextHop:
    """A way to leave a switch."""

    port: int
    mac: str


@dataclass(frozen=True, slots=True)
class Route:
    """A prefix and the equally good ways towards it."""

    prefix: IPv4Network
    next_hops: tuple[NextHop, ...]
    leaf: int = 0  # whose hosts these are, if not this switch's own


def routes_of(fabric: Fabric) -> dict[Node, tuple[Route, ...]]:
    """Every switch's routes."""
    leaves = [switch for switch in fabric.switches if switch.kind is NodeKind.LEAF]
    distances = {leaf: nx.single_source_shortest_path_length(fabric.graph, leaf) for leaf in leaves}
    return {
        switch: (
            *_to_own_hosts(fabric, switch),
            *(
                _to_leaf(fabric, switch, leaf, distances[leaf])
                for leaf in leaves
                if leaf != switch and switch in distances[leaf]
            ),
        )
        for switch in fabric.switches
    }


def _to_own_hosts(fabric: Fabric, switch: Node) -> tuple[Route, ...]:
    return tuple(
        Route(
            IPv4Network((int(fabric.address(host)), 32)),
            (NextHop(fabric.port_towards(switch, host), fabric.mac(host)),),
        )
        for host in fabric.hosts_of(switch)
    )


def _to_leaf(fabric: Fabric, switch: Node, leaf: Node, distance: dict[Node, int]) -> Route:
    nearer = sorted(
        peer for peer in fabric.graph.neighbors(switch) if distance[peer] < distance[switch]
    )
    return Route(
        fabric.prefix(leaf),
        tuple(NextHop(fabric.port_towards(switch, peer), fabric.mac(peer)) for peer in nearer),
        leaf.number,
    )

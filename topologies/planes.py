"""Several planes: independent two-tier Closes, and hosts with a port into each.

Leaves and spines are counted plane by plane: of two planes of two leaves the second has leaf3 and
leaf4. A host hangs at the same place in every plane: h1, at leaf1, at leaf3 too. Planes share
nothing but the hosts: whoever sends chooses one with every packet, and what is broken in one is
nothing to the others.
"""

from __future__ import annotations

from topologies.fabric import MAX_HOSTS_PER_LEAF, MAX_LEAVES, Fabric, Node, NodeKind, TopologyError
from topologies.leaf_spine import MAX_SPINES

MAX_PLANES = 8  # ports of an adapter (traffic/core/endpoint.h)


def planes(count: int, leaves: int, spines: int, hosts_per_leaf: int) -> Fabric:
    """Build so many planes, each with so many leaves and spines."""
    for what, number, most in (
        ("planes", count, MAX_PLANES),
        ("leaves", leaves, MAX_LEAVES // max(count, 1)),
        ("spines", spines, MAX_SPINES),
        ("hosts_per_leaf", hosts_per_leaf, MAX_HOSTS_PER_LEAF),
    ):
        if not 1 <= number <= most:
            raise TopologyError(f"{what} is {number}; it must be from 1 to {most}")

    fabric = Fabric()
    for plane in range(count):
        here = [Node(NodeKind.LEAF, plane * leaves + at + 1) for at in range(leaves)]
        for place, leaf in enumerate(here):
            for slot in range(hosts_per_leaf):
                fabric.add_host(Node(NodeKind.HOST, place * hosts_per_leaf + slot + 1), leaf)
        for at in range(spines):
            for leaf in here:
                fabric.add_link(leaf, Node(NodeKind.SPINE, plane * spines + at + 1))
    return fabric

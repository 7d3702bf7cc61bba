"""Several planes: independent two-tier Closes, and hosts with a port into each.

Leaves and spines are counted plane by plane: of two planes of two leaves the second has leaf3 and
leaf4. A host hangs at the same place in every plane: h1, at leaf1, at leaf3 too. Planes share
nothing but the hosts: whoever sends chooses one with every packet, and what is broken in one is
nothing to the others.
"""

from __future__ import annotations

from topologies.fabric import (
    MAX_HOSTS_PER_LEAF,
    MAX_LEAVES,
    Fabric,
    NodeKind,
    check_counts,
    nodes,
)
from topologies.leaf_spine import MAX_SPINES

MAX_PLANES = 8  # ports of an adapter (traffic/core/endpoint.h)


def planes(count: int, leaves: int, spines: int, hosts_per_leaf: int) -> Fabric:
    """Build so many planes, each with so many leaves and spines."""
    check_counts(
        planes=(count, MAX_PLANES),
        leaves=(leaves, MAX_LEAVES // max(count, 1)),
        spines=(spines, MAX_SPINES),
        hosts_per_leaf=(hosts_per_leaf, MAX_HOSTS_PER_LEAF),
    )

    fabric = Fabric()
    for plane in range(count):
        here = nodes(NodeKind.LEAF, leaves, plane * leaves + 1)
        fabric.hang(here, hosts_per_leaf)
        fabric.join(here, nodes(NodeKind.SPINE, spines, plane * spines + 1))
    return fabric

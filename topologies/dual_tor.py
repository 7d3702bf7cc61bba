"""Racks of two top-of-rack switches: every host has a port into each of the two.

A two-tier Clos whose leaves are pairs: leaf1 and leaf2 are the first rack's. To its hosts a pair is
one: they have one address and one MAC at both ports, and go on by one of them when the other leads
nowhere. All other switches know two ways to a rack.
"""

from __future__ import annotations

from topologies.fabric import (
    MAX_HOSTS_PER_LEAF,
    MAX_LEAVES,
    Fabric,
    Node,
    NodeKind,
    check_counts,
    nodes,
)
from topologies.leaf_spine import MAX_SPINES


def dual_tor(racks: int, spines: int, hosts_per_rack: int) -> Fabric:
    """Build so many racks of two leaves each."""
    check_counts(
        racks=(racks, MAX_LEAVES // 2),
        spines=(spines, MAX_SPINES),
        hosts_per_rack=(hosts_per_rack, MAX_HOSTS_PER_LEAF),
    )

    fabric = Fabric()
    leaves = nodes(NodeKind.LEAF, 2 * racks)
    for rack in range(racks):
        pair = leaves[2 * rack : 2 * rack + 2]
        fabric.pair(*pair)
        for slot in range(hosts_per_rack):
            for leaf in pair:
                fabric.add_host(Node(NodeKind.HOST, rack * hosts_per_rack + slot + 1), leaf)
    fabric.join(leaves, nodes(NodeKind.SPINE, spines))
    return fabric

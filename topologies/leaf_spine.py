"""The two-tier Clos: every leaf is cabled to every spine, once or more often."""

from __future__ import annotations

from topologies.fabric import (
    MAX_HOSTS_PER_LEAF,
    MAX_LEAVES,
    Fabric,
    NodeKind,
    check_counts,
    nodes,
)

MAX_SPINES = 256
MAX_LINKS = 64


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, links: int = 1) -> Fabric:
    """Build a leaf-spine fabric with so many links between each leaf and each spine."""
    check_counts(
        leaves=(leaves, MAX_LEAVES),
        spines=(spines, MAX_SPINES),
        hosts_per_leaf=(hosts_per_leaf, MAX_HOSTS_PER_LEAF),
        links=(links, MAX_LINKS),
    )

    fabric = Fabric()
    leaf_nodes = nodes(NodeKind.LEAF, leaves)
    fabric.hang(leaf_nodes, hosts_per_leaf)
    fabric.join(leaf_nodes, nodes(NodeKind.SPINE, spines), links)
    return fabric

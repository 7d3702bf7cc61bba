"""The two-tier Clos: every leaf is cabled to every spine, once or more often."""

from __future__ import annotations

from topologies.fabric import MAX_HOSTS_PER_LEAF, MAX_LEAVES, Fabric, Node, NodeKind, TopologyError

MAX_SPINES = 256
MAX_LINKS = 64


def leaf_spine(leaves: int, spines: int, hosts_per_leaf: int, links: int = 1) -> Fabric:
    """Build a leaf-spine fabric with so many links between each leaf and each spine."""
    for what, count, most in (
        ("leaves", leaves, MAX_LEAVES),
        ("spines", spines, MAX_SPINES),
        ("hosts_per_leaf", hosts_per_leaf, MAX_HOSTS_PER_LEAF),
        ("links", links, MAX_LINKS),
    ):
        if not 1 <= count <= most:
            raise TopologyError(f"{what} is {count}; it must be from 1 to {most}")

    fabric = Fabric()
    leaf_nodes = [Node(NodeKind.LEAF, number) for number in range(1, leaves + 1)]
    for index, leaf in enumerate(leaf_nodes):
        for slot in range(1, hosts_per_leaf + 1):
            fabric.add_host(Node(NodeKind.HOST, index * hosts_per_leaf + slot), leaf)
    for spine in range(1, spines + 1):
        for leaf in leaf_nodes:
            for _ in range(links):
                fabric.add_link(leaf, Node(NodeKind.SPINE, spine))
    return fabric

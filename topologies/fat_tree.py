"""The three-tier fat-tree of even arity k.

k pods of k/2 leaves and k/2 spines, each leaf with k/2 hosts and a cable to each spine of its pod;
k*k/4 cores, of which spine *s* of every pod reaches the *s*-th k/2. Full bisection bandwidth with
switches of k ports only; fewer hosts per leaf, or more, change the oversubscription.
"""

from __future__ import annotations

from topologies.fabric import (
    MAX_HOSTS_PER_LEAF,
    Fabric,
    Node,
    NodeKind,
    TopologyError,
    check_counts,
    nodes,
)

MAX_ARITY = 64  # 65,536 hosts


def fat_tree(k: int, hosts_per_leaf: int | None = None) -> Fabric:
    """Build a fat-tree; with k/2 hosts per leaf it is not oversubscribed."""
    if k % 2 or not 2 <= k <= MAX_ARITY:
        raise TopologyError(f"k is {k}; it must be even and from 2 to {MAX_ARITY}")
    half = k // 2
    hosts = half if hosts_per_leaf is None else hosts_per_leaf
    check_counts(hosts_per_leaf=(hosts, MAX_HOSTS_PER_LEAF))

    fabric = Fabric()
    leaves = nodes(NodeKind.LEAF, k * half)
    fabric.hang(leaves, hosts)
    for first in range(0, k * half, half):
        fabric.join(leaves[first : first + half], nodes(NodeKind.SPINE, half, first + 1))
    for place in range(half):
        for core in range(1, half + 1):
            for pod in range(k):
                spine = Node(NodeKind.SPINE, pod * half + place + 1)
                fabric.add_link(spine, Node(NodeKind.CORE, place * half + core))
    return fabric

"""The three-tier fat-tree of even arity k.

k pods of k/2 leaves and k/2 spines, each leaf with k/2 hosts and a cable to each spine of its pod;
k*k/4 cores, of which spine *s* of every pod reaches the *s*-th k/2. Full bisection bandwidth with
switches of k ports only; fewer hosts per leaf, or more, change the oversubscription.
"""

from __future__ import annotations

from topologies.fabric import MAX_HOSTS_PER_LEAF, Fabric, Node, NodeKind, TopologyError

MAX_ARITY = 64  # 65,536 hosts


def fat_tree(k: int, hosts_per_leaf: int | None = None) -> Fabric:
    """Build a fat-tree; with k/2 hosts per leaf it is not oversubscribed."""
    if k % 2 or not 2 <= k <= MAX_ARITY:
        raise TopologyError(f"k is {k}; it must be even and from 2 to {MAX_ARITY}")
    half = k // 2
    hosts = half if hosts_per_leaf is None else hosts_per_leaf
    if not 1 <= hosts <= MAX_HOSTS_PER_LEAF:
        raise TopologyError(f"hosts_per_leaf is {hosts}; it must be from 1 to {MAX_HOSTS_PER_LEAF}")

    fabric = Fabric()
    leaves = [Node(NodeKind.LEAF, number) for number in range(1, k * half + 1)]
    for index, leaf in enumerate(leaves):
        for slot in range(1, hosts + 1):
            fabric.add_host(Node(NodeKind.HOST, index * hosts + slot), leaf)
    for pod in range(k):
        for place in range(1, half + 1):
            spine = Node(NodeKind.SPINE, pod * half + place)
            for leaf in leaves[pod * half : (pod + 1) * half]:
                fabric.add_link(leaf, spine)
    for place in range(half):
        for core in range(1, half + 1):
            for pod in range(k):
                spine = Node(NodeKind.SPINE, pod * half + place + 1)
                fabric.add_link(spine, Node(NodeKind.CORE, place * half + core))
    return fabric

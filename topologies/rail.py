"""The rail-optimised fabric of GPU clusters.

Every server has as many GPUs as there are rails, each with a port of its own, and GPU *r* of every
server is cabled to leaf *r* (of its pod): GPUs of equal rank are one switch apart, wherever they
are. Spines join the leaves. A GPU is a host here; hosts are counted server by server, so that
h1 to h8 are the first server's where there are eight rails.
"""

from __future__ import annotations

from topologies.fabric import MAX_HOSTS_PER_LEAF, MAX_LEAVES, Fabric, Node, NodeKind, TopologyError

MAX_SPINES = 64  # a group of equal ways holds as many


def rail(servers: int, rails: int, spines: int, pods: int = 1) -> Fabric:
    """Build a rail-optimised fabric of ``servers`` in all, evenly spread over the pods."""
    for what, count, most in (
        ("pods", pods, MAX_LEAVES),
        ("rails", rails, MAX_LEAVES // max(pods, 1)),
        ("servers", servers, MAX_HOSTS_PER_LEAF * max(pods, 1)),
        ("spines", spines, MAX_SPINES),
    ):
        if not 1 <= count <= most:
            raise TopologyError(f"{what} is {count}; it must be from 1 to {most}")
    if servers % pods:
        raise TopologyError(f"servers is {servers}; it must be a multiple of pods, which is {pods}")

    fabric = Fabric()
    leaves = [Node(NodeKind.LEAF, number) for number in range(1, pods * rails + 1)]
    per_pod = servers // pods
    for server in range(servers):
        for place in range(rails):
            leaf = leaves[server // per_pod * rails + place]
            fabric.add_host(Node(NodeKind.HOST, server * rails + place + 1), leaf)
    for spine in range(1, spines + 1):
        for leaf in leaves:
            fabric.add_link(leaf, Node(NodeKind.SPINE, spine))
    return fabric

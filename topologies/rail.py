"""The rail-optimised fabric of GPU clusters.

Every server has as many GPUs as there are rails, each with a port of its own, and GPU *r* of every
server is cabled to leaf *r* (of its pod): GPUs of equal rank are one switch apart, wherever they
are. Spines join the leaves. A GPU is a host here; hosts are counted server by server, so that
h1 to h8 are the first server's where there are eight rails.

GPUs of a server may be joined by a switch of their own, as NVLink does it: a leaf, counted on from
those of the rails. A GPU's first port leads there and its second to its rail, so that a connection
inside a server stays there, and all others take the rails.
"""

from __future__ import annotations

from topologies.fabric import (
    MAX_HOSTS_PER_LEAF,
    MAX_LEAVES,
    Fabric,
    Node,
    NodeKind,
    Speed,
    TopologyError,
    check_counts,
    nodes,
)

MAX_SPINES = 64  # a group of equal ways holds as many


def rail(
    servers: int, rails: int, spines: int, pods: int = 1, inside: Speed | None = None
) -> Fabric:
    """Build a rail-optimised fabric of ``servers`` in all, evenly spread over the pods.

    ``inside`` is the speed of links to the servers' own switches; None: there are none.
    """
    check_counts(
        pods=(pods, MAX_LEAVES),
        rails=(rails, MAX_LEAVES // max(pods, 1)),
        servers=(servers, MAX_HOSTS_PER_LEAF * max(pods, 1)),
        spines=(spines, MAX_SPINES),
    )
    if servers % pods:
        raise TopologyError(f"servers is {servers}; it must be a multiple of pods, which is {pods}")

    if inside is not None and pods * rails + servers > MAX_LEAVES:
        raise TopologyError(f"rails and servers have more than {MAX_LEAVES} switches")

    fabric = Fabric()
    leaves = nodes(NodeKind.LEAF, pods * rails)
    per_pod = servers // pods
    for server in range(servers):
        gpus = [Node(NodeKind.HOST, server * rails + place + 1) for place in range(rails)]
        if inside is not None:
            fabric.is_spread = False
            for gpu in gpus:
                fabric.add_host(gpu, Node(NodeKind.LEAF, len(leaves) + server + 1), inside)
        for place, gpu in enumerate(gpus):
            fabric.add_host(gpu, leaves[server // per_pod * rails + place])
    fabric.join(leaves, nodes(NodeKind.SPINE, spines))
    return fabric

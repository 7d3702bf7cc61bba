"""A back-end and a front-end fabric, each a two-tier Clos, and hosts with a port into both.

GPUs speak to each other over the back-end, and over the front-end to servers, which hang there
alone: storage, mostly. Switches and hosts are counted on: behind two leaves of the back-end the
front-end's first is leaf3, and behind eight GPUs the first server is h9. A GPU's first port leads
to the back-end.
"""

from __future__ import annotations

from topologies.fabric import (
    MAX_HOSTS_PER_LEAF,
    MAX_LEAVES,
    Fabric,
    NodeKind,
    Speed,
    check_counts,
    nodes,
)
from topologies.leaf_spine import MAX_SPINES


def two_fabrics(
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    servers: int,
    front_leaves: int,
    front_spines: int,
    front: Speed,
) -> Fabric:
    """Build both; all links of the front-end are of one speed."""
    check_counts(
        leaves=(leaves, MAX_LEAVES - 1),
        spines=(spines, MAX_SPINES),
        hosts_per_leaf=(hosts_per_leaf, MAX_HOSTS_PER_LEAF),
        servers=(servers, MAX_HOSTS_PER_LEAF * front_leaves),
        front_leaves=(front_leaves, MAX_LEAVES - leaves),
        front_spines=(front_spines, MAX_SPINES),
    )

    fabric = Fabric()
    fabric.is_spread = False
    gpus = leaves * hosts_per_leaf
    hosts = nodes(NodeKind.HOST, gpus + servers)
    back = nodes(NodeKind.LEAF, leaves)
    ahead = nodes(NodeKind.LEAF, front_leaves, leaves + 1)
    for at, host in enumerate(hosts[:gpus]):
        fabric.add_host(host, back[at // hosts_per_leaf])
    for some in (hosts[:gpus], hosts[gpus:]):
        for at, host in enumerate(some):
            fabric.add_host(host, ahead[at * front_leaves // len(some)], front)
    fabric.join(back, nodes(NodeKind.SPINE, spines))
    fabric.join(ahead, nodes(NodeKind.SPINE, front_spines, spines + 1), speed=front)
    return fabric

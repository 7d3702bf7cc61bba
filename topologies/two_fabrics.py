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
    Node,
    NodeKind,
    Speed,
    TopologyError,
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
    for what, number, most in (
        ("leaves", leaves, MAX_LEAVES - 1),
        ("spines", spines, MAX_SPINES),
        ("hosts_per_leaf", hosts_per_leaf, MAX_HOSTS_PER_LEAF),
        ("servers", servers, MAX_HOSTS_PER_LEAF * front_leaves),
        ("front_leaves", front_leaves, MAX_LEAVES - leaves),
        ("front_spines", front_spines, MAX_SPINES),
    ):
        if not 1 <= number <= most:
            raise TopologyError(f"{what} is {number}; it must be from 1 to {most}")

    fabric = Fabric()
    fabric.is_spread = False
    gpus = leaves * hosts_per_leaf
    hosts = [Node(NodeKind.HOST, number) for number in range(1, gpus + servers + 1)]
    back = [Node(NodeKind.LEAF, number) for number in range(1, leaves + 1)]
    ahead = [Node(NodeKind.LEAF, leaves + number) for number in range(1, front_leaves + 1)]
    for at, host in enumerate(hosts[:gpus]):
        fabric.add_host(host, back[at // hosts_per_leaf])
    for some in (hosts[:gpus], hosts[gpus:]):
        for at, host in enumerate(some):
            fabric.add_host(host, ahead[at * front_leaves // len(some)], front)
    for spine in range(1, spines + 1):
        for leaf in back:
            fabric.add_link(leaf, Node(NodeKind.SPINE, spine))
    for spine in range(spines + 1, spines + front_spines + 1):
        for leaf in ahead:
            fabric.add_link(leaf, Node(NodeKind.SPINE, spine), front)
    return fabric

"""The dragonfly: groups of switches, in each of which all are cabled to each other, and a few
cables from every group to every other one.

Each switch has ports of its own for hosts, for its group, and for other groups (Kim, Dally, Scott
and Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA 2008). So the shortest way
crosses at most one cable between groups, and there are few of those: that is what it saves, and
what groups that talk to one other group only run into. Long cables of a group go round: its first
leads to the next group, its second to the one after, and so on, again and again while there are
cables for all groups.

All switches have hosts, so all are leaves.
"""

from __future__ import annotations

from topologies.fabric import (
    MAX_HOSTS_PER_LEAF,
    MAX_LEAVES,
    Fabric,
    NodeKind,
    TopologyError,
    check_counts,
    nodes,
)

_MAX_PER_GROUP = 128
_MAX_PORTS = 64  # of a switch, to other groups


def dragonfly(groups: int, switches: int, hosts_per_leaf: int, global_links: int) -> Fabric:
    """Build so many groups of switches, each of these with hosts and so many long cables."""
    check_counts(2, groups=(groups, MAX_LEAVES))
    check_counts(
        switches=(switches, _MAX_PER_GROUP),
        hosts_per_leaf=(hosts_per_leaf, MAX_HOSTS_PER_LEAF),
        global_links=(global_links, _MAX_PORTS),
    )
    if groups * switches > MAX_LEAVES:
        raise TopologyError(f"{groups * switches:,} switches; at most {MAX_LEAVES:,} can be")
    rounds = switches * global_links // (groups - 1)
    if not rounds:
        raise TopologyError(
            f"{switches * global_links} long cables of a group do not reach {groups - 1} others: "
            "have more switches or global_links, or fewer groups"
        )
    fabric = Fabric()
    leaves = nodes(NodeKind.LEAF, groups * switches)
    fabric.hang(leaves, hosts_per_leaf)
    for first in range(0, len(leaves), switches):
        group = leaves[first : first + switches]
        for place, leaf in enumerate(group):
            for peer in group[place + 1 :]:
                fabric.add_link(leaf, peer)
    for one in range(groups):
        for other in range(one + 1, groups):
            for turn in range(rounds):
                a, b = (
                    leaves[group * switches + _port(group, to, groups, turn) // global_links]
                    for group, to in ((one, other), (other, one))
                )
                fabric.add_link(a, b)
    return fabric


def _port(group: int, to: int, groups: int, turn: int) -> int:
    """Which of a group's long cables leads to another group, in one of the rounds."""
    return turn * (groups - 1) + (to - group - 1) % groups

"""What of a fabric is simulated at a stretch, and by how many threads.

A part is a switch, and the hosts at it: what it works with stays in the cache while it goes on for
the length of a cable. Where cables have no length everything is one part.
"""

from __future__ import annotations

from switch.build import processors
from topologies import Fabric, Node


def threads_here() -> int:
    """As many as there are processors for this process."""
    return processors()


def parts(fabric: Fabric, shortest_ns: int) -> dict[Node, int]:
    """The part of each node, from 0, where the shortest cable is so long."""
    found = {switch: at if shortest_ns else 0 for at, switch in enumerate(fabric.switches)}
    return found | {host: found[fabric.leaf_of(host)] for host in fabric.hosts}

"""What of a fabric is simulated at a stretch, and by how many threads.

A part is a switch, and the hosts at it: what it works with stays in the cache while it goes on for
the length of a cable. A host goes with its leaf, always: what a bad cable before a host delays
arrives there at once in the end, sooner than one part could tell another (`net_divide` in net.h).
"""

from __future__ import annotations

import os

from topologies import Fabric, Node


def threads_here() -> int:
    """As many as there are processors for this process."""
    return len(os.sched_getaffinity(0))


def parts(fabric: Fabric) -> dict[Node, int]:
    """The part of each node, from 0."""
    found = {switch: number for number, switch in enumerate(fabric.switches)}
    return found | {host: found[fabric.leaf_of(host)] for host in fabric.hosts}

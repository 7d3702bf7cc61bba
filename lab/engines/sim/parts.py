"""Which thread simulates which node of a fabric.

Of each kind of switch a thread has an equal share, neighbours together: of a fat tree so many pods
and cores. A host goes with its leaf, always: what a bad cable before a host delays arrives there at
once in the end, sooner than one thread could tell another (`net_divide` in net.h).
"""

from __future__ import annotations

import os
from itertools import groupby

from lab.engines.sim import native
from topologies import Fabric, Node


def threads_here() -> int:
    """As many as there are processors for this process."""
    return len(os.sched_getaffinity(0))


def parts(fabric: Fabric, threads: int) -> dict[Node, int]:
    """The part of each node, from 0; never more parts than switches."""
    count = min(threads, len(fabric.switches), native.MOST_PARTS)
    found: dict[Node, int] = {}
    for _, kind in groupby(fabric.switches, lambda switch: switch.kind):
        alike = tuple(kind)
        found |= {switch: at * count // len(alike) for at, switch in enumerate(alike)}
    return found | {host: found[fabric.leaf_of(host)] for host in fabric.hosts}

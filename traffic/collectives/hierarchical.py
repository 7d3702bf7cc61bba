"""Hierarchical all-reduce: within each node, then across nodes on every rail, then within again.

With L members a node and M nodes, a reduce walk inside each node leaves member j of every node
with the node's sum of run j, an M-th part of which is one chunk. The members j of all nodes form
rail j: a ring all-reduce among them makes run j whole. A copy walk inside each node spreads the L
runs. A byte crosses between nodes 2(M-1)/(ML) times instead of a ring's 2(n-1)/n.

Node k has members kL to kL + L - 1: list the ranks node by node.
"""

from __future__ import annotations

from traffic.collectives.draft import Draft
from traffic.collectives.ring import Run, Waits, copy_walk, reduce_walk


def all_reduce(draft: Draft) -> None:
    """Ring reduce-scatter in the node, ring all-reduce on the rail, ring all-gather in the node."""
    for channel in range(draft.collective.channels):
        _one_channel(draft, channel)


def _one_channel(draft: Draft, channel: int) -> None:
    local = draft.collective.members_per_node
    nodes = [range(first, first + local) for first in range(0, draft.size, local)]
    base, length = channel * draft.size, len(nodes)
    runs: list[Run] = [(base + place * length, length) for place in range(local)]
    whole: list[Waits] = [
        reduce_walk(draft, node, runs, channel, [[] for _ in node]) for node in nodes
    ]
    for place in range(local):
        rail = [node[place] for node in nodes]
        chunks: list[Run] = [(runs[place][0] + part, 1) for part in range(length)]
        ready = [waits[place] for waits in whole]
        ready = reduce_walk(draft, rail, chunks, channel, ready)
        ready = copy_walk(draft, rail, chunks, channel, ready)
        for waits, mine in zip(whole, ready, strict=True):
            waits[place] = mine
    for node, waits in zip(nodes, whole, strict=True):
        copy_walk(draft, node, runs, channel, waits)

"""What of a fabric is simulated at a stretch, and by how many threads.

A part is a switch, and the hosts at it: what it works with stays in the cache while it goes on for
the length of a cable. Where cables have no length everything is one part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from switch.build import processors
from topologies import Fabric, Node, NodeKind


def threads_here() -> int:
    """As many as there are processors for this process."""
    return processors()


def partition(fabric: Fabric, shortest_ns: int) -> dict[Node, int]:
    """The part of each node, from 0, where the shortest cable is so long."""
    found = {switch: at if shortest_ns else 0 for at, switch in enumerate(fabric.switches)}
    return found | {host: found[fabric.leaf_of(host)] for host in fabric.hosts}


def by_rank(
    fabric: Fabric, found: Mapping[Node, int], ranks: int
) -> tuple[dict[Node, int], list[int]]:
    """The same parts in another order, so that each rank has those from one bound to the next.

    Every rank gets as much of each tier, neighbours together: those of a pod or a plane talk to
    each other most. Where a tier has fewer switches than ranks, whoever has least gets the next.
    """
    weights = [0] * (1 + max(found.values()))
    for link in fabric.links:
        weights[found[link.a]] += 1
        weights[found[link.b]] += 1
    owner: dict[int, int] = {}
    loads = [0.0] * ranks
    for kind in (NodeKind.LEAF, NodeKind.SPINE, NodeKind.CORE):
        tier = {found[node]: None for node in fabric.switches if node.kind is kind}
        for part, rank in _spread([p for p in tier if p not in owner], weights, loads):
            owner[part] = rank
            loads[rank] += weights[part]
    order = sorted(range(len(weights)), key=lambda part: (owner.get(part, 0), part))
    place = {part: at for at, part in enumerate(order)}
    bounds = [sum(owner.get(part, 0) < rank for part in order) for rank in range(ranks + 1)]
    return {node: place[part] for node, part in found.items()}, bounds


def _spread(
    tier: Sequence[int], weights: Sequence[int], loads: Sequence[float]
) -> Iterator[tuple[int, int]]:
    ranks, total, before = len(loads), sum(weights[part] for part in tier), 0.0
    for part in tier:
        if len(tier) < ranks:
            yield part, min(range(ranks), key=lambda rank: loads[rank])
        else:
            yield part, int(ranks * (before + weights[part] / 2) / total)
        before += weights[part]

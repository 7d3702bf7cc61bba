"""Which operations there are, and the algorithms that carry them out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from params.data import Data
from traffic.collectives import (
    barrier,
    bounds,
    broadcast,
    exchange,
    halving,
    hierarchical,
    network,
    ring,
    tree,
)
from traffic.collectives.collective import (
    IN_NETWORK,
    Collective,
    Layout,
    check_amounts,
    check_members,
)
from traffic.collectives.draft import Draft
from traffic.collectives.errors import AlgorithmError, nearest
from traffic.collectives.nccl import NcclProtocol
from traffic.collectives.schedule import LOSSLESS, Activity, ScheduleBuilder


class Algorithm(Data):
    """How an operation is carried out."""

    layout: Callable[[Collective], Layout]
    write: Callable[[Draft], None]
    bound: Callable[[Collective, float, float], float]


_IN_NETWORK = Algorithm(network.layout, network.in_network, bounds.in_network)

# The first algorithm of an operation is its default.
ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    "all-reduce": {
        "ring": Algorithm(ring.layout, ring.all_reduce, bounds.ring_all_reduce),
        "double-binary-tree": Algorithm(tree.layout, tree.all_reduce, bounds.double_binary_tree),
        "halving-doubling": Algorithm(ring.layout, halving.all_reduce, bounds.halving_all_reduce),
        "hierarchical": Algorithm(ring.layout, hierarchical.all_reduce, bounds.hierarchical),
        IN_NETWORK: _IN_NETWORK,
    },
    "reduce-scatter": {
        "ring": Algorithm(ring.layout, ring.reduce_scatter, bounds.ring_pass),
        "halving": Algorithm(ring.layout, halving.reduce_scatter, bounds.halving_pass),
        IN_NETWORK: _IN_NETWORK,
    },
    "all-gather": {
        "ring": Algorithm(ring.layout, ring.all_gather, bounds.ring_pass),
        "doubling": Algorithm(ring.layout, halving.all_gather, bounds.halving_pass),
        IN_NETWORK: _IN_NETWORK,
    },
    "all-to-all": {
        "pairwise": Algorithm(exchange.layout, exchange.pairwise, bounds.ring_pass),
        "staggered": Algorithm(exchange.layout, exchange.staggered, bounds.staggered),
    },
    "broadcast": {
        "ring": Algorithm(broadcast.ring_layout, broadcast.ring, bounds.ring_broadcast),
        "binomial": Algorithm(
            broadcast.binomial_layout, broadcast.binomial, bounds.binomial_broadcast
        ),
        IN_NETWORK: _IN_NETWORK,
    },
    "barrier": {
        "dissemination": Algorithm(barrier.layout, barrier.dissemination, bounds.dissemination),
        IN_NETWORK: _IN_NETWORK,
    },
}


def find_algorithm(op: str, name: str) -> Algorithm:
    """The algorithm of this name for this operation."""
    if op not in ALGORITHMS:
        raise AlgorithmError(f"there is no operation '{op}'", nearest(op, ALGORITHMS))
    if name not in ALGORITHMS[op]:
        raise AlgorithmError(f"{op} has no algorithm '{name}'", nearest(name, ALGORITHMS[op]))
    return ALGORITHMS[op][name]


def collective(
    op: str,
    ranks: int | Sequence[int],
    size: int = 0,
    algorithm: str | None = None,
    *,
    world: int | None = None,
    channels: int = 1,
    root: int = 0,
    node_size: int | None = None,
    pieces: int | None = None,
    protocol: NcclProtocol | None = None,
) -> Collective:
    """A collective that makes sense: among the ranks 0 to n - 1, or any of a world."""
    members = tuple(range(ranks)) if isinstance(ranks, int) else tuple(ranks)
    check_members(members, world)
    if algorithm is None:
        algorithm = next(iter(ALGORITHMS.get(op, {"": None})))
    made = Collective(op, algorithm, size, members, channels, root, node_size, pieces, protocol)
    found = find_algorithm(op, algorithm)
    check_amounts(made)
    found.layout(made)  # refuses what cannot be cut
    return made


def channel_room(channels: int) -> int:
    """How many channel numbers a collective may use: double binary trees take two for each."""
    return 2 * channels


def add_collective(
    builder: ScheduleBuilder,
    what: Collective,
    *,
    gates: Sequence[Sequence[int]] | None = None,
    first_channel: int = 0,
    job: str = "",
    step: int = 0,
    priority: int = LOSSLESS,
    ecn_capable: bool = True,
) -> list[list[int]]:
    """Write a collective; by member, what to wait for to know that it is over.

    ``gates`` holds, by member, what it waits for before it takes part. Several are bundled into one
    piece of work, or every send would wait for each of them. Collectives that run at the same time
    keep apart by ``first_channel``; one uses up to `channel_room` numbers from there.
    """
    algorithm = find_algorithm(what.op, what.algorithm)
    name = f"{what.op} {what.algorithm}"
    activity = builder.activity(
        Activity("collective", name, job, step, priority, ecn_capable, collective=what)
    )
    if gates is not None:
        gates = [
            [builder.work(rank, activity=activity, after=waits)] if len(waits) > 1 else waits
            for rank, waits in zip(what.ranks, gates, strict=True)
        ]
    since = len(builder)
    algorithm.write(Draft(builder, what, algorithm.layout(what), activity, first_channel, gates))
    ends = builder.open_ends(since)
    return [ends[rank] for rank in what.ranks]

"""Rings: every member passes chunks to the next one, so no link carries more than another.

In a reduce walk, run s of chunks sets out at the member after s and goes once around, each member
adding its own part, until it is whole at member s. In a copy walk it goes once around from there.
Reduce-scatter is the one, all-gather the other, all-reduce the one after the other. A hop waits
only for the hop before it; members need no common clock.

Where nodes are told, a channel's ring enters a node at another member than the next channel's and
leaves it at that one's neighbour, from whose rail it goes on in the next node: so every adapter of
a rail-optimised fabric carries one channel in eight of them both ways, and no hop changes rails if
the number of nodes is even.

The walks take any list of members and any runs of chunks, so the hierarchical all-reduce walks its
inner and outer rings with them too.
"""

from __future__ import annotations

from collections.abc import Sequence

from traffic.collectives.collective import Collective, Sharded
from traffic.collectives.draft import Draft
from traffic.collectives.schedule import Mode

Run = tuple[int, int]  # first chunk, number of chunks
Waits = list[list[int]]  # by place in the ring


def layout(collective: Collective) -> Sharded:
    """A shard for every member on every channel."""
    return Sharded(collective.bytes, collective.size, collective.channels)


def all_reduce(draft: Draft) -> None:
    """Reduce each shard around the ring, then copy it around."""
    for channel in range(draft.collective.channels):
        ring, runs = _shards(draft, channel)
        whole = reduce_walk(draft, ring, runs, channel, [[] for _ in ring])
        copy_walk(draft, ring, runs, channel, whole)


def reduce_scatter(draft: Draft) -> None:
    """Reduce each shard around the ring to its owner."""
    for channel in range(draft.collective.channels):
        ring, runs = _shards(draft, channel)
        reduce_walk(draft, ring, runs, channel, [[] for _ in ring])


def all_gather(draft: Draft) -> None:
    """Copy each shard around the ring from its owner."""
    for channel in range(draft.collective.channels):
        ring, runs = _shards(draft, channel)
        copy_walk(draft, ring, runs, channel, [[] for _ in ring])


def reduce_walk(
    draft: Draft, ring: Sequence[int], runs: Sequence[Run], channel: int, ready: Waits
) -> Waits:
    """Reduce run s to place s; what each place must wait for before its run is whole.

    Every hop waits for ``ready`` of its sender, who adds a part of its own.
    """
    places = len(ring)
    arrived: Waits = [[] for _ in ring]
    for hop in range(places - 1):
        sent: Waits = [[] for _ in ring]
        for run in range(places):
            here = (run + 1 + hop) % places
            there = (here + 1) % places
            sent[there] = [
                draft.send(
                    ring[here],
                    ring[there],
                    *runs[run],
                    mode=Mode.REDUCE,
                    channel=channel,
                    after=(*ready[here], *arrived[here]),
                )
            ]
        arrived = sent
    return [[*mine, *last] for mine, last in zip(ready, arrived, strict=True)]


def copy_walk(
    draft: Draft, ring: Sequence[int], runs: Sequence[Run], channel: int, ready: Waits
) -> Waits:
    """Copy run s from place s to all; what each place must wait for before it has every run.

    Only the first hop waits for ``ready``: later ones send on what they received.
    """
    places = len(ring)
    waits, everything = ready, [list(mine) for mine in ready]
    for hop in range(places - 1):
        sent: Waits = [[] for _ in ring]
        for run in range(places):
            here = (run + hop) % places
            there = (here + 1) % places
            number = draft.send(
                ring[here], ring[there], *runs[run], channel=channel, after=waits[here]
            )
            sent[there] = [number]
            everything[there].append(number)
        waits = sent
    return everything


def _shards(draft: Draft, channel: int) -> tuple[Sequence[int], list[Run]]:
    """All members as one ring, and the run of each: its shard on this channel."""
    members = _order(draft.collective, channel)
    return members, [(channel * draft.size + shard, 1) for shard in members]


def _order(collective: Collective, channel: int) -> Sequence[int]:
    """The members in the order of a channel's ring."""
    local = collective.node_size
    if local is None:
        return range(collective.size)
    there = [(channel + place) % local for place in range(local)]
    return [
        first + place
        for node, first in enumerate(range(0, collective.size, local))
        for place in (reversed(there) if node % 2 else there)
    ]

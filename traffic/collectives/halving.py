"""Recursive halving and doubling: few rounds, each half or twice as large as the one before.

Doubling gathers: after k rounds a member has the shards of 2^k members, and sends all of them on.
With a power of two, members that differ in one bit of their numbers swap what they have. With any
other number they stand in a circle, as in Bruck's algorithm: in the round of distance d, member i
sends to i - d the shards i, i + 1 and so on that it has, in the last round only those still
missing. Either way the rounds are as many as log2 n, rounded up, and nobody is sent a shard twice.

Halving reduces: it is doubling backwards. The ways one shard takes as it is gathered make a tree
that reaches every member once; run in reverse, with parts that are added up, the tree collects the
shard of all members where the doubling began. All-reduce is halving, then doubling.
"""

from __future__ import annotations

from typing import NamedTuple

from traffic.collectives.draft import Draft
from traffic.collectives.schedule import Mode

Waits = list[list[int]]  # by member


class Hop(NamedTuple):
    """What goes from a member to another in a round of doubling."""

    src: int
    dst: int
    first: int
    shards: int


def all_reduce(draft: Draft) -> None:
    """Halve, then double."""
    for channel in range(draft.collective.channels):
        received: Waits = [[] for _ in range(draft.size)]
        _halve(draft, channel, received)
        _double(draft, channel, received)


def reduce_scatter(draft: Draft) -> None:
    """Halve."""
    for channel in range(draft.collective.channels):
        _halve(draft, channel, [[] for _ in range(draft.size)])


def all_gather(draft: Draft) -> None:
    """Double."""
    for channel in range(draft.collective.channels):
        _double(draft, channel, [[] for _ in range(draft.size)])


def round_sizes(members: int) -> list[int]:
    """How many shards a member sends in each round of doubling."""
    distances = [1 << k for k in range((members - 1).bit_length())]
    return [min(distance, members - distance) for distance in distances]


def _halve(draft: Draft, channel: int, received: Waits) -> None:
    for hops in reversed(_rounds(draft.size)):
        _carry(draft, channel, received, [(hop.dst, hop.src, hop) for hop in hops], Mode.REDUCE)


def _double(draft: Draft, channel: int, received: Waits) -> None:
    for hops in _rounds(draft.size):
        _carry(draft, channel, received, [(hop.src, hop.dst, hop) for hop in hops], Mode.COPY)


def _carry(
    draft: Draft,
    channel: int,
    received: Waits,
    ways: list[tuple[int, int, Hop]],
    mode: Mode,
) -> None:
    """One round. A send waits for everything its member received so far.

    Earlier rounds came from other members, so the last arrival says nothing of them.
    """
    base = channel * draft.size
    arrivals = [
        (
            dst,
            draft.send(
                src,
                dst,
                base + hop.first,
                hop.shards,
                mode=mode,
                channel=channel,
                after=received[src],
            ),
        )
        for src, dst, hop in ways
    ]
    for dst, number in arrivals:
        received[dst].append(number)


def _rounds(members: int) -> list[list[Hop]]:
    """The rounds of doubling."""
    if members & (members - 1) == 0:
        return [
            [Hop(i, i ^ count, i & -count, count) for i in range(members)]
            for count in round_sizes(members)
        ]
    return [
        [
            Hop(i, (i - (1 << k)) % members, first, length)
            for i in range(members)
            for first, length in _arc(i, count, members)
        ]
        for k, count in enumerate(round_sizes(members))
    ]


def _arc(first: int, count: int, members: int) -> list[tuple[int, int]]:
    """So many shards of the circle from one on, as one run or two."""
    straight = min(count, members - first)
    return [run for run in ((first, straight), (0, count - straight)) if run[1]]

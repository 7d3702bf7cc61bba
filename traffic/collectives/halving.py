"""Recursive halving and doubling: few rounds, each twice or half as large as the one before.

Members pair with the one whose number differs in one bit. Halving: each keeps one half of the
chunks it is still responsible for and sends the other half, so it ends with one block, reduced
over all. Doubling runs backwards: each sends all blocks it has gathered. All-reduce is both.

That needs a power of two. Of n = 2^k + r members, the first 2r *fold* into pairs: the even one
hands its part to the odd one, who acts for both and returns the result. Reduce-scatter and
all-gather have a shard for every member, so an acting pair is responsible for two of them, which
makes rounds a little uneven; all-reduce is free to cut its buffer into 2^k equal blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from traffic.collectives.collective import Collective, Sharded
from traffic.collectives.draft import Draft
from traffic.collectives.schedule import Mode


def reduce_layout(collective: Collective) -> Sharded:
    """As many blocks as there are acting members, on every channel."""
    return Sharded(collective.bytes, power_of_two(collective.size), collective.channels)


def power_of_two(members: int) -> int:
    """The largest power of two there are members for."""
    return 1 << (members.bit_length() - 1)


def all_reduce(draft: Draft) -> None:
    """Halve, then double."""
    acting = power_of_two(draft.size)
    for channel in range(draft.collective.channels):
        walk = _Walk(draft, channel, list(range(acting + 1)))
        everything = (walk.base, acting)
        walk.fold([everything] * walk.pairs, Mode.REDUCE)
        walk.halve()
        walk.double()
        walk.unfold([[everything]] * walk.pairs)


def reduce_scatter(draft: Draft) -> None:
    """Halve down to the shards of the acting members."""
    for channel in range(draft.collective.channels):
        walk = _Walk(draft, channel, _shard_edges(draft.size))
        walk.fold([(walk.base, draft.size)] * walk.pairs, Mode.REDUCE)
        walk.halve()
        walk.unfold([[(walk.base + 2 * pair, 1)] for pair in range(walk.pairs)])


def all_gather(draft: Draft) -> None:
    """Double up from the shards of the acting members."""
    for channel in range(draft.collective.channels):
        walk = _Walk(draft, channel, _shard_edges(draft.size))
        walk.fold([(walk.base + 2 * pair, 1) for pair in range(walk.pairs)], Mode.COPY)
        walk.double()
        walk.unfold([walk.all_but(2 * pair) for pair in range(walk.pairs)])


def _shard_edges(members: int) -> list[int]:
    """Where the shards of each acting member begin: pairs have two."""
    acting = power_of_two(members)
    pairs = members - acting
    return [min(2 * place, place + pairs) for place in range(acting + 1)]


@dataclass
class _Walk:
    """One channel's rounds. ``edges[a]`` is the first shard of acting member a."""

    draft: Draft
    channel: int
    edges: list[int]
    received: list[list[int]] = field(init=False)  # by acting member

    def __post_init__(self) -> None:
        self.acting = len(self.edges) - 1
        self.pairs = self.draft.size - self.acting
        self.base = self.channel * self.edges[-1]
        self.received = [[] for _ in range(self.acting)]

    def member(self, place: int) -> int:
        """The member that is acting member ``place``."""
        return 2 * place + 1 if place < self.pairs else place + self.pairs

    def all_but(self, shard: int) -> list[tuple[int, int]]:
        """All shards of this channel except one, as runs."""
        runs = [(self.base, shard), (self.base + shard + 1, self.edges[-1] - shard - 1)]
        return [run for run in runs if run[1]]

    def fold(self, runs: list[tuple[int, int]], mode: Mode) -> None:
        """The even member of each pair hands its part to the odd one."""
        for pair, run in enumerate(runs):
            number = self.draft.send(2 * pair, 2 * pair + 1, *run, mode=mode, channel=self.channel)
            self.received[pair].append(number)

    def unfold(self, runs: list[list[tuple[int, int]]]) -> None:
        """The odd member of each pair returns what the even one is to have."""
        for pair, parts in enumerate(runs):
            for run in parts:
                self.draft.send(
                    2 * pair + 1, 2 * pair, *run, channel=self.channel, after=self.received[pair]
                )

    def halve(self) -> None:
        """Send the half the partner is responsible for, until one block is left."""
        half = self.acting // 2
        while half:
            self._exchange(half, Mode.REDUCE, of_partner=True)
            half //= 2

    def double(self) -> None:
        """Send all that was gathered, until all have everything."""
        half = 1
        while half < self.acting:
            self._exchange(half, Mode.COPY, of_partner=False)
            half *= 2

    def _exchange(self, half: int, mode: Mode, *, of_partner: bool) -> None:
        """Members whose numbers differ in the bit ``half`` swap blocks of that many members.

        A send waits for everything received so far: earlier rounds came from other members, so
        the last arrival says nothing of them.
        """
        arrivals = []
        for place in range(self.acting):
            partner = place ^ half
            first = (partner if of_partner else place) & -half
            start, end = self.edges[first], self.edges[first + half]
            number = self.draft.send(
                self.member(place),
                self.member(partner),
                self.base + start,
                end - start,
                mode=mode,
                channel=self.channel,
                after=self.received[place],
            )
            arrivals.append((partner, number))
        for partner, number in arrivals:
            self.received[partner].append(number)

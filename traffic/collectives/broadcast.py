"""Broadcast: what the root has, all have in the end.

*ring*: the buffer travels in pieces along the chain of members that begins at the root, each
passing a piece on as soon as it is there; good for large buffers. *binomial*: in every round each
member that has the whole buffer sends it to one that has not; good for small ones.
"""

from __future__ import annotations

from itertools import pairwise

from traffic.collectives.collective import Collective, Even
from traffic.collectives.draft import Draft


def ring_layout(collective: Collective) -> Even:
    """Pieces, dealt to the channels in turn."""
    return Even(collective.bytes, collective.channels * collective.pieces_per_channel)


def binomial_layout(collective: Collective) -> Even:
    """A part for every channel."""
    return Even(collective.bytes, collective.channels)


def ring(draft: Draft) -> None:
    """Down the chain, piece by piece."""
    chain = _from_root(draft)
    for piece in range(draft.layout.count):
        arrived: list[int] = []
        for src, dst in pairwise(chain):
            channel = piece % draft.collective.channels
            arrived = [draft.send(src, dst, piece, channel=channel, after=arrived)]


def binomial(draft: Draft) -> None:
    """Round by round; a member's sends follow one another, as one has no more than one port."""
    order = _from_root(draft)
    for channel in range(draft.collective.channels):
        last: list[list[int]] = [[] for _ in order]
        reach = 1
        while reach < len(order):
            for src in range(min(reach, len(order) - reach)):
                dst = src + reach
                number = draft.send(
                    order[src], order[dst], channel, channel=channel, after=last[src]
                )
                last[src], last[dst] = [number], [number]
            reach *= 2


def _from_root(draft: Draft) -> list[int]:
    root = draft.collective.root
    return [(root + place) % draft.size for place in range(draft.size)]

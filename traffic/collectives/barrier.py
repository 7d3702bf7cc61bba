"""Barrier by dissemination: nobody leaves before everybody has come.

In round k a member tells the one 2^k places on that it has come, and with it all of whom it has
heard. After log2 n rounds, rounded up, everyone has heard of everyone.
"""

from __future__ import annotations

from traffic.collectives.collective import BARRIER_BYTES, Collective, Even
from traffic.collectives.draft import Draft
from traffic.collectives.schedule import Mode


def layout(_: Collective) -> Even:
    """One token."""
    return Even(BARRIER_BYTES, 1)


def dissemination(draft: Draft) -> None:
    """Pass tokens over distances 1, 2, 4 and so on, on one channel."""
    heard: list[list[int]] = [[] for _ in range(draft.size)]
    distance = 1
    while distance < draft.size:
        sent = [
            draft.send(src, (src + distance) % draft.size, 0, mode=Mode.OPAQUE, after=heard[src])
            for src in range(draft.size)
        ]
        for src, number in enumerate(sent):
            heard[(src + distance) % draft.size].append(number)
        distance *= 2

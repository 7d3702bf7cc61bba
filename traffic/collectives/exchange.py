"""All-to-all: every member has a block for every other.

*pairwise*: n - 1 rounds; in round k a member sends to the one k places on, and goes on once the
block from k places back has come. So each port has about one peer at a time, and a member that is
late makes others late. Its own block's acknowledgement is not waited for: on a link that treats
all alike it was delivered by then.

*staggered*: everything is posted at once, each member beginning with the one after itself, so that
receivers are not hit by all at the same moment. Nothing waits for anything; the fabric decides.
"""

from __future__ import annotations

from traffic.collectives.collective import Collective, Exchange
from traffic.collectives.draft import Draft


def layout(collective: Collective) -> Exchange:
    """A block for every pair of members, on every channel."""
    return Exchange(collective.bytes, collective.size, collective.channels)


def pairwise(draft: Draft) -> None:
    """Round by round."""
    size, channels = draft.size, draft.collective.channels
    for channel in range(channels):
        received: list[list[int]] = [[] for _ in range(size)]
        for distance in range(1, size):
            now = [
                draft.send(
                    src,
                    (src + distance) % size,
                    _block(draft, src, (src + distance) % size) + channel,
                    channel=channel,
                    after=received[src],
                )
                for src in range(size)
            ]
            received = [[now[dst - distance]] for dst in range(size)]


def staggered(draft: Draft) -> None:
    """All at once."""
    size, channels = draft.size, draft.collective.channels
    for src in range(size):
        for distance in range(1, size):
            dst = (src + distance) % size
            block = _block(draft, src, dst)
            for channel in range(channels):
                draft.send(src, dst, block + channel, channel=channel)


def _block(draft: Draft, src: int, dst: int) -> int:
    return (src * draft.size + dst) * draft.collective.channels

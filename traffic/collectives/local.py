"""A rank's own part of a schedule: all that an endpoint has to be told.

It starts its sends and its work when what they come after has ended, and learns of receives from
the fabric. Nothing in it refers to anything another rank alone would know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from traffic.collectives.schedule import Mode, Schedule


class LocalTransfer(NamedTuple):
    """A transfer as one of its ends sees it; the id is the same at both."""

    id: int
    kind: Literal["send", "receive", "work", "network"]
    peer: int  # the rank itself, for work
    channel: int
    size: int
    delay_ns: int
    after: tuple[int, ...]  # of this rank's own transfers; none for a receive
    activity: int


def local_part(schedule: Schedule, rank: int) -> Iterator[LocalTransfer]:
    """What a rank has to do and to expect, in the order of ids."""
    # Work is at both of its ends here.
    for number in sorted({*schedule.starts(rank), *schedule.arrivals(rank)}):
        src, dst = schedule.src[number], schedule.dst[number]
        receives = src != rank
        work: Literal["work", "network"] = (
            "network" if schedule.mode[number] == Mode.NETWORK else "work"
        )
        yield LocalTransfer(
            number,
            "receive" if receives else work if src == dst else "send",
            src if receives else dst,
            schedule.channel[number],
            schedule.size[number],
            0 if receives else schedule.delay_ns[number],
            () if receives else tuple(schedule.waits(number)),
            schedule.activity[number],
        )

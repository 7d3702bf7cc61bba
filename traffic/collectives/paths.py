"""The paths of a schedule: every (src, dst, channel) that carries something, in order.

An all-to-all among 1,024 ranks has a million of them, so they are columns like those of a schedule.
"""

from __future__ import annotations

from array import array

from params.data import Data
from traffic.collectives.schedule import Schedule

NO_PATH = -1  # of work


class Paths(Data, eq=False):
    """By a path's number: its ends and channel, and the activity of the last that it carries."""

    src: array[int]
    dst: array[int]
    channel: array[int]
    activity: array[int]
    of: array[int]  # by transfer: the path that it takes

    @classmethod
    def taken(cls, schedule: Schedule) -> Paths:
        """All that a schedule takes."""
        src, dst, channel, activity = (array("i") for _ in range(4))
        of = array("i", [NO_PATH]) * len(schedule)
        for rank in range(schedule.ranks):
            parts: dict[tuple[int, int], list[int]] = {}
            for number in schedule.starts(rank):
                if schedule.dst[number] != rank:
                    key = schedule.dst[number], schedule.channel[number]
                    parts.setdefault(key, []).append(number)
            for peer, number in sorted(parts):
                numbers = parts[peer, number]
                for transfer in numbers:
                    of[transfer] = len(src)
                src.append(rank)
                dst.append(peer)
                channel.append(number)
                activity.append(schedule.activity[numbers[-1]])
        return cls(src, dst, channel, activity, of)

    def __len__(self) -> int:
        return len(self.src)

    def __getitem__(self, number: int) -> tuple[int, int, int]:
        """Its source, destination and channel."""
        return self.src[number], self.dst[number], self.channel[number]

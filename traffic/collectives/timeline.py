"""When everything of a schedule happened, as any engine reports it."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from params.data import Data
from traffic.collectives.errors import ScheduleError

NEVER = -1


class Timeline(Data):
    """By transfer id: when it was posted and when it was delivered; `NEVER` if it was not.

    A transfer is posted when all it waited for has ended and its delay has passed. Work is posted
    when all it waited for has ended, so that it lasts its delay.
    """

    start_ns: Sequence[int]
    end_ns: Sequence[int]

    def __post_init__(self) -> None:
        if len(self.start_ns) != len(self.end_ns):
            raise ScheduleError(
                f"a timeline of {len(self.start_ns)} starts and {len(self.end_ns)} ends"
            )

    @classmethod
    def gather(cls, count: int, starts: Mapping[int, int], ends: Mapping[int, int]) -> Timeline:
        """From what hosts report: a sender knows when it posted, a receiver when it had all."""
        return cls(
            array("q", (starts.get(number, NEVER) for number in range(count))),
            array("q", (ends.get(number, NEVER) for number in range(count))),
        )

    @property
    def finish_ns(self) -> int:
        """The end of the last one."""
        return max(self.end_ns, default=0)

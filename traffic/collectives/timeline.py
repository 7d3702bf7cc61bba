"""When everything of a schedule happened, as any engine reports it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traffic.collectives.errors import ScheduleError

NEVER = -1


@dataclass(frozen=True)
class Timeline:
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

    @property
    def finish_ns(self) -> int:
        """The end of the last one."""
        return max(self.end_ns, default=0)

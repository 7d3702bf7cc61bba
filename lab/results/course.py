"""How far the messages of a schedule are, from when they began and ended."""

from __future__ import annotations

from collections.abc import Sequence

from lab.results.snapshot import Message, Messages
from topologies import Node
from traffic.collectives import NEVER, Schedule

_MAX_TRANSFERS = 20_000  # that are looked through at every snapshot
_MAX_MESSAGES = 64  # that are told of one by one


class Course:
    """Of one schedule; nobody knows of one that is too long to be looked through."""

    def __init__(self, schedule: Schedule, hosts: Sequence[Node]) -> None:
        self._schedule = schedule
        self._hosts = hosts
        count = len(schedule) if len(schedule) <= _MAX_TRANSFERS else 0
        self._sent = [n for n in range(count) if schedule.src[n] != schedule.dst[n]]

    @property
    def is_known(self) -> bool:
        """Whether anything can be told."""
        return bool(self._sent)

    def messages(self, starts: Sequence[int], ends: Sequence[int], epoch_ns: int = 0) -> Messages:
        """How far they are; both by transfer and from some time on, `NEVER` for what is to come."""
        schedule, hosts = self._schedule, self._hosts
        open_ = [n for n in self._sent if ends[n] == NEVER]
        begun = [n for n in open_ if starts[n] != NEVER][:_MAX_MESSAGES]
        return Messages(
            len(self._sent),
            len(self._sent) - len(open_),
            tuple(
                Message(
                    hosts[schedule.src[n]].name,
                    hosts[schedule.dst[n]].name,
                    schedule.size[n],
                    epoch_ns + starts[n],
                    schedule.activities[schedule.activity[n]].name,
                )
                for n in begun
            ),
        )

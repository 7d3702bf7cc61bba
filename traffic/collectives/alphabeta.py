"""A fabric that never blocks, to run schedules on when no engine is at hand.

Every rank has one full-duplex port of rate B and every message travels ``alpha``. A message is sent
bit by bit: the sender's port is busy for its bytes, alpha later the receiver's port is busy for as
long, and messages queue for both ports in the order they come. So one message alone takes
alpha + bytes x beta, and what differs from a bound is queueing. A sender learns of delivery in no
time: acknowledgements cost nothing here.

Events are ordered by (time, sequence) and times are whole picoseconds, so runs repeat exactly.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Mapping
from dataclasses import field

from params.data import Data
from traffic.collectives.errors import ScheduleError, SizeError
from traffic.collectives.schedule import Mode, Schedule
from traffic.collectives.timeline import NEVER, Timeline

_READY, _HEAD, _END = range(3)


class AlphaBeta(Data):
    """The fabric: latency and rate, and what is wrong with the ports of some ranks."""

    alpha_ns: int = 1000
    rate_gbps: float = 100.0
    port_share: Mapping[int, float] = field(default_factory=dict)  # of the rate, if not all
    dead_at_ns: Mapping[int, int] = field(default_factory=dict)  # ports that fall silent

    def run(self, schedule: Schedule) -> Timeline:
        """Carry out a schedule."""
        if self.alpha_ns < 0 or not self.rate_gbps > 0:
            raise SizeError(f"a latency of {self.alpha_ns} ns at {self.rate_gbps} Gb/s")
        if any(not 0 < share <= 1 for share in self.port_share.values()):
            raise SizeError("a port has more than none and at most all of its rate")
        return _Run(self, schedule).finish()


class _Run:
    """One schedule on its way."""

    def __init__(self, fabric: AlphaBeta, schedule: Schedule) -> None:
        self._schedule = schedule
        self._alpha_ps = fabric.alpha_ns * 1000
        self._ps_per_byte = [
            8000 / (fabric.rate_gbps * fabric.port_share.get(rank, 1.0))
            for rank in range(schedule.ranks)
        ]
        self._dead_at_ps = {rank: at * 1000 for rank, at in fabric.dead_at_ns.items()}
        self._send_free = [0] * schedule.ranks
        self._receive_free = [0] * schedule.ranks
        self._start_ns = array("q", [NEVER]) * len(schedule)
        self._end_ns = array("q", [NEVER]) * len(schedule)
        self._missing, self._waiters_at, self._waiters = _waiters(schedule)
        self._events: list[tuple[int, int, int, int]] = []
        self._sequence = 0
        self._waiting: dict[int, list[int]] = {}  # by activity: what switches are to carry out

    def finish(self) -> Timeline:
        """Run until nothing is left to happen."""
        for number, missing in enumerate(self._missing):
            if not missing:
                self._release(0, number)
        while self._events:
            now, _, kind, number = heapq.heappop(self._events)
            if kind == _READY:
                self._post(now, number)
            elif kind == _HEAD:
                self._receive(now, number)
            else:
                self._end(now, number)
        if NEVER in self._end_ns and not self._dead_at_ps:
            raise ScheduleError("the schedule waits for itself and never ends")
        return Timeline(
            memoryview(self._start_ns).toreadonly(), memoryview(self._end_ns).toreadonly()
        )

    def _at(self, when_ps: int, kind: int, number: int) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (when_ps, self._sequence, kind, number))

    def _release(self, now: int, number: int) -> None:
        """All that a transfer waits for has ended."""
        schedule = self._schedule
        then = now + schedule.delay_ns[number] * 1000
        if schedule.mode[number] == Mode.NETWORK:
            self._start_ns[number] = _nanoseconds(then)
            self._meet(then, number)
        elif schedule.src[number] == schedule.dst[number]:
            self._start_ns[number] = _nanoseconds(now)
            self._at(then, _END, number)
        else:
            self._start_ns[number] = _nanoseconds(then)
            self._at(then, _READY, number)

    def _meet(self, now: int, number: int) -> None:
        """Of what switches carry out the last who begins lets all of it end, at once for all."""
        activity = self._schedule.activity[number]
        what = self._schedule.activities[activity].collective
        assert what is not None
        waiting = self._waiting.setdefault(activity, [])
        waiting.append(number)
        if len(waiting) == what.size:
            slowest = max(self._ps_per_byte[rank] for rank in what.ranks)
            then = now + 2 * self._alpha_ps + round(what.bytes * slowest)
            for each in self._waiting.pop(activity):
                self._at(then, _END, each)

    def _post(self, now: int, number: int) -> None:
        src = self._schedule.src[number]
        start = max(now, self._send_free[src])
        self._send_free[src] = start + self._busy_ps(src, number)
        self._at(start + self._alpha_ps, _HEAD, number)

    def _receive(self, now: int, number: int) -> None:
        src, dst = self._schedule.src[number], self._schedule.dst[number]
        busy = max(self._busy_ps(src, number), self._busy_ps(dst, number))
        end = max(now, self._receive_free[dst]) + busy
        self._receive_free[dst] = end
        if all(end < self._dead_at_ps.get(rank, end + 1) for rank in (src, dst)):
            self._at(end, _END, number)

    def _end(self, now: int, number: int) -> None:
        self._end_ns[number] = _nanoseconds(now)
        first, last = self._waiters_at[number], self._waiters_at[number + 1]
        for waiter in self._waiters[first:last]:
            self._missing[waiter] -= 1
            if not self._missing[waiter]:
                self._release(now, waiter)

    def _busy_ps(self, rank: int, number: int) -> int:
        return round(self._schedule.size[number] * self._ps_per_byte[rank])


def _nanoseconds(time_ps: int) -> int:
    """Rounded up, starts like ends, so that work lasts what it should."""
    return -(-time_ps // 1000)


def _waiters(schedule: Schedule) -> tuple[array[int], array[int], array[int]]:
    """By transfer: how many it waits for; and, flat with offsets, who waits for it."""
    count = len(schedule)
    missing = array("i", bytes(4 * count))
    starts = array("i", bytes(4 * (count + 1)))
    for wait in schedule.wait:
        starts[wait + 1] += 1
    for number in range(count):
        starts[number + 1] += starts[number]
    free = starts[:]
    waiters = array("i", bytes(4 * len(schedule.wait)))
    for number in range(count):
        for wait in schedule.waits(number):
            missing[number] += 1
            waiters[free[wait]] = number
            free[wait] += 1
    return missing, starts, waiters

"""Ranks that share nothing but messages carry a schedule out to its end."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import depth
from tests.traffic.collectives.single import schedule_of
from traffic.collectives import (
    ALGORITHMS,
    NEVER,
    LocalTransfer,
    Schedule,
    Timeline,
    collective,
    local_part,
    merge,
)
from traffic.jobs import SimpleJob

EVERY = [(op, algorithm) for op, algorithms in ALGORITHMS.items() for algorithm in algorithms]


class Rank:
    """An endpoint: it knows its part, and which of that has ended."""

    def __init__(self, part: list[LocalTransfer]) -> None:
        self.waiting = {t.id: t for t in part if t.kind != "receive"}
        self.expected = {t.id for t in part if t.kind == "receive"}
        self.ended: set[int] = set()

    def ready(self) -> list[LocalTransfer]:
        """Take what may start."""
        found = [t for t in self.waiting.values() if self.ended.issuperset(t.after)]
        for t in found:
            del self.waiting[t.id]
        return found


def carry_out(schedule: Schedule, pick: st.DataObject | None = None) -> list[Rank]:
    """Deliver messages in any order until none is under way."""
    ranks = [Rank(list(local_part(schedule, rank))) for rank in range(schedule.ranks)]
    under_way = deque((rank, t) for rank in range(len(ranks)) for t in ranks[rank].ready())
    while under_way:
        if pick is not None:
            under_way.rotate(pick.draw(st.integers(0, len(under_way) - 1)))
        src, transfer = under_way.popleft()
        ends = {src, transfer.peer}
        for rank in ends:
            ranks[rank].ended.add(transfer.id)
        if transfer.kind == "send":
            ranks[transfer.peer].expected.remove(transfer.id)
        under_way.extend((rank, t) for rank in ends for t in ranks[rank].ready())
    return ranks


@pytest.mark.parametrize(("op", "algorithm"), EVERY)
def test_every_algorithm(op: str, algorithm: str) -> None:
    schedule = schedule_of(collective(op, 7, 0 if op == "barrier" else 10_000, algorithm, pieces=3))
    assert not any(rank.waiting or rank.expected for rank in carry_out(schedule))


@settings(max_examples=depth.of(20), deadline=None)
@given(data=st.data())
def test_any_order_of_delivery(data: st.DataObject) -> None:
    job = SimpleJob.read(
        {"compute_ns": 10, "collective": {"op": "all-reduce", "bytes": 999}, "buckets": 2}
    )
    other = schedule_of(collective("all-to-all", 4, 400))
    schedule = merge(job.schedule(4), other)
    assert not any(rank.waiting or rank.expected for rank in carry_out(schedule, data))


def test_both_ends_see_the_same_transfer() -> None:
    schedule = schedule_of(collective("all-reduce", 4, 4000))
    parts = [list(local_part(schedule, rank)) for rank in range(4)]
    assert parts[1][0] == (0, "send", 2, 0, 1000, 0, (), 0)
    (seen,) = (t for t in parts[2] if t.id == 0)
    assert seen == (0, "receive", 1, 0, 1000, 0, (), 0)
    assert sum(map(len, parts)) == 2 * len(schedule)


def test_a_timeline_of_what_hosts_report() -> None:
    timeline = Timeline.gather(3, {0: 5, 2: 9}, {0: 7})
    assert list(timeline.start_ns) == [5, NEVER, 9]
    assert list(timeline.end_ns) == [7, NEVER, NEVER]

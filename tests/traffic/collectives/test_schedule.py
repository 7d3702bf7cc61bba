"""Schedules: their rules are enforced, and they survive being placed, merged and written out."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from tests.traffic.collectives.single import schedule_of
from traffic.collectives import (
    Activity,
    AlphaBeta,
    PlacementError,
    RankError,
    ScheduleBuilder,
    ScheduleError,
    SizeError,
    add_collective,
    collective,
    merge,
    prove,
)


def three_in_a_row() -> ScheduleBuilder:
    builder = ScheduleBuilder(3)
    what = builder.activity(Activity("flows", "relay"))
    first = builder.transfer(0, 1, 100, activity=what)
    builder.transfer(1, 2, 100, activity=what, after=[first], delay_ns=500)
    return builder


def test_a_transfer_is_told_what_it_is() -> None:
    schedule = three_in_a_row().build()
    second = schedule.transfer(1)
    assert (second.src, second.dst, second.size, second.delay_ns) == (1, 2, 100, 500)
    assert second.waits == (0,)
    assert list(schedule.starts(1)) == [1]
    assert list(schedule.arrivals(1)) == [0]
    assert list(schedule.starts(2)) == []
    assert schedule.queue_pairs() == [(0, 1, 0), (1, 2, 0)]
    assert list(schedule.activity) == [0, 0]


def test_columns_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        three_in_a_row().build().size[0] = 1


def test_waiting_for_what_others_know_is_refused() -> None:
    builder = three_in_a_row()
    builder.transfer(0, 2, 1, activity=0, after=[1])
    with pytest.raises(ScheduleError, match="rank 0 knows nothing"):
        builder.build()


def test_waiting_for_what_comes_later_is_refused() -> None:
    builder = three_in_a_row()
    builder.transfer(0, 2, 1, activity=0, after=[2])
    with pytest.raises(ScheduleError, match="does not precede it"):
        builder.build()


@pytest.mark.parametrize("size", [0, -1, 2**31 + 1])
def test_a_message_is_neither_empty_nor_larger_than_rdma_allows(size: int) -> None:
    builder = ScheduleBuilder(2)
    with pytest.raises(SizeError, match="2147483648"):
        builder.transfer(0, 1, size, activity=builder.activity(Activity("flows", "x")))


@pytest.mark.parametrize(
    ("column", "value", "complaint"),
    [
        ("dst", 3, "ranks are 0 to 2"),
        ("src", -1, "ranks are 0 to 2"),
        ("size", 0, "carries 0 bytes"),
        ("activity", 1, "no activity"),
        ("delay_ns", -1, "negative"),
        ("src", 2, "yet carries bytes"),
    ],
)
def test_a_damaged_column_is_found(column: str, value: int, complaint: str) -> None:
    schedule = three_in_a_row().build()
    values = list(getattr(schedule, column))
    values[1] = value
    code = "q" if column in ("size", "delay_ns") else "i"
    broken = replace(schedule, **{column: memoryview(array(code, values))})
    with pytest.raises(ScheduleError, match=complaint):
        broken.check()


def test_placing_renames_the_ranks_and_what_is_proved() -> None:
    schedule = schedule_of(collective("all-reduce", 4, 4096)).place([6, 0, 3, 5], world=8)
    assert schedule.ranks == 8
    assert {t.src for t in schedule} == {0, 3, 5, 6}
    assert schedule.activities[0].collective is not None
    assert schedule.activities[0].collective.ranks == (6, 0, 3, 5)
    prove(schedule)


@pytest.mark.parametrize("hosts", [[0, 1], [0, 1, 1, 2], [0, 1, 2, 8], [-1, 0, 1, 2]])
def test_a_placement_that_cannot_be(hosts: list[int]) -> None:
    with pytest.raises(PlacementError):
        schedule_of(collective("all-reduce", 4, 4096)).place(hosts, world=8)


def test_merged_schedules_run_side_by_side_on_queue_pairs_of_their_own() -> None:
    one = schedule_of(collective("all-reduce", 4, 4096, channels=2))
    two = schedule_of(collective("all-gather", 4, 4096, "doubling"))
    both = merge(one, two)
    both.check()
    prove(both)
    assert len(both) == len(one) + len(two)
    second = [number for number, activity in enumerate(both.activity) if activity == 1]
    assert {both.channel[number] for number in second} == {2}
    assert both.sent_bytes() == [
        a + b for a, b in zip(one.sent_bytes(), two.sent_bytes(), strict=True)
    ]
    with pytest.raises(RankError, match="place them on one world"):
        merge(one, schedule_of(collective("all-gather", 5, 4096)))


def test_a_gate_holds_back_all_a_member_sends() -> None:
    """A slow rank's part cannot be in a result that was sent on before it was computed."""
    builder = ScheduleBuilder(4)
    compute = builder.activity(Activity("compute", "compute"))
    durations = [1000, 1000, 50_000, 1000]
    gates = [[builder.work(rank, d, activity=compute)] for rank, d in enumerate(durations)]
    ends = add_collective(builder, collective("all-reduce", 4, 4000), gates=gates)
    schedule = builder.build()
    prove(schedule)
    timeline = AlphaBeta(1000, 100).run(schedule)
    for transfer in schedule:
        if transfer.src != transfer.dst:
            assert timeline.start_ns[transfer.id] >= durations[transfer.src]
    # Two turns of three hops after the slow rank: 1000 bytes take 80 ns each.
    assert timeline.finish_ns >= 50_000 + 6 * 1080
    assert all(ends)


def test_open_ends_tell_when_a_member_is_done() -> None:
    builder = ScheduleBuilder(8)
    what = collective("all-reduce", 8, 10**6, "double-binary-tree")
    ends = add_collective(builder, what)
    timeline = AlphaBeta().run(builder.build())
    schedule = builder.build()
    for rank in range(8):
        mine = [*schedule.starts(rank), *schedule.arrivals(rank)]
        last = max(timeline.end_ns[number] for number in mine)
        assert last == max(timeline.end_ns[number] for number in ends[rank])
        assert len(ends[rank]) < len(mine) / 2

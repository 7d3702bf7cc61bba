"""The proof notices what is wrong: a proof that accepts everything would pass the other tests."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import depth
from tests.traffic.collectives.single import schedule_of
from traffic.collectives import (
    ALGORITHMS,
    IN_NETWORK,
    Activity,
    Mode,
    Schedule,
    ScheduleBuilder,
    ScheduleError,
    collective,
    prove,
)

BY_HOSTS = [
    (op, algorithm)
    for op, algorithms in ALGORITHMS.items()
    for algorithm in algorithms
    if algorithm != IN_NETWORK
]


def rebuilt(schedule: Schedule, *, without: int = -1, lonely: int = -1) -> Schedule:
    """The schedule without one transfer, or with one that waits for nothing."""
    builder = ScheduleBuilder(schedule.ranks)
    for activity in schedule.activities:
        builder.activity(activity)
    numbers: dict[int, int] = {}
    for t in schedule:
        if t.id == without:
            continue
        after = [numbers[wait] for wait in t.waits if wait in numbers]
        numbers[t.id] = builder.transfer(
            t.src, t.dst, t.size, activity=t.activity, channel=t.channel,
            after=[] if t.id == lonely else after,
            first_chunk=t.first_chunk, chunks=t.chunks, mode=t.mode,
        )  # fmt: skip
    return builder.build()


@settings(max_examples=depth.of(80), deadline=None)
@given(data=st.data())
def test_a_missing_transfer_is_noticed(data: st.DataObject) -> None:
    op, algorithm = data.draw(st.sampled_from(BY_HOSTS))
    # Among other numbers of ranks a barrier says some things twice.
    n = data.draw(st.sampled_from([2, 4, 8]) if op == "barrier" else st.integers(2, 9))
    schedule = schedule_of(collective(op, n, 0 if op == "barrier" else 10_000, algorithm))
    victim = data.draw(st.integers(0, len(schedule) - 1))
    with pytest.raises(ScheduleError):
        prove(rebuilt(schedule, without=victim))


@settings(max_examples=depth.of(80), deadline=None)
@given(data=st.data())
def test_a_transfer_that_does_not_wait_is_noticed(data: st.DataObject) -> None:
    """In all but these every wait is needed: theirs are for timing, or repeat what others say."""
    spared = ("pairwise", "staggered", "binomial", "dissemination")
    choices = [pair for pair in BY_HOSTS if pair[1] not in spared]
    op, algorithm = data.draw(st.sampled_from(choices))
    # In a circle of other sizes the last round of doubling may send no more than the own shard.
    doubles = algorithm in ("halving", "doubling", "halving-doubling")
    n = data.draw(st.sampled_from([2, 4, 8]) if doubles else st.integers(2, 9))
    schedule = schedule_of(collective(op, n, 10_000, algorithm, pieces=1))
    waiting = [t.id for t in schedule if t.waits]
    assume(waiting)
    victim = data.draw(st.sampled_from(waiting))
    with pytest.raises(ScheduleError):
        prove(rebuilt(schedule, lonely=victim))


def test_counting_somebody_twice_is_noticed() -> None:
    builder = ScheduleBuilder(2)
    what = collective("all-reduce", 2, 2)
    activity = builder.activity(Activity("collective", "x", collective=what))
    first = builder.transfer(0, 1, 1, activity=activity, chunks=1, mode=Mode.REDUCE)
    builder.transfer(0, 1, 1, activity=activity, chunks=1, mode=Mode.REDUCE, after=[first])
    with pytest.raises(ScheduleError, match="already has"):
        prove(builder.build())


def test_wrong_bytes_for_the_chunks_are_noticed() -> None:
    schedule = schedule_of(collective("all-gather", 4, 4000))
    sizes = list(schedule.size)
    sizes[3] += 1
    with pytest.raises(ScheduleError, match="carries 1001 bytes where its chunks have 1000"):
        prove(replace(schedule, size=memoryview(array("q", sizes))))


def test_an_order_that_happens_to_work_is_not_enough() -> None:
    """Two copies into one chunk: whichever comes last wins, so nothing may leave it to chance."""
    builder = ScheduleBuilder(3)
    what = collective("broadcast", 3, 8, "binomial")
    activity = builder.activity(Activity("collective", "x", collective=what))
    first = builder.transfer(0, 1, 8, activity=activity, chunks=1, mode=Mode.COPY)
    builder.transfer(0, 2, 8, activity=activity, chunks=1, mode=Mode.COPY)
    builder.transfer(1, 2, 8, activity=activity, chunks=1, mode=Mode.COPY, after=[first])
    with pytest.raises(ScheduleError, match="race for chunk 0 of member 2"):
        prove(builder.build())


def test_a_barrier_that_lets_somebody_go_is_noticed() -> None:
    with pytest.raises(ScheduleError, match="member 1 leaves without hearing of"):
        prove(rebuilt(schedule_of(collective("barrier", 4)), without=0))

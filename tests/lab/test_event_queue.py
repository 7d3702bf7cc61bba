"""The simulator's event queue against a list that is sorted."""

import ctypes
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lab.engines.sim.native import FOLDER, library
from switch.abi import Declarations, Library

HAPPEN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)


class Event(ctypes.Structure):
    _fields_ = [
        ("happen", HAPPEN),
        ("place", ctypes.c_uint32),
        ("name", ctypes.c_uint32),
        ("order", ctypes.c_uint64),
        ("time", ctypes.c_uint64),
    ]


class Queue:
    """A queue, and what happened in it."""

    def __init__(self, seed: int = 1) -> None:
        self._c = Library(Path(library()._name), Declarations(FOLDER / "evq.h"))
        self._queue = ctypes.create_string_buffer(256)
        assert self._c.evq_init(self._queue, seed)
        self._happen = HAPPEN(self._happened)
        self._events: dict[int, Event] = {}
        self._names: dict[int | None, int] = {}
        self.log: list[tuple[int, int]] = []
        self.reactions: dict[int, list[tuple[str, int, int]]] = {}  # what an event does, once

    def _happened(self, event: int, now: int) -> None:
        name = self._names[event]
        self.log.append((now, name))
        for what, other, delay in self.reactions.pop(name, []):
            if what == "schedule":
                assert self.schedule(other, now + delay)
            elif other in self._events:
                self.cancel(other)

    def schedule(self, name: int, time: int, priority: int = 0) -> bool:
        if name not in self._events:
            event = self._events[name] = Event(self._happen, 0, name + 1, 0, 0)
            self._names[ctypes.addressof(event)] = name
        return bool(
            self._c.evq_schedule(self._queue, ctypes.addressof(self._events[name]), time, priority)
        )

    def cancel(self, name: int) -> None:
        self._c.evq_cancel(self._queue, ctypes.addressof(self._events[name]))

    def run(self, until: int = 2**64 - 1) -> int:
        return int(self._c.evq_run(self._queue, until))

    def close(self) -> None:
        self._c.evq_free(self._queue)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("schedule"), st.integers(0, 40), st.integers(0, 1000), st.integers(0, 3)),
        st.tuples(st.just("cancel"), st.integers(0, 40)),
    ),
    max_size=120,
)


@given(steps)
def test_events_happen_in_order_once_and_where_they_were_moved_to(
    steps: list[tuple[Any, ...]],
) -> None:
    queue, expected = Queue(), {}
    for step in steps:
        match step:
            case ("schedule", name, time, priority):
                assert queue.schedule(name, time, priority)
                expected[name] = (time, priority)
            case ("cancel", name) if name in queue._events:
                queue.cancel(name)
                expected.pop(name, None)
    assert queue.run() == len(expected)
    assert sorted(name for _, name in queue.log) == sorted(expected)
    keys = [expected[name] for _, name in queue.log]
    assert keys == sorted(keys)
    assert [now for now, _ in queue.log] == [time for time, _ in keys]
    queue.close()


reactions = st.dictionaries(
    st.integers(0, 12),
    st.lists(
        st.tuples(st.sampled_from(["schedule", "cancel"]), st.integers(0, 12), st.integers(0, 9)),
        max_size=3,
    ),
)


@given(st.lists(st.integers(0, 30), max_size=12), reactions)
def test_events_may_schedule_and_cancel_others_and_themselves(
    times: list[int], reactions: dict[int, list[tuple[str, int, int]]]
) -> None:
    queue = Queue()
    due = dict(enumerate(times))
    for name, time in due.items():
        queue.schedule(name, time)
    queue.reactions = {name: list(does) for name, does in reactions.items()}
    queue.run()
    left = dict(reactions)
    for now, name in queue.log:  # each was due then, and nothing else was due before
        assert due.pop(name) == now
        assert all(time >= now for time in due.values())
        for what, other, delay in left.pop(name, []):
            if what == "schedule":
                due[other] = now + delay
            else:
                due.pop(other, None)
    assert due == {}
    queue.close()


@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("schedule"),
                st.integers(0, 12),
                st.sampled_from([0, 1, 7, 8, 9, 1000, 16_383, 16_384, 20_000, 1_000_000]),
                st.integers(0, 2),
            ),
            st.tuples(st.just("cancel"), st.integers(0, 12)),
            st.tuples(st.just("run"), st.sampled_from([0, 3, 8, 500, 16_384, 50_000])),
        ),
        max_size=60,
    ),
)
def test_runs_in_pieces_find_what_is_near_and_far(steps: list[tuple[Any, ...]]) -> None:
    """However far ahead events are, moved and cancelled between runs that end in mid-air."""
    queue, now = Queue(), 0
    due: dict[int, tuple[int, int]] = {}
    for step in steps:
        match step:
            case ("schedule", name, delay, priority):
                assert queue.schedule(name, now + delay, priority)
                due[name] = now + delay, priority
            case ("cancel", name) if name in queue._events:
                queue.cancel(name)
                due.pop(name, None)
            case ("run", span):
                queue.log.clear()
                now += span
                expected = sorted(key for key in due.values() if key[0] <= now)
                assert queue.run(now) == len(expected)
                assert [(at, due.pop(name)[1]) for at, name in queue.log] == expected
    queue.log.clear()
    assert queue.run() == len(due)
    assert [at for at, _ in queue.log] == sorted(at for at, _ in due.values())
    queue.close()


def test_the_past_is_refused() -> None:
    queue = Queue()
    assert queue.schedule(1, 100)
    assert queue.run(until=50) == 0
    assert not queue.schedule(2, 49)
    assert queue.schedule(2, 50)
    assert queue.run() == 2
    assert queue.log == [(50, 2), (100, 1)]
    queue.close()


def test_ties_are_broken_by_the_seed_and_not_by_the_order_of_ports() -> None:
    orders = []
    for seed in (1, 1, 2):
        queue = Queue(seed)
        for name in range(20):
            queue.schedule(name, 7)
        queue.run()
        orders.append([name for _, name in queue.log])
        queue.close()
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != sorted(orders[0])


@given(st.permutations(range(30)), st.lists(st.integers(0, 29), max_size=10))
def test_it_matters_not_when_an_event_was_scheduled(order: list[int], again: list[int]) -> None:
    logs = []
    for names in (range(30), (*order, *again)):
        queue = Queue(3)
        for name in names:
            queue.schedule(name, 7 + name % 3, priority=name % 2)
        queue.run()
        logs.append(queue.log)
        queue.close()
    assert logs[0] == logs[1]
    assert logs[0] != sorted(logs[0])


def test_each_of_two_wins_half_of_the_ties() -> None:
    queue, first = Queue(), 0
    for time in range(2000):
        queue.schedule(0, time)
        queue.schedule(1, time)
        queue.run()
        first += queue.log[-2][1] == 0
    assert 900 < first < 1100
    queue.close()


def test_the_sources_know_no_machine(tmp_path: Path) -> None:
    """Nothing in the event core reads a clock or the system's randomness.

    Ranks say how long they waited for each other, which nothing follows from.
    """
    sources = (Path(__file__).parents[2] / "lab" / "engines" / "sim").glob("*.[ch]")
    for source in (each for each in sources if each.name != "ranks.c"):
        text = source.read_text()
        for word in ("clock_gettime", "gettimeofday", "time(", "rand(", "random("):
            assert f" {word}" not in text, f"{source.name} uses {word}"

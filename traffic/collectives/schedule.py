"""Schedules: traffic as a frozen graph of transfers that every engine can run.

A *transfer* carries bytes from one rank to another. It may start once everything it *waits* for
has ended and then ``delay_ns`` have passed. Two rules keep a schedule executable by endpoints that
share no memory, and `Schedule.check` proves both:

- *local*: a transfer waits only for transfers its source received or sent itself, so a rank needs
  to know nothing but its own completions;
- *forward*: it waits only for transfers with smaller ids, so a schedule cannot be a circle.

A transfer from a rank to itself is *work*: it carries nothing, and ends ``delay_ns`` after what it
waits for has. Compute is work; so is a bare meeting point of several completions. And so is a
rank's part in a collective that the network carries out (`Mode.NETWORK`): it ends with the result.

Transfers of one (src, dst, channel) share a queue pair and are posted in the order they become
ready, ids breaking ties. A million transfers are common (an all-to-all among 1,024 ranks), so
they are columns of machine integers and not objects: some 45 bytes each.

What transfer t waits for is ``wait[wait_start[t]:wait_start[t+1]]``: w was received by t's source
if ``dst[w] == src[t]``, else sent by it.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import cached_property
from typing import Literal, NamedTuple

from params.data import Data
from traffic.collectives.collective import Collective
from traffic.collectives.errors import PlacementError, RankError, ScheduleError, SizeError

MAX_RANKS = 1 << 16
MAX_TRANSFERS = 1 << 24  # some 800 MB; an all-to-all among 4,096 ranks just fits
MAX_TRANSFER_BYTES = 1 << 31  # what one RDMA message may carry
LOSSLESS = 3  # the priority of RoCEv2 data
_COLUMNS = {
    "size": "q",
    "delay_ns": "q",
    "src": "i",
    "dst": "i",
    "channel": "i",
    "activity": "i",
    "first_chunk": "i",
    "chunks": "i",
    "wait_start": "i",
    "wait": "i",
    "mode": "B",
}


class Mode(IntEnum):
    """What the receiver does with a transfer's chunks."""

    OPAQUE = 0  # bytes without a meaning here
    COPY = 1
    REDUCE = 2
    NETWORK = 3  # work: switches do it


class Transfer(NamedTuple):
    """One transfer, taken out of its schedule to be looked at."""

    id: int
    src: int
    dst: int
    size: int
    channel: int
    delay_ns: int
    waits: tuple[int, ...]
    activity: int
    first_chunk: int
    chunks: int
    mode: Mode


class Activity(Data):
    """What a set of transfers is for."""

    kind: Literal["collective", "flows", "compute", "node", "wait"]
    name: str
    job: str = ""
    step: int = 0
    priority: int = LOSSLESS
    ecn_capable: bool = True  # whether its packets can be marked
    source_ports: int | None = None  # UDP source ports its queue pairs share; None: one each
    collective: Collective | None = None


class Schedule(Data, eq=False):
    """A frozen graph of transfers; every column is a read-only array indexed by transfer id."""

    ranks: int
    activities: tuple[Activity, ...]
    size: memoryview[int]
    delay_ns: memoryview[int]
    src: memoryview[int]
    dst: memoryview[int]
    channel: memoryview[int]
    activity: memoryview[int]
    first_chunk: memoryview[int]
    chunks: memoryview[int]
    wait_start: memoryview[int]
    wait: memoryview[int]
    mode: memoryview[int]

    def __len__(self) -> int:
        return len(self.src)

    def __iter__(self) -> Iterator[Transfer]:
        return map(self.transfer, range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return (self.ranks, self.activities) == (other.ranks, other.activities) and all(
            getattr(self, name) == getattr(other, name) for name in _COLUMNS
        )

    __hash__ = None  # type: ignore[assignment]

    def transfer(self, number: int) -> Transfer:
        """The transfer of this id."""
        return Transfer(
            number,
            self.src[number],
            self.dst[number],
            self.size[number],
            self.channel[number],
            self.delay_ns[number],
            tuple(self.waits(number)),
            self.activity[number],
            self.first_chunk[number],
            self.chunks[number],
            Mode(self.mode[number]),
        )

    def waits(self, number: int) -> memoryview[int]:
        """The ids a transfer waits for."""
        return self.wait[self.wait_start[number] : self.wait_start[number + 1]]

    def messages(self) -> Iterator[int]:
        """The ids of transfers from one rank to another."""
        ends = zip(self.src, self.dst, strict=True)
        return (number for number, (src, dst) in enumerate(ends) if src != dst)

    def starts(self, rank: int) -> memoryview[int]:
        """The ids a rank starts, its work included."""
        return _row(self._by_src, rank)

    def arrivals(self, rank: int) -> memoryview[int]:
        """The ids a rank receives or works off."""
        return _row(self._by_dst, rank)

    def in_class(self, priority: int, *, ecn_capable: bool = True) -> Schedule:
        """The same in another class of the fabric."""
        activities = (
            replace(activity, priority=priority, ecn_capable=ecn_capable)
            for activity in self.activities
        )
        return replace(self, activities=tuple(activities))

    def without(self, gone: Collection[int]) -> tuple[Schedule, list[int]]:
        """The same without transfers that none of the others waits for, and which are left."""
        kept = [number for number in range(len(self)) if number not in gone]
        new = dict(zip(kept, range(len(kept)), strict=True))
        columns = {name: array(code) for name, code in _COLUMNS.items()}
        columns["wait_start"].append(0)
        for number in kept:
            columns["wait"].extend(new[each] for each in self.waits(number))
            columns["wait_start"].append(len(columns["wait"]))
            for name in columns.keys() - {"wait", "wait_start"}:
                columns[name].append(getattr(self, name)[number])
        frozen = {name: _freeze(each) for name, each in columns.items()}
        return Schedule(self.ranks, self.activities, **frozen), kept

    def sent_bytes(self) -> list[int]:
        """The bytes each rank sends."""
        totals = [0] * self.ranks
        for src, size in zip(self.src, self.size, strict=True):
            totals[src] += size
        return totals

    def received_bytes(self) -> list[int]:
        """The bytes each rank receives."""
        totals = [0] * self.ranks
        for dst, size in zip(self.dst, self.size, strict=True):
            totals[dst] += size
        return totals

    def queue_pairs(self) -> list[tuple[int, int, int]]:
        """Every (src, dst, channel) that carries something."""
        keys = zip(self.src, self.dst, self.channel, strict=True)
        return sorted({key for key in keys if key[0] != key[1]})

    def check(self) -> None:
        """Prove the rules this module states, or name the first transfer that breaks one."""
        src, dst = self.src, self.dst
        for number in range(len(self)):
            self._check_one(number)
            here = src[number]
            for wait in self.waits(number):
                if not 0 <= wait < number:
                    raise ScheduleError(
                        f"transfer {number} waits for transfer {wait}, which does not precede it"
                    )
                if here not in (src[wait], dst[wait]):
                    raise ScheduleError(
                        f"transfer {number} starts at rank {here} but waits for transfer {wait}"
                        f" ({src[wait]} to {dst[wait]}), of which rank {here} knows nothing"
                    )

    def _check_one(self, number: int) -> None:
        src, dst, size = self.src[number], self.dst[number], self.size[number]
        if not (0 <= src < self.ranks and 0 <= dst < self.ranks):
            raise ScheduleError(
                f"transfer {number} goes from rank {src} to rank {dst};"
                f" the ranks are 0 to {self.ranks - 1}"
            )
        if not 0 <= self.activity[number] < len(self.activities):
            raise ScheduleError(f"transfer {number} belongs to no activity")
        if self.delay_ns[number] < 0 or self.channel[number] < 0:
            raise ScheduleError(f"transfer {number} has a negative delay or channel")
        if src == dst and size:
            raise ScheduleError(f"transfer {number} is work of rank {src}, yet carries bytes")
        if src != dst and not 1 <= size <= MAX_TRANSFER_BYTES:
            raise ScheduleError(f"transfer {number} carries {size} bytes")

    def place(self, hosts: Sequence[int], world: int) -> Schedule:
        """The same schedule with rank r as endpoint ``hosts[r]`` of a world of endpoints."""
        if len(hosts) != self.ranks:
            raise PlacementError(f"{self.ranks} ranks need {self.ranks} hosts, not {len(hosts)}")
        if len(set(hosts)) != len(hosts):
            raise PlacementError("two ranks of a job were placed on one host")
        if hosts and not 0 <= min(hosts) <= max(hosts) < world:
            raise PlacementError(f"hosts are numbered 0 to {world - 1}")
        return replace(
            self,
            ranks=world,
            activities=tuple(_placed(activity, hosts) for activity in self.activities),
            src=_freeze(array("i", (hosts[rank] for rank in self.src))),
            dst=_freeze(array("i", (hosts[rank] for rank in self.dst))),
        )

    @cached_property
    def _by_src(self) -> tuple[memoryview[int], memoryview[int]]:
        return _rows(self.src, self.ranks)

    @cached_property
    def _by_dst(self) -> tuple[memoryview[int], memoryview[int]]:
        return _rows(self.dst, self.ranks)


class ScheduleBuilder:
    """Writes a schedule, transfer by transfer."""

    def __init__(self, ranks: int) -> None:
        if not 1 <= ranks <= MAX_RANKS:
            raise RankError(f"{ranks} ranks", f"a schedule has between 1 and {MAX_RANKS}")
        self.ranks = ranks
        self._activities: list[Activity] = []
        self._columns = {name: array(code) for name, code in _COLUMNS.items()}
        self._columns["wait_start"].append(0)
        # Bound once: all-to-alls call them millions of times.
        self._appends = tuple(
            self._columns[name].append
            for name in (
                "src", "dst", "size", "channel", "delay_ns",
                "activity", "first_chunk", "chunks", "mode", "wait_start",
            )
        )  # fmt: skip
        self._wait = self._columns["wait"]
        self._src = self._columns["src"]

    def __len__(self) -> int:
        return len(self._src)

    def activity(self, activity: Activity) -> int:
        """Name what the next transfers are for."""
        self._activities.append(activity)
        return len(self._activities) - 1

    def transfer(
        self,
        src: int,
        dst: int,
        size: int,
        *,
        activity: int,
        channel: int = 0,
        delay_ns: int = 0,
        after: Sequence[int] = (),
        first_chunk: int = 0,
        chunks: int = 0,
        mode: Mode = Mode.OPAQUE,
    ) -> int:
        """Add a transfer; its id."""
        if not 1 <= size <= MAX_TRANSFER_BYTES:
            raise SizeError(
                f"a transfer of {size} bytes",
                f"one RDMA message carries 1 to {MAX_TRANSFER_BYTES}: "
                + ("send more" if size < 1 else "use more channels, pieces or buckets"),
            )
        return self._append(
            after, src, dst, size, channel, delay_ns, activity, first_chunk, chunks, mode
        )

    def work(
        self, rank: int, duration_ns: int = 0, *, activity: int, after: Sequence[int] = ()
    ) -> int:
        """Add local work, such as compute; its id."""
        return self._append(after, rank, rank, 0, 0, duration_ns, activity, 0, 0, Mode.OPAQUE)

    def network(self, rank: int, *, activity: int, after: Sequence[int] = ()) -> int:
        """Add a rank's part in what switches carry out; its id."""
        return self._append(after, rank, rank, 0, 0, 0, activity, 0, 0, Mode.NETWORK)

    def _append(self, after: Sequence[int], *values: int) -> int:
        if len(self._src) >= MAX_TRANSFERS:
            raise SizeError(
                f"more than {MAX_TRANSFERS} transfers",
                "use fewer ranks, channels, pieces, messages or steps",
            )
        if after:
            self._wait.extend(after)
        for append, value in zip(self._appends, (*values, len(self._wait)), strict=True):
            append(value)
        return len(self._src) - 1

    def open_ends(self, since: int) -> dict[int, list[int]]:
        """By rank: those of its transfers from this id on that none of its own waits for.

        A rank that has seen them end has seen all of its part end.
        """
        src, dst = self._src, self._columns["dst"]
        starts = self._columns["wait_start"]
        ends: dict[int, dict[int, None]] = {}
        for number in range(since, len(self)):
            mine = ends.setdefault(src[number], {})
            for wait in self._wait[starts[number] : starts[number + 1]]:
                mine.pop(wait, None)
            mine[number] = None
            ends.setdefault(dst[number], {})[number] = None
        return {rank: list(numbers) for rank, numbers in ends.items()}

    def build(self) -> Schedule:
        """The finished schedule, checked."""
        columns = {name: _freeze(column) for name, column in self._columns.items()}
        schedule = Schedule(self.ranks, tuple(self._activities), **columns)
        schedule.check()
        return schedule


def merge(*schedules: Schedule) -> Schedule:
    """Several schedules of one world at once; no two of them share a queue pair."""
    worlds = {schedule.ranks for schedule in schedules}
    if len(worlds) != 1:
        raise RankError(
            f"schedules of {sorted(worlds)} ranks cannot run together", "place them on one world"
        )
    columns = {name: array(code) for name, code in _COLUMNS.items()}
    columns["wait_start"].append(0)
    activities: list[Activity] = []
    first_channel = 0
    for schedule in schedules:
        offsets = {
            "channel": first_channel,
            "activity": len(activities),
            "wait_start": len(columns["wait"]),
            "wait": len(columns["src"]),
        }
        for name, column in columns.items():
            added: memoryview[int] = getattr(schedule, name)
            if name == "wait_start":
                added = added[1:]
            offset = offsets.get(name, 0)
            column.extend(value + offset for value in added)
        activities += schedule.activities
        first_channel += max(schedule.channel, default=-1) + 1
    frozen = {name: _freeze(column) for name, column in columns.items()}
    return Schedule(worlds.pop(), tuple(activities), **frozen)


def _placed(activity: Activity, hosts: Sequence[int]) -> Activity:
    """The activity with its members renamed to where they run."""
    if activity.collective is None:
        return activity
    members = tuple(hosts[rank] for rank in activity.collective.ranks)
    return replace(activity, collective=replace(activity.collective, ranks=members))


def _freeze(column: array[int]) -> memoryview[int]:
    return memoryview(column).toreadonly()


def _row(rows: tuple[memoryview[int], memoryview[int]], rank: int) -> memoryview[int]:
    starts, numbers = rows
    return numbers[starts[rank] : starts[rank + 1]]


def _rows(keys: memoryview[int], count: int) -> tuple[memoryview[int], memoryview[int]]:
    """The positions of each key, in order: a counting sort into one flat array."""
    starts = array("i", bytes(4 * (count + 1)))
    for key in keys:
        starts[key + 1] += 1
    for key in range(count):
        starts[key + 1] += starts[key]
    free = starts[:]
    numbers = array("i", bytes(4 * len(keys)))
    for number, key in enumerate(keys):
        numbers[free[key]] = number
        free[key] += 1
    return _freeze(starts), _freeze(numbers)

"""What each rank of a test sends and receives, size by size: a schedule of the lab's, with places.

Schedules are written in elements, so that no element is cut in two. A rank's data lies as NCCL has
it: an all-gather's parts by rank, an all-to-all's blocks by peer, whatever the channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from params.data import Data
from traffic.collectives import (
    IN_NETWORK,
    Activity,
    Collective,
    Mode,
    Schedule,
    ScheduleBuilder,
    SizeError,
    SpecError,
    Transfer,
    add_collective,
    collective,
)
from traffic.collectives.algorithms import find_algorithm
from traffic.collectives.collective import Exchange, Layout, Sharded

# As nccl-tests name them: what each does here, and its number in rank.c.
PROGRAMS = {
    "all_reduce_perf": ("all-reduce", 0),
    "all_gather_perf": ("all-gather", 1),
    "reduce_scatter_perf": ("reduce-scatter", 2),
    "alltoall_perf": ("all-to-all", 3),
    "broadcast_perf": ("broadcast", 4),
    "sendrecv_perf": ("send-receive", 5),
}
REDOPS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
TYPES = {
    "int8": 1, "uint8": 1, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float": 4, "double": 8,
}  # fmt: skip
_PART_BYTES = 16  # of which a part of an all-gather and its like is a multiple
_REDUCING = ("all-reduce", "reduce-scatter", "send-receive")  # whose table names an operation
_SIZES_MAX = 4096


class Test(Data):
    """What is to be measured."""

    __test__ = False  # of pytest's

    program: str
    ranks: int
    sizes: tuple[int, ...]  # bytes, as asked for
    iterations: int = 20
    warmups: int = 1
    checks: int = 1
    redop: str = "sum"
    type: str = "float"
    root: int = 0
    algorithm: str | None = None
    channels: int = 1

    @property
    def op(self) -> str:
        """What it does, in this lab's words."""
        return PROGRAMS[self.program][0]

    @property
    def element(self) -> int:
        """The bytes of an element."""
        return TYPES[self.type]

    @property
    def repeats(self) -> int:
        """How many times each size is carried out."""
        return 2 * (1 + self.iterations + self.checks)

    def counts(self, size: int) -> tuple[int, int, int]:
        """Elements that a rank sends, those that it gets, and the count that NCCL is told."""
        whole = size // self.element
        part = whole // self.ranks & -(_PART_BYTES // self.element)
        return {
            "all-gather": (part, part * self.ranks, part),
            "reduce-scatter": (part * self.ranks, part, part),
            "all-to-all": (part * self.ranks, part * self.ranks, part),
        }.get(self.op, (whole, whole, whole))

    def collective(self, size: int, *, in_bytes: bool = False) -> Collective | None:
        """What is carried out, in elements; None: nothing, or what is no collective."""
        elements = max(self.counts(size)[:2])
        if self.op == "send-receive" or not elements:
            return None
        channels = self.channels
        if self.op in ("all-reduce", "broadcast"):  # a small buffer is filled up with zeros
            elements = max(elements, self.ranks * channels)
        else:
            channels = min(channels, elements // self.ranks)
        bytes_ = elements * self.element
        root = self.root if self.op == "broadcast" else 0

        if self.algorithm == IN_NETWORK:
            raise SpecError(
                f"{IN_NETWORK} is what switches carry out, and ranks send by adapters",
                "take another algorithm",
            )

        def made(amount: int, pieces: int | None) -> Collective:
            return collective(
                self.op,
                self.ranks,
                amount,
                self.algorithm,
                channels=channels,
                root=root,
                pieces=pieces,
            )

        as_bytes = made(bytes_, None)
        return as_bytes if in_bytes else made(elements, as_bytes.pieces_per_channel)


def sizes(least: int, most: int, step: int, factor: int) -> tuple[int, ...]:
    """From the least to the most, by a factor or by steps."""
    if not 0 < least <= most:
        raise SpecError(f"sizes from {least} to {most} bytes: -b is to be from 1 to what -e says")
    if factor < 2 and step < 1:
        raise SpecError("sizes that do not grow: -i is to be at least 1, or -f at least 2")
    found = [least]
    while (larger := found[-1] * factor if factor > 1 else found[-1] + step) <= most:
        found.append(larger)
        if len(found) > _SIZES_MAX:
            raise SpecError(f"more than {_SIZES_MAX} sizes: take a larger step (-i) or -f 2")
    return tuple(found)


def schedule_of(test: Test, size: int) -> tuple[Schedule, Layout | None] | None:
    """Who sends what, in elements, and how chunks lie; None: nothing is sent."""
    what = test.collective(size)
    builder = ScheduleBuilder(test.ranks)
    if what is not None:
        add_collective(builder, what)
        return builder.build(), find_algorithm(what.op, what.algorithm).layout(what)
    if not (count := test.counts(size)[0]):
        return None
    activity = builder.activity(Activity("flows", test.op))
    for rank in range(test.ranks):
        builder.transfer(rank, (rank + 1) % test.ranks, count, activity=activity, mode=Mode.COPY)
    return builder.build(), None


class _Rank(Data, frozen=False):
    """A rank's plan while it is written."""

    connections: dict[tuple[int, int, int], int] = field(default_factory=dict)
    rooms: list[int] = field(default_factory=list)  # of connections: the largest to be added

    def connection(self, transfer: Transfer, element: int) -> int:
        """The number of the one that a transfer goes by."""
        key = (transfer.src, transfer.dst, transfer.channel)
        number = self.connections.setdefault(key, len(self.connections))
        if number == len(self.rooms):
            self.rooms.append(0)
        if transfer.mode is Mode.REDUCE:
            self.rooms[number] = max(self.rooms[number], transfer.size * element)
        return number


def plan_texts(test: Test) -> Iterator[str]:
    """By rank, what `rank.c` reads."""
    ranks = [_Rank() for _ in range(test.ranks)]
    order = (test.sizes[-1], test.sizes[0], *test.sizes)  # those to warm up with come first
    written = {size: _parts(test, size, ranks) for size in dict.fromkeys(order)}
    handles: dict[tuple[int, int, int], int] = {}
    for rank in ranks:
        for key in rank.connections:
            handles.setdefault(key, len(handles))
    most = max(_bytes_of_buffers(test, size) for size in test.sizes)
    redop = test.redop if test.op in _REDUCING else "none"
    for number, rank in enumerate(ranks):
        head = (
            *(PROGRAMS[test.program][1], test.type, redop, REDOPS.get(redop, REDOPS["max"])),
            *(test.root, test.iterations, test.warmups, test.checks, test.ranks),
            *(most, len(handles), len(rank.connections)),
        )
        lines = [" ".join(map(str, head))]
        for (key, _), room in zip(rank.connections.items(), rank.rooms, strict=True):
            lines.append(f"{int(key[0] == number)} {handles[key]} {room}")
        first, second, *others = (written[size][number] for size in order)
        yield "\n".join([*lines, first, second, str(len(others)), *others, ""])


def _bytes_of_buffers(test: Test, size: int) -> int:
    what = test.collective(size)
    elements = max(*test.counts(size)[:2], what.bytes if what else 0)
    return elements * test.element


def _parts(test: Test, size: int, ranks: Sequence[_Rank]) -> list[str]:
    """A size's part of each rank's plan."""
    element = test.element
    sent, received, count = test.counts(size)
    lines: list[list[str]] = [[] for _ in ranks]
    made = schedule_of(test, size)
    places: list[dict[int, int]] = [{} for _ in ranks]  # of transfers in a rank's own list
    for transfer in made[0] if made else ():
        layout = made[1] if made else None
        for here in (transfer.src, transfer.dst):
            waits = [places[here][each] for each in transfer.waits] if here == transfer.src else []
            what = test.collective(size) if layout else None
            at = _offset(what, layout, transfer, sends=here == transfer.src)
            places[here][transfer.id] = len(lines[here])
            numbers = (
                ranks[here].connection(transfer, element),
                *(at * element, transfer.size * element),
                *(int(transfer.mode is Mode.REDUCE), len(waits), *waits),
            )
            lines[here].append(" ".join(map(str, numbers)))
    largest = max(sent, received) * element
    head = (largest, count, sent * element, received * element)
    return ["\n".join([" ".join(map(str, (*head, len(own)))), *own]) for own in lines]


def _offset(
    what: Collective | None, layout: Layout | None, transfer: Transfer, *, sends: bool
) -> int:
    """Where a transfer's first element lies, at one of its ends."""
    if what is None or layout is None:
        return 0
    chunk, channels = transfer.first_chunk, what.channels
    if isinstance(layout, Exchange):
        pair, channel = divmod(chunk, channels)
        src, dst = divmod(pair, what.size)
        block = what.bytes // what.size
        return (dst if sends else src) * block + block * channel // channels
    if isinstance(layout, Sharded):
        if transfer.chunks > 1 and channels > 1:
            raise SizeError(
                f"{what.algorithm} sends parts that do not lie side by side on {channels} channels",
                "give it one channel, or take another algorithm",
            )
        channel, shard = divmod(chunk, what.size)
        begin, end = (what.bytes * edge // what.size for edge in (shard, shard + 1))
        return begin + (end - begin) * channel // channels
    return layout.bytes(0, chunk)

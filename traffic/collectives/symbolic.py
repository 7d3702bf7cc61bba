"""Proof that a schedule computes what its collectives promise, whatever the timing.

Chunks are not bytes here but sets of members whose part they hold, as bits of an integer. Every
transfer is carried out on such sets, and at the end each member must hold what the operation
defines. A reduction of sets that overlap has counted somebody twice, which nothing can undo.

That alone would prove one order of events. So every two transfers that touch the same chunk of the
same member, at least one of them writing, must also be ordered by the graph: the one has ended
before the other can start. Two reductions into one chunk may come in either order. For each
transfer, the set of transfers known to have ended before it starts is again the bits of an integer.

A barrier holds no chunks: it is right if, for every member, something of every other member has
ended before the last thing it hears.

What switches carry out is not proved here: that is for tests of theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from params.data import Data
from traffic.collectives.algorithms import find_algorithm
from traffic.collectives.collective import IN_NETWORK, Collective
from traffic.collectives.errors import ScheduleError, SizeError
from traffic.collectives.schedule import Mode, Schedule, Transfer

MAX_TRANSFERS = 1 << 16  # half a gigabyte, if every one is ordered after all before it
Place = tuple[int, int]  # member, chunk


def prove(schedule: Schedule) -> None:
    """Prove every collective of a schedule right, or say what is wrong with the first that is not.

    The schedule's own rules are proved first. Memory grows with the square of a collective's
    transfers, so there is a limit to them.
    """
    schedule.check()
    parts: dict[int, list[Transfer]] = {}
    for transfer in schedule:
        if schedule.activities[transfer.activity].collective is not None:
            parts.setdefault(transfer.activity, []).append(transfer)
    for number, activity in enumerate(schedule.activities):
        if activity.collective is not None:
            transfers = parts.get(number, [])
            if len(transfers) > MAX_TRANSFERS:
                raise SizeError(
                    f"{activity.name} has {len(transfers)} transfers, too many to prove",
                    f"prove one of at most {MAX_TRANSFERS}: fewer ranks, channels or pieces",
                )
            _Proof(activity.collective, transfers).run()


class _Accesses(Data, frozen=False):
    """Who touched a chunk of a member since it was last written in order; positions, not ids."""

    readers: list[int] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)
    reductions: list[int] = field(default_factory=list)


class _Proof:
    """One collective, carried out."""

    def __init__(self, collective: Collective, transfers: list[Transfer]) -> None:
        self._what = collective
        self._transfers = transfers
        self._members = {rank: number for number, rank in enumerate(collective.ranks)}
        self._position = {transfer.id: at for at, transfer in enumerate(transfers)}
        self._before: list[int] = []
        self._layout = find_algorithm(collective.op, collective.algorithm).layout(collective)
        self._held = initial(collective, self._layout.count)
        self._accesses: dict[Place, _Accesses] = {}

    def run(self) -> None:
        """Carry out every transfer, then look at what everybody has."""
        if self._what.algorithm == IN_NETWORK:
            self._check_members()
            return
        for at, transfer in enumerate(self._transfers):
            self._order(transfer)
            if transfer.mode is not Mode.OPAQUE:
                self._carry(at, transfer)
        if self._what.op == "barrier":
            self._check_barrier()
        else:
            self._check_results()

    def _check_members(self) -> None:
        """What switches carry out is right if every member takes part in it once."""
        taking = [each.src for each in self._transfers if each.mode is Mode.NETWORK]
        if sorted(taking) != sorted(self._what.ranks):
            raise ScheduleError(f"{self._what.op} {IN_NETWORK}: ranks {taking} take part in it")

    def _order(self, transfer: Transfer) -> None:
        """Note what has ended before this starts, as far as it is part of this collective."""
        before = 0
        for wait in transfer.waits:
            if (at := self._position.get(wait)) is not None:
                before |= self._before[at] | 1 << at
        self._before.append(before)

    def _carry(self, at: int, transfer: Transfer) -> None:
        expected = self._layout.bytes(transfer.first_chunk, transfer.chunks)
        if (cost := self._what.cost) is not None:
            expected = cost.bytes(expected)
        if transfer.size != expected:
            self._fail(transfer, f"carries {transfer.size} bytes where its chunks have {expected}")
        src, dst = self._members[transfer.src], self._members[transfer.dst]
        for chunk in range(transfer.first_chunk, transfer.first_chunk + transfer.chunks):
            sent = self._held.get((src, chunk), 0)
            if not sent:
                self._fail(transfer, f"sends chunk {chunk}, which member {src} does not have")
            self._read(at, (src, chunk))
            self._write(at, (dst, chunk), transfer.mode)
            if transfer.mode is Mode.REDUCE:
                held = self._held.get((dst, chunk), 0)
                if held & sent:
                    self._fail(transfer, f"adds a part to chunk {chunk} that it already has")
                sent |= held
            self._held[dst, chunk] = sent

    def _read(self, at: int, place: Place) -> None:
        accesses = self._accesses.setdefault(place, _Accesses())
        self._require_order(at, accesses.copies, place)
        self._require_order(at, accesses.reductions, place)
        accesses.readers.append(at)

    def _write(self, at: int, place: Place, mode: Mode) -> None:
        accesses = self._accesses.setdefault(place, _Accesses())
        self._require_order(at, accesses.readers, place)
        self._require_order(at, accesses.copies, place)
        if mode is Mode.REDUCE:
            accesses.reductions.append(at)
            return
        self._require_order(at, accesses.reductions, place)
        self._accesses[place] = _Accesses(copies=[at])

    def _require_order(self, at: int, others: Iterable[int], place: Place) -> None:
        for other in others:
            if not self._before[at] >> other & 1:
                self._fail(
                    self._transfers[at],
                    f"and transfer {self._transfers[other].id} race"
                    f" for chunk {place[1]} of member {place[0]}",
                )

    def _check_results(self) -> None:
        for (member, chunk), wanted in final(self._what, self._layout.count):
            if (held := self._held.get((member, chunk), 0)) != wanted:
                raise ScheduleError(
                    f"{self._what.op} {self._what.algorithm}: member {member} ends with"
                    f" {_names(held)} in chunk {chunk}, not with {_names(wanted)}"
                )

    def _check_barrier(self) -> None:
        came = [0] * len(self._transfers)  # by transfer: whose coming it implies
        heard = [1 << member for member in range(self._what.size)]
        for at, transfer in enumerate(self._transfers):
            came[at] = 1 << self._members[transfer.src]
            for wait in transfer.waits:
                if (position := self._position.get(wait)) is not None:
                    came[at] |= came[position]
            heard[self._members[transfer.dst]] |= came[at]
        everybody = (1 << self._what.size) - 1
        for member, who in enumerate(heard):
            if who != everybody:
                raise ScheduleError(
                    f"barrier: member {member} leaves without hearing of {_names(everybody & ~who)}"
                )

    def _fail(self, transfer: Transfer, what: str) -> None:
        raise ScheduleError(
            f"{self._what.op} {self._what.algorithm}: transfer {transfer.id}"
            f" ({transfer.src} to {transfer.dst}) {what}"
        )


def initial(what: Collective, chunks: int) -> dict[Place, int]:
    """What each member holds at first."""
    match what.op:
        case "all-reduce" | "reduce-scatter":
            return {(m, c): 1 << m for m in range(what.size) for c in range(chunks)}
        case "all-gather":
            return {(c % what.size, c): 1 << c % what.size for c in range(chunks)}
        case "broadcast":
            return {(what.root, c): 1 << what.root for c in range(chunks)}
        case "all-to-all":
            sources = ((c // what.channels // what.size, c) for c in range(chunks))
            return {(src, c): 1 << src for src, c in sources}
        case _:
            return {}


def final(what: Collective, chunks: int) -> Iterable[tuple[Place, int]]:
    """What each member must hold in the end; the rest of its buffer does not matter."""
    everybody = (1 << what.size) - 1
    for chunk in range(chunks):
        match what.op:
            case "all-reduce":
                yield from (((m, chunk), everybody) for m in range(what.size))
            case "reduce-scatter":
                yield (chunk % what.size, chunk), everybody
            case "all-gather":
                owner = 1 << chunk % what.size
                yield from (((m, chunk), owner) for m in range(what.size))
            case "broadcast":
                yield from (((m, chunk), 1 << what.root) for m in range(what.size))
            case "all-to-all":
                src, dst = divmod(chunk // what.channels, what.size)
                yield (dst, chunk), 1 << src


def _names(members: int) -> str:
    numbers = [str(n) for n in range(members.bit_length()) if members >> n & 1]
    return "parts of " + ", ".join(numbers) if numbers else "nothing"

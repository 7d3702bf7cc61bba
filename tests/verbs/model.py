"""What should come of operations of verbs, said by the specification alone.

Each direction of a pair of queues is by itself: a requester's operations happen in their order,
each once, whatever the fabric does. One thing is left open (the table of orders in the
specification's chapter on transport): until a fence or a READ's own end, bytes that later
operations write may already be seen by it.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator, Sequence
from dataclasses import field
from enum import IntEnum, IntFlag

from params.data import Data

PAIRS = 2
POOL = 1 << 16
REGION = 1 << 14
KEYS = 32
SLOTS = 16
LONGEST = 12000
GUARD = 32
PIECES = 3
FILL = 0xEE
INLINE_MAX = 64
WORD = 8
WORDS = 16  # of atomic operations: few, so that they meet
SIGNALLED_AT_LEAST = 6  # of so many operations one is signalled


class Opcode(IntEnum):
    """Of requests."""

    WRITE = 0
    WRITE_WITH_IMM = 1
    SEND = 2
    SEND_WITH_IMM = 3
    READ = 4
    COMPARE_SWAP = 5
    FETCH_ADD = 6
    SEND_WITH_INV = 9

    @property
    def fetches(self) -> bool:
        return self in {Opcode.READ, Opcode.COMPARE_SWAP, Opcode.FETCH_ADD}

    @property
    def is_atomic(self) -> bool:
        return self in {Opcode.COMPARE_SWAP, Opcode.FETCH_ADD}

    @property
    def takes_receive(self) -> bool:
        return self in {
            *(Opcode.WRITE_WITH_IMM, Opcode.SEND, Opcode.SEND_WITH_IMM, Opcode.SEND_WITH_INV)
        }


class Flag(IntFlag):
    """Of requests."""

    FENCE = 1
    SIGNALED = 2
    SOLICITED = 4
    INLINE = 8


COMPLETES_AS = {
    Opcode.WRITE: 1,
    Opcode.WRITE_WITH_IMM: 1,
    Opcode.SEND: 0,
    Opcode.SEND_WITH_IMM: 0,
    Opcode.SEND_WITH_INV: 0,
    Opcode.READ: 2,
    Opcode.COMPARE_SWAP: 3,
    Opcode.FETCH_ADD: 4,
}
RECEIVED, RECEIVED_WRITE = 128, 129
WITH_GRH, WITH_IMM, WITH_INV = 1, 2, 8  # some tell of every packet that it had a GRH


class Operation(Data):
    """One, as the player of plans reads it."""

    pair: int
    opcode: Opcode
    flags: Flag
    at: int
    imm: int
    compare_add: int
    swap: int
    pieces: tuple[tuple[int, int], ...]  # of the pool, or of where it lands
    place: int

    RECORD = struct.Struct("<4B3I2Q6I2I")

    @property
    def length(self) -> int:
        return sum(length for _, length in self.pieces)

    def packed(self) -> bytes:
        """In the plan."""
        flat = [number for piece in self.pieces for number in piece]
        flat += [0] * (2 * PIECES - len(flat))
        head = (self.pair, self.opcode, self.flags, len(self.pieces), self.at, self.imm, 0)
        return self.RECORD.pack(*head, self.compare_add, self.swap, *flat, self.place, 0)

    def data(self, pool: bytes) -> bytes:
        """What it carries."""
        return b"".join(pool[at : at + length] for at, length in self.pieces)


class Plan(Data):
    """What one of two programs asks of the other."""

    mtu: int
    seed: int
    pool: bytes
    operations: list[Operation]

    def of(self, pair: int) -> list[Operation]:
        return [operation for operation in self.operations if operation.pair == pair]

    def receives(self, pair: int) -> int:
        """How many it uses at the other end."""
        return sum(operation.opcode.takes_receive for operation in self.of(pair))

    def packed(self, others: Plan) -> bytes:
        """As a file for the player, beside what the other plan needs."""
        receives = (others.receives(pair) for pair in range(PAIRS))
        head = struct.pack("<5I", len(self.operations), self.mtu, self.seed, *receives)
        return b"".join((head, self.pool, *(one.packed() for one in self.operations)))


def _length(chance: random.Random, mtu: int) -> int:
    kind = chance.random()
    if kind < 0.35:
        return chance.randrange(17)
    if kind < 0.5:  # at the edges of packets
        return max(0, chance.randrange(1, 5) * mtu + chance.randrange(-2, 3)) % (LONGEST + 1)
    return chance.randrange(2 * mtu if kind < 0.93 else LONGEST + 1)


def _pieces(
    chance: random.Random, length: int, fetches: bool, most: int
) -> tuple[tuple[int, int], ...]:
    """A length in parts: of a pool anywhere, but where something lands one behind the other."""
    cuts = sorted(chance.randint(0, length) for _ in range(chance.randrange(most)))
    lengths = [end - start for start, end in zip((0, *cuts), (*cuts, length), strict=True)]
    if not length and chance.random() < 0.5:
        return ()
    at, found = 0, []
    for part in lengths:
        at += chance.randrange(16)
        found.append((at if fetches else chance.randrange(POOL - part), part))
        at += part
    return tuple(found)


class Able(Data):
    """What both ends can do: all of it, if nothing else is said."""

    invalidates: bool = True
    fences: bool = True
    pieces: tuple[int, int] = (PIECES, PIECES)  # of an operation, by pair
    inlines: tuple[bool, bool] = (True, True)


ABLE = Able()


def draw_plan(seed: int, operations: int, mtu: int, able: Able = ABLE) -> Plan:
    """Operations of all kinds."""
    chance = random.Random(seed)
    found: list[Operation] = []
    counts, unsignalled, keys = [0] * PAIRS, [0] * PAIRS, iter(range(KEYS))
    pairs = [chance.randrange(PAIRS) for _ in range(operations)]
    last = {
        pair: max((i for i, one in enumerate(pairs) if one == pair), default=-1) for pair in (0, 1)
    }
    for number, pair in enumerate(pairs):
        opcode = chance.choice([*Opcode])
        imm = chance.getrandbits(32)
        if opcode is Opcode.SEND_WITH_INV:
            key = next(keys, None) if chance.random() < 0.2 and able.invalidates else None
            opcode, imm = (Opcode.SEND, 0) if key is None else (opcode, key)
        length = WORD if opcode.is_atomic else _length(chance, 128 << mtu)
        at = chance.randrange(REGION - length + 1)
        if opcode.is_atomic:
            at = REGION // 2 + WORD * chance.randrange(WORDS)
        flags = Flag(0)
        if chance.random() < 0.3 and able.fences:
            flags |= Flag.FENCE
        if chance.random() < 0.2:
            flags |= Flag.SOLICITED
        if not opcode.fetches and length <= INLINE_MAX and chance.random() < 0.5:
            flags |= Flag.INLINE if able.inlines[pair] else 0
        unsignalled[pair] += 1
        if number == last[pair] or chance.random() < 0.5 or unsignalled[pair] == SIGNALLED_AT_LEAST:
            flags |= Flag.SIGNALED
            unsignalled[pair] = 0
        # Few values, so that comparisons find what they look for now and then.
        compare_add = chance.choice((0, 1, 2, 3, chance.getrandbits(64)))
        swap = chance.choice((0, 1, 2, 3, chance.getrandbits(64)))
        parts = _pieces(chance, length, opcode.fetches, able.pieces[pair])
        found.append(
            Operation(pair, opcode, flags, at, imm, compare_add, swap, parts, counts[pair])
        )
        counts[pair] += 1
    return Plan(mtu, seed & 0xFFFFFFFF, chance.randbytes(POOL), found)


# --- what came of it ------------------------------------------------------------------------------


class Record(Data):
    """What a player wrote down."""

    kind: str
    pair: int
    opcode: int
    status: int
    index: int
    flags: int
    length: int
    imm: int
    data: bytes

    HEAD = struct.Struct("<4B5I")


def records(log: bytes) -> Iterator[Record]:
    """All of a log."""
    at = 0
    while at < len(log):
        kind, pair, opcode, status, index, flags, length, imm, size = Record.HEAD.unpack_from(
            log, at
        )
        at += Record.HEAD.size
        data = log[at : at + size]
        yield Record(chr(kind), pair, opcode, status, index, flags, length, imm, data)
        at += size


class _Read(Data, frozen=False):
    """A READ that may not be over, and what was written since to where it reads."""

    place: int
    at: int
    was: bytes
    later: list[tuple[int, bytes]] = field(default_factory=list)

    def may_be(self, found: bytes) -> bool:
        if found == self.was:
            return True
        return len(found) == len(self.was) and all(
            byte == self.was[i] or self._was_written(self.at + i, byte)
            for i, byte in enumerate(found)
        )

    def _was_written(self, at: int, byte: int) -> bool:
        return any(start <= at < start + len(data) and data[at - start] == byte
                   for start, data in self.later)  # fmt: skip


class Direction(Data, frozen=False):
    """One end's requests of a pair, and what they leave at the other."""

    operations: Sequence[Operation]
    pool: bytes
    memory: bytearray = field(default_factory=lambda: bytearray(REGION))
    completions: list[tuple[int, int]] = field(default_factory=list)  # place, opcode
    received: list[tuple[int, int, int, int, bytes]] = field(default_factory=list)
    fetched: dict[int, _Read | bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        reads: list[_Read] = []
        for one in self.operations:
            reads = [
                read for read in reads
                if not one.flags & Flag.FENCE and one.place - read.place <= SLOTS
            ]  # fmt: skip
            before = bytes(self.memory[one.at : one.at + one.length])
            written = self._do(one, before)
            if written:
                self.memory[one.at : one.at + len(written)] = written
                for read in reads:
                    if one.at < read.at + len(read.was) and read.at < one.at + len(written):
                        read.later.append((one.at, written))
            if one.opcode is Opcode.READ:
                reads.append(_Read(one.place, one.at, before))
                self.fetched[one.place] = reads[-1]
            if one.flags & Flag.SIGNALED:
                self.completions.append((one.place, COMPLETES_AS[one.opcode]))

    def _do(self, one: Operation, before: bytes) -> bytes:
        """What it writes."""
        if one.opcode.is_atomic:
            self.fetched[one.place] = before
            old = int.from_bytes(before, "little")
            new = (old + one.compare_add) % 2**64
            if one.opcode is Opcode.COMPARE_SWAP:
                new = one.swap if old == one.compare_add else old
            return new.to_bytes(WORD, "little")
        data = b"" if one.opcode.fetches else one.data(self.pool)
        if one.opcode is Opcode.WRITE_WITH_IMM:
            self.received.append((RECEIVED_WRITE, WITH_IMM, one.length, one.imm, b""))
        elif one.opcode.takes_receive:
            flag = {Opcode.SEND_WITH_IMM: WITH_IMM, Opcode.SEND_WITH_INV: WITH_INV}
            has = flag.get(one.opcode, 0)
            self.received.append((RECEIVED, has, one.length, one.imm if has else 0, data))
            return b""
        return data

    def landed_as_due(self, place: int, found: bytes) -> bool:
        """Whether what was fetched lies where it should, and nothing beside it."""
        at, parts = 0, []
        for start, length in self.operations[place].pieces:
            if found[at:start] != bytes([FILL]) * (start - at):
                return False
            parts.append(found[start : start + length])
            at = start + length
        due, data = self.fetched[place], b"".join(parts)
        beside = found[at:]
        fine = due.may_be(data) if isinstance(due, _Read) else data == due
        return fine and beside == bytes([FILL]) * GUARD


def differences(plan: Plan, asked: bytes, served: bytes) -> list[str]:
    """Where the logs of who asked and of who served are not as they should be."""
    found: list[str] = []
    mine, others = [*records(asked)], [*records(served)]
    found += [f"pair {one.pair}: {one.index} ended with status {one.status}"
              for one in mine if one.status]  # fmt: skip
    for pair in range(PAIRS):
        due = Direction(plan.of(pair), plan.pool)
        ended = [(one.index, one.opcode) for one in mine
                 if one.kind == "o" and one.pair == pair and not one.status]  # fmt: skip
        received = [
            (one.index, one.opcode, flags, one.length, one.imm if flags else 0, one.data)
            for one in others if one.kind == "r" and one.pair == pair and not one.status
            for flags in (one.flags & ~WITH_GRH,)
        ]  # fmt: skip
        expected = [(index, *one) for index, one in enumerate(due.received)]
        found += _apart(f"pair {pair}: completion", ended, due.completions)
        found += _apart(f"pair {pair}: receive", received, expected)
        landed = {one.index: one.data for one in mine if one.kind == "f" and one.pair == pair}
        found += [
            f"pair {pair}: {due.operations[place].opcode.name} {place} fetched something else"
            for place in due.fetched
            if place not in landed or not due.landed_as_due(place, landed[place])
        ]
        memory = [one.data for one in others if one.kind == "m" and one.pair == pair]
        if memory != [bytes(due.memory)]:
            found.append(f"pair {pair}: memory is something else in the end")
    return found


def _apart(what: str, found: Sequence[object], due: Sequence[object]) -> list[str]:
    """The first that differ, for all that follows may differ by that."""
    for index, (one, other) in enumerate(zip(found, due, strict=False)):
        if one != other:
            return [f"{what} {index} is {str(one)[:60]}, not {str(other)[:60]}"]
    if len(found) != len(due):
        return [f"{what}s are {len(found)}, not {len(due)}"]
    return []

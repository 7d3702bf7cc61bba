"""Packing operations into the run-time's records, and unpacking what it answers.

`Records` belongs to one program: it knows each table's key layout and each action's parameters, so
that packing an entry is a handful of shifts and one `struct.pack`. The formats are rt/ctl.h's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from params.data import Data

from . import abi, layout
from .build import RUNTIME
from .native import ALL, NONE
from .objects import MatchKind, Objects, TableInfo
from .ops import (
    NO_ACTION,
    CloneWrite,
    Code,
    CounterWrite,
    DefaultWrite,
    DigestAck,
    DigestWrite,
    DirectCounterWrite,
    DirectMeterWrite,
    Entry,
    GroupWrite,
    MemberWrite,
    MeterRates,
    MeterWrite,
    MulticastWrite,
    Op,
    OpError,
    RegisterWrite,
    Replica,
    TableWrite,
    ValueSetWrite,
    Verb,
)

(
    CTL_TABLE,
    CTL_DEFAULT,
    CTL_MEMBER,
    CTL_GROUP,
    CTL_MULTICAST,
    CTL_CLONE,
    CTL_COUNTER,
    CTL_DIRECT_COUNTER,
    CTL_METER,
    CTL_DIRECT_METER,
    CTL_REGISTER,
    CTL_VALUE_SET,
    CTL_DIGEST,
    CTL_DIGEST_ACK,
) = range(1, 15)
TO_ACTION, TO_MEMBER, TO_GROUP = range(3)
BY_PROGRAM = 1

_declared = abi.Declarations(RUNTIME / "ctl.h")
HEAD = _declared.packed("ctl_head")
TABLE = _declared.packed("ctl_table")
MEMBER = _declared.packed("ctl_member")
GROUP_MEMBER = _declared.packed("ctl_group_member")
REPLICAS = _declared.packed("ctl_replicas")
REPLICA = _declared.packed("ctl_replica")
CELL = _declared.packed("ctl_cell")
DIGEST = _declared.packed("ctl_digest")
ENTRY = _declared.packed("ctl_entry")
METER = struct.Struct("<5Q")  # the words of a ctl_cell: configured, cir, cburst, pir, pburst


class Refused(Exception):  # noqa: N818 - an answer, not a fault
    """An operation that is wrong on its face; it never reaches the data plane."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class KeyField(Data):
    """One key of a table, for packing."""

    name: str
    width: int
    shift: int
    kind: MatchKind
    full: int


class TableFormat(Data):
    """How a table's entries are packed."""

    info: TableInfo
    fields: tuple[KeyField, ...]
    key_bytes: int
    has_masks: bool
    is_lpm: bool


class ActionFormat(Data):
    """How an action's parameters are packed: (name, width, shift) of each, and the bytes of all."""

    name: str
    params: tuple[tuple[str, int, int], ...]
    size: int


class Records:
    """Packs and unpacks for one program."""

    def __init__(self, program: Objects) -> None:
        self.program = program
        self.tables = tuple(table_format(t) for t in program.tables)
        self.actions = tuple(
            action_format(a.name, [(p.name, p.width) for p in a.params]) for a in program.actions
        )
        self.packers: dict[type, Callable[..., bytes]] = {
            TableWrite: self.table_write,
            DefaultWrite: self.default_write,
            MemberWrite: self.member_write,
            GroupWrite: self.group_write,
            MulticastWrite: self.multicast_write,
            CloneWrite: self.clone_write,
            CounterWrite: self.counter_write,
            DirectCounterWrite: self.direct_counter_write,
            MeterWrite: self.meter_write,
            DirectMeterWrite: self.direct_meter_write,
            RegisterWrite: self.register_write,
            ValueSetWrite: self.value_set_write,
            DigestWrite: self.digest_write,
            DigestAck: self.digest_ack,
        }

    def pack(self, op: Op) -> bytes | OpError:
        """An operation as a record, or why it cannot be one."""
        try:
            return self.packers[type(op)](op)
        except Refused as refused:
            return OpError(refused.code, str(refused))
        except (struct.error, OverflowError, TypeError, IndexError) as error:
            return OpError(Code.INVALID_ARGUMENT, f"{type(op).__name__}: {error}")

    # Tables

    def table(self, index: int) -> TableFormat:
        """A table's format."""
        if not 0 <= index < len(self.tables):
            raise Refused(Code.NOT_FOUND, f"there is no table {index}")
        return self.tables[index]

    def match(self, e: Entry) -> tuple[TableFormat, bytes, int]:
        """An entry's key and mask words, and its prefix length."""
        table = self.table(e.table)
        if len(e.values) != len(table.fields):
            raise Refused(
                Code.INVALID_ARGUMENT,
                f"table {table.info.name} has {len(table.fields)} keys, found {len(e.values)}",
            )
        key = 0
        for field, value in zip(table.fields, e.values, strict=True):
            if value >> field.width:
                raise too_wide(table, field, value)
            key |= value << field.shift
        words = key.to_bytes(table.key_bytes, "little")
        if not table.has_masks and not table.is_lpm:
            return table, words, 0
        mask, prefix = self.mask(table, e.masks)
        if table.has_masks:
            words += mask.to_bytes(table.key_bytes, "little")
        return table, words, prefix

    def mask(self, table: TableFormat, masks: tuple[int, ...]) -> tuple[int, int]:
        """An entry's mask, with high ends in place of ranges, and its prefix length."""
        if len(masks) != len(table.fields):
            raise Refused(Code.INVALID_ARGUMENT, f"table {table.info.name} needs a mask per key")
        mask = prefix = 0
        for field, other in zip(table.fields, masks, strict=True):
            if field.kind is MatchKind.EXACT:
                mask |= field.full << field.shift
            elif field.kind is MatchKind.LPM:
                prefix = check_prefix(table, field, other)
                spare = field.width - prefix
                mask |= field.full >> spare << spare << field.shift
            elif other >> field.width:
                raise too_wide(table, field, other)
            else:
                mask |= other << field.shift
        return mask, prefix

    def params(self, action: int, values: Sequence[int]) -> bytes:
        """An action's parameters."""
        if not 0 <= action < len(self.actions):
            raise Refused(Code.NOT_FOUND, f"there is no action {action}")
        shape = self.actions[action]
        if len(values) != len(shape.params):
            raise Refused(
                Code.INVALID_ARGUMENT,
                f"action {shape.name} has {len(shape.params)} parameters, found {len(values)}",
            )
        whole = 0
        for (name, width, shift), value in zip(shape.params, values, strict=True):
            if value >> width:
                raise Refused(
                    Code.INVALID_ARGUMENT,
                    f"action {shape.name}: {value:#x} does not fit in the {width} bits of {name}",
                )
            whole |= value << shift
        return whole.to_bytes(shape.size, "little")

    def target(
        self, action: int, params: Sequence[int], member: int, group: int
    ) -> tuple[int, int, bytes]:
        """What an entry does: the kind of target, its number or id, parameters."""
        if group:
            return TO_GROUP, group, b""
        if member:
            return TO_MEMBER, member, b""
        if action == NO_ACTION:
            return TO_ACTION, NONE, b""
        return TO_ACTION, action, self.params(action, params)

    def table_write(self, op: TableWrite, flags: int = 0) -> bytes:
        """A table entry."""
        e = op.entry
        table, words, prefix = self.match(e)
        if op.verb is Verb.DELETE:
            kind, number, data = TO_ACTION, NONE, b""
        else:
            kind, number, data = self.target(e.action, e.params, e.member, e.group)
            if number == NONE:
                raise Refused(
                    Code.INVALID_ARGUMENT, f"table {table.info.name}: an entry needs an action"
                )
        length = TABLE.size + len(words) + len(data)
        head = TABLE.pack(
            *(CTL_TABLE, op.verb, length, e.table, flags),
            *(e.priority, prefix, e.idle_timeout_ns, kind, number),
        )
        return head + words + data

    def default_write(self, op: DefaultWrite) -> bytes:
        """A default action."""
        self.table(op.table)
        kind, number, data = self.target(op.action, op.params, op.member, op.group)
        length = TABLE.size + len(data)
        return (
            TABLE.pack(CTL_DEFAULT, Verb.MODIFY, length, op.table, 0, 0, 0, 0, kind, number) + data
        )

    def direct(self, kind: int, entry: Entry, values: bytes) -> bytes:
        """A resource of an entry."""
        _, words, prefix = self.match(entry)
        length = TABLE.size + len(words) + len(values)
        head = TABLE.pack(
            *(kind, Verb.MODIFY, length, entry.table, 0, entry.priority, prefix, 0, 0, 0)
        )
        return head + words + values

    def direct_counter_write(self, op: DirectCounterWrite) -> bytes:
        """The counter of an entry."""
        return self.direct(CTL_DIRECT_COUNTER, op.entry, struct.pack("<QQ", op.packets, op.bytes))

    def direct_meter_write(self, op: DirectMeterWrite) -> bytes:
        """The meter of an entry."""
        return self.direct(CTL_DIRECT_METER, op.entry, meter_words(op.rates))

    # Profiles and replication

    def member_write(self, op: MemberWrite) -> bytes:
        """A member of an action profile."""
        data = b"" if op.verb is Verb.DELETE else self.params(op.action, op.params)
        action = NONE if op.action == NO_ACTION else op.action
        length = MEMBER.size + len(data)
        head = MEMBER.pack(CTL_MEMBER, op.verb, length, op.profile, 0, op.member, action)
        return head + data

    def group_write(self, op: GroupWrite) -> bytes:
        """A group of an action selector."""
        members = b"".join(
            GROUP_MEMBER.pack(m.member, m.weight, m.watch_port, 0) for m in op.members
        )
        length = MEMBER.size + len(members)
        head = MEMBER.pack(CTL_GROUP, op.verb, length, op.profile, 0, op.group, len(op.members))
        return head + members

    def replicas(
        self,
        kind: int,
        verb: Verb,
        number: int,
        replicas: tuple[Replica, ...],
        max_bytes: int = 0,
        priority: int = 0,
        group: int = 0,
    ) -> bytes:
        """Replicas of a group or session."""
        body = b"".join(REPLICA.pack(r.port, r.instance) for r in replicas)
        length = REPLICAS.size + len(body)
        head = REPLICAS.pack(
            *(kind, verb, length, number, 0, len(replicas), max_bytes, priority, group)
        )
        return head + body

    def multicast_write(self, op: MulticastWrite) -> bytes:
        """A multicast group."""
        if not 0 < op.group < 1 << 16:
            raise Refused(Code.INVALID_ARGUMENT, f"multicast group {op.group} is not 1 to 65535")
        return self.replicas(CTL_MULTICAST, op.verb, op.group, op.replicas)

    def clone_write(self, op: CloneWrite) -> bytes:
        """A clone session."""
        if not 0 <= op.session < 1 << 15:
            raise Refused(Code.INVALID_ARGUMENT, f"clone session {op.session} is not 0 to 32767")
        if not 0 <= op.priority < 8:
            raise Refused(Code.INVALID_ARGUMENT, f"priority {op.priority} is not 0 to 7")
        return self.replicas(
            CTL_CLONE, op.verb, op.session, op.replicas, op.max_bytes, op.priority, op.group
        )

    # Externs

    def cell(self, kind: int, number: int, index: int | None, body: bytes) -> bytes:
        """A cell of an array."""
        at = ALL if index is None else index
        return CELL.pack(kind, Verb.MODIFY, CELL.size + len(body), number, 0, at) + body

    def counter_write(self, op: CounterWrite) -> bytes:
        """A cell of a counter."""
        return self.cell(
            CTL_COUNTER, op.counter, op.index, struct.pack("<QQ", op.packets, op.bytes)
        )

    def meter_write(self, op: MeterWrite) -> bytes:
        """A cell of a meter."""
        return self.cell(CTL_METER, op.meter, op.index, meter_words(op.rates))

    def register_write(self, op: RegisterWrite) -> bytes:
        """A cell of a register array."""
        registers = self.program.registers
        if not 0 <= op.register < len(registers):
            raise Refused(Code.NOT_FOUND, f"there is no register array {op.register}")
        info = registers[op.register]
        if op.value >> info.width:
            raise Refused(
                Code.INVALID_ARGUMENT,
                f"register {info.name}: {op.value:#x} does not fit in {info.width} bits",
            )
        body = op.value.to_bytes(-(-info.width // 64) * 8, "little")
        return self.cell(CTL_REGISTER, op.register, op.index, body)

    def value_set_write(self, op: ValueSetWrite) -> bytes:
        """All members of a value set."""
        if not 0 <= op.value_set < len(self.program.value_sets):
            raise Refused(Code.NOT_FOUND, f"there is no value set {op.value_set}")
        info = self.program.value_sets[op.value_set]
        size = -(-info.width // 64) * 8
        body = b""
        for value, mask in op.members:
            if value >> info.width or mask >> info.width:
                raise Refused(
                    Code.INVALID_ARGUMENT,
                    f"value set {info.name}: {value:#x} does not fit in {info.width} bits",
                )
            body += value.to_bytes(size, "little") + mask.to_bytes(size, "little")
        length = HEAD.size + 8 + len(body)
        head = HEAD.pack(CTL_VALUE_SET, Verb.MODIFY, length, op.value_set, 0)
        return head + struct.pack("<II", len(op.members), 0) + body

    def digest_write(self, op: DigestWrite) -> bytes:
        """Whether and how a digest is delivered."""
        return DIGEST.pack(
            *(CTL_DIGEST, op.verb, DIGEST.size, op.digest, 0),
            *(op.max_timeout_ns, op.ack_timeout_ns, op.max_list_size, 0),
        )

    def digest_ack(self, op: DigestAck) -> bytes:
        """An acknowledgement of a digest list."""
        return DIGEST.pack(
            CTL_DIGEST_ACK, Verb.MODIFY, DIGEST.size, op.digest, 0, 0, 0, 0, op.list_id
        )

    # The other way

    def entry_size(self, table: int) -> int:
        """The bytes of an entry that is read."""
        shape = self.table(table)
        return ENTRY.size + 2 * shape.key_bytes + shape.info.data_bytes

    def unpack_params(self, action: int, data: bytes) -> tuple[int, ...]:
        """An action's arguments."""
        shape = self.actions[action]
        whole = int.from_bytes(data[: shape.size], "little")
        return tuple(whole >> shift & ((1 << width) - 1) for _, width, shift in shape.params)

    def unpack_entry(self, record: bytes) -> tuple[Entry, tuple[int, ...]]:
        """A record's entry, and the numbers beside it: idle, const, has rates, counts, rates."""
        fields = ENTRY.unpack_from(record)
        table, _, priority, prefix, timeout, idle, kind, number = fields[:8]
        shape = self.tables[table]
        key_end = ENTRY.size + shape.key_bytes
        key = int.from_bytes(record[ENTRY.size : key_end], "little")
        mask = int.from_bytes(record[key_end : key_end + shape.key_bytes], "little")
        data = record[key_end + shape.key_bytes :]
        values = tuple(key >> f.shift & f.full for f in shape.fields)
        masks = tuple(unpack_mask(shape, f, mask, prefix) for f in shape.fields)
        entry = Entry(table, values, masks, priority, idle_timeout_ns=timeout)
        if kind == TO_MEMBER:
            entry.member = number
        elif kind == TO_GROUP:
            entry.group = number
        elif number != NONE:
            entry.action = number
            entry.params = self.unpack_params(number, data)
        return entry, (idle, *fields[8:])

    def unpack_sample(self, digest: int, sample: bytes) -> tuple[int, ...]:
        """A digest's sample."""
        widths = self.program.digests[digest].widths
        shape = layout.param_layout(widths)
        whole = int.from_bytes(sample, "little")
        return tuple(
            whole >> (8 * at) & ((1 << w) - 1) for at, w in zip(shape.offsets, widths, strict=True)
        )

    def sample_size(self, digest: int) -> int:
        """The bytes of a digest's sample."""
        return layout.param_layout(self.program.digests[digest].widths).size

    def const_entries(self) -> list[bytes]:
        """The program's own entries."""
        return [
            self.table_write(TableWrite(Verb.INSERT, entry), BY_PROGRAM)
            for entry in self.program.const_entries
        ]


def table_format(info: TableInfo) -> TableFormat:
    """How a table's entries are packed."""
    shape = layout.key_layout([k.width for k in info.keys])
    fields = tuple(
        KeyField(k.name, k.width, s, k.kind, (1 << k.width) - 1)
        for k, s in zip(info.keys, shape.shifts, strict=True)
    )
    has_masks = info.kind in (MatchKind.TERNARY, MatchKind.RANGE)
    return TableFormat(info, fields, shape.words * 8, has_masks, info.kind is MatchKind.LPM)


def action_format(name: str, params: list[tuple[str, int]]) -> ActionFormat:
    """How an action's parameters are packed."""
    shape = layout.param_layout([w for _, w in params])
    items = ((n, w, 8 * at) for (n, w), at in zip(params, shape.offsets, strict=True))
    return ActionFormat(name, tuple(items), shape.size)


def unpack_mask(table: TableFormat, field: KeyField, mask: int, prefix: int) -> int:
    """One key's mask, in the words of `Entry`."""
    if field.kind is MatchKind.EXACT:
        return field.full
    if field.kind is MatchKind.LPM:
        own = mask >> field.shift & field.full
        return own.bit_count() if table.has_masks else prefix
    return mask >> field.shift & field.full


def meter_words(rates: MeterRates | None) -> bytes:
    """A meter's configuration."""
    if rates is None:
        return METER.pack(0, 0, 0, 0, 0)
    return METER.pack(1, rates.cir, rates.cburst, rates.pir, rates.pburst)


def check_prefix(table: TableFormat, field: KeyField, length: int) -> int:
    """A prefix length that fits its key."""
    if 0 <= length <= field.width:
        return length
    raise Refused(
        Code.INVALID_ARGUMENT,
        f"table {table.info.name}: key {field.name} has {field.width} bits, "
        f"the prefix length is {length}",
    )


def too_wide(table: TableFormat, field: KeyField, value: int) -> Refused:
    """A value that its field cannot hold."""
    return Refused(
        Code.INVALID_ARGUMENT,
        f"table {table.info.name}: {value:#x} does not fit "
        f"in the {field.width} bits of {field.name}",
    )

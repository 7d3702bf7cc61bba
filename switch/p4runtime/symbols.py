"""The P4Info of the loaded program, indexed the way requests ask for it.

Built once per pipeline. Everything a request names by id is found here as a small frozen record
that knows its own name, so that messages can say `table ingress.ipv4_lpm` and not 0x02a1b3c4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from enum import Enum
from typing import Generic, TypeVar

from finsy.proto import p4i, p4t

from params.data import Data
from switch.p4runtime.errors import invalid
from switch.p4runtime.names import Names

KIND_OF_PREFIX = {
    0x01: "action",
    0x02: "table",
    0x03: "value set",
    0x04: "controller header",
    0x11: "action profile",
    0x12: "counter",
    0x13: "direct counter",
    0x14: "meter",
    0x15: "direct meter",
    0x16: "register",
    0x17: "digest",
}


class Match(Enum):
    """How a field of a key is matched; the value is the protobuf field that carries it."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"
    OPTIONAL = "optional"


_MATCH = {
    p4i.MatchField.EXACT: Match.EXACT,
    p4i.MatchField.LPM: Match.LPM,
    p4i.MatchField.TERNARY: Match.TERNARY,
    p4i.MatchField.RANGE: Match.RANGE,
    p4i.MatchField.OPTIONAL: Match.OPTIONAL,
}


class Field(Data):
    """One field of a key, an action's parameter or a packet's metadata.

    `type_name` is set if clients see values of another width, or strings, in place of the
    program's; strings have `names`.
    """

    id: int
    name: str
    bits: int
    type_name: str = field(default="", kw_only=True)
    names: Names | None = field(default=None, kw_only=True)


class KeyField(Field):
    """One field of a table's or value set's key."""

    match: Match


class Action(Data):
    """An action and its parameters, in the program's order."""

    id: int
    name: str
    params: tuple[Field, ...]


class Table(Data):
    """A table: its key, its actions with their scope, what it is attached to.

    `marks` are its annotations' names: the entries of some are orders to the switch
    (`dataplane.Order`).
    """

    id: int
    name: str
    key: tuple[KeyField, ...]
    actions: dict[int, Action]
    scopes: dict[int, int]
    has_const_default: bool
    profile_id: int
    counter_id: int
    meter_id: int
    size: int
    has_idle_timeout: bool
    is_const: bool
    needs_priority: bool
    marks: frozenset[str]


class Profile(Data):
    """An action profile, or an action selector."""

    id: int
    name: str
    tables: tuple[int, ...]
    is_selector: bool
    size: int
    max_group_size: int
    counts_members: bool
    max_member_weight: int


class Array(Data):
    """A counter, a meter or a register: `size` cells."""

    id: int
    name: str
    size: int


class Meter(Array):
    """A meter array; a direct meter has as many cells as its table has entries."""

    kind: int


class Register(Array):
    """A register array and the type of a cell.

    `marks` are its annotations' names: some of them share it with the switch (`dataplane.Role`).
    """

    type: p4t.P4DataTypeSpec
    marks: frozenset[str]


class ValueSet(Data):
    """A parser value set."""

    id: int
    name: str
    key: tuple[KeyField, ...]
    size: int


class Digest(Data):
    """A digest and the type of what it reports."""

    id: int
    name: str
    type: p4t.P4DataTypeSpec


T = TypeVar("T", bound="Action | Table | Profile | Array | ValueSet | Digest")


class Directory(Generic[T]):
    """The objects of one kind by id; asking for an unknown id is the client's error."""

    def __init__(self, kind: str, objects: Iterable[T]) -> None:
        self._kind = kind
        self._by_id = {item.id: item for item in objects}

    def __getitem__(self, item_id: int) -> T:
        item = self._by_id.get(item_id)
        if item is None:
            raise unknown_id(self._kind, item_id)
        return item

    def __iter__(self) -> Iterator[T]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, item_id: int) -> bool:
        return item_id in self._by_id

    def select(self, item_id: int) -> list[T]:
        """Return the object of that id, or all of them for the wildcard 0."""
        return [self[item_id]] if item_id else list(self)

    def named(self, name: str) -> T | None:
        """Return the object of that full name."""
        return next((item for item in self if item.name == name), None)


def unknown_id(kind: str, item_id: int) -> Exception:
    """Return the error for an id the P4Info does not have, saying what its prefix means."""
    if item_id == 0:
        return invalid(f"the {kind} id is missing")
    found = KIND_OF_PREFIX.get(item_id >> 24, "nothing known")
    hint = "" if found == kind else f" (its prefix means {found})"
    return invalid(f"no {kind} has id 0x{item_id:08x}{hint} in the loaded P4Info")


class Symbols:
    """Everything a P4Info declares."""

    def __init__(self, info: p4i.P4Info, names: dict[str, Names] | None = None) -> None:
        """`names` are those a switch has given out so far, by type."""
        self.info = info
        self.types = info.type_info
        self._names: dict[str, Names] = {} if names is None else names
        self.actions = Directory("action", map(self._action, info.actions))
        self.profiles = Directory("action profile", map(_profile, info.action_profiles))
        self.counters = Directory("counter", (_array(c) for c in info.counters))
        self.direct_counters = {c.direct_table_id: c for c in info.direct_counters}
        self.meters = Directory("meter", (_meter(m) for m in info.meters))
        self.direct_meters = {m.direct_table_id: _direct_meter(m) for m in info.direct_meters}
        self.registers = Directory("register", map(_register, info.registers))
        self.value_sets = Directory("value set", map(self._value_set, info.value_sets))
        self.digests = Directory("digest", map(_digest, info.digests))
        self.tables = Directory("table", (self._table(t) for t in info.tables))
        self.packet_in = self._packet_metadata("packet_in")
        self.packet_out = self._packet_metadata("packet_out")
        self.packet_in_id = self._packet_header_id("packet_in")
        self.packet_out_id = self._packet_header_id("packet_out")

    def _table(self, table: p4i.Table) -> Table:
        name = table.preamble.name
        key = tuple(self._key_field(field, f"table {name}") for field in table.match_fields)
        meter = self.direct_meters.get(table.preamble.id)
        counter = self.direct_counters.get(table.preamble.id)
        return Table(
            id=table.preamble.id,
            name=name,
            key=key,
            actions={ref.id: self.actions[ref.id] for ref in table.action_refs},
            scopes={ref.id: ref.scope for ref in table.action_refs},
            has_const_default=table.const_default_action_id != 0,
            profile_id=table.implementation_id,
            counter_id=counter.preamble.id if counter else 0,
            meter_id=meter.id if meter else 0,
            size=table.size,
            has_idle_timeout=table.idle_timeout_behavior == p4i.Table.NOTIFY_CONTROL,
            is_const=table.is_const_table,
            needs_priority=any(
                field.match in (Match.TERNARY, Match.RANGE, Match.OPTIONAL) for field in key
            ),
            marks=_marks(table.preamble),
        )

    def _translation(self, name: str) -> tuple[str, Names | None]:
        """The name of a field's type if it is translated, and its strings."""
        new = self.types.new_types.get(name) if name else None
        if new is None or not new.HasField("translated_type"):
            return "", None
        return name, self.names_of(name)

    @property
    def gives_names(self) -> bool:
        """Whether clients see strings for some numbers: which numbers, each switch decides anew."""
        return bool(self._names)

    def names_of(self, type_name: str) -> Names | None:
        """Return the strings of a declared type, None if clients see numbers."""
        translated = self.types.new_types[type_name].translated_type
        if translated.WhichOneof("sdn_type") != "sdn_string":
            return None
        return self._names.setdefault(type_name, Names(type_name))

    def _action(self, action: p4i.Action) -> Action:
        params = []
        for p in action.params:
            type_name, names = self._translation(p.type_name.name)
            params.append(Field(p.id, p.name, p.bitwidth, type_name=type_name, names=names))
        return Action(action.preamble.id, action.preamble.name, tuple(params))

    def _key_field(self, field: p4i.MatchField, where: str) -> KeyField:
        match = _MATCH.get(field.match_type)
        if match is None:
            kind = field.other_match_type or "no"
            raise invalid(
                f"{where}: field {field.name} has {kind} match kind, which is not supported"
            )
        type_name, names = self._translation(field.type_name.name)
        if names is not None and match not in (Match.EXACT, Match.OPTIONAL):
            raise invalid(
                f"{where}: field {field.name} is a string to clients, which cannot be matched by "
                f"{match.value}; P4Runtime has exact and optional for them"
            )
        return KeyField(
            field.id, field.name, field.bitwidth, match, type_name=type_name, names=names
        )

    def _value_set(self, value_set: p4i.ValueSet) -> ValueSet:
        where = f"value set {value_set.preamble.name}"
        key = tuple(self._key_field(field, where) for field in value_set.match)
        return ValueSet(value_set.preamble.id, value_set.preamble.name, key, value_set.size)

    def _packet_header_id(self, name: str) -> int:
        headers = self.info.controller_packet_metadata
        return next((h.preamble.id for h in headers if h.preamble.name == name), 0)

    def _packet_metadata(self, name: str) -> tuple[Field, ...]:
        for header in self.info.controller_packet_metadata:
            if header.preamble.name == name:
                fields = []
                for m in header.metadata:
                    type_name, names = self._translation(m.type_name.name)
                    fields.append(Field(m.id, m.name, m.bitwidth, type_name=type_name, names=names))
                return tuple(fields)
        return ()


def _profile(profile: p4i.ActionProfile) -> Profile:
    return Profile(
        id=profile.preamble.id,
        name=profile.preamble.name,
        tables=tuple(profile.table_ids),
        is_selector=profile.with_selector,
        size=profile.size,
        max_group_size=profile.max_group_size,
        counts_members=profile.HasField("sum_of_members"),
        max_member_weight=profile.sum_of_members.max_member_weight,
    )


def _array(counter: p4i.Counter) -> Array:
    return Array(counter.preamble.id, counter.preamble.name, counter.size)


def _meter(meter: p4i.Meter) -> Meter:
    return Meter(meter.preamble.id, meter.preamble.name, meter.size, meter.spec.type)


def _direct_meter(meter: p4i.DirectMeter) -> Meter:
    return Meter(meter.preamble.id, meter.preamble.name, 0, meter.spec.type)


def _register(register: p4i.Register) -> Register:
    preamble = register.preamble
    marks = _marks(preamble)
    return Register(preamble.id, preamble.name, register.size, register.type_spec, marks)


def _marks(preamble: p4i.Preamble) -> frozenset[str]:
    """The names of an object's annotations."""
    return frozenset(note.partition("(")[0] for note in preamble.annotations)


def _digest(digest: p4i.Digest) -> Digest:
    return Digest(digest.preamble.id, digest.preamble.name, digest.type_spec)

"""A P4 program's objects as whoever controls it knows them, listed by name and index.

An object's index is its position in the tuple here; `ops` and the reads of `Dataplane` use it.
Names are the full control-plane names of the BMv2 JSON, which P4Info uses too.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from params.data import Data

from .ops import Entry


class MatchKind(Enum):
    """How one key, or a table as a whole, matches. P4's `optional` is TERNARY here, as in BMv2."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"


class ParamInfo(Data):
    """A parameter of an action."""

    name: str
    width: int


class ActionInfo(Data):
    """An action and what it must be given."""

    index: int
    name: str
    params: tuple[ParamInfo, ...]


class KeyInfo(Data):
    """One key of a table; `width` is 1 for a header's validity."""

    name: str
    width: int
    kind: MatchKind
    target: str  # what it looks at: header and field


class TableInfo(Data):
    """A table, in the words a control plane needs."""

    index: int
    name: str
    kind: MatchKind
    keys: tuple[KeyInfo, ...]
    actions: tuple[int, ...]  # indices of the actions an entry may name
    size: int
    profile: int | None
    has_counters: bool
    meter: int | None
    has_timeout: bool
    is_const: bool  # entries are part of the program
    default_action: int  # the program's own; NO_ACTION if none (BMv2 then does nothing)
    default_params: tuple[int, ...]
    default_is_const: bool
    data_bytes: int  # that an entry's parameters take in memory

    @property
    def needs_priority(self) -> bool:
        """Whether entries are ordered by priority."""
        return self.kind in (MatchKind.TERNARY, MatchKind.RANGE)


class ProfileInfo(Data):
    """An action profile, or selector."""

    index: int
    name: str
    size: int
    has_selector: bool


class CounterInfo(Data):
    """A counter array; `table` is set for a direct one."""

    index: int
    name: str
    size: int
    table: int | None


class MeterInfo(Data):
    """A meter array; `table` is set for a direct one."""

    index: int
    name: str
    size: int
    table: int | None
    counts_bytes: bool


class RegisterInfo(Data):
    """A register array."""

    index: int
    name: str
    size: int
    width: int


class DigestInfo(Data):
    """A digest and the widths of its members."""

    index: int
    name: str
    widths: tuple[int, ...]


class ValueSetInfo(Data):
    """A parser value set; `width` is that of all its fields together."""

    index: int
    name: str
    width: int


class FieldInfo(Data):
    """A field of a header."""

    name: str
    width: int


class HeaderInfo(Data):
    """A header, and whether packets may leave with it."""

    fields: tuple[FieldInfo, ...]
    is_emitted: bool


class Objects(Data, eq=False):
    """All of a program's."""

    tables: tuple[TableInfo, ...]
    actions: tuple[ActionInfo, ...]
    profiles: tuple[ProfileInfo, ...]
    counters: tuple[CounterInfo, ...]
    meters: tuple[MeterInfo, ...]
    registers: tuple[RegisterInfo, ...]
    digests: tuple[DigestInfo, ...]
    value_sets: tuple[ValueSetInfo, ...]
    headers: tuple[HeaderInfo, ...]
    const_entries: tuple[Entry, ...]  # that are part of the program


class Translation(NamedTuple):
    """What a program becomes, and what is kept of it."""

    objects: Objects
    c_text: str

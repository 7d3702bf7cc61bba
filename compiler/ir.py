"""The low-level program: what BMv2 can run, not yet written as JSON.

Code is a graph of blocks. A block holds straight-line operations and ends in one terminator.
Data lives in fields of header instances; every value is an expression over such fields. Structs,
tuples, functions, sub-controls, loops and early exits are gone: they became fields and edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.source import Span
from params.data import Data

# Values


class Value(Data):
    """A scalar known at run time."""

    type: t.Type


class Lit(Value):
    """A number; booleans are 0 and 1."""

    value: int


class FieldRef(Value):
    """A field of a header instance; `$valid$` is its validity."""

    header: str
    name: str


class ParamRef(Value):
    """A parameter of an action, by its position in the entry's data."""

    index: int


class Op(Value):
    """An operator; `args` are one, two, or three for `?` (condition, yes, no)."""

    op: str
    args: tuple[Value, ...]


class LastField(Value):
    """A field of a stack's last element, for parsers; `member` in a stack of unions."""

    stack: str
    name: str
    member: str | None = None


class LastIndex(Value):
    """The index of a stack's last element."""

    stack: str


class Lookahead(Value):
    """Bits of the packet not yet parsed; only as the whole source of a `set`."""

    offset: int
    width: int


class ElementField(Value):
    """A field of a stack's element chosen at run time; index -1 is its validity."""

    stack: str
    index: Value
    field_index: int


class UnionValid(Value):
    """Whether a header union holds a valid header."""

    union: str


# Operations


class Name(Data):
    """A named object as an argument: kind is header, header_stack, header_union, counter_array,
    meter_array, register_array, calculation, stack or union_stack."""

    kind: str
    name: str
    member: str | None = None


class Element(Data):
    """A stack's element chosen at run time, as a header."""

    stack: str
    index: Value


class Text(Data):
    """A string argument."""

    text: str


class Values(Data):
    """A vector of values, for log messages."""

    values: tuple[Value, ...]


Arg = Value | Name | Element | Text | Values


class Operation(Data):
    """A primitive with its arguments, named as BMv2 names it."""

    op: str
    args: tuple[Arg, ...]
    span: Span


# Control flow


class Block(Data, eq=False, frozen=False):
    """Straight-line operations and a terminator; `inner` is a graph that runs before them."""

    ops: list[Operation] = field(default_factory=list)
    end: Terminator | None = None
    span: Span | None = None
    name: str = ""
    inner: Block | None = None


class Jump(Data, frozen=False):
    """Go on there; None is the end."""

    target: Block | None


class Branch(Data, frozen=False):
    """Two ways."""

    condition: Value
    yes: Block | None
    no: Block | None
    span: Span


class Apply(Data, frozen=False):
    """Apply a table, then go on by hit or miss, by action, or one way for all."""

    table: Table
    after: Block | None
    hit: Block | None = None
    miss: Block | None = None
    by_hit: bool = False
    by_action: dict[str, Block | None] = field(default_factory=dict)
    span: Span | None = None


class SelectCase(Data):
    """One case of a select: a value and mask per key (None: any), or a value set."""

    values: tuple[tuple[int, int] | None, ...]
    value_set: str | None
    target: Block | None


class Select(Data, frozen=False):
    """A parser's many-way branch."""

    keys: tuple[Value, ...]
    cases: list[SelectCase]


Terminator = Jump | Branch | Apply | Select


# Objects


class Action(Data, eq=False, frozen=False):
    """An action with its run-time parameters."""

    name: str
    params: tuple[tuple[str, t.Type], ...]
    entry: Block
    span: Span
    called_only: bool = False
    origin: c.Action | None = None
    annotations: s.Annotations = ()


class Key(Data):
    """A key field: what is matched, how, and what the control plane calls it."""

    value: Value
    match: str
    name: str
    width: int
    core: c.KeyElement
    computed: bool = False


class Entry(Data):
    """An entry written in the program; values per key as the match kind has them."""

    keys: tuple[tuple[int, ...], ...]
    action: int
    data: tuple[int, ...]
    priority: int | None
    span: Span


class Table(Data, eq=False, frozen=False):
    """A table."""

    name: str
    span: Span
    keys: tuple[Key, ...] = ()
    selector: tuple[Value, ...] = ()
    actions: list[Action] = field(default_factory=list)
    default: tuple[int, tuple[int, ...]] | None = None
    default_const: bool = False
    entries: tuple[Entry, ...] | None = None
    size: int = 1024
    declared_size: int = 1024
    implementation: Object | None = None
    counter: Object | None = None
    meter: Object | None = None
    timeout: bool = False
    core: c.Table | None = None
    refs: tuple[c.ActionRef, ...] = ()
    prefix: str = ""
    applied: bool = False


class Object(Data, eq=False, frozen=False):
    """An extern instance; `args` are its constructor's values by parameter name."""

    name: str
    kind: str
    type: t.Extern
    args: dict[str, int | str]
    span: Span
    annotations: s.Annotations = ()
    table: Table | None = None
    meter_target: Value | None = None
    selector: tuple[Value, ...] = ()
    used: bool = False
    in_place: bool = False


class Header(Data):
    """A header, or a metadata instance."""

    name: str
    type: str
    metadata: bool


class HeaderType(Data):
    """A layout: (name, width or '*', signed); `max_width` in bits when varbit is within."""

    name: str
    fields: tuple[tuple[str, int | str, bool], ...]
    max_width: int | None = None


class Stack(Data, frozen=False):
    """A header stack, or a stack of unions."""

    name: str
    type: str
    size: int
    union: bool


class Union(Data, frozen=False):
    """A header union instance; members are header names."""

    name: str
    type: str
    members: tuple[str, ...]


class FieldList(Data):
    """A list of fields kept over clone, resubmit or recirculate."""

    name: str
    index: int
    fields: tuple[Value, ...]


class LearnList(Data):
    """A digest's fields."""

    name: str
    fields: tuple[Value, ...]
    span: Span


class Calculation(Data):
    """A hash or checksum over values; `payload` adds the rest of the packet."""

    name: str
    algorithm: str
    inputs: tuple[Value, ...]
    payload: bool
    span: Span | None


class Checksum(Data):
    """A checksum to verify or update."""

    target: Value
    calculation: str
    condition: Value
    verify: bool
    span: Span


class Pipeline(Data, frozen=False):
    """Ingress or egress."""

    name: str
    entry: Block
    span: Span
    prefix: str = ""


class ValueSet(Data, frozen=False):
    """A parser value set."""

    name: str
    width: int
    size: int
    core: c.ValueSet
    prefix: str = ""


class Digest(Data, frozen=False):
    """A digest's name and payload type, for P4Info."""

    name: str
    type: t.Type


class Program(Data, frozen=False):
    """Everything the JSON is written from."""

    header_types: dict[str, HeaderType] = field(default_factory=dict)
    union_types: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    headers: list[Header] = field(default_factory=list)
    stacks: list[Stack] = field(default_factory=list)
    unions: list[Union] = field(default_factory=list)
    scalars: list[tuple[str, int, bool]] = field(default_factory=list)
    aliases: list[tuple[str, str, str]] = field(default_factory=list)
    field_lists: list[FieldList] = field(default_factory=list)
    learn_lists: list[LearnList] = field(default_factory=list)
    calculations: list[Calculation] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    parser: Block | None = None
    states: list[Block] = field(default_factory=list)
    value_sets: list[ValueSet] = field(default_factory=list)
    pipelines: list[Pipeline] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    deparser: list[str] = field(default_factory=list)
    deparser_span: Span | None = None
    digests: list[Digest] = field(default_factory=list)
    unnamed_digests: int = 0
    calls_externs: bool = False


def boolean(value: bool) -> Lit:
    """A boolean literal."""
    return Lit(t.BOOL, int(value))


def by_number(
    number: Value, type_: t.Type, targets: Sequence[Block | None], span: Span
) -> Block | None:
    """Where branches begin that lead to the target of that number."""
    following = targets[-1]
    for index in range(len(targets) - 2, -1, -1):
        test = Op(t.BOOL, "==", (number, Lit(type_, index)))
        following = Block(end=Branch(test, targets[index], following, span))
    return following

"""What a program in BMv2 JSON consists of: everything the code generator may rely on.

The format is behavioral-model's (docs/JSON_format.md there). `read.py` makes a `Program` of it,
resolving names and refusing what cannot run, so that the generator has no error paths of its own.
A complaint is a `JsonError` that names the place as a path, such as
`$.actions[3].primitives[1].parameters[0]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, fields, is_dataclass
from functools import cache, cached_property
from types import NoneType

from params.data import Data

VALID_FIELD = "$valid$"


# Headers


class Field(Data):
    """A field of a header type; for a varbit `width` is the most it can hold."""

    name: str
    width: int
    is_signed: bool = False
    is_varbit: bool = False


class HeaderType(Data):
    """A header's layout."""

    name: str
    fields: tuple[Field, ...]

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """The fields by name."""
        return {f.name: f for f in self.fields}

    @property
    def fixed_bits(self) -> int:
        """The width of all fields but a varbit."""
        return sum(f.width for f in self.fields if not f.is_varbit)

    @property
    def varbit(self) -> Field | None:
        """The field of variable length, if there is one."""
        return next((f for f in self.fields if f.is_varbit), None)

    @property
    def max_bytes(self) -> int:
        """The most bytes it takes in a packet."""
        return (sum(f.width for f in self.fields) + 7) // 8


class Header(Data):
    """A header instance, or a metadata struct."""

    name: str
    type: HeaderType
    is_metadata: bool

    def field(self, name: str) -> Field | None:
        """A field by name."""
        return self.type.by_name.get(name)


class Stack(Data):
    """A header stack; `headers` are the instances in order."""

    name: str
    type: HeaderType
    headers: tuple[str, ...]


class Union(Data):
    """A header union: member names, and the header instance behind each."""

    name: str
    members: tuple[tuple[str, str], ...]


class UnionStack(Data):
    """A stack of header unions."""

    name: str
    unions: tuple[str, ...]


# Expressions


class Const(Data):
    """A number of any size and sign."""

    value: int


class BoolConst(Data):
    """A truth value."""

    value: bool


class StringConst(Data):
    """Text, for log_msg."""

    value: str


class FieldRef(Data):
    """A field of a header instance, or its validity (`$valid$`)."""

    header: str
    field: str


class HeaderRef(Data):
    """A header instance."""

    name: str


class StackRef(Data):
    """A header stack."""

    name: str


class StackField(Data):
    """A field of the last valid header of a stack."""

    stack: str
    field: str


class UnionRef(Data):
    """A header union."""

    name: str


class UnionStackRef(Data):
    """A stack of header unions."""

    name: str


class UnionStackField(Data):
    """A field of a member of the last valid union of a stack."""

    stack: str
    member: str
    field: str


class Param(Data):
    """A parameter of the enclosing action."""

    index: int


class Lookahead(Data):
    """Bits of the packet ahead of the parser."""

    offset: int
    width: int


class RegisterCell(Data):
    """A cell of a register array."""

    register: str
    index: Expr


class ObjectRef(Data):
    """A named extern: a register, counter or meter array, a calculation."""

    kind: str
    name: str


class Vector(Data):
    """Several arguments in one, for log_msg; or the fields of a list."""

    items: tuple[Expr, ...]


class Op(Data):
    """An operation; `cond` is set for `?` only."""

    op: str
    left: Expr | None
    right: Expr | None
    cond: Expr | None = None


Expr = (
    Const
    | BoolConst
    | StringConst
    | FieldRef
    | HeaderRef
    | StackRef
    | StackField
    | UnionRef
    | UnionStackRef
    | UnionStackField
    | Param
    | Lookahead
    | RegisterCell
    | ObjectRef
    | Vector
    | Op
)

# fmt: off
UNARY_OPS = frozenset((
    "not", "~", "valid", "valid_union", "d2b", "b2d", "last_stack_index", "size_stack",
))
BINARY_OPS = frozenset((
    "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^",
    "==", "!=", "<", ">", "<=", ">=", "and", "or",
    "two_comp_mod", "sat_cast", "usat_cast",
    "dereference_stack", "dereference_header_stack", "dereference_union_stack",
    "access_field", "access_union_header",
))
HASHES = frozenset((
    "crc16", "crc32", "crcCCITT", "crc8_custom", "crc16_custom", "crc32_custom", "crc64_custom",
    "csum16", "cksum16", "xor8", "xor16", "xor32", "xor64", "identity", "xxh64", "round_robin",
    "random",
))
# fmt: on


# Code


class Source(Data):
    """Where in the P4 source something came from."""

    file: str
    line: int
    text: str


class Primitive(Data):
    """One step of an action or a parser state."""

    op: str
    args: tuple[Expr, ...]
    source: Source | None
    path: str


class ActionParam(Data):
    """A parameter of an action."""

    name: str
    width: int


class Action(Data):
    """An action."""

    id: int
    name: str
    params: tuple[ActionParam, ...]
    body: tuple[Primitive, ...]


class ParserOp(Data):
    """A step of a parser state; `target` is a `regular`, `stack` or `union_stack` extract's."""

    op: str
    args: tuple[Expr, ...]
    path: str
    member: str = ""
    primitive: Primitive | None = None


class Transition(Data):
    """A way out of a parser state: a value under a mask, a value set, or the default."""

    value: int | None
    mask: int | None
    value_set: str | None
    next_state: str | None
    is_default: bool = False


class ParseState(Data):
    """A parser state."""

    name: str
    ops: tuple[ParserOp, ...]
    key: tuple[Expr, ...]
    transitions: tuple[Transition, ...]


class Parser(Data):
    """A parser."""

    name: str
    init_state: str | None
    states: tuple[ParseState, ...]


class Deparser(Data):
    """Headers in the order they are emitted, and extern calls made while deparsing."""

    name: str
    order: tuple[str, ...]
    primitives: tuple[Primitive, ...]


# Externs


class ValueSet(Data):
    """A parser value set."""

    name: str
    width: int


class Counter(Data):
    """A counter array; `binding` names the table of a direct one."""

    name: str
    size: int
    binding: str | None


class Meter(Data):
    """A meter array."""

    name: str
    size: int
    rates: int
    counts_bytes: bool
    binding: str | None
    result: FieldRef | None


class Register(Data):
    """A register array."""

    name: str
    size: int
    width: int


class CalcInput(Data):
    """One input of a calculation: a field, a header, a constant of some width, or the payload."""

    expr: Expr | None
    width: int = 0


class Calculation(Data):
    """A hash over fields."""

    name: str
    algo: str
    inputs: tuple[CalcInput, ...]


class Checksum(Data):
    """A field that holds a calculation's result."""

    name: str
    target: FieldRef
    calculation: str
    update: bool
    verify: bool
    condition: Expr | None


class FieldList(Data):
    """Fields that a copy of a packet keeps, or that a digest sends."""

    id: int
    name: str
    fields: tuple[Expr, ...]


# Control


class Key(Data):
    """One key of a table; `match` is exact, lpm, ternary or range."""

    name: str
    match: str
    target: FieldRef
    mask: int | None


class KeyMatch(Data):
    """One key of a const entry: value and mask, prefix length or high end by match kind."""

    value: int
    mask: int


class ConstEntry(Data):
    """An entry that is part of the program; of two that match the smaller priority wins."""

    keys: tuple[KeyMatch, ...]
    priority: int
    action: int
    params: tuple[int, ...]


class Default(Data):
    """A table's default action."""

    action: int
    params: tuple[int, ...]
    is_const: bool


class Table(Data):
    """A table; `next_tables` maps actions, or `__HIT__` and `__MISS__`, to nodes."""

    name: str
    match: str
    keys: tuple[Key, ...]
    actions: tuple[int, ...]
    size: int
    with_counters: bool
    support_timeout: bool
    direct_meter: str | None
    profile: str | None
    next_tables: dict[str, str | None]
    base_default_next: str | None
    default: Default | None
    entries: tuple[ConstEntry, ...] | None

    @property
    def runnable(self) -> list[int]:
        """The actions it may run."""
        default = [self.default.action] if self.default is not None else []
        return list(dict.fromkeys([*self.actions, *default]))


class Conditional(Data):
    """A branch."""

    name: str
    condition: Expr
    true_next: str | None
    false_next: str | None
    source: Source | None = None


class ActionCall(Data):
    """An action called without a table."""

    name: str
    action: int
    next_node: str | None


class Profile(Data):
    """An action profile; with a selector if `algo` is set."""

    name: str
    size: int
    algo: str | None
    inputs: tuple[CalcInput, ...]


class Pipeline(Data):
    """A control: nodes by name."""

    name: str
    init: str | None
    nodes: dict[str, Table | Conditional | ActionCall]


class Program(Data):
    """A whole program."""

    headers: dict[str, Header]
    stacks: dict[str, Stack]
    unions: dict[str, Union]
    union_stacks: dict[str, UnionStack]
    errors: dict[str, int]
    parser: Parser
    deparser: Deparser
    value_sets: dict[str, ValueSet]
    counters: dict[str, Counter]
    meters: dict[str, Meter]
    registers: dict[str, Register]
    calculations: dict[str, Calculation]
    checksums: tuple[Checksum, ...]
    field_lists: dict[int, FieldList]
    digests: tuple[FieldList, ...]
    actions: tuple[Action, ...]
    profiles: dict[str, Profile]
    pipelines: dict[str, Pipeline]
    aliases: dict[str, FieldRef]
    action_index: dict[int, int] = field(default_factory=dict)  # JSON id to position

    @cached_property
    def tables(self) -> list[Table]:
        """All tables, ingress first."""
        nodes = (n for p in self.pipelines.values() for n in p.nodes.values())
        return [n for n in nodes if isinstance(n, Table)]

    @cached_property
    def used_actions(self) -> list[int]:
        """The actions that something may run, in the order of the JSON."""
        used = {a for t in self.tables for a in t.runnable}
        for pipeline in self.pipelines.values():
            used |= {n.action for n in pipeline.nodes.values() if isinstance(n, ActionCall)}
        return sorted(used)

    def field_of(self, ref: FieldRef) -> Field:
        """The field behind a reference; a header's validity is one bit."""
        if ref.field == VALID_FIELD:
            return Field(VALID_FIELD, 1)
        found = self.headers[ref.header].field(ref.field)
        assert found is not None, ref
        return found

    def standard(self, name: str) -> FieldRef | None:
        """A field the switch itself reads or writes, through the program's aliases."""
        if name in self.aliases:
            return self.aliases[name]
        header_name, field_name = name.split(".")
        header = self.headers.get(header_name)
        if header is None or header.field(field_name) is None:
            return None
        return FieldRef(header_name, field_name)


def parts_of(part: object) -> Sequence[object]:
    """What any part of a program consists of."""
    if isinstance(part, tuple | list):
        return part
    if isinstance(part, dict):
        return list(part.values())
    kind: type = type(part)
    return [getattr(part, name) for name in _members(kind)]


@cache
def _members(kind: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()


def params_in(expr: Expr | None) -> Iterator[Param]:
    """All references to action parameters in an expression."""
    match expr:
        case Param():
            yield expr
        case Op(_, left, right, cond):
            for part in (left, right, cond):
                yield from params_in(part)
        case Vector(items):
            for item in items:
                yield from params_in(item)
        case RegisterCell(_, index):
            yield from params_in(index)


def successors(node: Table | Conditional | ActionCall) -> list[str | None]:
    """Where control may go after a node; None is the end."""
    match node:
        case Table():
            return [*node.next_tables.values(), node.base_default_next]
        case Conditional():
            return [node.true_next, node.false_next]
    return [node.next_node]


def references(part: object) -> Iterator[FieldRef | HeaderRef | StackField]:
    """All fields and headers that a part of a program refers to, once for each time."""
    # All parts of a program, many times over: with a stack it takes a third of what recursion does.
    waiting = [part]
    while waiting:
        part = waiting.pop()
        if type(part) in _PLAIN:
            continue
        if isinstance(part, _REFERENCES):
            yield part
        else:
            waiting.extend(reversed(parts_of(part)))


_REFERENCES = (FieldRef, HeaderRef, StackField)
_PLAIN = frozenset((str, int, bool, NoneType))

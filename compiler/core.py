"""The typed tree: what the checker makes of the syntax tree.

Names are resolved to symbols, every expression has its type, implicit casts are explicit,
arguments stand in parameter order, constants are folded. Everything after the checker works on
this tree alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler import syntax as s
from compiler import types as t
from compiler.source import Span

# Symbols


@dataclass(slots=True, eq=False)
class Variable:
    """A local variable or a parameter; `direction` is `var` for a variable, `ctor` for a
    constructor parameter, else the parameter's own direction (empty for none)."""

    name: str
    type: t.Type
    direction: str
    span: Span
    annotations: s.Annotations = ()
    used: bool = False
    written: bool = False
    optional: bool = False
    default: s.Expr | None = None


@dataclass(slots=True, eq=False)
class Instance:
    """An instantiation of an extern, parser, control or package."""

    name: str
    type: t.Type
    block: Parser | Control | None
    args: tuple[Expr | None, ...]
    params: tuple[t.Param, ...]
    span: Span
    decl_span: Span
    annotations: s.Annotations = ()
    used: bool = False


# Expressions


@dataclass(frozen=True, slots=True)
class Expr:
    """A typed expression."""

    span: Span
    type: t.Type


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A literal: int for numbers, bool, str for strings, enum members, errors and match kinds."""

    value: int | bool | str
    written: str = ""


@dataclass(frozen=True, slots=True)
class Ref(Expr):
    """A variable or parameter."""

    symbol: Variable


@dataclass(frozen=True, slots=True)
class InstanceRef(Expr):
    """An instance named in an expression."""

    instance: Instance


@dataclass(frozen=True, slots=True)
class New(Expr):
    """A constructor call in an expression."""

    instance: Instance


@dataclass(frozen=True, slots=True)
class Field(Expr):
    """A field of a struct, header, union, or of a table's result; a tuple's `[i]` is `f<i>`."""

    base: Expr
    name: str


@dataclass(frozen=True, slots=True)
class StackPart(Expr):
    """`next`, `last`, `lastIndex` or `size` of a stack."""

    base: Expr
    part: str


@dataclass(frozen=True, slots=True)
class Index(Expr):
    """An element of a stack."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Slice(Expr):
    """Bits high..low."""

    base: Expr
    high: int
    low: int


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`! ~ -`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """An infix operator on operands of settled type."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Ternary(Expr):
    """`c ? a : b`."""

    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """A conversion, explicit or implied."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Aggregate(Expr):
    """A struct, header, tuple, stack or list by its parts, in the order of the type's fields."""

    parts: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class Invalid(Expr):
    """`{#}`: an invalid header or union."""


@dataclass(frozen=True, slots=True)
class DefaultValue(Expr):
    """`...`: the default value of a type."""


@dataclass(frozen=True, slots=True)
class Any(Expr):
    """`_` or `default` in a key set."""


@dataclass(frozen=True, slots=True)
class Mask(Expr):
    """`value &&& mask`."""

    value: Expr
    mask: Expr


@dataclass(frozen=True, slots=True)
class Range(Expr):
    """`low .. high`."""

    low: Expr
    high: Expr


@dataclass(frozen=True, slots=True)
class ValueSetRef(Expr):
    """A value set named in a select case."""

    value_set: ValueSet


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A call; what `callee` is tells the kind; `base` is the object a method belongs to."""

    callee: Callee
    base: Expr | None
    type_args: tuple[t.Type, ...]
    args: tuple[Expr | None, ...]


@dataclass(frozen=True, slots=True)
class Builtin:
    """A method of headers or stacks: isValid, setValid, setInvalid, push_front, pop_front."""

    name: str


@dataclass(frozen=True, slots=True)
class ExternCall:
    """An extern function (`extern` is None) or an extern object's method."""

    method: t.Method
    extern: t.Extern | None = None


@dataclass(frozen=True, slots=True)
class TableApply:
    """`t.apply()`."""

    table: Table


@dataclass(frozen=True, slots=True)
class BlockApply:
    """`c.apply(...)` of a parser or control."""

    instance: Instance


# Statements


@dataclass(frozen=True, slots=True)
class Statement:
    """A typed statement."""

    span: Span


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    """`target = value;`; in a compound one, `value` contains the target, to be found once."""

    target: Expr
    value: Expr
    compound: bool = False


@dataclass(frozen=True, slots=True)
class CallStatement(Statement):
    """A call for its effect."""

    call: Call


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    """A variable, with its initial value."""

    variable: Variable
    init: Expr | None


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """Statements in order."""

    body: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class If(Statement):
    """`if`."""

    condition: Expr
    yes: Statement
    no: Statement | None


@dataclass(frozen=True, slots=True)
class SwitchCase:
    """Labels (action names, or expressions; empty for default) and their body."""

    labels: tuple[Action | Expr, ...]
    default: bool
    body: Block


@dataclass(frozen=True, slots=True)
class Switch(Statement):
    """`switch`; on a table's action_run when `table` is set."""

    table: Table | None
    value: Expr
    cases: tuple[SwitchCase, ...]


@dataclass(frozen=True, slots=True)
class Return(Statement):
    """`return`."""

    value: Expr | None


@dataclass(frozen=True, slots=True)
class Exit(Statement):
    """`exit`."""


@dataclass(frozen=True, slots=True)
class Break(Statement):
    """`break`."""


@dataclass(frozen=True, slots=True)
class Continue(Statement):
    """`continue`."""


@dataclass(frozen=True, slots=True)
class For(Statement):
    """A C-style loop."""

    init: tuple[Statement, ...]
    condition: Expr
    update: tuple[Statement, ...]
    body: Statement


@dataclass(frozen=True, slots=True)
class ForIn(Statement):
    """A loop over a range, or over the elements of a stack or list."""

    variable: Variable
    collection: Expr
    body: Statement


# Declarations


@dataclass(slots=True, eq=False)
class Function:
    """A function with a body."""

    name: str
    params: tuple[Variable, ...]
    returns: t.Type
    body: Block
    decl: s.Function


@dataclass(slots=True, eq=False)
class Action:
    """An action; `top_level` when declared outside any control."""

    name: str
    params: tuple[Variable, ...]
    body: Block
    decl: s.ActionDecl
    top_level: bool
    used: bool = False


@dataclass(frozen=True, slots=True)
class KeyElement:
    """A key field of a table."""

    span: Span
    expr: Expr
    match_kind: str
    annotations: s.Annotations
    text: str


@dataclass(frozen=True, slots=True)
class ActionRef:
    """An action a table may run, with the arguments bound in the program."""

    span: Span
    action: Action
    args: tuple[Expr | None, ...]
    annotations: s.Annotations


@dataclass(frozen=True, slots=True)
class ActionCall:
    """An action with all its run-time arguments, in a default action or an entry."""

    span: Span
    ref: ActionRef
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry given in the program."""

    span: Span
    keys: tuple[Expr, ...]
    action: ActionCall
    priority: int | None
    const: bool
    annotations: s.Annotations


@dataclass(frozen=True, slots=True)
class Property:
    """Another table property."""

    span: Span
    name: str
    value: Expr
    const: bool
    annotations: s.Annotations


@dataclass(slots=True, eq=False)
class Table:
    """A table."""

    name: str
    decl: s.TableDecl
    key: tuple[KeyElement, ...] = ()
    actions: tuple[ActionRef, ...] = ()
    default: ActionCall | None = None
    default_const: bool = False
    entries: tuple[Entry, ...] | None = None
    const_entries: bool = False
    properties: dict[str, Property] = field(default_factory=dict)
    used: bool = False


@dataclass(slots=True, eq=False)
class ValueSet:
    """A parser value set."""

    name: str
    type: t.Type
    size: int
    decl: s.ValueSet


@dataclass(frozen=True, slots=True)
class SelectCase:
    """`keys : state;`: one key set per select expression."""

    span: Span
    keys: tuple[Expr, ...]
    state: str


@dataclass(slots=True, eq=False)
class State:
    """A parser state."""

    name: str
    decl: s.StateDecl
    body: tuple[Statement, ...] = ()
    keys: tuple[Expr, ...] = ()
    cases: tuple[SelectCase, ...] = ()
    next: str | None = None


@dataclass(slots=True, eq=False)
class Parser:
    """A parser with a body."""

    name: str
    decl: s.ParserDecl
    params: tuple[Variable, ...]
    constructor_params: tuple[Variable, ...]
    type: t.BlockType
    locals: list[object] = field(default_factory=list)
    states: dict[str, State] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Control:
    """A control with a body."""

    name: str
    decl: s.ControlDecl
    params: tuple[Variable, ...]
    constructor_params: tuple[Variable, ...]
    type: t.BlockType
    locals: list[object] = field(default_factory=list)
    body: Block | None = None


Callee = Builtin | ExternCall | TableApply | BlockApply | Function | Action


@dataclass(slots=True)
class Program:
    """Everything the checker found at the top level."""

    main: Instance | None = None
    errors: list[str] = field(default_factory=list)
    types: list[t.Named] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    match_kinds: list[str] = field(default_factory=list)
    blocks: list[Parser | Control] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)

"""The typed tree: what the checker makes of the syntax tree.

Names are resolved to symbols, every expression has its type, implicit casts are explicit,
arguments stand in parameter order, constants are folded. Everything after the checker works on
this tree alone.
"""

from __future__ import annotations

from dataclasses import field

from compiler import syntax as s
from compiler import types as t
from compiler.source import Span
from params.data import Data

# Symbols


class Variable(Data, eq=False, frozen=False):
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


class Instance(Data, eq=False, frozen=False):
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


class Expr(Data):
    """A typed expression."""

    span: Span
    type: t.Type


class Const(Expr):
    """A literal: int for numbers, bool, str for strings, enum members, errors and match kinds."""

    value: int | bool | str
    written: str = ""


class Ref(Expr):
    """A variable or parameter."""

    symbol: Variable


class InstanceRef(Expr):
    """An instance named in an expression."""

    instance: Instance


class New(Expr):
    """A constructor call in an expression."""

    instance: Instance


class Field(Expr):
    """A field of a struct, header, union, or of a table's result; a tuple's `[i]` is `f<i>`."""

    base: Expr
    name: str


class StackPart(Expr):
    """`next`, `last`, `lastIndex` or `size` of a stack."""

    base: Expr
    part: str


class Index(Expr):
    """An element of a stack."""

    base: Expr
    index: Expr


class Slice(Expr):
    """Bits high..low."""

    base: Expr
    high: int
    low: int


class Unary(Expr):
    """`! ~ -`."""

    op: str
    operand: Expr


class Binary(Expr):
    """An infix operator on operands of settled type."""

    op: str
    left: Expr
    right: Expr


class Ternary(Expr):
    """`c ? a : b`."""

    condition: Expr
    yes: Expr
    no: Expr


class Cast(Expr):
    """A conversion, explicit or implied."""

    operand: Expr


class Aggregate(Expr):
    """A struct, header, tuple, stack or list by its parts, in the order of the type's fields."""

    parts: tuple[tuple[str, Expr], ...]


class Invalid(Expr):
    """`{#}`: an invalid header or union."""


class DefaultValue(Expr):
    """`...`: the default value of a type."""


class Any(Expr):
    """`_` or `default` in a key set."""


class Mask(Expr):
    """`value &&& mask`."""

    value: Expr
    mask: Expr


class Range(Expr):
    """`low .. high`."""

    low: Expr
    high: Expr


class ValueSetRef(Expr):
    """A value set named in a select case."""

    value_set: ValueSet


class Call(Expr):
    """A call; what `callee` is tells the kind; `base` is the object a method belongs to."""

    callee: Callee
    base: Expr | None
    type_args: tuple[t.Type, ...]
    args: tuple[Expr | None, ...]


class Builtin(Data):
    """A method of headers or stacks: isValid, setValid, setInvalid, push_front, pop_front."""

    name: str


class ExternCall(Data):
    """An extern function (`extern` is None) or an extern object's method."""

    method: t.Method
    extern: t.Extern | None = None


class TableApply(Data):
    """`t.apply()`."""

    table: Table


class BlockApply(Data):
    """`c.apply(...)` of a parser or control."""

    instance: Instance


# Statements


class Statement(Data):
    """A typed statement."""

    span: Span


class Assign(Statement):
    """`target = value;`; in a compound one, `value` contains the target, to be found once."""

    target: Expr
    value: Expr
    compound: bool = False


class CallStatement(Statement):
    """A call for its effect."""

    call: Call


class Declare(Statement):
    """A variable, with its initial value."""

    variable: Variable
    init: Expr | None


class Block(Statement):
    """Statements in order."""

    body: tuple[Statement, ...]


class If(Statement):
    """`if`."""

    condition: Expr
    yes: Statement
    no: Statement | None


class SwitchCase(Data):
    """Labels (action names, or expressions; empty for default) and their body."""

    labels: tuple[Action | Expr, ...]
    default: bool
    body: Block


class Switch(Statement):
    """`switch`; on a table's action_run when `table` is set."""

    table: Table | None
    value: Expr
    cases: tuple[SwitchCase, ...]


class Return(Statement):
    """`return`."""

    value: Expr | None


class Exit(Statement):
    """`exit`."""


class Break(Statement):
    """`break`."""


class Continue(Statement):
    """`continue`."""


class For(Statement):
    """A C-style loop."""

    init: tuple[Statement, ...]
    condition: Expr
    update: tuple[Statement, ...]
    body: Statement


class ForIn(Statement):
    """A loop over a range, or over the elements of a stack or list."""

    variable: Variable
    collection: Expr
    body: Statement


# Declarations


class Function(Data, eq=False, frozen=False):
    """A function with a body."""

    name: str
    params: tuple[Variable, ...]
    returns: t.Type
    body: Block
    decl: s.Function


class Action(Data, eq=False, frozen=False):
    """An action; `top_level` when declared outside any control."""

    name: str
    params: tuple[Variable, ...]
    body: Block
    decl: s.ActionDecl
    top_level: bool
    used: bool = False


class KeyElement(Data):
    """A key field of a table."""

    span: Span
    expr: Expr
    match_kind: str
    annotations: s.Annotations
    text: str


class ActionRef(Data):
    """An action a table may run, with the arguments bound in the program."""

    span: Span
    action: Action
    args: tuple[Expr | None, ...]
    annotations: s.Annotations


class ActionCall(Data):
    """An action with all its run-time arguments, in a default action or an entry."""

    span: Span
    ref: ActionRef
    args: tuple[Expr, ...]


class Entry(Data):
    """An entry given in the program."""

    span: Span
    keys: tuple[Expr, ...]
    action: ActionCall
    priority: int | None
    const: bool
    annotations: s.Annotations


class Property(Data):
    """Another table property."""

    span: Span
    name: str
    value: Expr
    const: bool
    annotations: s.Annotations


class Table(Data, eq=False, frozen=False):
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


class ValueSet(Data, eq=False, frozen=False):
    """A parser value set."""

    name: str
    type: t.Type
    size: int
    decl: s.ValueSet


class SelectCase(Data):
    """`keys : state;`: one key set per select expression."""

    span: Span
    keys: tuple[Expr, ...]
    state: str


class State(Data, eq=False, frozen=False):
    """A parser state."""

    name: str
    decl: s.StateDecl
    body: tuple[Statement, ...] = ()
    keys: tuple[Expr, ...] = ()
    cases: tuple[SelectCase, ...] = ()
    next: str | None = None


class Parser(Data, eq=False, frozen=False):
    """A parser with a body."""

    name: str
    decl: s.ParserDecl
    params: tuple[Variable, ...]
    constructor_params: tuple[Variable, ...]
    type: t.BlockType
    locals: list[object] = field(default_factory=list)
    states: dict[str, State] = field(default_factory=dict)


class Control(Data, eq=False, frozen=False):
    """A control with a body."""

    name: str
    decl: s.ControlDecl
    params: tuple[Variable, ...]
    constructor_params: tuple[Variable, ...]
    type: t.BlockType
    locals: list[object] = field(default_factory=list)
    body: Block | None = None


Callee = Builtin | ExternCall | TableApply | BlockApply | Function | Action


class Program(Data, frozen=False):
    """Everything the checker found at the top level."""

    main: Instance | None = None
    errors: list[str] = field(default_factory=list)
    types: list[t.Named] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    match_kinds: list[str] = field(default_factory=list)
    blocks: list[Parser | Control] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)

"""The syntax tree: what the parser saw, before anything is known about it.

Nodes are frozen and carry the span they were read from. Names are plain strings here; the
checker finds out what they mean. A node class is named after its grammar symbol.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.source import Span


@dataclass(frozen=True, slots=True)
class Node:
    """Anything with a place in the source."""

    span: Span


class Word(str):
    """A name that is no node, with the place where it was read."""

    __slots__ = ("span",)
    span: Span

    def __new__(cls, text: str, span: Span) -> Word:
        """A name that stands there."""
        made = super().__new__(cls, text)
        made.span = span
        return made


# Annotations


@dataclass(frozen=True, slots=True)
class Annotation(Node):
    """`@name`, `@name(...)` or `@name[...]`; `tokens` are the words of its body."""

    name: str
    args: tuple[Expr, ...]
    pairs: tuple[tuple[str, Expr], ...]
    tokens: tuple[str, ...]
    structured: bool = False


Annotations = tuple[Annotation, ...]


# Types


@dataclass(frozen=True, slots=True)
class TypeExpr(Node):
    """A use of a type."""


@dataclass(frozen=True, slots=True)
class BaseType(TypeExpr):
    """`bool`, `error`, `string`, `match_kind`, `void`, `int` (without width), `_`."""

    name: str


@dataclass(frozen=True, slots=True)
class SizedType(TypeExpr):
    """`bit<W>`, `int<W>`, `varbit<W>`; a plain `bit` has no width."""

    name: str
    width: Expr | None


@dataclass(frozen=True, slots=True)
class NamedType(TypeExpr):
    """A type by its name, with type arguments if any."""

    name: str
    args: tuple[TypeExpr, ...] = ()


@dataclass(frozen=True, slots=True)
class StackType(TypeExpr):
    """`H[n]`."""

    element: TypeExpr
    size: Expr


@dataclass(frozen=True, slots=True)
class TupleType(TypeExpr):
    """`tuple<A, B>`."""

    elements: tuple[TypeExpr, ...]


@dataclass(frozen=True, slots=True)
class ListType(TypeExpr):
    """`list<T>`."""

    element: TypeExpr


# Expressions


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """An expression."""


@dataclass(frozen=True, slots=True)
class Number(Expr):
    """An integer literal; `width` is None for one of arbitrary precision."""

    value: int
    width: int | None
    signed: bool
    base: int = 10


@dataclass(frozen=True, slots=True)
class Bool(Expr):
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True, slots=True)
class String(Expr):
    """A string literal, escapes resolved."""

    value: str


@dataclass(frozen=True, slots=True)
class Name(Expr):
    """A name, absolute when written with a leading dot."""

    name: str
    absolute: bool = False


@dataclass(frozen=True, slots=True)
class TypeName(Expr):
    """A type used as an expression, as in `error.NoError` or `E.a`."""

    type: TypeExpr


@dataclass(frozen=True, slots=True)
class Member(Expr):
    """`base.name`."""

    base: Expr
    name: str
    name_span: Span


@dataclass(frozen=True, slots=True)
class Index(Expr):
    """`base[index]`."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True)
class Slice(Expr):
    """`base[high:low]`."""

    base: Expr
    high: Expr
    low: Expr


@dataclass(frozen=True, slots=True)
class PlusSlice(Expr):
    """`base[low +: width]`."""

    base: Expr
    low: Expr
    width: Expr


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """`! ~ - +`."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """An infix operator, `++`, `&&&` and `..` among them."""

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
    """`(T) e`."""

    type: TypeExpr
    operand: Expr


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """One argument of a call; a None value is `_`."""

    name: str | None
    value: Expr | None


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """`f<T>(a, b)`, also a constructor call."""

    function: Expr
    type_args: tuple[TypeExpr, ...]
    args: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class ListExpr(Expr):
    """`{a, b}`, possibly ending in `...`."""

    elements: tuple[Expr, ...]
    rest: bool = False


@dataclass(frozen=True, slots=True)
class StructExpr(Expr):
    """`{x = a, y = b}`."""

    fields: tuple[tuple[str, Expr, Span], ...]
    rest: bool = False


@dataclass(frozen=True, slots=True)
class InvalidHeader(Expr):
    """`{#}`."""


@dataclass(frozen=True, slots=True)
class Default(Expr):
    """`default`, `_` in a key set, and `...`."""

    word: str = "default"


@dataclass(frozen=True, slots=True)
class TupleKeyset(Expr):
    """`(a, b)` in a select case or table entry."""

    elements: tuple[Expr, ...]


# Statements


@dataclass(frozen=True, slots=True)
class Statement(Node):
    """A statement or a declaration among statements."""


@dataclass(frozen=True, slots=True)
class Empty(Statement):
    """`;`."""


@dataclass(frozen=True, slots=True)
class Assign(Statement):
    """`target = value;` and the `op=` forms."""

    target: Expr
    op: str
    value: Expr


@dataclass(frozen=True, slots=True)
class CallStatement(Statement):
    """A call as a statement."""

    call: Expr


@dataclass(frozen=True, slots=True)
class Block(Statement):
    """`{ ... }`."""

    body: tuple[Statement, ...]
    annotations: Annotations = ()


@dataclass(frozen=True, slots=True)
class If(Statement):
    """`if (c) s else t`."""

    condition: Expr
    yes: Statement
    no: Statement | None


@dataclass(frozen=True, slots=True)
class SwitchCase(Node):
    """Labels that share a body; a None body falls through; `labels` of None is `default`."""

    label: Expr
    body: Block | None


@dataclass(frozen=True, slots=True)
class Switch(Statement):
    """`switch (e) { ... }`."""

    value: Expr
    cases: tuple[SwitchCase, ...]


@dataclass(frozen=True, slots=True)
class Return(Statement):
    """`return e;`."""

    value: Expr | None


@dataclass(frozen=True, slots=True)
class Exit(Statement):
    """`exit;`."""


@dataclass(frozen=True, slots=True)
class Break(Statement):
    """`break;`."""


@dataclass(frozen=True, slots=True)
class Continue(Statement):
    """`continue;`."""


@dataclass(frozen=True, slots=True)
class For(Statement):
    """`for (init; condition; update) body`."""

    init: tuple[Statement, ...]
    condition: Expr
    update: tuple[Statement, ...]
    body: Statement


@dataclass(frozen=True, slots=True)
class ForIn(Statement):
    """`for (T x in collection) body`."""

    type: TypeExpr | None
    name: str
    name_span: Span
    collection: Expr
    body: Statement


# Declarations


@dataclass(frozen=True, slots=True)
class Decl(Statement):
    """Anything that introduces a name; `span` is the name's."""

    name: str
    annotations: Annotations


@dataclass(frozen=True, slots=True)
class Variable(Decl):
    """`T x = e;`."""

    type: TypeExpr
    init: Expr | None


@dataclass(frozen=True, slots=True)
class Constant(Decl):
    """`const T x = e;`."""

    type: TypeExpr
    value: Expr


@dataclass(frozen=True, slots=True)
class Instance(Decl):
    """`T(args) x;`, possibly with abstract methods implemented."""

    type: TypeExpr
    args: tuple[Argument, ...]
    body: Block | None = None


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """A parameter; direction is `in`, `out`, `inout` or empty."""

    name: str
    annotations: Annotations
    direction: str
    type: TypeExpr
    default: Expr | None


@dataclass(frozen=True, slots=True)
class Field(Node):
    """A field of a struct, header or header union."""

    name: str
    annotations: Annotations
    type: TypeExpr


@dataclass(frozen=True, slots=True)
class StructDecl(Decl):
    """`struct`, `header` or `header_union`, told apart by `kind`."""

    kind: str
    type_params: tuple[Word, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class EnumDecl(Decl):
    """`enum`, serializable when it has an underlying type."""

    underlying: TypeExpr | None
    members: tuple[tuple[str, Expr | None, Span, Annotations], ...]


@dataclass(frozen=True, slots=True)
class NameList(Decl):
    """`error { ... }` or `match_kind { ... }`; the declaration's name says which."""

    members: tuple[tuple[str, Span], ...]


@dataclass(frozen=True, slots=True)
class Typedef(Decl):
    """`typedef T x;`, or `type T x;` when `fresh`."""

    type: TypeExpr
    fresh: bool


@dataclass(frozen=True, slots=True)
class Function(Decl):
    """A function, method prototype or extern function."""

    returns: TypeExpr
    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]
    body: Block | None
    abstract: bool = False
    extern: bool = False


@dataclass(frozen=True, slots=True)
class ExternDecl(Decl):
    """An extern object type."""

    type_params: tuple[Word, ...]
    constructors: tuple[Function, ...]
    methods: tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class ActionDecl(Decl):
    """`action a(params) { ... }`."""

    params: tuple[Parameter, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class ParserType(Decl):
    """A parser or control type without body; `kind` says which."""

    kind: str
    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class PackageType(Decl):
    """`package P(params);`."""

    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class SelectCase(Node):
    """`keyset : state;`."""

    keyset: Expr
    state: str
    state_span: Span


@dataclass(frozen=True, slots=True)
class Transition(Node):
    """`transition s;` or `transition select(...) {...}`."""

    state: str | None
    keys: tuple[Expr, ...]
    cases: tuple[SelectCase, ...]


@dataclass(frozen=True, slots=True)
class StateDecl(Decl):
    """A parser state."""

    body: tuple[Statement, ...]
    transition: Transition | None


@dataclass(frozen=True, slots=True)
class ValueSet(Decl):
    """`value_set<T>(n) x;`."""

    type: TypeExpr
    size: Expr


@dataclass(frozen=True, slots=True)
class ParserDecl(Decl):
    """A parser with its body."""

    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]
    constructor_params: tuple[Parameter, ...]
    locals: tuple[Statement, ...]
    states: tuple[StateDecl, ...]


@dataclass(frozen=True, slots=True)
class ControlDecl(Decl):
    """A control with its body."""

    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]
    constructor_params: tuple[Parameter, ...]
    locals: tuple[Statement, ...]
    body: Block


@dataclass(frozen=True, slots=True)
class KeyElement(Node):
    """`expr : match_kind;`."""

    expr: Expr
    match_kind: Word
    annotations: Annotations


@dataclass(frozen=True, slots=True)
class ActionRef(Node):
    """An action in a table's list, perhaps with some arguments bound."""

    expr: Expr
    annotations: Annotations


@dataclass(frozen=True, slots=True)
class Entry(Node):
    """A table entry given in the program."""

    keys: tuple[Expr, ...]
    action: Expr
    priority: Expr | None
    const: bool
    annotations: Annotations


@dataclass(frozen=True, slots=True)
class Property(Node):
    """A table property other than key, actions and entries."""

    name: str
    value: Expr
    const: bool
    annotations: Annotations


@dataclass(frozen=True, slots=True)
class TableDecl(Decl):
    """A table."""

    key: tuple[KeyElement, ...] | None
    actions: tuple[ActionRef, ...] | None
    entries: tuple[Entry, ...] | None
    const_entries: bool
    properties: tuple[Property, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """All top-level declarations."""

    declarations: tuple[Decl, ...]

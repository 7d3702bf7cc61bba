"""The syntax tree: what the parser saw, before anything is known about it.

Nodes are frozen and carry the span they were read from. Names are plain strings here; the
checker finds out what they mean. A node class is named after its grammar symbol.
"""

from __future__ import annotations

from compiler.source import Span
from params.data import Data


class Node(Data):
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


class Annotation(Node):
    """`@name`, `@name(...)` or `@name[...]`; `tokens` are the words of its body."""

    name: str
    args: tuple[Expr, ...]
    pairs: tuple[tuple[str, Expr], ...]
    tokens: tuple[str, ...]
    structured: bool = False


Annotations = tuple[Annotation, ...]


# Types


class TypeExpr(Node):
    """A use of a type."""


class BaseType(TypeExpr):
    """`bool`, `error`, `string`, `match_kind`, `void`, `int` (without width), `_`."""

    name: str


class SizedType(TypeExpr):
    """`bit<W>`, `int<W>`, `varbit<W>`; a plain `bit` has no width."""

    name: str
    width: Expr | None


class NamedType(TypeExpr):
    """A type by its name, with type arguments if any."""

    name: str
    args: tuple[TypeExpr, ...] = ()


class StackType(TypeExpr):
    """`H[n]`."""

    element: TypeExpr
    size: Expr


class TupleType(TypeExpr):
    """`tuple<A, B>`."""

    elements: tuple[TypeExpr, ...]


class ListType(TypeExpr):
    """`list<T>`."""

    element: TypeExpr


# Expressions


class Expr(Node):
    """An expression."""


class Number(Expr):
    """An integer literal; `width` is None for one of arbitrary precision."""

    value: int
    width: int | None
    signed: bool
    base: int = 10


class Bool(Expr):
    """`true` or `false`."""

    value: bool


class String(Expr):
    """A string literal, escapes resolved."""

    value: str


class Name(Expr):
    """A name, absolute when written with a leading dot."""

    name: str
    absolute: bool = False


class TypeName(Expr):
    """A type used as an expression, as in `error.NoError` or `E.a`."""

    type: TypeExpr


class Member(Expr):
    """`base.name`."""

    base: Expr
    name: str
    name_span: Span


class Index(Expr):
    """`base[index]`."""

    base: Expr
    index: Expr


class Slice(Expr):
    """`base[high:low]`."""

    base: Expr
    high: Expr
    low: Expr


class PlusSlice(Expr):
    """`base[low +: width]`."""

    base: Expr
    low: Expr
    width: Expr


class Unary(Expr):
    """`! ~ - +`."""

    op: str
    operand: Expr


class Binary(Expr):
    """An infix operator, `++`, `&&&` and `..` among them."""

    op: str
    left: Expr
    right: Expr


class Ternary(Expr):
    """`c ? a : b`."""

    condition: Expr
    yes: Expr
    no: Expr


class Cast(Expr):
    """`(T) e`."""

    type: TypeExpr
    operand: Expr


class Argument(Node):
    """One argument of a call; a None value is `_`."""

    name: str | None
    value: Expr | None


class Call(Expr):
    """`f<T>(a, b)`, also a constructor call."""

    function: Expr
    type_args: tuple[TypeExpr, ...]
    args: tuple[Argument, ...]


class ListExpr(Expr):
    """`{a, b}`, possibly ending in `...`."""

    elements: tuple[Expr, ...]
    rest: bool = False


class StructExpr(Expr):
    """`{x = a, y = b}`."""

    fields: tuple[tuple[str, Expr, Span], ...]
    rest: bool = False


class InvalidHeader(Expr):
    """`{#}`."""


class Default(Expr):
    """`default`, `_` in a key set, and `...`."""

    word: str = "default"


class TupleKeyset(Expr):
    """`(a, b)` in a select case or table entry."""

    elements: tuple[Expr, ...]


# Statements


class Statement(Node):
    """A statement or a declaration among statements."""


class Empty(Statement):
    """`;`."""


class Assign(Statement):
    """`target = value;` and the `op=` forms."""

    target: Expr
    op: str
    value: Expr


class CallStatement(Statement):
    """A call as a statement."""

    call: Expr


class Block(Statement):
    """`{ ... }`."""

    body: tuple[Statement, ...]
    annotations: Annotations = ()


class If(Statement):
    """`if (c) s else t`."""

    condition: Expr
    yes: Statement
    no: Statement | None


class SwitchCase(Node):
    """Labels that share a body; a None body falls through; `labels` of None is `default`."""

    label: Expr
    body: Block | None


class Switch(Statement):
    """`switch (e) { ... }`."""

    value: Expr
    cases: tuple[SwitchCase, ...]


class Return(Statement):
    """`return e;`."""

    value: Expr | None


class Exit(Statement):
    """`exit;`."""


class Break(Statement):
    """`break;`."""


class Continue(Statement):
    """`continue;`."""


class For(Statement):
    """`for (init; condition; update) body`."""

    init: tuple[Statement, ...]
    condition: Expr
    update: tuple[Statement, ...]
    body: Statement


class ForIn(Statement):
    """`for (T x in collection) body`."""

    type: TypeExpr | None
    name: str
    name_span: Span
    collection: Expr
    body: Statement


# Declarations


class Decl(Statement):
    """Anything that introduces a name; `span` is the name's."""

    name: str
    annotations: Annotations


class Variable(Decl):
    """`T x = e;`."""

    type: TypeExpr
    init: Expr | None


class Constant(Decl):
    """`const T x = e;`."""

    type: TypeExpr
    value: Expr


class Instance(Decl):
    """`T(args) x;`, possibly with abstract methods implemented."""

    type: TypeExpr
    args: tuple[Argument, ...]
    body: Block | None = None


class Parameter(Node):
    """A parameter; direction is `in`, `out`, `inout` or empty."""

    name: str
    annotations: Annotations
    direction: str
    type: TypeExpr
    default: Expr | None


class Field(Node):
    """A field of a struct, header or header union."""

    name: str
    annotations: Annotations
    type: TypeExpr


class StructDecl(Decl):
    """`struct`, `header` or `header_union`, told apart by `kind`."""

    kind: str
    type_params: tuple[Word, ...]
    fields: tuple[Field, ...]


class EnumDecl(Decl):
    """`enum`, serializable when it has an underlying type."""

    underlying: TypeExpr | None
    members: tuple[tuple[str, Expr | None, Span, Annotations], ...]


class NameList(Decl):
    """`error { ... }` or `match_kind { ... }`; the declaration's name says which."""

    members: tuple[tuple[str, Span], ...]


class Typedef(Decl):
    """`typedef T x;`, or `type T x;` when `fresh`."""

    type: TypeExpr
    fresh: bool


class Function(Decl):
    """A function, method prototype or extern function."""

    returns: TypeExpr
    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]
    body: Block | None
    abstract: bool = False
    extern: bool = False


class ExternDecl(Decl):
    """An extern object type."""

    type_params: tuple[Word, ...]
    constructors: tuple[Function, ...]
    methods: tuple[Function, ...]


class ActionDecl(Decl):
    """`action a(params) { ... }`."""

    params: tuple[Parameter, ...]
    body: Block


class ParserType(Decl):
    """A parser or control type without body; `kind` says which."""

    kind: str
    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]


class PackageType(Decl):
    """`package P(params);`."""

    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]


class SelectCase(Node):
    """`keyset : state;`."""

    keyset: Expr
    state: str
    state_span: Span


class Transition(Node):
    """`transition s;` or `transition select(...) {...}`."""

    state: str | None
    keys: tuple[Expr, ...]
    cases: tuple[SelectCase, ...]


class StateDecl(Decl):
    """A parser state."""

    body: tuple[Statement, ...]
    transition: Transition | None


class ValueSet(Decl):
    """`value_set<T>(n) x;`."""

    type: TypeExpr
    size: Expr


class ParserDecl(Decl):
    """A parser with its body."""

    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]
    constructor_params: tuple[Parameter, ...]
    locals: tuple[Statement, ...]
    states: tuple[StateDecl, ...]


class ControlDecl(Decl):
    """A control with its body."""

    type_params: tuple[Word, ...]
    params: tuple[Parameter, ...]
    constructor_params: tuple[Parameter, ...]
    locals: tuple[Statement, ...]
    body: Block


class KeyElement(Node):
    """`expr : match_kind;`."""

    expr: Expr
    match_kind: Word
    annotations: Annotations


class ActionRef(Node):
    """An action in a table's list, perhaps with some arguments bound."""

    expr: Expr
    annotations: Annotations


class Entry(Node):
    """A table entry given in the program."""

    keys: tuple[Expr, ...]
    action: Expr
    priority: Expr | None
    const: bool
    annotations: Annotations


class Property(Node):
    """A table property other than key, actions and entries."""

    name: str
    value: Expr
    const: bool
    annotations: Annotations


class TableDecl(Decl):
    """A table."""

    key: tuple[KeyElement, ...] | None
    actions: tuple[ActionRef, ...] | None
    entries: tuple[Entry, ...] | None
    const_entries: bool
    properties: tuple[Property, ...]


class Program(Data):
    """All top-level declarations."""

    declarations: tuple[Decl, ...]

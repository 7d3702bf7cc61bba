"""What all parts of the checker share: scopes, the entries in them, and the current place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from typing import Protocol

from compiler import core as c
from compiler import syntax as s
from compiler import types as t
from compiler.check.names import Names
from compiler.diagnostics import Diagnostics
from compiler.source import Span
from params.data import Data

_LOCALS_DEPTH = 3  # the program's names, a block's parameters, its declarations


class Constant(Data, frozen=False, eq=False):
    """A declared constant."""

    name: str
    value: c.Expr
    span: Span
    used: bool = False


class GenericStruct(Data, frozen=False, eq=False):
    """A struct-like declaration that waits for type arguments."""

    decl: s.StructDecl
    made: dict[tuple[str, ...], t.Struct] = field(default_factory=dict)


class Overloads(Data, frozen=False, eq=False):
    """Functions of one name: extern signatures, and declarations with bodies."""

    methods: list[t.Method] = field(default_factory=list)
    functions: list[FunctionEntry] = field(default_factory=list)


class FunctionEntry(Data, frozen=False, eq=False):
    """A function with a body; one typed version for each choice of type arguments."""

    decl: s.Function
    signature: t.Method
    versions: dict[tuple[str, ...], c.Function] = field(default_factory=dict)
    used: bool = False


class BlockEntry(Data, frozen=False, eq=False):
    """A parser or control with a body; generic ones are typed anew for each choice."""

    decl: s.ParserDecl | s.ControlDecl
    type: t.BlockType
    block: c.Parser | c.Control | None
    versions: dict[tuple[str, ...], c.Parser | c.Control] = field(default_factory=dict)
    used: bool = False


class Declared(Data):
    """A type's entry in a scope."""

    type: t.Type


Entry = (
    Declared
    | GenericStruct
    | Constant
    | Overloads
    | BlockEntry
    | c.Variable
    | c.Instance
    | c.Table
    | c.Action
    | c.ValueSet
)


class Place(Data, frozen=False):
    """Where in the program checking is: what may stand here depends on it."""

    kind: str = "top"
    returns: t.Type | None = None
    loops: int = 0
    in_action: bool = False
    in_switch: bool = False
    in_list: bool = False
    declares: t.Extern | c.Table | None = None  # the extern or table that is being declared


class Constructs(Protocol):
    """What calls and statements ask of instantiations, whose arguments are expressions."""

    def construct(
        self,
        type_expr: s.TypeExpr,
        args: tuple[s.Argument, ...],
        name: str,
        span: Span,
        annotations: s.Annotations,
    ) -> c.Instance | None:
        """Instantiate an extern, parser, control or package."""


class Context:
    """Scopes, reporting, and the place where checking is."""

    def __init__(self, diagnostics: Diagnostics, names: Names | None = None) -> None:
        self.diagnostics = diagnostics
        self.meanings = names
        self.scopes: list[dict[str, Entry]] = [{}]
        self.program = c.Program()
        self.error_names: dict[str, int] = {}
        self.match_kinds: dict[str, int] = {}
        self.place = Place()
        self.variables: list[c.Variable] = []
        self.lvalue_depth = 0
        self.system = False
        self.owners = 0  # of type variables: the declarations so far that have any
        self.versions = 0  # of generic functions and blocks, so far

    def error(self, code: str, span: Span, message: str, cure: str = "") -> None:
        """Report an error."""
        self.diagnostics.error(code, span, message, cure)

    def warning(self, code: str, span: Span, message: str, cure: str = "") -> None:
        """Report a warning."""
        self.diagnostics.warning(code, span, message, cure)

    def lookup(self, name: str, absolute: bool = False, span: Span | None = None) -> Entry | None:
        """The innermost entry of a name; `span` is where it stands, if it does."""
        for scope in self.scopes[:1] if absolute else reversed(self.scopes):
            entry = scope.get(name)
            if entry is not None:
                if self.meanings is not None and span is not None:
                    self.meanings.mean(span, entry)
                return entry
        return None

    def note(self, span: Span, what: object) -> None:
        """A name that stands there declares this."""
        if self.meanings is not None:
            self.meanings.declare(span, what)

    def lead(self, span: Span, to: Span | None) -> None:
        """A name that stands there means what is declared there."""
        if self.meanings is not None:
            self.meanings.lead(span, to)

    def type_arguments(self, names: Sequence[s.Word], args: Sequence[t.Type]) -> dict[str, Entry]:
        """A scope in which type parameters stand for these types."""
        made: dict[str, Entry] = {}
        for name, arg in zip(names, args, strict=True):
            made[name] = Declared(arg)
            self.note(name.span, made[name])
        return made

    def declare(self, name: str, entry: Entry, span: Span) -> None:
        """Enter a name into the current scope."""
        self.note(span, entry)
        scope = self.scopes[-1]
        if name in scope and not self._may_redeclare(scope[name], entry):
            self.error(
                "duplicate", span, f"'{name}' is already declared here", _rename(scope[name], name)
            )
            return
        if len(self.scopes) > 1 and isinstance(entry, c.Variable) and name not in scope:
            self._shadow(name, entry, span)
        scope[name] = entry

    def _may_redeclare(self, old: Entry, new: Entry) -> bool:
        return isinstance(old, Overloads) and isinstance(new, Overloads)

    def _shadow(self, name: str, entry: c.Variable, span: Span) -> None:
        """Bodies may not hide a parameter; declarations of a block may, as p4c has it."""
        among_locals = (
            self.place.kind in ("control", "parser")
            and not self.place.in_action
            and len(self.scopes) == _LOCALS_DEPTH
        )
        for scope in reversed(self.scopes[1:-1]):
            outer = scope.get(name)
            if (
                entry.direction == "var"
                and not among_locals
                and isinstance(outer, c.Variable)
                and outer.direction != "var"
            ):
                self.error(
                    "duplicate",
                    span,
                    f"'{name}' hides the parameter '{name}'",
                    "rename one of the two",
                )
                return
            if isinstance(outer, c.Variable | c.Table | c.Action | c.Instance | Constant):
                self.warning(
                    "shadow",
                    span,
                    f"'{name}' hides another '{name}' declared outside",
                    "rename it; a use inside means this one",
                )
                return

    def similar(self, name: str, candidates: Iterable[str]) -> str:
        """A cure naming the closest known name, if one is close."""
        best, best_distance = "", 3
        for candidate in candidates:
            distance = _distance(name, candidate, best_distance)
            if distance < best_distance:
                best, best_distance = candidate, distance
        return f"did you mean '{best}'?" if best else ""

    def names(self) -> list[str]:
        """All names in scope."""
        return [name for scope in self.scopes for name in scope]


def _rename(old: Entry, name: str) -> str:
    if isinstance(old, Declared) and isinstance(old.type, t.BlockType):
        return f"an included file declares the type '{name}'; call yours My{name}"
    return "rename one of the two"


def _distance(one: str, other: str, limit: int) -> int:
    """Edit distance, given up at `limit`."""
    if abs(len(one) - len(other)) >= limit or len(one) > 64:
        return limit
    if one.lower() == other.lower():
        return 0
    if sorted(one) == sorted(other):
        return 1
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        previous, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (a != b))
        if min(row) >= limit:
            return limit
    return row[-1] if row[-1] <= max(1, len(one) // 2) else limit


def mark_used(value: c.Expr) -> None:
    """Note that a variable is used of which this is a part."""
    while isinstance(value, c.Field | c.Index | c.Slice | c.StackPart):
        value = value.base
    if isinstance(value, c.Ref):
        value.symbol.used = True


def consists_of(value: c.Expr, is_one: Callable[[c.Expr], bool]) -> bool:
    """Whether a value is worked out from such alone, and from parameters of constructors."""
    match value:
        case c.Ref():
            return value.symbol.direction == "ctor"
        case c.Aggregate():
            return all(consists_of(part, is_one) for _, part in value.parts)
        case c.Binary():
            return consists_of(value.left, is_one) and consists_of(value.right, is_one)
        case c.Cast() | c.Unary():
            return consists_of(value.operand, is_one)
    return is_one(value)

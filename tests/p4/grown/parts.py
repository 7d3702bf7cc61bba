"""The pieces a program grows from: each is P4 text and the Python that does what it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from params.data import Data

from .kinds import Bits, Bool, Enum, Head, Kind, Struct, UndefinedError, copied, defined


class ExitSignal(Exception):  # noqa: N818 - no error
    """`exit`."""


class BreakSignal(Exception):  # noqa: N818 - no error
    """`break`."""


class ContinueSignal(Exception):  # noqa: N818 - no error
    """`continue`."""


class ReturnSignal(Exception):  # noqa: N818 - no error
    """`return`."""

    def __init__(self, value: Any = None) -> None:
        super().__init__()
        self.value = value


class Run(Data, frozen=False):
    """One packet's way through a program, and what packets leave behind them."""

    memory: Memory
    variables: dict[str, Any] = field(default_factory=dict)
    length: int = 0
    wants: set[str] = field(default_factory=set)  # what to do with it once a pipeline has ended

    def fork(self) -> Run:
        """Another packet like it, which wants nothing yet."""
        kept = {name: copied(value) for name, value in self.variables.items()}
        return Run(self.memory, kept, self.length)


class Memory(Data, frozen=False):
    """Registers and counters."""

    registers: dict[str, list[int]] = field(default_factory=dict)
    counters: dict[tuple[str, int], list[int]] = field(default_factory=dict)

    def count(self, name: str, index: int, length: int) -> None:
        """Count a packet."""
        cell = self.counters.setdefault((name, index), [0, 0])
        cell[0] += 1
        cell[1] += length


class Expr(Data):
    """An expression; asked for its value, it does what it does besides too."""

    kind: Kind
    text: str
    of: Callable[[Run], Any]


class Place(Data):
    """What can be assigned to, and read."""

    kind: Kind
    text: str
    get: Callable[[Run], Any]
    put: Callable[[Run, Any], None]

    @property
    def expr(self) -> Expr:
        """Its value."""
        return Expr(self.kind, self.text, lambda run: copied(defined(self.get(run))))


class Stmt(Data, frozen=False):
    """A statement, in lines."""

    lines: list[str]
    do: Callable[[Run], None]


def variable(kind: Kind, name: str) -> Place:
    """A variable by its name, which no other has."""

    def put(run: Run, value: Any) -> None:
        run.variables[name] = copied(value)

    return Place(kind, name, lambda run: run.variables[name], put)


def member(whole: Place, name: str) -> Place:
    """A field of a struct or header."""
    assert isinstance(whole.kind, Struct)
    kind = dict(whole.kind.fields)[name]

    def get(run: Run) -> Any:
        inside = whole.get(run)
        if isinstance(inside, Head):
            if not inside.is_valid:
                raise UndefinedError(f"{whole.text}.{name} of a header that is not valid")
            return inside.fields[name]
        return inside[name]

    def put(run: Run, value: Any) -> None:
        inside = whole.get(run)
        if not isinstance(inside, Head):
            inside[name] = copied(value)
        elif inside.is_valid:
            inside.fields[name] = value

    return Place(kind, f"{whole.text}.{name}", get, put)


def sliced(whole: Place, high: int, low: int) -> Place:
    """Some of a number's bits."""
    mask = (1 << high - low + 1) - 1

    def get(run: Run) -> int:
        return int(defined(whole.get(run))) >> low & mask

    def put(run: Run, value: int) -> None:
        before = int(defined(whole.get(run)))
        whole.put(run, before & ~(mask << low) | value << low)

    return Place(Bits(high - low + 1), f"{whole.text}[{high}:{low}]", get, put)


def literal(kind: Kind, value: Any) -> Expr:
    """A constant."""
    return Expr(kind, kind.literal(value), lambda _: copied(value))


def binary(kind: Kind, left: Expr, sign: str, right: Expr, of: Callable[[Any, Any], Any]) -> Expr:
    """An operator between two, from left to right."""

    def value(run: Run) -> Any:
        first = left.of(run)
        return of(first, right.of(run))

    return Expr(kind, f"({left.text} {sign} {right.text})", value)


def arithmetic(kind: Bits, left: Expr, sign: str, right: Expr) -> Expr:
    """Numbers of one kind give one of it."""
    return binary(kind, left, sign, right, lambda a, b: ARITHMETIC[sign](kind, a, b))


ARITHMETIC: dict[str, Callable[[Bits, int, int], int]] = {
    "+": lambda kind, a, b: kind.wrap(a + b),
    "-": lambda kind, a, b: kind.wrap(a - b),
    "*": lambda kind, a, b: kind.wrap(a * b),
    "&": lambda kind, a, b: kind.wrap(a & b),
    "|": lambda kind, a, b: kind.wrap(a | b),
    "^": lambda kind, a, b: kind.wrap(a ^ b),
    "|+|": lambda kind, a, b: kind.clamp(a + b),
    "|-|": lambda kind, a, b: kind.clamp(a - b),
    "/": lambda _, a, b: a // b,
    "%": lambda _, a, b: a % b,
    "<<": lambda kind, a, b: kind.wrap(a << b),
    ">>": lambda kind, a, b: kind.wrap(a >> b),
}
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a.is_same(b) if isinstance(a, Head) else a == b,
    "!=": lambda a, b: not a.is_same(b) if isinstance(a, Head) else a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def both(left: Expr, right: Expr) -> Expr:
    """`&&`, whose right side runs only if it decides."""
    return Expr(
        Bool(), f"({left.text} && {right.text})", lambda run: left.of(run) and right.of(run)
    )


def either(left: Expr, right: Expr) -> Expr:
    """`||`, likewise."""
    return Expr(Bool(), f"({left.text} || {right.text})", lambda run: left.of(run) or right.of(run))


def chosen(condition: Expr, first: Expr, second: Expr) -> Expr:
    """`?:`, which runs one branch."""
    return Expr(
        first.kind,
        f"({condition.text} ? {first.text} : {second.text})",
        lambda run: first.of(run) if condition.of(run) else second.of(run),
    )


def cast(kind: Kind, inner: Expr) -> Expr:
    """`(kind)inner`, of those that there are."""

    def value(run: Run) -> Any:
        got = inner.of(run)
        if isinstance(kind, Bool):
            return bool(got)
        return kind.wrap(int(got)) if isinstance(kind, Bits) else got

    return Expr(kind, f"({kind.text})({inner.text})", value)


def concatenated(left: Expr, right: Expr) -> Expr:
    """`++`."""
    widths = [part.kind.width for part in (left, right) if isinstance(part.kind, Bits)]
    kind = Bits(sum(widths))
    return binary(kind, left, "++", right, lambda a, b: a << widths[1] | b)


def as_bits(inner: Expr) -> Expr:
    """Any scalar as an unsigned number that tells its value."""
    match inner.kind:
        case Bits(width, True):
            return cast(Bits(width), inner)
        case Bool():
            return cast(Bits(1), inner)
        case Enum(_, members, 0):
            encoded = literal(Bits(8), 255)
            for number, (name, _) in enumerate(members):
                same = binary(Bool(), inner, "==", literal(inner.kind, name), COMPARISONS["=="])
                encoded = chosen(same, literal(Bits(8), number), encoded)
            return encoded
        case Enum(_, _, width):
            return cast(Bits(width), inner)
    return inner


def sequence(parts: list[Stmt]) -> Stmt:
    """One after the other."""

    def do(run: Run) -> None:
        for part in parts:
            part.do(run)

    return Stmt([line for part in parts for line in part.lines], do)


def indented(part: Stmt) -> list[str]:
    """Its lines, further in."""
    return [f"    {line}" for line in part.lines]


def assigned(place: Place, value: Expr) -> Stmt:
    """`place = value;`"""
    return Stmt([f"{place.text} = {value.text};"], lambda run: place.put(run, value.of(run)))


def declared(place: Place, value: Expr) -> Stmt:
    """A variable that has a value from the start."""
    return Stmt(
        [f"{place.kind.text} {place.text} = {value.text};"],
        lambda run: place.put(run, value.of(run)),
    )


def conditional(condition: Expr, then: Stmt, otherwise: Stmt | None = None) -> Stmt:
    """`if`."""
    lines = [f"if ({condition.text}) {{", *indented(then)]
    if otherwise is not None:
        lines += ["} else {", *indented(otherwise)]

    def do(run: Run) -> None:
        if condition.of(run):
            then.do(run)
        elif otherwise is not None:
            otherwise.do(run)

    return Stmt([*lines, "}"], do)


class Param(Data):
    """A parameter: `in`, `inout`, `out`, or without direction, for the control plane."""

    direction: str
    place: Place

    @property
    def text(self) -> str:
        return f"{self.direction} {self.place.kind.text} {self.place.text}".strip()


Body = Callable[[Run], Any]
Argument = Expr | Place


def called(params: tuple[Param, ...], args: tuple[Argument, ...], body: Body) -> Body:
    """Copy in from left to right, run, copy out from left to right, whatever ends the body."""

    def call(run: Run) -> Any:
        values = [
            arg.of(run) if isinstance(arg, Expr) else copied(arg.get(run) if reads(param) else None)
            for param, arg in zip(params, args, strict=True)
        ]
        for param, value in zip(params, values, strict=True):
            param.place.put(run, defined(value) if reads(param) else None)
        try:
            return body(run)
        finally:
            results = [copied(param.place.get(run)) for param in params]
            for arg, result in zip(args, results, strict=True):
                if isinstance(arg, Place):
                    arg.put(run, defined(result))

    return call


def reads(param: Param) -> bool:
    """Whether it takes something in."""
    return param.direction != "out"


class Function(Data):
    """A function; its parameters' and variables' names are nobody else's."""

    name: str
    params: tuple[Param, ...]
    result: Kind
    body: Stmt

    def lines(self) -> list[str]:
        """Its declaration."""
        params = ", ".join(param.text for param in self.params)
        return [f"{self.result.text} {self.name}({params}) {{", *indented(self.body), "}"]

    def run(self, run: Run) -> Any:
        """What it returns."""
        try:
            self.body.do(run)
        except ReturnSignal as returned:
            return returned.value
        raise UndefinedError(f"{self.name} returns nothing")

    def call(self, args: tuple[Argument, ...]) -> Expr:
        """A call."""
        text = f"{self.name}({', '.join(arg.text for arg in args)})"
        return Expr(self.result, text, called(self.params, args, self.run))

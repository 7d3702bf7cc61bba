"""Types, as P4 spells them, and their values as Python has them.

A number is an `int`, also of a serializable enumeration; a bool a `bool`; any other enumeration's
value is the name of its member; a struct's is a `dict`; a header's is a `Head`.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

from params.data import Data


class UndefinedError(AssertionError):
    """The language does not say what this means: the grower must not have let it grow."""


class Bits(Data):
    """`bit<W>` or `int<W>`."""

    width: int
    is_signed: bool = False

    @property
    def text(self) -> str:
        return f"{'int' if self.is_signed else 'bit'}<{self.width}>"

    @property
    def least(self) -> int:
        return -(1 << self.width - 1) if self.is_signed else 0

    @property
    def most(self) -> int:
        return (1 << self.width - self.is_signed) - 1

    def wrap(self, number: int) -> int:
        """The number that its low bits mean."""
        low = number & ((1 << self.width) - 1)
        return low - (1 << self.width) if low > self.most else low

    def clamp(self, number: int) -> int:
        """The number, or the nearest there is."""
        return min(max(number, self.least), self.most)

    def literal(self, value: int) -> str:
        """A value in P4. The least signed one has no literal."""
        if value < 0:
            return f"(({self.text}){self.width}w{value & ((1 << self.width) - 1)})"
        return f"{self.width}{'s' if self.is_signed else 'w'}{value}"


class Bool(Data):
    """`bool`."""

    text: str = "bool"

    def literal(self, value: bool) -> str:
        return "true" if value else "false"


class Enum(Data):
    """An enumeration; serializable if it has a width."""

    text: str
    members: tuple[tuple[str, int], ...]
    width: int = 0

    def declaration(self) -> str:
        """How it is declared."""
        if not self.width:
            return f"enum {self.text} {{ {', '.join(name for name, _ in self.members)} }}"
        members = ", ".join(f"{name} = {value}" for name, value in self.members)
        return f"enum bit<{self.width}> {self.text} {{ {members} }}"

    def value(self, number: int) -> Any:
        """A member's value."""
        name, value = self.members[number]
        return value if self.width else name

    def literal(self, value: Any) -> str:
        named = [name for name, number in self.members if value in (name, number)]
        return f"{self.text}.{named[0]}" if named else f"(({self.text}){self.width}w{value})"


class Struct(Data):
    """A struct or a header."""

    text: str
    fields: tuple[tuple[str, Kind], ...]
    is_header: bool = False

    def declaration(self) -> str:
        """How it is declared."""
        lines = "".join(f"    {kind.text} {name};\n" for name, kind in self.fields)
        return f"{'header' if self.is_header else 'struct'} {self.text} {{\n{lines}}}"

    @property
    def width(self) -> int:
        """A header's bits."""
        return sum(width_of(kind) for _, kind in self.fields)

    def literal(self, value: Any) -> str:
        return f"{{ {', '.join(kind.literal(value[name]) for name, kind in self.fields)} }}"


Kind = Bits | Bool | Enum | Struct


class Head(Data, frozen=False):
    """A header's value; a field is None as long as it has none."""

    kind: Struct
    is_valid: bool = False
    fields: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.fields:
            self.fields = dict.fromkeys((name for name, _ in self.kind.fields), None)

    def copy(self) -> Head:
        """Another one like it."""
        return Head(self.kind, self.is_valid, dict(self.fields))

    def is_same(self, other: Head) -> bool:
        """What `==` says of two headers."""
        if self.is_valid and other.is_valid:
            defined(self), defined(other)
            return self.fields == other.fields
        return self.is_valid == other.is_valid


def defined(value: Any) -> Any:
    """A value that there is."""
    if value is None or (isinstance(value, Head) and None in value.fields.values()):
        raise UndefinedError("a value that nothing has given")
    return value


def copied(value: Any) -> Any:
    """A value of its own, as assignment makes it."""
    if isinstance(value, Head):
        return value.copy()
    if isinstance(value, dict):
        return {name: copied(inner) for name, inner in value.items()}
    return value


def zero(kind: Kind) -> Any:
    """What BMv2 lets metadata begin with."""
    match kind:
        case Bits():
            return 0
        case Bool():
            return False
        case Enum():
            return 0 if kind.width else kind.value(0)
        case Struct():
            return {name: zero(inner) for name, inner in kind.fields}


def width_of(kind: Kind) -> int:
    """The bits that a value takes in a header."""
    match kind:
        case Bits() | Enum():
            return kind.width
        case Bool():
            return 1
        case Struct():
            return kind.width


def to_bits(kind: Kind, value: Any) -> int:
    """A value as a header carries it."""
    return int(value) & ((1 << width_of(kind)) - 1)


def from_bits(kind: Kind, bits: int) -> Any:
    """What a header's bits mean."""
    if isinstance(kind, Bits):
        return kind.wrap(bits)
    return bool(bits) if isinstance(kind, Bool) else bits

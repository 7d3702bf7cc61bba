"""What an expression of any type becomes: scalars are `ir.Value`s, the rest are built here.

A place and a value have the same shape: a struct is a record of its fields' places, a header is
the name of a header instance. So a place can be read as it stands, and passing an argument by
reference is handing over its place.
"""

from __future__ import annotations

from compiler import ir
from compiler import types as t
from params.data import Data


class Record(Data):
    """A struct or tuple by its fields."""

    type: t.Type
    fields: dict[str, Val]


class HeaderPlace(Data):
    """A header instance."""

    type: t.Struct
    name: str


class ElementPlace(Data):
    """An element of a header stack, its index known at run time only."""

    type: t.Struct
    stack: str
    index: ir.Value
    size: int


class EndPlace(Data):
    """`next` or `last` of a stack, in a parser; `member` once a union's header is chosen."""

    type: t.Struct
    stack: str
    part: str
    member: str | None = None


class UnionPlace(Data):
    """A header union instance."""

    type: t.Struct
    name: str


class StackPlace(Data):
    """A stack."""

    type: t.Stack
    name: str


class HeaderValue(Data):
    """A header by its fields, valid."""

    type: t.Struct
    fields: dict[str, Val]


class InvalidValue(Data):
    """An invalid header or union."""

    type: t.Type


class ListValue(Data):
    """A stack or list by its elements."""

    type: t.Type
    elements: tuple[Val, ...]


class SlicePlace(Data):
    """Some bits of a scalar place, to be written."""

    type: t.Type
    base: ir.Value
    high: int
    low: int


Val = (
    ir.Value
    | Record
    | HeaderPlace
    | ElementPlace
    | EndPlace
    | UnionPlace
    | StackPlace
    | HeaderValue
    | InvalidValue
    | ListValue
    | SlicePlace
)


def scalar_type(type_: t.Type) -> t.Type | None:
    """The run-time type of a scalar, None for types made of parts."""
    type_ = t.underlying(type_)
    if isinstance(type_, t.Bits | t.BoolType | t.Varbit):
        return type_
    if isinstance(type_, t.Enum | t.ErrorType | t.InfInt):
        return t.BIT32
    return None


def reads(value: object, into: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The fields a value depends on, as (header, field); whole objects as (name, '*')."""
    if isinstance(value, ir.FieldRef):
        into.add((value.header, value.name))
    elif isinstance(value, ir.Op):
        for arg in value.args:
            reads(arg, into)
    elif isinstance(value, ir.ElementField | ElementPlace):
        into.add((value.stack, "*"))
        reads(value.index, into)
    elif isinstance(value, ir.LastField | ir.LastIndex | EndPlace):
        into.add((value.stack, "*"))
    elif isinstance(value, ir.UnionValid):
        into.add((value.union, "*"))
    elif isinstance(value, Record | HeaderValue):
        for part in value.fields.values():
            reads(part, into)
    elif isinstance(value, HeaderPlace | UnionPlace | StackPlace):
        into.add((value.name, "*"))
    elif isinstance(value, ListValue):
        for part in value.elements:
            reads(part, into)
    elif isinstance(value, SlicePlace):
        reads(value.base, into)
    return into


def overlap(one: set[tuple[str, str]], other: set[tuple[str, str]]) -> bool:
    """Whether two sets of fields touch."""
    if one & other:
        return True
    for mine, theirs in ((one, other), (other, one)):
        headers = {header for header, _ in theirs}
        for name in (name for name, field in mine if field == "*"):
            for header in headers:
                if (
                    header == name
                    or header.startswith((name + "[", name + "."))
                    or (name.startswith((header + "[", header + ".")))
                ):
                    return True
    return False

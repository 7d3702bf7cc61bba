"""Constant folding: P4's arithmetic on Python's integers.

Values are kept as the numbers they mean: an `int<8>` of all ones is -1. `wrap` brings any
integer back into a type's range, which is what every operator on fixed-width types ends with.
"""

from __future__ import annotations

from compiler import types as t

MAX_CONSTANT_BITS = 65536


class FoldError(Exception):
    """The operation has no value; the message says why."""


def wrap(value: int, type_: t.Type) -> int:
    """Reduce an integer into the range of a type."""
    if isinstance(type_, t.Bits):
        value &= (1 << type_.width) - 1
        if type_.signed and type_.width and value >> (type_.width - 1):
            value -= 1 << type_.width
    return value


def unary(op: str, value: int | bool | str, type_: t.Type) -> int | bool:
    """The value of a prefix operator."""
    if op == "!":
        return not value
    assert isinstance(value, int)
    if op == "-":
        return wrap(-value, type_)
    if op == "~":
        return wrap(~value, type_)
    return wrap(value, type_)


def binary(
    op: str, left: int | bool | str, right: int | bool | str, type_: t.Type, right_width: int = 0
) -> int | bool | str:
    """The value of an infix operator; `type_` is the left operand's type."""
    if op == "==":
        return left == right
    if op == "!=":
        return left != right
    if op == "&&":
        return bool(left) and bool(right)
    if op == "||":
        return bool(left) or bool(right)
    if isinstance(left, str) or isinstance(right, str):
        if len(str(left)) + len(str(right)) > MAX_CONSTANT_BITS:
            raise FoldError("the string is too long")
        return str(left) + str(right)
    if op in ("<", "<=", ">", ">="):
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[op]
    return _arithmetic(op, int(left), int(right), type_, right_width)


def _arithmetic(op: str, left: int, right: int, type_: t.Type, right_width: int) -> int:
    """8.6 to 8.11: wraps at the type's width, and is refused where the language defines nothing."""
    if op in ("/", "%"):
        if right == 0:
            raise FoldError("division by zero")
        if left < 0 or right < 0:
            raise FoldError("division of negative numbers is not defined")
        return left // right if op == "/" else left % right
    if op in ("<<", ">>"):
        if right < 0:
            raise FoldError("shift by a negative number")
        if op == ">>":
            return wrap(left >> min(right, MAX_CONSTANT_BITS), type_)
        if isinstance(type_, t.Bits) and right >= type_.width:
            return 0
        if right > MAX_CONSTANT_BITS:
            raise FoldError("shift is too large")
        return wrap(left << right, type_)
    if op == "++":
        assert isinstance(type_, t.Bits)
        mask = (1 << right_width) - 1
        return wrap(
            (left << right_width) | (right & mask), t.Bits(type_.width + right_width, type_.signed)
        )
    if op in ("|+|", "|-|"):
        value = left + right if op == "|+|" else left - right
        return saturate(value, type_)
    value = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "&": lambda: left & right,
        "|": lambda: left | right,
        "^": lambda: left ^ right,
    }[op]()
    if value.bit_length() > MAX_CONSTANT_BITS:
        raise FoldError("the result is too large")
    return wrap(value, type_)


def saturate(value: int, type_: t.Type) -> int:
    """Clamp into the range of a type."""
    assert isinstance(type_, t.Bits)
    if type_.signed:
        high = (1 << (type_.width - 1)) - 1
        return max(-high - 1, min(high, value))
    return max(0, min((1 << type_.width) - 1, value))


def slice_(value: int, high: int, low: int) -> int:
    """Bits high..low of a value."""
    return (value >> low) & ((1 << (high - low + 1)) - 1)

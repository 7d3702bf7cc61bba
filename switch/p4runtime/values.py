"""Values on the wire: big-endian byte strings of any length, integers inside.

P4Runtime's canonical form has no leading zero bytes, zero being one zero byte. Clients may send
longer strings; they may not send a value wider than its field. An integer has exactly one
canonical form, so the server keeps integers and reads back canonical strings.
"""

from __future__ import annotations

from switch.p4runtime.errors import out_of_range
from switch.p4runtime.symbols import Field


def decode(value: bytes, bits: int, what: str) -> int:
    """Return the integer a byte string stands for, refusing one wider than `bits`."""
    if not value:
        raise out_of_range(f"{what}: the value is empty; write zero as one zero byte")
    number = int.from_bytes(value, "big")
    if number >> bits:
        raise out_of_range(f"{what}: 0x{value[:32].hex()} does not fit in {bits} bits")
    return number


def decode_field(value: bytes, field: Field, what: str) -> int:
    """Return the integer a client's value of a field stands for."""
    if field.names is not None:
        return field.names.number(value, field.bits, what)
    return decode(value, field.bits, what)


def encode_field(number: int, field: Field) -> bytes:
    """Return an integer as a field's clients see it."""
    return encode(number) if field.names is None else field.names.text(number)


def encode(number: int) -> bytes:
    """Return the canonical byte string of an integer."""
    return number.to_bytes((number.bit_length() + 7) >> 3 or 1, "big")


def decode_signed(value: bytes, bits: int, what: str) -> int:
    """Return the two's-complement integer of a byte string, sign-extended from its own length."""
    if not value:
        raise out_of_range(f"{what}: the value is empty; write zero as one zero byte")
    number = int.from_bytes(value, "big", signed=True)
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise out_of_range(f"{what}: 0x{value[:32].hex()} does not fit in int<{bits}>")
    return number


def encode_signed(number: int) -> bytes:
    """Return the shortest two's-complement byte string of an integer."""
    magnitude = number if number >= 0 else ~number
    return number.to_bytes((magnitude.bit_length() >> 3) + 1, "big", signed=True)


def all_ones(bits: int) -> int:
    """Return the largest value of a field."""
    return (1 << bits) - 1


def prefix_mask(length: int, bits: int) -> int:
    """Return the mask that keeps the `length` most significant bits of a field."""
    return all_ones(length) << (bits - length)

"""Protocol Buffers' wire format, as far as traces need it: fields by their numbers, with bounds.

A message is a sequence of keys and values; a key is the field's number and how its value is
written: as a varint, in 8 or 4 bytes, or as a length and so many bytes (text, messages, packed
lists).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT = 10


class WireError(ValueError):
    """Bytes that are no message."""


def varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """A varint and where it ends."""
    value = shift = 0
    for place in range(at, min(at + _LONGEST_VARINT, len(data))):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, place + 1
        shift += 7
    raise WireError("a number without an end")


def fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """A message's fields: number, how it is written, value."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        value: int | memoryview
        if not number:
            raise WireError("a field without a number")
        if wire == VARINT:
            value, at = varint(data, at)
        else:
            if wire == BYTES:
                length, at = varint(data, at)
            elif wire in (FIXED64, FIXED32):
                length = 8 if wire == FIXED64 else 4
            else:
                raise WireError(f"a value of the unknown kind {wire}")
            if length > len(data) - at:
                raise WireError("a value that is cut off")
            value = data[at : at + length]
            at += length
        yield number, wire, value


def numbers(wire: int, value: int | memoryview) -> Iterator[int]:
    """The entries of a repeated number: one, or a packed list."""
    if isinstance(value, int):
        yield value
        return
    if wire != BYTES:
        raise WireError("a number of another kind")
    at = 0
    while at < len(value):
        number, at = varint(value, at)
        yield number


def signed(value: int) -> int:
    """A varint as an int64."""
    return value - (1 << 64) if value >= 1 << 63 else value


def zigzag(value: int) -> int:
    """A varint as a sint64."""
    return value >> 1 ^ -(value & 1)


def floating(value: memoryview) -> float:
    """A double or a float."""
    found: float = struct.unpack("<d" if len(value) == 8 else "<f", value)[0]
    return found


# --- the other way round --------------------------------------------------------------------------


def put_varint(value: int) -> bytes:
    """A number, as a varint."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def put_number(number: int, value: int) -> bytes:
    """A field that holds a number."""
    return put_varint(number << 3 | VARINT) + put_varint(value)


def put_bytes(number: int, value: bytes | str) -> bytes:
    """A field that holds text or a message."""
    data = value.encode() if isinstance(value, str) else value
    return put_varint(number << 3 | BYTES) + put_varint(len(data)) + data

"""How messages of Linux's netlink are laid out: a header and a body each, and in it attributes."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_MESSAGE = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_TYPE = 0x3FFF  # of an attribute, without its flags


class NetlinkError(ValueError):
    """What came is no message; the text says where it went wrong."""


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each one's type and body."""
    while len(data) >= _MESSAGE.size:
        length, kind, *_ = _MESSAGE.unpack_from(data)
        if not _MESSAGE.size <= length <= len(data):
            raise NetlinkError(f"a message of {length} bytes where {len(data)} are left")
        yield kind, data[_MESSAGE.size : length]
        data = data[aligned(length) :]


def attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Each one's type and content."""
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if not _ATTRIBUTE.size <= length <= len(data):
            raise NetlinkError(f"an attribute of {length} bytes where {len(data)} are left")
        yield kind & _TYPE, data[_ATTRIBUTE.size : length]
        data = data[aligned(length) :]


def aligned(length: int) -> int:
    """Where what follows so many bytes begins."""
    return (length + 3) & ~3

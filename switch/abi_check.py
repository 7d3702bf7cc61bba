"""C's structs as Python has them: by the headers that declare them.

A field added on one side only would shift all that follow, and nothing else would say so. So what
is mapped is compared with its header: a mirror names its struct in its docstring, ``struct
net_sample.`` How records are packed into buffers, and taken apart again, is read from its header.
"""

from __future__ import annotations

import ctypes as c
import re
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["AbiError", "Layouts", "compare"]

_TYPES: dict[str, Any] = {
    "uint64_t": c.c_uint64,
    "uint32_t": c.c_uint32,
    "uint16_t": c.c_uint16,
    "int64_t": c.c_int64,
    "int32_t": c.c_int32,
    "ns_t": c.c_uint64,
    "bps_t": c.c_uint64,
    "bytes_t": c.c_uint64,
    "const char *": c.c_char_p,
}
_CODES = {
    "uint64_t": "Q", "ns_t": "Q", "bytes_t": "Q", "bps_t": "Q", "int64_t": "q",
    "uint32_t": "I", "int32_t": "i", "uint16_t": "H",
}  # fmt: skip
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"^#define (\w+) (\d+)", re.MULTILINE)
_STRUCT = re.compile(r"struct (\w+) \{(.*?)\n?\}", re.DOTALL)
_MEMBERS = re.compile(r"\s*(const char \*|struct \w+|\w+\b)\s*(.+)", re.DOTALL)
_MEMBER = re.compile(r"(\w+)(?:\[(\w+)\])?")


class AbiError(AssertionError):
    """Python and C do not mean the same; the text says where."""


def compare(mirrors: Iterable[type[c.Structure]], headers: Iterable[Path]) -> None:
    """Fail where a mirror is not what the headers declare."""
    structs, numbers = _declared(headers)
    for mirror in mirrors:
        name = (mirror.__doc__ or "").removeprefix("struct ").rstrip(".")
        if name not in structs:
            raise AbiError(f"no header declares struct {name}, which {mirror.__name__} mirrors")
        declared, believed = _fields(structs[name], numbers), list(mirror._fields_)
        if declared != believed:
            raise AbiError(f"struct {name}: C has {declared}, {mirror.__name__} {believed}")


class Layouts:
    """The structs of a header as `struct` packs them, one behind the other in a buffer."""

    def __init__(self, header: Path) -> None:
        self._structs, self._numbers = _declared([header])

    def of(self, name: str) -> struct.Struct:
        """One of them; what follows it in a record, an array without a size, is left out."""
        codes = self._codes(name)
        made = struct.Struct(f"<{codes}")
        if made.size != struct.calcsize(f"@{codes}"):
            raise AbiError(f"struct {name} has holes, which no record may have")
        return made

    def _codes(self, name: str) -> str:
        codes = ""
        for kind, _, count in _members(self._structs[name], self._numbers):
            inner = kind.removeprefix("struct ")
            codes += (_CODES[kind] if inner == kind else self._codes(inner)) * (count or 1)
        return codes


def _declared(headers: Iterable[Path]) -> tuple[dict[str, str], dict[str, int]]:
    """The bodies of structs, and the numbers that have names."""
    text = _COMMENT.sub("", "\n".join(path.read_text() for path in headers))
    numbers = {name: int(value) for name, value in _NUMBER.findall(text)}
    return dict(_STRUCT.findall(text)), numbers


def _fields(body: str, numbers: dict[str, int]) -> list[tuple[str, Any]]:
    return [
        (name, _TYPES[kind] * count if count else _TYPES[kind])
        for kind, name, count in _members(body, numbers)
    ]


def _members(body: str, numbers: dict[str, int]) -> Iterator[tuple[str, str, int]]:
    """A struct's members: type, name, and of arrays how many."""
    for declaration in filter(str.strip, body.split(";")):
        kind, members = _MEMBERS.fullmatch(declaration).groups()  # type: ignore[union-attr]
        for name, room in _MEMBER.findall(members.replace("[]", "[0]")):
            if room != "0":
                yield kind, name, numbers[room] if room in numbers else int(room or 0)

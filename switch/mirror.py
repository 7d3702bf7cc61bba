"""C's structs as Python mirrors them, compared with the headers that declare them.

A field added on one side only would shift all that follow, and nothing else would say so. A mirror
names its struct in its docstring: ``struct net_sample.``
"""

from __future__ import annotations

import ctypes as c
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["MirrorError", "compare"]

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
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_NUMBER = re.compile(r"^#define (\w+) (\d+)", re.MULTILINE)
_STRUCT = re.compile(r"struct (\w+) \{(.*?)\n?\}", re.DOTALL)
_MEMBERS = re.compile(r"\s*(const char \*|\w+\b)\s*(.+)", re.DOTALL)
_MEMBER = re.compile(r"(\w+)(?:\[(\w+)\])?")


class MirrorError(AssertionError):
    """Python and C do not mean the same; the text says where."""


def compare(mirrors: Iterable[type[c.Structure]], headers: Iterable[Path]) -> None:
    """Fail where a mirror is not what the headers declare."""
    text = _COMMENT.sub("", "\n".join(path.read_text() for path in headers))
    numbers = {name: int(value) for name, value in _NUMBER.findall(text)}
    structs = dict(_STRUCT.findall(text))
    for mirror in mirrors:
        name = (mirror.__doc__ or "").removeprefix("struct ").rstrip(".")
        if name not in structs:
            raise MirrorError(f"no header declares struct {name}, which {mirror.__name__} mirrors")
        declared, believed = _fields(structs[name], numbers), list(mirror._fields_)
        if declared != believed:
            raise MirrorError(f"struct {name}: C has {declared}, {mirror.__name__} {believed}")


def _fields(body: str, numbers: dict[str, int]) -> list[tuple[str, Any]]:
    fields = []
    for declaration in filter(str.strip, body.split(";")):
        kind, members = _MEMBERS.fullmatch(declaration).groups()  # type: ignore[union-attr]
        for name, room in _MEMBER.findall(members):
            count = numbers[room] if room in numbers else int(room or 0)
            fields.append((name, _TYPES[kind] * count if count else _TYPES[kind]))
    return fields

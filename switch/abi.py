"""What C and Python share, as the headers declare it: it is said once, in C.

A struct that Python reads or fills in gets its fields from its header, and a record that is packed
into a buffer its format. Functions are called as their prototypes have it, and numbers and the
names of an enumeration are read where they stand.

    DECLARED = Declarations(FOLDER / "net.h")

    @DECLARED.mirror("net_sample")
    class Sample(ctypes.Structure): ...

    Library(path, DECLARED).net_samples(net, ...)

What is shared and stands on both sides nevertheless, tests/test_shared.py compares.
"""

from __future__ import annotations

import ctypes as c
import re
import struct
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from . import wasm

__all__ = ["AbiError", "Declarations", "Library"]

S = TypeVar("S", bound=c.Structure)
_TYPES: dict[str, Any] = {
    "void": None,
    "bool": c.c_bool,
    "double": c.c_double,
    "int": c.c_int,
    "size_t": c.c_size_t,
    "uint64_t": c.c_uint64,
    "uint32_t": c.c_uint32,
    "uint16_t": c.c_uint16,
    "uint8_t": c.c_uint8,
    "int64_t": c.c_int64,
    "int32_t": c.c_int32,
    "ns_t": c.c_uint64,
    "bps_t": c.c_uint64,
    "bytes_t": c.c_uint64,
    "const char *": c.c_char_p,
    "sw_text_fn": c.c_void_p,
}
_CODES = {
    "uint64_t": "Q", "ns_t": "Q", "bytes_t": "Q", "bps_t": "Q", "int64_t": "q",
    "uint32_t": "I", "int32_t": "i", "uint16_t": "H",
}  # fmt: skip
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRUCT = re.compile(r"struct (\w+) \{(.*?)\n?\}", re.DOTALL)
_MEMBERS = re.compile(r"\s*(const char \*|struct \w+|\w+\b)\s*(.+)", re.DOTALL)
_MEMBER = re.compile(r"(\w+)(?:\[(\w+)\])?")
_NAME = re.compile(r"\w+\s*$")
_FUNCTION = re.compile(r"^(\w[\w ]*[ *])(\w+)\(([^;{]*)\)\s*[;{]", re.MULTILINE)


class AbiError(AssertionError):
    """Python asks for what C does not have, or in a way that it has not; the text says what."""


class Declarations:
    """Headers, or sources, and what they declare."""

    def __init__(self, *paths: Path) -> None:
        self._text = _COMMENT.sub("", "\n".join(path.read_text() for path in paths))
        self.mirrors: dict[str, type[c.Structure]] = {}

    def mirror(self, name: str) -> Callable[[type[S]], type[S]]:
        """Let a class be a struct as Python has it."""

        def with_fields(cls: type[S]) -> type[S]:
            cls._fields_ = [
                (member, _TYPES[kind] * count if count else _TYPES[kind])
                for kind, member, count in self._members(name)
            ]
            self.mirrors[name] = cls
            return cls

        return with_fields

    def packed(self, name: str) -> struct.Struct:
        """A struct in a buffer; what follows it there, an array without a size, is left out."""
        codes = self._codes(name)
        made = struct.Struct(f"<{codes}")
        if made.size != struct.calcsize(f"@{codes}"):
            raise AbiError(f"struct {name} has holes, which no record may have")
        return made

    def row(self, name: str) -> struct.Struct:
        """A struct that is mirrored, in an array: with the holes that C leaves."""
        made = struct.Struct(f"@{self._codes(name)}0q")
        if made.size != c.sizeof(self.mirrors[name]):
            raise AbiError(f"an array of struct {name} is laid out otherwise")
        return made

    def number(self, name: str) -> int:
        """What an enumerator stands for, or a macro that is a number or another such name."""
        said, enum = self._found(rf"^#define {name} (\w+)|enum (\w+) \{{[^}}]*\b{name}\b", name)
        if enum:
            return self.enum(enum)[name]
        return int(said.rstrip("u"), 0) if said[0].isdigit() else self.number(said)

    def enum(self, name: str, prefix: str = "") -> dict[str, int]:
        """An enumeration's numbers by name, without what all names begin with."""
        numbers: dict[str, int] = {}
        (body,) = self._found(rf"enum {name} \{{(.*?)\}}", f"enum {name}")
        for each in filter(None, map(str.strip, body.split(","))):
            member, _, given = map(str.strip, each.partition("="))
            last = next(reversed(numbers.values()), -1)
            numbers[member.removeprefix(prefix)] = int(given, 0) if given else last + 1
        return numbers

    def signature(self, name: str) -> tuple[Any, list[Any]]:
        """What a function returns, and what it takes."""
        if name not in self._functions:
            raise AbiError(f"no header declares {name}()")
        result, taken = self._functions[name]
        arguments = [] if taken == "void" else re.sub(r"\w+\[\w*\]", "*a", taken).split(",")
        return self._type(result), [self._type(_NAME.sub("", each)) for each in arguments]

    def _type(self, kind: str) -> Any:
        """A type of C; pointers are bare but for those to text, to numbers and to mirrors."""
        kind = kind.strip()
        if kind in _TYPES:
            return _TYPES[kind]
        name = kind.removeprefix("const ").removeprefix("struct ").rstrip(" *")
        known = self.mirrors.get(name) or (_TYPES[name] if name in _CODES else None)
        return known if not kind.endswith("*") else c.POINTER(known) if known else c.c_void_p

    def _found(self, pattern: str, what: str) -> tuple[str, ...]:
        if not (found := re.search(pattern, self._text, re.MULTILINE | re.DOTALL)):
            raise AbiError(f"no header declares {what}")
        return found.groups()

    @cached_property
    def _functions(self) -> dict[str, tuple[str, str]]:
        """What each returns and takes, as it is first said."""
        said: dict[str, tuple[str, str]] = {}
        for result, name, taken in _FUNCTION.findall(self._text):
            said.setdefault(name, (result, taken))
        return said

    @cached_property
    def _structs(self) -> dict[str, str]:
        return dict(_STRUCT.findall(self._text))

    def _codes(self, name: str) -> str:
        codes = ""
        for kind, _, count in self._members(name):
            inner = kind.removeprefix("struct ")
            codes += (_CODES[kind] if inner == kind else self._codes(inner)) * (count or 1)
        return codes

    def _members(self, name: str) -> Iterator[tuple[str, str, int]]:
        """A struct's members: type, name, and of arrays how many."""
        if name not in self._structs:
            raise AbiError(f"no header declares struct {name}")
        for declaration in filter(str.strip, self._structs[name].split(";")):
            kind, members = _MEMBERS.fullmatch(declaration).groups()  # type: ignore[union-attr]
            for member, room in _MEMBER.findall(members.replace("[]", "[0]")):
                if room != "0":
                    yield kind, member, int(room or 0) if room[:1] <= "9" else self.number(room)


class Library(c.CDLL):
    """A shared object whose functions are called as they are declared."""

    def __init__(self, path: Path, declared: Declarations) -> None:
        # Where no library names those that it needs, they are found among all that is loaded.
        mode = c.RTLD_GLOBAL if wasm.is_here() else c.DEFAULT_MODE
        super().__init__(str(path), mode, use_errno=True)
        self._declared = declared

    def __getitem__(self, name: str) -> Any:
        """A function, when it is first called."""
        function = super().__getitem__(name)
        function.restype, function.argtypes = self._declared.signature(name)
        return function

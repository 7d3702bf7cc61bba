"""Congestion controls as Python knows them: read from where they are declared, which is the C.

`core/cc/registry.h` has a line for each; its parameters stand in its own file, beside the code that
uses them (`core/cc/cc.h` tells how). Nothing of that is written a second time: scenarios, plans and
documentation take names, bounds and words from here. What is read are a few plain lines, of which a
test asks the compiled core whether it sees the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

FOLDER = Path(__file__).parent / "core" / "cc"
NONE = "none"

_LINE = re.compile(r"^CC\((\w+), ([\w| ]+), CC_(\w+), \"(.+)\"\)$", re.MULTILINE)
_STRING = r"\"(?:[^\"\\]|\\.)*\""
_STRINGS = rf"{_STRING}(?:\s+{_STRING})*"
_PARAMETER = re.compile(
    r"^    CC_([A-Z]+)\((\w+), (\w[\w.]*)((?:,\s*[\w.]+)*)"  # kind, name, usual value, bounds
    rf"(?:,\s*({_STRINGS}))??,\s*({_STRINGS})\),$",  # words that may be said, and about it
    re.MULTILINE,
)


_BEGINNING = re.compile(r"^ *CC_[A-Z]+ ?\(", re.MULTILINE)


class Kind(StrEnum):
    """What a parameter is (enum cc_kind)."""

    TIME = "TIME"
    RATE = "RATE"
    SIZE = "SIZE"
    NUMBER = "NUMBER"
    REAL = "REAL"
    SHARE = "SHARE"  # above 0, at most 1
    FLAG = "FLAG"
    WORD = "WORD"

    @property
    def suffix(self) -> str:
        """What a scenario's key of such a parameter ends with: its unit."""
        return {"TIME": "_ns", "RATE": "_mbps"}.get(self, "")


Value = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a control; values are in the core's units: ns, bits a second, bytes."""

    name: str
    kind: Kind
    usual: Value | None  # None: the control finds one itself
    least: float
    most: float
    words: tuple[str, ...]
    about: str

    @property
    def key(self) -> str:
        """What a scenario calls it."""
        return self.name + self.kind.suffix


@dataclass(frozen=True)
class Control:
    """A line of the registry."""

    name: str
    users: frozenset[str]  # kinds of transport
    hears: str
    about: str

    @property
    def hears_marks(self) -> bool:
        """Whether receivers notify senders of marks."""
        return self.hears == "MARKS"

    @property
    def hears_telemetry(self) -> bool:
        """Whether every packet asks hops for telemetry."""
        return self.hears == "TELEMETRY"

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those that its file declares."""
        return (
            () if self.name == NONE else tuple(_declared((FOLDER / f"{self.name}.c").read_text()))
        )


def _text(literals: str) -> str:
    """C's string literals, put together."""
    return "".join(ast.literal_eval(f"({literals})"))


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _declared(text: str) -> Iterator[Parameter]:
    declared = list(_PARAMETER.finditer(text))
    if len(declared) != len(_BEGINNING.findall(text)):
        raise ValueError(
            f"a parameter is not declared as core/cc/cc.h has it, after {declared[-1:]}"
        )
    for found in declared:
        kind, name, usual, bounds, words, about = found.groups()
        least, most = map(_number, bounds.replace(",", " ").split() or ("0", "1"))
        named = tuple(_text(words).split()) if words else ()
        value: Value | None = None
        if usual != "CC_USUAL":
            number = _number(usual)
            value = named[int(number)] if named else bool(number) if kind == "FLAG" else number
        yield Parameter(name, Kind(kind), value, least, most, named, _text(about))


def _registered() -> Iterator[Control]:
    everybody = frozenset(("roce", "uet", "mrc"))
    yield Control(NONE, everybody, "NOTHING", "nothing")
    text = (FOLDER / "registry.h").read_text()
    lines = _LINE.findall(text)
    if len(lines) != text.count("\nCC("):
        raise ValueError(f"core/cc/registry.h: a line is not as the others, after {lines[-1:]}")
    for name, users, hears, about in lines:
        whose = frozenset(each.strip().removeprefix("CC_").lower() for each in users.split("|"))
        yield Control(name, whose, hears, about)


CONTROLS: Mapping[str, Control] = MappingProxyType({each.name: each for each in _registered()})
"""By name, in the registry's order, the absence of any first."""


def about_controls() -> str:
    """What each is for, and what it goes by, in a sentence for each kind of transport."""
    kinds = {"roce": "RoCEv2", "uet": "UET", "mrc": "MRC"}
    by_users: dict[tuple[str, ...], list[str]] = {}
    for control in CONTROLS.values():
        if control.name != NONE:
            users = tuple(title for kind, title in kinds.items() if kind in control.users)
            by_users.setdefault(users, []).append(f"{control.name} by {control.about}")
    return "; ".join(
        f"{' and '.join(users)}: {', '.join(said)}" for users, said in by_users.items()
    )

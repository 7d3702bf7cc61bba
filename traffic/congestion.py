"""Congestion controls as Python knows them: read from where they are declared, which is the C.

`core/cc/registry.h` has a line for each; its parameters stand in its own file, beside the code that
uses them (`core/cc/cc.h` tells how). Nothing of that is written a second time: scenarios, plans and
documentation take names, bounds and words from here. What is read are a few plain lines, of which a
test asks the compiled core whether it sees the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

FOLDER = Path(__file__).parent / "core" / "cc"
NONE = "none"
_DECLARATION, _REGISTRATION = "\n    CC_", "\nCC("  # how a parameter's begins, and a control's
_USUAL = "CC_DEFAULT"


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
    FILE = "FILE"  # a path

    @property
    def suffix(self) -> str:
        """What a scenario's key of such a parameter ends with: its unit."""
        return {"TIME": "_ns", "RATE": "_mbps"}.get(self, "")


Value = int | float | bool | str
_UNBOUNDED = {Kind.SHARE, Kind.FLAG, Kind.WORD, Kind.FILE}


class Parameter(NamedTuple):
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


class Control(NamedTuple):
    """A line of the registry."""

    name: str
    users: frozenset[str]  # kinds of transport
    hears: str
    about: str

    @property
    def hears_notices(self) -> bool:
        """Whether receivers notify senders of marks."""
        return self.hears == "MARKS"

    @property
    def hears_marks(self) -> bool:
        """Whether senders hear of marks, by notifications or by answers."""
        return self.hears in ("MARKS", "ECHOES")

    @property
    def hears_telemetry(self) -> bool:
        """Whether every packet asks hops for telemetry."""
        return self.hears == "TELEMETRY"

    @property
    def hears_csig(self) -> bool:
        """Whether every packet carries a CSIG tag."""
        return self.hears == "CSIG"

    @property
    def hears_credit(self) -> bool:
        """Whether receivers grant what may be sent."""
        return self.hears == "CREDIT"

    @property
    def is_brought(self) -> bool:
        """Whether it is somebody's own, in a file that has to be named."""
        return any(each.kind is Kind.FILE for each in self.parameters)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those that its file declares."""
        return _parameters_of(self.name)


@cache
def _parameters_of(name: str) -> tuple[Parameter, ...]:
    return () if name == NONE else tuple(_declared((FOLDER / f"{name}.c").read_text()))


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _arguments(text: str) -> Iterator[str]:
    """What stands between commas, as plain words; literals that follow each other are one."""
    plain, *literals = text.split('"')
    yield from (word for each in plain.split(",") if (word := each.strip()))
    joined = ""
    for literal, behind in zip(literals[::2], literals[1::2], strict=True):
        joined += literal
        if "," in behind:
            yield joined
            joined = ""
    yield joined


def _read(declaration: str) -> Parameter:
    """A declaration from its kind on: ``TIME(low_rtt, 50000, 1, 1000000000, "Below ...``."""
    kind, _, inside = declaration.partition("(")
    name, *bounds, about = _arguments(inside)
    usual = _USUAL if kind == Kind.FILE else bounds.pop(0)
    words = tuple(bounds.pop().split()) if kind == Kind.WORD else ()
    least, most = (0, 1) if kind in _UNBOUNDED else map(_number, bounds)
    value: Value | None = None
    if usual != _USUAL:
        number = _number(usual)
        value = words[int(number)] if words else bool(number) if kind == Kind.FLAG else number
    return Parameter(name, Kind(kind), value, least, most, words, about)


def _declared(text: str) -> Iterator[Parameter]:
    """The parameters of a control's file."""
    declared = [each.partition("\n};")[0] for each in text.split(_DECLARATION)[1:]]
    is_plain = all(each.endswith("),") and "\\" not in each for each in declared)
    if not is_plain or len(declared) != sum(
        line.lstrip().startswith("CC_") for line in text.splitlines()
    ):
        raise ValueError("its parameters are not declared as core/cc/cc.h has it")
    yield from (_read(each.removesuffix("),")) for each in declared)


def _registered() -> Iterator[Control]:
    yield Control(NONE, frozenset(("roce", "uet", "mrc", "sue")), "NOTHING", "nothing")
    text = (FOLDER / "registry.h").read_text()
    for line in text.split(_REGISTRATION)[1:]:
        name, users, hears, about = _arguments(line.partition(")\n")[0])
        whose = frozenset(each.strip().removeprefix("CC_").lower() for each in users.split("|"))
        yield Control(name, whose, hears.removeprefix("CC_"), about)


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

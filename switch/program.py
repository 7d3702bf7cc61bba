"""A P4 program ready to run: validated, compiled, and its objects listed by name and index.

An object's index is its position in the tuple here; `ops` and the reads of `Dataplane` use it.
Names are the full control-plane names of the BMv2 JSON, which P4Info uses too.
"""

from __future__ import annotations

import gc
import json
import pickle  # of our own cache, as the libraries are that we load
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from . import bmv2, build
from .cache import kept
from .ops import NO_ACTION
from .place import JsonError
from .read import read_program

KEPT = 4  # programs that a process remembers having translated


class MatchKind(Enum):
    """How one key, or a table as a whole, matches. P4's `optional` is TERNARY here, as in BMv2."""

    EXACT = "exact"
    LPM = "lpm"
    TERNARY = "ternary"
    RANGE = "range"


@dataclass(frozen=True)
class ParamInfo:
    """A parameter of an action."""

    name: str
    width: int


@dataclass(frozen=True)
class ActionInfo:
    """An action and what it must be given."""

    index: int
    name: str
    params: tuple[ParamInfo, ...]


@dataclass(frozen=True)
class KeyInfo:
    """One key of a table; `width` is 1 for a header's validity."""

    name: str
    width: int
    kind: MatchKind


@dataclass(frozen=True)
class TableInfo:
    """A table, in the words a control plane needs."""

    index: int
    name: str
    kind: MatchKind
    keys: tuple[KeyInfo, ...]
    actions: tuple[int, ...]  # indices of the actions an entry may name
    size: int
    profile: int | None
    has_counters: bool
    meter: int | None
    has_timeout: bool
    is_const: bool  # entries are part of the program
    default_action: int  # the program's own; NO_ACTION if none (BMv2 then does nothing)
    default_params: tuple[int, ...]
    default_is_const: bool

    @property
    def needs_priority(self) -> bool:
        """Whether entries are ordered by priority."""
        return self.kind in (MatchKind.TERNARY, MatchKind.RANGE)


@dataclass(frozen=True)
class ProfileInfo:
    """An action profile, or selector."""

    index: int
    name: str
    size: int
    has_selector: bool


@dataclass(frozen=True)
class CounterInfo:
    """A counter array; `table` is set for a direct one."""

    index: int
    name: str
    size: int
    table: int | None


@dataclass(frozen=True)
class MeterInfo:
    """A meter array; `table` is set for a direct one."""

    index: int
    name: str
    size: int
    table: int | None
    counts_bytes: bool


@dataclass(frozen=True)
class RegisterInfo:
    """A register array."""

    index: int
    name: str
    size: int
    width: int


@dataclass(frozen=True)
class DigestInfo:
    """A digest and the widths of its members."""

    index: int
    name: str
    widths: tuple[int, ...]


@dataclass(frozen=True)
class ValueSetInfo:
    """A parser value set; `width` is that of all its fields together."""

    index: int
    name: str
    width: int


@dataclass(frozen=True, eq=False)
class Program:
    """A program, its symbols and its shared object."""

    name: str
    source: bytes = field(repr=False)  # the BMv2 JSON as given
    library: Path
    is_quick: bool  # built so that it is there soon, and runs more slowly
    parsed: bmv2.Program = field(repr=False)
    tables: tuple[TableInfo, ...] = ()
    actions: tuple[ActionInfo, ...] = ()
    profiles: tuple[ProfileInfo, ...] = ()
    counters: tuple[CounterInfo, ...] = ()
    meters: tuple[MeterInfo, ...] = ()
    registers: tuple[RegisterInfo, ...] = ()
    digests: tuple[DigestInfo, ...] = ()
    value_sets: tuple[ValueSetInfo, ...] = ()

    @classmethod
    def load(
        cls,
        source: Path | str | bytes | dict[str, Any],
        *,
        name: str = "",
        trace: bool = False,
        soon: bool = False,
    ) -> Program:
        """Read BMv2 JSON (a path, bytes, or parsed), check it, build it or find it in the cache.

        Raises `JsonError` naming the place in the JSON, or `cache.Unbuildable`. With
        `trace` the program tells each packet's story to `Dataplane.set_trace`. If it is wanted
        `soon` and was not built before, it is built quickly: see `built_well`.
        """
        text = read(source)
        if not name:
            name = Path(source).stem if isinstance(source, str | Path) else "program"
        parsed, c_text, digests = _translated(text, name)
        is_quick = soon and not trace and not build.is_built(c_text)
        library = build.program_library(c_text, trace=trace, quickly=is_quick)
        return cls(
            name=name,
            source=text,
            library=library,
            is_quick=is_quick,
            parsed=parsed,
            tables=tuple(table_info(parsed, i) for i in range(len(parsed.tables))),
            actions=tuple(action_info(i, a) for i, a in enumerate(parsed.actions)),
            profiles=tuple(
                ProfileInfo(i, p.name, p.size, p.algo is not None)
                for i, p in enumerate(parsed.profiles.values())
            ),
            counters=tuple(counter_info(parsed, i) for i in range(len(parsed.counters))),
            meters=tuple(meter_info(parsed, i) for i in range(len(parsed.meters))),
            registers=tuple(
                RegisterInfo(i, r.name, r.size, r.width)
                for i, r in enumerate(parsed.registers.values())
            ),
            digests=tuple(
                DigestInfo(i, d.name, widths)
                for i, (d, widths) in enumerate(zip(parsed.digests, digests, strict=True))
            ),
            value_sets=tuple(
                ValueSetInfo(i, v.name, v.width) for i, v in enumerate(parsed.value_sets.values())
            ),
        )

    def built_well(self) -> Program:
        """The same program as it runs fastest, for `Dataplane.exchange`; to build it takes time."""
        if not self.is_quick:
            return self
        _, c_text, _ = _translated(self.source, self.name)
        return replace(self, library=build.program_library(c_text), is_quick=False)


_RECURSION_LIMIT = 10_000


_LARGE = 1 << 18  # bytes of JSON from which on to read what was translated is quicker than to do it

# A program, its C, and the widths of what its digests send.
_Translated = tuple[bmv2.Program, str, list[tuple[int, ...]]]


@lru_cache(maxsize=KEPT)
def _translated(text: bytes, name: str) -> _Translated:
    """A program read and written as C; a process asks for the same one again and again, and so do
    those after it.
    """
    if len(text) < _LARGE:
        return _translate(text, name)
    made: list[_Translated] = []

    def make(path: Path) -> None:
        made.append(_translate(text, name))
        with _deep():
            path.write_bytes(pickle.dumps(made[0], pickle.HIGHEST_PROTOCOL))

    try:
        path = kept(f"program-{build.digest(text, name, _translator())}.pickle", make)
    except RecursionError:  # what could be translated is too deep to be kept
        return made[0]
    if made:
        return made[0]
    with _deep():
        found: _Translated = pickle.loads(path.read_bytes())  # noqa: S301
    return found


@cache
def _translator() -> str:
    """What tells this translator from any other."""
    folder = Path(__file__).parent
    files = [*folder.glob("*.py"), *folder.glob("codegen/*.py")]
    return build.digest(
        sys.version, *(part for f in sorted(files) for part in (f.name, f.read_bytes()))
    )


def _translate(text: bytes, name: str) -> _Translated:
    from . import codegen  # only who comes first waits for it

    try:
        with _deep():
            parsed = read_program(text)
            widths = [tuple(codegen.digest_widths(parsed, d)) for d in parsed.digests]
            return parsed, codegen.generate(parsed, name), widths
    except RecursionError:
        raise JsonError("an expression is nested too deeply") from None


@contextmanager
def _deep() -> Iterator[None]:
    """Expressions may be nested more deeply than Python usually goes, and what they become stays:
    to look through it for garbage, again and again, takes as long as to make it.
    """
    limit, collects = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
        sys.setrecursionlimit(limit)


def read(source: Path | str | bytes | dict[str, Any]) -> bytes:
    """The JSON's text."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, dict):
        return json.dumps(source).encode()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise JsonError(f"{source}: cannot be read: {error.strerror}") from None


def action_info(index: int, action: bmv2.Action) -> ActionInfo:
    """An action's symbol."""
    return ActionInfo(index, action.name, tuple(ParamInfo(p.name, p.width) for p in action.params))


def table_info(program: bmv2.Program, index: int) -> TableInfo:
    """A table's symbol."""
    table = program.tables[index]
    keys = tuple(
        KeyInfo(k.name, program.field_of(k.target).width, MatchKind(k.match)) for k in table.keys
    )
    direct = [c.binding for c in program.counters.values() if c.binding == table.name]
    default = table.default if table.profile is None else None
    return TableInfo(
        index=index,
        name=table.name,
        kind=MatchKind(table.match),
        keys=keys,
        actions=table.actions,
        size=table.size,
        profile=None if table.profile is None else list(program.profiles).index(table.profile),
        has_counters=table.with_counters or bool(direct),
        meter=None
        if table.direct_meter is None
        else list(program.meters).index(table.direct_meter),
        has_timeout=table.support_timeout,
        is_const=table.entries is not None,
        default_action=default.action if default else NO_ACTION,
        default_params=default.params if default else (),
        default_is_const=default.is_const if default else False,
    )


def bound_table(program: bmv2.Program, name: str | None) -> int | None:
    """The table that a direct counter or meter belongs to."""
    if name is None:
        return None
    names = [t.name for t in program.tables]
    return names.index(name) if name in names else None


def counter_info(program: bmv2.Program, index: int) -> CounterInfo:
    """A counter array's symbol."""
    counter = list(program.counters.values())[index]
    return CounterInfo(index, counter.name, counter.size, bound_table(program, counter.binding))


def meter_info(program: bmv2.Program, index: int) -> MeterInfo:
    """A meter array's symbol."""
    meter = list(program.meters.values())[index]
    table = bound_table(program, meter.binding)
    return MeterInfo(index, meter.name, meter.size, table, meter.counts_bytes)

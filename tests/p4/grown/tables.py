"""Tables: their keys, their actions, and entries that packets will meet."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import field
from typing import Any

from params.data import Data

from .kinds import Bits, Bool, Kind, width_of
from .parts import Expr, Param, Run, Stmt, indented

Matches = Callable[[int], bool]


class Action(Data):
    """An action; called from a program it may take in and give out, from tables it has data."""

    name: str
    params: tuple[Param, ...]
    body: Stmt

    def lines(self) -> list[str]:
        """Its declaration."""
        params = ", ".join(param.text for param in self.params)
        return [f"action {self.name}({params}) {{", *indented(self.body), "}"]


class Match(Data):
    """What an entry asks of one key: in P4, in a packet test, and of a key's bits."""

    p4: str
    stf: str
    holds: Matches
    length: int = 0  # of a prefix


class Entry(Data):
    """An entry."""

    matches: tuple[Match, ...]
    action: Action
    args: tuple[Any, ...]

    def arguments(self) -> str:
        """In P4."""
        pairs = zip(self.action.params, self.args, strict=True)
        return f"{self.action.name}({', '.join(p.place.kind.literal(a) for p, a in pairs)})"

    def call(self, run: Run) -> None:
        """Do what it says."""
        for param, arg in zip(self.action.params, self.args, strict=True):
            param.place.put(run, arg)
        self.action.body.do(run)


class Table(Data, frozen=False):
    """A table; the first entry that fits counts, or that with the longest prefix."""

    name: str
    where: str
    keys: tuple[Expr, ...]
    kinds: tuple[str, ...]
    actions: tuple[Action, ...]
    default: Entry | None
    is_const: bool  # its entries are the program's
    entries: list[Entry] = field(default_factory=list)
    seen: list[tuple[int, ...]] = field(default_factory=list)  # keys that packets came with

    @property
    def has_priorities(self) -> bool:
        """Whether entries may overlap."""
        return bool({"ternary", "range", "optional"} & set(self.kinds))

    def lines(self) -> list[str]:
        """Its declaration."""
        keys = [
            f'        {key.text} : {kind} @name("k{number}");'
            for number, (key, kind) in enumerate(zip(self.keys, self.kinds, strict=True))
        ]
        lines = [f"table {self.name} {{"]
        lines += ["    key = {", *keys, "    }"] if keys else []
        lines += [f"    actions = {{ {' '.join(f'{a.name};' for a in self.actions)} NoAction; }}"]
        if self.default is not None:
            lines += [f"    default_action = {self.default.arguments()};"]
        else:
            lines += ["    default_action = NoAction();"]
        if self.is_const and self.entries:
            entries = [
                f"        ({', '.join(m.p4 for m in entry.matches)}) : {entry.arguments()};"
                for entry in self.entries
            ]
            lines += ["    const entries = {", *entries, "    }"]
        return [*lines, "}"]

    def commands(self) -> list[str]:
        """What a packet test says to fill it."""
        lines = []
        for number, entry in enumerate(self.entries if not self.is_const else ()):
            priority = f"{len(self.entries) - number} " if self.has_priorities else ""
            keys = " ".join(f"k{i}:{match.stf}" for i, match in enumerate(entry.matches))
            data = ", ".join(
                f"{p.place.text}:{int(a) & ((1 << width_of(p.place.kind)) - 1)}"
                for p, a in zip(entry.action.params, entry.args, strict=True)
            )
            name = f"{self.where}.{self.name}"
            lines.append(f"add {name} {priority}{keys} {self.where}.{entry.action.name}({data})")
        return lines

    def apply(self, run: Run) -> str | None:
        """Look up and run an action; the name of that which an entry named."""
        key = tuple(
            int(value) & ((1 << width_of(expr.kind)) - 1)
            for expr, value in [(expr, expr.of(run)) for expr in self.keys]
        )
        self.seen.append(key)
        fitting = [
            entry
            for entry in self.entries
            if all(m.holds(value) for m, value in zip(entry.matches, key, strict=True))
        ]
        if "lpm" in self.kinds and not self.has_priorities:
            fitting.sort(key=lambda entry: -sum(m.length for m in entry.matches))
        if fitting:
            fitting[0].call(run)
            return fitting[0].action.name
        if self.default is not None:
            self.default.call(run)
        return None

    def ran(self, hit: str | None) -> str:
        """The action that ran."""
        return hit or (self.default.action.name if self.default else "NoAction")


def match(rng: random.Random, kind: Kind, how: str, value: int) -> Match:
    """A match of a kind that a value fits, most often."""
    width = width_of(kind)
    full = (1 << width) - 1
    if rng.random() < 0.2:
        value = rng.getrandbits(width)
    if isinstance(kind, Bool):
        return Match(str(bool(value)).lower(), str(value), lambda got: got == value)
    whole = Bits(width)
    text = kind.literal(kind.wrap(value)) if isinstance(kind, Bits) else whole.literal(value)
    match how:
        case "lpm":
            length = rng.choice((0, width, rng.randint(0, width)))
            mask = full >> (width - length) << (width - length)
            base = value & mask
            p4 = f"{whole.literal(base)} &&& {whole.literal(mask)}"
            return Match(p4, f"{base:#x}/{length}", lambda got: got & mask == base, length)
        case "ternary":
            mask = rng.choice((0, full, rng.getrandbits(width), rng.getrandbits(width) | 1))
            base = value & mask
            p4 = f"{whole.literal(base)} &&& {whole.literal(mask)}"
            return Match(p4, f"{base:#x}&&&{mask:#x}", lambda got: got & mask == base)
        case "range":
            low = rng.choice((0, value, rng.randint(0, value)))
            high = rng.choice((full, value, rng.randint(value, full)))
            p4 = f"{whole.literal(low)} .. {whole.literal(high)}"
            return Match(p4, f"{low:#x}->{high:#x}", lambda got: low <= got <= high)
    return Match(text, f"{value:#x}", lambda got: got == value)


def fill(rng: random.Random, table: Table, args: Callable[[Action], tuple[Any, ...]]) -> None:
    """Entries, most of which fit keys that were seen."""
    wanted = rng.randint(0, 5)
    known = set()
    for _ in range(wanted):
        key = rng.choice(table.seen) if table.seen else tuple(0 for _ in table.keys)
        matches = tuple(
            match(rng, expr.kind, kind, value)
            for expr, kind, value in zip(table.keys, table.kinds, key, strict=True)
        )
        name = tuple(m.stf for m in matches)
        if name in known:
            continue  # said twice, which control planes refuse
        known.add(name)
        action = rng.choice(table.actions)
        table.entries.append(Entry(matches, action, args(action)))

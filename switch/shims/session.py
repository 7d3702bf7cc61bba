"""What a console remembers and how it finds and changes things.

simple_switch names entries by handles and multicast copies by nodes; P4Runtime knows neither, so
they are kept here. Priorities run the other way round too: in simple_switch the smallest wins.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import TypeVar

from finsy.proto import p4r

from params.data import Data
from switch import dataplane as dp
from switch.p4runtime import values as wire
from switch.p4runtime.device import Device
from switch.p4runtime.pipeline import Pipeline, TableBinding
from switch.p4runtime.symbols import Field

TOP_PRIORITY = 1 << 24
"""The P4Runtime priority of simple_switch's priority 0."""

_MAC = re.compile(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}")

T = TypeVar("T")


class CommandError(Exception):
    """The words of a command make no sense."""


class Node(Data):
    """A multicast node: copies for some ports under one id."""

    rid: int
    ports: tuple[int, ...]


class Session(Data, frozen=False):
    """One switch's console."""

    device: Device
    handles: dict[int, dict[int, p4r.TableEntry]] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    groups: dict[int, list[int]] = field(default_factory=dict)
    mirrored_groups: dict[int, int] = field(default_factory=dict)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline commands are about."""
        return self.device.entities.pipeline

    def write(self, verb: dp.Verb, entity: p4r.Entity) -> None:
        """Make one change, or raise why not."""
        update = p4r.Update(type=p4r.Update.Type.ValueType(verb), entity=entity)
        (error,) = self.device.entities.write([update], atomic=False)
        if error is not None:
            raise error

    def read(self, query: p4r.Entity) -> list[p4r.Entity]:
        """Return what a query finds."""
        found, (error,) = self.device.entities.read([query])
        if error is not None:
            raise error
        return list(found)

    def do(self, op: dp.Op) -> None:
        """Ask the data plane directly."""
        (error,) = self.device.plane.write([op])
        if error is not None:
            raise CommandError(error.message)

    # Tables and their handles

    def table(self, name: str) -> TableBinding:
        """Return the table of that name, or the only one that ends like it."""
        return named("table", name, self.pipeline.tables.values(), lambda t: t.symbol.name)

    def entries(self, table: TableBinding) -> dict[int, p4r.TableEntry]:
        """Return a table's entries by handle; handles stay while their entry does."""
        query = p4r.TableEntry(table_id=table.symbol.id)
        present = {
            entry_key(e.table_entry): e.table_entry
            for e in self.read(p4r.Entity(table_entry=query))
        }
        known = self.handles.setdefault(table.symbol.id, {})
        kept = {}
        for handle, entry in known.items():
            found = present.pop(entry_key(entry), None)
            if found is not None:
                kept[handle] = found
        free = (n for n in range(len(kept) + len(present)) if n not in kept)
        kept.update(zip(free, present.values(), strict=False))
        self.handles[table.symbol.id] = dict(sorted(kept.items()))
        return self.handles[table.symbol.id]

    def entry(self, table: TableBinding, handle: str) -> p4r.TableEntry:
        """Return the entry of a handle."""
        entries = self.entries(table)
        found = entries.get(number(handle, "entry handle"))
        if found is None:
            raise CommandError(f"table {table.symbol.name} has no entry with handle {handle}")
        return found

    def handle_of(self, table: TableBinding, entry: p4r.TableEntry) -> int:
        """Return the handle of an entry."""
        wanted = entry_key(entry)
        return next(h for h, e in self.entries(table).items() if entry_key(e) == wanted)


def entry_key(entry: p4r.TableEntry) -> tuple[bytes, ...]:
    """Return what identifies an entry in its table."""
    matches = sorted(match.SerializeToString(deterministic=True) for match in entry.match)
    return (*matches, str(entry.priority).encode())


def named(kind: str, name: str, items: Iterable[T], name_of: Callable[[T], str]) -> T:
    """Return the item of a full name, or the only one whose name ends in it."""
    found = list(items)
    exact = [item for item in found if name_of(item) == name]
    if exact:
        return exact[0]
    ending = [item for item in found if name_of(item).endswith(f".{name}")]
    if len(ending) == 1:
        return ending[0]
    names = ", ".join(sorted(map(name_of, ending or found))) or "none"
    problem = "is ambiguous" if ending else "is unknown"
    raise CommandError(f"{kind} {name} {problem}; there is: {names}")


def number(word: str, what: str) -> int:
    """Read a number, decimal or 0x."""
    try:
        return int(word, 0)
    except ValueError:
        raise CommandError(f"{what} must be a number, not {word!r}") from None


def need(words: list[str], least: int, most: int | None = None) -> None:
    """Check how many words a command got; by default exactly `least`."""
    if len(words) < least:
        raise CommandError(f"{least} words are needed, {len(words)} were given")
    if most is None:
        most = least
    if len(words) > most:
        raise CommandError(f"at most {most} words are needed, {len(words)} were given")


def value(word: str, item: Field) -> bytes:
    """Read a value the way simple_switch_CLI does: number, IPv4, IPv6 or MAC address."""
    try:
        if item.bits == 48 and _MAC.fullmatch(word):
            parts = bytes(int(part, 16) for part in word.split(":"))
            return wire.encode(int.from_bytes(parts, "big"))
        if item.bits in (32, 128) and (("." in word) if item.bits == 32 else (":" in word)):
            return wire.encode(int(ipaddress.ip_address(word)))
        parsed = int(word, 0)
    except ValueError:
        raise CommandError(f"{item.name}: {word!r} is not a value of {item.bits} bits") from None
    return wire.encode(parsed & wire.all_ones(item.bits) if parsed < 0 else parsed)

"""Configurations that are text: what their lines say, as `config_db.json` would have it.

A reader of another system's text takes its lines one by one, and puts what they say into the tables
of config_db, so that the same rules ask about it. It remembers the line of each entry. What it does
not understand is listed with its file and line, and nothing is made up: what a system has by itself
is put in only where its maker documents it, which the reader's own file names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from files import FileError, read_text, shown
from lab.configs.config_db import COMPUTED, Switch, printable, switch_of
from lab.errors import ScenarioError
from params.data import Data

MAX_BYTES = 8_000_000
_MAX_SHOWN = 80
_MAX_OF_RANGE = 1024
_RANGE = re.compile(r"(?P<stem>\D*(?:\d+\D+)*?)(?P<first>\d{1,4})-(?:\D*)(?P<last>\d{1,4})")
UNKNOWN_MBPS = "1"  # of a port without a configured speed, until the other end's is known


class Said(Data, frozen=False):
    """What a text says of a switch, so far."""

    file: Path
    kind: str  # of text: eos, nvue
    name: str | None = None
    tables: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    lines: dict[tuple[str, str], int] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)

    def put(self, table: str, key: str, line: int, **fields: object) -> None:
        """Fields of an entry; what is said later holds."""
        entry = self.tables.setdefault(table, {}).setdefault(key, {})
        entry |= {name: str(value) for name, value in fields.items() if value is not None}
        if line:
            self.lines[table, key] = line

    def map(self, table: str, name: str, line: int, entries: dict[int, int]) -> None:
        """A map's entries, each at its line."""
        entry = self.tables.setdefault(table, {}).setdefault(name, {})
        for key, value in entries.items():
            entry[str(key)] = str(value)
            self.lines[table, f"{name}|{key}"] = line
        self.lines.setdefault((table, name), line)

    def left(self, line: int, text: str, why: str = "not understood") -> None:
        """A line that became nothing."""
        said = printable(" ".join(text.split()))
        said = said if len(said) <= _MAX_SHOWN else f"{said[: _MAX_SHOWN - 4]}..."
        self.unread.append(f"{shown(self.file)}:{line}: {why}: {said}")

    def wrong(self, line: int, text: str, cure: str) -> ScenarioError:
        """A line that cannot be meant."""
        said = printable(" ".join(text.split()))[:_MAX_SHOWN]
        return ScenarioError(f"{shown(self.file)}:{line}: '{said}'", cure)

    def computes_headroom(self, port: str, priorities: frozenset[int] | set[int]) -> None:
        """Groups whose headroom the switch finds itself; its text does not say how much."""
        for priority in priorities:
            self.put("BUFFER_PG", f"{port}|{priority}", self.lines.get(("PORT_QOS_MAP", port), 0),
                     profile=COMPUTED)  # fmt: skip

    def switch(self) -> Switch:
        """The switch that it is about."""
        if self.name is None:
            raise ScenarioError(
                f"{shown(self.file)} does not name its switch",
                "It is to be the whole of a switch's configuration, with its hostname.",
            )
        metadata = self.tables.setdefault("DEVICE_METADATA", {}).setdefault("localhost", {})
        metadata["hostname"] = self.name
        ports = self.tables.get("PORT", {})
        speedless = {name for name, entry in ports.items() if "speed" not in entry}
        for name in speedless:
            ports[name]["speed"] = UNKNOWN_MBPS
        switch = switch_of(self.file, self.tables)
        for name in speedless:
            del ports[name]["speed"]
        switch.kind, switch.lines, switch.speedless = self.kind, self.lines, speedless
        switch.unread[:0] = self.unread
        return switch


def text_of(path: Path) -> str:
    """A configuration's text."""
    try:
        return read_text(path, MAX_BYTES)
    except FileError as error:
        raise ScenarioError(str(error), "It is to be a text: copy it anew.") from None


def listed(text: str) -> list[str]:
    """Names or numbers of a list: `swp1-4,swp6`, `3,5`, `0-7`."""
    found: list[str] = []
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        first, last = (int(match["first"]), int(match["last"])) if match else (0, -1)
        if match is None or not first <= last < first + _MAX_OF_RANGE:
            found.append(part)
        else:
            found += [f"{match['stem']}{number}" for number in range(first, last + 1)]
    return found


def numbers(text: str, most: int) -> list[int] | None:
    """Numbers of a list, up to the most; None: it is none."""
    parts = [part for part in listed(text) if part]
    if not parts or not all(re.fullmatch(r"\d{1,10}", p) and int(p) <= most for p in parts):
        return None
    return [int(part) for part in parts]


def number(text: str, most: int) -> int | None:
    """One number, up to the most."""
    found = numbers(text, most)
    return found[0] if found and len(found) == 1 else None


def nested(text: str) -> Iterator[tuple[int, list[list[str]], list[str]]]:
    """Lines whose indentation says what they are within: number, the lines around, the words."""
    around: list[tuple[int, list[str]]] = []
    for at, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith(("!", "#")):
            continue
        depth = len(line) - len(line.lstrip())
        while around and around[-1][0] >= depth:
            around.pop()
        yield at, [words for _, words in around], words
        around.append((depth, words))

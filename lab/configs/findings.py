"""What is found in configurations, and what mends it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from params.data import Data

Op = dict[str, Any]


class Level(StrEnum):
    """How much is known of a finding."""

    FINDING = "finding"  # by its rule; nothing has been run
    FAULT = "fault"  # a run shows it
    ADVICE = "advice"  # no run does, or none can by what the lab's model has


class Finding(Data):
    """One thing that is wrong, where, what comes of it, and what mends it."""

    rule: str
    switch: str
    table: str
    key: str
    what: str
    consequence: str
    cure: str
    level: Level = Level.FINDING
    patch: Mapping[str, tuple[Op, ...]] = field(default_factory=dict)  # JSON patches by switch
    facts: Mapping[str, Any] = field(default_factory=dict)  # for the run that shows it

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.switch} {self.table}|{self.key}"

    def content(self, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """As JSON has it; patches are for these configurations, by switch."""
        return {
            "rule": self.rule, "level": str(self.level), "switch": self.switch,
            "table": self.table, "key": self.key, "what": self.what,
            "consequence": self.consequence, "cure": self.cure,
            "patch": {name: grounded(tables.get(name, {}), ops)[0]
                      for name, ops in self.patch.items()},
        }  # fmt: skip


def replace(table: str, key: str, name: str, value: object) -> Op:
    """A JSON patch's operation (RFC 6902) that gives a field a value, as config_db has it."""
    return {"op": "add", "path": "/" + "/".join(map(_escaped, (table, key, name))),
            "value": str(value)}  # fmt: skip


def entry(table: str, key: str, value: Mapping[str, object]) -> Op:
    """One that makes an entry."""
    path = "/" + "/".join(map(_escaped, (table, key)))
    return {"op": "add", "path": path, "value": {name: str(v) for name, v in value.items()}}


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")


def grounded(content: Mapping[str, Any], ops: Iterable[Op]) -> tuple[list[Op], dict[str, Any]]:
    """A patch as RFC 6902 wants it for a configuration, and what the configuration then is.

    What is to hold an operation's place has to be there: an entry, or a table, that is not is added
    whole. One that a list or a range of others stands for is listed with what it had there.
    """
    made: dict[str, Any] = deepcopy(dict(content))
    grounds = []
    for op in ops:
        path = [part.replace("~1", "/").replace("~0", "~") for part in op["path"].split("/")[1:]]
        value = op["value"]
        at = made
        for depth, part in enumerate(path[:-1]):
            if part not in at:
                within = _standing_for(at, part) if depth == 1 else {}
                value = {**within, path[-1]: value} if depth == len(path) - 2 else (
                    {path[depth + 1]: {path[-1]: value}})  # fmt: skip
                path = path[: depth + 1]
                break
            at = at[part]
        at[path[-1]] = deepcopy(value)
        grounds.append({"op": "add", "path": "/" + "/".join(map(_escaped, path)), "value": value})
    return grounds, made


def _standing_for(table: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The fields of the entry whose ports' list or numbers' range has a key in it, if one has."""
    ports, _, number = key.rpartition("|")
    for name, fields in table.items():
        others, _, numbers = name.rpartition("|")
        first, _, last = numbers.partition("-")
        if number.isdigit() and first.isdigit() and (last or first).isdigit():
            is_in = ports in others.split(",") and int(first) <= int(number) <= int(last or first)
        else:
            is_in = not ports and key in name.split(",")
        if is_in and isinstance(fields, dict):
            return dict(fields)
    return {}


def patch_of(findings: Iterable[Finding]) -> dict[str, list[Op]]:
    """By switch what mends all of them."""
    ops: dict[str, list[Op]] = {}
    for finding in findings:
        for switch, patch in finding.patch.items():
            ops.setdefault(switch, []).extend(patch)
    return ops


def write_cured(
    tables: Mapping[str, Mapping[str, Any]], findings: Iterable[Finding], out: Path
) -> None:
    """Every switch's configuration, all patches applied."""
    ops = patch_of(findings)
    out.mkdir(parents=True)
    for name, content in tables.items():
        text = json.dumps(grounded(content, ops.get(name, ()))[1], indent=4)
        (out / f"{name}.json").write_text(text + "\n")

"""What is found in configurations, and what mends it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

Op = dict[str, Any]


class Level(StrEnum):
    """How much is known of a finding."""

    FINDING = "finding"  # by its rule; nothing has been run
    FAULT = "fault"  # a run shows it
    ADVICE = "advice"  # no run does, or none can by what the lab's model has


@dataclass(frozen=True, slots=True)
class Finding:
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

    def content(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "rule": self.rule, "level": str(self.level), "switch": self.switch,
            "table": self.table, "key": self.key, "what": self.what,
            "consequence": self.consequence, "cure": self.cure,
            "patch": {name: list(ops) for name, ops in self.patch.items()},
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


def patched(content: Mapping[str, Any], ops: Iterable[Op]) -> dict[str, Any]:
    """A configuration with operations of these two kinds done to it."""
    made: dict[str, Any] = deepcopy(dict(content))
    for op in ops:
        *path, last = (part.replace("~1", "/").replace("~0", "~") for part in
                       op["path"].split("/")[1:])  # fmt: skip
        at = made
        for part in path:
            at = at.setdefault(part, {})
        at[last] = op["value"]
    return made


def write_cured(
    tables: Mapping[str, Mapping[str, Any]], findings: Iterable[Finding], out: Path
) -> None:
    """Every switch's configuration, all patches applied."""
    ops: dict[str, list[Op]] = {}
    for finding in findings:
        for switch, patch in finding.patch.items():
            ops.setdefault(switch, []).extend(patch)
    out.mkdir(parents=True)
    for name, content in tables.items():
        text = json.dumps(patched(content, ops.get(name, ())), indent=4)
        (out / f"{name}.json").write_text(text + "\n")

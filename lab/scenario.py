"""Scenarios: what to build and what to run on it, as YAML that is checked before anything starts.

An unknown key is refused with the nearest known one; sizes may be written ``16KB`` or ``4MB``
(powers of ten; ``KiB`` and ``MiB`` are powers of two).
"""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lab.errors import ScenarioError
from lab.paths import SCENARIOS
from topologies import Fabric, TopologyError, leaf_spine

_UNITS = {
    "": 1, "B": 1,
    "KB": 10**3, "MB": 10**6, "GB": 10**9,
    "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def _read_size(value: object) -> object:
    """Turn ``16KB`` into 16000; leave anything else to the type check."""
    if not isinstance(value, str):
        return value
    found = _SIZE.fullmatch(value)
    if found is None or found[2].upper() not in _UNITS:
        raise ValueError(f"'{value}' is not a size; write a number of bytes, 16KB, 4MB or 1MiB")
    return round(float(found[1]) * _UNITS[found[2].upper()])


Size = Annotated[int, BeforeValidator(_read_size)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Topology(_Section):
    """The graph."""

    kind: Literal["leaf-spine"] = "leaf-spine"
    leaves: int = 4
    spines: int = 2
    hosts_per_leaf: int = 2

    def build(self) -> Fabric:
        """The fabric this describes."""
        return leaf_spine(self.leaves, self.spines, self.hosts_per_leaf)


class LinkSettings(_Section):
    """What is the same for every cable."""

    mtu: Literal[256, 512, 1024, 2048, 4096] = 4096  # the path MTUs of InfiniBand


class LoadBalancing(_Section):
    """How a switch chooses among equally good next hops."""

    policy: Literal["ecmp"] = "ecmp"


class Traffic(_Section):
    """Who sends what to whom."""

    kind: Literal["all-pairs"] = "all-pairs"
    bytes: Size = Field(default=16_000, ge=1, le=10**8)


class Scenario(_Section):
    """One experiment."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    about: str = ""
    topology: Topology = Topology()
    link: LinkSettings = LinkSettings()
    lb: LoadBalancing = LoadBalancing()
    traffic: Traffic = Traffic()
    seed: int = Field(default=1, ge=0, lt=2**32)


def names() -> list[str]:
    """The scenarios that ship."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def load(name: str, changes: tuple[str, ...] = ()) -> Scenario:
    """Read a scenario by its name or its file, with ``KEY=VALUE`` changes applied."""
    path = Path(name) if name.endswith((".yaml", ".yml")) else SCENARIOS / f"{name}.yaml"
    if not path.is_file():
        if path.parent != SCENARIOS:
            raise ScenarioError(f"there is no scenario file {path}")
        raise ScenarioError(
            f"there is no scenario '{name}'" + _nearest(name, names()),
            f"These ship: {', '.join(names())}. Your own: give the path of a .yaml file.",
        )
    try:
        content = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path} is not YAML: {error}") from None
    if not isinstance(content, dict):
        raise ScenarioError(f"{path} holds no scenario: its top level must be keys and values")
    for change in changes:
        _apply(content, change)
    try:
        scenario = Scenario.model_validate(content)
        scenario.topology.build()
    except ValidationError as error:
        raise ScenarioError(f"scenario '{name}': " + _explain(error)) from None
    except TopologyError as error:
        raise ScenarioError(f"scenario '{name}': topology: {error}") from None
    return scenario


def _apply(content: dict[str, Any], change: str) -> None:
    """Carry out one ``--set KEY=VALUE``."""
    key, separator, value = change.partition("=")
    if not separator or not key:
        raise ScenarioError(f"--set {change}: write it as KEY=VALUE, such as traffic.bytes=1MB")
    *sections, last = key.split(".")
    place = content
    for section in sections:
        place = place.setdefault(section, {})
        if not isinstance(place, dict):
            raise ScenarioError(f"--set {change}: '{section}' is a value, not a section")
    try:
        place[last] = yaml.safe_load(value)
    except yaml.YAMLError:
        place[last] = value


def _explain(error: ValidationError) -> str:
    """All that is wrong, one thing a line, with the place and the nearest known key."""
    lines = []
    for problem in error.errors():
        place = ".".join(str(part) for part in problem["loc"])
        if problem["type"] == "extra_forbidden":
            lines.append(f"unknown key '{place}'" + _nearest(place, _keys(Scenario)))
        else:
            lines.append(f"{place}: {problem['msg']} (got {problem['input']!r})")
    return "\n  ".join(lines)


def _keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys = []
    for name, field in model.model_fields.items():
        keys.append(prefix + name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += _keys(field.annotation, f"{prefix}{name}.")
    return keys


def _nearest(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""

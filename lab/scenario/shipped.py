"""The scenarios that ship, and what each says of itself: told without reading what else they say.

A shell asks on every key, and would wait for the model of all keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from lab.machine.paths import SCENARIOS
from traffic.reading import read_yaml

# Keys of which the simulator, whose clock is its own, knows one value.
SIMULATED = {"control.kind": "p4runtime", "transport.endpoint": "core"}


def names() -> list[str]:
    """Their names."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def about(name: str) -> str:
    """What one of them shows."""
    return str(_content(name).get("about", "")).strip()


def engines(name: str) -> tuple[str, ...]:
    """What can run one of them."""
    return engines_of(_content(name))


def engines_of(content: Mapping[str, Any]) -> tuple[str, ...]:
    """What can run a scenario: some of what it may ask for goes by the machine's clock."""
    for key, simulated in SIMULATED.items():
        section, _, last = key.partition(".")
        if content.get(section, {}).get(last, simulated) != simulated:
            return ("mininet",)
    return ("sim", "mininet")


@cache
def _content(name: str) -> dict[str, Any]:
    return dict(read_yaml(SCENARIOS / f"{name}.yaml"))

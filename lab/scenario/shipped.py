"""The scenarios that ship, and what each says of itself: told without reading what else they say.

A shell asks on every key, and would wait for the model of all keys.
"""

from __future__ import annotations

from lab.machine.paths import SCENARIOS
from traffic.reading import read_yaml


def names() -> list[str]:
    """Their names."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def about(name: str) -> str:
    """What one of them shows."""
    return str(read_yaml(SCENARIOS / f"{name}.yaml").get("about", "")).strip()

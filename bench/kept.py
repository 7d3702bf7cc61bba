"""Figures that follow from closlab's code and a scenario alone, kept by the content of both.

They lie beside what is built, so that who was interrupted goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable

from lab.machine.sources import cache_key
from lab.scenario.model import Scenario
from switch.cache import kept


def figures(kind: str, scenario: Scenario, make: Callable[[], str], besides: bytes = b"") -> str:
    """What was made of a scenario, and of what else it read; now, if it never was."""
    name = f"{kind}-{cache_key(scenario.model_dump_json(), besides)}"
    return kept(name, lambda path: path.write_text(make())).read_text()

"""Figures that follow from closlab's code and a scenario alone, kept by the content of both.

They lie beside what is built, so that who was interrupted goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from lab.machine.paths import ROOT
from lab.scenario.model import Scenario
from switch.build import digest
from switch.cache import kept

_ROOMS = (
    *("compiler", "controller", "course", "files", "lab", "p4src", "params", "switch"),
    *("topologies", "traffic", "views"),
)
_CODE = {".py", ".p4", ".c", ".h"}


def figures(kind: str, scenario: Scenario, make: Callable[[], str], besides: bytes = b"") -> str:
    """What was made of a scenario, and of what else it read; now, if it never was."""
    name = f"{kind}-{digest(_sources(), scenario.model_dump_json(), besides)}"
    return kept(name, lambda path: path.write_text(make())).read_text()


@cache
def _sources() -> str:
    """A name for all that a figure can follow from but the scenario."""
    files = (file for room in _ROOMS for file in sorted((ROOT / room).rglob("*.[chp]*")))
    return digest(*(file.read_bytes() for file in files if file.suffix in _CODE))

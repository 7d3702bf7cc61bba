"""Where things lie."""

from __future__ import annotations

import os
from pathlib import Path

from lab.machine.building import building
from switch.cache import cache_dir

ROOT = Path(__file__).resolve().parent.parent.parent
FABRIC_PROGRAM = ROOT / "p4src" / "fabric.p4"
SCENARIOS = ROOT / "scenarios"
CONGA_DISSECTOR = ROOT / "lab" / "wireshark" / "conga.lua"
SHELL_ENVIRONMENT = ROOT / ".venv-shell"


def running_labs() -> Path:
    """The folder in which running labs leave word of themselves."""
    if chosen := os.environ.get("CLOSLAB_RUNNING"):
        return Path(chosen)
    with building():
        return cache_dir() / "labs"

"""A name for all that a simulated run follows from, but for what was asked of it."""

from __future__ import annotations

from functools import cache

from lab.machine.paths import ROOT
from switch.build import digest

_ROOMS = (
    *("compiler", "controller", "files", "p4src", "params", "switch", "topologies", "traffic"),
    *("lab/engines", "lab/machine", "lab/results", "lab/runs", "lab/scenario"),
)
_CODE = {".py", ".p4", ".c", ".h"}


def cache_key(*parts: bytes | str) -> str:
    """A name for what follows from these and the code: the same for the same of both."""
    return digest(_sources(), *parts)


@cache
def _sources() -> str:
    files = (file for room in _ROOMS for file in sorted((ROOT / room).rglob("*.[chp]*")))
    return digest(*(file.read_bytes() for file in files if file.suffix in _CODE))

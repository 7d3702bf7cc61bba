"""What a simulated run of the stock program needs, for a target: python -m lab.engines.cross.

The target is named by CLOSLAB_TARGET (`switch/target.py`). What is made lies in the cache under the
names that are asked for there; where, is printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lab.engines.sim import native
from lab.machine import fixed_addresses, program
from switch import build
from switch.dataplane import Program


def made() -> Iterator[Path]:
    """Its shared objects, and what the program says."""
    yield build.runtime_library()
    yield native.built()
    if (aim := build.made_for()) is None or aim.name.endswith("-linux"):
        yield fixed_addresses.built()
    stock = [*program.parts_of_stock()]
    yield from stock
    yield Program.load(stock[0].read_bytes()).library


if __name__ == "__main__":
    for path in made():
        print(path)

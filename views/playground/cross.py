"""C for a tab, compiled here: python -m views.playground.cross, with CLOSLAB_TARGET=wasm32.

What is made lies in the cache under the names that a tab asks for; where, is printed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from lab.engines.sim import native
from lab.machine import program
from switch import build
from switch.dataplane import Program


def made() -> Iterator[Path]:
    """All shared objects that a simulation of the stock program needs."""
    yield build.runtime_library()
    yield native.built()
    with tempfile.TemporaryDirectory() as folder:
        stock = program.build(Path(folder))
        yield Program.load(stock.json.read_bytes()).library


if __name__ == "__main__":
    for path in made():
        print(path)

"""``closlab bench [NAME]``: the measurements in ``bench/``.

Each is a module that says so in its first line and has a ``main`` that takes its own words.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from lab.machine.paths import ROOT
from lab.machine.speed import processor_slowness

_NOTEWORTHY = 1.2


def main(arguments: list[str]) -> int:
    """Measure: closlab bench [NAME]."""
    measures = {
        path.stem: path
        for path in sorted((ROOT / "bench").glob("[a-z]*.py"))
        if path.read_text().startswith(f'"""`closlab bench {path.stem}`')
    }
    if not arguments or arguments[0] in ("-h", "--help"):
        for name, path in measures.items():
            print(f"{name:10} {_title(path)}")
        return 0
    name, *words = arguments
    if name not in measures:
        print(
            f"closlab: there is no benchmark '{name}'\nThere is: {', '.join(measures)}",
            file=sys.stderr,
        )
        return 2
    if (times := processor_slowness()) > _NOTEWORTHY:
        print(
            f"This machine takes {times:.1f} times the processor time of the one that "
            "docs/performance.md has its figures from.",
            file=sys.stderr,
        )
    result = importlib.import_module(f"bench.{name}").main(words)
    return int(result or 0)


def _title(path: Path) -> str:
    """What a benchmark's first line says, its own command left out."""
    first = path.read_text().lstrip('"').partition("\n")[0]
    return first.partition("`: ")[2] or first

"""`closlab bench start`: how long one waits for the fabric program to run, and a run to begin.

`cold` is from P4 to running code with nothing cached, not even the run-time; `cached` the same
again; `run` a simulated run from the start of Python until its time begins: command line, scenario,
switches and hosts built and told. Each is a process of its own, and the least of several.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench import add_cases

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOADED = """
import sys
from pathlib import Path
from lab.machine.program import build
from switch.dataplane import Dataplane, Program
with Dataplane("leaf1", Program.load(build(Path(sys.argv[1])).json.read_bytes())):
    pass
"""
_BEGUN = """
import sys
from lab import start
from lab.engines.sim import engine
engine._Course.run = lambda course: sys.exit(0)
sys.argv = ["closlab", "run", "hello", "--engine", "sim", "--out", sys.argv[1]]
start.main()
"""
CASES = {
    "cold": ("from P4 to running code, nothing cached", _LOADED),
    "cached": ("the same, cached", _LOADED),
    "run": ("a cached run until its time begins", _BEGUN),
}


class Waited(NamedTuple):
    """What a case took."""

    seconds: float
    processor_s: float


def waited(code: str, cache: Path) -> Waited:
    """Run this in a process of its own, with this cache."""
    before, began = _processor_s(), time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            [sys.executable, "-c", code, out],
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
            cwd=Path(__file__).parent.parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    return Waited(time.perf_counter() - began, _processor_s() - before)


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(case: str, runs: int, cache: Path | None = None) -> Waited:
    """The least of several runs; ``cache`` has been used before."""
    code = CASES[case][1]
    taken = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as fresh:
            taken.append(waited(code, cache or Path(fresh)))
    return Waited(*(min(each) for each in zip(*taken, strict=True)))


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="closlab bench start", description=__doc__)
    add_cases(parser, CASES)
    parser.add_argument("--runs", type=int, default=3, help="of each, of which the least counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    told = parser.parse_args(arguments)
    found = {}
    with tempfile.TemporaryDirectory() as kept:
        for case in told.cases:
            cache = None if case == "cold" else Path(kept)
            if cache:
                waited(CASES[case][1], cache)
            found[case] = measured(case, told.runs, cache)
            title = CASES[case][0]
            wall, processor = found[case]
            print(f"{title:42} {wall:6.2f} s, {processor:6.2f} s of processors", flush=True)
    if told.json:
        told.json.write_text(json.dumps({c: f._asdict() for c, f in found.items()}, indent=2))
    return 0

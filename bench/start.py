"""`closlab bench start`: how long one waits for the fabric program to run, and a run to begin.

`cold` is from P4 to running code with nothing cached, not even the run-time; `new` with nothing of
the program, which is what one waits for who changed it; `well` the same, built as well as can be,
as it is for Mininet, where the others are built quickly; `cached` the same again; `run` a simulated
run from the start of Python until its time begins: command line, scenario, switches and hosts built
and told; `python` is an interpreter that is given nothing to do. Each is a process of its own, and
the least of several.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench import add_cases, children_s

_LOADED = """
import sys
from pathlib import Path
from lab.machine.program import build
from switch.dataplane import Dataplane, Program
is_soon = {is_soon}
json = build(Path(sys.argv[1]), soon=is_soon).json
with Dataplane("leaf1", Program.load(json.read_bytes(), soon=is_soon)):
    pass
"""
_SOON, _WELL = _LOADED.format(is_soon=True), _LOADED.format(is_soon=False)
_RUNTIME = "from switch.build import runtime_library; runtime_library()"
_BEGUN = """
import gc, os, sys
gc.disable()  # as `start` does before it has anything read
from lab import start
from lab.engines.sim import engine
engine._Course.run = lambda course: os._exit(0)
sys.argv = ["closlab", "run", "hello", "--engine", "sim", "--out", sys.argv[1]]
start.main()
"""


class Case(NamedTuple):
    """What is done, and what was done before; a cache that was used once can only be used again."""

    title: str
    code: str
    before: str = ""


CASES = {
    "cold": Case("from P4 to running code, nothing cached", _SOON),
    "new": Case("the same, but for the run-time", _SOON, _RUNTIME),
    "well": Case("likewise, built as well as can be", _WELL, _RUNTIME),
    "cached": Case("the same, cached", _WELL, _WELL),
    "run": Case("a cached run until its time begins", _BEGUN, _BEGUN),
    "python": Case("Python alone, to compare with", "pass"),
}


class Waited(NamedTuple):
    """What a case took."""

    seconds: float
    processor_s: float


def waited(code: str, cache: Path) -> Waited:
    """Run this in a process of its own, with this cache."""
    before, began = children_s(), time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            [sys.executable, "-c", code, out],
            env=os.environ | {"XDG_CACHE_HOME": str(cache)},
            cwd=Path(__file__).parent.parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    return Waited(time.perf_counter() - began, children_s() - before)


def measured(case: Case, runs: int) -> Waited:
    """The least of several runs, each with a cache in which is what was there before."""
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        before.mkdir()
        if case.before:
            waited(case.before, before)
        for number in range(runs):
            is_cached = case.code == case.before
            cache = before if is_cached else shutil.copytree(before, Path(folder) / str(number))
            taken.append(waited(case.code, cache))
    return Waited(*(min(each) for each in zip(*taken, strict=True)))


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="closlab bench start", description=__doc__)
    add_cases(parser, CASES)
    parser.add_argument("--runs", type=int, default=3, help="of each, of which the least counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    given = parser.parse_args(arguments)
    found = {}
    for name in given.cases:
        wall, processor = found[name] = measured(CASES[name], given.runs)
        print(f"{CASES[name].title:42} {wall:6.2f} s, {processor:6.2f} s of processors", flush=True)
    if given.json:
        given.json.write_text(json.dumps({c: f._asdict() for c, f in found.items()}, indent=2))
    return 0

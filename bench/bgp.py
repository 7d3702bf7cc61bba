"""`closlab bench bgp`: what switches that find their ways themselves take, in this machine's time.

    closlab bench bgp [CASE...] [--runs N]

    routed    4 leaves, 2 spines: from FRR's start until all routes are in tables
    cut       a cable is cut: until the last switch goes round it
    silence   a cable loses everything and does not go down: likewise, with BFD at 3 x 300 ms
    restart   a bgpd dies under traffic: packets that found no route

Each is a scenario that runs N times, ten if nothing is said. A run that does not believe itself,
for this machine was too busy, is counted as such. What is promised is promised of the worst.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench import CLOSLAB, add_cases
from lab.machine import tools
from params.data import Data

Figure = Callable[[dict[str, Any]], float]


class Case(Data):
    """A figure of a scenario's runs, and what it may be."""

    scenario: str
    figure: Figure
    unit: str
    most: float

    def run(self, out: Path) -> tuple[float, bool]:
        """The figure of a run, and whether that believes itself."""
        words = ["run", self.scenario, "--control", "bgp", "--out", str(out)]
        done = subprocess.run(
            [*CLOSLAB, *words],
            capture_output=True,
            text=True,
            check=False,
        )
        if not (out / "result.json").exists():
            raise SystemExit(f"closlab: {self.scenario}: {done.stderr.strip()[-500:]}")
        result = json.loads((out / "result.json").read_text())
        return self.figure(result), bool(result["fidelity"]["ok"])


def _last_rerouted(result: dict[str, Any]) -> float:
    """From when a fault began until the last switch goes another way."""
    return float(result["control"]["faults"][0]["last_s"])


def _without_route(result: dict[str, Any]) -> float:
    """Packets that ended at a switch for want of a route."""
    return float(result["drops"]["by_reason"].get("no_route", 0))


CASES = {
    "routed": Case("hello", lambda result: float(result["control"]["routed_s"]), "s", 6.0),
    "cut": Case("bgp-clos", _last_rerouted, "s", 1.5),
    "silence": Case("silent-failure", _last_rerouted, "s", 1.5),
    "restart": Case("leaf-restart", _without_route, "", 0.0),
}


def line(figures: Sequence[float], believed: int, case: Case) -> str:
    """A case's figures in a line."""
    unit = f" {case.unit}" if case.unit else ""
    each = " ".join(f"{figure:g}" for figure in sorted(figures))
    return (
        f"{min(figures):g} to {max(figures):g}{unit}, median {median(figures):g} (at most "
        f"{case.most:g}{unit}); {believed} of {len(figures)} runs believe themselves: {each}"
    )


def main(arguments: Sequence[str]) -> int:
    """Run cases, and say what they took; 1 if one of them took more than is promised."""
    parser = argparse.ArgumentParser(prog="closlab bench bgp", description=__doc__)
    add_cases(parser, CASES)
    parser.add_argument("--runs", type=int, default=10, help="of each")
    words = parser.parse_args(arguments)
    if words.runs < 1:
        parser.error("--runs: at least 1")
    tools.require_compiler()
    tools.require_emulation()
    tools.require_frr()
    is_kept = True
    for name in words.cases:
        case = CASES[name]
        runs = []
        for _ in range(words.runs):
            with tempfile.TemporaryDirectory() as folder:
                runs.append(case.run(Path(folder)))
        figures = [figure for figure, _ in runs]
        print(f"{name:8} {line(figures, sum(ok for _, ok in runs), case)}", flush=True)
        is_kept = is_kept and max(figures) <= case.most
    return 0 if is_kept else 1

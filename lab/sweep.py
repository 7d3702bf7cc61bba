"""``closlab sweep``: a scenario under several seeds or values, in parallel processes, as one table.

    closlab sweep incast --vary seed=1..8
    closlab sweep incast --vary pfc.enabled=true,false --vary traffic.bytes=1MB,4MB

Every combination is a run of its own in the simulator, with its own folder of results; the table
and `sweep.csv` hold what one usually compares. One that fails is told and does not stop the others.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lab import scenario
from lab.engines import RunOptions
from lab.errors import LabError, RunError
from lab.parallel import in_parallel
from lab.run import INTERRUPTED, run_quietly

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
MOST_RUNS = 10_000

# What the table shows: a heading, and where in result.json the figure stands.
FIGURES = {
    "end_ms": ("duration_ns", 1e-6),
    "jct_ms": ("jct_ns", 1e-6),
    "fct_p50_us": ("flows.fct_ns.p50", 1e-3),
    "fct_max_us": ("flows.fct_ns.max", 1e-3),
    "failed": ("flows.failed", 1),
    "drops": ("drops.total", 1),
    "retransmitted": ("roce.retransmitted_packets", 1),
    "xoff": ("pfc.xoff_frames", 1),
    "marked": ("ecn.marked_packets", 1),
    "busbw_gbps": ("collective.busbw_gbps", 1),
    "gpu": ("gpu_utilisation", 1),
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One run of a sweep."""

    name: str
    number: int
    changes: tuple[str, ...]
    out: Path


def values_of(vary: str) -> list[str]:
    """The changes one ``--vary KEY=...`` stands for."""
    key, separator, text = vary.partition("=")
    if not separator or not key or not text:
        raise RunError(
            f"--vary {vary}: write it as KEY=VALUE,VALUE or KEY=FIRST..LAST",
            "Such as --vary seed=1..8 or --vary lb.policy=ecmp,spray",
        )
    found = _RANGE.fullmatch(text)
    if found:
        first, last = int(found[1]), int(found[2])
        if last < first or last - first >= MOST_RUNS:
            raise RunError(f"--vary {vary}: from {first} to {last} is no range to run")
        return [f"{key}={value}" for value in range(first, last + 1)]
    return [f"{key}={value}" for value in text.split(",")]


def sweep(
    name: str,
    changes: Sequence[str],
    varied: Sequence[str],
    out: Path,
    processes: int | None,
    console: Console,
) -> int:
    """Run all combinations; the exit code says whether each of them could be run."""
    if not varied:
        raise RunError("there is nothing to vary", "Add --vary seed=1..8, for instance.")
    variants = [
        Variant(name, number, (*changes, *combination), out / str(number))
        for number, combination in enumerate(product(*map(values_of, varied)), 1)
    ]
    for variant in variants:
        scenario.load(name, variant.changes)  # before anything starts: all must make sense
    rows: dict[int, dict[str, Any]] = {}
    failures: list[str] = []
    try:
        for variant, outcome in in_parallel(run_one, variants, processes, console):
            if isinstance(outcome, str):
                failures.append(f"{' '.join(variant.changes)}: {outcome}")
            else:
                rows[variant.number] = outcome
        is_whole = True
    except KeyboardInterrupt:
        is_whole = False
    if rows:
        _conclude(variants, len(changes), rows, out, console)
    for failure in failures:
        console.print(f"[red]{failure}[/]", highlight=False)
    if not is_whole:
        kept = f"{len(rows)} of {len(variants)} runs are kept in {out}/"
        console.print(f"Interrupted: {kept if rows else 'not one run was over yet.'}")
        return INTERRUPTED
    return 1 if failures else 0


def run_one(variant: Variant) -> dict[str, Any] | str:
    """Run a variant in this process: its figures, or what went wrong."""
    try:
        variant.out.mkdir(parents=True, exist_ok=True)
        options = RunOptions(out=variant.out, engine="sim")
        chosen = scenario.load(variant.name, variant.changes)
        result = run_quietly(chosen, options, Console(file=io.StringIO()))
    except LabError as error:
        return error.message
    except OSError as error:
        return str(error)
    return {heading: _scaled(result.figure(key), unit) for heading, (key, unit) in FIGURES.items()}


def _scaled(value: float | None, unit: float) -> float | None:
    return value if value is None or unit == 1 else value * unit


def _conclude(
    variants: Sequence[Variant],
    fixed: int,
    rows: dict[int, dict[str, Any]],
    out: Path,
    console: Console,
) -> None:
    """Write and print the table, without columns that say nothing."""
    keys = [change.partition("=")[0] for change in variants[0].changes[fixed:]]
    shown = [h for h in FIGURES if any(row[h] is not None for row in rows.values())]
    with (out / "sweep.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("run", *keys, *shown))
        for variant in variants:
            if variant.number in rows:
                values = [change.partition("=")[2] for change in variant.changes[fixed:]]
                row = rows[variant.number]
                writer.writerow((variant.number, *values, *(row[h] for h in shown)))
    shown = [h for h in shown if any(row[h] for row in rows.values())]
    table = Table()
    for heading in (*keys, *shown):
        table.add_column(heading, justify="right", overflow="fold")
    for variant in variants:
        if variant.number in rows:
            values = [change.partition("=")[2] for change in variant.changes[fixed:]]
            table.add_row(*values, *(_text(rows[variant.number][h]) for h in shown))
    console.print(table)
    console.print(f"Kept in {out}/: sweep.csv, and each run by its number", highlight=False)


def _text(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"

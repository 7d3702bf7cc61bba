"""``closlab sweep``: a scenario under several seeds or values, in parallel processes, as one table.

    closlab sweep incast --vary seed=1..8
    closlab sweep incast --vary pfc.enabled=true,false --vary traffic.bytes=1MB,4MB

Every combination is a run of its own, in the simulator or on Mininet, with a folder of its own. The
table and `report.html` have what one looks at first, `sweep.csv` all figures, by their place in
result.json. A run that fails is told and does not stop the others.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lab.engines import RunOptions
from lab.errors import LabError, RunError
from lab.machine.parallel import in_parallel
from lab.progress import Stages
from lab.report import REPORT, Sweep, SweptRun, read_run, write_sweep
from lab.report.again import closlab_of
from lab.report.numbers import FIGURES
from lab.report.sweep import as_numbers
from lab.results.result import Result
from lab.runs.apart import run_apart
from lab.runs.provenance import closlab_now
from lab.runs.run import INTERRUPTED, run_quietly
from lab.scenario import catalogue

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
MOST_RUNS = 10_000
_BORDER = 3  # of a table's column


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
    engine: str = "sim",
) -> int:
    """Run all combinations; the exit code says whether each of them could be run."""
    if not varied:
        raise RunError("there is nothing to vary", "Add --vary seed=1..8, for instance.")
    variants = [
        Variant(name, number, (*changes, *combination), out / str(number))
        for number, combination in enumerate(product(*map(values_of, varied)), 1)
    ]
    # Before anything starts: all must make sense.
    first, *_ = [catalogue.load(name, variant.changes) for variant in variants]
    rows: dict[int, dict[str, float]] = {}
    failures: list[str] = []
    try:
        outcomes = (
            in_parallel(run_one, variants, processes, console)
            if engine == "sim"
            else _one_by_one(variants, console)
        )
        for variant, outcome in outcomes:
            if isinstance(outcome, str):
                failures.append(f"{' '.join(variant.changes)}: {outcome}")
            else:
                rows[variant.number] = outcome
        is_whole = True
    except KeyboardInterrupt:
        is_whole = False
    if rows:
        fixed = len(changes)
        found = Sweep(
            scenario=first.name,
            about=first.about.strip(),
            fixed=tuple(changes),
            keys=tuple(change.partition("=")[0] for change in variants[0].changes[fixed:]),
            runs=tuple(
                SweptRun(v.number, _values(v.changes[fixed:]), rows[v.number])
                for v in variants
                if v.number in rows
            ),
            asked=len(variants),
            command=_command(name, changes, varied, engine),
            engine=engine,
            made=closlab_of(closlab_now()),
        )
        _write_csv(found, out / "sweep.csv")
        write_sweep(found, out / REPORT)
        console.print(_table(found, console.width))
        console.print(
            f"With pictures: {out}/{REPORT}; all figures: {out}/sweep.csv; each run by its number.",
            highlight=False,
            soft_wrap=True,
        )
    for failure in failures:
        console.print(f"[red]{failure}[/]", highlight=False)
    if not is_whole:
        kept = f"{len(rows)} of {len(variants)} runs are kept in {out}/"
        console.print(f"Interrupted: {kept if rows else 'not one run was over yet.'}")
        return INTERRUPTED
    return 1 if failures else 0


def _command(name: str, changes: Sequence[str], varied: Sequence[str], engine: str) -> str:
    """What makes a sweep again."""
    told = () if engine == "sim" else ("--engine", engine)
    options = [("--set", change) for change in changes] + [("--vary", vary) for vary in varied]
    return shlex.join(
        ("closlab", "sweep", name, *told, *(word for pair in options for word in pair))
    )


def _values(changes: Sequence[str]) -> tuple[str, ...]:
    return tuple(change.partition("=")[2] for change in changes)


def run_one(variant: Variant) -> dict[str, float] | str:
    """Run a variant in this process: its figures by their keys, or what went wrong."""
    try:
        variant.out.mkdir(parents=True, exist_ok=True)
        options = RunOptions(out=variant.out, engine="sim")
        chosen = catalogue.load(variant.name, variant.changes)
        result = run_quietly(chosen, options, Console(file=io.StringIO()))
    except LabError as error:
        return error.message
    except OSError as error:
        return str(error)
    return _figures(result)


def _one_by_one(
    variants: Sequence[Variant], console: Console
) -> Iterator[tuple[Variant, dict[str, float] | str]]:
    """Variants on Mininet, each of which wants the machine for itself, with what came of them."""
    with Stages(console)("Running on Mininet, one by one", len(variants)) as stage:
        for variant in variants:
            yield variant, run_emulated(variant)
            stage.advance()
        stage.note = f"{len(variants)} runs"


def run_emulated(variant: Variant) -> dict[str, float] | str:
    """Run a variant on Mininet: its figures by their keys, or what went wrong."""
    try:
        run_apart(variant.name, variant.changes, "mininet", variant.out)
        return _figures(read_run(variant.out).result)
    except LabError as error:
        return error.message
    except OSError as error:
        return str(error)


def _figures(result: Result) -> dict[str, float]:
    found = {figure.key: figure.of(result) for figure in FIGURES}
    return {key: value for key, value in found.items() if value is not None}


def _write_csv(sweep: Sweep, path: Path) -> None:
    """All figures that apply, named as in result.json and in its units."""
    keys = [figure.key for figure in FIGURES if any(figure.key in r.figures for r in sweep.runs)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("run", *sweep.keys, *keys))
        columns = map(as_numbers, zip(*(run.values for run in sweep.runs), strict=True))
        for run, values in zip(sweep.runs, zip(*columns, strict=True), strict=True):
            figures = (run.figures.get(key, "") for key in keys)
            writer.writerow((run.number, *values, *figures))


def _table(sweep: Sweep, width: int) -> Table:
    """The figures one looks at first, as many as there is room for."""
    table = Table()
    for at, key in enumerate(sweep.short_keys):
        table.add_column(key, justify="right", no_wrap=True)
        width -= max(len(key), *(len(run.values[at]) for run in sweep.runs)) + _BORDER
    shown = []
    for figure in sweep.main:
        told = [figure.read(run.figures.get(figure.key)) for run in sweep.runs]
        needs = max(map(len, (*told, *figure.name.split())))
        width -= needs + _BORDER
        if width < _BORDER:
            break
        table.add_column(figure.name, justify="right", min_width=needs)
        shown.append(told)
    for run, figures in zip(sweep.runs, zip(*shown, strict=True), strict=True):
        table.add_row(*run.values, *figures)
    return table

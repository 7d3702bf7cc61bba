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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lab.engines import RunOptions
from lab.errors import LabError, RunError
from lab.machine.dask_cluster import on_dask
from lab.machine.parallel import in_parallel
from lab.machine.paths import writing_to
from lab.machine.scratch import scratch
from lab.progress import Hear, Stages
from lab.results.result import Result
from lab.runs.child import run_in_child
from lab.runs.provenance import closlab_now
from lab.runs.run import INTERRUPTED, clear, run_quietly
from lab.scenario import catalogue
from lab.scenario.model import Scenario
from params.data import Data
from views.report import REPORT, read_run
from views.report.again import closlab_of
from views.report.numbers import FIGURES
from views.report.sweep import Bounds, Sweep, SweptRun, as_numbers, write_sweep

_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
MAX_RUNS = 10_000
_BORDER = 3  # of a table's column


class Variant(Data):
    """One run of a sweep."""

    number: int
    scenario: Scenario
    changes: tuple[str, ...]
    out: Path


class Grid(Data):
    """What is to be run."""

    variants: tuple[Variant, ...]
    fixed: tuple[str, ...]  # changes in all of them
    out: Path
    engine: str
    command: str  # that makes it again, if one does
    bounds: Bounds = field(default_factory=dict)

    def values(self, variant: Variant) -> tuple[str, ...]:
        """What is varied, as it is in one of them."""
        return tuple(c.partition("=")[2] for c in variant.changes[len(self.fixed) :])


class Made(Data):
    """What came of it."""

    found: Sweep | None  # none: not one run was over
    done: tuple[Variant, ...]  # in their order
    failures: tuple[str, ...]
    is_whole: bool  # or interrupted


class Away(Data):
    """What came of a run on another machine."""

    outcome: dict[str, float] | str
    files: Mapping[str, bytes]  # by their names in its folder


Simulate = Callable[[Variant], dict[str, float] | str]  # figures by their keys, or what went wrong


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
        if last < first or last - first >= MAX_RUNS:
            raise RunError(f"--vary {vary}: from {first} to {last} is no range to run")
        return [f"{key}={value}" for value in range(first, last + 1)]
    return [f"{key}={value}" for value in text.split(",")]


def lay_out(
    load: Callable[[tuple[str, ...]], Scenario],
    changes: Sequence[str],
    varied: Sequence[Sequence[str]],
    out: Path,
    engine: str = "sim",
    command: str = "",
    bounds: Bounds | None = None,
) -> Grid:
    """Every combination, each loaded with its changes: all must make sense before any is run."""
    if not varied or not all(varied):
        raise RunError("there is nothing to vary", "Add --vary seed=1..8, for instance.")
    fixed = tuple(changes)
    variants = tuple(
        Variant(number, load((*fixed, *combination)), (*fixed, *combination), out / str(number))
        for number, combination in enumerate(product(*varied), 1)
    )
    return Grid(variants, fixed, out, engine, command, bounds or {})


def make(
    grid: Grid,
    processes: int | None,
    stages: Stages,
    cluster: str | None = None,
    simulate: Simulate | None = None,
) -> Made:
    """Run all of them, here or on a Dask cluster, and write the table and the report."""
    rows: dict[int, dict[str, float]] = {}
    failures: list[str] = []
    try:
        if grid.engine != "sim":
            outcomes = _one_by_one(grid.variants, stages)
        elif cluster is not None:
            outcomes = brought_home(on_dask(run_away, grid.variants, cluster, processes, stages))
        else:
            outcomes = in_parallel(simulate or run_one, grid.variants, processes, stages)
        for variant, outcome in outcomes:
            if isinstance(outcome, str):
                failures.append(f"{' '.join(variant.changes)}: {outcome}")
            else:
                rows[variant.number] = outcome
        is_whole = True
    except KeyboardInterrupt:
        is_whole = False
    done = tuple(variant for variant in grid.variants if variant.number in rows)
    if not done:
        return Made(None, done, tuple(failures), is_whole)
    first = grid.variants[0]
    found = Sweep(
        scenario=first.scenario.name,
        about=first.scenario.about.strip(),
        fixed=grid.fixed,
        keys=tuple(change.partition("=")[0] for change in first.changes[len(grid.fixed) :]),
        runs=tuple(SweptRun(v.number, grid.values(v), rows[v.number]) for v in done),
        asked=len(grid.variants),
        command=grid.command,
        engine=grid.engine,
        bounds=grid.bounds,
        made=closlab_of(closlab_now()),
    )
    with writing_to(grid.out):
        with (grid.out / "sweep.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            columns, lines = table_of(found)
            writer.writerow(columns)
            writer.writerows(lines)
        write_sweep(found, grid.out / REPORT)
    return Made(found, done, tuple(failures), is_whole)


def sweep(
    name: str,
    changes: Sequence[str],
    varied: Sequence[str],
    out: Path,
    processes: int | None,
    console: Console,
    engine: str = "sim",
    cluster: str | None = None,
) -> int:
    """Make a sweep and show it; the exit code says whether each of its runs could be made."""
    grid = lay_out(
        lambda combined: catalogue.load(name, combined),
        changes,
        [values_of(vary) for vary in varied],
        out,
        engine,
        _command(name, changes, varied, engine),
    )
    made = make(grid, processes, Stages(console), cluster)
    if made.found is not None:
        console.print(_shown(made.found, console.width))
        console.print(
            f"With pictures: {out}/{REPORT}; all figures: {out}/sweep.csv; each run by its number.",
            highlight=False,
            soft_wrap=True,
        )
    for failure in made.failures:
        console.print(f"[red]{failure}[/]", highlight=False)
    if not made.is_whole:
        kept = f"{len(made.done)} of {len(grid.variants)} runs are kept in {out}/"
        console.print(f"Interrupted: {kept if made.done else 'not one run was over yet.'}")
        return INTERRUPTED
    return 1 if made.failures else 0


def _command(name: str, changes: Sequence[str], varied: Sequence[str], engine: str) -> str:
    """What makes a sweep again."""
    engine_words = () if engine == "sim" else ("--engine", engine)
    options = [("--set", change) for change in changes] + [("--vary", vary) for vary in varied]
    return shlex.join(
        ("closlab", "sweep", name, *engine_words, *(word for pair in options for word in pair))
    )


def run_one(variant: Variant) -> dict[str, float] | str:
    """Run a variant in this process: its figures by their keys, or what went wrong."""
    try:
        variant.out.mkdir(parents=True, exist_ok=True)
        options = RunOptions(out=variant.out, engine="sim")
        result = run_quietly(variant.scenario, options, Console(file=io.StringIO()))
    except LabError as error:
        return error.message
    except OSError as error:
        return str(error)
    return _figures(result)


def run_away(variant: Variant) -> Away:
    """Run a variant where its folder may not be: what came of it, with the files it keeps."""
    with scratch() as there:
        outcome = run_one(replace(variant, out=there))
        files = {
            str(path.relative_to(there)): path.read_bytes()
            for path in sorted(there.rglob("*"))
            if path.is_file()
        }
    return Away(outcome, files)


def brought_home(
    found: Iterable[tuple[Variant, Away | str]],
) -> Iterator[tuple[Variant, dict[str, float] | str]]:
    """The same as if variants had been run here, their files where they belong."""
    for variant, away in found:
        if isinstance(away, str):
            yield variant, away
            continue
        for name, content in away.files.items():
            path = variant.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield variant, away.outcome


def _one_by_one(
    variants: Sequence[Variant], stages: Stages
) -> Iterator[tuple[Variant, dict[str, float] | str]]:
    """Variants on Mininet, each of which wants the machine for itself, with what came of them."""
    with stages("Running on Mininet, one by one", len(variants)) as stage:
        for variant in variants:
            yield variant, run_emulated(variant, lambda _now: stage.look())
            stage.advance()
        stage.note = f"{len(variants)} runs"


def run_emulated(variant: Variant, hear: Hear) -> dict[str, float] | str:
    """Run a variant on Mininet: its figures by their keys, or what went wrong."""
    try:
        variant.out.mkdir(parents=True, exist_ok=True)
        clear(variant.out)
        options = RunOptions(out=variant.out, engine="mininet", hurry=True)
        if run_in_child(variant.scenario, options, hear) == INTERRUPTED:
            raise KeyboardInterrupt
        return _figures(read_run(variant.out).result)
    except LabError as error:
        return error.message
    except OSError as error:
        return str(error)


def _figures(result: Result) -> dict[str, float]:
    found = {figure.key: figure.of(result) for figure in FIGURES}
    return {key: value for key, value in found.items() if value is not None}


def table_of(sweep: Sweep) -> tuple[list[str], list[list[object]]]:
    """Columns, and a row a run: all figures that apply, named as in result.json, in its units."""
    keys = [figure.key for figure in FIGURES if any(figure.key in r.figures for r in sweep.runs)]
    columns = map(as_numbers, zip(*(run.values for run in sweep.runs), strict=True))
    return ["run", *sweep.keys, *keys], [
        [run.number, *values, *map(run.figures.get, keys)]
        for run, values in zip(sweep.runs, zip(*columns, strict=True), strict=True)
    ]


def _shown(sweep: Sweep, width: int) -> Table:
    """The figures one looks at first, as many as there is room for."""
    table = Table()
    for at, key in enumerate(sweep.short_keys):
        table.add_column(key, justify="right", no_wrap=True)
        width -= max(len(key), *(len(run.values[at]) for run in sweep.runs)) + _BORDER
    shown = []
    for figure in sweep.main:
        values = [figure.read(run.figures.get(figure.key)) for run in sweep.runs]
        needs = max(map(len, (*values, *figure.name.split())))
        width -= needs + _BORDER
        if width < _BORDER:
            break
        table.add_column(figure.name, justify="right", min_width=needs)
        shown.append(values)
    for run, figures in zip(sweep.runs, zip(*shown, strict=True), strict=True):
        table.add_row(*run.values, *figures)
    return table

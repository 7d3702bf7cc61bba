"""The public Python API; `closlab.py` gives it its name, docs/python.md explains it.

    a name, a file, keys ──► Scenario ──► run ────► Run ─────► result, records, report
                                     ├──► sweep ──► Sweep
                                     └──► watch ──► Watch of snapshots
                                                    compare ──► Comparison

A run in the simulator is made in this process, one on Mininet in a process of its own, because its
sandbox takes over whichever process makes it. Both are the command line's own, so what is kept of
them is the same bytes. What a call began is over when it returns or raises.
"""

from __future__ import annotations

import importlib
import math
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Self, cast

import yaml
from pydantic import BaseModel

from lab.engines import RunOptions
from lab.engines.sim.partition import threads_here
from lab.errors import LabError, RunError, ScenarioError
from lab.machine.paths import alone_in, writable, writing_to
from lab.machine.scratch import kept_by_us
from lab.progress import HeardStages, Progress, until
from lab.results.causes import Why, write_causes
from lab.results.cautions import cautions
from lab.results.outcome import Note
from lab.results.result import Result
from lab.results.snapshot import Snapshot
from lab.runs import sweep as sweeps
from lab.runs.child import run_in_child
from lab.runs.run import INTERRUPTED, KEPT, check, clear, code_of, keeping, simulate
from lab.runs.why import why
from lab.scenario import catalogue, shipped
from lab.scenario.experiment import Experiment
from lab.scenario.live_actions import LiveAction
from lab.scenario.model import Scenario, remarks
from params.data import Data
from params.quantity import duration
from views.live.kept import snapshots as kept_snapshots
from views.live.lockstep import Lockstep
from views.live.outside import Outside
from views.live.pace import nanoseconds, share_of
from views.report import REPORT, KeptRun, find_runs, read_run, verdict, write_report
from views.report.compare import Comparison as Compared
from views.report.compare import write_comparison
from views.report.kept import KeptFlow
from views.report.slowdowns import SizeBin, by_size

_SNAPSHOTS = 100  # of a run that nothing holds up, unless asked for more or fewer
Table = Any
"""A pandas.DataFrame where pandas is installed; without it what `records` gives."""
Said = str | Path | Mapping[str, object] | Scenario
"""A scenario: its name, its file, its keys, or itself."""


class Cancelled(LabError):  # noqa: N818  (as asyncio's CancelledError is none to mend)
    """A run or sweep that was cancelled; `run` is what was measured until then, if anything was."""

    def __init__(self, message: str, run: Run | None = None) -> None:
        super().__init__(message)
        self.run = run


class Run(Data, eq=False, repr=False):
    """A run that was made.

    Its files stay in `folder`: for good if that was asked for with ``out``, otherwise for as long
    as this object is there.
    """

    folder: Path
    _holds: object = field(default=None)  # whatever keeps the folder there

    @cached_property
    def _kept(self) -> KeptRun:
        return read_run(self.folder)

    @property
    def result(self) -> Result:
        """All figures, named as in result.json (docs/results.md)."""
        return self._kept.result

    @property
    def scenario(self) -> Scenario:
        """What was run, with all keys."""
        return self.result.scenario

    @property
    def code(self) -> int:
        """What the command would have ended with: 0; 1, not all arrived; 3, not to be trusted; 4,
        lossless classes lost by the scenario's choice.
        """
        return code_of(self.result)

    @property
    def cautions(self) -> list[str]:
        """What the command would have warned of: what is in vain, and what to read with care."""
        return [*remarks(self.scenario), *cautions(self.result)]

    @cached_property
    def verdict(self) -> str:
        """What its report begins with: who suffered, from whom and by how much, in a sentence."""
        return verdict(self._kept)

    @cached_property
    def flows(self) -> Table:
        """Every message: flows.csv."""
        return _table(KeptFlow._fields, self._kept.flows)

    @cached_property
    def slowdowns(self) -> Table:
        """How many times as long as alone messages took, by their sizes: half of a bin of about a
        tenth of all, 95, 99 and 99.9 % of it."""
        return _table(SizeBin._fields, by_size(self._kept))

    @cached_property
    def timeseries(self) -> Table:
        """Queues, pauses, marks and drops over time: timeseries.csv."""
        return _table(Note._fields, self._kept.notes)

    def why(self, what: str | None = None) -> Why:
        """What a message (SRC-DST), a host's worst, a job or the ``run`` was held up by, else the
        message slowed most: what was taken away, and what share of the time lost each gave back."""
        found = why(self.folder, what, HeardStages(lambda _: None), self._p4)
        with writing_to(self.folder):
            write_causes(self.folder, found)
            (self.folder / REPORT).unlink(missing_ok=True)  # it is to show it
        return found

    @property
    def _p4(self) -> Path | None:
        source = self.result.provenance.get("p4")
        return Path(source) if source else None

    def report(self) -> Path:
        """The report, written if it was not yet."""
        page = self.folder / REPORT
        with writing_to(self.folder):
            return page if page.exists() else write_report(self.folder)

    def __repr__(self) -> str:
        """In a line."""
        flows = self.result.flows
        return (
            f"<closlab.Run of {self.scenario.name} on {self.result.engine}: "
            f"{flows.completed} of {flows.count} messages in {duration(self.result.duration_ns)}>"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the report."""
        return _framed(self.report())


class Watch(Iterator[Snapshot]):
    """A run while it lasts: snapshots, one after the other; `run` when there are no more.

    In the simulator time stands still between two of them, on Mininet it does not. Whoever has seen
    enough closes it, as leaving a ``with`` does, which ends the run.
    """

    def __init__(self, snapshots: Iterator[Snapshot], wish: Callable[[str], None]) -> None:
        self._snapshots = snapshots
        self._wish = wish
        self.run: Run | None = None

    def __next__(self) -> Snapshot:
        """The next one."""
        return next(self._snapshots)

    def do(self, words: str) -> None:
        """Have something done to the fabric, such as "fail leaf1-spine1", "mend leaf1-spine1" or
        "lb spray": when the next snapshot is asked for, so that it is the same in every run; on
        Mininet at once."""
        self._wish(words)

    def close(self) -> None:
        """End the run, if it is not over."""
        cast("Generator[Snapshot]", self._snapshots).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Comparison(Data, eq=False, repr=False):
    """Runs side by side."""

    runs: tuple[Run, ...]
    compared: Compared
    folder: Path
    _holds: object = field(default=None)

    @cached_property
    def table(self) -> Table:
        """A figure a row, a run a column, in the units of result.json."""
        compared = self.compared
        rows = [(f.key, *(f.of(run.result) for run in compared.runs)) for f in compared.figures]
        return _table(("figure", *compared.names), rows)

    @cached_property
    def _page(self) -> Path:
        with writing_to(self.folder):
            return write_comparison(self.compared, self.folder)

    def report(self) -> Path:
        """The report, written if it was not yet: what lies there may be of other runs."""
        return self._page

    def __repr__(self) -> str:
        """In a line."""
        return f"<closlab.Comparison of {', '.join(self.compared.names)}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the report."""
        return _framed(self.report())


class Sweep(Data, eq=False, repr=False):
    """A scenario under several settings."""

    runs: tuple[Run, ...]  # those that could be made, in the order of their settings
    failures: tuple[str, ...]  # of the others: which, and why
    folder: Path
    _rows: tuple[list[str], list[list[object]]]  # columns, and a row a run
    _holds: object = field(default=None)

    @cached_property
    def table(self) -> Table:
        """A run a row: what was varied, and all figures, named as in result.json."""
        return _table(*self._rows)

    def report(self) -> Path:
        """The report, written when the sweep was over."""
        return self.folder / REPORT

    def __repr__(self) -> str:
        """In a line."""
        return f"<closlab.Sweep: {len(self.runs)} runs, {len(self.failures)} failures>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the report."""
        return _framed(self.report())


def run(
    scenario: Said,
    *,
    engine: str = "sim",
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    switch: str = "soft",
    dilation: int | None = None,
    p4: str | Path | None = None,
    out: str | Path | None = None,
    progress: Callable[[Progress], object] | None = None,
    cancel: threading.Event | None = None,
) -> Run:
    """Run a scenario to its end."""
    chosen = _scenario(scenario, set, seed)
    folder, holds = _folder(out)
    options = RunOptions(
        out=folder,
        engine=engine,
        switch=switch,
        dilation=dilation,
        hurry=True,
        p4=None if p4 is None else Path(p4),
        threads=threads_here(),
    )
    hear = until(cancel, progress)
    try:
        check(options)
        with alone_in(folder):
            clear(folder)
            if engine == "sim":
                stages = HeardStages(hear)
                code = simulate(chosen, options, stages, keeping(options, stages))
            else:
                code = run_in_child(chosen, options, hear)
    except KeyboardInterrupt:
        if not _is_set(cancel):
            raise
        raise Cancelled("cancelled before anything was measured") from None
    if code != INTERRUPTED:
        return Run(folder, holds)
    if not _is_set(cancel):
        raise KeyboardInterrupt
    if not (folder / KEPT[0]).exists():
        raise Cancelled("cancelled before anything was measured")
    raise Cancelled("cancelled; what was measured until then is in its run", Run(folder, holds))


def watch(
    scenario: Said | Run,
    *,
    engine: str = "sim",
    every: str | int | None = None,
    set: Mapping[str, object] | None = None,
    seed: int | None = None,
    dilation: int | None = None,
    p4: str | Path | None = None,
    out: str | Path | None = None,
) -> Watch:
    """Run a scenario and look at it meanwhile; or look at a run that was kept."""
    every_ns = None if every is None else nanoseconds(every, "every")
    if isinstance(scenario, Run):
        if (engine, set, seed, dilation, p4, out) != ("sim", None, None, None, None, None):
            raise RunError("a run that was kept is as it is: nothing else goes with it but every")
        watch = Watch(kept_snapshots(scenario._kept, every_ns or 1), _no_wish)
        watch.run = scenario
        return watch
    chosen = _scenario(scenario, set, seed)
    experiment = Experiment.of(chosen)
    folder, holds = _folder(out)
    options = RunOptions(
        out=folder,
        engine=engine,
        dilation=dilation,
        p4=None if p4 is None else Path(p4),
        threads=threads_here(),
    )
    check(options)
    clear(folder)
    turns = Lockstep(every_ns or share_of(experiment, _SNAPSHOTS))
    outside = Outside(every_ns or 0)

    def simulated() -> Iterator[Snapshot]:
        stages = HeardStages(lambda _: None)
        return turns.snapshots(
            lambda: simulate(chosen, options, stages, keeping(options, stages), lambda _: turns)
        )

    def emulated() -> Iterator[Snapshot]:
        return outside.snapshots(lambda hear, found: run_in_child(chosen, options, hear, found))

    def snapshots() -> Iterator[Snapshot]:
        yield from simulated() if engine == "sim" else emulated()
        watch.run = Run(folder, holds)

    def wish(words: str) -> None:
        asked = LiveAction.read(words, experiment.fabric)
        if engine == "sim":
            turns.wishes.append(asked)
        else:
            outside.do(words)

    watch = Watch(snapshots(), wish)
    return watch


def _no_wish(_: str) -> None:
    raise RunError("a run that was kept is over: nothing can be done to its fabric")


def sweep(
    scenario: Said,
    vary: Mapping[str, Iterable[object]],
    *,
    engine: str = "sim",
    set: Mapping[str, object] | None = None,
    processes: int | None = None,
    out: str | Path | None = None,
    progress: Callable[[Progress], object] | None = None,
    cancel: threading.Event | None = None,
) -> Sweep:
    """Run a scenario under every combination of values; on Mininet one by one."""
    varied = [[change_of(key, value) for value in values] for key, values in vary.items()]
    changes = _changes(set)
    folder, holds = _folder(out)
    grid = sweeps.lay_out(lambda every: _read(scenario, every), changes, varied, folder, engine)
    check(RunOptions(out=folder, engine=engine))
    made = sweeps.make(grid, processes, HeardStages(until(cancel, progress)))
    if not made.is_whole:
        if _is_set(cancel):
            raise Cancelled(
                f"cancelled when {len(made.done)} of {len(grid.variants)} runs were made"
            )
        raise KeyboardInterrupt
    runs = tuple(Run(variant.out, holds) for variant in made.done)
    if made.found is None:
        raise RunError("not one run of the sweep could be made", "\n".join(made.failures))
    columns, rows = sweeps.table_of(made.found)
    end = 1 + len(made.found.keys)
    rows_of_values = [[row[0], *map(_value, row[1:end]), *row[end:]] for row in rows]
    return Sweep(runs, made.failures, folder, (columns, rows_of_values), holds)


def compare(*runs: Run | str | Path, out: str | Path | None = None) -> Comparison:
    """Put runs, or what lies in folders of runs, side by side."""
    found = [
        made
        for given in runs
        for made in ([given] if isinstance(given, Run) else map(Run, find_runs(Path(given))))
    ]
    compared = Compared.of([run.folder for run in found])
    return Comparison(tuple(found), compared, *_folder(out))


def read(folder: str | Path) -> Run:
    """A run that was kept."""
    run = Run(Path(folder))
    _ = run.result  # which says what is wrong with it, now
    return run


def scenario(
    base: Said | None = None, /, *, set: Mapping[str, object] | None = None, **keys: object
) -> Scenario:
    """A scenario by its name, file or keys, with changes: checked, and with every key filled in."""
    if (base is None) == (not keys):
        raise ScenarioError(
            "a scenario is a name, a file or its keys",
            'Such as closlab.scenario("incast"), or closlab.scenario(name="mine", traffic={...}).',
        )
    return _scenario(keys if base is None else base, set, None)


def scenarios() -> dict[str, str]:
    """The scenarios that ship, and what each is about."""
    return {name: shipped.about(name) for name in shipped.names()}


def records(table: Table) -> list[dict[str, Any]]:
    """A table as a list of dicts, one a row, whether or not it is a data frame."""
    if isinstance(table, list):
        return table
    known = table.astype(object).where(table.notna(), None)
    found: list[dict[str, Any]] = known.to_dict("records")
    return found


# --- how it is done ------------------------------------------------------------------------------


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    try:
        pandas = importlib.import_module("pandas")
    except ImportError:
        return [dict(zip(columns, row, strict=True)) for row in rows]
    return pandas.DataFrame(list(rows), columns=list(columns))


def _framed(page: Path) -> str:
    """A page in a page: nothing of either reaches the other."""
    return (
        f'<iframe srcdoc="{escape(page.read_text())}" sandbox="allow-scripts" '
        'style="width: 100%; height: 80vh; border: 0"></iframe>'
    )


def _scenario(given: Said, changes: Mapping[str, object] | None, seed: int | None) -> Scenario:
    return _read(given, _changes(changes) + (() if seed is None else (f"seed={seed}",)))


def _changes(changes: Mapping[str, object] | None) -> tuple[str, ...]:
    if not isinstance(changes, Mapping | None):
        raise ScenarioError(
            f"{changes!r:.100} are no changes", "Give values by their keys: {'pfc.enabled': False}."
        )
    return tuple(change_of(*each) for each in (changes or {}).items())


def _read(given: Said, changes: tuple[str, ...]) -> Scenario:
    """A scenario, however it was given, with ``KEY=VALUE`` changes."""
    match given:
        case Scenario():
            return catalogue.made(given.model_dump(mode="json", exclude_unset=True), changes)
        case Mapping():
            return catalogue.made({key: _plain(value) for key, value in given.items()}, changes)
        case _:
            return catalogue.load(str(given), changes)


def change_of(key: str, value: object) -> str:
    """A change as ``--set`` has it."""
    text = yaml.safe_dump(
        _plain(value), default_flow_style=True, sort_keys=False, width=math.inf, allow_unicode=True
    )
    return f"{key}={text.strip().removesuffix('...').strip()}"


def _plain(value: object) -> object:
    """A value as YAML has words for it: of numpy's numbers, enumerations, ranges and paths too."""
    match value:
        case Enum():
            return _plain(value.value)
        case bool() | int() | float() | str() | None:
            return value
        case Mapping():
            named = {str(_plain(key)): _plain(inside) for key, inside in value.items()}
            if len(named) < len(value):
                raise ScenarioError(f"{value!r:.100}: two keys are the same; leave one out")
            return named
        case BaseModel():
            return value.model_dump(mode="json", exclude_unset=True)
        case _ if hasattr(value, "tolist"):
            return _plain(value.tolist())
        case Iterable():
            return [_plain(inside) for inside in value]
    return str(value)


def _value(text: object) -> object:
    """A varied value as Python has it."""
    return yaml.safe_load(text) if isinstance(text, str) else text


def _folder(out: str | Path | None) -> tuple[Path, object]:
    """Where files go, and what keeps them there."""
    if out is not None:
        return writable(Path(out)), None
    held = kept_by_us()
    return Path(held.name), held


def _is_set(cancel: threading.Event | None) -> bool:
    return cancel is not None and cancel.is_set()

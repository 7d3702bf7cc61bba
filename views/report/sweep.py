"""A scenario under many settings: what became of the figures that matter, drawn and as a table."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from functools import cached_property, partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from statistics import mean

from pydantic import TypeAdapter, ValidationError

from lab.scenario import shipped
from params.data import Data
from params.quantity import BYTES, NANOSECONDS, PLAIN, Unit, plural
from params.units import DurationNs, Size
from views.report import page
from views.report.charts import Spread, bars, lines
from views.report.differences import setting, short_key
from views.report.figures import Figures
from views.report.kept import read_json, unreadable
from views.report.numbers import BY_KEY, FIGURES, Figure
from views.report.page import Panel
from views.report.run import AS_IT_SHIPS, meanings
from views.report.svg import Drawing

SEED = "seed"
KEPT, SCHEMA = "sweep.json", "closlab.sweep/1"
_MAIN = (  # what one looks at first
    "cluster.jct_ns.p50",
    "cluster.queued_ns.p50",
    "cluster.slowdown.p50",
    "cluster.fragmentation",
    "jct_ns",
    "duration_ns",
    "gpu_utilisation",
    "collective.busbw_gbps",
    "drops.total",
    "pfc.xoff_frames",
    "roce.retransmitted_packets",
    "ecn.marked_packets",
    "flows.failed",
    "flows.fct_ns.max",
    "flows.fct_ns.p50",
)
_MAX_DRAWN = 4
_MIN_POINTS = 3  # of a line
_MAX_BARS = 40
_MAX_LINES = 8
_MAX_ROWS = 500


# What no run can pass, where that is known: by figure, and by values of the key that makes an axis.
Bounds = Mapping[str, Mapping[str, float]]


class SweptRun(Data):
    """One run of a sweep."""

    number: int
    values: tuple[str, ...]  # of the keys that are varied
    figures: Mapping[str, float]  # by their keys, those that apply


class Sweep(Data):
    """A scenario under many settings."""

    scenario: str
    about: str
    fixed: tuple[str, ...]  # what was changed in all of its runs
    keys: tuple[str, ...]  # what is varied
    runs: tuple[SweptRun, ...]
    asked: int  # how many runs there should be
    command: str = ""  # that makes it again
    made: str = ""  # by which closlab, when
    engine: str = "sim"
    bounds: Bounds = field(default_factory=dict)

    @cached_property
    def figures(self) -> list[Figure]:
        """Those that apply to any run and are not nothing in all of them."""
        return [f for f in FIGURES if any(run.figures.get(f.key) for run in self.runs)]

    @property
    def main(self) -> list[Figure]:
        """Of those the ones to look at first."""
        keys = {figure.key for figure in self.figures}
        found = [BY_KEY[key] for key in _MAIN if key in keys]
        return [f for f in found if f.key != "duration_ns" or "jct_ns" not in keys]

    @cached_property
    def short_keys(self) -> tuple[str, ...]:
        """The keys without their sections, where that still tells them apart."""
        return tuple(short_key(key, self.keys) for key in self.keys)

    def name(self, run: SweptRun, besides: Collection[str] = ()) -> str:
        """What tells a run from others: its settings, but for some of them."""
        settings = zip(self.keys, run.values, strict=True)
        return ", ".join(setting(*each, self.keys) for each in settings if each[0] not in besides)


def write_sweep(sweep: Sweep, path: Path) -> None:
    """Write the page of a sweep, and beside it what figures are drawn from."""
    content = {"schema": SCHEMA, **asdict(sweep)}
    (path.parent / KEPT).write_text(json.dumps(content, indent=1) + "\n")
    title = f"{sweep.scenario}, {plural(sweep.asked, 'run')}"
    path.write_text(page.document(f"{title} · closlab", _body(title, sweep), is_wide=True))


def _body(title: str, sweep: Sweep) -> Iterator[str]:
    yield page.heading(1, title)
    ships = sweep.scenario in shipped.names()
    yield page.paragraph(f"{AS_IT_SHIPS if ships else ''}{sweep.about}", "about")
    if sweep.fixed:
        yield page.paragraph(f"Here with {', '.join(sweep.fixed)}.", "about")
    is_whole = len(sweep.runs) == sweep.asked
    yield page.paragraph(_story(sweep), "story" if is_whole else "story warning")
    if spread := _spread_text(sweep):
        yield page.paragraph(spread, "about")
    yield page.grid(_panels(sweep), level=2, kind="two")
    yield page.heading(2, "Least and most")
    yield page.table(("figure", "least", "with", "most", "with"), _extremes(sweep), "texts")
    yield page.heading(2, "Every run")
    if len(sweep.runs) > _MAX_ROWS:
        yield page.paragraph(f"The first {_MAX_ROWS} runs; sweep.csv has all.", "about")
    yield _table(sweep, sweep.main)
    yield page.folded("All figures", _table(sweep, sweep.figures))
    where = "in the simulator" if sweep.engine == "sim" else "on Mininet"
    made = f"Measured by {sweep.made}, {where}." if sweep.made else ""
    yield meanings()
    yield page.foot(made, sweep.command)


def read_sweep(folder: Path) -> Sweep:
    """A sweep as it was kept."""
    content = read_json(folder / KEPT, SCHEMA)
    try:
        runs = (SweptRun(r["number"], tuple(r["values"]), r["figures"]) for r in content["runs"])
        return Sweep(
            scenario=content["scenario"],
            about=content["about"],
            fixed=tuple(content["fixed"]),
            keys=tuple(content["keys"]),
            runs=tuple(runs),
            asked=content["asked"],
            bounds=content.get("bounds", {}),
        )
    except (KeyError, TypeError) as error:
        raise unreadable(folder / KEPT, f"it has no {error}") from None


def figures_of(sweep: Sweep) -> Figures:
    """What there is to draw, by the figure's key in result.json."""
    return {figure.key: (figure.name, partial(_drawn, sweep, figure)) for figure in sweep.figures}


def _table(sweep: Sweep, figures: Sequence[Figure]) -> str:
    """A run a row."""
    return page.table(
        ("run", *sweep.short_keys, *(figure.name for figure in figures)),
        (
            (str(run.number), *run.values, *(f.read(run.figures.get(f.key)) for f in figures))
            for run in sweep.runs[:_MAX_ROWS]
        ),
    )


def _story(sweep: Sweep) -> str:
    """How many of the runs lost something, and which was soonest done."""
    count = len(sweep.runs)
    missing = f"Only {count} of {sweep.asked} runs are here. " if count < sweep.asked else ""
    lossy = sum(bool(run.figures.get("drops.total")) for run in sweep.runs)
    incomplete = sum(bool(run.figures.get("flows.failed")) for run in sweep.runs)
    lost = f"{lossy} of {count} runs dropped packets" if lossy else "No run dropped a packet"
    left = f", and {incomplete} did not deliver all messages." if incomplete else "."
    whole = [run for run in sweep.runs if not run.figures.get("flows.failed")]
    if not whole:
        return missing + lost + left
    best = min(whole, key=lambda run: run.figures["duration_ns"])
    took = BY_KEY["duration_ns"].read(best.figures["duration_ns"])
    return f"{missing}{lost}{left} Soonest done, in {took}, was the one with {sweep.name(best)}."


def _extremes(sweep: Sweep) -> Iterator[tuple[str, ...]]:
    """Of the figures to look at first: where each was least and where it was most."""
    for figure in sweep.main:
        yield figure.name, *chain.from_iterable(_ends(sweep, figure))


def _ends(sweep: Sweep, figure: Figure) -> Iterator[tuple[str, str]]:
    """The least and the most of a figure, and which runs had these."""
    found = [(run.figures[figure.key], run) for run in sweep.runs if figure.key in run.figures]
    for choose in (min, max):
        value, run = choose(found, key=itemgetter(0))
        yield figure.read(value), sweep.name(run)


def _panels(sweep: Sweep) -> Iterator[Panel]:
    for figure in sweep.main[:_MAX_DRAWN]:
        drawing = _drawn(sweep, figure)
        if drawing:
            yield Panel(figure.name, drawing)


def _drawn(sweep: Sweep, figure: Figure) -> Drawing | None:
    across = _axis(sweep)
    drawing = _lines(sweep, figure, *across) if across else _bars(sweep, figure)
    if drawing:
        drawing.title = _title(sweep, figure)
    return drawing


def _title(sweep: Sweep, figure: Figure) -> str:
    """What the picture of a figure shows, in words."""
    least, most = (f"{value} with {run}" for value, run in _ends(sweep, figure))
    return f"{figure.name} by {', '.join(sweep.short_keys)}: least {least}, most {most}."


def _spread_text(sweep: Sweep) -> str:
    """How several seeds are drawn."""
    if SEED not in sweep.keys or len(sweep.keys) < 2:
        return ""
    if not _axis(sweep):
        return "Bars are the mean of all seeds, the line on each is from the least to the most."
    return (
        "Points are the mean of all seeds. The thin line is from the least to the most of them, "
        "the bar where the mean of very many would be, with 95 % confidence (Student's t)."
    )


def _axis(sweep: Sweep) -> tuple[str, dict[str, float], Sequence[Unit]] | None:
    """The key that makes an axis, its values as numbers, and their unit."""
    for at, key in enumerate(sweep.keys):
        values = dict.fromkeys(run.values[at] for run in sweep.runs)
        found = _numbers(list(values)) if key != SEED and len(values) >= _MIN_POINTS else None
        if found:
            return key, dict(zip(values, found[0], strict=True)), found[1]
    return None


def as_numbers(texts: Sequence[str]) -> list[str]:
    """Values of a key in the units of result.json: bytes and nanoseconds, if all are such."""
    found = _numbers(texts)
    return list(texts) if found is None else [f"{value:.15g}" for value in found[0]]


def _numbers(texts: Sequence[str]) -> tuple[list[float], Sequence[Unit]] | None:
    """Values as numbers, if that is what they are, in the unit they are written in."""
    for kind, units in ((float, PLAIN), (Size, BYTES), (DurationNs, NANOSECONDS)):
        read = TypeAdapter(kind).validate_python
        try:
            return [float(read(text)) for text in texts], units
        except ValidationError:
            continue
    return None


def _lines(
    sweep: Sweep, figure: Figure, key: str, places: Mapping[str, float], units: Sequence[Unit]
) -> Drawing | None:
    at = sweep.keys.index(key)
    found: dict[str, dict[float, list[float]]] = {}
    for run in sweep.runs:
        if figure.key in run.figures:
            points = found.setdefault(sweep.name(run, (SEED, key)) or figure.name, {})
            points.setdefault(places[run.values[at]], []).append(run.figures[figure.key])
    if not found or len(found) > _MAX_LINES:
        return None
    low, high = min(places.values()), max(places.values())
    bound = {places[x]: y for x, y in sweep.bounds.get(figure.key, {}).items() if x in places}
    return lines(
        figure.name,
        (key, units),
        (figure.name, figure.kind.units),
        {name: {x: mean(ys) for x, ys in points.items()} for name, points in found.items()}
        | ({"the bound": bound} if bound else {}),
        is_log=low > 0 and high / low > 20,
        spreads={
            name: {x: Spread.of(ys) for x, ys in points.items()} for name, points in found.items()
        },
    )


def _bars(sweep: Sweep, figure: Figure) -> Drawing | None:
    found: dict[str, list[float]] = {}
    for run in sweep.runs:
        if figure.key in run.figures:
            name = sweep.name(run, (SEED,)) or sweep.name(run)
            found.setdefault(name, []).append(run.figures[figure.key])
    if not found or len(found) > _MAX_BARS:
        return None
    means = {name: mean(each) for name, each in found.items()}
    spreads = {name: Spread.of(each) for name, each in found.items()}
    across = figure.name, figure.kind.units
    return bars(figure.name, means, figure.read, spreads, across)

"""Several runs side by side: one table, and their drawings at the same scales."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import cycle
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from lab.errors import LabError
from lab.results.result import REPORT, RESULT
from params.data import Data
from views.report import page, plots, words
from views.report.differences import distinctions
from views.report.figures import PICTURES, Figures
from views.report.kept import KeptRun, read_json, read_run, unreadable
from views.report.numbers import FIGURES, Figure
from views.report.page import Panel
from views.report.palette import FAINT, SERIES
from views.report.paper import LANDSCAPE, PORTRAIT, Paper, order
from views.report.plots import Limits
from views.report.run import AS_IT_SHIPS, COMPLETION_TIMES, footer, meanings, panels
from views.report.svg import WIDTH, Drawing
from views.report.verdict import verdict

KEPT, SCHEMA = "comparison.json", "closlab.comparison/1"
_MAX_BESIDE, _BETWEEN = 3, 24.0  # of a figure
_MAX = 12  # of which one can still see anything
_HEAD, _ROW, _TITLED = 100.0, 17.5, 60.0  # on paper: what is above, a row, a section's title
_LONGEST_NAME = 24  # of what stands above a column
_BY_ITSELF = re.compile(r"^\d+$|\d{8}-\d{6}")  # a folder that nobody gave a name


class Comparison(Data):
    """Runs to be compared."""

    runs: tuple[KeptRun, ...]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> Comparison:
        """Read the runs of these folders."""
        if len(folders) < 2:
            raise LabError(
                "there is nothing to compare with: name two runs at least",
                "Such as:  closlab compare runs/incast-*",
            )
        if len(folders) > _MAX:
            raise LabError(f"{len(folders)} runs are too many side by side; name {_MAX} at most")
        return cls(tuple(map(read_run, folders)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Something short for each run: its folder's name if somebody chose it, or its settings."""
        folders = [run.folder.resolve().name for run in self.runs]
        if _are_names(folders) and not any(map(_BY_ITSELF.search, folders)):
            return tuple(folders)
        scenarios = [run.result.scenario.name for run in self.runs]
        named = scenarios if len(set(scenarios)) > 1 else [""] * len(scenarios)
        settings = [": ".join(filter(None, p)) for p in zip(named, self.differences, strict=True)]
        return tuple(settings if _are_names(settings) else ascii_uppercase[: len(self.runs)])

    @cached_property
    def differences(self) -> tuple[str, ...]:
        """The settings in which each run differs from the others of its scenario."""
        return tuple(distinctions(self.runs))

    def legend(self) -> list[tuple[str, str, str]]:
        """What each name stands for: its scenario and what differs, and its folder."""
        scenarios = [run.result.scenario.name for run in self.runs]
        return [
            (
                name,
                ": ".join(filter(None, (scenario if len(set(scenarios)) > 1 else "", settings)))
                or "the same settings",
                str(run.folder),
            )
            for name, scenario, settings, run in zip(
                self.names, scenarios, self.differences, self.runs, strict=True
            )
        ]

    @property
    def figures(self) -> list[Figure]:
        """What applies to any of them, and is not nothing in all of them."""
        return [figure for figure in FIGURES if any(figure.of(run.result) for run in self.runs)]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The table: a figure a row, a run a column."""
        for figure in self.figures:
            yield figure.name, *(figure.text(run.result) for run in self.runs)

    def content(self) -> dict[str, Any]:
        """The comparison for machines."""
        return {
            "schema": SCHEMA,
            "runs": [
                {
                    "name": name,
                    "settings": settings,
                    "folder": str(run.folder),
                    "figures": {
                        figure.key: figure.of(run.result)
                        for figure in FIGURES
                        if figure.of(run.result) is not None
                    },
                }
                for name, settings, run in zip(self.names, self.differences, self.runs, strict=True)
            ],
        }


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write the comparison's report into a folder."""
    if (folder / RESULT).exists():
        raise LabError(
            f"{folder} is the folder of a run, whose report would be lost",
            "Give the comparison a folder of its own with --out DIR.",
        )
    path = folder / REPORT
    title = " and ".join(dict.fromkeys(run.result.scenario.name for run in comparison.runs))
    body = _body(f"{title}, compared", comparison)
    whole = page.document(f"{title}, compared · closlab", body, is_wide=_is_wide(comparison))
    path.write_text(whole)
    (folder / KEPT).write_text(json.dumps(comparison.content(), indent=1) + "\n")
    return path


def read_comparison(folder: Path) -> Comparison:
    """The comparison whose report lies in a folder, of its runs as they are now."""
    path = folder / KEPT
    try:
        folders = [Path(run["folder"]) for run in read_json(path, SCHEMA)["runs"]]
    except (KeyError, TypeError) as error:
        raise unreadable(path, f"it has no {error}") from None
    return Comparison.of(folders)


def figures_of(comparison: Comparison) -> Figures:
    """What there is to draw of several runs, by its name: side by side, but for completion times,
    which have axes in common."""
    limits = Limits.of(comparison.runs)
    named = list(zip(comparison.names, comparison.runs, strict=True))

    def beside(draw: Callable[[KeptRun, Limits], Drawing | None]) -> Drawing | None:
        drawn = [(name, draw(run, limits)) for name, run in named]
        return side_by_side(drawn) if any(drawing for _, drawing in drawn) else None

    found: Figures = {
        name: (what, partial(beside, draw)) for name, (what, draw) in PICTURES.items()
    }
    together = found["completion"][0], partial(plots.completion_times, named)
    return {**found, "completion": together}


def side_by_side(drawn: Sequence[tuple[str, Drawing | None]]) -> Drawing:
    """Pictures of runs beside each other, each under its run's name."""
    across = min(_MAX_BESIDE, len(drawn))
    title = " ".join(f"{name}: {drawing.title}" for name, drawing in drawn if drawing)
    whole = Drawing(0, title, width=across * (WIDTH + _BETWEEN) - _BETWEEN)
    for row in _rows(list(zip(drawn, cycle(SERIES), strict=False)), across):
        top = whole.height
        for at, ((name, drawing), colour) in enumerate(row):
            x = at * (WIDTH + _BETWEEN)
            whole.rect(x, top, WIDTH, 3, fill=colour)
            whole.text(x, top + 18, name, class_="strong")
            if drawing is None:
                whole.text(x, top + 36, Panel("", None).instead, fill=FAINT)
                continue
            whole.put(drawing, x, top + 30)
            whole.height = max(whole.height, top + 30 + drawing.height + _BETWEEN)
    whole.height -= _BETWEEN
    return whole


def _rows(of: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """A sequence in pieces."""
    for at in range(0, len(of), size):
        yield of[at : at + size]


def _body(title: str, comparison: Comparison) -> Iterator[str]:
    runs, names = comparison.runs, comparison.names
    yield page.heading(1, title)
    abouts = list(dict.fromkeys(run.result.scenario.about.strip() for run in runs))
    if len(abouts) == 1:
        yield page.paragraph(f"{AS_IT_SHIPS}{abouts[0]}", "about")
    if said := words.comparison(names, runs):
        yield page.paragraph(said, "story")
    head = ("run", "in what it differs", "what became of it", "kept in")
    legend = zip(comparison.legend(), runs, strict=True)
    legend_rows = [(name, settings, verdict(run), kept) for (name, settings, kept), run in legend]
    yield page.table(head, legend_rows, "texts")
    rows = list(comparison.rows())
    if (soonest := _soonest(runs)) is not None:
        first, *times = rows[0]
        times[soonest] = page.Decisive(times[soonest])
        rows[0] = first, *times
    drawing = plots.completion_times(list(zip(names, runs, strict=True)))
    whole = (
        page.table(("figure", *names), rows),
        page.figure(
            Panel(COMPLETION_TIMES, drawing, "The share of messages complete within a time."), 2
        ),
    )
    yield page.beside(whole) if len(runs) <= _MAX_BESIDE else "".join(whole)
    limits = Limits.of(runs)
    of_each = [panels(run, limits) for run in runs]
    shown = [
        row
        for row in zip(*of_each, strict=True)
        if row[0].title != COMPLETION_TIMES and any(panel.drawing for panel in row)
    ]
    paper = LANDSCAPE if _is_wide(comparison) else PORTRAIT
    heights = [_on_paper(row, paper) for row in shown]
    texts = (*abouts, said, *(" ".join(row) for row in legend_rows))
    above = _HEAD + sum(map(paper.text, texts)) + _ROW * len(rows)
    for at in order(heights, paper, above % paper.height, 1):
        row = shown[at]
        caption = next(panel.caption for panel in row if panel.drawing)
        drawn = page.grid(
            Panel(name, panel.drawing, "" if panel.drawing else panel.instead, colour)
            for name, panel, colour in zip(names, row, cycle(SERIES), strict=False)
        )
        yield page.section((page.heading(2, row[0].title), page.paragraph(caption, "about"), drawn))
    yield page.heading(2, "What each run did")
    for name, run in zip(names, runs, strict=True):
        yield page.paragraph(f"{name}: {words.story(run)}")
    yield meanings()
    yield footer(dict(zip(names, runs, strict=True)))
    words_ = shlex.join(("closlab", "compare", *(str(run.folder) for run in runs)))
    yield page.again(words_)


def _soonest(runs: Sequence[KeptRun]) -> int | None:
    """Which run was done first of those that delivered everything, if one was."""
    whole = [
        (run.result.duration_ns, at)
        for at, run in enumerate(runs)
        if not run.result.flows.failed and not run.result.ended
    ]
    times = [each for each, _ in whole]
    return min(whole)[1] if whole and times.count(min(times)) == 1 else None


def _is_wide(comparison: Comparison) -> bool:
    return len(comparison.runs) > 2


def _on_paper(row: Sequence[Panel], paper: Paper) -> float:
    """How high a row of panels is, as many beside each other as there is room for."""
    heights = [paper.drawn(" ", "", panel.drawing) for panel in row if panel.drawing]
    return _TITLED + max(heights) * math.ceil(len(row) / paper.columns)


def _are_names(texts: Sequence[str]) -> bool:
    """Whether each tells its run from all others, in few words."""
    return all(texts) and len(set(texts)) == len(texts) and max(map(len, texts)) <= _LONGEST_NAME

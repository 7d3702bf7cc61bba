"""Several runs side by side: one table, and their drawings at the same scales."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from lab.errors import LabError
from lab.report import page, plots, words
from lab.report.differences import told_apart
from lab.report.kept import KeptRun, read_run
from lab.report.numbers import FIGURES, Figure
from lab.report.page import Panel
from lab.report.palette import SERIES
from lab.report.plots import Limits
from lab.report.run import AS_IT_SHIPS, COMPLETION_TIMES, REPORT, footer, meanings, panels

_MOST = 12  # of which one can still see anything
_LONGEST_NAME = 24  # of what stands above a column
_BY_ITSELF = re.compile(r"^\d+$|\d{8}-\d{6}")  # a folder that nobody gave a name


@dataclass(frozen=True)
class Comparison:
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
        if len(folders) > _MOST:
            raise LabError(f"{len(folders)} runs are too many side by side; name {_MOST} at most")
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
        return tuple(told_apart(self.runs))

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
            yield figure.name, *(figure.told(run.result) for run in self.runs)

    def content(self) -> dict[str, Any]:
        """The comparison for machines."""
        return {
            "schema": "closlab.comparison/1",
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
    if (folder / "result.json").exists():
        raise LabError(
            f"{folder} is the folder of a run, whose report would be lost",
            "Give the comparison a folder of its own with --out DIR.",
        )
    path = folder / REPORT
    title = " and ".join(dict.fromkeys(run.result.scenario.name for run in comparison.runs))
    is_wide = len(comparison.runs) > 2
    body = _body(f"{title}, compared", comparison)
    path.write_text(page.document(f"{title}, compared · closlab", body, is_wide=is_wide))
    return path


def _body(title: str, comparison: Comparison) -> Iterator[str]:
    runs, names = comparison.runs, comparison.names
    yield page.heading(1, title)
    abouts = list(dict.fromkeys(run.result.scenario.about.strip() for run in runs))
    if len(abouts) == 1:
        yield page.paragraph(f"{AS_IT_SHIPS}{abouts[0]}", "about")
    yield page.paragraph(words.comparison(names, runs), "story")
    head = ("run", "in what it differs", "kept in")
    yield page.table(head, comparison.legend(), "texts")
    yield page.table(("figure", *names), comparison.rows())
    yield page.heading(2, "Completion times")
    drawing = plots.completion_times(list(zip(names, runs, strict=True)))
    yield page.grid([Panel("The share of messages complete within a time", drawing)])
    limits = Limits.of(runs)
    of_each = [panels(run, limits) for run in runs]
    for row in zip(*of_each, strict=True):
        if row[0].title == COMPLETION_TIMES or not any(panel.drawing for panel in row):
            continue
        yield page.heading(2, row[0].title)
        yield page.paragraph(next(panel.caption for panel in row if panel.drawing), "about")
        yield page.grid(
            Panel(name, panel.drawing, "" if panel.drawing else panel.instead, colour)
            for name, panel, colour in zip(names, row, cycle(SERIES), strict=False)
        )
    yield page.heading(2, "What each run did")
    for name, run in zip(names, runs, strict=True):
        yield page.paragraph(f"{name}: {words.story(run)}")
    yield meanings()
    yield footer(dict(zip(names, runs, strict=True)))
    words_ = shlex.join(("closlab", "compare", *(str(run.folder) for run in runs)))
    yield page.again(words_)


def _are_names(texts: Sequence[str]) -> bool:
    """Whether each tells its run from all others, in few words."""
    return all(texts) and len(set(texts)) == len(texts) and max(map(len, texts)) <= _LONGEST_NAME

"""Several runs side by side: one table, and their drawings at the same scales."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle
from pathlib import Path
from typing import Any

from lab.report import page, plots, words
from lab.report.kept import KeptRun, read_run
from lab.report.numbers import FIGURES, Figure
from lab.report.page import Panel
from lab.report.plots import Limits
from lab.report.run import COMPLETION_TIMES, REPORT, footer, panels
from lab.report.svg import COLOURS

_LONGEST_NAME = 60  # beyond it the folder is a better name


@dataclass(frozen=True)
class Comparison:
    """Runs to be compared."""

    runs: tuple[KeptRun, ...]

    @classmethod
    def of(cls, folders: Sequence[Path]) -> Comparison:
        """Read the runs of these folders."""
        return cls(tuple(map(read_run, folders)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What tells each run from the others: its scenario if there are several, its settings."""
        scenarios = [run.result.scenario.name for run in self.runs]
        names = [
            ": ".join(
                filter(None, (name if len(set(scenarios)) > 1 else "", self._told_apart(run)))
            )
            for name, run in zip(scenarios, self.runs, strict=True)
        ]
        is_plain = len(set(names)) == len(names) and max(map(len, names)) <= _LONGEST_NAME
        return tuple(names) if is_plain else tuple(str(run.folder) for run in self.runs)

    def _told_apart(self, run: KeptRun) -> str:
        """The settings in which a run differs from others of its scenario."""
        name = run.result.scenario.name
        alike = [_settings(other) for other in self.runs if other.result.scenario.name == name]
        own = _settings(run)
        keys = dict.fromkeys(key for each in alike for key in each)
        differing = [key for key in keys if len({repr(each.get(key)) for each in alike}) > 1]
        return ", ".join(_setting(key, own[key], differing) for key in differing if key in own)

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
                    "folder": str(run.folder),
                    "figures": {
                        figure.key: figure.of(run.result)
                        for figure in FIGURES
                        if figure.of(run.result) is not None
                    },
                }
                for name, run in zip(self.names, self.runs, strict=True)
            ],
        }


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write the comparison's report into a folder."""
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
        yield page.paragraph(abouts[0], "about")
    yield page.paragraph(words.comparison(names, runs), "story")
    yield page.table(("figure", *names), comparison.rows())
    yield page.heading(2, "Completion times")
    drawing = plots.completion_times(list(zip(names, runs, strict=True)))
    yield page.grid([Panel("The share of messages complete within a time", drawing)])
    of_each = [panels(run, limits) for run, limits in zip(runs, Limits.of(runs), strict=True)]
    for row in zip(*of_each, strict=True):
        if row[0].title == COMPLETION_TIMES or not any(panel.drawing for panel in row):
            continue
        yield page.heading(2, row[0].title)
        yield page.paragraph(next(panel.caption for panel in row if panel.drawing), "about")
        yield page.grid(
            Panel(name, panel.drawing, "" if panel.drawing else panel.instead, colour)
            for name, panel, colour in zip(names, row, cycle(COLOURS), strict=False)
        )
    yield page.heading(2, "What each run did")
    for name, run in zip(names, runs, strict=True):
        yield page.paragraph(f"{name}: {words.story(run)}")
    yield footer(runs[0])


def _settings(run: KeptRun) -> dict[str, Any]:
    """A run's scenario and engine as flat keys."""
    content = run.result.scenario.model_dump(mode="json", exclude_none=True)
    found: dict[str, Any] = {}
    _flatten(content, "", found)
    found["engine"] = run.result.engine
    return {key: value for key, value in found.items() if key != "about"}


def _setting(key: str, value: object, differing: Sequence[str]) -> str:
    """One setting in few words: without its section where that is not needed to tell it apart."""
    section, _, last = key.rpartition(".")
    if last == "enabled":
        return f"{section.upper()} {'on' if value else 'off'}"
    is_alone = sum(other.rpartition(".")[2] == last for other in differing) == 1
    return f"{last if is_alone else key}={value}"


def _flatten(content: dict[str, Any], prefix: str, found: dict[str, Any]) -> None:
    for key, value in content.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{key}.", found)
        else:
            found[prefix + key] = value

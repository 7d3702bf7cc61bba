"""Figures that the documentation shows, drawn anew of runs that are made for them.

A page says with the commands that make it what a picture is of, and these are carried out:

    ![The pauses climb from h1's leaf to all senders.](picture.svg)

    *Made by `closlab run incast --engine sim --out runs/pfc` and `closlab figure runs/pfc pauses`.*
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from lab import api
from lab.errors import LabError
from lab.machine.scratch import scratch
from lab.scenario import catalogue
from params.data import Data
from views.report import read_run
from views.report.compare import Comparison
from views.report.compare import figures_of as figures_beside
from views.report.figures import figure, figures_of
from views.report.moments import moments
from views.report.page import moved
from views.report.svg import Drawing

_SHOWN = re.compile(r"^!\[[^\]]+\]\((\S+\.svg)\)\n\n\*Made by (.+?)\.\*$", re.MULTILINE | re.DOTALL)
_MOVING = "fabric"  # the figure that one moves through
_COMMAND = re.compile(r"`([^`]+)`")


class Picture(Data):
    """A file that a page shows, and what makes it."""

    path: Path
    commands: tuple[str, ...]

    def drawn(self) -> str:
        """It as it is today."""
        *made, last = self.commands
        words = shlex.split(last)
        if words[:2] != ["closlab", "figure"] or len(words) != 4:
            raise LabError(f"{self.path}: it is not made by a figure: {last}")
        return drawn(made, words[3]).to_svg(has_ground=True)


def pictures(page: Path) -> list[Picture]:
    """Those of a page that say what makes them."""
    return [
        Picture(page.parent / name, tuple(" ".join(c.split()) for c in _COMMAND.findall(made)))
        for name, made in _SHOWN.findall(page.read_text())
    ]


def drawn(commands: Sequence[str], name: str) -> Drawing:
    """A figure of a run of the simulator, or of several beside each other."""
    return _drawn(commands, name)[0]


def moving(commands: Sequence[str], name: str) -> str:
    """The same for a page, in which one moves through the moments of a fabric."""
    drawing, title = _drawn(commands, name)
    return moved(drawing.render(), title)


def _drawn(commands: Sequence[str], name: str) -> tuple[Drawing, str]:
    """A figure, and what it was like over time, if it is of a fabric."""
    with scratch() as folder:
        made = [_made(words, folder) for words in map(shlex.split, commands)
                if words[:2] != ["closlab", "compare"]]  # fmt: skip
        if len(made) > 1:
            return figure(figures_beside(Comparison.of(made)), name), ""
        run = read_run(made[0])
        found = figure(figures_of(run), name)
        return found, moments(run, found) if name == _MOVING else ""


def _made(words: Sequence[str], folder: Path) -> Path:
    """The folder of a run that a command made."""
    if words[:2] != ["closlab", "run"] or words[3:5] != ["--engine", "sim"]:
        raise LabError(f"a figure's run is not one of the simulator: {shlex.join(words)}")
    titles: dict[str, list[str]] = {}
    for option, value in zip(words[5::2], words[6::2], strict=True):
        titles.setdefault(option, []).append(value)
    out = folder / Path(titles.pop("--out", ["run"])[0]).name
    chosen = catalogue.load(words[2], tuple(titles.pop("--set", [])))
    if titles:
        raise LabError(f"a figure's run knows --set and --out only: {shlex.join(words)}")
    api.run(chosen, out=out)
    return out

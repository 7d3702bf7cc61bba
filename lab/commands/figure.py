"""``closlab figure``: one figure of a run as a file for a paper, in vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.report import read_run
from lab.report.figures import PICTURES, figure, write_figure


def command(
    folder: Annotated[Path, typer.Argument(help="Of a run.")],
    name: Annotated[str | None, typer.Argument(help="Without it: all names.")] = None,
    file: Annotated[
        Path | None, typer.Option("-o", "--out", help="An .svg or .pdf; else NAME.svg.")
    ] = None,
) -> None:
    """Write a figure of a run's report as SVG or PDF."""
    run = read_run(folder)
    if name is None:
        width = max(map(len, PICTURES))
        for known, (what, _) in PICTURES.items():
            print(f"{known:{width}} {what}")
        return
    path = file or Path(f"{name}.svg")
    write_figure(figure(run, name), path)
    print(path)

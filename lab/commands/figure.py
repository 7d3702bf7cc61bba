"""``closlab figure``: one figure of a run, a comparison or a sweep as a file for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from views.report import compare, figures, read_run, sweep
from views.report.figures import Figures, figure, write_figure


def command(
    folder: Annotated[Path, typer.Argument(help="Of a run, a comparison or a sweep.")],
    name: Annotated[str | None, typer.Argument(help="Without it: all names.")] = None,
    file: Annotated[
        Path | None, typer.Option("-o", "--out", help="An .svg or .pdf; else NAME.svg.")
    ] = None,
) -> None:
    """Write a figure of a report as SVG or PDF."""
    found = _figures(folder)
    if name is None:
        width = max(map(len, found))
        for known, (what, _) in found.items():
            print(f"{known:{width}} {what}")
        return
    path = file or Path(f"{name}.svg")
    write_figure(figure(found, name), path)
    print(path)


def _figures(folder: Path) -> Figures:
    """Those of what a folder holds."""
    if (folder / compare.KEPT).exists():
        return compare.figures_of(compare.read_comparison(folder))
    if (folder / sweep.KEPT).exists():
        return sweep.figures_of(sweep.read_sweep(folder))
    return figures.figures_of(read_run(folder))

"""``closlab reproduce``: published results made again, theirs beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab.commands.options import Processes, make_out
from lab.errors import LabError
from lab.machine import tools
from lab.reproduce import names, read, reproduce


def _names(begun: str) -> list[str]:
    """For a shell: the reproductions that begin so."""
    return [name for name in names() if name.startswith(begun)]


def command(
    chosen: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Which; see --list.", autocompletion=_names),
    ] = None,
    is_all: Annotated[
        bool, typer.Option("--all", help="All of them; what is kept is not run again.")
    ] = False,
    is_list: Annotated[bool, typer.Option("--list", help="Say which there are.")] = False,
    processes: Processes = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("runs/reproduce"),
) -> None:
    """Make published results again: theirs, ours, and whether it holds."""
    if is_list or not (chosen or is_all):
        Console().print(_listed())
        return
    if chosen and is_all:
        raise LabError("--all is all of them", "Leave it out, or the names.")
    tools.require_native()
    folder = make_out(out, "reproduce")
    console = Console(stderr=True)
    raise typer.Exit(reproduce(chosen or (), folder, processes, console, is_all=is_all))


def _listed() -> Table:
    table = Table("name", "what", "published", "runs")
    for name in names():
        paper = read(name)
        runs = str(len(paper.cases) * paper.seeds)
        table.add_row(name, paper.title, f"{paper.source.venue}, {paper.source.where}", runs)
    return table

"""``closlab runs``: which runs are kept on this disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lab.commands.options import Json
from lab.machine.paths import writing_to
from params.quantity import size
from views.report.index import HEAD, entries, prunable, prune, write_index

_FIRST = ("run", "changed", "whole run", "packets dropped", "to be believed")


def command(
    folder: Annotated[Path, typer.Argument(help="That holds runs.")] = Path("runs"),
    html: Annotated[bool, typer.Option("--html", help="Write an index.html with links.")] = False,
    keep: Annotated[
        int | None,
        typer.Option("--prune", metavar="N", min=0, help="Remove all but the latest N."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Remove without asking.")] = False,
    is_json: Json = False,
) -> None:
    """List the runs that are kept, the latest first, and remove old ones.

    Only folders whose name closlab chose are removed (SCENARIO-DATE-TIME): what was given a name
    with --out stays.
    """
    found = entries(folder)
    if keep is not None:
        doomed = prunable(found, keep)
        if not doomed:
            print(f"Nothing to remove: {folder}/ has no more than {keep} runs of its own naming.")
            return
        for entry in doomed:
            print(f"{entry.folder}  {size(entry.bytes)}")
        if not yes:
            typer.confirm(f"Remove these {len(doomed)}?", abort=True)
        print(f"{len(doomed)} removed, {size(prune(doomed))} free again.")
        return
    rows = [entry.row() for entry in found]
    if html:
        with writing_to(folder, "It lies beside the runs: without --html they are listed here."):
            print(f"With links to the reports: {write_index(found, folder)}")
    elif is_json:
        print(json.dumps([dict(zip(HEAD, row, strict=True)) for row in rows], indent=2))
    elif not rows:
        print(f"{folder}/ holds no runs.")
    else:
        table = Table(box=None, pad_edge=False)
        for name in _FIRST:
            table.add_column(name, no_wrap=name == HEAD[0], ratio=None if name == HEAD[0] else 1)
        for row in rows:
            fields = dict(zip(HEAD, row, strict=True))
            table.add_row(*(fields[name] for name in _FIRST))
        Console(highlight=False).print(table)

"""``closlab compare``: runs side by side, as a table here and as a report with pictures."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

from lab.api import compare
from lab.commands.options import Folders, Json, Out, make_out
from views.report.compare import Comparison

_BORDER = 3  # of a table's column


def command(folders: Folders, out: Out = None, is_json: Json = False) -> None:
    """Put runs side by side, in a table and a report."""
    comparison = compare(*folders, out=make_out(out, "compare"))
    path = comparison.report()
    if is_json:
        print(json.dumps({**comparison.compared.content(), "report": str(path)}, indent=2))
        return
    show_table(comparison.compared, Console())
    print(f"Side by side, with pictures: {path}")


def show_table(comparison: Comparison, console: Console) -> None:
    """Print a figure a row, a run a column; as many runs beside each other as there is room for."""
    rows = list(comparison.rows())
    widths = [
        max(map(len, column)) + _BORDER
        for column in zip(("", *comparison.names), *rows, strict=True)
    ]
    at = 1
    while at < len(widths):
        end = at + 1
        while end < len(widths) and widths[0] + sum(widths[at : end + 1]) < console.width:
            end += 1
        table = Table()
        table.add_column("", no_wrap=True)
        for name in comparison.names[at - 1 : end - 1]:
            table.add_column(name, justify="right")
        for row in rows:
            table.add_row(row[0], *row[at:end])
        console.print(table)
        at = end
    for name, settings, _ in comparison.legend():
        if name != settings:
            console.print(f"{name}: {settings}", highlight=False, soft_wrap=True)

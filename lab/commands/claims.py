"""``closlab claims``: what is said of AI fabrics, and what this lab finds."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from lab.claims import claims
from lab.commands.options import Json, Out, Processes, make_out
from lab.machine import tools


def command(
    names: Annotated[list[str] | None, typer.Argument(help="Which; without, all.")] = None,
    processes: Processes = None,
    out: Out = None,
    is_json: Json = False,
) -> None:
    """Put to the test what the field says about AI fabrics."""
    tools.require_native()
    folder = make_out(out, "claims")
    console = Console(stderr=True)
    raise typer.Exit(claims(names or (), folder, processes, console, is_json=is_json))

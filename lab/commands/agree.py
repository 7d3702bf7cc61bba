"""``closlab agree``: whether the two engines tell the same of a fabric."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from lab.commands.options import Out, Seed, make_out
from lab.machine import tools
from lab.runs.agree import agree


def command(
    cases: Annotated[list[str] | None, typer.Argument(help="Parts of cases' titles.")] = None,
    dilation: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Seed = None,
    out: Out = None,
) -> None:
    """Compare the simulator with Mininet."""
    tools.require_compiler()
    tools.require_emulation()
    folder = make_out(out, "agree")
    raise typer.Exit(agree(cases or (), folder, dilation, seed, Console(stderr=True)))

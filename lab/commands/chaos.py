"""``closlab chaos``: runs under faults by lot, and what must hold whatever happens."""

from __future__ import annotations

import os
from typing import Annotated

import typer
from rich.console import Console

from lab.commands.options import Out, make_out, seconds_of
from lab.runs.chaos import chaos
from lab.runs.run import check_engine
from lab.runs.soak import soak
from switch.build import CHECKED, EXTRA_VARIABLE


def command(
    seed: Annotated[int, typer.Option(help="Of the first run; each has the next.")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="How many.")] = 20,
    engine: Annotated[str, typer.Option(help="sim or mininet.")] = "sim",
    lasting: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="TIME", help="One fabric that stays up for so long (mininet): 30min."
        ),
    ] = None,
    out: Out = None,
) -> None:
    """Let faults happen by lot, and see whether everything holds."""
    os.environ[EXTRA_VARIABLE] = f"{os.environ.get(EXTRA_VARIABLE, '')} {CHECKED}"
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    if lasting is not None:
        seconds = seconds_of("--for", lasting)
        check_engine("mininet")
        raise typer.Exit(soak(seed, seconds, make_out(out, "soak"), console.print))
    check_engine(engine)
    tally = chaos(seed, runs, engine, make_out(out, "chaos"), console.print)
    ends = ", ".join(f"{count} {how}" for how, count in sorted(tally.by_end.items()))
    console.print(f"{runs} runs: {ends}")
    if tally.failed:
        seeds = ", ".join(str(each) for each in tally.failed if each >= 0)
        console.print(f"[red]What must hold did not[/]: seeds {seeds or 'none, but all of them'}")
        raise typer.Exit(1)

"""``closlab sweep``: many runs of a scenario: simulated on all processors, or on Mininet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.commands.options import Changes, Name, Out, Processes, complete_keys, make_out
from lab.errors import LabError
from lab.machine.dask_cluster import require_dask
from lab.runs.run import check_engine
from lab.runs.sweep import sweep


def command(
    scenario: Name,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=V,V", help="Values to try, or FIRST..LAST.", autocompletion=complete_keys
        ),
    ] = None,
    changes: Changes = None,
    processes: Processes = None,
    engine: Annotated[str, typer.Option(help="sim, or mininet: one run after the other.")] = "sim",
    cluster: Annotated[
        str | None,
        typer.Option(
            "--on",
            metavar="dask|ADDRESS",
            help="Spread runs over a Dask cluster: one of this machine's own, or a scheduler's.",
        ),
    ] = None,
    out: Out = None,
) -> None:
    """Run a scenario under several seeds or values."""
    check_engine(engine)
    if cluster is not None:
        if engine != "sim":
            raise LabError("--on is for the simulator", "Mininet's runs want this machine.")
        require_dask()
    folder = make_out(out, f"sweep-{Path(scenario).stem}")
    console = Console(stderr=True)
    code = sweep(scenario, changes or (), vary or (), folder, processes, console, engine, cluster)
    raise typer.Exit(code)

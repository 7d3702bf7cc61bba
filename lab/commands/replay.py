"""``closlab replay``: a run that was kept, played back in the browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lab.commands.options import GnmiPort, PagePort
from lab.machine.paths import writing_to
from views.live import server
from views.live.alone import page
from views.live.hub import recorded
from views.live.kept import scene_of, snapshots
from views.report import find_runs, read_run


def command(
    folder: Annotated[Path, typer.Argument(help="Of a run.")],
    port: PagePort = 0,
    gnmi: GnmiPort = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A page of one file instead, to hand on.")
    ] = None,
) -> None:
    """Play a kept run back in the browser, as fast or slow as you like. Ends with Ctrl-C."""
    run = read_run(find_runs(folder)[0])
    if out:
        with writing_to(out):
            out.write_text(page(run))
        print(f"{out}: open it in any browser")
        return
    server.require()
    with server.serving(recorded(scene_of(run), snapshots(run)), port, gnmi) as address:
        name = run.result.scenario.name
        print(f"{name} of {folder}, to be played:  {address}", file=sys.stderr)
        print("Ctrl-C ends it.", file=sys.stderr)
        server.wait()

"""``closlab why``: what something of a kept run was held up by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.commands.options import Json
from lab.machine.paths import writing_to
from lab.progress import Stages
from lab.results.causes import write_causes
from lab.runs.why import why
from views.report import find_runs, write_report


def command(
    folder: Annotated[Path, typer.Argument(help="Of a run.")],
    what: Annotated[
        str | None,
        typer.Argument(help="SRC-DST, a host, a job's name, or run; else the message slowed most."),
    ] = None,
    p4: Annotated[
        Path | None, typer.Option(help="The P4 program of the run, if it had its own.")
    ] = None,
    is_json: Json = False,
) -> None:
    """Find out what held up a message, a job or the run, by taking away what may be its cause.

    What is found is kept in the run's folder, and its report shows it.
    """
    found = find_runs(folder)[0]
    because = why(found, what, Stages(Console(stderr=True)), p4)
    if is_json:
        print(json.dumps(because.model_dump(mode="json", exclude_none=True), indent=2))
    else:
        for said in because.sentences():
            print(said)
    with writing_to(found, "What is told above is whole; it is not kept, nor in the report."):
        write_causes(found, because)
        page = write_report(found)
    if not is_json:
        print(f"With its picture: {page}")

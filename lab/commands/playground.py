"""``closlab playground``: the simulator as a page, for who installs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.machine.paths import writing_to
from lab.progress import Stages
from views.playground.build import build


def command(
    out: Annotated[Path, typer.Option(help="Folder for the page.")] = Path("playground"),
) -> None:
    """Make a page in whose tab the simulator runs, for any web server to give out."""
    with writing_to(out):
        index = build(out, Stages(Console(stderr=True)))
    print(f"{index}: give the folder out by any web server, such as")
    print(f"python3 -m http.server --directory {out} 8000   and open   http://localhost:8000")

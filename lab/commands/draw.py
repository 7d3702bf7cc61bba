"""``closlab draw``: a picture of a fabric."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import topologies
from lab.commands.options import Changes, Name
from lab.errors import RunError
from lab.scenario.catalogue import load


def command(
    scenario: Name,
    picture: Annotated[
        Path, typer.Option("--out", "-o", help="To write: .dot; .png, .svg, .pdf by Graphviz.")
    ],
    changes: Changes = None,
) -> None:
    """Draw a scenario's fabric, with the ports at the ends of each cable."""
    try:
        topologies.draw(load(scenario, tuple(changes or ())).fabric(), picture)
    except topologies.TopologyError as error:
        raise RunError(str(error)) from None
    except OSError as error:
        raise RunError(f"{picture} cannot be written: {error.strerror}") from None

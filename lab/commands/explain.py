"""``closlab explain``: what may be said in a scenario."""

from __future__ import annotations

from typing import Annotated

import typer

from lab.errors import LabError
from lab.scenario.explain import explain


def command(
    key: Annotated[str | None, typer.Argument(help="Such as pfc, pfc.enabled, XOFF.")] = None,
    wants_schema: Annotated[
        bool, typer.Option("--schema", help="All keys as a JSON schema, for editors of YAML.")
    ] = False,
) -> None:
    """Say what a scenario's keys mean, or a word of the field."""
    if not wants_schema:
        print(explain(key))
        return
    if key is not None:
        raise LabError(f"--schema is of all keys, and not of {key}", "Leave one of them out.")
    from lab.scenario.schema import text  # which nothing else here asks for

    print(text())

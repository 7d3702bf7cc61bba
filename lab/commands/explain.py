"""``closlab explain``: what may be said in a scenario."""

from __future__ import annotations

from typing import Annotated

import typer

from lab.scenario.explain import explain


def command(
    key: Annotated[str | None, typer.Argument(help="Such as pfc, pfc.enabled, XOFF.")] = None,
) -> None:
    """Say what a scenario's keys mean, or a word of the field."""
    print(explain(key))

"""``closlab explain``: what may be said in a scenario."""

from __future__ import annotations

from typing import Annotated

import typer

from lab.scenario.explain import explain


def command(
    key: Annotated[str | None, typer.Argument(help="Such as pfc, pfc.enabled.")] = None,
) -> None:
    """Say what a scenario's keys mean."""
    print(explain(key))

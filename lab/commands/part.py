"""``closlab part``: what ``closlab run --machines`` starts on each machine."""

from __future__ import annotations

import typer


def command() -> None:
    """Emulate a machine's part of a fabric: closlab run --machines FILE starts this."""
    from lab.runs.machines.member import member

    raise typer.Exit(member())

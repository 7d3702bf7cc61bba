"""``closlab doctor``: what this machine can do for the lab."""

from __future__ import annotations

import json

import typer
from rich.console import Console

from lab.commands.options import Json
from lab.machine.health import Health, examine

_SIGNS = {Health.GOOD: "[green]✓[/]", Health.MISSING: "[yellow]-[/]", Health.BAD: "[red]✗[/]"}


def command(is_json: Json = False) -> None:
    """Say what this machine can do, and the cure for what it cannot.

    Ends with 1 if something the README offers will not work here.
    """
    findings = list(examine())
    if is_json:
        lines = [
            {"what": f.what, "verdict": f.verdict.value, "found": f.found, "cure": f.cure}
            for f in findings
        ]
        print(json.dumps(lines, indent=2))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for finding in findings:
            console.print(f"{_SIGNS[finding.verdict]} {finding.what}: {finding.found}")
            if finding.verdict is not Health.GOOD:
                console.print(f"    {finding.cure}", markup=False)
    if any(finding.verdict is Health.BAD for finding in findings):
        raise typer.Exit(1)

"""``closlab test``: the tests of this very tree."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from lab.machine.paths import ROOT
from lab.machine.processes import in_turn
from lab.machine.tools import require_reference

HAS_WORDS_OF_OTHERS = True


def command(
    arguments: Annotated[list[str] | None, typer.Argument(help="For pytest.")] = None,
    slow: Annotated[bool, typer.Option("--slow", help="Only the long sweeps.")] = False,
    reference: Annotated[
        bool, typer.Option("--reference", help="Only those that ask p4c and BMv2.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the most tests for a minute, on all processors.")
    ] = False,
) -> None:
    """Run the tests: without words in two turns, what a clock judges apart."""
    if reference:
        require_reference()
    kind = f"{'' if slow else 'not '}slow and {'' if reference else 'not '}reference"
    pytest = [sys.executable, "-m", "pytest", "-m"]
    os.chdir(ROOT)
    together = ["-n", str(len(os.sched_getaffinity(0))), "--dist", "loadfile"]
    if quick:
        os.execv(sys.executable, [*pytest, kind, "--quick", *together, *(arguments or [])])
    if slow or reference or arguments:
        os.execv(sys.executable, [*pytest, kind, *(arguments or [])])
    # All processors for what says the same however busy they are, networks included; then, one by
    # one, what is held against a clock.
    turns = [[*pytest, f"{kind} and not clock", *together], [*pytest, f"{kind} and clock"]]
    raise typer.Exit(in_turn(turns))

"""``closlab test``: the tests of this very tree."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Annotated

import typer

from lab.machine.paths import ROOT
from lab.machine.processes import Job, side_by_side
from lab.machine.tools import require_reference

HAS_WORDS_OF_OTHERS = True
_FAILED = 1  # tests did, as pytest says it


def command(
    arguments: Annotated[list[str] | None, typer.Argument(help="For pytest.")] = None,
    slow: Annotated[bool, typer.Option("--slow", help="Only the long sweeps.")] = False,
    reference: Annotated[
        bool, typer.Option("--reference", help="Only those that ask p4c and BMv2.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the most tests for a minute, on all processors.")
    ] = False,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="And how much of the Python is run: 90 % or more.")
    ] = False,
) -> None:
    """Run the tests: without words in turns, what a clock judges before all else.

    With --coverage what a clock judges is left out: to measure takes time.
    """
    if reference:
        require_reference()
    kind = f"{'' if slow else 'not '}slow and {'' if reference else 'not '}reference"
    python = [sys.executable, "-m"]
    pytest = [*python, "pytest", "-m"]
    os.chdir(ROOT)
    together = ["-n", str(len(os.sched_getaffinity(0))), "--dist", "worksteal"]
    if coverage:
        words = ["pytest", "-m", f"{kind} and not clock", *together, *(arguments or [])]
        raise typer.Exit(_covering([*python, "coverage"], words))
    if quick:
        os.execv(sys.executable, [*pytest, kind, "--quick", *together, *(arguments or [])])
    if slow or reference or arguments:
        os.execv(sys.executable, [*pytest, kind, *(arguments or [])])
    raise typer.Exit(_all(pytest, kind, together))


def _all(pytest: list[str], kind: str, together: list[str]) -> int:
    """All turns; the exit code of the first that failed.

    What a clock judges runs one by one, and leaves most of the processors' time to what says the
    same however little of it there is. A neighbour that gives way still wears caches out: what
    fails beside it is asked again alone, and only then believed. Networks come afterwards: to make
    one takes locks of the kernel's, for which whoever is in a hurry would have to wait.
    """
    computes = Job([*pytest, f"{kind} and not clock and not mininet", *together], gives_way=True)
    judged = [*pytest, f"{kind} and clock", "-o", "cache_dir=.pytest_cache/clock"]
    computed, in_time = side_by_side(computes, Job(judged))
    if in_time == _FAILED:
        (in_time,) = side_by_side(Job([*judged, "--last-failed"]))
    (networked,) = side_by_side(Job([*pytest, f"{kind} and mininet and not clock", *together]))
    return computed or in_time or networked


def _covering(tool: list[str], words: list[str]) -> int:
    """Run something, and tell what of our Python it covered; 2 if that is too little."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COVERAGE_FILE"] = f"{folder}/coverage"
        (code,) = side_by_side(Job([*tool, "run", "-m", *words]))
        side_by_side(Job([*tool, "combine", "--quiet"]))
        return code or side_by_side(Job([*tool, "report"]))[0]

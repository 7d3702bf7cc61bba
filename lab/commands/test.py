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
    """Run the tests: without words in two courses, what a clock judges before all else.

    With --coverage what a clock judges is left out: to measure takes time.
    """
    if reference:
        require_reference()
    kind = f"{'' if slow else 'not '}slow and {'' if reference else 'not '}reference"
    python = [sys.executable, "-m"]
    pytest = [*python, "pytest", "-m"]
    os.chdir(ROOT)
    together = _at_once()
    if coverage:
        words = ["pytest", "-m", f"{kind} and not clock", *together, *(arguments or [])]
        raise typer.Exit(_covering([*python, "coverage"], words))
    if quick:
        os.execv(sys.executable, [*pytest, kind, "--quick", *together, *(arguments or [])])
    if slow or reference or arguments:
        os.execv(sys.executable, [*pytest, kind, *(arguments or [])])
    raise typer.Exit(_all(pytest, kind, together))


def _at_once(more: int = 0) -> list[str]:
    """On all processors, and so many more."""
    return ["-n", str(len(os.sched_getaffinity(0)) + more), "--dist", "worksteal"]


def _all(pytest: list[str], kind: str, together: list[str]) -> int:
    """All courses; the exit code of the first that failed.

    What says the same however little time it gets gives way to what has a clock or a network to
    mind, and takes what processors' time is left. What a clock judges runs one by one, and networks
    come afterwards: to make one takes locks of the kernel's, for which whoever is in a hurry would
    have to wait. A neighbour that gives way still wears caches out, and networks are two at once:
    what fails beside others is asked again by itself, and only then believed.

    Of what gives way one more is at work than there are processors: tests wait now and then, for a
    process or a time-out.
    """
    computes = Job([*pytest, f"{kind} and not clock and not mininet", *_at_once(1)], gives_way=True)
    minding = {
        name: [*pytest, f"{kind} and {which}", "-o", f"cache_dir=.pytest_cache/{name}"]
        for name, which in (("clock", "clock"), ("networks", "mininet and not clock"))
    }
    judged, networks = Job(minding["clock"]), Job([*minding["networks"], *together])
    (computed,), minded = side_by_side([computes], [judged, networks])
    failed = [
        asked for asked, code in zip(minding.values(), minded, strict=True) if code == _FAILED
    ]
    (again,) = side_by_side([Job([*asked, "--last-failed"]) for asked in failed])
    codes = (computed, *again, *(code for code in minded if code != _FAILED))
    return next(filter(None, codes), 0)


def _covering(tool: list[str], words: list[str]) -> int:
    """Run something, and tell what of our Python it covered; 2 if that is too little."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["COVERAGE_FILE"] = f"{folder}/coverage"
        steps = (["run", "-m", *words], ["combine", "--quiet"], ["report"])
        ((ran, _, enough),) = side_by_side([Job([*tool, *step]) for step in steps])
        return ran or enough

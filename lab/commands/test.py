"""``closlab test``: the tests of this very tree."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from lab.errors import LabError
from lab.machine.paths import ROOT, keep_bytecode
from lab.machine.processes import Job, side_by_side
from lab.machine.tools import require_reference
from switch.build import processors

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
    if not (ROOT / "tests").is_dir():
        raise LabError("closlab was installed without its tests", "Run it where its sources are.")
    if reference:
        require_reference()
    kind = f"{'' if slow else 'not '}slow and {'' if reference else 'not '}reference"
    python = [sys.executable, "-m"]
    pytest = [*python, "pytest", "-m"]
    os.chdir(ROOT)
    keep_bytecode()  # pytest reads its plugins before it reads our conftest
    together = _at_once()
    if coverage:
        words = ["pytest", "-m", f"{kind} and not clock", *together, *(arguments or [])]
        raise typer.Exit(_covering([*python, "coverage"], words))
    if quick:
        os.execv(sys.executable, [*pytest, kind, "--quick", *together, *(arguments or [])])
    if slow or reference or arguments:
        os.execv(sys.executable, [*pytest, kind, *(arguments or [])])
    raise typer.Exit(_all(pytest, kind, together))


def _at_once() -> list[str]:
    """On all processors."""
    return ["-n", str(processors()), "--dist", "worksteal"]


def _all(pytest: list[str], kind: str, together: list[str]) -> int:
    """All courses; the exit code of the first that failed.

    What says the same however little time it gets gives way to what has a clock or a network to
    mind, and takes what processors' time is left. What a clock judges runs one by one, and networks
    come afterwards: to make one takes locks of the kernel's, for which whoever is in a hurry would
    have to wait. A neighbour that gives way still wears caches out, networks are two at once, and
    who gives way may starve for a minute: what fails beside others is asked again by itself, and
    only then believed. What passes then is named at the end: it deserves a look all the same.
    """
    asked = {
        "computes": [*pytest, f"{kind} and not clock and not mininet"],
        "clock": [*pytest, f"{kind} and clock"],
        "networks": [*pytest, f"{kind} and mininet and not clock"],
    }
    with tempfile.TemporaryDirectory() as folder:
        notes = {name: Path(folder, name) for name in asked}  # pytest's, of what failed
        for name, words in asked.items():
            words += ["-o", f"cache_dir={notes[name]}"]
        computes = Job([*asked["computes"], *together], gives_way=True)
        judged, networks = Job(asked["clock"]), Job([*asked["networks"], *together])
        (computed,), minded = side_by_side([computes], [judged, networks])
        codes = dict(zip(asked, (computed, *minded), strict=True))
        failed = [name for name, code in codes.items() if code == _FAILED]
        beside = _failures(notes.values())
        (again,) = side_by_side(
            [Job([*asked[name], "--last-failed", "--exitfirst"]) for name in failed]
        )
        codes |= zip(failed, again, strict=True)
        for test in sorted(beside - _failures(notes.values())):
            print(f"failed beside others, passed alone: {test}")
    return next(filter(None, codes.values()), 0)


def _failures(notes: Iterable[Path]) -> set[str]:
    """The tests that failed when they were last asked."""
    lists = (each / "v/cache/lastfailed" for each in notes)
    return {test for found in lists if found.exists() for test in json.loads(found.read_text())}


def _covering(tool: list[str], words: list[str]) -> int:
    """Run something, and tell what of our Python it covered; 2 if that is too little.

    Who names a file for it ($COVERAGE_FILE, coverage's own word) goes on from what it holds, so
    that parts of the tests add up.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("COVERAGE_FILE", f"{folder}/coverage")
        steps = (["run", "-m", *words], ["combine", "--append", "--quiet"], ["report"])
        ((ran, _, enough),) = side_by_side([Job([*tool, *step]) for step in steps])
        return ran or enough

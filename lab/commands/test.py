"""``closlab test``: the tests of this very tree."""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from lab.errors import LabError
from lab.machine.paths import ROOT, keep_bytecode
from lab.machine.processes import Job, side_by_side
from lab.machine.speed import hand_down
from lab.machine.tools import require_reference
from switch.build import processors

HAS_WORDS_OF_OTHERS = True
_FAILED = 1  # tests did, as pytest says it
KNOWN = "docs/known-flaky.md"
_REASON = re.compile(r"^- `(\S+)`: (.+)$", re.MULTILINE)


def command(
    arguments: Annotated[list[str] | None, typer.Argument(help="For pytest.")] = None,
    slow: Annotated[bool, typer.Option("--slow", help="Only the long sweeps.")] = False,
    reference: Annotated[
        bool, typer.Option("--reference", help="Only those that ask p4c and BMv2.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only the most tests for a minute, on all processors.")
    ] = False,
    ordinary: Annotated[
        bool, typer.Option("--ordinary", help="Only those that an ordinary user may fail.")
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
    hand_down()  # before anything is busy
    together = _at_once()
    if coverage:
        words = ["pytest", "-m", f"{kind} and not clock", *together, *(arguments or [])]
        raise typer.Exit(_covering([*python, "coverage"], words))
    if quick:
        os.execv(sys.executable, [*pytest, kind, "--quick", *together, *(arguments or [])])
    if ordinary:
        raise typer.Exit(_twice([[*pytest, f"{kind} and ordinary", *together]]))
    if slow or reference or arguments:
        os.execv(sys.executable, [*pytest, kind, *(arguments or [])])
    raise typer.Exit(_all(pytest, kind, together))


def _at_once(more: int = 0) -> list[str]:
    """On all processors; more at once where tests wait, too, for programs that they start."""
    return ["-n", str(processors() + more), "--dist", "worksteal"]


def _all(pytest: list[str], kind: str, together: list[str]) -> int:
    """All courses.

    What says the same however little time it gets gives way to what has a clock or a network to
    mind, and takes what processors' time is left. What a clock judges runs one by one, and networks
    come afterwards: to make one takes locks of the kernel's, for which whoever is in a hurry would
    have to wait.
    """
    computes = [*pytest, f"{kind} and not clock and not mininet", *_at_once(1)]
    judged = [*pytest, f"{kind} and clock"]
    networks = [*pytest, f"{kind} and mininet and not clock", *together]
    return _twice([computes], [judged, networks])


def _twice(*courses: list[list[str]]) -> int:
    """Follow courses side by side, all giving way to the last; the exit code of the first to fail.

    A neighbour that gives way still wears caches out, networks are two at once, and who gives way
    may starve for a minute: what fails beside others is asked again by itself. If it passes then,
    that is said at the end, and it counts as passed only if a reason is known.
    """
    with tempfile.TemporaryDirectory() as folder:
        notes = [Path(folder, str(number)) for number, _ in enumerate(chain(*courses))]
        places = iter(notes)  # pytest's, of what failed
        asked = [
            [[*words, "-o", f"cache_dir={next(places)}"] for words in course] for course in courses
        ]
        jobs = [
            [Job(words, gives_way=course is not asked[-1]) for words in course] for course in asked
        ]
        codes = list(chain(*side_by_side(*jobs)))
        failed = [at for at, code in enumerate(codes) if code == _FAILED]
        beside = _failures(notes)
        words = list(chain(*asked))
        again = ["--last-failed", "--exitfirst", "-n0"]
        (then,) = side_by_side([Job([*words[at], *again]) for at in failed])
        for at, code in zip(failed, then, strict=True):
            codes[at] = code
        unknown = _without_reason(beside - _failures(notes))
    return next(filter(None, codes), _FAILED if unknown else 0)


def _without_reason(tests: set[str]) -> list[str]:
    """Tell which failed beside others and passed alone; those of them that have no known reason."""
    reasons = dict(_REASON.findall((ROOT / KNOWN).read_text()))
    found = {test: reasons.get(test.partition("[")[0]) for test in sorted(tests)}
    for test, reason in found.items():
        print(f"failed beside others, passed alone: {test}: {reason or 'nobody knows why'}")
    unknown = [test for test, reason in found.items() if reason is None]
    if unknown:
        print(f"Mend them, or give each a reason and an issue in {KNOWN}.")
    return unknown


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

"""Grading: a submission is judged in a process that may loop, run out of memory or be killed.

It works in a room where a submission sees nothing but itself (`sandboxes.py`), and is ended with
all that it started. Whatever it does, there is a grade: the checks it got through count, the one it
ended in is said to be where, and those after it are not judged.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from course import sandboxes
from course.bounds import lines_of
from course.check import Check
from course.checks import checks_of
from course.lesson import Lesson
from course.submission import files_in, packed
from course.verdict import NOT_JUDGED, TOO_MUCH_MEMORY, Grade, Judged, State, shown
from lab.errors import LabError
from lab.machine import tools
from lab.machine.building import building
from lab.machine.processes import as_shells_tell
from lab.machine.scratch import scratch
from lab.machine.speed import processor_slowness
from switch.build import runtime_library

TIME_S = 60  # of a usual processor
_LAST_LINES = 2
_INTERFERED = (
    "something spoke in the judge's place, and nothing that it said counts",
    "what in it does anything but what the lesson asks for?",
)
_ENDING_S = 1.0  # that a judge has to end who has told all


def grade(
    lesson: Lesson, folder: Path, processor_s: int = TIME_S, *, is_trusted: bool = False
) -> Grade:
    """Judge what lies in a folder; it has so much longer as this processor is slower than usual.

    What is not trusted is judged only where it can be shut in.
    """
    if not folder.is_dir():
        raise LabError(
            f"there is no folder {folder}",
            f"closlab lesson {lesson.number} makes one.",
        )
    tools.require_compiler()
    if not is_trusted:
        sandboxes.require_walls()
    checks = checks_of(lesson.number)
    files = files_in(folder)
    with building("the run-time"):
        runtime_library()  # once for all, and not on the submission's time
    most_s = math.ceil(processor_s * processor_slowness())
    words = (sys.executable, "-P", "-m", "course.inside", lesson.name, str(most_s))
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as given, _desk() as desk:
        given.write(packed(files))
        given.seek(0)
        process = subprocess.Popen(
            sandboxes.judges_room(desk, words),
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
            env=sandboxes.judges_surroundings(desk, is_trusted=is_trusted),
        )
        assert process.stdout is not None
        try:
            with process.stdout as stream:
                found = _heard(lines_of(stream.fileno(), most_s), checks)
        finally:
            code = _end(process)
        if len(found) < len(checks):
            found.append(_ended(checks[len(found)], code, most_s, said))
    rest = (
        Judged(check.says, check.points, State.NOT_JUDGED, NOT_JUDGED)
        for check in checks[len(found) :]
    )
    return Grade(lesson.name, lesson.title, (*found, *rest))


@contextmanager
def _desk() -> Iterator[Path]:
    """The one folder a judge writes to; in namespaces there is none of it outside."""
    if "namespaces" in sandboxes.walls():
        yield Path("/tmp")  # noqa: S108 - its own
    else:
        with scratch() as folder:
            yield folder


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a judge, and whatever it started; how it had ended, if it had."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_ENDING_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    return as_shells_tell(process.wait())


def _heard(lines: Iterator[str], checks: Sequence[Check]) -> list[Judged]:
    """What a judge tells; of one who speaks as none does nothing counts."""
    found: list[Judged] = []
    try:
        for line in lines:
            found.append(_read(checks[len(found)], line))
    except (IndexError, TypeError, ValueError):
        return [Judged(checks[0].says, checks[0].points, State.WRONG, *_INTERFERED)]
    return found


def _read(check: Check, line: str) -> Judged:
    state, what, where, seconds = json.loads(line)
    return Judged(check.says, check.points, State(state), shown(what), shown(where), seconds)


def _ended(check: Check, code: int, most_s: int, said: IO[bytes]) -> Judged:
    """What to say of a check that did not end."""
    said.seek(0)
    last = said.read().decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
    if code - 128 in (signal.SIGXCPU, signal.SIGKILL):
        what = f"it did not come to an end in {most_s} s"
        where = "is there a loop, a packet that goes round for ever, or too much to compile?"
    elif code > 128 or (last and last[-1].startswith("MemoryError")):
        what, where = TOO_MUCH_MEMORY
    else:
        what = shown(f"the judge came to no end: {' '.join(last) or f'exit code {code}'}")
        where = "this is a defect of the lesson: tell whoever teaches it"
    return Judged(check.says, check.points, State.WRONG, what, where)

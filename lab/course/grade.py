"""Grading: a submission is judged in a process that may loop, run out of memory or be killed.

Whatever it does, there is a grade: the checks it got through count, the one it ended in is said to
be where, and those after it are not judged.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from lab.course.bounds import lines_of
from lab.course.check import Check
from lab.course.checks import checks_of
from lab.course.inside import TOO_MUCH_MEMORY
from lab.course.lesson import Lesson
from lab.course.verdict import NOT_JUDGED, Grade, Judged, State
from lab.errors import LabError
from lab.machine import tools
from lab.machine.building import building
from lab.machine.paths import ROOT
from lab.machine.speed import processor_slowness
from switch.build import runtime_library

TIME_S = 60  # of a usual processor
_LAST_LINES = 2


def grade(lesson: Lesson, folder: Path, processor_s: int = TIME_S) -> Grade:
    """Judge what lies in a folder; it has so much longer as this processor is slower than usual."""
    if not folder.is_dir():
        raise LabError(
            f"there is no folder {folder}",
            f"closlab lesson {lesson.number} makes one.",
        )
    tools.require_compiler()
    checks = checks_of(lesson.number)
    with building():
        runtime_library()  # once for all, and not on the submission's time
    most_s = math.ceil(processor_s * processor_slowness())
    words = ("lab.course.inside", lesson.name, str(folder.resolve()), str(most_s))
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert process.stdout is not None
        found: list[Judged] = []
        try:
            with process.stdout as stream:
                for line in lines_of(stream.fileno(), most_s):
                    found.append(_read(checks[len(found)], line))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # it, and whatever it started
            code = process.wait()
        if len(found) < len(checks):
            found.append(_ended(checks[len(found)], code, most_s, said))
    rest = (
        Judged(check.says, check.points, State.NOT_JUDGED, NOT_JUDGED)
        for check in checks[len(found) :]
    )
    return Grade(lesson.name, lesson.title, (*found, *rest))


def _read(check: Check, line: str) -> Judged:
    state, what, where, seconds = json.loads(line)
    return Judged(check.says, check.points, State(state), what, where, seconds)


def _ended(check: Check, code: int, most_s: int, said: IO[bytes]) -> Judged:
    """What to say of a check that did not end."""
    said.seek(0)
    last = said.read().decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
    if -code in (signal.SIGXCPU, signal.SIGKILL):
        what = f"it did not come to an end in {most_s} s"
        where = "is there a loop, a packet that goes round for ever, or too much to compile?"
    elif code < 0 or (last and last[-1].startswith("MemoryError")):
        what, where = TOO_MUCH_MEMORY
    else:
        what = f"the judge came to no end: {' '.join(last) or f'exit code {code}'}"
        where = "this is a defect of the lesson: tell whoever teaches it"
    return Judged(check.says, check.points, State.WRONG, what, where)

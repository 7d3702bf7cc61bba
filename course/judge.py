"""The judge: what each of a lesson's checks finds."""

from __future__ import annotations

import time
from collections.abc import Iterator

from course.bench import Bench
from course.check import Check
from course.checks import checks_of
from course.functions import Hosts
from course.lesson import Lesson
from course.submission import Files
from course.verdict import NOT_JUDGED, TOO_MUCH_MEMORY, AsAbove, Judged, State, Wrong


def verdicts(lesson: Lesson, files: Files, hosts: Hosts) -> Iterator[Judged]:
    """How each check ends; who asks says where a student's functions run."""
    bench = Bench(files, hosts)
    is_wrong = False
    try:
        for check in checks_of(lesson.number):
            if check.comes_last and is_wrong:
                verdict = Judged(check.says, check.points, State.NOT_JUDGED, NOT_JUDGED)
            else:
                verdict = _judged(check, bench)
            is_wrong |= verdict.state is not State.PASSED
            yield verdict
    finally:
        bench.close()


def _judged(check: Check, bench: Bench) -> Judged:
    began = time.monotonic()
    state, what, where = State.PASSED, "", ""
    try:
        check.judge(bench)
    except AsAbove:
        state, what = State.NOT_JUDGED, NOT_JUDGED
    except Wrong as wrong:
        state, what, where = State.WRONG, wrong.what, wrong.where
    except MemoryError:
        state, (what, where) = State.WRONG, TOO_MUCH_MEMORY
    took_s = time.monotonic() - began
    return Judged(check.says, check.points, state, what, where, round(took_s, 3))

"""The process that judges a submission: ``python -m course.inside LESSON SECONDS``.

It is given the submission's files as a line of standard input (`handed_in.py`), and works in a room
(`rooms.py`) where there is little else. It says on standard output how each check ended, a line of
JSON each, so that what was found until then counts whatever becomes of it. The kernel bounds its
memory and its processor time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import NoReturn

from course.bench import Bench
from course.bounds import MEMORY_BYTES, bound
from course.check import Check
from course.checks import checks_of
from course.handed_in import Files, unpacked
from course.lesson import Lesson, find
from course.verdict import NOT_JUDGED, AsAbove, Judged, State, Wrong
from lab.machine.threads import mind_threads

TOO_MUCH_MEMORY = (
    f"it takes more than {MEMORY_BYTES >> 30} GiB of memory",
    "is there a table, register, number or macro in it that is larger than the lesson needs?",
)


def verdicts(lesson: Lesson, files: Files) -> Iterator[Judged]:
    """How each check ends."""
    bench = Bench(files)
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


def main(lesson: str, processor_s: str) -> NoReturn:
    """Judge, and tell."""
    bound(int(processor_s))
    mind_threads()
    files = unpacked(sys.stdin.buffer.readline())
    tell = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for verdict in verdicts(find(lesson), files):
        line = [verdict.state.value, verdict.what, verdict.where, verdict.seconds]
        print(json.dumps(line), file=tell, flush=True)
    os._exit(0)  # all is told; what libraries do as Python ends may wait for their threads


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The process that judges a submission: ``python -m course.inside LESSON SECONDS``.

It is given the submission's files as a line of standard input (`submission.py`), and works in a
room (`sandboxes.py`) where there is little else. It says on standard output how each check ended, a
line of JSON each, so that what was found until then counts whatever becomes of it. The kernel
bounds its memory and its processor time.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import NoReturn

from course import judge
from course.bounds import bound
from course.isolated import Isolated
from course.lesson import Lesson, find
from course.submission import Files, unpacked
from course.verdict import Judged
from lab.machine.threads import mind_threads


def verdicts(lesson: Lesson, files: Files) -> Iterator[Judged]:
    """How each check ends, with a student's functions in a process of their own."""
    return judge.verdicts(lesson, files, Isolated)


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

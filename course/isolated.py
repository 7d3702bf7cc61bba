"""A student's functions in a process and a room of their own.

So what they print, raise or end is theirs alone: a judge hears of it, and nothing of them is in the
process that gives points, nor has that one a name where they are (`sandboxes.py`). They can compute
and answer, with Python's own library.
"""

from __future__ import annotations

import resource
import signal
import subprocess
from pathlib import Path

from course import answering
from course.bounds import lines_of
from course.functions import ended
from course.sandboxes import students_room
from course.verdict import MEMORY_BYTES, Wrong
from lab.machine.processes import say

_SHARE = 6  # all calls together may take this part of the processor time there is
_USUAL_S = 60
_ENDING_S = 1.0  # that one has to end who closed his side
_KILLED = 128 + signal.SIGKILL  # by a limit, as a room tells it
_CODE = f"""{Path(answering.__file__).read_text()}
import os, resource, sys
for what, most in zip((resource.RLIMIT_CPU, resource.RLIMIT_AS), map(int, sys.argv[1:])):
    least = min(limit for limit in (most, *resource.getrlimit(what)) if limit >= 0)
    resource.setrlimit(what, (least, least))
told = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
for each in answers(sys.stdin):
    print(each, file=told, flush=True)
"""


class Isolated:
    """Such a process."""

    def __init__(self) -> None:
        most_s = resource.getrlimit(resource.RLIMIT_CPU)[0]
        self._most_s = (_USUAL_S if most_s == resource.RLIM_INFINITY else most_s) // _SHARE
        self._process = subprocess.Popen(
            students_room(_CODE, str(self._most_s), str(MEMORY_BYTES)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C.UTF-8"},
            text=True,
        )

    def say(self, line: str) -> None:
        """Ask."""
        say(self._process, line)

    def hear(self) -> str:
        """The next answer; nothing, if it has ended or takes too long."""
        assert self._process.stdout is not None
        return next(lines_of(self._process.stdout.fileno(), self._most_s), "")

    def silence(self, what: str, file: str) -> Wrong:
        """Why there was no answer."""
        try:
            code = self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            code = _KILLED
            self._process.kill()
        if code in (_KILLED, -signal.SIGKILL):
            return Wrong(
                f"{what} gave no answer in {self._most_s} s", f"{file}: where does it not end?"
            )
        return ended(what, file)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

"""A student's functions in Python, called in a process and a room of their own.

So what they print, raise or end is theirs alone: a judge hears of it, and nothing of them is in the
process that gives points, nor has that one a name where they are (`rooms.py`). They can compute and
answer, with Python's own library. Arguments and results are what JSON has; what else comes is no
answer.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from course.bounds import MEMORY_BYTES, lines_of
from course.rooms import students_room
from course.verdict import Wrong
from lab.machine.processes import say

_SHARE = 6  # all calls together may take this part of the processor time there is
_USUAL_S = 60
_ENDING_S = 1.0  # that one has to end who closed his side
_MOST_DIGITS = sys.float_info.max_10_exp  # of a whole number
_KILLED = 128 + signal.SIGKILL  # by a limit, as a room tells it
_HOST = """
import json, os, resource, sys, traceback, types
for what, most in zip((resource.RLIMIT_CPU, resource.RLIMIT_AS), map(int, sys.argv[1:])):
    least = min(limit for limit in (most, *resource.getrlimit(what)) if limit >= 0)
    resource.setrlimit(what, (least, least))
told = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
print("null", file=told, flush=True)
path, source = json.loads(sys.stdin.readline())
module = types.ModuleType("submission")
module.__file__ = path

def place(error):
    if isinstance(error, SyntaxError) and error.filename == path:
        return error.lineno
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
    return lines[-1] if lines else None

def answered(act):
    try:
        found = {"value": act()}
        text = json.dumps(found)
    except BaseException as error:
        text = json.dumps({"error": f"{type(error).__name__}: {error}"[:300], "line": place(error)})
    print(text, file=told, flush=True)

def load():
    exec(compile(source.encode("latin-1"), path, "exec"), vars(module))

answered(load)
for line in sys.stdin:
    name, arguments = json.loads(line)
    answered(lambda: getattr(module, name)(*arguments))
"""


class Functions:
    """What a file in Python defines."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        most_s = resource.getrlimit(resource.RLIMIT_CPU)[0]
        self._most_s = (_USUAL_S if most_s == resource.RLIM_INFINITY else most_s) // _SHARE
        self._process = subprocess.Popen(
            students_room(_HOST, str(self._most_s), str(MEMORY_BYTES)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C.UTF-8"},
            text=True,
        )
        try:
            if self._line() != "null":
                raise RuntimeError("the room for what is handed in could not be made")
            say(self._process, json.dumps([path.name, path.read_bytes().decode("latin-1")]))
            self._answer("the file")
        except BaseException:
            self.close()
            raise

    def call(self, function: str, *arguments: object) -> Any:
        """What a function returns."""
        say(self._process, json.dumps([function, arguments]))
        shown = ", ".join(map(repr, arguments))
        return self._answer(f"{function}({shown})" if len(shown) < 100 else function)

    def number(self, function: str, *arguments: object) -> float:
        """The same, which has to be a number."""
        found = self.call(function, *arguments)
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise Wrong(
                f"{function} returns {found!r}, which is no number",
                f"{self._name}: does it end with return on every way through?",
            )
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        """What it says next; nothing, if it has ended or takes too long."""
        assert self._process.stdout is not None
        return next(lines_of(self._process.stdout.fileno(), self._most_s), "")

    def _answer(self, what: str) -> Any:
        def whole(digits: str) -> int:
            if len(digits) > _MOST_DIGITS:  # no float has so many, and who computes fails
                raise Wrong(f"{what} returns a number of {len(digits)} digits", self._name)
            return int(digits)

        try:
            told = json.loads(self._line(), parse_int=whole)
        except (ValueError, RecursionError):
            told = None
        match told:
            case {"value": value}:
                return value
            case {"error": str(error), "line": line}:
                where = f":{line}" if isinstance(line, int) else ""
                raise Wrong(f"{what} raised {error}", f"{self._name}{where}")
        try:
            code = self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            code = _KILLED
            self._process.kill()
        if code in (_KILLED, -signal.SIGKILL):
            raise Wrong(
                f"{what} gave no answer in {self._most_s} s",
                f"{self._name}: where does it not end?",
            )
        raise Wrong(f"{what} ended Python", f"{self._name}: what exits there?")

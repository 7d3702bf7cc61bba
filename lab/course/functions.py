"""A student's functions in Python, called in a process of their own.

So what they print, raise or end is theirs alone: a judge hears of it, and nothing of them is in the
process that gives points. Arguments and results are what JSON has.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from lab.course.bounds import lines_of
from lab.course.verdict import Wrong
from lab.machine.processes import say

_SHARE = 6  # all calls together may take this part of the processor time there is
_USUAL_S = 60
_HOST = """
import importlib.util, json, os, resource, sys, traceback
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[2]),) * 2)
told = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
path = sys.argv[1]

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
    spec = importlib.util.spec_from_file_location("submission", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    globals()["module"] = module

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
            [sys.executable, "-I", "-c", _HOST, str(path), str(self._most_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=path.parent,
            text=True,
        )
        self._answer("the file")

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

    def _answer(self, what: str) -> Any:
        assert self._process.stdout is not None
        try:
            told = json.loads(next(lines_of(self._process.stdout.fileno(), self._most_s)))
        except (StopIteration, json.JSONDecodeError):
            self._process.kill()
            if self._process.wait() in (-signal.SIGXCPU, -signal.SIGKILL):
                raise Wrong(
                    f"{what} gave no answer in {self._most_s} s",
                    f"{self._name}: where does it not end?",
                ) from None
            raise Wrong(f"{what} ended Python", f"{self._name}: what exits there?") from None
        if "error" in told:
            line_number = f":{told['line']}" if told["line"] else ""
            raise Wrong(f"{what} raised {told['error']}", f"{self._name}{line_number}")
        return told["value"]

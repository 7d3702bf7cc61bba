"""A student's functions in Python: called, and what comes back looked at.

They run where nothing of them harms whoever gives points (`isolated.py`), or in a browser's tab,
where student and judge are one (`in_process.py`). Arguments and results are what JSON has; what
else comes is no answer.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from course.answering import READY
from course.verdict import Wrong

_MAX_DIGITS = sys.float_info.max_10_exp  # of a whole number


class Host(Protocol):
    """Where a student's functions run."""

    def say(self, line: str) -> None:
        """Ask."""

    def hear(self) -> str:
        """The next answer; nothing, if there is none any more or it takes too long."""

    def silence(self, what: str, file: str) -> Wrong:
        """Why there was no answer."""

    def close(self) -> None:
        """Put it away."""


Hosts = Callable[[], Host]


class Functions:
    """What a file in Python defines."""

    def __init__(self, path: Path, host: Host) -> None:
        self._name = path.name
        self._host = host
        try:
            if host.hear() != READY:
                raise RuntimeError("the room for what is handed in could not be made")
            host.say(json.dumps([path.name, path.read_bytes().decode("latin-1")]))
            self._answer("the file")
        except BaseException:
            self.close()
            raise

    def call(self, function: str, *arguments: object) -> Any:
        """What a function returns."""
        self._host.say(json.dumps([function, arguments]))
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
        """Call nothing any more."""
        self._host.close()

    def _answer(self, what: str) -> Any:
        def whole(digits: str) -> int:
            if len(digits) > _MAX_DIGITS:  # no float has so many, and who computes fails
                raise Wrong(f"{what} returns a number of {len(digits)} digits", self._name)
            return int(digits)

        try:
            answer = json.loads(self._host.hear(), parse_int=whole)
        except (ValueError, RecursionError):
            answer = None
        match answer:
            case {"value": value}:
                return value
            case {"error": str(error), "line": line}:
                where = f":{line}" if isinstance(line, int) else ""
                raise Wrong(f"{what} raised {error}", f"{self._name}{where}")
        raise self._host.silence(what, self._name)


def ended(what: str, file: str) -> Wrong:
    """What to say of one that ended the Python it ran in."""
    return Wrong(f"{what} ended Python", f"{file}: what exits there?")

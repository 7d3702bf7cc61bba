"""A student's functions in the judge's own Python: in a browser's tab both are the student's."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout

from course.answering import answers
from course.functions import ended
from course.verdict import Wrong


class InProcess:
    """They answer as they are asked; what they print is heard by nobody."""

    def __init__(self) -> None:
        self._asked: deque[str] = deque()
        self._answers = answers(self._lines())

    def _lines(self) -> Iterator[str]:
        while self._asked:
            yield self._asked.popleft()

    def say(self, line: str) -> None:
        """Ask."""
        self._asked.append(line)

    def hear(self) -> str:
        """The next answer."""
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return next(self._answers, "")

    def silence(self, what: str, file: str) -> Wrong:
        """Why there was no answer."""
        return ended(what, file)

    def close(self) -> None:
        """Ask nothing any more."""
        self._answers = iter(())

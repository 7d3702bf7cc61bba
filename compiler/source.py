"""Source text: one preprocessed text, and the way back to files, lines and columns.

The preprocessor joins all included files into one text so that every later stage can name a
place by two offsets. Each line of that text remembers the file line it came from, and, where a
macro was expanded, how its columns moved.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, count
from operator import add
from typing import NamedTuple

from params.data import Data


class Span(NamedTuple):
    """A half-open range of offsets in the preprocessed text."""

    start: int
    end: int

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the other."""
        return Span(self.start, max(self.end, other.end))


NOWHERE = Span(-1, -1)


class Position(Data):
    """A place in a file the user wrote: line and column count from 1."""

    file: str
    line: int
    column: int
    line_text: str
    length: int


class Line(NamedTuple):
    """One line of preprocessed text and where it came from."""

    file: str
    number: int
    original: str
    shifts: tuple[tuple[int, int], ...] = ()

    def column(self, column: int) -> int:
        """The column in the original line for a column in the preprocessed one."""
        best = column
        for out, src in self.shifts:
            if out > column:
                break
            best = src + (column - out)
        return max(0, min(best, len(self.original)))


class Text:
    """The preprocessed program."""

    def __init__(self, text: str, lines: list[Line]) -> None:
        self.text = text
        self.lines = lines
        lengths = accumulate(map(len, text.split("\n")[:-1]), initial=0)
        self.starts: list[int] = [*map(add, lengths, count())]  # of each line, and the end

    def line_of(self, offset: int) -> tuple[Line | None, int]:
        """The line that holds an offset, and the offset's column in the original line."""
        index = bisect_right(self.starts, max(0, offset)) - 1
        if index >= len(self.lines):
            index = len(self.lines) - 1
        if index < 0:
            return None, 0
        line = self.lines[index]
        return line, line.column(offset - self.starts[index])

    def position(self, span: Span) -> Position:
        """Where a span starts, for people."""
        line, column = self.line_of(span.start)
        if line is None:
            return Position("", 1, 1, "", 1)
        return Position(line.file, line.number, column + 1, line.original, span.end - span.start)

    def fragment(self, span: Span) -> str:
        """The text a span covers."""
        return self.text[span.start : span.end]

"""A program's text, laid out so that a key moves little.

All that is known of a program is known by where it stands in its preprocessed text. So lines are
filled up with blanks, as a page's are: what stands below one keeps its place while that grows by a
few characters, and what was made of it can be kept. Who asks for words or places of the text is
told what was written.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from compiler.source import Position, Span, Text

_WIDTH = 64  # of which lines are multiples, with what ends them


class LaidOut(Text):
    """A text whose lines are filled up."""

    def __init__(self, written: Text) -> None:
        lines = written.text.split("\n")
        super().__init__("\n".join(map(_filled, lines)), written.lines)
        self._written = written

    def _line(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def _was(self, offset: int) -> int:
        """Where a place is in the text as it was written."""
        index = self._line(offset)
        if not 0 <= index < len(self.starts) - 1:
            return offset if index < 0 else len(self._written.text)
        starts = self._written.starts
        return min(starts[index] + offset - self.starts[index], starts[index + 1] - 1)

    def position(self, span: Span) -> Position:
        """Where a span starts, for people."""
        found = super().position(span)
        if self._line(span.start) == self._line(span.end):
            return found
        return replace(found, length=self._was(span.end) - self._was(span.start))

    def fragment(self, span: Span) -> str:
        """The text a span covers."""
        return self._written.fragment(Span(self._was(span.start), self._was(span.end)))


def _filled(line: str) -> str:
    return line.ljust((len(line) // _WIDTH + 1) * _WIDTH - 1) if line else ""


def laid_out(text: Text) -> Text:
    """A text with its lines filled up; as it is where a string goes on in the next line, for what
    is in that is the program's."""
    is_whole = all(line.count('"') % 2 == 0 for line in text.text.split("\n") if '"' in line)
    return LaidOut(text) if is_whole else text

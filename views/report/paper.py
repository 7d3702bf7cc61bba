"""What goes on which page of paper, so that no page ends half empty.

Drawings do not break, so whatever does not fit below the last one leaves a gap. How high each is
follows from its shapes and the style sheet: so all ways to fill a page's columns can be tried, and
the one that leaves least free is taken; of equals that with what matters more, first. Screens have
the same order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from params.data import Data
from params.quantity import summed
from views.report.svg import WIDTH, Drawing

_FIRST = 2  # what one looks at first, on the first page: the fabric, and messages
_MAX_TRIED = 9  # panels: of more the first ones are looked at
_MARGINS = 2 * 14 * 96 / 25.4  # of a page, in CSS pixels
_TEXT = 10.5  # the size of letters
_LETTER = 0.53  # how wide one is, of its size


class Paper(Data):
    """A4, in CSS pixels, and how many columns of drawings stand on it."""

    width: float
    height: float
    columns: int = 2
    gap: float = 8.0

    @property
    def column(self) -> float:
        """How wide one is."""
        return (self.width - (self.columns - 1) * self.gap) / self.columns

    def text(self, said: str, size: float = 1.0, inset: float = 0.0) -> float:
        """How high a paragraph over the whole width is."""
        return _lines(said, self.width - inset, size * _TEXT) * 1.5 * size * _TEXT + 0.8 * _TEXT

    def drawn(self, title: str, caption: str, drawing: Drawing) -> float:
        """How high a drawing is in a column, with its title, caption and border."""
        room = self.column - 30
        words = 1.5 * _TEXT * bool(title) + 12.8 * _lines(caption, room, 0.87 * _TEXT)
        return 54 + words + drawing.height * room / WIDTH


PORTRAIT = Paper(210 * 96 / 25.4 - _MARGINS, 297 * 96 / 25.4 - _MARGINS)
LANDSCAPE = Paper(PORTRAIT.height, PORTRAIT.width, 3)


def _lines(said: str, width: float, size: float) -> int:
    return math.ceil(len(said) * _LETTER * size / width)


def order(heights: Sequence[float], paper: Paper, above: float, columns: int) -> list[int]:
    """In which order drawings fill pages best, the first of which has text above them; all of a
    column of the first page, then of its next, and so on."""
    left = list(range(len(heights)))
    placed: list[int] = []
    room = max(0.0, paper.height - above)
    while left:
        tried = left[:_MAX_TRIED]
        best = _fill([heights[at] for at in tried], room, columns, first=_FIRST * (not placed))
        if not any(best) and room == paper.height:
            best = [[0], *([] for _ in range(columns - 1))]  # higher than a page: cut all the same
        taken = [tried[at] for column in best for at in column]
        placed += taken
        left = [at for at in left if at not in taken]
        room = paper.height
    return placed


def _fill(heights: Sequence[float], room: float, columns: int, *, first: int) -> list[list[int]]:
    """What to put into the columns of a page: these first ones where they fit, one at the top."""
    best: tuple[float, list[list[int]]] = -1.0, [[] for _ in range(columns)]
    for places in product(range(columns + 1), repeat=len(heights)):
        if first and places[0] != 0 and heights[0] <= room:
            continue
        if any(
            p == columns for p, high in zip(places[:first], heights, strict=False) if high <= room
        ):
            continue
        sums = [0.0] * (columns + 1)
        for place, height in zip(places, heights, strict=True):
            sums[place] += height
        if max(sums[:columns]) > room:
            continue
        # What comes first matters a little: it breaks ties, and near ties.
        matters = summed(
            height * 0.1 / (at + 1)
            for at, (place, height) in enumerate(zip(places, heights, strict=True))
            if place < columns
        )
        value = summed(sums[:columns]) + matters
        if value > best[0]:
            chosen = [[at for at, p in enumerate(places) if p == c] for c in range(columns)]
            best = value, chosen
    return best[1]

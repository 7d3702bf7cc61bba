"""Why a message was slow, as a bar: the time it takes alone, and what each root added."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lab.results.causes import Why, read_causes
from params.quantity import duration
from views.report import page
from views.report.page import Panel
from views.report.palette import AGGRESSOR, FAINT, INK, MESSAGE, PAUSE, SERIES, TRACK
from views.report.svg import FONT, WIDTH, Drawing

_BAR = 26.0
_COLOURS = AGGRESSOR, PAUSE, SERIES[3], SERIES[5]


def sections(folder: Path) -> Iterator[str]:
    """Why things of a run were slow, of those that somebody asked about."""
    for found in read_causes(folder):
        title = f"Why did {found.what if found.src else f'the {found.what}'} take so long?"
        drawn = page.grid([Panel(title, bar(found))], 2)
        yield page.section((drawn, page.listing(found.sentences())))


def bar(why: Why) -> Drawing:
    """The drawing."""
    total = why.alone_ns + why.lost_ns
    drawing = Drawing(0, str(why))
    x = 0.0
    legend = [(MESSAGE, f"alone, {duration(why.alone_ns)}")]
    pieces = [(MESSAGE, why.alone_ns)]
    for at, share in enumerate(why.shares):
        pieces.append((_COLOURS[at], share.gained_ns))
        legend.append((_COLOURS[at], f"{share.named}, {duration(share.gained_ns)}"))
    if why.rest_ns > 0:
        pieces.append((TRACK, why.rest_ns))
        legend.append((TRACK, f"nothing gave it back, {duration(why.rest_ns)}"))
    for colour, ns in pieces:
        width = WIDTH * ns / total
        drawing.rect(x, 0, width, _BAR, fill=colour)
        x += width
    y = _BAR + FONT + 6
    for colour, said in legend:
        drawing.rect(0, y - 9, 12, 10, fill=colour)
        drawing.text(18, y, said, fill=INK)
        y += FONT + 6
    drawing.text(0, y, f"of {duration(total)}", fill=FAINT)
    drawing.height = y + 6
    return drawing

"""Who is to blame and who suffers, marked in drawings of a fabric: a shape and a word each.

◆ congested port     it sent all it could, and a queue stood before it
◆ its link is full   the same of the port to a host, told there
✶ storms             a host that sends pause frames without need
▲ slow, bad link     it has a share of its rate, or loses or spoils frames, as the scenario asks
◉ victim             the message that waits because of others starts here
○ victim's receiver
⧗ straggler          others wait for what it computes
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from params.data import Data
from topologies import Node, NodeKind
from views.report.kept import KeptRun
from views.report.palette import DROP, FAINT, INK, PAPER, PAUSE, QUEUE, STRAGGLER, VICTIM
from views.report.suspects import congested, storming, straggler, victims
from views.report.svg import FONT, ROOM, WIDTH, Drawing, width_of

CONGESTED, FULL, STORMS, LATE = "congested port", "its link is full", "storms", "straggler"
SLOW, BAD = "slow link", "bad link"
SUFFERS, RECEIVES = "victim", "victim's receiver"
MEANINGS = {
    CONGESTED: "it sent all it could, and a queue grew",
    FULL: "more came for the host than that carries",
    SLOW: "it has a share of its rate",
    BAD: "it loses or spoils frames",
    STORMS: "it pauses others without need",
    SUFFERS: "its message waits because of others",
    LATE: "others wait until it has computed",
}
_MAX_VICTIMS = 3
_SPOILS = "slow", "lose", "corrupt", "duplicate", "reorder"
_ROW = FONT + 4


class Sign(Data):
    """A mark on a host, or on a direction of a link between switches."""

    where: str
    what: str


def signs(run: KeptRun) -> list[Sign]:
    """All there are; what is the matter with a port that leads to a host is told at that host."""
    found = [Sign(host, STORMS) for host in storming(run)]
    late = straggler(run)
    if late:
        found.append(Sign(late[0], LATE))
    for flow in victims(run)[:_MAX_VICTIMS]:
        found += [Sign(flow.src, SUFFERS), Sign(flow.dst, RECEIVES)]
    found += _links(run)
    for name in congested(run):
        far = run.fabric.node(name.partition(">")[2].partition(".")[0])
        is_host = far.kind is NodeKind.HOST
        found.append(Sign(far.name, FULL) if is_host else Sign(name, CONGESTED))
    return list(dict.fromkeys(found))


def _links(run: KeptRun) -> Iterator[Sign]:
    """Those that the scenario makes worse than others, but for what cuts them."""
    scenario = run.result.scenario
    slow, bad = {*scenario.link.slow}, {*scenario.loss.links}
    for fault in scenario.faults:
        if fault.link and fault.at_ns < run.end_ns and fault.action in _SPOILS:
            (slow if fault.action == "slow" else bad).add(fault.link)
    queued = {use.name: use.max_queue_bytes or 0 for use in run.result.links}
    for link in run.fabric.links:
        worse = max(link.directions, key=lambda way: queued.get(way, 0))
        where = worse if link.joins_switches else str(link.a)
        if link.name in bad:
            yield Sign(where, BAD)
        elif link.name in slow:
            yield Sign(where, SLOW)


def shape(drawing: Drawing, x: float, y: float, what: str) -> None:
    """The shape that stands for something, around a place."""
    if what in (SUFFERS, RECEIVES):
        drawing.add("circle", cx=x, cy=y, r=4.2, fill=PAPER, stroke=VICTIM, stroke_width=2)
        if what == SUFFERS:
            drawing.add("circle", cx=x, cy=y, r=1.8, fill=VICTIM)
    elif what == LATE:
        glass = [(x - 4, y - 5), (x + 4, y - 5), (x - 4, y + 5), (x + 4, y + 5), (x - 4, y - 5)]
        drawing.polyline(glass, fill=STRAGGLER, stroke=STRAGGLER, stroke_width=1)
    elif what in (SLOW, BAD):
        triangle = [(x, y - 6), (x + 5.5, y + 4), (x - 5.5, y + 4), (x, y - 6)]
        drawing.polyline(triangle, fill=DROP, stroke=PAPER, stroke_width=1.2)
    elif what == STORMS:
        far = [(5.6, 2.4)[at % 2] for at in range(17)]
        star = [
            (x + r * math.sin(at * math.pi / 8), y - r * math.cos(at * math.pi / 8))
            for at, r in enumerate(far)
        ]
        drawing.polyline(star, fill=PAUSE, stroke=PAPER, stroke_width=0.6)
    else:
        diamond = [(x, y - 5.5), (x + 5.5, y), (x, y + 5.5), (x - 5.5, y), (x, y - 5.5)]
        drawing.polyline(diamond, fill=QUEUE, stroke=PAPER, stroke_width=1.2)


def wide(word: str) -> float:
    """How much room a shape and its word take."""
    return 14 + ROOM * width_of(word)


def below(
    drawing: Drawing, found: Iterable[Sign], places: Mapping[Node, tuple[float, float]]
) -> float:
    """Shapes and words below hosts, where there is room for them; how much that takes."""
    at = {node.name: place for node, place in places.items()}
    wanted = [(*at[sign.where], sign.what) for sign in found if sign.where in at]
    deepest = 0
    for y, row in groupby(sorted(wanted, key=lambda each: (each[1], -each[0])), lambda e: e[1]):
        begins: list[float] = []  # of what stands in each row, from the right, so that no line
        for x, _, what in row:  # that leads down to a word crosses another
            needs = wide(what)
            left = min(max(0.0, x - 7), WIDTH - needs)
            right = left + needs + 6
            line = next((n for n, begin in enumerate(begins) if right <= begin), len(begins))
            begins[line : line + 1] = [left]
            middle = y + 9 + 11 + line * _ROW
            drawing.line(x, y + 9, left + 7, middle - 5, stroke=FAINT)
            shape(drawing, left + 7, middle, what)
            drawing.text(left + 15, middle + 4, what, fill=INK, class_="strong halo")
        deepest = max(deepest, len(begins))
    return deepest * _ROW


def key(drawing: Drawing, y: float, found: Iterable[Sign]) -> float:
    """What the shapes mean, a row each; where they end."""
    found = list(found)
    for what, meaning in MEANINGS.items():
        where = [sign.where for sign in found if sign.what == what]
        if where:
            y += FONT + 5
            shape(drawing, 7, y - 4, what)
            drawing.text(18, y, f"{what}: {meaning}")
        if len(where) > 1:
            y += FONT + 2
            drawing.text(18, y, ", ".join(where), class_="tick")
    return y

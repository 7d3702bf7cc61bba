"""Drawings: shapes, and axes with ticks at round numbers; as SVG text, written by hand.

A drawing is a list of elements in a coordinate system of its own, 460 wide: as wide as half a page,
and hardly wider than a phone, so that one drawing is legible on both. Numbers have one decimal, so
the same data make the same bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from html import escape
from itertools import pairwise
from typing import Any

from params.data import Data
from params.quantity import Unit, quantity, unit_for
from views.report.palette import DAY, FAINT, INK, PAPER, RULE, SERIES

WIDTH = 460.0
FONT, SMALL = 12.0, 11.0
ROOM = 1.13  # what letters are larger by on a phone
MARGIN = 8  # of a file of its own: what ends at the edge may be a little wider
FAMILY = "'DejaVu Sans', system-ui, Helvetica, Arial, sans-serif"
_ACROSS, _DOWN = ("x", "x1", "x2", "cx"), ("y", "y1", "y2", "cy")
_PLACE = re.compile(r"([ML])(-?[\d.]+) (-?[\d.]+)")
_TICK = 40.0  # between ticks that have a number each
Y_TICKS = 5  # that an axis on the left has, or fewer
_LETTER = 0.56 * FONT  # the width of one, on the average

Line = list[tuple[float, float]]  # values by what they follow from, such as time

_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4", "6 2 2 2")


def coordinate(value: float) -> str:
    """A number as short as a tenth of a pixel allows."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def line_style(number: int) -> tuple[str, str]:
    """Colour and dash of one of several lines."""
    return SERIES[number % len(SERIES)], _DASHES[number % len(_DASHES)]


def width_of(text: str) -> float:
    """About how wide a text is."""
    return len(text) * _LETTER


class Shape(Data):
    """An element: line, rect, circle, path or text, with SVG's attributes."""

    name: str
    style: Mapping[str, Any]
    text: str = ""
    tip: str = ""

    def number(self, key: str, usual: float = 0.0) -> float:
        """An attribute that is a number."""
        return float(self.style.get(key, usual))

    def has(self, kind: str) -> bool:
        """Whether it is of a class: "tick" (smaller), "strong" (bold), "halo" (paper around it)."""
        return kind in str(self.style.get("class_", "")).split()

    @property
    def size(self) -> float:
        """Of a text: its letters'."""
        return SMALL if self.has("tick") else FONT


class Drawing(Data, frozen=False):
    """A picture under construction; its shapes are written out by a page, an SVG or a PDF."""

    height: float
    title: str  # what it shows, for those who cannot see it
    width: float = WIDTH
    shapes: list[Shape] = field(default_factory=list)
    moving: dict[tuple[str, ...], int] = field(default_factory=dict)  # directions: their number

    def moves(self, directions: tuple[str, ...]) -> int:
        """The number of what changes over time: moments.py tells how; an element has it as
        data_b if it shows how busy these directions are, data_p how paused, data_q what waits."""
        return self.moving.setdefault(directions, len(self.moving))

    def add(self, name: str, text: str = "", tip: str = "", **style: Any) -> None:
        """Add an element; a tip is shown where a pointer rests on it."""
        attributes = {key: value for key, value in style.items() if value not in (None, "")}
        self.shapes.append(Shape(name, attributes, text, tip))

    def line(self, x1: float, y1: float, x2: float, y2: float, **style: Any) -> None:
        """A straight line."""
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, **{"stroke": RULE, **style})

    def rect(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """A box."""
        self.add("rect", x=x, y=y, width=max(0.0, width), height=height, **style)

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """A text; its anchor is its beginning unless it says otherwise."""
        self.add("text", text, x=x, y=y, **style)

    def polyline(
        self, points: Iterable[tuple[float, float]], fill: str = "none", **style: Any
    ) -> None:
        """A line through points."""
        path = "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)
        if path:
            self.add("path", d="M" + path, fill=fill, stroke_linejoin="round", **style)

    def boxes(self, boxes: Iterable[tuple[float, float, float, float]], **style: Any) -> None:
        """Many boxes of one colour, as one element: x, y, width, height of each."""
        path = "".join(
            f"M{coordinate(x)} {coordinate(y)}h{coordinate(w)}v{coordinate(h)}h-{coordinate(w)}z"
            for x, y, w, h in boxes
        )
        if path:
            self.add("path", d=path, **style)

    def arrow(self, x1: float, y1: float, x2: float, y2: float, colour: str, **style: Any) -> None:
        """A line with a head at its second end."""
        length = math.hypot(x2 - x1, y2 - y1) or 1.0
        dx, dy = (x2 - x1) / length, (y2 - y1) / length
        self.line(x1, y1, x2 - 4 * dx, y2 - 4 * dy, stroke=colour, **style)
        x, y = x2 - 6 * dx, y2 - 6 * dy
        head = [(x2, y2), (x - 2.6 * dy, y + 2.6 * dx), (x + 2.6 * dy, y - 2.6 * dx)]
        self.polyline(head, fill=colour, tip=str(style.get("tip", "")))

    def put(self, other: Drawing, dx: float, dy: float) -> None:
        """Another picture at a place of this one."""
        for shape in other.shapes:
            style = {key: _moved(key, value, dx, dy) for key, value in shape.style.items()}
            self.shapes.append(Shape(shape.name, style, shape.text, shape.tip))

    def legend(self, y: float, entries: Sequence[tuple[str, str, str]], left: float = 0) -> float:
        """Entries of colour, dash and text, in as many rows as they need; where they end."""
        x = left
        for colour, dash, text in entries:
            needs = 30 + ROOM * width_of(text)
            if x > left and x + needs > self.width:
                x, y = left, y + FONT + 4
            self.line(x, y - 4, x + 20, y - 4, stroke=colour, stroke_width=3, stroke_dasharray=dash)
            self.text(x + 24, y, text)
            x += needs + 8
        return y

    def render(self) -> str:
        """The picture as part of a page, in the page's colours and letters."""
        size = f"{coordinate(self.width)} {coordinate(self.height)}"
        return self._written(
            f'<svg viewBox="0 0 {size}" role="img" aria-label="{_quoted(self.title)}">',
            {name: f"var(--{name})" for name in DAY},
        )

    def to_svg(self, colours: Mapping[str, str] = DAY, *, has_ground: bool = False) -> str:
        """The picture as a file of its own; with a ground it bears any colour of a page."""
        wide, high = (coordinate(side + 2 * MARGIN) for side in (self.width, self.height))
        box = f'viewBox="-{MARGIN} -{MARGIN} {wide} {high}" width="{wide}pt" height="{high}pt"'
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {box} '
            f'role="img" aria-label="{_quoted(self.title)}" fill="{colours[INK]}" '
            f'font-family="{FAMILY}" font-size="{coordinate(FONT)}"><style>'
            f".tick{{font-size:{coordinate(SMALL)}px}}.strong{{font-weight:600}}"
            f".halo{{paint-order:stroke;stroke:{colours[PAPER]};stroke-width:3px}}</style>"
        )
        if has_ground:
            place = f'x="-{MARGIN}" y="-{MARGIN}" width="{wide}" height="{high}"'
            head += f'<rect {place} fill="{colours[PAPER]}"/>'
        return self._written(head, colours) + "\n"

    def _written(self, head: str, colours: Mapping[str, str]) -> str:
        return head + "".join(_element(shape, colours) for shape in self.shapes) + "</svg>"


def _moved(key: str, value: Any, dx: float, dy: float) -> Any:
    """An attribute of a shape that stands elsewhere."""
    if key in _ACROSS:
        return value + dx
    if key in _DOWN:
        return value + dy
    if key != "d":
        return value
    return _PLACE.sub(
        lambda at: f"{at[1]}{coordinate(float(at[2]) + dx)} {coordinate(float(at[3]) + dy)}", value
    )


def _element(shape: Shape, colours: Mapping[str, str]) -> str:
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_value(_coloured(key, value, colours))}"'
        for key, value in shape.style.items()
    )
    tip = f"<title>{escape(shape.tip)}</title>" if shape.tip else ""
    inner = escape(shape.text) + tip
    return f"<{shape.name}{words}>{inner}</{shape.name}>" if inner else f"<{shape.name}{words}/>"


def _coloured(key: str, value: object, colours: Mapping[str, str]) -> object:
    return colours.get(str(value), value) if key in ("fill", "stroke") else value


def _quoted(text: str) -> str:
    return escape(text, quote=True)


def _value(value: object) -> str:
    if isinstance(value, float):
        return coordinate(value)
    return _quoted(str(value))


class Scale(Data):
    """From values to places on the paper."""

    low: float
    high: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """Where a value lies."""
        return self.start + self._share(value) * (self.end - self.start)

    def _share(self, value: float) -> float:
        if self.is_log:
            value = max(value, self.low)
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, most: int) -> list[float]:
        """Round numbers within the scale."""
        if self.is_log:
            return _log_ticks(self.low, self.high)
        step = _round_step((self.high - self.low) / most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [at * step for at in range(first, last + 1)]


def linear(high: float, start: float, end: float, low: float = 0) -> Scale:
    """A scale from zero up to a value and a little beyond."""
    return Scale(low, (high - low) * 1.02 + low if high > low else low + 1, start, end)


def round_above(high: float, ticks: int) -> float:
    """Where a scale from zero may end that has so many ticks: at the next if that is near."""
    step = _round_step(high / ticks)
    end = math.ceil(high / step - 1e-9) * step
    return end if end <= 1.1 * high else 1.02 * high


def spread(values: Sequence[float], start: float, end: float) -> Scale:
    """A scale for values that lie apart by factors; a linear one for those that do not."""
    low, high = min(values), max(values)
    if low > 0 and high / low > 20:
        return Scale(low / 1.1, high * 1.1, start, end, is_log=True)
    return linear(high, start, end)


def _round_step(least: float) -> float:
    magnitude = 10.0 ** math.floor(math.log10(least))
    return next(f * magnitude for f in (1, 2, 2.5, 5, 10) if f * magnitude >= least * 0.999)


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high / low < 1000 else (1,)
    return [f * 10.0**p for p in powers for f in factors if low <= f * 10.0**p <= high]


def apart(
    names: Iterable[tuple[float, str, str]], top: float, bottom: float
) -> list[tuple[float, str, str]]:
    """Names beside a plot, none on another: each as near to its height as that allows."""
    placed: list[tuple[float, str, str]] = []
    for y, name, colour in sorted(names):
        above = placed[-1][0] + FONT if placed else top
        placed.append((max(y, above), name, colour))
    low = bottom
    for at in range(len(placed) - 1, -1, -1):
        y, name, colour = placed[at]
        placed[at] = min(y, low), name, colour
        low = placed[at][0] - FONT
    return placed


def x_axis(
    drawing: Drawing,
    scale: Scale,
    y: float,
    label: str,
    units: Sequence[Unit],
    *,
    top: float,
    most: int = 6,
    at: Sequence[float] = (),
) -> None:
    """An axis below: ticks with lines up to the top, and what it is in which unit; at these values
    if there is room for them, else at round ones. Values apart by factors have each its unit."""
    unit = unit_for(scale.high / (1 if scale.is_log else 2), units)
    name = _named(label, unit)
    ticks = {tick: _tick(tick / unit.size) for tick in scale.ticks(most)}
    places = sorted(map(scale, at))
    if places and all(b - a >= _TICK for a, b in pairwise(places)):
        if scale.is_log and len({unit_for(tick, units) for tick in at}) > 1:
            name, ticks = label, {tick: quantity(tick, units) for tick in at}
        else:
            ticks = {tick: _tick(tick / unit.size) for tick in at}
    for tick, tick_label in ticks.items():
        x = scale(tick)
        drawing.line(x, top, x, y)
        drawing.text(x, y + FONT + 3, tick_label, text_anchor="middle", class_="tick")
    drawing.line(scale.start, y, scale.end, y, stroke=FAINT)
    middle = (scale.start + scale.end) / 2
    drawing.text(middle, y + 2 * FONT + 8, name, text_anchor="middle")


def y_axis(
    drawing: Drawing, scale: Scale, label: str, units: Sequence[Unit], *, left: float, right: float
) -> None:
    """An axis on the left; its name stands above it."""
    unit = unit_for(scale.high / 2, units)
    for tick in scale.ticks(Y_TICKS):
        y = scale(tick)
        drawing.line(left, y, right, y)
        drawing.text(left - 5, y + 4, _tick(tick / unit.size), text_anchor="end", class_="tick")
    drawing.text(0, scale.end - 10, _named(label, unit))


def _tick(value: float) -> str:
    """A round number, without the dust of its computation."""
    return f"{round(value, 9):,g}"


def _named(label: str, unit: Unit) -> str:
    return f"{label} ({unit.name})" if unit.name else label

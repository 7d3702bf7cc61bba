"""Diagrams of many runs: lines over a quantity, and bars beside names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev

from params.data import Data
from params.quantity import Unit
from views.report.palette import FAINT, INK, SERIES
from views.report.svg import (
    FONT,
    ROOM,
    WIDTH,
    Y_TICKS,
    Drawing,
    Scale,
    line_style,
    linear,
    round_above,
    width_of,
    x_axis,
    y_axis,
)

_LEFT, _RIGHT, _TOP, _HEIGHT, _AXIS = 46.0, WIDTH - 8, 24.0, 180.0, 32.0
_ROW = 22.0


class Spread(Data):
    """Several measurements of the same: where they lie, and where their mean does."""

    mean: float
    least: float
    most: float
    within: float  # of the mean measured here the true one is, with a confidence of 95 %

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of some measurements; of a single one nothing is known but itself."""
        count = len(values)
        within = _student(count - 1) * stdev(values) / math.sqrt(count) if count > 1 else 0.0
        return cls(fmean(values), min(values), max(values), within)


# Student's t: how many standard errors leave out 2.5 % on either side, by degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def _student(freedom: int) -> float:
    """Beyond the table within half a hundredth."""
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else 1.96 + 2.6 / freedom


def lines(
    title: str,
    x: tuple[str, Sequence[Unit]],
    y: tuple[str, Sequence[Unit]],
    series: Mapping[str, Mapping[float, float]],
    *,
    is_log: bool = False,
    top: float | None = None,
    spreads: Mapping[str, Mapping[float, Spread]] | None = None,
) -> Drawing:
    """A line for each series, through its points; of several measurements their spread too:
    a thin line from the least to the most, a bar where their mean is by 95 % of chance."""
    places = [place for points in series.values() for place in points]
    low, high = min(places), max(places)
    across = (
        Scale(low / 1.2, high * 1.2, _LEFT, _RIGHT, is_log=True)
        if is_log
        else linear(high, _LEFT, _RIGHT)
    )
    found = [value for points in series.values() for value in points.values()]
    spreads_drawn = [each for points in (spreads or {}).values() for each in points.values()]
    found += [max(each.most, each.mean + each.within) for each in spreads_drawn]
    most = round_above(top or max(found) or 1.0, Y_TICKS)
    up = Scale(0, most, _TOP + _HEIGHT, _TOP)
    drawing = Drawing(_TOP + _HEIGHT + _AXIS + 4, title)
    y_axis(drawing, up, y[0], y[1], left=_LEFT, right=_RIGHT)
    ticks = sorted(set(places))
    x_axis(drawing, across, _TOP + _HEIGHT, x[0], x[1], top=_TOP, at=ticks)
    legend = []
    for number, (name, points) in enumerate(series.items()):
        colour, dash = line_style(number)
        path = [(across(at), up(value)) for at, value in sorted(points.items())]
        drawing.polyline(path, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        shift = 3.0 * (number - (len(series) - 1) / 2)  # so that bars of series stand side by side
        for at, spread in (spreads or {}).get(name, {}).items():
            _whisker(drawing, across(at) + shift, up, spread, colour)
        for at_x, at_y in path:
            drawing.add("circle", cx=at_x, cy=at_y, r=3, fill=colour)
        legend.append((colour, dash, name))
    end = _TOP + _HEIGHT + _AXIS + FONT + 6
    if len(legend) > 1 or legend[0][2] != y[0]:
        end = drawing.legend(end, legend) + FONT + 4
    drawing.height = _key(drawing, end, spreads_drawn) - FONT + 2
    return drawing


def _key(
    drawing: Drawing, y: float, spreads: Sequence[Spread], *, has_points: bool = True
) -> float:
    """What points and bars mean where several measurements stand behind them; where that ends."""
    if not any(each.most > each.least for each in spreads):
        return y
    entries = ["least to most of all seeds", "where the mean is, by 95 % of chance"]
    x = 0.0
    if has_points:
        drawing.add("circle", cx=5, cy=y - 4, r=3, fill=INK)
        drawing.text(13, y, "mean")
        x = 24 + ROOM * width_of("mean")
    else:
        del entries[1]
    for width, said in zip((1, 4), entries, strict=False):
        if x + ROOM * width_of(said) + 12 > WIDTH:
            x, y = 0.0, y + FONT + 4
        drawing.line(x + 5, y - 11, x + 5, y + 1, stroke=INK, stroke_width=width)
        drawing.text(x + 13, y, said)
        x += 24 + ROOM * width_of(said)
    return y + FONT + 4


def _whisker(drawing: Drawing, x: float, up: Scale, spread: Spread, colour: str) -> None:
    """Where measurements lie, at a place of an axis."""
    if spread.most == spread.least:
        return
    drawing.line(x, up(spread.least), x, up(spread.most), stroke=colour, stroke_width=1)
    low, high = up(max(0.0, spread.mean - spread.within)), up(spread.mean + spread.within)
    drawing.line(x, max(low, up.end), x, max(high, up.end), stroke=colour, stroke_width=4)


def bars(
    title: str,
    values: Mapping[str, float],
    label_of: Callable[[float], str],
    spreads: Mapping[str, Spread] | None = None,
    across: tuple[str, Sequence[Unit]] | None = None,
) -> Drawing:
    """A bar beside each name with its value; of several measurements their spread too; with a
    scale below them if it is said of what."""
    drawing = Drawing(len(values) * _ROW + 6, title)
    left = 1.1 * max(width_of(name) for name in values) + 12  # on a phone letters are larger
    most = max([*values.values(), *(each.most for each in (spreads or {}).values())]) or 1
    room = WIDTH - left - max(width_of(label_of(value)) for value in values.values()) - 10
    for row, (name, value) in enumerate(values.items()):
        y = row * _ROW + 4
        drawing.text(0, y + 12, name, fill=INK)
        drawing.rect(left, y, max(1.0, room * value / most), _ROW - 7, fill=SERIES[0])
        spread = (spreads or {}).get(name)
        end = left + room * max(value, spread.most if spread else 0) / most
        drawing.text(end + 6, y + 12, label_of(value), class_="strong")
        if spread and spread.most > spread.least:
            middle = y + (_ROW - 7) / 2
            ends = (left + room * each / most for each in (spread.least, spread.most))
            start, end = ends
            drawing.line(start, middle, end, middle, stroke=INK, stroke_width=1.6)
            for x in (start, end):
                drawing.line(x, middle - 4, x, middle + 4, stroke=INK, stroke_width=1.6)
    bottom = drawing.height - 2
    drawing.line(left, 0, left, bottom, stroke=FAINT)
    if across:
        scale = Scale(0, most, left, left + room)
        x_axis(drawing, scale, bottom, across[0], across[1], top=bottom, most=4)
        drawing.height += _AXIS + FONT + 4
        end = _key(drawing, drawing.height, list((spreads or {}).values()), has_points=False)
        drawing.height = end - FONT
    return drawing

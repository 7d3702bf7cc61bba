"""Diagrams of many runs: lines over a quantity, and bars beside names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lab.quantity import Unit
from lab.report.palette import FAINT, INK, SERIES
from lab.report.svg import (
    DASHES,
    FONT,
    WIDTH,
    Drawing,
    Scale,
    linear,
    width_of,
    x_axis,
    y_axis,
)

_LEFT, _RIGHT, _TOP, _HEIGHT, _AXIS = 46.0, WIDTH - 8, 24.0, 180.0, 32.0
_ROW = 22.0


def lines(
    title: str,
    x: tuple[str, Sequence[Unit]],
    y: tuple[str, Sequence[Unit]],
    series: Mapping[str, Mapping[float, float]],
    *,
    is_log: bool = False,
    top: float | None = None,
) -> Drawing:
    """A line for each series, through its points."""
    places = [place for points in series.values() for place in points]
    low, high = min(places), max(places)
    across = (
        Scale(low / 1.2, high * 1.2, _LEFT, _RIGHT, is_log=True)
        if is_log
        else linear(high, _LEFT, _RIGHT)
    )
    most = top or max(value for points in series.values() for value in points.values()) or 1.0
    up = Scale(0, most * 1.02, _TOP + _HEIGHT, _TOP)
    drawing = Drawing(_TOP + _HEIGHT + _AXIS + 4, title)
    y_axis(drawing, up, y[0], y[1], left=_LEFT, right=_RIGHT)
    x_axis(drawing, across, _TOP + _HEIGHT, x[0], x[1], top=_TOP)
    legend = []
    for number, (name, points) in enumerate(series.items()):
        colour, dash = SERIES[number % len(SERIES)], DASHES[number % len(DASHES)]
        path = [(across(at), up(value)) for at, value in sorted(points.items())]
        drawing.polyline(path, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        for at_x, at_y in path:
            drawing.add("circle", cx=at_x, cy=at_y, r=3, fill=colour)
        legend.append((colour, dash, name))
    drawing.height = drawing.legend(_TOP + _HEIGHT + _AXIS + FONT + 6, legend) + 6
    return drawing


def bars(title: str, values: Mapping[str, float], told: Callable[[float], str]) -> Drawing:
    """A bar beside each name, with its value."""
    drawing = Drawing(len(values) * _ROW + 6, title)
    left = 1.1 * max(width_of(name) for name in values) + 12  # on a phone letters are larger
    most = max(values.values()) or 1
    room = WIDTH - left - max(width_of(told(value)) for value in values.values()) - 10
    for row, (name, value) in enumerate(values.items()):
        y = row * _ROW + 4
        drawing.text(0, y + 12, name, fill=INK)
        drawing.rect(left, y, max(1.0, room * value / most), _ROW - 7, fill=SERIES[0])
        drawing.text(left + room * value / most + 6, y + 12, told(value), class_="strong")
    drawing.line(left, 0, left, drawing.height - 2, stroke=FAINT)
    return drawing

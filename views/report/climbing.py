"""Pauses as they climb: a row a direction, causes above effects, and who told whom when.

    leaf1         holds ▁▂▅▇            what came by the fullest port, against XOFF and XON
    spine1>leaf1        ▼███▽  ▼██      XOFF, standing still, XON
    leaf2>spine1          ↘▼████        an arrow from row to row: the first pause climbs on

Above, from the first pause on, until all that followed it stood still; below the whole run. Of runs
that are compared both have axes in common.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from lab.results.outcome import PauseNote
from lab.scenario.memory import Memory
from params.data import Data
from params.quantity import NANOSECONDS, duration, percent, plural, size
from views.report.kept import KeptRun
from views.report.moments import draw_events, room_for_events
from views.report.palette import FAINT, INK, PAPER, PAUSE, QUEUE, QUEUE_FILL, TRACK
from views.report.parts import Unfolded
from views.report.standing import NEAR_NS, Row, Span, first_wave, led_to, merge, noted_spans, paused
from views.report.suspects import circle, waiting
from views.report.svg import FONT, WIDTH, Drawing, Line, Scale, apart, linear, x_axis

_LEFT, _RIGHT, _AXIS = 112.0, WIDTH - 36, 32.0
_ZOOM_NS = 50_000  # at least
_MAX_ROWS = 14
_MAX_EVER = 200  # of those, unfolded
_ROW, _QUEUE = 18.0, 54.0
_MAX_HELD = 3  # told in words
_MAX_SIGNS = 400  # of XOFF and XON: more than anybody could tell apart


class Zoom(Data):
    """The first pauses, to the nanosecond: of several runs the same stretch of time and scale."""

    begin_ns: int
    end_ns: int
    most_bytes: float  # that a port of the first switch that paused anyone held, or might

    @classmethod
    def of(cls, runs: Sequence[KeptRun]) -> Zoom | None:
        """For all of them; nothing if none noted pauses one by one, or all are as short as it."""
        began = [(run, first) for run in runs if (first := _first(run))]
        if not began:
            return None
        begin = max(0, min(first.time_ns for _, first in began) - NEAR_NS)
        waves = (first_wave(paused(run)) for run, _ in began)
        climbed = max(max(row.first_ns for row in wave) for wave in waves)
        end = begin + max(_ZOOM_NS, math.ceil(1.05 * (climbed - begin)))
        if max(run.end_ns for run in runs) <= 2 * (end - begin):
            return None
        held = [_Held.of(run, first, begin, end) for run, first in began]
        return cls(begin, end, max((each.most for each in held if each), default=1.0))


def _first(run: KeptRun) -> PauseNote | None:
    """The first frame that told anyone to stand still."""
    xoffs = (note for note in run.pauses if note.what == "xoff")
    return min(xoffs, key=lambda note: (note.time_ns, note.link), default=None)


class _Held(Data):
    """What the fullest port of a switch held of a class, and its thresholds."""

    switch: str
    filled: Line
    xoff: Line
    xon: Line

    @classmethod
    def of(cls, run: KeptRun, first: PauseNote, begin_ns: int, end_ns: int) -> _Held | None:
        """Of the switch that paused somebody first; of a host nobody knows."""
        switch = led_to(first.link)
        mine = [
            stock
            for stock in run.stocks
            if (stock.switch, stock.priority) == (switch, first.priority)
            and begin_ns <= stock.time_ns <= end_ns
        ]
        if not mine:
            return None
        memory = Memory.of(run.result.scenario, run.fabric, switch)
        limits = [memory.threshold(first.priority, stock.pool_bytes) for stock in mine]
        times = [stock.time_ns for stock in mine]
        return cls(
            switch,
            [(stock.time_ns, stock.queue_bytes) for stock in mine],
            list(zip(times, limits, strict=True)),
            list(zip(times, map(memory.resumes_at, limits), strict=True)),
        )

    @property
    def most(self) -> float:
        """What its scale must reach."""
        return max(value for _, value in (*self.filled, *self.xoff))


def climbing(run: KeptRun, end_ns: float, zoom: Zoom | None) -> Drawing | None:
    """The drawing."""
    rows = paused(run)
    return _drawn(run, rows, end_ns, zoom, _MAX_ROWS) if rows else None


def _drawn(
    run: KeptRun, rows: Sequence[Row], end_ns: float, zoom: Zoom | None, most: int
) -> Drawing:
    """The same of rows, of which so many at most are shown."""
    shown = _chosen(rows, waiting(run), most)
    drawing = Drawing(0, _title(run, rows))
    y = 4.0
    first = _first(run)
    if first and zoom:
        y = _zoomed(drawing, run, shown, first, zoom, y) + 12
    time = linear(end_ns, _LEFT, _RIGHT)
    whole = duration(run.end_ns)
    is_cut = run.end_ns > end_ns
    said = f"the first {duration(end_ns)} of {whole}" if is_cut else f"the whole run, {whole}"
    drawing.text(0, y + 10, said, class_="strong")
    y += 16 + room_for_events(run)
    bottom = y + _ROW * len(shown)
    x_axis(drawing, time, bottom, "time", NANOSECONDS, top=y)
    gap = 0.4 * (time.high - time.low) / (time.end - time.start)
    for at, row in enumerate(shown):
        _track(drawing, row, time, y + at * _ROW, gap, end_ns)
    draw_events(drawing, run, time, y, bottom)
    y = bottom + _AXIS + 4
    if len(rows) > len(shown):
        y += FONT
        drawing.text(
            0, y, f"{len(rows) - len(shown)} of {len(rows)} paused directions are not shown"
        )
    drawing.height = _key(drawing, y + FONT + 4, has_arrows=first is not None) + 6
    return drawing


def the_rest(run: KeptRun, end_ns: float) -> Unfolded | None:
    """All directions over the whole run, where the drawing has no room for them."""
    rows = paused(run)
    if len(rows) <= _MAX_ROWS:
        return None
    said = "All" if len(rows) <= _MAX_EVER else f"{_MAX_EVER} of"
    whole = _drawn(run, rows, end_ns, None, _MAX_EVER)
    return Unfolded(f"{said} {len(rows)} paused directions", whole)


def _chosen(rows: Sequence[Row], first: Collection[str], most: int) -> list[Row]:
    """As many as there is room for: these first, then those that stood longest of each depth, with
    what led to them."""
    if len(rows) <= most:
        return list(rows)
    by_depth: dict[int, list[Row]] = {}
    for row in rows:
        by_depth.setdefault(row.depth, []).append(row)
    for each in by_depth.values():
        each.sort(key=lambda row: (-row.stood_ns, row.name))
    wanted = [rows[0], *(row for row in rows if row.name in first)]
    for rank in range(len(rows)):
        wanted += [each[rank] for each in by_depth.values() if rank < len(each)]
    of_name = {row.name: row for row in rows}
    kept: dict[str, None] = {}
    for row in wanted:
        chain = [row]
        while row.name not in first and chain[0].cause:
            chain.insert(0, of_name[chain[0].cause])
        if len(kept.keys() | {each.name for each in chain}) <= most:
            kept |= dict.fromkeys(each.name for each in chain)
    return [row for row in rows if row.name in kept]


def _title(run: KeptRun, rows: Sequence[Row]) -> str:
    """What the picture shows, in words."""
    first = min(rows, key=lambda row: row.first_ns)
    longest = max(rows, key=lambda row: row.stood_ns)
    said = (
        f"{plural(len(rows), 'direction')} stood still, each below the one whose pause led to it: "
        f"first {first.name} at {duration(first.first_ns)}, longest {longest.name}, for "
        f"{duration(longest.stood_ns)} of {duration(run.end_ns)}"
    )
    alone = sum(not row.cause for row in rows)
    deepest = max(row.depth for row in rows)
    if deepest:
        said += f"; {alone} began by themselves, and up to {deepest} others in a row followed"
    own = [row for row in rows if row.held_by and not row.cause]
    for row in sorted(own, key=lambda row: -row.stood_ns)[:_MAX_HELD]:
        said += f"; {row.name} {percent(row.held)} of its time while {row.held_by} did"
    ring = circle(run)
    return said + (f"; a deadlock: {' waits for '.join(ring)}." if ring else ".")


def _zoomed(
    drawing: Drawing, run: KeptRun, shown: Sequence[Row], first: PauseNote, zoom: Zoom, y: float
) -> float:
    """The first pauses, to the nanosecond; where the axis ends."""
    begin, end = zoom.begin_ns, zoom.end_ns
    time = Scale(begin, end, _LEFT, _RIGHT)
    said = f"the first {duration(end - begin)} of pauses"
    if first.time_ns > end:
        said += f"; here the first was at {duration(first.time_ns)}"
    drawing.text(0, y + 10, said, class_="strong")
    y += 16
    top = y
    held = _Held.of(run, first, begin, end)
    height = (_QUEUE if held else 0) + _ROW * len(shown)
    x_axis(drawing, time, top + height, "time", NANOSECONDS, top=top)
    if held:
        _stock(drawing, held, time, zoom.most_bytes, y)
        y += _QUEUE
    tops = {row.name: y + at * _ROW for at, row in enumerate(shown)}
    of_name = {row.name: row for row in shown}
    for row in shown:
        spans = noted_spans(row, end)
        _track(drawing, row, time, tops[row.name], 0.0, end, spans)
    signs = 0
    led: list[tuple[float, float, float, float, str]] = []
    for row in shown:
        inside = [note for note in row.notes if begin <= note.time_ns <= end]
        cause = of_name.get(row.cause)
        if cause and begin <= row.first_ns <= end:
            before = max(start for start, _ in noted_spans(cause, end) if start < row.first_ns)
            start = time(max(begin, before)), tops[cause.name] + 13
            head = time(row.first_ns), tops[row.name] + 1
            tip = f"{cause.name} stood still, so {row.name} had to"
            led.append((*start, *head, tip))
        for note in inside[: _MAX_SIGNS - signs]:
            _sign(drawing, time(note.time_ns), tops[row.name], note)
        signs = min(_MAX_SIGNS, signs + len(inside))
    for x1, y1, x2, y2, _ in led:  # light around them, to be seen across what stands still
        drawing.line(x1, y1, x2, y2, stroke=PAPER, stroke_width=3.6)
    for x1, y1, x2, y2, tip in led:
        drawing.arrow(x1, y1, x2, y2, INK, stroke_width=1.2, tip=tip)
    return top + height + _AXIS


def _stock(drawing: Drawing, held: _Held, time: Scale, most: float, y: float) -> None:
    """What led to the first pause: a port that holds more than XOFF stops who sends to it, until
    it is down to XON."""
    base = y + _QUEUE - 6
    depth = linear(most, base, y + 6)
    points = [(time(at), depth(value)) for at, value in held.filled]
    outline = [(points[0][0], base), *points, (points[-1][0], base)]
    drawing.polyline(outline, fill=QUEUE_FILL, tip=held.switch)
    drawing.polyline(points, stroke=QUEUE, stroke_width=1.3)
    drawing.line(time.start, base, time.end, base, stroke=FAINT)
    names = []
    for name, line, dash in (("XOFF", held.xoff, "4 3"), ("XON", held.xon, "1 2")):
        places = [(time(at), depth(value)) for at, value in line]
        drawing.polyline(places, stroke=PAUSE, stroke_width=1.4, stroke_dasharray=dash)
        names.append((places[-1][1], name, PAUSE))
    for place, name, colour in apart(names, y + 6, base):
        drawing.text(time.end + 4, place + 4, name, fill=colour, class_="tick")
    drawing.text(0, y + 12, f"{held.switch} holds", class_="strong")
    drawing.text(0, y + 26, "at its fullest port", class_="tick")
    peak = max(value for _, value in held.filled)
    drawing.text(0, y + 40, f"peak {size(peak)}", class_="tick")


def _track(
    drawing: Drawing,
    row: Row,
    time: Scale,
    y: float,
    gap: float,
    end: float,
    spans: Sequence[Span] | None = None,
) -> None:
    """A row: where it could stand still, and where it did."""
    drawing.rect(time.start, y + 3, time.end - time.start, 10, fill=TRACK)
    inside = [
        (max(begin, time.low), min(until, end, time.high))
        for begin, until in merge(row.spans if spans is None else spans, gap)
        if begin < min(end, time.high) and until > time.low
    ]
    boxes = [(time(a), y + 3, max(0.4, time(b) - time(a)), 10.0) for a, b in inside]
    drawing.boxes(boxes, fill=PAUSE, tip=_tip(row))
    drawing.text(5.0 * min(3, row.depth), y + 12, row.name, class_="tick", tip=_tip(row))
    if not row.cause:
        _start(drawing, _LEFT - 6, y + 8, is_held=bool(row.held_by))


def _tip(row: Row) -> str:
    """Why it stood still."""
    began = f"after {row.cause} had to" if row.cause else "because a queue grew"
    held = f", and {percent(row.held)} of its time while {row.held_by} did" if row.held_by else ""
    return f"{row.name} stood still {began}{held}"


def _start(drawing: Drawing, x: float, y: float, *, is_held: bool) -> None:
    """That no pause led to a row's, and whether one held it on."""
    fill = INK if is_held else PAPER
    drawing.add("circle", cx=x, cy=y, r=3, fill=fill, stroke=INK, stroke_width=1.4)


def _sign(drawing: Drawing, x: float, y: float, note: PauseNote) -> None:
    """XOFF as an arrow down onto the row, XON as one up and off it."""
    tip = f"{note.what.upper()} for class {note.priority} at {duration(note.time_ns)}"
    if note.what == "xoff":
        drawing.polyline([(x, y + 7), (x - 3, y), (x + 3, y)], fill=PAUSE, tip=tip)
    else:
        shape = [(x, y), (x - 3, y + 7), (x + 3, y + 7), (x, y)]
        drawing.polyline(shape, fill=PAPER, stroke=PAUSE, stroke_width=1.1, tip=tip)


def _key(drawing: Drawing, y: float, *, has_arrows: bool) -> float:
    drawing.rect(0, y - 9, 14, 10, fill=PAUSE)
    drawing.text(18, y, "stands still")
    x = 110.0
    if has_arrows:
        for at, what, text in ((x, "xoff", "XOFF"), (x + 60, "xon", "XON")):
            _sign(drawing, at + 5, y - 8, PauseNote(0, "", 0, what))
            drawing.text(at + 13, y, text)
        drawing.arrow(x + 120, y - 8, x + 136, y + 1, INK, stroke_width=1.2)
        drawing.text(x + 142, y, "one led to the next")
    y += FONT + 4
    for x, is_held, text in (
        (5, False, "a queue began it"),
        (165, True, "and another's pause held it on"),
    ):
        _start(drawing, x, y - 4, is_held=is_held)
        drawing.text(x + 9, y, text, class_="tick")
    y += FONT + 2
    drawing.text(0, y, "dashed: faults, watchdogs", class_="tick")
    return y

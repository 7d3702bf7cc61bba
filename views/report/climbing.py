"""Pauses as they climb: a row a direction, causes above effects, and who told whom when.

    leaf1         holds ▁▂▅▇            what came by the fullest port, against XOFF and XON
    spine1>leaf1        ▼███▽  ▼██      XOFF, standing still, XON
    leaf2>spine1          ↘▼████        an arrow from row to row: the first pause climbs on

Above the first 50 us from the first pause on, below the whole run; of runs that are compared both
have axes in common.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from lab.results.outcome import PauseNote
from lab.scenario.memory import Memory
from params.quantity import NANOSECONDS, duration, plural, size
from views.report.kept import KeptRun
from views.report.moments import draw_events, room_for_events
from views.report.palette import FAINT, INK, PAPER, PAUSE, QUEUE, QUEUE_FILL, TRACK
from views.report.suspects import circle, waiting
from views.report.svg import FONT, WIDTH, Drawing, Line, Scale, apart, linear, x_axis

_LEFT, _RIGHT, _AXIS = 112.0, WIDTH - 36, 32.0
_ZOOM_NS = 50_000
_BEFORE_NS = 2_000  # of the zoom: before the first pause
_MOST_ROWS = 14
_ROW, _QUEUE = 18.0, 54.0
_MOST_SIGNS = 400  # of XOFF and XON: more than anybody could tell apart

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Zoom:
    """The first pauses, to the nanosecond: of several runs the same stretch of time and scale."""

    begin_ns: int
    most_bytes: float  # that a port of the first switch that paused anyone held, or might

    @classmethod
    def of(cls, runs: Sequence[KeptRun]) -> Zoom | None:
        """For all of them; nothing if none noted pauses one by one, or all are as short as it."""
        began = [(run, first) for run in runs if (first := _first(run))]
        if not began or max(run.end_ns for run in runs) <= 2 * _ZOOM_NS:
            return None
        begin = max(0, min(first.time_ns for _, first in began) - _BEFORE_NS)
        held = [_Held.of(run, first, begin) for run, first in began]
        return cls(begin, max((each.most for each in held if each), default=1.0))

    @property
    def end_ns(self) -> int:
        """When it ends."""
        return self.begin_ns + _ZOOM_NS


def _first(run: KeptRun) -> PauseNote | None:
    """The first frame that told anyone to stand still."""
    told = (note for note in run.pauses if note.what == "xoff")
    return min(told, key=lambda note: (note.time_ns, note.link), default=None)


@dataclass(frozen=True, slots=True)
class _Held:
    """What the fullest port of a switch held of a class, and its thresholds."""

    switch: str
    filled: Line
    xoff: Line
    xon: Line

    @classmethod
    def of(cls, run: KeptRun, first: PauseNote, begin_ns: int) -> _Held | None:
        """Of the switch that paused somebody first; of a host nobody knows."""
        switch = _to(first.link)
        mine = [
            stock
            for stock in run.stocks
            if (stock.switch, stock.priority) == (switch, first.priority)
            and begin_ns <= stock.time_ns <= begin_ns + _ZOOM_NS
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


@dataclass(frozen=True, slots=True)
class Row:
    """A direction that stood still."""

    name: str
    spans: tuple[Span, ...]  # over the whole run
    told: tuple[PauseNote, ...]  # one by one, as far as these were noted
    cause: str = ""  # the direction whose pause led to its first; none: its own queue did
    depth: int = 0  # how many pauses led to it, one by the other

    @property
    def first_ns(self) -> float:
        """When it first had to, by the frame that told it; else by what was noted later."""
        told = [note.time_ns for note in self.told if note.what == "xoff"]
        return min(told) if told else min((begin for begin, _ in self.spans), default=float("inf"))


def paused(run: KeptRun) -> list[Row]:
    """All directions that stood still, each below the one whose pause led to it."""
    totals = {name: notes[-1].paused_ns for name, notes in run.notes_of.items()}
    told: dict[str, list[PauseNote]] = {}
    for note in run.pauses:
        if note.what != "stuck":
            told.setdefault(note.link, []).append(note)
    names = {name for name, total in totals.items() if total} | told.keys()
    rows = [Row(name, tuple(merge(_spans(run, name))), tuple(told.get(name, ()))) for name in names]
    return _ordered(rows)


def _ordered(rows: Iterable[Row]) -> list[Row]:
    """Each below the pause that led to it, what came first on top."""
    by_start: dict[str, list[Row]] = {}
    for row in rows:
        by_start.setdefault(row.name.partition(">")[0], []).append(row)
    below: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.first_ns, row.name)):
        below.setdefault(_cause(row, by_start.get(_to(row.name), ())), []).append(row)
    ordered: list[Row] = []
    waiting_ = [(row, "", 0) for row in reversed(below.get("", ()))]
    while waiting_:
        row, cause, depth = waiting_.pop()
        ordered.append(replace(row, cause=cause, depth=depth))
        waiting_ += [(each, row.name, depth + 1) for each in reversed(below.get(row.name, ()))]
    return ordered


def _cause(row: Row, candidates: Iterable[Row]) -> str:
    """Of the directions from the switch that a row leads to: the one last told to stand still
    before the row was."""
    earlier = [
        (note.time_ns, each.name)
        for each in candidates
        for note in each.told
        if note.what == "xoff" and note.time_ns < row.first_ns and row.told
    ]
    return max(earlier)[1] if earlier else ""


def _to(direction: str) -> str:
    return direction.partition(">")[2].partition(".")[0]


def _spans(run: KeptRun, name: str) -> list[Span]:
    """When a direction stood still, by what was noted of it: of several classes that stood still at
    once the times add up, so it cannot have begun before the note before."""
    found: list[Span] = []
    before = at_ns = 0
    for note in run.notes_of.get(name, ()):
        if note.paused_ns > before:
            began = max(at_ns, note.time_ns - (note.paused_ns - before))
            found.append((began, float(note.time_ns)))
            before = note.paused_ns
        at_ns = note.time_ns
    return found


def merge(spans: Iterable[Span], gap: float = 0.0) -> list[Span]:
    """Spans in order of time, those that nobody could see apart as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start - merged[-1][1] <= gap:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def climbing(run: KeptRun, end_ns: float, zoom: Zoom | None) -> Drawing | None:
    """The drawing."""
    rows = paused(run)
    if not rows:
        return None
    shown = _chosen(rows, waiting(run))
    drawing = Drawing(0, _told(run, rows))
    y = 4.0
    first = _first(run)
    if first and zoom:
        y = _zoomed(drawing, run, shown, first, zoom, y) + 12
    time = linear(end_ns, _LEFT, _RIGHT)
    drawing.text(0, y + 10, f"the whole run, {duration(run.end_ns)}", class_="strong")
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


def _chosen(rows: Sequence[Row], first: Collection[str]) -> list[Row]:
    """As many as there is room for: these first, then those that stood longest of each depth, with
    what led to them."""
    if len(rows) <= _MOST_ROWS:
        return list(rows)
    by_depth: dict[int, list[Row]] = {}
    for row in rows:
        by_depth.setdefault(row.depth, []).append(row)
    for each in by_depth.values():
        each.sort(key=lambda row: (-sum(end - begin for begin, end in row.spans), row.name))
    wanted = [rows[0], *(row for row in rows if row.name in first)]
    for rank in range(len(rows)):
        wanted += [each[rank] for each in by_depth.values() if rank < len(each)]
    of_name = {row.name: row for row in rows}
    kept: dict[str, None] = {}
    for row in wanted:
        chain = [row]
        while row.name not in first and chain[0].cause:
            chain.insert(0, of_name[chain[0].cause])
        if len(kept.keys() | {each.name for each in chain}) <= _MOST_ROWS:
            kept |= dict.fromkeys(each.name for each in chain)
    return [row for row in rows if row.name in kept]


def _told(run: KeptRun, rows: Sequence[Row]) -> str:
    """What the picture shows, in words."""
    first = min(rows, key=lambda row: row.first_ns)
    longest = max(rows, key=lambda row: sum(end - begin for begin, end in row.spans))
    stood = sum(end - begin for begin, end in longest.spans)
    said = (
        f"{plural(len(rows), 'direction')} stood still, each below the one whose pause led to it: "
        f"first {first.name} at {duration(first.first_ns)}, longest {longest.name}, for "
        f"{duration(stood)} of {duration(run.end_ns)}"
    )
    alone = sum(not row.cause for row in rows)
    deepest = max(row.depth for row in rows)
    if deepest:
        said += f"; {alone} began by themselves, and up to {deepest} others in a row followed"
    ring = circle(run)
    return said + (f"; a deadlock: {' waits for '.join(ring)}." if ring else ".")


def _zoomed(
    drawing: Drawing, run: KeptRun, shown: Sequence[Row], first: PauseNote, zoom: Zoom, y: float
) -> float:
    """The first pauses, to the nanosecond; where the axis ends."""
    begin, end = zoom.begin_ns, zoom.end_ns
    time = Scale(begin, end, _LEFT, _RIGHT)
    said = f"the first {duration(_ZOOM_NS)} of pauses"
    if first.time_ns > end:
        said += f"; here the first was at {duration(first.time_ns)}"
    drawing.text(0, y + 10, said, class_="strong")
    y += 16
    top = y
    held = _Held.of(run, first, begin)
    height = (_QUEUE if held else 0) + _ROW * len(shown)
    x_axis(drawing, time, top + height, "time", NANOSECONDS, top=top)
    if held:
        _stock(drawing, held, time, zoom.most_bytes, y)
        y += _QUEUE
    tops = {row.name: y + at * _ROW for at, row in enumerate(shown)}
    of_name = {row.name: row for row in shown}
    for row in shown:
        spans = _told_spans(row, end)
        _track(drawing, row, time, tops[row.name], 0.0, end, spans)
    signs = 0
    led: list[tuple[float, float, float, float, str]] = []
    for row in shown:
        inside = [note for note in row.told if begin <= note.time_ns <= end]
        cause = of_name.get(row.cause)
        if cause and begin <= row.first_ns <= end:
            before = max(
                note.time_ns
                for note in cause.told
                if note.what == "xoff" and note.time_ns < row.first_ns
            )
            start = time(max(begin, before)), tops[cause.name] + 13
            head = time(row.first_ns), tops[row.name] + 1
            tip = f"{cause.name} stood still, so {row.name} had to"
            led.append((*start, *head, tip))
        for note in inside[: _MOST_SIGNS - signs]:
            _sign(drawing, time(note.time_ns), tops[row.name], note)
        signs = min(_MOST_SIGNS, signs + len(inside))
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


def _told_spans(row: Row, end: float) -> list[Span]:
    """When it stood still, by the frames that told it to."""
    found: list[Span] = []
    since: int | None = None
    for note in row.told:
        if note.what == "xoff" and since is None:
            since = note.time_ns
        elif note.what == "xon" and since is not None:
            found.append((since, note.time_ns))
            since = None
    return found if since is None else [*found, (since, end)]


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
    drawing.boxes(boxes, fill=PAUSE, tip=f"{row.name} stood still")
    drawing.text(5.0 * min(3, row.depth), y + 12, row.name, class_="tick")
    if not row.cause:
        _start(drawing, _LEFT - 6, y + 8)


def _start(drawing: Drawing, x: float, y: float) -> None:
    """That no pause led to a row's."""
    drawing.add("circle", cx=x, cy=y, r=3, fill=PAPER, stroke=INK, stroke_width=1.4)


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
    _start(drawing, 5, y - 4)
    drawing.text(
        14, y, "no pause led to it: a queue began; dashed: faults, watchdogs", class_="tick"
    )
    return y

"""Messages and work as a chart of Gantt's: a row a host, a box a message, as long as it took.

    phases     ▁▁▁▁▁▁▁▁▁▁▁▁       of what kind anything was under way, and steps of a job
    h1  compute▒▒▒▒▒▒ →h2 █◇█     work above, messages below, overlapping ones one below the other
    h2         ▒▒▒▒▒▒▒▒▒ →h3 █

A diamond is where a message would have ended alone. Who suffers stands out: victims, the straggler;
and whoever they suffer from. Of many hosts the slowest and the fastest of each leaf are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from params.data import Data
from params.quantity import NANOSECONDS, duration, number, plural, size
from views.report.chains import slow
from views.report.kept import KeptFlow, KeptRun
from views.report.palette import (
    AGGRESSOR,
    FAINT,
    INK,
    MESSAGE,
    ON,
    PAPER,
    SERIES,
    STRAGGLER,
    VICTIM,
    WORK,
)
from views.report.standing import merge
from views.report.suspects import aggressors, straggler, victims
from views.report.svg import FONT, ROOM, WIDTH, Drawing, Scale, linear, width_of, x_axis

_LEFT, _RIGHT, _AXIS = 50.0, WIDTH - 8, 32.0
_MAX_ROWS = 32
_MAX_LANES = 6
_MAX_TIPS = 1000  # boxes that say what they are where a pointer rests
_SLOWEST = "m0"
_KINDS = tuple(SERIES[at] for at in (0, 1, 6, 7, 2))  # of messages, by how many there are
_MAX_STEPS = 12
_BAND = 13.0
# What hosts do by themselves.
_WORKS = {"compute": WORK, "forward": WORK, "backward": SERIES[3]}
_INSIDE = SERIES[5]
_USUAL = {"compute": "computing", "forward": "forward pass", "backward": "backward pass"}
_ALONE = "alone it would have ended here"
_LATE = 1.2  # times as long as alone, from which on it is shown where a message would have ended
_MIN_ROOM = 8.0  # of that, so that one can see it
_LEAVES = 46.0  # for the names of leaves, where hosts stand by these
_APART = 1.2  # what is nearer is drawn as one where there is very much

_Place = tuple[float, float, float, float]


class _Box(Data):
    """A message, or work, in its row."""

    start: float
    end: float
    colour: str
    label: str
    tip: str
    alone: float | None = None  # when it would have ended in an empty fabric, if much sooner
    why: str = ""  # what the page knows it by, if one may ask why it was slow: moments.js


def messages(run: KeptRun, end_ns: float) -> Drawing | None:
    """What each host sent, to whom, for what and how long; and what it computed. What goes on for
    longer than is drawn is broken off, and seen to be."""
    found = {flow.src for flow in run.flows if flow.fct_ns is not None}
    found |= {work.host for work in run.work}
    busy = [str(host) for host in run.fabric.hosts if str(host) in found]
    if not busy:
        return None
    marked = notable(run)
    shown, note = _chosen(run, busy, marked)
    groups = _groups(run, shown) if note else {}
    rows = _Rows(run, frozenset(shown))
    left = _LEFT + (_LEAVES if groups else 0)
    time = linear(end_ns, left, _RIGHT)
    drawing = Drawing(0, _title(run, busy))
    top = _phases(drawing, run, rows, time)
    height = 22.0 if len(shown) <= 10 else 17.0 if len(shown) <= 16 else 14.0
    bottom = top + height * len(shown)
    x_axis(drawing, time, bottom, "time", NANOSECONDS, top=top)
    for row, host in enumerate(shown):
        y = top + row * height
        name = marked.get(host, INK)
        weight = "tick" if name == INK else "tick strong"
        middle = y + height / 2 + 4
        if host in groups:
            drawing.line(0, y, _RIGHT, y)
            drawing.text(0, middle, groups[host], class_="tick")
        drawing.text(left - 5, middle, host, text_anchor="end", class_=weight, fill=name)
        work, sent = rows.work.get(host, []), rows.sent.get(host, [])
        upper = height - 4 if not sent else 0.4 * (height - 4) if work else 0.0
        _lanes(drawing, work, time, y + 2, upper, rows.has_tips)
        _lanes(drawing, sent, time, y + 2 + upper, height - 4 - upper, rows.has_tips)
    legend = drawing.legend(bottom + _AXIS + FONT + 4, list(rows.legend()))
    if any(shape.tip.startswith(_ALONE) for shape in drawing.shapes):
        legend += FONT + 4
        _diamond(drawing, 10, legend - 4, 4.5)
        drawing.text(24, legend, f"{_ALONE}; N \N{MULTIPLICATION SIGN}: as many times as long")
    worst = slow(run)[:1]
    if worst and worst[0].fct_ns is not None and worst[0].src in shown:
        legend += FONT + 4
        drawing.rect(4, legend - 8, 13, 8, fill=PAPER, stroke=INK, stroke_width=1.6)
        drawing.text(24, legend, f"slowed most: {worst[0].src} to {worst[0].dst}")
    if run.end_ns > time.high:
        note = [f"Broken off at the right: the whole run lasts {duration(run.end_ns)}.", *note]
    for line in note:
        legend += FONT + 4
        drawing.text(0, legend, line, fill=FAINT)
    drawing.height = legend + 6
    return drawing


def notable(run: KeptRun) -> dict[str, str]:
    """Hosts that matter, and in which colour."""
    late = straggler(run)
    found = {late[0]: STRAGGLER} if late else {}
    return found | {flow.src: VICTIM for flow in victims(run)}


def _chosen(
    run: KeptRun, busy: Sequence[str], notable: Collection[str]
) -> tuple[list[str], list[str]]:
    """The hosts that there is room for, and what is to be said of that: all of a few; of many those
    that matter, and of each leaf the slowest and the fastest; of very many leaves some, the one
    with the slowest host and that whose slowest is fastest among them."""
    if len(busy) <= _MAX_ROWS:
        return list(busy), []
    how_slow: dict[str, tuple[float, int]] = dict.fromkeys(busy, (0.0, 0))
    for flow in run.flows:
        order = flow.slowdown or 0.0, flow.fct_ns or 0
        how_slow[flow.src] = max(how_slow.get(flow.src, order), order)
    for work in run.work:
        how_slow[work.host] = max(how_slow[work.host], (0.0, work.end_ns - work.start_ns))
    by_leaf: dict[str, list[str]] = {}
    for _, host in sorted(
        enumerate(busy), key=lambda each: (how_slow[each[1]], each[0]), reverse=True
    ):
        by_leaf.setdefault(_leaf_of(run, host), []).append(host)
    kept = [host for host in busy if host in notable][: _MAX_ROWS - 2]
    room = (_MAX_ROWS - len(kept)) // 2
    leaves = list(by_leaf)  # the one with the slowest host first
    said = f"of each leaf: {{}} of {len(busy)} hosts"
    if len(leaves) > room:
        said = f"of {room} leaves of {len(leaves)}: {{}} of {len(busy)} hosts"
        last = len(leaves) - 1
        leaves = [leaves[round(at * last / max(1, room - 1))] for at in range(room)]
    shown = set(kept)
    for leaf in leaves:
        shown |= {by_leaf[leaf][0], by_leaf[leaf][-1]}
    chosen = [
        host
        for leaf in sorted(by_leaf, key=run.fabric.node)
        for host in by_leaf[leaf]
        if host in shown
    ]
    return chosen, ["Shown are the slowest host and the fastest", said.format(len(chosen)) + "."]


def _leaf_of(run: KeptRun, host: str) -> str:
    return str(run.fabric.leaf_of(run.fabric.node(host)))


def _groups(run: KeptRun, shown: Sequence[str]) -> dict[str, str]:
    """By the first host of each leaf: that leaf."""
    found: dict[str, str] = {}
    before = ""
    for host in shown:
        leaf = _leaf_of(run, host)
        if leaf != before:
            found[host] = before = leaf
    return found


class _Rows:
    """The boxes of every host, and what their colours mean."""

    def __init__(self, run: KeptRun, shown: frozenset[str]) -> None:
        whole = [
            flow for flow in run.flows if flow.start_ns is not None and flow.fct_ns is not None
        ]
        flows = [flow for flow in whole if flow.src in shown]
        works = [work for work in run.work if work.host in shown]
        self._victims = {id(flow) for flow in victims(run)}
        self._guilty = {id(flow) for flow in aggressors(run)}
        late = straggler(run)
        self._late = late[0] if late else None
        self._slow = {id(flow): f"m{at}" for at, flow in enumerate(slow(run))}
        kinds = Counter(f.what for f in whole).most_common(len(_KINDS))
        self._kinds = [kind for kind, _ in kinds]
        self.has_tips = len(flows) + len(works) <= _MAX_TIPS
        self.sent: dict[str, list[_Box]] = {}
        self.work: dict[str, list[_Box]] = {}
        self._used: dict[str, str] = {}  # colours that are used, and what for
        for flow in flows:
            self.sent.setdefault(flow.src, []).append(self._message(flow))
        for work in works:
            is_late = work.host == self._late
            what = work.what or "compute"
            colour = STRAGGLER if is_late else work_colour(what)
            usual = _USUAL.get(what, what)
            self._used[colour] = f"{work.host} computes: the straggler" if is_late else usual
            tip = f"{work.host}: {what}, step {work.step}: " + _when(work.start_ns, work.end_ns)
            box = _Box(work.start_ns, work.end_ns, colour, "", tip)
            self.work.setdefault(work.host, []).append(box)

    def _message(self, flow: KeptFlow) -> _Box:
        assert flow.start_ns is not None and flow.fct_ns is not None
        colour = self.colour_of(flow)
        end = flow.start_ns + flow.fct_ns
        tip = f"{flow.src} to {flow.dst}, {size(flow.bytes)}, {flow.what}, step {flow.step}: "
        tip += _when(flow.start_ns, end)
        if flow.slowdown is not None:
            tip += f", {number(flow.slowdown)} times as long as alone"
        label = f"\N{RIGHTWARDS ARROW}{flow.dst}"
        alone = None
        if flow.slowdown is not None and flow.slowdown >= _LATE:
            alone = flow.start_ns + flow.fct_ns / flow.slowdown
            label += " victim," if colour == VICTIM else ""
            label += f" {number(flow.slowdown)} \N{MULTIPLICATION SIGN}"
        return _Box(flow.start_ns, end, colour, label, tip, alone, self._slow.get(id(flow), ""))

    def colour_of(self, flow: KeptFlow) -> str:
        """By what it suffers or does, else by what it belongs to."""
        if id(flow) in self._victims:
            self._used[VICTIM] = f"victim: {flow.src} to {flow.dst}"
            return VICTIM
        if id(flow) in self._guilty:
            self._used[AGGRESSOR] = f"aggressors: to {flow.dst}"
            return AGGRESSOR
        if len(self._kinds) < 2 or flow.what not in self._kinds:
            self._used[MESSAGE] = "a message" if len(self._kinds) < 2 else "other messages"
            return MESSAGE
        colour = _KINDS[self._kinds.index(flow.what)]
        self._used[colour] = flow.what
        return colour

    def legend(self) -> Iterator[tuple[str, str, str]]:
        """The colours that are used, those of who suffers first."""
        first = [VICTIM, AGGRESSOR, STRAGGLER, WORK]
        for colour in [*first, *(colour for colour in self._used if colour not in first)]:
            if colour in self._used:
                yield colour, "", self._used[colour]


def work_colour(what: str) -> str:
    """Of what a host does by itself: computing, or anything else."""
    return _WORKS.get(what, _INSIDE)


def _when(start: float, end: float) -> str:
    return f"from {duration(start)} to {duration(end)}"


def _title(run: KeptRun, busy: Sequence[str]) -> str:
    """What the picture shows, in words."""
    said = [
        f"When messages of {plural(len(busy), 'host')} began and were complete, a row a host, over "
        f"{duration(run.end_ns)}"
    ]
    said += [
        f"the message from {flow.src} to {flow.dst} is a victim, which took "
        f"{number(flow.slowdown or 0)} times as long as alone"
        for flow in victims(run)[:2]
    ]
    late = straggler(run)
    if late:
        said.append(
            f"{late[0]} is a straggler, computing {number(late[1])} times as long as others"
        )
    slowest = max(run.flows, key=lambda flow: flow.fct_ns or 0, default=None)
    if slowest is not None and slowest.fct_ns:
        to = f"{slowest.src} to {slowest.dst}"
        said.append(f"the longest took {duration(slowest.fct_ns)}, from {to}")
    return "; ".join(said) + "."


def _phases(drawing: Drawing, run: KeptRun, rows: _Rows, time: Scale) -> float:
    """Of what kind anything was under way when, and where steps begin; where rows begin."""
    y = 4.0
    steps = run.result.steps or ()
    if 1 < len(steps) <= _MAX_STEPS:
        for number_, step in enumerate(steps):
            x, end = time(step.start_ns), time(min(step.end_ns or run.end_ns, time.high))
            if x < _RIGHT:
                drawing.line(x, y, x, y + _BAND, stroke=FAINT)
                said = f"step {number_}" if ROOM * width_of(f"step {number_}") < end - x else ""
                drawing.text(x + 3, y + 10, said, class_="tick")
        y += _BAND + 2
    parts: dict[str, tuple[str, list[tuple[float, float]]]] = {}
    for work in run.work:
        what = work.what or "compute"
        parts.setdefault(what, (work_colour(what), []))[1].append((work.start_ns, work.end_ns))
    kinds = list(dict.fromkeys(flow.what for flow in run.flows))
    if len(kinds) + bool(parts) < 2 or len(kinds) > len(_KINDS):
        return y
    for flow in run.flows:
        if flow.start_ns is not None and flow.fct_ns is not None:
            span = flow.start_ns, flow.start_ns + flow.fct_ns
            parts.setdefault(flow.what, (rows.colour_of(flow), []))[1].append(span)
    y += 2
    for what, (colour, spans) in sorted(parts.items(), key=lambda item: min(item[1][1])):
        merged = merge(spans, gap=0.4 * (time.high - time.low) / (time.end - time.start))
        x = time(min(merged[0][0], time.high))
        is_late = x + ROOM * width_of(what) > _RIGHT
        anchor = "end" if is_late else "start"
        drawing.text(_RIGHT if is_late else x, y + 9, what, text_anchor=anchor, class_="tick")
        shown = [(start, min(end, time.high)) for start, end in merged if start < time.high]
        inside = [(time(start), time(end)) for start, end in shown]
        places = [(a, y + 12, max(0.5, b - a), 3.0) for a, b in inside]
        tip = f"{what}: {_when(merged[0][0], merged[-1][1])}"
        drawing.boxes(places, fill=colour, tip=tip)
        y += _BAND + 5
    return y + 4


def _lanes(
    drawing: Drawing, boxes: Iterable[_Box], time: Scale, y: float, height: float, has_tips: bool
) -> None:
    """Boxes that overlap, one below the other."""
    lanes: list[float] = []  # by lane: when it is free again
    placed: list[tuple[int, _Box]] = []
    for box in sorted(boxes, key=lambda each: (each.start, each.end)):
        lane = next((at for at, free in enumerate(lanes) if free <= box.start), len(lanes))
        if lane == len(lanes):
            lanes.append(0)
        lanes[lane] = box.end
        placed.append((lane, box))
    tall = height / max(1, min(len(lanes), _MAX_LANES))
    by_colour: dict[tuple[str, int], list[_Place]] = {}
    for lane, box in placed:
        if box.start >= time.high:
            continue
        end = time(min(box.end, time.high))
        x, width = time(box.start), max(0.5, end - time(box.start))
        gap = 0.6 if width > 3 else 0.0  # so that one after the other is not one
        place = x, y + tall * (lane % _MAX_LANES), width - gap, max(0.5, tall - 0.5)
        if not has_tips and box.why != _SLOWEST:
            _extend(by_colour.setdefault((box.colour, lane % _MAX_LANES), []), place)
            continue
        edge = {"stroke": INK, "stroke_width": 1.6} if box.why == _SLOWEST else {}
        drawing.boxes(
            [place],
            fill=box.colour,
            tip=box.tip,
            data_why=box.why,
            **edge,
        )
        if box.end > time.high:
            _break(drawing, end - 12, place[1], place[3])
        mark = None
        if box.alone is not None and tall >= 5 and x + width - time(box.alone) >= _MIN_ROOM:
            mark = time(box.alone)
            _diamond(drawing, mark, place[1] + tall / 2 - 0.2, min(4.5, tall / 2), box.alone)
        needs = ROOM * width_of(box.label) + 4
        if box.label and box.colour in ON and tall >= 11:
            begin = x if mark is None or x + needs < mark - 4 else mark + 3
            if begin + needs < x + width:
                style = {"fill": ON[box.colour], "class_": "tick"}
                drawing.text(begin + 4, place[1] + tall / 2 + 3.8, box.label, **style)
    for (colour, _), places in by_colour.items():
        drawing.boxes(places, fill=colour)


def _break(drawing: Drawing, x: float, y: float, height: float) -> None:
    """That a box goes on beyond what is drawn."""
    for at in (x, x + 4):
        points = [(at + 2, y - 1), (at - 2, y + height + 1)]
        drawing.polyline(points, stroke=PAPER, stroke_width=1.6, tip="broken off")


def _diamond(drawing: Drawing, x: float, y: float, r: float, at_ns: float | None = None) -> None:
    """Where a message would have ended."""
    corners = [(x, y - r), (x + r, y), (x, y + r), (x - r, y), (x, y - r)]
    said = _ALONE if at_ns is None else f"{_ALONE}, at {duration(at_ns)}"
    drawing.polyline(corners, fill=PAPER, stroke=INK, stroke_width=1, tip=said)


def _extend(places: list[_Place], place: _Place) -> None:
    """Add a box; one that nobody could tell from the last makes that longer."""
    if places:
        x, y, width, height = places[-1]
        if place[0] < x + width + _APART:
            places[-1] = x, y, max(width, place[0] + place[2] - x), height
            return
    places.append(place)

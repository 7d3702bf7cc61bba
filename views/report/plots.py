"""The diagrams of a report; each takes a run, and limits that make several runs comparable."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from string import ascii_letters
from typing import NamedTuple

from lab.results.outcome import Note
from lab.results.percentiles import Percentiles
from params.data import Data
from params.quantity import (
    BYTES,
    NANOSECONDS,
    PER_CENT,
    Unit,
    duration,
    packets,
    percent,
    plural,
    quantity,
    size,
    summed,
)
from topologies import Node, NodeKind
from traffic.measures import percentile
from views.report.buffers import SCALE_ROOM, drop_threshold, fullest, scales
from views.report.climbing import Zoom
from views.report.kept import KeptRun
from views.report.moments import draw_events, events, room_for_events
from views.report.noted import over_time
from views.report.palette import (
    DROP,
    FAINT,
    INK,
    MARK,
    ON_SHARE,
    PAPER,
    QUEUE,
    QUEUE_FILL,
    SERIES,
    SHARES,
)
from views.report.reasons import REASONS
from views.report.suspects import living
from views.report.svg import (
    FONT,
    ROOM,
    WIDTH,
    Drawing,
    Line,
    Scale,
    apart,
    line_style,
    linear,
    spread,
    width_of,
    x_axis,
    y_axis,
)

_LEFT = 46.0  # of the paper, where axes begin
_NAMES = 112.0  # the same, beside names
_RIGHT = WIDTH - 8
_AXIS = 32.0  # below a plot, for its axis
_POINTS = 240  # of a line
BINS = 110  # of what is counted over time
_MAX_QUEUES = 4
_MAX_TIMES = 4  # as long as the shortest run: beyond that its details would be lost
_FEW_WAYS = 6  # whose names have room
_WORTH_SHARING = 0.01  # of all bytes: what a switch sends up that is more than acknowledgements


class Limits(Data):
    """What the scales of several runs' plots have in common.

    Side by side the same length means the same. Where one run lasts so much longer that others
    would be lost beside it, it is broken off, and says so.
    """

    end_ns: float  # of what is drawn over time
    queues: tuple[str, ...]  # whose lengths are drawn, in this order
    buffer: str | None  # the switch whose memory is drawn
    buffer_scales: Mapping[str, float]  # of its strips
    queue_bytes: float
    marks: int  # the most of a stretch of time
    drops: int
    dropped: int  # for one reason
    hop_ns: float
    hop_bytes: float
    zoom: Zoom | None  # of pauses

    @classmethod
    def of(cls, runs: Sequence[KeptRun]) -> Limits:
        """For all of them."""
        queue_bytes = max((note.queue_bytes for run in runs for note in run.notes), default=1) or 1
        held_most = fullest(runs)
        ends = [run.end_ns for run in runs]
        end_ns = min(max(ends), _MAX_TIMES * min(ends))
        telemetries = [run.result.telemetry for run in runs if run.result.telemetry]
        hops = [hop for each in telemetries for hop in each.by_switch.values()]
        return cls(
            end_ns,
            _longest(runs),
            held_most,
            scales(runs, held_most) if held_most else {},
            queue_bytes,
            max(max(_in_bins(end_ns, _marks(run))) for run in runs),
            max(max(_in_bins(end_ns, _drops(run))) for run in runs),
            max(
                (count for run in runs for count in run.result.drops.by_reason.values()), default=1
            ),
            max((hop.latency_ns.max for hop in hops if hop.latency_ns), default=1),
            max((hop.queue_bytes.max for hop in hops if hop.queue_bytes), default=1),
            Zoom.of(runs),
        )


# --- queues, and what became of them --------------------------------------------------------------


def queues(run: KeptRun, limits: Limits) -> Drawing | None:
    """The longest queues over time, and below them marks and drops at the same scale."""
    if not run.notes:
        return None
    time = linear(limits.end_ns, _NAMES, WIDTH - SCALE_ROOM)
    strips: list[_QueueStrip | _EventStrip] = [
        *(_QueueStrip(run, limits, name) for name in limits.queues),
        *(
            _EventStrip(label, counts, colour, most)
            for label, counts, colour, most in (
                ("marked", _in_bins(limits.end_ns, _marks(run)), MARK, limits.marks),
                ("dropped", _in_bins(limits.end_ns, _drops(run)), DROP, limits.drops),
            )
            if any(counts)
        ),
    ]
    if not strips:
        return None
    top = 6.0 + room_for_events(run)
    bottom = top + summed(strip.height for strip in strips)
    drawing = Drawing(bottom + _AXIS, _queues_title(run))
    x_axis(drawing, time, bottom, "time", NANOSECONDS, top=top)
    y = top
    for strip in strips:
        strip.draw(drawing, time, y)
        y += strip.height
    draw_events(drawing, run, time, top, bottom)
    if run.end_ns > limits.end_ns:
        said = f"cut at {duration(limits.end_ns)}, of {duration(run.end_ns)}"
        drawing.text(WIDTH, bottom + _AXIS + FONT, said, text_anchor="end", class_="strong")
        drawing.height += FONT + 4
    return drawing


def _queues_title(run: KeptRun) -> str:
    """What the picture shows, in words."""
    longest = {use.name: use.max_queue_bytes or 0 for use in run.result.links}
    parts = [f"{name} up to {size(longest.get(name, 0))}" for name in _longest([run])]
    said = [f"The longest queues over {duration(run.end_ns)}: {', '.join(parts) or 'none'}"]
    if run.result.ecn.marked_packets:
        said.append(f"{packets(run.result.ecn.marked_packets)} marked")
    if run.result.drops.total:
        said.append(f"{packets(run.result.drops.total)} dropped")
    said += [f"{what} at {duration(at)}" for at, what in events(run)[:6]]
    return "; ".join(said) + "."


class _QueueStrip(Data):
    """A queue's length over time."""

    run: KeptRun
    limits: Limits
    name: str
    height: float = 58.0

    def draw(self, drawing: Drawing, time: Scale, y: float) -> None:
        """Draw it from this height on downwards."""
        base = y + self.height - 8
        depth = linear(self.limits.queue_bytes, base, y + 4)
        notes = self.run.notes_of.get(self.name, ())
        seen = max((note.queue_bytes for note in notes), default=0)
        use = next((use for use in self.run.result.links if use.name == self.name), None)
        most = max(seen, (use and use.max_queue_bytes) or 0)  # between two notes it may be longer
        points = [
            (time(at), depth(value))
            for at, value in _story(self.run, self.name)
            if at <= self.limits.end_ns
        ]
        tick = depth.ticks(2)[-1]
        drawing.line(time.start, depth(tick), time.end, depth(tick))
        outline = [(points[0][0], base), *points, (points[-1][0], base)]
        drawing.polyline(outline, fill=QUEUE_FILL, tip=self.name)
        drawing.polyline(points, stroke=QUEUE, stroke_width=1.3)
        drawing.line(time.start, base, time.end, base, stroke=FAINT)
        drawing.text(0, y + 18, self.name, class_="strong")
        drawing.text(0, y + 33, f"peak {size(most)}", class_="tick")
        names = [(depth(tick), size(tick), INK), *self._thresholds(drawing, time, depth)]
        for place, name, colour in apart(names, y + 4, base):
            drawing.text(time.end + 4, place + 4, name, fill=colour, class_="tick")

    def _thresholds(
        self, drawing: Drawing, time: Scale, depth: Scale
    ) -> Iterator[tuple[float, str, str]]:
        """Where marking begins, where all is marked, and where drops begin, if queues came near;
        the height of each, its name and colour."""
        ecn = self.run.result.scenario.ecn
        for name, value in (("Kmin", ecn.kmin), ("Kmax", ecn.kmax)) if ecn.enabled else ():
            if value <= depth.high:
                y = depth(value)
                drawing.line(time.start, y, time.end, y, stroke=MARK, stroke_dasharray="3 3")
                yield y, name, MARK
        limit = drop_threshold(self.run, self.name.partition(">")[0])
        points = [(time(at), depth(value)) for at, value in limit if at <= time.high]
        if points and min(value for _, value in limit) <= depth.high:
            points = [(x, max(y, depth(depth.high))) for x, y in points]
            drawing.polyline(points, stroke=DROP, stroke_width=1.2, stroke_dasharray="4 3")
            yield points[-1][1], "drops", DROP


class _EventStrip(Data):
    """How many of something happened when; the highest bar is told in numbers."""

    label: str
    counts: Sequence[int]
    colour: str
    scale: int  # what the highest bar of all runs stands for
    height: float = 40.0

    def draw(self, drawing: Drawing, time: Scale, y: float) -> None:
        """Draw it from this height on downwards."""
        base, most = y + self.height - 4, max(self.counts)
        width = (time.end - time.start) / len(self.counts)
        tall = 28 / self.scale
        bars = [
            (time.start + at * width, base - tall * count, width - 0.4, tall * count)
            for at, count in enumerate(self.counts)
            if count
        ]
        drawing.line(time.start, base, time.end, base, stroke=FAINT)
        drawing.boxes(bars, fill=self.colour)
        drawing.text(0, y + 18, self.label, fill=self.colour, class_="strong")
        drawing.text(0, y + 33, f"most {most:,} a bar", class_="tick", tip=plural(most, "packet"))


def _longest(runs: Sequence[KeptRun]) -> tuple[str, ...]:
    """The directions before which the longest queues of several runs stood."""
    peaks: dict[str, int] = {}
    for run in runs:
        for name, notes in run.notes_of.items():
            peaks[name] = max(peaks.get(name, 0), *(note.queue_bytes for note in notes))
    ordered = sorted(peaks, key=lambda name: (-peaks[name], name))
    return tuple(name for name in ordered[:_MAX_QUEUES] if peaks[name])


def _story(run: KeptRun, name: str) -> Line:
    """A queue's length over time: the most of each stretch of it, nothing where none was noted."""
    noted = {note.time_ns: note.queue_bytes for note in run.notes_of.get(name, ())}
    moments = sorted({note.time_ns for note in run.notes})
    story = over_time(run, ((at, noted.get(at, 0)) for at in moments), _POINTS)
    return [
        point
        for before, point, after in zip(
            [(0.0, -1.0), *story], story, [*story[1:], (0.0, -1.0)], strict=False
        )
        if not before[1] == point[1] == after[1]
    ]


def _changes(notes: Sequence[Note], value: Callable[[Note], int]) -> Iterable[tuple[int, Note]]:
    """Notes at which a value had grown, with what it was before."""
    before = 0
    for note in notes:
        if value(note) > before:
            yield before, note
            before = value(note)


def _marks(run: KeptRun) -> list[tuple[int, int]]:
    """When packets were marked, and how many."""
    return [
        (note.time_ns, note.marked - before)
        for notes in run.notes_of.values()
        for before, note in _changes(notes, lambda note: note.marked)
    ]


def _drops(run: KeptRun) -> list[tuple[int, int]]:
    """When switches dropped packets, and how many; every link of a switch tells the same."""
    by_switch: dict[str, list[Note]] = {}
    for note in run.notes:
        by_switch.setdefault(note.link.partition(">")[0], []).append(note)
    return [
        (note.time_ns, note.dropped - before)
        for notes in by_switch.values()
        for before, note in _changes(notes, lambda note: note.dropped)
    ]


def _in_bins(end_ns: float, events: Iterable[tuple[int, int]]) -> list[int]:
    bins = [0] * BINS
    for at, count in events:
        if at <= end_ns:
            bins[min(BINS - 1, int(at / end_ns * BINS))] += count
    return bins


# --- completion ---------------------------------------------------------------------------------


def completion_times(runs: Sequence[tuple[str, KeptRun]]) -> Drawing | None:
    """The share of messages that were complete after a time, a line a run."""
    times = [_times(run) for _, run in runs]
    if not any(times):
        return None
    is_alone = len(runs) == 1
    top, height = 24.0, 170.0
    rows = 1 if is_alone else len(runs)
    drawing = Drawing(top + height + _AXIS + rows * (FONT + 4) + 4, _completion_title(runs))
    scale = spread([time for each in times for time in each], _LEFT, _RIGHT)
    share = Scale(0, 1, top + height, top)
    y_axis(drawing, share, "share of messages complete", PER_CENT, left=_LEFT, right=_RIGHT)
    y = top + height + _AXIS + FONT + 4
    for number, ((name, run), each) in enumerate(zip(runs, times, strict=True)):
        colour, dash = line_style(number)
        if each:
            points = _steps(each, len(run.flows), scale, share)
            drawing.polyline(points, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        if is_alone:
            _percentile_marks(drawing, each, scale, share)
        else:
            drawing.line(0, y - 4, 20, y - 4, stroke=colour, stroke_width=3, stroke_dasharray=dash)
            drawing.text(24, y, name)
            y += FONT + 4
    x_axis(drawing, scale, top + height, "completion time", NANOSECONDS, top=top)
    if is_alone and times[0]:
        drawing.text(0, y, _within(times[0]))
    return drawing


def _times(run: KeptRun) -> list[int]:
    """How long messages took, the quickest first."""
    return sorted(flow.fct_ns for flow in run.flows if flow.fct_ns is not None)


def _within(times: Sequence[int]) -> str:
    half, most = (duration(percentile(times, p)) for p in (50, 99))
    return f"half within {half}, 99 % within {most}"


def _completion_title(runs: Sequence[tuple[str, KeptRun]]) -> str:
    """What the picture shows, in words."""
    parts = []
    for name, run in runs:
        times = _times(run)
        if times:
            whole = f"all of {len(times):,} within {duration(times[-1])}"
            parts.append(f"{name}: {_within(times)}, {whole}")
    return f"The share of messages complete within a time. {'; '.join(parts)}."


def _steps(times: Sequence[int], count: int, x: Scale, y: Scale) -> list[tuple[float, float]]:
    points = [(x(times[0]), y(0))]
    step = max(1, len(times) // _POINTS)
    for at in [*range(0, len(times), step), len(times) - 1]:
        points += [(x(times[at]), points[-1][1]), (x(times[at]), y((at + 1) / count))]
    return points


def _percentile_marks(drawing: Drawing, times: Sequence[int], x: Scale, y: Scale) -> None:
    for percent_ in (50, 99) if times else ():
        value = percentile(times, percent_)
        drawing.add(
            "circle",
            cx=x(value),
            cy=y(percent_ / 100),
            r=4,
            fill=PAPER,
            stroke=SERIES[0],
            stroke_width=2,
            tip=f"{percent_} % within {duration(value)}",
        )


# --- drops, balance, telemetry --------------------------------------------------------------------

# What a switch means by the reason it gives.


def drops(run: KeptRun, limits: Limits) -> Drawing | None:
    """Packets dropped, by reason."""
    found = sorted(run.result.drops.by_reason.items(), key=lambda item: (-item[1], item[0]))
    if not found:
        return None
    most = limits.dropped
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in found)
    drawing = Drawing(len(found) * 38.0 + 4, f"Packets dropped, by reason: {reasons}.")
    for row, (reason, count) in enumerate(found):
        y = row * 38.0
        meaning = REASONS.get(reason)
        drawing.text(0, y + 13, f"{reason}" + (f": {meaning}" if meaning else ""))
        bar = max(2.0, (WIDTH - 110) * count / most)
        drawing.rect(0, y + 18, bar, 12, fill=DROP)
        drawing.text(bar + 6, y + 29, f"{count:,} packets", class_="strong")
    return drawing


def uplinks(run: KeptRun) -> dict[Node, dict[str, int]]:
    """By switch that has a choice, and more to send up than acknowledgements: bytes by each way."""
    return {switch: ways for switch, ways in _upward(run).items() if len(ways) > 1}


def lone_uplinks(run: KeptRun) -> list[Node]:
    """Switches that had more to send up than acknowledgements, and one way."""
    return [switch for switch, ways in _upward(run).items() if len(ways) == 1]


class Preferred(NamedTuple):
    """A way up that a switch sent more by than by others."""

    excess: float  # times its even share
    switch: str
    way: str
    share: float
    ways: int


def preferred(upward: Mapping[Node, Mapping[str, int]]) -> Preferred | None:
    """Of these switches' ways the one that is furthest above its even share."""
    found = []
    for switch, ways in upward.items():
        total = sum(ways.values())
        way = max(ways, key=lambda name: ways[name])
        share = ways[way] / total
        found.append(Preferred(ways[way] * len(ways) / total, str(switch), way, share, len(ways)))
    return max(found, default=None)


def _upward(run: KeptRun) -> dict[Node, dict[str, int]]:
    sent = {use.name: use.bytes for use in run.result.links}
    found: dict[Node, dict[str, int]] = {}
    for link in living(run, run.fabric.links):
        if link.a.kind is not NodeKind.HOST:
            found.setdefault(link.a, {})[link.up.partition(">")[2]] = sent[link.up]
    least = max(1, _WORTH_SHARING * run.result.flows.bytes)
    return {switch: ways for switch, ways in found.items() if sum(ways.values()) >= least}


def balance(run: KeptRun) -> Drawing | None:
    """How each switch shared its upward bytes among its uplinks."""
    found = uplinks(run)
    if not found:
        return None
    shown = sorted(
        found, key=lambda switch: -max(found[switch].values()) / sum(found[switch].values())
    )
    shown = sorted(shown[:16])
    left, height = 58.0, 22.0
    bottom = 8 + height * len(shown)
    shares = "; ".join(
        f"{switch}: "
        + ", ".join(
            f"{way} {percent(sent / sum(found[switch].values()))}"
            for way, sent in found[switch].items()
        )
        for switch in shown
    )
    drawing = Drawing(bottom + _AXIS, f"How upward traffic was shared. {shares}.")
    share = Scale(0, 1, left, _RIGHT)
    for row, switch in enumerate(shown):
        y = 8 + row * height
        count = len(found[switch])
        for part in range(1, count if count <= 16 else 1):  # between bars, not through their names
            x = share(part / count)
            drawing.line(x, y - 2, x, y + height - 2, stroke=INK)
        drawing.text(left - 6, y + 14, str(switch), text_anchor="end", class_="tick")
        _shares(drawing, found[switch], share, y + 1.5, height - 5)
    x_axis(drawing, share, bottom, "share of a switch's upward bytes", PER_CENT, top=bottom)
    drawing.height += FONT + 10
    drawing.line(4, drawing.height - 15, 4, drawing.height - 4, stroke=INK)
    said = "an even share would end here"
    if any(len(ways) > _FEW_WAYS for ways in found.values()):
        said += "; N: the Nth way, as spineN"
    drawing.text(12, drawing.height - 5, said)
    return drawing


def _shares(drawing: Drawing, ways: dict[str, int], share: Scale, y: float, height: float) -> None:
    total = sum(ways.values())
    begin = 0.0
    for number, (way, sent) in enumerate(ways.items()):
        end = begin + sent / total
        width = share(end) - share(begin)
        fill = SHARES[number % 2]
        story = f"{way}: {percent(sent / total)} ({size(sent)})"
        drawing.rect(share(begin), y, width, height, fill=fill, stroke=PAPER, tip=story)
        names = f"{way} {percent(sent / total)}", way, way.lstrip(ascii_letters)
        text = next((name for name in names if ROOM * width_of(name) + 2 < width), "")
        if text:
            x = (share(begin) + share(end)) / 2
            style = {"text_anchor": "middle", "fill": ON_SHARE[fill], "class_": "tick"}
            drawing.text(x, y + 13, text, **style)
        begin = end


def telemetry(run: KeptRun, limits: Limits) -> Drawing | None:
    """What each switch said of packets: how long they were there, and before which queue."""
    telemetry = run.result.telemetry
    if telemetry is None or not telemetry.by_switch:
        return None
    shown = sorted(
        sorted(telemetry.by_switch.items(), key=lambda item: -item[1].count)[:16],
        key=lambda item: run.fabric.node(item[0]),
    )
    left, height, middle = 58.0, 22.0, WIDTH / 2 + 20
    bottom = 8 + height * len(shown)
    slowest = max(shown, key=lambda item: item[1].latency_ns.p99 if item[1].latency_ns else 0)
    title = f"Time and queue at {len(shown)} switches, as telemetry told; longest at {slowest[0]}"
    if slowest[1].latency_ns:
        title += f", {duration(slowest[1].latency_ns.p99)} for 99 % of packets"
    drawing = Drawing(bottom + _AXIS, title + ".")
    halves = (
        (
            "time at the switch",
            NANOSECONDS,
            [hop.latency_ns for _, hop in shown],
            linear(limits.hop_ns, left, middle - 14),
        ),
        (
            "its queue",
            BYTES,
            [hop.queue_bytes for _, hop in shown],
            linear(limits.hop_bytes, middle + 14, _RIGHT),
        ),
    )
    for label, units, spreads, scale in halves:
        x_axis(drawing, scale, bottom, label, units, top=4)
        for row, seen in enumerate(spreads):
            if seen is not None:
                _spread_bar(drawing, scale, 8 + row * height, seen, units)
    for row, (name, hop) in enumerate(shown):
        y = 8 + row * height + 14
        drawing.text(left - 6, y, name, text_anchor="end", class_="tick", tip=f"{hop.count:,}")
    return drawing


def _spread_bar(
    drawing: Drawing, scale: Scale, y: float, seen: Percentiles, units: Sequence[Unit]
) -> None:
    """Half of all are no more than the bar, 99 % no more than the line, none more than the dot."""
    tip = ", ".join(
        f"{name} {quantity(value, units)}"
        for name, value in (("median", seen.p50), ("99 %", seen.p99), ("most", seen.max))
    )
    drawing.line(scale(0), y + 10, scale(seen.p99), y + 10, stroke=SHARES[1], stroke_width=3)
    drawing.rect(scale(0), y + 4, scale(seen.p50) - scale(0), 12, fill=SHARES[0], tip=tip)
    drawing.add("circle", cx=scale(seen.max), cy=y + 10, r=3, fill=INK, tip=tip)

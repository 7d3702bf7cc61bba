"""A cluster's day: a row a host, a box for each time that a job had it, by how it was slowed.

A dashed line leads to the job that waited longest for hosts, from its arrival on.

Below, how many jobs waited when. The lines between rows are those between racks.
"""

from __future__ import annotations

from itertools import groupby

from lab.results.cluster import ClusterResult, JobOfCluster
from params.quantity import NANOSECONDS, duration, listed, number, percent, plural
from views.report.chains import jobs
from views.report.kept import KeptRun
from views.report.palette import INK, MESSAGE, ON, PAPER, QUEUE, QUEUE_FILL, SERIES, VICTIM
from views.report.svg import FONT, ROOM, WIDTH, Drawing, Scale, linear, width_of, x_axis

_LEFT, _RIGHT, _AXIS = 50.0, WIDTH - 8, 32.0
_ALL_ROWS = 360.0
_QUEUE = 52.0
_LINE = 12.0  # of a job's name
_DASHED = {"stroke_dasharray": "5 3"}
# How many times as long as alone, on a fabric that never blocks: up to where a colour is used.
_SLOWED = (
    (1.2, SERIES[2], "up to 1.2 times as long as alone"),
    (1.5, MESSAGE, "up to 1.5"),
    (2.0, SERIES[1], "up to 2"),
    (float("inf"), VICTIM, "more"),
)


def cluster(run: KeptRun) -> Drawing | None:
    """Who had which host when."""
    found = run.result.cluster
    if found is None or not any(job.pieces for job in found.jobs):
        return None
    hosts = {str(host): at for at, host in enumerate(run.fabric.hosts)}
    height = min(16.0, _ALL_ROWS / len(hosts))
    top, bottom = 4.0, 4.0 + height * len(hosts)
    end = max(piece[2] for job in found.jobs for piece in job.pieces)
    time = linear(end, _LEFT, _RIGHT)
    drawing = Drawing(0, _title(found))
    y = top
    for leaf, together in groupby(run.fabric.hosts, run.fabric.leaf_of):
        count = len(list(together))
        drawing.line(0, y, _RIGHT, y)
        drawing.text(0, y + 11, str(leaf), class_="tick")
        y += count * height
    asked = {name: f"j{at}" for at, name in enumerate(jobs(run))}  # moments.js
    for job in found.jobs:
        for names, start, over in job.pieces:
            rows = sorted(hosts[name] for name in names)
            is_marked = job in (*found.slowest[:1], found.longest_queued)
            _piece(
                drawing,
                job,
                rows,
                (start, over),
                time,
                height,
                is_marked=is_marked,
                why=asked.get(job.name, ""),
            )
    _wait(drawing, found.longest_queued, hosts, time, height)
    most = max(count for _, count in _waiting(found))
    floor, ceiling = bottom + _QUEUE, bottom + 14
    queue = Scale(0, max(1, most), floor, ceiling)
    drawing.text(0, floor, "waiting", class_="tick")
    drawing.text(_LEFT - 5, ceiling + 8, str(most), text_anchor="end", class_="tick")
    drawing.line(_LEFT, ceiling, _RIGHT, ceiling)
    points = _steps(_waiting(found), end, time, queue)
    drawing.polyline([*points, (_RIGHT, floor), (_LEFT, floor)], fill=QUEUE_FILL)
    drawing.polyline(points, stroke=QUEUE, stroke_width=1.5)
    x_axis(drawing, time, floor, "time", NANOSECONDS, top=ceiling)
    used = {_colour(job): text for job in found.jobs for _, c, text in _SLOWED if c == _colour(job)}
    entries = [(colour, "", text) for _, colour, text in _SLOWED if colour in used]
    legend = drawing.legend(floor + _AXIS + FONT + 4, entries) + FONT + 4
    named = list(dict.fromkeys(job.name for job in (*found.slowest[:1], found.longest_queued)))
    drawing.rect(4, legend - 8, 13, 8, fill=PAPER, stroke=INK, stroke_width=1.6)
    drawing.text(24, legend, f"slowest, and longest in the queue: {listed(named)}")
    if found.longest_queued.queued_ns:
        legend += FONT + 6
        drawing.line(4, legend - 4, 17, legend - 4, stroke=INK, stroke_width=2, **_DASHED)
        drawing.text(24, legend, f"{found.longest_queued.name} waits for hosts")
    drawing.height = legend + 6
    return drawing


def _wait(
    drawing: Drawing, job: JobOfCluster, hosts: dict[str, int], time: Scale, height: float
) -> None:
    """From its arrival to each of its hosts."""
    if not job.queued_ns or job.started_ns is None:
        return
    rows = sorted(hosts[name] for name in job.pieces[0][0])
    begin, end = time(job.arrived_ns), time(job.started_ns)
    at = [4.0 + (row + 1) * height - 2 for row in rows if row + 1 not in rows]
    for y in at:
        drawing.line(begin, y, end, y, stroke=INK, stroke_width=2, **_DASHED)
    drawing.line(begin, min(at), begin, max(at), stroke=INK, stroke_width=2, **_DASHED)


def _colour(job: JobOfCluster) -> str:
    slowed = job.slowdown or float("inf")
    return next(colour for most, colour, _ in _SLOWED if slowed <= most)


def _piece(
    drawing: Drawing,
    job: JobOfCluster,
    rows: list[int],
    span: tuple[int, int],
    time: Scale,
    height: float,
    *,
    is_marked: bool,
    why: str,
) -> None:
    """A box for each stretch of rows that are neighbours, the job's name in the tallest."""
    x, width = time(span[0]), max(0.5, time(span[1]) - time(span[0]) - 0.6)
    stretches: list[list[int]] = []
    for row in rows:
        if stretches and stretches[-1][-1] == row - 1:
            stretches[-1].append(row)
        else:
            stretches.append([row])
    colour = _colour(job)
    queued = f", after {duration(job.queued_ns)} in the queue" if job.queued_ns else ""
    slowed = f", {number(job.slowdown)} times as long as alone" if job.slowdown else ""
    tip = f"{job.name}: {duration(span[0])} to {duration(span[1])}{slowed}{queued}"
    places = [
        (x, 4.0 + each[0] * height + 0.4, width, len(each) * height - 0.8) for each in stretches
    ]
    edge = {"stroke": INK, "stroke_width": 2} if is_marked else {}
    drawing.boxes(places, fill=colour, tip=tip, data_why=why, **edge)
    tallest = max(places, key=lambda place: place[3])
    lines = [job.name]
    if ROOM * width_of(job.name) + 6 >= width:  # in two lines, if that fits
        begin, sign, number_ = job.name.rpartition("-")
        lines = [begin, sign + number_]
    fits = max(ROOM * width_of(line) for line in lines) + 6 < width
    if is_marked and not (fits and tallest[3] >= _LINE * len(lines) - 1):  # over its neighbours
        anchor = {"text_anchor": "end"} if x + ROOM * width_of(job.name) > _RIGHT else {}
        at = x + width if anchor else x + 2
        drawing.text(at, tallest[1] + tallest[3] / 2 + 4, job.name, class_="tick halo", **anchor)
    elif fits and tallest[3] >= _LINE * len(lines) - 1:
        middle = tallest[1] + tallest[3] / 2 + 4 - _LINE / 2 * (len(lines) - 1)
        for at, line in enumerate(lines):
            fill = ON.get(colour, INK)
            drawing.text(x + 3, middle + at * _LINE, line, class_="tick", fill=fill)


def _waiting(found: ClusterResult) -> list[tuple[int, int]]:
    """How many jobs have arrived and have not begun, from when on."""
    changes = [(job.arrived_ns, 1) for job in found.jobs]
    changes += [(job.started_ns, -1) for job in found.jobs if job.started_ns is not None]
    count, lines = 0, []
    for at_ns, change in sorted(changes):
        count += change
        lines.append((at_ns, count))
    return lines


def _steps(
    waiting: list[tuple[int, int]], end: int, time: Scale, queue: Scale
) -> list[tuple[float, float]]:
    points, before = [(time(0), queue(0))], 0
    for at_ns, count in waiting:
        points += [(time(at_ns), queue(before)), (time(at_ns), queue(count))]
        before = count
    return [*points, (time(end), queue(before))]


def _title(found: ClusterResult) -> str:
    """What the picture shows, in words."""
    said = f"When {plural(len(found.jobs), 'job')} had which hosts"
    if found.jct_ns and found.queued_ns:
        said += (
            f"; from arrival to end half of them took {duration(found.jct_ns.p50)} at most, "
            f"{duration(found.queued_ns.p50)} of it waiting"
        )
    return f"{said}. Jobs had hosts for {percent(found.allocated)} of their time."

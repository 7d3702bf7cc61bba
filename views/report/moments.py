"""The fabric at each moment of a run: what a reader moves through with a slider.

A drawing says which of its elements tell of which directions of links. Here is how those were over
time: for every stretch of it, and each of them, three digits: how busy (a class of the fabric's
scale), how long paused, and how much waited. A small script in the page puts them on; without it,
and on paper, the picture shows the whole run.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

from lab.results.outcome import Note
from lab.scenario.faults import fault_notes
from params.quantity import duration, number, plural, size
from views.report.chains import Chain, chains, jobs, of_message, phases, slow
from views.report.kept import KeptRun
from views.report.noted import LONG
from views.report.palette import INK
from views.report.steps import Step, steps
from views.report.suspects import dead_cables
from views.report.svg import ROOM, WIDTH, Drawing, Scale, width_of
from views.report.topology import CLASSES

_COUNT = 80  # of moments
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MAX = len(_DIGITS) - 1
_EVENT_ROWS, _EVENT_ROW, _APART = 2, 13.0, 4.0


def moments(run: KeptRun, drawing: Drawing) -> str:
    """What the page's script is to know, as JSON; nothing where nothing was noted."""
    if not run.notes or not drawing.moving:
        return ""
    count = min(_COUNT, len({note.time_ns for note in run.notes}))
    if count < 2:
        return ""
    edges = [run.end_ns * at / count for at in range(count + 1)]
    found = {name: _course(run, name, edges) for name in run.notes_of}
    longest = max((max(waits) for _, _, waits in found.values()), default=0) or 1
    idle = [0.0] * count, [0.0] * count, [0] * count

    def digits(directions: tuple[str, ...], at: int) -> str:
        courses = [found.get(name, idle) for name in directions]
        busy = max((each[0][at] for each in courses), default=0.0)
        paused = max((each[1][at] for each in courses), default=0.0)
        waits = max((each[2][at] for each in courses), default=0) / longest
        return f"{_class(busy)}{_digit(paused)}{_digit(waits)}"

    shown = {name: at for at, names in enumerate(drawing.moving) for name in names}
    marked = ", and marks on the bar are faults" if events(run) else ""
    content: dict[str, Any] = {
        "frames": [
            "".join(digits(directions, at) for directions in drawing.moving) for at in range(count)
        ],
        "said": [_said(run, found, edges, at) for at in range(count)],
        "steps": [_step(step, shown, run.end_ns, count) for step in steps(run)],
        "chains": _chains(run, shown),
        **_held_up(run, shown),
        "marks": [[round(1000 * at / run.end_ns), what] for at, what in events(run)],
        "whole": f"the whole run, {duration(run.end_ns)}; as it plays, squares are queues{marked}",
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _step(step: Step, shown: Mapping[str, int], end_ns: int, count: int) -> list[Any]:
    """Its moment, what is said, and which elements of the drawing it is about."""
    moment = min(count, 1 + int(step.at_ns / end_ns * count))
    return [moment, f"{duration(step.at_ns)}: {step.said}", _elements(step.links, shown)]


def _elements(links: Iterable[str], shown: Mapping[str, int]) -> list[int]:
    """The elements of the drawing that show some of these directions."""
    return sorted({shown[link] for link in links if link in shown})


def _held_up(run: KeptRun, shown: Mapping[str, int]) -> dict[str, list[list[Any]]]:
    """Messages that were slow, jobs, and what belongs together: what they are called, why it was
    so, and elements that this is about."""

    def entry(name: str, chain: Chain) -> list[Any]:
        return [name, chain.said, _elements(chain.links, shown)]

    messages = []
    for flow in slow(run):
        times = f"{number(flow.slowdown)} \N{MULTIPLICATION SIGN}" if flow.slowdown else "missing"
        messages.append(entry(f"{flow.src} to {flow.dst}, {times}", of_message(run, flow)))
    return {
        "slow": messages,
        "jobs": [entry(*each) for each in jobs(run).items()],
        "phases": [entry(*each) for each in phases(run)],
    }


def _chains(run: KeptRun, shown: Mapping[str, int]) -> list[list[Any]]:
    """Of directions that stood still: their names, why, and elements that show them and all that
    this is about."""
    return [
        [name, chain.said, shown[name], _elements(chain.links, shown)]
        for name, chain in chains(run).items()
        if name in shown
    ]


def events(run: KeptRun) -> list[tuple[int, str]]:
    """What was done to the fabric and what its watchdogs did, in the order of time."""
    found = [(event.at_ns, event.what) for event in fault_notes(run.result.scenario)]
    found += [
        (note.time_ns, f"watchdog: {note.link}") for note in run.pauses if note.what == "stuck"
    ]
    return sorted(each for each in found if each[0] < run.end_ns)


def _named(drawing: Drawing, run: KeptRun, time: Scale, top: float) -> list[tuple[float, str]]:
    """Names of events above a plot that begins at a height, and where each of these is in time;
    what happens within a few pixels has one name."""
    found: list[tuple[float, list[str]]] = []
    for at_ns, what in events(run):
        if not 0 < at_ns < time.high:
            continue
        x = time(at_ns)
        if found and x - found[-1][0] < _APART:
            found[-1][1].append(what)
        else:
            found.append((x, [what]))
    placed: list[tuple[float, str]] = []
    ends = [0.0] * _EVENT_ROWS
    for x, whats in found:
        said = whats[0] + (f" and {len(whats) - 1} more" if len(whats) > 1 else "")
        placed.append((x, "; ".join(dict.fromkeys(whats))))
        needs = ROOM * width_of(said)
        left = min(x + 3, WIDTH - needs)
        row = next((at for at, end in enumerate(ends) if end + 4 <= left), None)
        if row is not None:  # else the line stands for itself, and says it where a pointer rests
            ends[row] = left + needs
            y = top - 4 - row * _EVENT_ROW
            drawing.text(left, y, said, class_="tick halo")
    return placed


def room_for_events(run: KeptRun) -> float:
    """How high their names are above a plot."""
    return min(_EVENT_ROWS, len({at for at, _ in events(run) if at > 0})) * _EVENT_ROW


def draw_events(drawing: Drawing, run: KeptRun, time: Scale, top: float, bottom: float) -> None:
    """Dashed lines where something was done to the fabric or by a watchdog, and what."""
    for x, what in _named(drawing, run, time, top):
        drawing.line(x, top, x, bottom, stroke=INK, stroke_dasharray="5 3", tip=what)


def _digit(share: float) -> str:
    """A share as a digit; what is not nothing does not look like it."""
    return _DIGITS[min(_MAX, math.ceil(share * _MAX - 1e-9))] if share > 0 else "0"


def _class(busy: float) -> int:
    last = len(CLASSES) - 1
    return next((at for at, each in enumerate(CLASSES) if busy < each[0]), last)


def _course(
    run: KeptRun, name: str, edges: Sequence[float]
) -> tuple[list[float], list[float], list[int]]:
    """By stretch: how busy a direction was, what share of it it stood still, and what waited."""
    notes = run.notes_of[name]
    bytes_, paused = (
        _at(notes, edges, of, run.usual_interval_ns)
        for of in (attrgetter("bytes"), attrgetter("paused_ns"))
    )
    rate = run.rates.get(name, 0.0)  # bytes a nanosecond
    spans = [after - before for before, after in pairwise(edges)]
    busy = [(b - a) / span / rate if rate else 0.0 for a, b, span in _steps(bytes_, spans)]
    stood = [min(1.0, (b - a) / span) for a, b, span in _steps(paused, spans)]
    waits = [0] * len(spans)
    for note in notes:
        at = min(len(spans) - 1, max(0, bisect_right(edges, note.time_ns) - 1))
        waits[at] = max(waits[at], note.queue_bytes)
    return busy, stood, waits


def _steps(values: Sequence[float], spans: Sequence[float]) -> list[tuple[float, float, float]]:
    return list(zip(values, values[1:], spans, strict=False))


def _at(
    notes: Sequence[Note], edges: Sequence[float], of: Callable[[Note], int], interval: int
) -> list[float]:
    """A count at the edges: between two notes in proportion, but for what nobody noted: idle."""
    times, values = [0.0], [0.0]
    for note in notes:
        if note.time_ns - times[-1] > LONG * interval:
            times.append(note.time_ns - interval)
            values.append(values[-1])
        times.append(float(note.time_ns))
        values.append(float(of(note)))
    found = []
    for edge in edges:
        after = bisect_right(times, edge)
        if after == len(times):
            found.append(values[-1])
            continue
        before = after - 1
        share = (edge - times[before]) / (times[after] - times[before])
        found.append(values[before] + share * (values[after] - values[before]))
    return found


def _said(
    run: KeptRun,
    found: dict[str, tuple[list[float], list[float], list[int]]],
    edges: Sequence[float],
    at: int,
) -> str:
    """A stretch of time in words."""
    parts = []
    name = max(found, key=lambda each: found[each][2][at])
    waits = found[name][2][at]
    if waits:
        parts.append(f"{size(waits)} before {name}")
    still = sum(stood[at] > 0.01 for _, stood, _ in found.values())
    if still:
        parts.append(f"{plural(still, 'direction')} stood still")
    for cable, (since, until) in dead_cables(run).items():
        if since < edges[at + 1] and (until is None or until > edges[at]):
            parts.append(f"{cable} is cut")
    happened = [what for when, what in events(run) if edges[at] <= when < edges[at + 1]]
    parts += [what for what in dict.fromkeys(happened) if what.startswith("watchdog")][:2]
    return f"{duration(edges[at])} to {duration(edges[at + 1])}: {', '.join(parts) or 'no queue'}"


# Moves through the moments of the figure it stands in, and unfolds what one clicks on.
LOOKS = Path(__file__).with_name("looks.js").read_text()
SCRIPT = LOOKS + Path(__file__).with_suffix(".js").read_text()

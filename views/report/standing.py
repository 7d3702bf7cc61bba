"""Directions of links that stood still, and what led from one to the next.

A pause has two kinds of causes: what led to its beginning, and what held it on: a direction stands
still for longer while that by which its packets would go on does.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from lab.results.causes import Held
from lab.results.outcome import PauseNote
from params.data import Data
from params.quantity import summed
from views.report.kept import KeptRun, once

NEAR_NS = 2_000  # what notes may be off by
_ONE_NS = 50_000  # between two spans of one wave
_MIN_HELD = 0.05  # of a row's time: less is not told

Span = tuple[float, float]


class Row(Data):
    """A direction that stood still."""

    name: str
    spans: tuple[Span, ...]  # over the whole run
    notes: tuple[PauseNote, ...]  # one by one, as far as these were noted
    cause: str = ""  # the direction whose pause led to its first; none: its own queue did
    depth: int = 0  # how many pauses led to it, one by the other
    held_by: str = ""  # the direction whose standing still kept it longest from going on
    held: float = 0.0  # for which share of its time

    @property
    def stood_ns(self) -> float:
        """How long, in all."""
        return _length(self.spans)

    @property
    def first_ns(self) -> float:
        """When it first had to, by the frame that told it; else by what was noted later."""
        times = [note.time_ns for note in self.notes if note.what == "xoff"]
        return (
            min(times) if times else min((begin for begin, _ in self.spans), default=float("inf"))
        )


@once
def paused(run: KeptRun) -> list[Row]:
    """All directions that stood still, each below the one whose pause led to it."""
    totals = {name: notes[-1].paused_ns for name, notes in run.notes_of.items()}
    by_direction: dict[str, list[PauseNote]] = {}
    for note in run.pauses:
        if note.what != "stuck":
            by_direction.setdefault(note.link, []).append(note)
    names = {name for name, total in totals.items() if total} | by_direction.keys()
    rows = [
        Row(name, tuple(merge(_spans(run, name))), tuple(by_direction.get(name, ())))
        for name in names
    ]
    return _ordered(rows, {host.name for host in run.fabric.hosts})


def first_wave(rows: Iterable[Row]) -> list[Row]:
    """Who stood still first, and those that this led to, one by the other, before it was over."""
    until: dict[str, float] = {}
    found = []
    for row in rows:
        if not until or row.first_ns <= until.get(row.cause, -1):
            first = row.spans or noted_spans(row, float("inf"))
            until[row.name] = merge(first, _ONE_NS)[0][1]
            found.append(row)
    return found


def _ordered(rows: Iterable[Row], hosts: Container[str]) -> list[Row]:
    """Each below the pause that led to it, what came first on top."""
    by_start: dict[str, list[Row]] = {}
    for row in rows:
        by_start.setdefault(_begins(row.name), []).append(row)

    def onwards(row: Row) -> list[Row]:
        """What its packets may go on by: none turns round, and hosts pass nothing on."""
        found = by_start.get(led_to(row.name), ())
        if led_to(row.name) in hosts:
            return []
        return [each for each in found if led_to(each.name) != _begins(row.name)]

    below: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row.first_ns, row.name)):
        below.setdefault(_cause(row, onwards(row)), []).append(row)
    ordered: list[Row] = []
    waiting_ = [(row, "", 0) for row in reversed(below.get("", ()))]
    while waiting_:
        row, cause, depth = waiting_.pop()
        held, held_by = _held_on(row, onwards(row))
        placed = replace(row, cause=cause, depth=depth, held=held, held_by=held_by)
        ordered.append(placed)
        waiting_ += [(each, row.name, depth + 1) for each in reversed(below.get(row.name, ()))]
    return ordered


def _cause(row: Row, candidates: Iterable[Row]) -> str:
    """Of the directions from the switch that a row leads to, and that stood still when the row had
    to: the one that was told so last."""
    if not row.notes:
        return ""
    first_ns = row.first_ns
    earlier = [
        (begin, each.name)
        for each in candidates
        for begin, end in noted_spans(each, float("inf"))
        if begin < first_ns <= end and _stood_at(each, first_ns)
    ]
    return max(earlier)[1] if earlier else ""


def _stood_at(row: Row, time_ns: float) -> bool:
    """Whether it did, as it was noted: a pause also ends by itself, and by a watchdog."""
    near = (begin - NEAR_NS <= time_ns <= end + NEAR_NS for begin, end in row.spans)
    return any(near) or not row.spans


def _held_on(row: Row, candidates: Iterable[Row]) -> tuple[float, str]:
    """The largest share of a row's time in which one of the directions that its packets go on by
    stood still, and which that is; a little is nothing."""
    if not row.stood_ns:
        return 0.0, ""
    shares = [
        (_length(_common(row.spans, each.spans)) / row.stood_ns, each.name) for each in candidates
    ]
    return max((each for each in shares if each[0] >= _MIN_HELD), default=(0.0, ""))


def _common(ours: Sequence[Span], theirs: Sequence[Span]) -> list[Span]:
    """When both stood still; each in order of time, and apart."""
    common: list[Span] = []
    at = 0
    for begin, end in ours:
        while at < len(theirs) and theirs[at][1] <= begin:
            at += 1
        for other in islice(theirs, at, None):
            if other[0] >= end:
                break
            common.append((max(begin, other[0]), min(end, other[1])))
    return common


def _begins(direction: str) -> str:
    """Who sends in it."""
    return direction.partition(">")[0]


def led_to(direction: str) -> str:
    """Whom it leads to."""
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


def noted_spans(row: Row, end: float) -> list[Span]:
    """When it stood still, by the frames that told it to."""
    found: list[Span] = []
    since: int | None = None
    for note in row.notes:
        if note.what == "xoff" and since is None:
            since = note.time_ns
        elif note.what == "xon" and since is not None:
            found.append((since, note.time_ns))
            since = None
    return found if since is None else [*found, (since, end)]


def chain(run: KeptRun, src: str, begin_ns: float, end_ns: float) -> tuple[Held, ...]:
    """What a host's message stood still for in its time, one because of the other: its own link,
    then what held that, and so on, each with its share of the time of the one before."""
    rows = {row.name: row for row in paused(run)}
    hosts = {host.name for host in run.fabric.hosts}
    spans: Sequence[Span] = [(begin_ns, end_ns)]
    found: list[Held] = []
    here, before = src, ""
    while True:
        ways = [
            row for row in rows.values() if _begins(row.name) == here and led_to(row.name) != before
        ]
        common = [(_common(spans, row.spans), row.name) for row in ways]
        best = max(((_length(both), name, both) for both, name in common), default=None)
        if best is None or best[0] < _MIN_HELD * _length(spans):
            return tuple(found)
        stood, name, both = best
        share = min(1.0, stood / _length(spans))
        found.append(Held(link=name, stood_ns=round(stood), share=share))
        if name in {each.link for each in found[:-1]} or led_to(name) in hosts:
            return tuple(found)  # a circle, which is a deadlock; or who passes nothing on
        spans, here, before = both, led_to(name), here


def _length(spans: Iterable[Span]) -> float:
    return summed(end - begin for begin, end in spans)

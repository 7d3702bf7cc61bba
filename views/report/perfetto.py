"""A run as a trace that one can zoom and search: Chrome's trace events, which Perfetto's UI opens.

hosts     a track a host: what it computed, and below the messages it sent, each with its slowdown
pauses    a track a direction that stood still, and what told it to
queues    a counter a direction: what waited to be sent
faults    what happened by the scenario, or by hand

Times are microseconds, as the format has them, of the fabric's own time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

from lab.scenario.faults import fault_notes
from views.report.kept import KeptRun
from views.report.standing import paused

HOSTS, _PAUSES, _QUEUES, _FAULTS = 1, 2, 3, 4
_PROCESSES = {HOSTS: "hosts", _PAUSES: "pauses", _QUEUES: "queues", _FAULTS: "faults"}
_LANES = 1 << 16  # tracks that a host may have: what overlaps on one would be taken for nested

Event = dict[str, Any]
_Row = TypeVar("_Row")


def trace(run: KeptRun) -> dict[str, Any]:
    """All of it."""
    said = run.result.scenario
    about = {"scenario": said.name, "engine": run.result.engine, "seed": said.seed}
    return {
        "displayTimeUnit": "ns",
        "otherData": {key: str(value) for key, value in about.items()},
        "traceEvents": [*_names(), *hosts(run), *pauses(run), *_queues(run), *_faults(run)],
    }


def _names() -> Iterator[Event]:
    for pid, name in _PROCESSES.items():
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
        yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}


def _track(pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def _slice(pid: int, tid: int, name: str, begin_ns: float, end_ns: float, **args: Any) -> Event:
    return {
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "name": name,
        "ts": begin_ns / 1e3,
        "dur": (end_ns - begin_ns) / 1e3,
        "args": {key: value for key, value in args.items() if value not in (None, "")},
    }


def hosts(run: KeptRun) -> Iterator[Event]:
    """What each computed and sent, and the tracks of that."""
    work_of, flows_of = _by(run.work, attrgetter("host")), _by(run.flows, attrgetter("src"))
    for number, host in enumerate(map(str, run.fabric.hosts), 1):
        work = [
            (each.start_ns, each.end_ns, each.what or "work", {"step": each.step})
            for each in work_of.get(host, ())
        ]
        sent = [
            (
                flow.start_ns,
                run.end_ns if flow.fct_ns is None else flow.start_ns + flow.fct_ns,
                f"to {flow.dst}",
                {
                    "bytes": flow.bytes, "slowdown": flow.slowdown, "what": flow.what,
                    "step": flow.step, "arrived": flow.fct_ns is not None,
                },
            )
            for flow in flows_of.get(host, ())
            if flow.start_ns is not None
        ]  # fmt: skip
        tid = number * _LANES
        for kind, spans in (("computes", work), ("sends", sent)):
            count = 0
            for lane, (begin, end, name, args) in _lanes(spans):
                yield _slice(HOSTS, tid + lane, name, begin, end, **args)
                count = max(count, lane + 1)
            yield from (_track(HOSTS, tid + lane, f"{host} {kind}") for lane in range(count))
            tid += count


def _by(rows: Iterable[_Row], key: Callable[[_Row], str]) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


_Span = tuple[int, int, str, dict[str, Any]]


def _lanes(spans: Iterable[_Span]) -> Iterator[tuple[int, _Span]]:
    """Each on the first track that is free, as few as there may be."""
    free: list[int] = []
    for span in sorted(spans, key=lambda each: each[:2]):
        lane = next((at for at, until in enumerate(free) if until <= span[0]), len(free))
        if lane == len(free):
            free.append(0)
        free[lane] = span[1]
        yield lane, span


def pauses(run: KeptRun) -> Iterator[Event]:
    """Which directions stood still, and the tracks of that."""
    for tid, row in enumerate(paused(run), 1):
        yield _track(_PAUSES, tid, row.name)
        for begin, end in row.spans:
            held = f"{row.held:.0%}" if row.held_by else None
            yield _slice(
                *(_PAUSES, tid, "stands still", begin, end),
                led_by=row.cause, held_on_by=row.held_by, held_for=held,
            )  # fmt: skip
        for note in row.notes:
            sign = {"ph": "i", "s": "t", "pid": _PAUSES, "tid": tid, "ts": note.time_ns / 1e3}
            yield sign | {"name": f"{note.what.upper()} class {note.priority}"}


def _queues(run: KeptRun) -> Iterator[Event]:
    for name, notes in run.notes_of.items():
        before = 0
        for at, note in enumerate(notes):
            if note.queue_bytes != before or at == len(notes) - 1:
                counted = {"ph": "C", "pid": _QUEUES, "name": name, "ts": note.time_ns / 1e3}
                yield counted | {"args": {"bytes": note.queue_bytes}}
            before = note.queue_bytes


def _faults(run: KeptRun) -> Iterator[Event]:
    happened = [(event.at_ns, event.what) for event in fault_notes(run.result.scenario)]
    happened += [(hand.at_ns, f"by hand: {hand.what}") for hand in run.result.by_hand or ()]
    for at_ns, what in sorted(happened):
        if at_ns <= run.end_ns:
            yield {
                "ph": "i", "s": "g", "pid": _FAULTS, "tid": 1, "name": what, "ts": at_ns / 1e3
            }  # fmt: skip

"""The files that a run is kept in.

``result.json`` holds the figures (times in fabric nanoseconds; what does not apply is absent),
``flows.csv`` one line a message, ``work.csv`` what hosts computed and when, ``timeseries.csv`` what
links carried, how long their queues were and what held them up over time, ``buffers.csv`` what
switches held, ``pauses.csv`` the first pauses one by one, and ``ways.csv`` when connections left
ways and came back to them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from lab.results.alone import Alone
from lab.results.outcome import Note, Outcome, PauseNote, Stock, WayNote
from lab.results.result import RESULT, Result
from lab.scenario.experiment import Experiment
from traffic.collectives import NEVER


def save(result: Result, experiment: Experiment, outcome: Outcome, out: Path) -> None:
    """Write the files of a run: the result last, and at once, so none is without the others."""
    is_kept = experiment.scenario.measures.flows
    _write_csv(
        out / "flows.csv",
        ("src", "dst", "bytes", "complete", "start_ns", "fct_ns", "slowdown", "step", "what"),
        map(_with_completeness, flow_rows(experiment, outcome)) if is_kept else None,
    )
    _write_csv(
        out / "work.csv",
        ("host", "start_ns", "end_ns", "step", "what"),
        tuple(work_rows(experiment, outcome)) or None if is_kept else None,
    )
    _write_csv(out / "timeseries.csv", Note._fields, outcome.notes or None)
    _write_csv(out / "buffers.csv", Stock._fields, outcome.stocks or None)
    _write_csv(out / "pauses.csv", PauseNote._fields, outcome.pauses or None)
    _write_csv(out / "ways.csv", WayNote._fields, outcome.ways or None)
    beside = out / f"{RESULT}.part"
    try:
        beside.write_text(json.dumps(result.content(), indent=2) + "\n")
        beside.replace(out / RESULT)
    finally:
        beside.unlink(missing_ok=True)


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]] | None) -> None:
    """Write a table; without rows see to it that there is none, of an earlier run either."""
    if rows is None:
        path.unlink(missing_ok=True)
        return
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def flow_rows(
    experiment: Experiment, outcome: Outcome
) -> Iterator[tuple[str, str, int, int | None, int | None, float | None, int, str]]:
    """Of every message: from, to, bytes, when it began, how long it took and how many times as long
    as alone, if it did and was whole; step and activity."""
    schedule, timeline = experiment.schedule, outcome.timeline
    hosts = experiment.fabric.hosts
    alone = Alone(experiment)
    for number in schedule.messages():
        src, dst = hosts[schedule.src[number]], hosts[schedule.dst[number]]
        start, end = timeline.start_ns[number], timeline.end_ns[number]
        is_whole = NEVER not in (start, end)
        slowdown = (end - start) / alone.takes_ns(number) if is_whole else None
        yield (
            src.name,
            dst.name,
            schedule.size[number],
            start if start != NEVER else None,
            end - start if is_whole else None,
            None if slowdown is None else round(slowdown, 3),
            *_purpose(experiment, outcome, number),
        )


def _with_completeness(row: Sequence[object]) -> Sequence[object]:
    src, dst, size, start_ns, fct_ns, *rest = row
    return src, dst, size, int(fct_ns is not None), start_ns, fct_ns, *rest


def work_rows(experiment: Experiment, outcome: Outcome) -> Iterator[tuple[str, int, int, int, str]]:
    """What hosts did for themselves, where it took time."""
    schedule, timeline = experiment.schedule, outcome.timeline
    for number, (src, dst) in enumerate(zip(schedule.src, schedule.dst, strict=True)):
        start, end = timeline.start_ns[number], timeline.end_ns[number]
        is_wait = schedule.activities[schedule.activity[number]].kind == "wait"
        if src == dst and schedule.delay_ns[number] and not is_wait and NEVER not in (start, end):
            host = experiment.fabric.hosts[src]
            yield host.name, start, end, *_purpose(experiment, outcome, number)


def _purpose(experiment: Experiment, outcome: Outcome, number: int) -> tuple[int, str]:
    """The step and the activity a transfer belongs to."""
    schedule = experiment.schedule
    activity = schedule.activities[schedule.activity[number]]
    left_out = sum(cut.left_out_before(activity.job, activity.step) for cut in outcome.cuts)
    times = outcome.sampled.times if outcome.sampled else 1
    return activity.step * times + left_out, activity.name

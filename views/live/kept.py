"""A run that was kept, as snapshots: what was noted of it, in the order in which it happened."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from lab.results.outcome import Note
from lab.results.snapshot import Happening, Looker, Message, Messages, Snapshot
from lab.scenario.faults import dead_at, fault_notes, reroutes
from views.live.hub import Frame, Scene, recorded
from views.report.kept import KeptFlow, KeptRun
from views.report.steps import steps

_MAX_MESSAGES = 64


def snapshots(run: KeptRun, every_ns: int = 1, most: int = 0) -> Iterator[Snapshot]:
    """A snapshot whenever something was noted, but not sooner than so much after the one before,
    and not many more than so many in all, evenly."""
    stride = -(-len({note.time_ns for note in run.notes}) // most) if most else 1
    looker = Looker(rates(run))
    messages = _Course(run.flows)
    events = _events(run)
    latest: dict[str, Note] = {}
    at_ns = 0
    by_time = groupby(run.notes, key=lambda note: note.time_ns)
    for number, (time_ns, notes) in enumerate(by_time, 1):
        latest |= {note.link: note for note in notes}
        if time_ns < at_ns + every_ns or number % stride:
            continue
        now = (n if n.time_ns == time_ns else n._replace(queue_bytes=0) for n in latest.values())
        seen = [e for e in events if at_ns < e.time_ns <= time_ns or (at_ns == e.time_ns == 0)]
        dead = dead_at(run.result.scenario, run.fabric, time_ns)
        yield looker.look(time_ns, now, messages.at(time_ns), seen, dead)
        latest, at_ns = {}, time_ns
    end_ns = max(run.end_ns, at_ns)
    seen = [event for event in events if at_ns < event.time_ns]
    dead = dead_at(run.result.scenario, run.fabric, end_ns)
    yield looker.look(end_ns, latest.values(), messages.at(end_ns), seen, dead, is_last=True)


def scene_of(run: KeptRun) -> Scene:
    """What stands still in it, with what happened step by step."""
    result = run.result
    return Scene(
        result.scenario, run.fabric, rates(run), result.engine, is_replay=True, steps=steps(run)
    )


def film(run: KeptRun, most: int) -> dict[str, Any]:
    """A run as the page takes it: what stands still, and about so many snapshots at the most."""
    hub = recorded(scene_of(run), snapshots(run, most=most))
    frames = []
    before: Frame | None = None
    for frame in hub.since(0):
        frames.append(frame.since(before))
        before = frame
    return {"scene": hub.scene.content(hub.hands, hub.room), "frames": frames}


def rates(run: KeptRun) -> dict[str, float]:
    """By direction: bytes a nanosecond, as far as what it carried tells."""
    return {name: run.rates.get(name, 0.0) for link in run.fabric.links for name in link.directions}


def _events(run: KeptRun) -> list[Happening]:
    scenario = run.result.scenario
    found = [
        Happening(*event) for event in (*fault_notes(scenario), *reroutes(scenario, run.fabric))
    ]
    found += [
        Happening(note.time_ns, "watchdog", f"watchdog: {note.link}", note.link)
        for note in run.pauses
        if note.what == "stuck"
    ]
    by_hand = run.result.by_hand or ()
    found += [Happening(hand.at_ns, "hand", hand.what) for hand in by_hand]
    return sorted((e for e in found if e.time_ns <= run.end_ns), key=lambda e: e.time_ns)


class _Course:
    """How far messages were as time went by."""

    def __init__(self, flows: tuple[KeptFlow, ...]) -> None:
        self._begun = sorted(
            (flow for flow in flows if flow.start_ns is not None), key=lambda f: f.start_ns or 0
        )
        self._starts = [flow.start_ns or 0 for flow in self._begun]
        self._ends = sorted(
            (f.start_ns or 0) + f.fct_ns for f in self._begun if f.fct_ns is not None
        )
        self._count = len(flows)
        self._open: list[KeptFlow] = []
        self._taken = 0  # of those that began

    def at(self, now_ns: int) -> Messages:
        """At a time, not before the one asked for last."""
        if not self._count:
            return Messages()
        begun = bisect_right(self._starts, now_ns)
        self._open = [
            flow
            for flow in (*self._open, *self._begun[self._taken : begun])
            if flow.fct_ns is None or (flow.start_ns or 0) + flow.fct_ns > now_ns
        ]
        self._taken = begun
        under_way = (
            Message(flow.src, flow.dst, flow.bytes, flow.start_ns or 0, flow.what)
            for flow in self._open[:_MAX_MESSAGES]
        )
        return Messages(self._count, bisect_right(self._ends, now_ns), tuple(under_way))

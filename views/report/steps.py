"""A run told step by step: a few moments of it, what happened then, and which links that is about.

    what begins it ─► who is full and pauses whom ─► who that stops in turn ─► who suffers
                   ─► a deadlock, losses ─► what ends it ─► what comes after ─► the last message

Found in what was noted, for any run; a step that did not happen is not told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lab.scenario.faults import EventNote, fault_notes
from params.data import Data
from params.quantity import duration, listed, number, plural, size
from views.report.kept import KeptFlow, KeptRun
from views.report.reasons import REASONS
from views.report.standing import NEAR_NS, Row, first_wave, led_to, paused
from views.report.suspects import UNEVEN, storming, straggler, victims, waiting

_MAX = 8
_MAX_NAMED = 3
_MAX_DEPTHS = 2  # of pauses that led to others
_AGAIN = 0.3  # of the directions that stood still before: as many after it is over are a wave
_QUEUED = 4096  # bytes, from which on a queue is worth a step


class Step(Data):
    """A moment."""

    at_ns: float
    said: str
    links: tuple[str, ...] = ()  # directions that it is about


def steps(run: KeptRun) -> list[Step]:
    """In the order of time; of too many those go that are told last of their kind."""
    rows = paused(run)
    found = [*_begins(run), *_ends(run), *_in_network(run), *_late(run)]
    found += [
        *_climb(run, first_wave(rows)),
        *_suffer(run, rows),
        *_stuck(run, rows),
        *_again(run, rows),
    ]
    found += [*_losses(run), *_queue(run, rows)]
    return sorted(found[:_MAX], key=lambda step: step.at_ns)


def _begins(run: KeptRun) -> Iterator[Step]:
    begun = [flow for flow in run.flows if flow.start_ns is not None]
    if begun:
        first = min(flow.start_ns or 0 for flow in begun)
        at_once = [flow for flow in begun if flow.start_ns == first]
        to = sorted({flow.dst for flow in at_once}, key=run.fabric.node)
        senders = sorted({flow.src for flow in at_once}, key=run.fabric.node)
        whom = f"{to[0]}" if len(to) == 1 else plural(len(to), "other")
        begin = "begins" if len(senders) == 1 else "begin"
        said = f"{_named(senders, 'host')} {begin} to write to {whom}."
        yield Step(first, said, _links_of(run, senders))
    for event in fault_notes(run.result.scenario):
        if 0 < event.at_ns < run.end_ns:
            yield _happens(run, event)


def _happens(run: KeptRun, event: EventNote) -> Step:
    what, is_over = event.what.removesuffix(" over"), event.what.endswith(" over")
    own = (link for link in run.fabric.links if link.name == event.link)
    links = tuple(way for link in own for way in link.directions)
    if event.kind == "storm":
        host = what.split()[0]
        links = tuple(_links_to(run, host))
        said = (
            f"{host}'s storm is over."
            if is_over
            else f"{host}'s adapter breaks: it pauses its leaf without need, again and again."
        )
    else:
        said = f"{what}{' is over' if is_over else ''}."
    return Step(event.at_ns, said, links)


def _in_network(run: KeptRun) -> Iterator[Step]:
    """A collective that switches carry out: nobody in it writes to anybody."""
    found, what = run.result.inc, run.result.collective
    if found is None or what is None or run.flows:
        return
    hosts = {*run.fabric.hosts}
    own = [link for link in run.fabric.links if link.a in hosts]
    ups, downs = (tuple(link.up for link in own), tuple(link.down for link in own))
    yield Step(0, f"Hosts begin to send their parts of the {what.op}; switches add them up.", ups)
    if not found.without_result:
        took = duration(run.end_ns)
        yield Step(run.end_ns, f"All have the result of the {what.op}: it took {took}.", downs)


def _late(run: KeptRun) -> Iterator[Step]:
    """Everybody is through with his own work but for one."""
    late = straggler(run)
    if late is None:
        return
    host, times = late
    at = min((each.end_ns for each in run.work if each.host == host), default=0)
    others = [each.end_ns for each in run.work if each.host != host and each.end_ns < at]
    if others:
        said = f"{host} still computes, {number(times)} times as long as a typical host."
        yield Step(max(others), said, _links_of(run, [host]))


def _links_of(run: KeptRun, hosts: Collection[str]) -> tuple[str, ...]:
    names = {*hosts}
    return tuple(link.up for link in run.fabric.links if str(link.a) in names)


def _links_to(run: KeptRun, host: str) -> Iterator[str]:
    return (link.down for link in run.fabric.links if str(link.a) == host)


def _climb(run: KeptRun, rows: list[Row]) -> Iterator[Step]:
    """The first that were told to stand still, and those that were because these did."""
    timed = [row for row in rows if row.first_ns < float("inf")]
    of_name = {row.name: row for row in timed}
    by_depth: dict[int, list[Row]] = {}
    for row in timed:
        by_depth.setdefault(row.depth, []).append(row)
    for depth, group in sorted(by_depth.items())[: _MAX_DEPTHS + 1]:
        if not depth:
            yield from _first(run, group)
            continue
        causes = list(dict.fromkeys(row.cause for row in group if row.cause in of_name))
        begins = sorted({row.name.partition(">")[0] for row in group})
        have = "has" if len(begins) == 1 else "have"
        yield Step(
            min(row.first_ns for row in group),
            f"As {_named(causes, 'direction')} {_does(causes)}, what is for there fills the switch "
            f"before: {_named(begins, 'sender')} {have} to stand still, too.",
            tuple(row.name for row in group),
        )


def _first(run: KeptRun, group: list[Row]) -> Iterator[Step]:
    first = min(group, key=lambda row: row.first_ns)
    sender, full = first.name.partition(">")[0], led_to(first.name)
    others = "" if len(group) == 1 else f", and so with {plural(len(group) - 1, 'other')}"
    if full in storming(run):
        return  # which says so itself
    is_host = run.fabric.node(full) in run.fabric.hosts
    why = f"{full} takes no more" if is_host else f"{full} is full"
    links = tuple(row.name for row in group if row.first_ns <= first.first_ns + NEAR_NS)
    yield Step(first.first_ns, f"{why}: {sender} has to stand still before it{others}.", links)


def _does(names: list[str]) -> str:
    return "stands still" if len(names) == 1 else "stand still"


def _suffer(run: KeptRun, rows: list[Row]) -> Iterator[Step]:
    suffering = victims(run)
    if not suffering:
        return
    worst = suffering[0]
    own = [row for row in rows if row.name.partition(">")[0] == worst.src]
    if own:
        at = min(row.first_ns for row in own)
        said = (
            f"{worst.src} writes to {worst.dst} and has to stand still, though its way has room: "
            "it is the victim."
        )
        yield Step(at, said, tuple(row.name for row in own))


def _stuck(run: KeptRun, rows: list[Row]) -> Iterator[Step]:
    circle = waiting(run)
    if circle:
        spans = [row.spans for row in rows if row.name in circle and row.spans]
        at = max((each[0][0] for each in spans), default=0.0)
        said = f"{_named(sorted(circle), 'direction')} wait for one another: a deadlock."
        yield Step(at, said, tuple(sorted(circle)))
    stuck = [note for note in run.pauses if note.what == "stuck"]
    if stuck:
        first = min(note.time_ns for note in stuck)
        links = tuple(dict.fromkeys(note.link for note in stuck if note.time_ns == first))
        yield Step(
            first, f"The watchdog gives up what waits for {_named(list(links), 'link')}.", links
        )


def _queue(run: KeptRun, rows: list[Row]) -> Iterator[Step]:
    """The longest queue, where nobody was paused."""
    most = max(run.notes, key=lambda note: note.queue_bytes, default=None)
    if rows or most is None or most.queue_bytes < _QUEUED:
        return
    yield Step(most.time_ns, f"{size(most.queue_bytes)} wait for {most.link}.", (most.link,))


def _again(run: KeptRun, rows: list[Row]) -> Iterator[Step]:
    """A second wave: what had to wait goes on all at once."""
    overs = [e.at_ns for e in fault_notes(run.result.scenario) if e.what.endswith(" over")]
    over = max((at for at in overs if at < run.end_ns), default=None)
    if over is None:
        return
    again = {
        row.name: min(begin for begin, _ in row.spans if begin > over)
        for row in rows
        if any(begin > over for begin, _ in row.spans)
    }
    if len(again) >= _AGAIN * len(rows) and again:
        first = sorted(again.values())
        at = first[len(first) // 2]
        said = (
            "What had to wait goes on all at once, and meets before the same ports: "
            f"{plural(len(again), 'direction')} had to stand still once more."
        )
        yield Step(at, said, tuple(again))


def _losses(run: KeptRun) -> Iterator[Step]:
    first = min(
        (note for note in run.notes if note.dropped), key=lambda note: note.time_ns, default=None
    )
    lost = {why: n for why, n in run.result.drops.by_reason.items() if n}
    if first is not None and lost:
        main = max(lost, key=lambda why: lost[why])
        switch = first.link.partition(">")[0]
        said = f"{switch} drops the first packet ({REASONS.get(main, main)})."
        yield Step(first.time_ns, said, (first.link,))


def _ends(run: KeptRun) -> Iterator[Step]:
    """The message that was slowed most; where none was, the last."""
    arrived = [flow for flow in run.flows if flow.fct_ns is not None]
    if not arrived:
        return

    def end(flow: KeptFlow) -> int:
        return (flow.start_ns or 0) + (flow.fct_ns or 0)

    worst = max(arrived, key=lambda flow: flow.slowdown or 0.0)
    is_slow = (worst.slowdown or 0.0) >= UNEVEN
    if not is_slow:
        worst = max(arrived, key=end)
    slow = f", {number(worst.slowdown or 0)} times as long as alone" if is_slow else ""
    which = "The message slowed most" if is_slow else "The last message"
    missing = len(run.flows) - len(arrived)
    others = f"; {plural(missing, 'message')} did not arrive" if missing else ""
    took = duration(worst.fct_ns or 0)
    said = f"{which}, from {worst.src} to {worst.dst}, is there: it took {took}{slow}{others}."
    yield Step(end(worst), said, tuple(_links_to(run, worst.dst)))


def _named(names: list[str], noun: str) -> str:
    """A few by name, many by number."""
    if len(names) > _MAX_NAMED:
        return plural(len(names), noun)
    return listed(names)

"""Who suffers in a run and from whom, as far as its figures prove it.

dead cable   a fault took it down: what goes another way then is no unevenness
straggler    a host whose own work took longer than that of half of the others
victim       a message alone at both of its ends, on ways with room, behind a paused sender
congested    a port that sent all it could while its queue was long: where others' waiting begins
storming     a host that sends pause frames because it is broken, as the scenario asks
circle       directions that stood still at once, each waiting for the next (a deadlock)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from lab.results.causes import LATER
from lab.scenario.faults import cut_links
from topologies import Link
from views.report.kept import KeptFlow, KeptRun, once

if TYPE_CHECKING:
    import networkx as nx

HARDLY = 1.1  # times as long as alone, up to which nobody suffers
LATE = 2.0  # times as long as alone, which no delay of a cable explains
MANY = 3  # senders of one receiver; messages; times as many packets
UNEVEN = 1.25  # times its even share, from which on a way is overloaded; times as long as alone
_NEARLY = 0.85  # as long as the one that works longest
_SLOWED = 1.5  # times as long as alone, from which on a message is a victim
_ROOM = 0.8  # busy: a link below it had room
_PAUSED = 0.05  # of the run
_MAX_VICTIMS = 64
QUEUED = 8  # packets of the largest size, from which on a queue is one
_LONG = 1 / 3  # of the longest queue
_ALIKE = 0.75  # as busy as the busiest of ports with long queues
_MAX_CONGESTED = 4  # where more are alike, none of them is to blame
_STILL = 0.9  # of the time between two notes: a direction that did nothing else
_LASTING = 3  # notes for which a circle lasts that is none by chance


def dead_cables(run: KeptRun) -> dict[str, tuple[int, int | None]]:
    """Links that faults took down: from when on, and until when."""
    found: dict[str, tuple[int, int | None]] = {}
    for fault in sorted(run.result.scenario.faults, key=lambda fault: fault.at_ns):
        for link in (link.name for link in cut_links(fault, run.fabric)):
            if fault.action == "down":
                found[link] = fault.at_ns, fault.at_ns + fault.for_ns if fault.for_ns else None
            elif link in found:
                found[link] = found[link][0], fault.at_ns
    return found


def straggler(run: KeptRun) -> tuple[str, float] | None:
    """The host that worked longest, and how many times as long as half of them did."""
    return next(iter(stragglers(run)), None)


@once
def stragglers(run: KeptRun) -> list[tuple[str, float]]:
    """The same of all that worked nearly as long as that one."""
    if run.result.inference:  # whose hosts do work of different kinds
        return []
    worked = Counter[str]()
    for work in run.work:
        worked[work.host] += work.end_ns - work.start_ns
    usual = median(worked.values()) if worked else 0
    if len(worked) < 3 or not usual:
        return []
    found = [(host, spent / usual) for host, spent in worked.most_common()]
    return [each for each in found if each[1] >= max(LATER, _NEARLY * found[0][1])]


@once
def victims(run: KeptRun) -> list[KeptFlow]:
    """Messages that pauses for others held up, the worst first."""
    result = run.result
    if not result.pfc.xoff_frames or result.drops.total or result.flows.failed or dead_cables(run):
        return []  # what was lost or cut explains enough
    senders = Counter(flow.src for flow in run.flows)
    receivers = Counter(flow.dst for flow in run.flows)
    alone = (
        flow
        for flow in run.flows
        if senders[flow.src] == receivers[flow.dst] == 1 and (flow.slowdown or 0) >= _SLOWED
    )
    worst = sorted(alone, key=lambda flow: (-(flow.slowdown or 0), flow.src))[:_MAX_VICTIMS]
    return [flow for flow in worst if _was_paused(run, flow) and _had_room(run, flow)]


def aggressors(run: KeptRun) -> list[KeptFlow]:
    """Messages that victims waited for: those to the host that most write to at once."""
    suffering = victims(run)
    if not suffering:
        return []
    receivers = Counter(flow.dst for flow in run.flows)
    most, count = receivers.most_common(1)[0]
    return [flow for flow in run.flows if flow.dst == most] if count > 1 else []


def storming(run: KeptRun) -> list[str]:
    """Hosts that sent pause frames without need."""
    faults = run.result.scenario.faults
    found = (f.host for f in faults if f.action == "storm" and f.host and f.at_ns < run.end_ns)
    return sorted(set(found), key=run.fabric.node)


def congested(run: KeptRun) -> list[str]:
    """The directions of links whose ports had more to send than they could, the longest queue
    first: no pause held them, and yet their queues were long."""
    slow = run.result.flows.slowdown
    if (slow and slow.max < UNEVEN) or storming(run) or circle(run):
        return []  # nobody waited to speak of, or these explain every queue
    links = run.result.links
    longest = max((use.max_queue_bytes or 0 for use in links), default=0)
    least = max(_LONG * longest, QUEUED * run.result.scenario.link.mtu)
    free = [
        use
        for use in links
        if (use.max_queue_bytes or 0) >= least and run.stood(use.name) < _PAUSED
    ]
    most = max((use.bytes for use in free), default=0)
    found = [use for use in free if use.bytes >= _ALIKE * most]
    if len(found) > _MAX_CONGESTED:
        return []
    return [
        use.name for use in sorted(found, key=lambda use: (-(use.max_queue_bytes or 0), use.name))
    ]


def _was_paused(run: KeptRun, flow: KeptFlow) -> bool:
    """Whether its sender, or what leads up from there, stood still for long."""
    host = run.fabric.node(flow.src)
    leaf = run.fabric.leaf_of(host)
    ways = [link.up for link in run.fabric.links if link.a in (host, leaf)]
    paused = (run.result.pfc.by_link.get(name) for name in ways)
    return any(pause and pause.paused_ns / run.end_ns >= _PAUSED for pause in paused)


def _had_room(run: KeptRun, flow: KeptFlow) -> bool:
    """Whether no link that it may have taken up from its leaf or down to the other was full."""
    fabric = run.fabric
    source, sink = (fabric.leaf_of(fabric.node(end)) for end in (flow.src, flow.dst))
    used = {use.name: use.utilisation for use in run.result.links}
    ways = [link.up for link in fabric.links if link.a == source]
    ways += [link.down for link in fabric.links if link.a == sink]
    return source != sink and all((used[way] or 0) < _ROOM for way in ways)


@once
def circle(run: KeptRun) -> list[str]:
    """Switches that waited for one another in a circle, where something was given up or is stuck;
    the first of them again at the end."""
    if not run.result.pfc.storms and not run.result.flows.failed:
        return []
    waits: dict[int, list[tuple[str, str]]] = {}  # by moment: who waits for whom
    for link in run.fabric.links:
        if not link.joins_switches:
            continue
        for sender, to in ((link.a, link.b), (link.b, link.a)):
            for before, after in pairwise(run.notes_of.get(link.direction(sender), ())):
                if after.paused_ns - before.paused_ns >= _STILL * (after.time_ns - before.time_ns):
                    waits.setdefault(after.time_ns, []).append((str(sender), str(to)))
    found = Counter(_cycle(frozenset(edges)) for edges in waits.values())
    del found[()]
    if not found:
        return []
    switches, moments = found.most_common(1)[0]
    return [*switches, switches[0]] if moments >= _LASTING else []


def waiting(run: KeptRun) -> set[str]:
    """The directions of a deadlock's circle."""
    ring = [run.fabric.node(name) for name in circle(run)]
    return {run.fabric.links_between(one, other)[0].direction(one) for one, other in pairwise(ring)}


@lru_cache
def _cycle(edges: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    """A way that comes back to where it began, if these have one; no packet turns round in it."""
    import networkx as nx

    waits: nx.DiGraph[tuple[str, str]] = nx.DiGraph(
        (edge, then)
        for edge in sorted(edges)
        for then in sorted(edges)
        if edge[1] == then[0] and edge[0] != then[1]
    )
    try:
        found = [direction[0] for direction, _ in nx.find_cycle(waits)]
    except nx.NetworkXNoCycle:
        return ()
    first = found.index(min(found))
    return (*found[first:], *found[:first])


def living(run: KeptRun, links: Iterable[Link]) -> list[Link]:
    """Those of links that were not dead throughout."""
    dead = dead_cables(run)
    return [link for link in links if dead.get(link.name, (1, None)) != (0, None)]


def ways(run: KeptRun, flow: KeptFlow) -> set[str]:
    """The directions of links on a message's shortest ways."""
    fabric = run.fabric
    src, dst = fabric.node(flow.src), fabric.node(flow.dst)
    there = fabric.far_from(src)
    found: set[str] = set()
    edge = {dst}
    while edge != {src}:
        before = {
            (one, end) for end in edge for one in fabric.neighbours(end) if there[one] < there[end]
        }
        found |= {
            link.direction(one) for one, end in before for link in fabric.links_between(one, end)
        }
        edge = {one for one, _ in before}
    return found

"""Why a direction stood still, or a message was slow, followed to where it began: what a reader is
told who clicks on it.

h7>leaf4 ──because of──► leaf4>spine1 ──► spine1>leaf1 ──► what leaf1 could not pass on
it held up: what stands before it

A message is held up by what stood still on its way while it was under way, else by whoever waited
there longest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.results.cluster import JobOfCluster
from params.data import Data
from params.quantity import duration, listed, number, percent, plural, size
from views.report.kept import KeptFlow, KeptRun, once
from views.report.standing import Row, chain, led_to, paused
from views.report.suspects import HARDLY, storming, ways

_MAX_NAMED = 4
_MAX_MESSAGES = 48  # the slowest
_MAX_PHASES = 32  # the first
_MAX_JOBS = 64  # those that the fabric slowed most


class Chain(Data):
    """Of one direction: what is said, and the directions that it is about."""

    said: str
    links: tuple[str, ...]


def chains(run: KeptRun) -> dict[str, Chain]:
    """By direction that stood still."""
    rows = {row.name: row for row in paused(run)}
    ways = {name: _followed(rows, name) for name in rows}
    before: dict[str, list[str]] = {name: [] for name in rows}  # whom each held up
    for name, way in ways.items():
        for each in dict.fromkeys(way[1:]):
            before[each].append(name)
    fullest = _fullest(run)
    return {name: _chain(run, rows[name], ways[name], before[name], fullest) for name in rows}


@once
def slow(run: KeptRun) -> list[KeptFlow]:
    """The messages that took longer than they would alone, the slowest first; before them those
    that did not arrive."""
    missing = [flow for flow in run.flows if flow.start_ns is not None and flow.fct_ns is None]
    late = [flow for flow in run.flows if (flow.slowdown or 0.0) >= HARDLY]
    late.sort(key=lambda flow: -(flow.slowdown or 0.0))
    return [*missing, *late][:_MAX_MESSAGES]


def phases(run: KeptRun) -> list[tuple[str, Chain]]:
    """What belongs together, such as the all-reduce of a step, and the message that it ended with:
    whoever waits for all of it waits for that one."""
    together: dict[tuple[str, int], list[KeptFlow]] = {}
    for flow in run.flows:
        if flow.start_ns is not None and flow.fct_ns is not None:
            together.setdefault((flow.what, flow.step), []).append(flow)
    if len(together) < 2:
        return []
    found = []
    for (what, step), flows in [*together.items()][:_MAX_PHASES]:
        begin = min(flow.start_ns or 0 for flow in flows)
        last = max(flows, key=lambda flow: (_end_ns(flow), flow.slowdown or 0.0))
        lasted = _end_ns(last) - begin
        name = f"{what}, step {step}"
        chain = of_message(run, last)
        said = f"{name}, lasted {duration(lasted)}, and its last message was this: {chain.said}"
        found.append((name, Chain(f"{said[0].upper()}{said[1:]}", chain.links)))
    return found


@once
def jobs(run: KeptRun) -> dict[str, Chain]:
    """By a cluster's job: how long it waited for hosts and for whom, and its slowest message."""
    found = run.result.cluster
    if found is None:
        return {}
    names = dict.fromkeys([found.longest_queued.name, *(job.name for job in found.slowest)])
    by_name = {job.name: job for job in found.jobs}
    return {name: _job(run, by_name[name]) for name in [*names][:_MAX_JOBS]}


def _job(run: KeptRun, job: JobOfCluster) -> Chain:
    said = job.name
    if job.queued_ns and run.result.cluster:
        freed = run.result.cluster.freed_for(job)
        said += f" waited {duration(job.queued_ns)} for hosts"
        said += f", until {freed} freed its own, and" if freed else " and"
    if job.slowdown:
        said += f" took {number(job.slowdown)} times as long as alone"
    else:
        said += " did not come to its end"
    own = [
        flow
        for hosts, begin, over in job.pieces
        for flow in run.flows
        if flow.slowdown and flow.src in hosts and begin <= (flow.start_ns or 0) < over
    ]
    slowest = max(own, key=lambda flow: flow.slowdown or 0, default=None)
    if slowest is None or (slowest.slowdown or 0) < HARDLY:
        return Chain(f"{said}; the fabric slowed none of its messages.", ())
    chain = of_message(run, slowest)
    return Chain(f"{said}. Its slowest message was this: {chain.said}", chain.links)


def _end_ns(flow: KeptFlow) -> int:
    return (flow.start_ns or 0) + (flow.fct_ns or 0)


def of_message(run: KeptRun, flow: KeptFlow) -> Chain:
    """What held a message up."""
    begin = flow.start_ns or 0
    end = run.end_ns if flow.fct_ns is None else begin + flow.fct_ns
    held = chain(run, flow.src, begin, end)
    if held:
        first, *others = held
        way = [each.link for each in held]
        said = f"{first.link} stood still for {duration(first.stood_ns)} of that"
        said += "".join(f", {percent(each.share)} of it because {each.link} did" for each in others)
        said += _root(run, way, _fullest(run))
    else:
        said, way = _waited(run, flow, begin, end)
    ends = [
        link.up if str(link.a) == flow.src else link.down
        for link in run.fabric.links
        if str(link.a) in (flow.src, flow.dst)
    ]
    return Chain(
        f"{_took(flow)}. {said}.{_others(run, flow, begin, end)}",
        tuple(dict.fromkeys((*way, *ends))),
    )


def _took(flow: KeptFlow) -> str:
    whose = f"{flow.src}'s message to {flow.dst}"
    if flow.fct_ns is None:
        return f"{whose} did not arrive"
    times = number(flow.slowdown or 0)
    as_long = "as long" if times in ("0", "1") else f"{times} times as long"
    return f"{whose} took {duration(flow.fct_ns)}, {as_long} as alone"


def _waited(run: KeptRun, flow: KeptFlow, begin: int, end: int) -> tuple[str, list[str]]:
    """The longest queue on its way in its time, where nothing stood still for it."""
    found = [
        (note.queue_bytes, name)
        for name in sorted(ways(run, flow))
        for note in run.notes_of.get(name, ())
        if begin <= note.time_ns <= end
    ]
    longest, name = max(found, default=(0, ""))
    if not longest:
        return "Nothing stood still on its way, and no queue was seen there", []
    return f"Nothing stood still for it, but up to {size(longest)} waited before {name}", [name]


def _others(run: KeptRun, flow: KeptFlow, begin: int, end: int) -> str:
    """How many went to the same host meanwhile, or came from the same."""
    beside = [
        each
        for each in run.flows
        if each is not flow
        and each.start_ns is not None
        and each.start_ns < end
        and (each.fct_ns is None or each.start_ns + each.fct_ns > begin)
    ]
    to = sum(each.dst == flow.dst for each in beside)
    own = sum(each.src == flow.src for each in beside)
    if to:
        return f" Meanwhile {plural(to, 'other message')} went to {flow.dst}."
    return f" Meanwhile {flow.src} sent {plural(own, 'other message')}." if own else ""


@once
def _fullest(run: KeptRun) -> dict[str, tuple[int, str]]:
    """By node: the longest queue before any of its links, and before which."""
    found: dict[str, tuple[int, str]] = {}
    for use in run.result.links:
        node = use.name.partition(">")[0]
        found[node] = max(found.get(node, (0, "")), (use.max_queue_bytes or 0, use.name))
    return found


def _next(row: Row) -> str:
    """What it stood still because of: what held it on longest, else what led to its first."""
    return row.held_by or row.cause


def _followed(rows: Mapping[str, Row], name: str) -> tuple[str, ...]:
    """From a direction to its root; one that comes again ends it: a circle."""
    way = [name]
    while (after := _next(rows[way[-1]])) in rows:
        way.append(after)
        if after in way[:-1]:
            break
    return tuple(way)


def _chain(
    run: KeptRun,
    row: Row,
    way: Sequence[str],
    before: Sequence[str],
    fullest: Mapping[str, tuple[int, str]],
) -> Chain:
    stood = min(row.stood_ns, run.end_ns)
    begun = (
        f"{row.name} stood still for {duration(stood)}, {percent(stood / run.end_ns)} of the run"
    )
    because = "".join(f", because {each} did" for each in way[1:])
    held = f" It held up {_named(before)}." if before else ""
    links = dict.fromkeys((*way, *before))
    return Chain(f"{begun}{because}{_root(run, way, fullest)}.{held}", tuple(links))


def _root(run: KeptRun, way: Sequence[str], fullest: Mapping[str, tuple[int, str]]) -> str:
    """What the last of them stood still because of."""
    last = way[-1]
    if last in way[:-1]:
        return " again: they waited for one another"
    switch = led_to(last)
    if switch in storming(run):
        return f", because {switch}'s adapter sent pause frames without need"
    if run.fabric.node(switch) in run.fabric.hosts:
        return f", because {switch} took less than came"
    longest, full = fullest.get(switch, (0, ""))
    return f", because {switch} was full: up to {size(longest)} waited before {full}"


def _named(names: Sequence[str]) -> str:
    if len(names) > _MAX_NAMED:
        return plural(len(names), "direction")
    return listed(names)

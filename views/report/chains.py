"""Why a direction stood still, followed to where it began: what a reader is told who clicks on it.

h7>leaf4 ──because of──► leaf4>spine1 ──► spine1>leaf1 ──► what leaf1 could not pass on
it held up: what stands before it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from params.quantity import duration, listed, percent, plural, size
from views.report.kept import KeptRun
from views.report.standing import Row, led_to, paused
from views.report.suspects import storming

_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class Chain:
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
    if len(names) > _MOST_NAMED:
        return plural(len(names), "direction")
    return listed(names)

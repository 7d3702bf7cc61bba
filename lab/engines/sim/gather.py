"""What ranks have found out, put together: each knows its nodes, and its ends of channels."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from lab.engines.sim.ranks import RankIsDone, Ranks
from lab.results.outcome import Line, Outcome
from topologies import Fabric
from traffic.collectives import Timeline

K = TypeVar("K")
V = TypeVar("V")


def gathered(own: Outcome, fabric: Fabric, ranks: Ranks) -> Outcome:
    """All of it, at rank 0; the others have done their part."""
    outcomes = ranks.at_first(own)
    if not ranks.is_first:
        raise RankIsDone
    hosts = {host.name: at for at, host in enumerate(fabric.hosts)}
    return replace(
        own,
        timeline=Timeline(
            _latest([each.timeline.start_ns for each in outcomes]),
            _latest([each.timeline.end_ns for each in outcomes]),
        ),
        switches=_in_order(fabric.switches, [each.switches for each in outcomes]),
        endpoints=_in_order(fabric.hosts, [each.endpoints for each in outcomes]),
        max_queue_bytes=_in_order(own.link_books, [each.max_queue_bytes for each in outcomes]),
        cut_frames=_in_order(own.link_books, [each.cut_frames for each in outcomes]),
        books=_in_order(fabric.switches, [each.books for each in outcomes]),
        link_books={
            name: _both_ends([each.link_books[name] for each in outcomes])
            for name in own.link_books
        },
        ways=tuple(
            sorted(
                (way for each in outcomes for way in each.ways),
                key=lambda way: (way.time_ns, hosts[way.host]),
            )
        ),
    )


def _in_order(keys: Iterable[K], pieces: Sequence[Mapping[K, V]]) -> dict[K, V]:
    """What each has of them, as one would have all."""
    return {key: piece[key] for key in keys for piece in pieces if key in piece}


def _latest(columns: Sequence[Sequence[int]]) -> array[int]:
    """By transfer, what somebody knows who is not `NEVER`."""
    return array("q", map(max, *columns))


def _both_ends(books: Sequence[tuple[Line, ...]]) -> tuple[Line, ...]:
    """A channel's books: what went in is its sender's to say, and before all else."""
    ordered = sorted(filter(None, books), key=lambda lines: lines[0].book != "in")
    return tuple(line for lines in ordered for line in lines)

"""Whether buffers can come to wait for one another in a circle, by the routes between switches.

For each switch that has hosts, every other takes the shortest ways to it, all of those equally
short. Where all switches have an AS and speak BGP, nobody takes a way on which its own AS is
already. A packet that came by a cable and goes on by another makes the one's buffer wait for the
other's: a circle of such is a cyclic buffer dependency, and lossless traffic can stand still in it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import networkx as nx

Hop = tuple[str, str]


def circles(
    neighbours: Mapping[str, Collection[str]], ends: Collection[str], asns: Mapping[str, int]
) -> list[list[str]]:
    """A shortest circle of each set of buffers that wait for one another, by switches' names."""
    waits: nx.DiGraph[Hop] = nx.DiGraph()
    for end in ends:
        waits.add_edges_from(_waits(next_hops(neighbours, end, asns), ends, end))
    found = []
    for group in nx.strongly_connected_components(waits):
        if len(group) > 1:
            circle = _shortest(waits.subgraph(group))
            first = min(range(len(circle)), key=lambda at: circle[at])
            found.append([hop[0] for hop in (*circle[first:], *circle[:first])])
    return sorted(found)


def next_hops(
    neighbours: Mapping[str, Collection[str]], end: str, asns: Mapping[str, int]
) -> dict[str, list[str]]:
    """By switch: whom it sends to."""
    hops: dict[str, list[str]] = {}
    passed: dict[str, frozenset[int]] = {end: frozenset(_as(asns, end))}
    layer = [end]
    while layer:
        heard: dict[str, list[str]] = {}
        for near in layer:
            for far in neighbours[near]:
                if far not in passed and not passed[near] & _as(asns, far):
                    heard.setdefault(far, []).append(near)
        for far, nears in heard.items():
            hops[far] = nears
            passed[far] = passed[min(nears)] | _as(asns, far)
        layer = sorted(heard)
    return hops


def _as(asns: Mapping[str, int], switch: str) -> frozenset[int]:
    return frozenset((asns[switch],)) if switch in asns else frozenset()


def _waits(
    hops: Mapping[str, Collection[str]], starts: Iterable[str], end: str
) -> Iterable[tuple[Hop, Hop]]:
    """Which buffer waits for which, on the way from whoever has hosts."""
    seen: set[str] = set()
    ahead = [start for start in starts if start in hops]
    while ahead:
        at = ahead.pop()
        if at in seen:
            continue
        seen.add(at)
        for near in hops[at]:
            if near != end:
                ahead.append(near)
                yield from (((at, near), (near, on)) for on in hops.get(near, ()))


def _shortest(waits: nx.DiGraph[Hop]) -> list[Hop]:
    best: list[Hop] = []
    for start in sorted(waits)[:64]:
        for before in sorted(waits.predecessors(start)):
            way = nx.shortest_path(waits, start, before)
            if not best or len(way) < len(best):
                best = way
    return best

"""Flows of the RDMA simulators in ns-3: `flow.txt`, as HPCC's and ConWeave's read it.

    2                               how many flows follow
    0 1 3 100 200000000 2.0         src dst pg dport bytes start: HPCC's, the start in seconds
    1 0 3 30000 2.000001            or src dst pg bytes start: ConWeave's

Hosts are numbered from 0. The flows begin at 2 s or so there, when all is set up; here the first
begins at 0 and the others as much later. The priority group is not read: a scenario gives traffic
its class. What is written has HPCC's form, all flows in group 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path

from traffic.traces.graph import MAX_DEEDS, MAX_RANKS, UNMET, Graph, TraceError
from traffic.traces.text import lines_of, whole

_BEGIN = Decimal(2)  # seconds: when those that are written begin, as in HPCC's
_LATEST = 10**15  # ns
_GROUP, _PORT = 3, 100


def read(path: Path) -> Graph:
    """The flows of a file."""
    lines = lines_of(path)
    number, head = next(lines, (1, ""))
    try:
        promised = whole(head, "how many flows follow", 1, MAX_DEEDS // 4)
    except TraceError as error:
        raise TraceError(f"{path}:{number}: {error}") from None
    flows = [_placed(path, *line) for line in lines]
    if len(flows) != promised:
        raise TraceError(f"{path}: its first line says {promised} flows, and it has {len(flows)}")
    begin = min(start for *_, start in flows)
    graph = Graph(1 + max(max(src, dst) for src, dst, _, _ in flows), path.stem)
    channels: Counter[tuple[int, int]] = Counter()
    for src, dst, size, start in flows:
        graph.send(src, dst, size, tag=UNMET, channel=channels[src, dst], delay_ns=start - begin)
        channels[src, dst] += 1
    return graph


def _placed(path: Path, number: int, line: str) -> tuple[int, int, int, int]:
    try:
        return _flow(line.split())
    except TraceError as error:
        raise TraceError(f"{path}:{number}: {error}") from None


def _flow(words: list[str]) -> tuple[int, int, int, int]:
    """Who sends how much to whom, and when in ns."""
    if len(words) not in (5, 6):
        raise TraceError(
            f"{len(words)} words", "a flow is: src dst pg dport bytes start, or without dport"
        )
    src, dst = (whole(word, "a host", 0, MAX_RANKS - 1) for word in words[:2])
    if src == dst:
        raise TraceError(f"host {src} sends to itself")
    whole(words[2], "pg", 0, 7)
    try:
        start = Decimal(words[-1]) * 10**9
    except InvalidOperation:
        start = Decimal(-1)
    if not start.is_finite() or not 0 <= start <= _LATEST:
        raise TraceError(f"start: '{words[-1][:40]}' is no time in seconds")
    return src, dst, whole(words[-2], "bytes", 1, 1 << 31), int(start)


def written(flows: Iterable[tuple[int, int, int, int]]) -> Iterator[str]:
    """The lines of a file with these: who sends to whom how much, and when in ns."""
    ordered = sorted(flows, key=lambda flow: flow[3])
    yield f"{len(ordered)}\n"
    for src, dst, size, start_ns in ordered:
        yield f"{src} {dst} {_GROUP} {_PORT} {size} {_BEGIN + Decimal(start_ns) / 10**9:f}\n"

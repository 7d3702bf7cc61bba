"""Flows in a table, a line each: ``start_ns,src,dst,bytes``, in any order of columns.

Hosts are h1, h2 and so on, or numbers counted from 0. Each flow has a queue pair of its own.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

from traffic.traces.graph import UNMET, Graph, TraceError
from traffic.traces.text import text_of, whole

COLUMNS = ("start_ns", "src", "dst", "bytes")
_HOST = re.compile(r"h([1-9]\d{0,8})", re.ASCII)


def read(path: Path, hosts: int) -> Graph:
    """The flows of a file, on so many hosts."""
    graph = Graph(hosts, path.stem)
    channels: Counter[tuple[int, int]] = Counter()
    rows = csv.reader(text_of(path).splitlines())
    try:
        head = [name.strip() for name in next(rows, [])]
        missing = [name for name in COLUMNS if name not in head]
        if missing or len(set(head)) != len(head):
            raise TraceError(
                f"no column {missing[0]}" if missing else "a column twice",
                f"the first line names the columns: {','.join(COLUMNS)}",
            )
        places = [head.index(name) for name in COLUMNS]
        for row in rows:
            if not any(row):
                continue
            if len(row) != len(head):
                raise TraceError(f"{len(row)} values, and {len(head)} columns")
            start, src, dst, size = (row[place].strip() for place in places)
            ends = _host(src, hosts), _host(dst, hosts)
            graph.send(
                *ends,
                whole(size, "bytes", 1, 1 << 31),
                tag=UNMET,
                channel=channels[ends],
                delay_ns=whole(start, "start_ns", 0, 10**15),
            )
            channels[ends] += 1
    except (TraceError, csv.Error) as error:
        raise TraceError(f"{path}:{max(1, rows.line_num)}: {error}") from None
    if not len(graph):
        raise TraceError(f"{path} names no flow")
    return graph


def _host(text: str, hosts: int) -> int:
    found = _HOST.fullmatch(text)
    number = int(found[1]) - 1 if found else whole(text, "a host", 0, 10**9)
    if number >= hosts:
        raise TraceError(f"there is no h{number + 1}", f"they are h1 to h{hosts}")
    return number

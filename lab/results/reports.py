"""Telemetry reports as a table, for programs: a row for each hop that a report tells of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from controller import Report
from controller.tables import DROP_REASONS
from lab.results import columns
from lab.results.columns import Cell
from lab.results.telemetry import Tally

COLUMNS = (
    *("report", "reporter", "sequence", "src", "dst", "protocol", "src_port", "dst_port"),
    *("drop_reason", "hop", "switch", "ingress_port", "egress_port", "latency_ns"),
    *("queue", "queue_bytes", "ingress_time", "egress_time", "utilisation", "buffer_bytes"),
)


def write(tally: Tally, folder: Path, kind: str) -> Path:
    """Write all reports that were kept; where."""
    path = folder / f"reports.{kind}"
    rows = (
        row
        for number, report in enumerate(tally.kept or (), 1)
        for row in _rows(number, report, tally)
    )
    columns.write(path, kind, COLUMNS, rows)
    return path


def _rows(number: int, report: Report, tally: Tally) -> Iterator[tuple[Cell, ...]]:
    flow = report.flow
    of: tuple[Cell, ...] = (None,) * 5
    if flow is not None:
        of = str(flow.src), str(flow.dst), flow.protocol, flow.src_port, flow.dst_port
    known = report.drop_reason is not None and report.drop_reason < len(DROP_REASONS)
    reason = DROP_REASONS[report.drop_reason or 0] if known else None
    reporter = tally.numbers.get(report.node, str(report.node))
    for place, hop in enumerate(report.hops, 1):
        name = None if hop.node is None else tally.numbers.get(hop.node, str(hop.node))
        yield (
            *(number, reporter, report.sequence, *of, reason, place, name),
            *(
                hop.ingress_port,
                hop.egress_port,
                hop.stayed_ns(tally.tick_ns),
                hop.queue,
                hop.queue_bytes,
            ),
            *(hop.ingress_time, hop.egress_time, hop.utilisation, hop.buffer_bytes),
        )

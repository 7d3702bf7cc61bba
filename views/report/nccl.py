"""Runs of collectives as nccl-tests prints its own, in text and in JSON, for what reads those.

A row is a run, by its longest collective; a sweep over sizes makes the table one is used to. Rates
are in GB/s, as there. A fabric cannot tell out-of-place from in-place: both columns say the same.
Nothing is added up here, so that nothing can be wrong: ``#wrong`` is N/A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lab.errors import RunError
from params.data import Data
from traffic.collectives import Collective
from traffic.jobs import Workload
from views.report.kept import KeptRun

JSON_VERSION = 2
_TYPE, _TYPE_BYTES = "float", 4
_PROGRAMS = {
    "all-reduce": "all_reduce_perf", "reduce-scatter": "reduce_scatter_perf",
    "all-gather": "all_gather_perf", "all-to-all": "alltoall_perf", "broadcast": "broadcast_perf",
}  # fmt: skip
_ADDS = ("all-reduce", "reduce-scatter")
_SPLITS = ("reduce-scatter", "all-gather", "all-to-all")  # whose count is what one rank gets


class Row(Data):
    """One collective of one run."""

    op: str
    size: int
    count: int
    root: int
    hosts: tuple[str, ...]
    time_us: float
    algbw: float
    busbw: float

    @property
    def redop(self) -> str:
        """How it adds."""
        return "sum" if self.op in _ADDS else "none"


def rows_of(runs: Sequence[KeptRun], workload: Callable[[KeptRun], Workload]) -> list[Row]:
    """The rows of runs, by their sizes; all of one collective."""
    rows = [_row(run, workload(run)) for run in runs]
    ops = list(dict.fromkeys(row.op for row in rows))
    if len(ops) > 1:
        raise RunError(
            f"these are runs of {' and '.join(ops)}",
            "nccl-tests has a table for each: name runs of one collective at a time.",
        )
    return sorted(rows, key=lambda row: row.size)


def _row(run: KeptRun, workload: Workload) -> Row:
    found = run.result.collective
    if found is None or not found.algbw_gbps or not found.busbw_gbps:
        raise RunError(
            f"{run.folder}: no collective of this run came to its end",
            "Name runs of traffic.kind=collective, or of jobs.",
        )
    what = next(
        one
        for activity in workload.schedule.activities
        if (one := activity.collective) is not None
        and (one.op, one.algorithm, one.bytes) == (found.op, found.algorithm, found.bytes)
    )
    return Row(
        found.op,
        found.bytes,
        _count(what),
        what.root if found.op == "broadcast" else -1,
        tuple(f"h{rank + 1}" for rank in what.ranks),
        found.bytes * 8 / found.algbw_gbps / 1000,
        found.algbw_gbps / 8,
        found.busbw_gbps / 8,
    )


def _count(what: Collective) -> int:
    return what.bytes // _TYPE_BYTES // (what.size if what.op in _SPLITS else 1)


def _average(rows: Sequence[Row]) -> float:
    return sum(row.busbw for row in rows) / len(rows)


def text(rows: Sequence[Row], runs: Sequence[KeptRun]) -> Iterator[str]:
    """The lines of the table."""
    first = runs[0].result
    yield f"# Collective test starting: {_PROGRAMS[rows[0].op]}"
    yield f"# closlab {first.provenance['version']}, {first.scenario.name}, {first.engine}"
    yield "#"
    yield "# Using devices"
    for rank, host in enumerate(rows[0].hosts):
        yield f"#  Rank {rank:2} Group  0 Pid {0:6} on {host:>10} device  0"
    yield "#"
    heads = ("size", "count", "type", "redop", "root")
    units = ("(B)", "(elements)", "", "", "")
    times = ("time", "algbw", "busbw", "#wrong")
    scales = ("(us)", "(GB/s)", "(GB/s)", "")
    yield f"# {_left('', '', '', '', '')}           out-of-place                       in-place"
    yield f"# {_left(*heads)}  {_right(*times)}  {_right(*times)}"
    yield f"# {_left(*units)}  {_right(*scales)}  {_right(*scales)}".rstrip()
    for row in rows:
        body = _right(_float(row.time_us, 7), _float(row.algbw, 6), _float(row.busbw, 6), "N/A")
        what = f"{row.size:12}  {row.count:12}  {_TYPE:>8}  {row.redop:>6}  {row.root:6}"
        yield f"{what}  {body}  {body}"
    yield "# Out of bounds values : 0 OK"
    yield f"# Avg bus bandwidth    : {_average(rows):g}"
    yield "#"
    yield f"# Collective test concluded: {_PROGRAMS[rows[0].op]}"


def _left(size: str, count: str, kind: str, redop: str, root: str) -> str:
    return f"{size:>10}  {count:>12}  {kind:>8}  {redop:>6}  {root:>6}"


def _right(time: str, algbw: str, busbw: str, wrong: str) -> str:
    return f"{time:>7}  {algbw:>6}  {busbw:>6}  {wrong:>6}"


def _float(value: float, width: int) -> str:
    """As many digits as there is room for, at most two behind the point."""
    whole = len(str(int(value))) if value >= 1 else 1
    digits = 2 if whole < width - 2 else 1 if whole < width - 1 else 0
    text = f"{value:.{digits}f}"
    return text if len(text) <= width else f"{value:.0e}"


def content(rows: Sequence[Row], runs: Sequence[KeptRun]) -> dict[str, Any]:
    """The same as JSON."""
    dates = sorted(run.result.provenance["date"] for run in runs)
    return {
        "version": JSON_VERSION,
        "start_time": dates[0],
        "args": [_PROGRAMS[rows[0].op]],
        "env": [],
        "nccl_version": None,
        "config": {
            "nthreads": 1,
            "ngpus": 1,
            "minimum_bytes": rows[0].size,
            "maximum_bytes": rows[-1].size,
            "step_bytes": 0,
            "warmup_iters": 0,
            "iterations": 1,
            "aggregated_iterations": 1,
            "validation": 0,
            "graph": 0,
            "blocking_collectives": "false",
            "devices": [
                {"rank": rank, "group": 0, "pid": 0, "hostname": host, "device": 0}
                for rank, host in enumerate(rows[0].hosts)
            ],
        },
        "results": [_result(row) for row in rows],
        "out_of_bounds": {"count": 0, "okay": "true"},
        "average_bus_bandwidth": {"bandwidth": _average(rows), "okay": "unchecked"},
        "errors": [],
        "end_time": dates[-1],
    }


def _result(row: Row) -> dict[str, Any]:
    body = {
        "time": row.time_us, "alg_bw": row.algbw, "bus_bw": row.busbw, "nwrong": None,
    }  # fmt: skip
    return {
        "size": row.size, "count": row.count, "type": _TYPE, "redop": row.redop,
        "root": f"{row.root:6}", "out_of_place": body, "in_place": body, "actual_iterations": 1,
        "experiment_name": _PROGRAMS[row.op],
    }  # fmt: skip

"""Section 9: collectives, by message size, ranks and load balancing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.bmwg.arithmetic import bus_bandwidth
from lab.bmwg.bench import GB, MB, Bench
from lab.bmwg.case import Asks, Case, Found, together
from lab.bmwg.outcome import Outcome, Plot, Row, Table
from params.quantity import size as size_text
from traffic.measures import percentile

SIZES = (MB, 8 * MB, 64 * MB, 256 * MB, GB, 4 * GB)
RANKS = (8, 16, 32, 64, 128, 256, 512, 1024)
_PACKET = 4096  # that a message counts as at least
_ITERATIONS = 100
_MIN = 5  # iterations of a cell: with fewer it is left out
_APART = (
    "Pairwise: a rank goes on to the next as soon as its own message is through. So ranks drift "
    "apart, and two come to write to one while another has nobody: hence about half of line rate "
    "where messages are large, however evenly switches balance."
)
BALANCING = {"ECMP": "ecmp", "DLB": "dlb", "spray": "spray"}
UNITS = {
    "BusBW": "gbps", "BusBW P50": "gbps", "BusBW P95": "gbps", "BusBW P99": "gbps",
    "efficiency": "share", "JCT": "ns", "S_fabric": "bytes", "ECN ratio": "share",
    "pause frames": "count", "busiest link": "share",
}  # fmt: skip


def iterations_ns(found: Found) -> list[float]:
    """How long each iteration took: from the end of the one before, so that together they are the
    whole run, as nccl-tests times them."""
    ends = [end for _, end in found.stretches()]
    begun = min((start for start, _ in found.stretches()), default=0)
    before = [begun, *ends]
    return [float(end - start) for start, end in zip(before, ends, strict=False)]


def sent_bytes(op: str, ranks: int, size: int) -> int:
    """About what all ranks send together in an iteration, in rings or to each other.

    A message counts as a packet at least, for that is what it costs.
    """
    rounds = (2 if op == "all-reduce" else 1) * (ranks - 1)
    return rounds * ranks * max(_PACKET, size // ranks)


def halving_bytes(ranks: int, size: int) -> int:
    """The same of an all-reduce by halving and doubling."""
    parts = (size >> round_ for round_ in range(1, (ranks - 1).bit_length() + 1))
    return 2 * ranks * sum(max(_PACKET, part) for part in parts)


def fitted(
    bench: Bench, op: str, ranks: int, size: int, repeat: int, least: int = _MIN
) -> tuple[int, int]:
    """Message and iterations, so that these send no more than a run may: there are fewer iterations
    down to the least, and then the message is halved, as long as its parts fill packets. Of many
    iterations of a small message delays would be all that is measured."""
    most, least = bench.extent.most_bytes, min(least, repeat)
    while size >= 2 * ranks * _PACKET and sent_bytes(op, ranks, size) * least > most:
        size //= 2
    return size, max(least, min(repeat, most // sent_bytes(op, ranks, size)))


FITTED = (
    "Messages and iterations are as large and as many as --most allows: first there are fewer "
    "than 100 iterations, then smaller messages."
)


def figures(found: Found, op: str, ranks: int, size: int, gbps: float) -> dict[str, list[float]]:
    """What section 9 asks of a run."""
    took = iterations_ns(found)
    if not took or not found.is_whole:
        return {name: [] for name in UNITS}
    crossed = {
        use.name: use.bytes for use in found.result.links if use.name.startswith("h")
    }  # what hosts sent into their ports, headers and all
    sent = max(1.0, found.figure("roce.data_packets"))
    row = {
        "BusBW": [bus_bandwidth(op, ranks, size, each) for each in took],
        "JCT": took,
        "S_fabric": [sum(crossed.values()) / ranks / len(took)],
        "ECN ratio": [found.figure("ecn.marked_packets") / sent],
        "pause frames": [found.figure("pfc.xoff_frames")],
        "busiest link": [max((use.utilisation for use in found.result.links), default=0.0)],
    }
    for share in (50, 95, 99):
        late = percentile(took, share)
        row[f"BusBW P{share}"] = [bus_bandwidth(op, ranks, size, late)]
    row["efficiency"] = [each / gbps for each in row["BusBW"]]
    return row


def case(
    bench: Bench, section: str, op: str, ranks: int, size: int, repeat: int,
    algorithm: str | None = None, **changes: Any,
) -> Case:  # fmt: skip
    """A collective of the first so many hosts, again and again."""
    traffic: dict[str, Any] = {"kind": "collective", "op": op, "bytes": size, "repeat": repeat}
    traffic |= {"algorithm": algorithm} if algorithm else {}
    return bench.case(section, traffic | {"ranks": [f"h{n + 1}" for n in range(ranks)]},
                      **bench.sized(ranks), **changes)  # fmt: skip


def _cells(bench: Bench, op: str) -> tuple[list[tuple[int, int, int]], list[str]]:
    """Sizes, ranks and iterations to be run, and what is left out of them, and why."""
    extent = bench.extent
    wanted = extent.repeats(_ITERATIONS, 10)
    run, left_out = [], []
    for size in SIZES:
        for ranks in RANKS:
            what = f"{size_text(size)} of {ranks} ranks"
            if (extent.is_quick and (size > MB or ranks > 16)) or (bench.is_small and ranks > 16):
                continue
            repeat = min(wanted, extent.most_bytes // sent_bytes(op, ranks, size))
            if repeat < min(wanted, _MIN):
                left_out.append(what)
            elif bench.fabric(ranks) is None:
                left_out.append(f"{what}: the fabric has not so many hosts")
            else:
                run.append((size, ranks, repeat))
    if extent.is_quick:
        left_out = ["in a quick run, all but 1 MB of 8 and 16 ranks"]
    elif left_out:
        left_out = [
            f"{len(left_out)} of {len(SIZES) * len(RANKS)} cells, of which {_MIN} iterations "
            f"would send more than {size_text(extent.most_bytes)} (--most): from {left_out[0]} on"
        ]
    return run, left_out


def _benchmark(bench: Bench, section: str, op: str, caption: str = "") -> Asks[Outcome]:
    cells, left_out = _cells(bench, op)

    def row(size: int, ranks: int, repeat: int, name: str, policy: str) -> Asks[Row]:
        one = case(bench, section, op, ranks, size, repeat, lb={"policy": policy})
        (found,) = yield [one]
        algorithm = found.result.collective.algorithm if found.result.collective else ""
        return Row(
            {"message": size_text(size), "N": str(ranks), "balancing": name,
             "iterations": str(repeat), "algorithm (verified)": algorithm},
            figures(found, op, ranks, size, bench.rate_gbps), [one],
        )  # fmt: skip

    rows = yield from together([
        row(*cell, name, policy)
        for cell in cells
        for name, policy in BALANCING.items()
    ])  # fmt: skip
    return Outcome(
        [Table(op, UNITS, rows)],
        "BusBW",
        [_by_ranks(rows, op, caption)] if rows else [],
        left_out=left_out,
        deviations=(
            "The schedule is generated as the library's algorithm has it, and not taken from a "
            "collective library: barriers are in it, a straggler is none.",
            f"Iterations: as many of {_ITERATIONS} as --most allows, {_MIN} at least, where "
            "a message counts as a packet at least.",
            "P95 and P99 are of the iterations' times, told as the BusBW of such an iteration: "
            "that many per cent of them were at least so fast.",
        ),
        anomalies=[
            f"{row.of['message']}, N {row.of['N']}, {row.of['balancing']}: not all messages arrived"
            for row in rows
            if not row.figures["BusBW"]
        ],
    )


def _by_ranks(rows: list[Row], op: str, caption: str) -> Plot:
    series: dict[str, dict[float, float]] = {}
    for row in rows:
        name = f"{row.of['message']}, {row.of['balancing']}"
        series.setdefault(name, {})[float(row.of["N"])] = row.mean("BusBW") or 0.0
    shown = dict(list(series.items())[:6])
    return Plot(f"BusBW of {op} by ranks", ("N", "count"), ("BusBW", "gbps"), shown, is_log=True,
                caption=caption)  # fmt: skip


def allreduce(bench: Bench) -> Asks[Outcome]:
    """AllReduce."""
    return (yield from _benchmark(bench, "9.1", "all-reduce"))


def alltoall(bench: Bench) -> Asks[Outcome]:
    """AlltoAll."""
    return (yield from _benchmark(bench, "9.2", "all-to-all", _APART))


def allgather(bench: Bench) -> Asks[Outcome]:
    """AllGather."""
    return (yield from _benchmark(bench, "9.3", "all-gather"))


def summary(bench: Bench) -> Asks[Outcome]:
    """BusBW of all three, under every way of balancing: the template of section 9.4."""
    ops = {"all-reduce": "9.1", "all-to-all": "9.2", "all-gather": "9.3"}
    cells = [(op, *cell) for op in ops for cell in _cells(bench, op)[0][-2:]]

    def row(op: str, size: int, ranks: int, repeat: int) -> Asks[Row]:
        cases = [
            case(bench, ops[op], op, ranks, size, repeat, lb={"policy": policy})
            for policy in BALANCING.values()
        ]
        found = yield cases
        row: Mapping[str, list[float]] = {
            f"{name} BusBW": figures(each, op, ranks, size, bench.rate_gbps)["BusBW"]
            for name, each in zip(BALANCING, found, strict=True)
        }
        return Row({"collective": op, "message": size_text(size), "N": str(ranks)}, row, cases)

    rows = yield from together([row(*cell) for cell in cells])
    return Outcome(
        [Table("Bus bandwidth", {f"{name} BusBW": "gbps" for name in BALANCING}, rows)],
        "ECMP BusBW",
        left_out=("the template's 1 GB of 128 and 512 ranks, unless they were run above: the "
                  "largest two that were stand here",),
    )  # fmt: skip

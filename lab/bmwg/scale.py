"""Sections 11 and 12: larger fabrics, links that fail, and load that lasts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from lab.bmwg.bench import GB, KB, MB, Bench
from lab.bmwg.case import Asks, Case, Found, together
from lab.bmwg.collectives import (
    BALANCING,
    FITTED,
    case,
    figures,
    fitted,
    halving_bytes,
    iterations_ns,
)
from lab.bmwg.jobs import HALVING, job_case, ratio
from lab.bmwg.outcome import Outcome, Plot, Row, Table
from params.quantity import duration
from params.quantity import size as size_text
from traffic.measures import percentile

_N = (64, 128, 256, 512, 1024)
_FEWEST = 2  # iterations at the largest N
_SMALLEST = 100 * KB  # of messages
_MIN = 10  # iterations: one in the middle is struck, and those without a failure have a P99
_LOOK_NS, _MAX_LOOKS = 1000, 5000  # how often drops are noted, and how often a run at most


# --- 11.1 ----------------------------------------------------------------------------------------


def limits(bench: Bench) -> Asks[Outcome]:
    """AllReduce on ever more hosts."""
    extent = bench.extent
    most = extent.most_bytes // (4 if extent.is_quick else 1)
    left_out, cells = [], []
    for ranks in extent.some(_N, (8, 16, 32)):
        size = GB
        while halving_bytes(ranks, size) * _FEWEST > most and size >= _SMALLEST:
            size //= 2
        if bench.fabric(ranks) is None or size < _SMALLEST or (bench.is_small and ranks > 16):
            left_out.append(f"N = {ranks}")
        else:
            cells.append((ranks, size))
    # Every N with the same message, or N would not be all that differs.
    least = min((size for _, size in cells), default=MB)

    def row(ranks: int) -> Asks[Row]:
        repeat = min(extent.repeats(100, 2), most // halving_bytes(ranks, least))
        one = case(bench, "11.1", "all-reduce", ranks, least, repeat, algorithm=HALVING)
        job = job_case(bench, "11.1", ranks, 0, least, repeat, algorithm=HALVING)
        found, whole = yield [one, job]
        row = figures(found, "all-reduce", ranks, least, bench.rate_gbps)
        return Row(
            {"N": str(ranks), "message": size_text(least), "iterations": str(repeat)},
            {"JCT ratio": ratio(whole, ranks, 0, least, repeat, bench.rate_gbps),
             **{name: row[name] for name in ("BusBW", "ECN ratio", "pause frames")}},
            [one, job],
        )  # fmt: skip

    rows = yield from together([row(ranks) for ranks, _ in cells])
    plot = {"BusBW": {float(row.of["N"]): row.mean("BusBW") or 0.0 for row in rows}}
    return Outcome(
        [Table("AllReduce by N", {"JCT ratio": "times", "BusBW": "gbps", "ECN ratio": "share",
                                  "pause frames": "count"}, rows)],
        "BusBW",
        [Plot("BusBW by ranks", ("N", "count"), ("BusBW", "gbps"), plot, is_log=True)]
        if rows else [],
        left_out=[*left_out,
                  "CPU and memory of switches: those of the simulator are no machines",
                  "routing convergence after clearing adjacencies: `closlab run bgp-clos` on "
                  "Mininet tells it, with BGP"],
        deviations=(
            f"Messages of {size_text(least)} instead of 1 GB, the same at every N; C is 0, since "
            "the draft names none here.",
            f"Iterations: as many of 100 as --most allows, {_FEWEST} at least; AllReduce goes by "
            "halving and doubling, whose messages N does not make ever smaller.",
            "Switches of more than 128 ports have twice the device's buffer.",
        ),
    )  # fmt: skip


# --- 11.2 and 11.3 -------------------------------------------------------------------------------

_FAILURES = {
    "leaf uplink": {"action": "down", "link": "leaf1-spine1"},
    "spine switch": {"action": "down", "switch": "spine1"},
}
FAILOVER = {
    "loss lasts": "ns", "redistributed after": "ns", "packets lost": "count",
    "JCT overhead": "share", "failure iteration": "ns", "steady P99": "ns", "zero impact": "yes",
}  # fmt: skip


def failover(bench: Bench) -> Asks[Outcome]:
    """An AllReduce during which a link or a spine fails, under each way of balancing."""
    return (yield from _failover(bench, tuple(FAILOVER)[:-2], "packets lost"))


def zero_impact(bench: Bench) -> Asks[Outcome]:
    """The same: is the failure's iteration within the P99 of those without?"""
    return (yield from _failover(bench, tuple(FAILOVER)[-4:], "failure iteration"))


def _failover(bench: Bench, shown: Sequence[str], primary: str) -> Asks[Outcome]:
    rows = yield from together([
        _fails(bench, what, name) for what in _FAILURES for name in BALANCING
    ])  # fmt: skip
    rows = [Row(row.of, {name: row.figures[name] for name in shown}, row.cases) for row in rows]
    return Outcome(
        [Table("Failures", {name: FAILOVER[name] for name in shown}, rows)],
        primary,
        left_out=("superspine links: the fabric has two tiers",
                  "N = 128 and S = 1 GB: all hosts of the device, and a message that fits"),
        deviations=(
            FITTED,
            "Steady iterations are those of the same run without a failure; a failure happens in "
            "the middle of one of them.",
            "When packets were lost is noted every microsecond, of long runs 5,000 times; what was "
            "on a cable or waited for it is lost with it. A switch's count is told when something "
            "passes it: of one that nothing passes for a while, losses are noted late.",
            f"Who finds other ways is told so {bench.scenario.reroute_ns or 0:,} ns after the "
            "failure (reroute_ns): a leaf goes round its own dead link at once.",
        ),
    )  # fmt: skip


def _fails(bench: Bench, what: str, name: str) -> Asks[Row]:
    extent = bench.extent
    ranks = min(128, len(bench.scenario.fabric().hosts))
    most = MB if extent.is_quick else 8 * MB
    size, repeat = fitted(bench, "all-reduce", ranks, most, extent.repeats(100, 10), _MIN)
    seeds = range(1, extent.repeats(10, 1) + 1)

    def run(seed: int, **changes: Any) -> Case:
        return bench.case(
            "11.2",
            {"kind": "collective", "op": "all-reduce",
             "bytes": size, "repeat": repeat, "ranks": _across(bench, ranks)},
            seed=seed, lb={"policy": BALANCING[name]}, **changes,
        )  # fmt: skip

    steady = [run(seed) for seed in seeds]
    found = yield steady
    usual = [iterations_ns(each) for each in found]
    struck = repeat // 2
    times = [_middle(each, struck) for each in found]
    looks = max(_LOOK_NS, max(each.result.duration_ns for each in found) // _MAX_LOOKS)
    failing = [
        run(seed, faults=[{"at_ns": at, **_FAILURES[what]}], series_ns=looks)
        for seed, at in zip(seeds, times, strict=True)
    ]
    hurt = yield failing
    figures: dict[str, list[float]] = {figure: [] for figure in FAILOVER}
    for before, at, each in zip(usual, times, hurt, strict=True):
        lost = losses(each, at)
        figures["packets lost"].append(each.figure("drops.total"))
        figures["loss lasts"].append(float(lost[-1] - lost[0]) if lost else 0.0)
        figures["redistributed after"].append(float(lost[-1] - at) if lost else 0.0)
        after = iterations_ns(each)
        figures["steady P99"].append(percentile(before, 99))
        if each.is_whole and len(after) > struck:
            worst = after[struck]
            figures["failure iteration"].append(worst)
            figures["JCT overhead"].append(worst / fmean(before) - 1)
            figures["zero impact"].append(float(worst <= percentile(before, 99)))
        else:
            figures["zero impact"].append(0.0)
    return Row({"failure": what, "balancing": name}, figures, [*steady, *failing])


def _across(bench: Bench, ranks: int) -> list[str]:
    """Hosts leaf by leaf in turn, so that each hop of a ring crosses a spine."""
    hosts = [host.name for host in bench.scenario.fabric().hosts][:ranks]
    each = max(1, int(bench.device["topology"].get("hosts_per_leaf", 1)))
    return [host for slot in range(each) for host in hosts[slot::each]]


def _middle(found: Found, number: int) -> int:
    """When an iteration is half over."""
    ends = [end for _, end in found.stretches()]
    return (ends[number - 1] + ends[number]) // 2


def losses(found: Found, failed_ns: int) -> list[int]:
    """When packets were lost: the times at which a switch's count of drops had grown, and that of
    the failure if there are more, which were on a cable or before it as that was cut.

    All links of a switch tell its one count, each when something passed it.
    """
    drops = sorted(
        (note.time_ns, note.dropped, link.partition(">")[0])
        for link, notes in found.run.notes_of.items()
        for note in notes
    )
    times: set[int] = set()
    counted: dict[str, int] = {}
    for time_ns, dropped, switch in drops:
        if dropped > counted.get(switch, 0):
            counted[switch] = dropped
            times.add(time_ns)
    if found.result.drops.total > sum(counted.values()):
        times.add(failed_ns)
    return sorted(times)


# --- 12.1 and 12.2 -------------------------------------------------------------------------------

LOAD = 0.8  # of what the fabric carries at most


def soak(bench: Bench) -> Asks[Outcome]:
    """All-reduce and all-to-all in turn at 80 % of their throughput, again and again."""
    extent = bench.extent
    rounds = extent.repeats(24, 4)
    ranks = min(16, len(bench.scenario.fabric().hosts))
    most, wanted = (MB, 10) if extent.is_quick else (4 * MB, 100)
    size, steps = fitted(bench, "all-reduce", ranks, most, wanted)
    ops = ("all-reduce", "all-to-all")
    first = [job_case(bench, "12.1", ranks, 0, size, 4, op) for op in ops]
    found = yield first
    # A job that computes for a quarter of the time its collective takes sends four fifths of it.
    rests = {
        op: round((each.result.jct_ns or 0) / 4 * (1 / LOAD - 1))
        for op, each in zip(ops, found, strict=True)
    }
    cases = [
        job_case(bench, "12.1", ranks, rests[op], size, steps, op, seed=1 + at)
        for at, op in enumerate(ops * (rounds // 2 or 1))
    ]
    found = yield cases
    rows: list[Row] = []
    series: dict[str, dict[float, float]] = {op: {} for op in ops}
    passed = 0.0
    histories: dict[str, list[list[Any]]] = {op: [[], [], [], [], []] for op in ops}
    for at, (each, one) in enumerate(zip(found, cases, strict=True)):
        op = ops[at % 2]
        ratios = ratio(each, ranks, rests[op], size, steps, bench.rate_gbps, op)
        passed += each.result.duration_ns
        sent = max(1.0, each.figure("roce.data_packets"))
        histories[op][0] += ratios
        histories[op][1].append(each.figure("ecn.marked_packets") / sent)
        histories[op][2].append(each.figure("pfc.xoff_frames"))
        histories[op][3].append(each.figure("drops.total"))
        histories[op][4].append(one)
        if ratios:
            series[op][passed] = ratios[0]
    for op in ops:
        ratios = histories[op][0]
        rows.append(
            Row({"collective": op, "N": str(ranks), "message": size_text(size)},
                {"JCT ratio": ratios,
                 "standard deviation": [stdev(ratios)] if len(ratios) > 1 else [],
                 "ECN ratio": histories[op][1], "pause frames": histories[op][2],
                 "dropped": histories[op][3]},
                histories[op][4])
        )  # fmt: skip
    return Outcome(
        [Table("Sustained load", {
            "JCT ratio": "times", "standard deviation": "times", "ECN ratio": "share",
            "pause frames": "count", "dropped": "count"}, rows)],
        "JCT ratio",
        [Plot("JCT ratio over time", ("fabric time", "ns"), ("JCT ratio", "times"), series)],
        deviations=(
            FITTED,
            f"{duration(passed)} of fabric time in {len(cases)} runs, not 24 hours: the simulator "
            "is not one machine that ages. `closlab chaos --for 24h` is the soak on Mininet.",
            "80 % of throughput is a job that rests for a quarter of its collective's own time.",
        ),
    )  # fmt: skip

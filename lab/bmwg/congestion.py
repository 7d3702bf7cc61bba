"""Section 7: marks, pauses, how DCQCN converges, and what storms and circles do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lab.bmwg.arithmetic import marking, red, settles, slope, windows
from lab.bmwg.balancing import goodput_gbps
from lab.bmwg.bench import KB, MB, Bench
from lab.bmwg.case import Asks, Case, Found, together
from lab.bmwg.outcome import Outcome, Plot, Row, Table
from params.quantity import duration
from params.quantity import size as size_text

_THRESHOLDS = (100 * KB, MB, 5 * MB)
_PMAX = 0.5
_WAVES = 2 * MB  # by a threshold: how often a queue grows and shrinks, for enough packets are there
_BINS = 10  # between threshold and maximum
_FRAME = 4096 + 100  # about: only to tell how many packets a stretch of bytes is
WITHIN = 0.10  # of the fair share
_WINDOW_NS = 100_000  # over which a flow's rate is taken, at least
_WINDOW_FRAMES = 40  # of the fair share: of ten, one more or less would be a tenth
_RATIOS = (2, 4, 8, 16, 32, 64)


# --- 7.1 -----------------------------------------------------------------------------------------


def ecn(bench: Bench) -> Asks[Outcome]:
    """Two hosts write to one, so that its queue grows through all depths and shrinks again."""
    done = yield from together([_marks(bench, threshold) for threshold in _THRESHOLDS])
    rows = [row for row, _ in done]
    series = {f"T = {size_text(t)}": shown for t, (_, shown) in zip(_THRESHOLDS, done, strict=True)}
    series["as configured"] = {x: red(x, 1.0, 2.0, _PMAX) for x in (0.0, 1.0, 1.9999, 2.0, 2.5)}
    return Outcome(
        [Table("Marks by queue", {
            "threshold found": "bytes", "deviation": "change", "marked below T": "share",
            "marked above 2 T": "share", "ramp off by": "share"}, rows)],
        "threshold found",
        [Plot("Marked share by queue", ("queue, in T", "times"), ("marked", "share"), series)],
        deviations=(
            "T is Kmin; Kmax is 2 T and Pmax 0.5, since a single threshold has no ramp.",
            "The queue is noted every 200 ns, and a packet counts to the queue that is half way "
            "between two notes.",
        ),
    )  # fmt: skip


def _marks(bench: Bench, threshold: int) -> Asks[tuple[Row, dict[float, float]]]:
    cases = [
        bench.case(
            "7.1",
            {"kind": "flows", "messages": max(1, _WAVES // threshold), "rest_ns": "10us", "flows": [
                {"src": src, "dst": "h1", "bytes": 4 * threshold} for src in _others(bench)]},
            seed=seed, series_ns=200,
            topology=bench.grown(max(3, len(bench.scenario.fabric().hosts))),
            buffer={"bytes": 64 * MB, "alpha": 1}, pfc={"enabled": True},
            ecn={"enabled": True, "kmin": threshold, "kmax": 2 * threshold, "pmax": _PMAX},
            transport={"cc": "none", "window": 1 << 20},
        )
        for seed in range(1, bench.extent.repeats(20, 2) + 1)
    ]  # fmt: skip
    found = yield cases
    figures: dict[str, list[float]] = {
        name: []
        for name in ("threshold found", "deviation", "marked below T", "marked above 2 T",
                     "ramp off by")
    }  # fmt: skip
    pooled: list[tuple[float, int, int]] = []
    width = threshold / _BINS
    for each in found:
        samples = queue_samples(each, _towards(each, "h1"))
        pooled += samples
        shares = marking(samples, width)
        ramp = {q: s for q, s in shares.items() if threshold < q < 2 * threshold}
        below = [each for each in samples if each[0] < threshold - width]
        above = [each for each in samples if each[0] > 2 * threshold + width]
        at = _crosses([(q, s) for q, s in ramp.items() if s > 0])
        if at is not None:
            figures["threshold found"].append(at)
            figures["deviation"].append(at / threshold - 1)
        figures["marked below T"] += _share(below)
        figures["marked above 2 T"] += _share(above)
        if ramp:
            off = [abs(s - red(q, threshold, 2 * threshold, _PMAX)) for q, s in ramp.items()]
            figures["ramp off by"].append(sum(off) / len(off))
    shown = {q / threshold: s for q, s in marking(pooled, width).items() if q < 2.5 * threshold}
    return Row({"T": size_text(threshold)}, figures, cases), shown


def _others(bench: Bench) -> list[str]:
    """The host beside h1 and the last of three at least: nothing but h1's link is on both their
    ways, so that it is there that the queue grows, whatever they hash to."""
    return ["h2", f"h{max(3, len(bench.scenario.fabric().hosts))}"]


def queue_samples(found: Found, link: str) -> list[tuple[float, int, int]]:
    """Between two notes of a link: its queue in the middle, packets sent, packets marked."""
    notes = found.run.notes_of.get(link, [])
    return [
        (
            (before.queue_bytes + after.queue_bytes) / 2,
            max(after.marked - before.marked, round((after.bytes - before.bytes) / _FRAME)),
            after.marked - before.marked,
        )
        for before, after in pairwise(notes)
        if after.bytes > before.bytes
    ]


def _share(samples: Sequence[tuple[float, int, int]]) -> list[float]:
    packets = sum(each[1] for each in samples)
    return [sum(each[2] for each in samples) / packets] if packets else []


def _crosses(points: Sequence[tuple[float, float]]) -> float | None:
    """Where the line through the ramp's points is 0."""
    if len(points) < 2 or not (rise := slope(points)):
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return mean_x - mean_y / rise


# --- 7.2 -----------------------------------------------------------------------------------------

PAUSES = {
    "throughput by line rate": "share", "pause frames a second": "count",
    "into hosts' links": "count", "into fabric links": "count", "a port paused": "ns",
    "most paused port": "ns", "longest queue": "bytes", "storms": "count", "dropped": "count",
}  # fmt: skip


def pfc(bench: Bench) -> Asks[Outcome]:
    """N hosts write to one at line rate, without congestion control."""
    ratios = [n for n in bench.extent.some(_RATIOS, (2, 8)) if not (bench.is_small and n > 8)]

    def row(senders: int) -> Asks[Row]:
        cases = [
            incast(bench, "7.2", senders, seed, transport={"cc": "none"}, pfc={"enabled": True})
            for seed in range(1, bench.extent.repeats(20, 2) + 1)
        ]
        found = yield cases
        return Row({"senders": f"{senders}:1"}, pauses(bench, found), cases)

    rows = yield from together([row(senders) for senders in ratios])
    plot = {"throughput": {
        float(n): row.mean("throughput by line rate") or 0.0
        for n, row in zip(ratios, rows, strict=True)
    }}  # fmt: skip
    return Outcome(
        [Table("Pauses under incast", PAUSES, rows)],
        "throughput by line rate",
        [Plot("Throughput by incast ratio", ("senders", "count"), ("throughput", "share"), plot)],
        deviations=(
            "The buffer is 8 MB, so that an incast fills it in a fraction of a second.",
            "How long a port was paused in all is told of those that were, as their mean and of "
            "the one that was most.",
        ),
    )


def incast(bench: Bench, section: str, senders: int, seed: int, **changes: Any) -> Case:
    """N to one, each sender a share of 16 MB: twice the buffer."""
    traffic = {"kind": "incast", "receiver": "h1", "senders": senders, "bytes": 16 * MB // senders}
    settings: dict[str, Any] = {"buffer": {"bytes": 8 * MB}, **changes}
    return bench.case(section, traffic, seed=seed, topology=bench.grown(senders + 1), **settings)


def pauses(bench: Bench, runs: Sequence[Found]) -> dict[str, list[float]]:
    """What was paused, how often and for how long, and what arrived meanwhile."""
    figures: dict[str, list[float]] = {name: [] for name in PAUSES}
    for found in runs:
        by_link = found.result.pfc.by_link
        hosts = {name: each for name, each in by_link.items() if name.startswith("h")}
        frames = {name: each.xoff_frames for name, each in by_link.items()}
        times = [each.paused_ns for each in by_link.values()] or [0]
        seconds = max(1, found.result.duration_ns) / 1e9
        figures["throughput by line rate"].append(goodput_gbps(found) / bench.rate_gbps)
        figures["pause frames a second"].append(found.figure("pfc.xoff_frames") / seconds)
        figures["into hosts' links"].append(sum(each.xoff_frames for each in hosts.values()))
        figures["into fabric links"].append(sum(frames.values()) - figures["into hosts' links"][-1])
        figures["a port paused"].append(sum(times) / len(times))
        figures["most paused port"].append(max(times))
        figures["longest queue"].append(
            max((use.max_queue_bytes or 0 for use in found.result.links), default=0)
        )
        figures["storms"].append(sum(found.result.pfc.storms.values()))
        figures["dropped"].append(found.result.drops.total)
    return figures


# --- 7.3 -----------------------------------------------------------------------------------------

_M = (4, 16, 64, 256)
_T0_NS = 1_000_000
CONVERGENCE = {
    "convergence": "ns", "converged": "yes", "largest deviation at the end": "share",
    "longest queue": "bytes", "pause frames": "count", "dropped": "count",
}  # fmt: skip


def dcqcn(bench: Bench) -> Asks[Outcome]:
    """M flows to one host, M more at T0: when do all 2 M have the fair share within a tenth?"""
    flows = [m for m in bench.extent.some(_M, (4,)) if not (bench.is_small and m > 4)]
    settings = {
        "as published": {"cc": "dcqcn", "dcqcn": {"profile": "paper"}},
        "as NVIDIA's adapters": {"cc": "dcqcn", "dcqcn": {"profile": "mlx5"}},
        "as published, rising 10 times as often": {
            "cc": "dcqcn",
            "dcqcn": {"profile": "paper", "increase_interval_ns": 150_000},
        },
    }
    rows = yield from together([
        convergence(bench, "7.3", m, name, transport=transport)
        for m in flows
        for name, transport in settings.items()
    ])  # fmt: skip
    return Outcome(
        [Table("Convergence", CONVERGENCE, rows)],
        "largest deviation at the end",
        deviations=(
            WINDOWED,
            "All 2 M must stay within a tenth from then on until the end of the run, "
            f"{duration(_horizon(bench))} after T0; where they did not, no time is told.",
        ),
    )


WINDOWED = (
    "Each flow has a host of its own, so that its rate is what its port carries. It is taken over "
    f"windows of {duration(_WINDOW_NS)}, or as long as {_WINDOW_FRAMES} frames take at the fair "
    "share; the draft names no window."
)


def _horizon(bench: Bench) -> int:
    return 4_000_000 if bench.extent.is_quick else 20_000_000


def window_ns(bench: Bench, flows: int) -> int:
    """Over which rates of so many flows are taken, in whole steps."""
    fair_ns = 8 * _FRAME * flows / bench.rate_gbps
    return _WINDOW_NS * max(1, math.ceil(_WINDOW_FRAMES * fair_ns / _WINDOW_NS))


def convergence(bench: Bench, section: str, m: int, name: str, **changes: Any) -> Asks[Row]:
    """The same of any transport."""
    end_ns = _T0_NS + _horizon(bench)
    each = round(bench.rate_gbps / 8 * end_ns / m)  # more than any can send until the end
    senders = range(2, 2 * m + 2)
    cases = [
        bench.case(
            section,
            {"kind": "flows", "flows": [
                {"src": f"h{n}", "dst": "h1", "bytes": each, "at_ns": 0 if at < m else _T0_NS}
                for at, n in enumerate(senders)]},
            seed=seed, topology=bench.grown(2 * m + 1), series_ns=_WINDOW_NS // 2, limit_ns=end_ns,
            **changes,
        )
        for seed in range(1, bench.extent.repeats(5, 1) + 1)
    ]  # fmt: skip
    found = yield cases
    width = window_ns(bench, 2 * m)
    figures: dict[str, list[float]] = {figure: [] for figure in CONVERGENCE}
    for one in found:
        rates = [
            [one.gbps(_port(one, f"h{n}"), _T0_NS + since, _T0_NS + until) for n in senders]
            for since, until in windows(_horizon(bench), width)
        ]
        settled = settles(rates, WITHIN)
        if settled is not None:
            figures["convergence"].append(settled * width)
        figures["converged"].append(float(settled is not None))
        fair = sum(rates[-1]) / len(rates[-1])
        figures["largest deviation at the end"].append(
            max(abs(rate / fair - 1) for rate in rates[-1]) if fair else 1.0
        )
        figures["longest queue"].append(
            max((use.max_queue_bytes or 0 for use in one.result.links), default=0)
        )
        figures["pause frames"].append(one.figure("pfc.xoff_frames"))
        figures["dropped"].append(one.figure("drops.total"))
    return Row({"M": str(m), "transport": name}, figures, cases)


def _towards(found: Found, host: str) -> str:
    """The direction by which a host receives."""
    return next(use.name for use in found.result.links if use.name.endswith(f">{host}"))


def _port(found: Found, host: str) -> str:
    """The direction by which a host sends."""
    return next(use.name for use in found.result.links if use.name.startswith(f"{host}>"))


# --- 7.4 -----------------------------------------------------------------------------------------

_CIRCLE: dict[str, Any] = {"kind": "leaf-spine", "leaves": 4, "spines": 2, "hosts_per_leaf": 2}
_LEFT = ["leaf1-spine2", "leaf3-spine1"]  # dead: so two leaves go up and down twice


def deadlock(bench: Bench) -> Asks[Outcome]:
    """Buffers that wait for one another in a circle, and an adapter that never stops pausing."""
    size = MB if bench.extent.is_quick else 16 * MB
    ways = [(1, 5), (2, 6), (5, 1), (6, 2), (3, 7), (4, 8), (7, 3), (8, 4)]
    circle = {"kind": "flows", "flows": [
        {"src": f"h{src}", "dst": f"h{dst}", "bytes": size} for src, dst in ways]}  # fmt: skip
    dead = [{"at_ns": 0, "action": "down", "link": link} for link in _LEFT]
    storm = [{"at_ns": "10us", "action": "storm", "host": "h1", "for_ns": "3ms"}]
    alltoall = {"kind": "collective", "op": "all-to-all", "bytes": 4 * size}
    tried: dict[str, tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]] = {
        "circle of buffers": (circle, dead, {"policy": "spray"}),
        "pause storm of an adapter": (alltoall, storm, {"policy": "ecmp"}),
    }

    def row(name: str, watchdog: str) -> Asks[Row]:
        traffic, faults, lb = tried[name]
        cases = [
            bench.case(
                "7.4", traffic, seed=seed, faults=faults, lb=lb, topology=_CIRCLE,
                link={"rate_gbps": 100, "delay_ns": 1000}, buffer={"bytes": 500 * KB},
                ecn={"enabled": False}, limit_ns="20ms",
                pfc={"enabled": True, "watchdog_ns": watchdog}, reroute_ns="500us",
                transport={"cc": "none", "rto_ns": "1ms", "retry_limit": 50,
                           "recovery": "selective"},
            )
            for seed in range(1, bench.extent.repeats(5, 1) + 1)
        ]  # fmt: skip
        found = yield cases
        row = {
            "arrived": [each.result.flows.completed / each.result.flows.count for each in found],
            "run": [float(each.result.duration_ns) for each in found],
            "watchdog events": [float(sum(e.result.pfc.storms.values())) for e in found],
            "dropped": [each.figure("drops.total") for each in found],
            "most paused port": [
                float(max((p.longest_ns for p in e.result.pfc.by_link.values()), default=0))
                for e in found
            ],
        }
        return Row({"traffic": name, "watchdog": watchdog if watchdog != "0ns" else "off"},
                   row, cases)  # fmt: skip

    rows = yield from together([row(name, dog) for name in tried for dog in ("200us", "0ns")])
    return Outcome(
        [Table("Storms and deadlocks", {
            "arrived": "share", "run": "ns", "watchdog events": "count", "dropped": "count",
            "most paused port": "ns"}, rows)],
        "arrived",
        deviations=(
            "20 ms at most instead of 300 s: what stands still for that long, with nothing left "
            "to change, stands still for good.",
            "The draft names no pattern: it is two dead cables in a fabric of four leaves and two "
            "spines, by which four buffers wait for one another; links have 100 Gb/s and switches "
            "500 KB, so that these fill.",
        ),
        anomalies=[
            f"{row.of['traffic']}, watchdog {row.of['watchdog']}: "
            f"{row.mean('arrived') or 0:.0%} of the messages arrived"
            for row in rows
            if (row.mean("arrived") or 0) < 1
        ],
    )  # fmt: skip

"""The figures of a run worth comparing: what they are called, where they stand, how they read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.quantity import duration, number, percent, size
from lab.result import Result


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a run."""

    key: str  # for machines: where it stands in result.json
    name: str
    of: Callable[[Result], float | None]
    text: Callable[[float], str]

    def told(self, result: Result) -> str:
        """The figure as people read it; a dash where it does not apply."""
        value = self.of(result)
        return "\N{EN DASH}" if value is None else self.text(value)


def gbps(value: float) -> str:
    """A rate."""
    return f"{number(value)} Gb/s"


def times(value: float) -> str:
    """A factor."""
    return f"{number(value)} \N{MULTIPLICATION SIGN}"


def count(value: float) -> str:
    """A number of things."""
    return f"{value:,.0f}"


FIGURES = (
    Figure("duration_ns", "whole run", lambda r: r.duration_ns, duration),
    Figure("jct_ns", "job completion time", lambda r: r.jct_ns, duration),
    Figure("gpu_utilisation", "GPUs computing", lambda r: r.gpu_utilisation, percent),
    Figure(
        "collective.busbw_gbps",
        "bus bandwidth",
        lambda r: r.collective.busbw_gbps if r.collective else None,
        gbps,
    ),
    Figure("flows.completed", "messages complete", lambda r: r.flows.completed, count),
    Figure("flows.failed", "messages incomplete", lambda r: r.flows.failed, count),
    Figure(
        "flows.fct_ns.p50",
        "completion time, median",
        lambda r: r.flows.fct_ns.p50 if r.flows.fct_ns else None,
        duration,
    ),
    Figure(
        "flows.fct_ns.p99",
        "completion time, 99 %",
        lambda r: r.flows.fct_ns.p99 if r.flows.fct_ns else None,
        duration,
    ),
    Figure(
        "flows.fct_ns.max",
        "completion time, longest",
        lambda r: r.flows.fct_ns.max if r.flows.fct_ns else None,
        duration,
    ),
    Figure(
        "flows.slowdown.p50",
        "slowdown, median",
        lambda r: r.flows.slowdown.p50 if r.flows.slowdown else None,
        times,
    ),
    Figure(
        "flows.slowdown.max",
        "slowdown, worst",
        lambda r: r.flows.slowdown.max if r.flows.slowdown else None,
        times,
    ),
    Figure("drops.total", "packets dropped", lambda r: r.drops.total, count),
    Figure(
        "roce.retransmitted_packets",
        "packets sent again",
        lambda r: r.roce.retransmitted_packets,
        count,
    ),
    Figure("roce.timeouts", "timeouts", lambda r: r.roce.timeouts, count),
    Figure(
        "roce.out_of_order_packets",
        "packets out of order",
        lambda r: r.roce.out_of_order_packets,
        count,
    ),
    Figure("pfc.xoff_frames", "pause frames", lambda r: r.pfc.xoff_frames, count),
    Figure("pfc.paused_ns", "time paused, all links", lambda r: r.pfc.paused_ns, duration),
    Figure("ecn.marked_packets", "packets marked", lambda r: r.ecn.marked_packets, count),
    Figure("roce.cnps", "congestion notifications", lambda r: r.roce.cnps, count),
    Figure(
        "telemetry.hop_latency_ns.p50",
        "time at a hop, median",
        lambda r: p.p50 if r.telemetry and (p := r.telemetry.hop_latency_ns) else None,
        duration,
    ),
    Figure(
        "telemetry.hop_latency_ns.p99",
        "time at a hop, 99 %",
        lambda r: p.p99 if r.telemetry and (p := r.telemetry.hop_latency_ns) else None,
        duration,
    ),
    Figure("roce.data_packets", "data packets sent", lambda r: r.roce.data_packets, count),
    Figure("roce.data_bytes", "payload sent", lambda r: r.roce.data_bytes, size),
    Figure(
        "links.max_queue_bytes",
        "longest queue",
        lambda r: max((use.max_queue_bytes or 0 for use in r.links), default=0) or None,
        size,
    ),
    Figure(
        "links.utilisation",
        "busiest link",
        lambda r: max((use.utilisation for use in r.links), default=None),
        percent,
    ),
)

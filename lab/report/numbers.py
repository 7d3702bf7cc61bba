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
    text: Callable[[float], str]
    compute: Callable[[Result], float | None] | None = None  # where it does not stand there as such

    def of(self, result: Result) -> float | None:
        """The figure; None where it does not apply."""
        return self.compute(result) if self.compute else result.figure(self.key)

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
    Figure("duration_ns", "whole run", duration),
    Figure("jct_ns", "job completion time", duration),
    Figure("gpu_utilisation", "GPUs computing", percent),
    Figure("collective.busbw_gbps", "bus bandwidth", gbps),
    Figure("flows.completed", "messages complete", count),
    Figure("flows.failed", "messages incomplete", count),
    Figure("flows.fct_ns.p50", "completion time, median", duration),
    Figure("flows.fct_ns.p99", "completion time, 99 %", duration),
    Figure("flows.fct_ns.max", "completion time, longest", duration),
    Figure("flows.slowdown.p50", "slowdown, median", times),
    Figure("flows.slowdown.max", "slowdown, worst", times),
    Figure("drops.total", "packets dropped", count),
    Figure("roce.retransmitted_packets", "packets sent again", count),
    Figure("roce.timeouts", "timeouts", count),
    Figure("roce.out_of_order_packets", "packets out of order", count),
    Figure("pfc.xoff_frames", "pause frames", count),
    Figure("pfc.paused_ns", "time paused, all links", duration),
    Figure("ecn.marked_packets", "packets marked", count),
    Figure("roce.cnps", "congestion notifications", count),
    Figure("telemetry.hop_latency_ns.p50", "time at a hop, median", duration),
    Figure("telemetry.hop_latency_ns.p99", "time at a hop, 99 %", duration),
    Figure("roce.data_packets", "data packets sent", count),
    Figure("roce.data_bytes", "payload sent", size),
    Figure(
        "links.max_queue_bytes",
        "longest queue",
        size,
        lambda r: max((use.max_queue_bytes or 0 for use in r.links), default=0) or None,
    ),
    Figure(
        "links.utilisation",
        "busiest link",
        percent,
        lambda r: max((use.utilisation or 0 for use in r.links), default=0) or None,
    ),
)

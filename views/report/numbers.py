"""The figures of a run worth comparing: what they are called, where they stand, how they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.results.result import Result
from params.data import Data
from params.quantity import (
    BYTES,
    JOULES,
    NANOSECONDS,
    PER_CENT,
    PLAIN,
    Unit,
    duration,
    energy,
    number,
    percent,
    size,
)


class Kind(Data):
    """What kind of quantity a figure is."""

    text: Callable[[float], str]
    units: Sequence[Unit]  # for an axis


class Figure(Data):
    """One figure of a run."""

    key: str  # for machines: where it stands in result.json
    name: str
    kind: Kind
    compute: Callable[[Result], float | None] | None = None  # where it does not stand there as such

    def of(self, result: Result) -> float | None:
        """The figure; None where it does not apply."""
        return self.compute(result) if self.compute else result.figure(self.key)

    def text(self, result: Result) -> str:
        """The figure as people read it; a dash where it does not apply."""
        return self.read(self.of(result))

    def read(self, value: float | None) -> str:
        """The same of a value."""
        return "\N{EN DASH}" if value is None else self.kind.text(value)


def gbps(value: float) -> str:
    """A rate."""
    return f"{number(value)} Gb/s"


def times(value: float) -> str:
    """A factor."""
    return f"{number(value)} \N{MULTIPLICATION SIGN}"


def count(value: float) -> str:
    """A number of things."""
    return f"{value:,.0f}"


DURATION, SIZE = Kind(duration, NANOSECONDS), Kind(size, BYTES)
SHARE, COUNT = Kind(percent, PER_CENT), Kind(count, PLAIN)
ENERGY = Kind(energy, JOULES)
RATE, FACTOR = Kind(gbps, (Unit("Gb/s", 1),)), Kind(times, PLAIN)

FIGURES = (
    Figure("duration_ns", "whole run", DURATION),
    Figure("jct_ns", "job completion time", DURATION),
    Figure("cluster.jct_ns.p50", "job from arrival to end, median", DURATION),
    Figure("cluster.jct_ns.max", "job from arrival to end, longest", DURATION),
    Figure("cluster.queued_ns.p50", "job in the queue, median", DURATION),
    Figure("cluster.queued_ns.max", "job in the queue, longest", DURATION),
    Figure("cluster.slowdown.p50", "job's slowdown by the fabric, median", FACTOR),
    Figure("cluster.slowdown.max", "job's slowdown by the fabric, worst", FACTOR),
    Figure("cluster.allocated", "hosts given to jobs", SHARE),
    Figure("cluster.utilisation", "hosts computing", SHARE),
    Figure("cluster.fragmentation", "free hosts in broken racks", SHARE),
    Figure("cluster.racks", "racks by least possible", FACTOR),
    Figure("gpu_utilisation", "GPUs computing", SHARE),
    Figure("collective.busbw_gbps", "bus bandwidth", RATE),
    Figure("flows.completed", "messages complete", COUNT),
    Figure("flows.failed", "messages incomplete", COUNT),
    Figure("flows.fct_ns.p50", "completion time, median", DURATION),
    Figure("flows.fct_ns.p99", "completion time, 99 %", DURATION),
    Figure("flows.fct_ns.max", "completion time, longest", DURATION),
    Figure("flows.slowdown.p50", "the time alone, median message", FACTOR),
    Figure("flows.slowdown.max", "the time alone, worst message", FACTOR),
    Figure("drops.total", "packets dropped", COUNT),
    Figure("roce.retransmitted_packets", "packets sent again", COUNT),
    Figure("roce.timeouts", "timeouts", COUNT),
    Figure("roce.out_of_order_packets", "packets out of order", COUNT),
    Figure("pfc.xoff_frames", "pause frames", COUNT),
    Figure("pfc.paused_ns", "time paused, all links", DURATION),
    Figure("ecn.marked_packets", "packets marked", COUNT),
    Figure("roce.cnps", "congestion notifications", COUNT),
    Figure("telemetry.hop_latency_ns.p50", "time at a hop, median", DURATION),
    Figure("telemetry.hop_latency_ns.p99", "time at a hop, 99 %", DURATION),
    Figure("roce.data_packets", "data packets sent", COUNT),
    Figure("roce.data_bytes", "payload sent", SIZE),
    Figure(
        "links.max_queue_bytes",
        "longest queue",
        SIZE,
        lambda r: max((use.max_queue_bytes or 0 for use in r.links), default=0) or None,
    ),
    Figure(
        "links.utilisation",
        "busiest link",
        SHARE,
        lambda r: max((use.utilisation for use in r.links), default=0) or None,
    ),
    Figure("energy.total_j", "energy, by published figures", ENERGY),
    Figure("energy.per_bit_j", "energy of a payload bit", ENERGY),
    Figure("energy.idle_share", "energy that idle ports take, too", SHARE),
)

BY_KEY = {figure.key: figure for figure in FIGURES}

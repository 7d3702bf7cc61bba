"""The draft's formulas, and the statistics of trials: plain functions of plain numbers."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, stdev

ALGO_FACTORS: Mapping[str, Callable[[int], float]] = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "all-gather": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
}
"""By collective, of N accelerators: fixed, whatever the algorithm (terminology draft, BusBW)."""


def variation(values: Sequence[float]) -> float | None:
    """The coefficient of variation: standard deviation by mean; of a single trial there is none."""
    if len(values) < 2 or not (mean := fmean(values)):
        return None
    return stdev(values) / mean


def fairness(loads: Sequence[float]) -> float:
    """Jain's index (section 8.4): 1 where all carry the same, 1/N where one carries all."""
    squares = sum(load * load for load in loads)
    return sum(loads) ** 2 / (len(loads) * squares) if squares else 1.0


def max_mean(loads: Sequence[float]) -> float:
    """MMR: the largest load by the mean one."""
    mean = fmean(loads)
    return max(loads) / mean if mean else 1.0


def bus_bandwidth(op: str, ranks: int, size: int, took_ns: float) -> float:
    """BusBW in Gb/s an accelerator: ``size`` bytes in ``took_ns``, by the fixed factor."""
    return 8 * size / took_ns * ALGO_FACTORS[op](ranks)


def roofline_ns(iterations: int, compute_ns: float, op: str, ranks: int, size: int,
                gbps: float) -> float:  # fmt: skip
    """Roofline_seq of section 10.1: Iterations x (C + 8 x S x algo_factor / B_acc)."""
    return iterations * (compute_ns + 8 * size * ALGO_FACTORS[op](ranks) / gbps)


def carried_by(story: Sequence[tuple[int, int]], at: float) -> int:
    """What had been carried by a time, as it was told last: while nothing is carried nothing is
    told, so that what comes next came all at the end of that while."""
    place = bisect_right(story, at, key=lambda moment: moment[0])
    return story[place - 1][1] if place else 0


def settles(rates: Sequence[Sequence[float]], within: float) -> int | None:
    """From which of several windows on all flows are within a share of the fair one, to the end.

    ``rates`` has a row for each window, in it the rate of every flow; fair is their mean.
    """
    first = None
    for at, row in enumerate(rates):
        fair = fmean(row)
        if fair and all(abs(rate / fair - 1) <= within for rate in row):
            first = at if first is None else first
        else:
            first = None
    return first


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The least-squares line's rise of y for 1 of x."""
    mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def marking(samples: Iterable[tuple[float, int, int]], width: float) -> dict[float, float]:
    """Which share of packets was marked, by the queue they left: (queue, packets, marked) in bins
    so many bytes wide, each told by its middle."""
    bins: dict[int, list[int]] = {}
    for queue, packets, marked in samples:
        bin_ = bins.setdefault(int(queue // width), [0, 0])
        bin_[0] += packets
        bin_[1] += marked
    return {
        (number + 0.5) * width: marked / packets
        for number, (packets, marked) in sorted(bins.items())
        if packets
    }


def red(queue: float, kmin: float, kmax: float, pmax: float) -> float:
    """The marking probability that is configured: 0 below Kmin, 1 from Kmax on, a line between."""
    if queue < kmin:
        return 0.0
    return 1.0 if queue >= kmax else pmax * (queue - kmin) / (kmax - kmin)


def windows(until: float, width: float) -> list[tuple[float, float]]:
    """Whole windows from 0 on, as many as end by ``until``."""
    return list(pairwise(number * width for number in range(math.floor(until / width) + 1)))

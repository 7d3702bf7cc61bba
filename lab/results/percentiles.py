"""Distributions in three numbers: the median, 99 %, and the most."""

from __future__ import annotations

from collections.abc import Sequence

from lab.results.part import Part
from traffic.measures import percentile


class Percentiles(Part):
    """A distribution in three numbers."""

    p50: float
    p99: float
    max: float


def percentiles(
    values: Sequence[float], weights: Sequence[int] | None = None
) -> Percentiles | None:
    """Those of a set of values, each of which is there so many times; none of nothing."""
    if not values:
        return None
    if weights is not None:
        return _weighted(sorted(zip(values, weights, strict=True)))
    ordered = sorted(values)
    return Percentiles(p50=percentile(ordered, 50), p99=percentile(ordered, 99), max=ordered[-1])


def _weighted(ordered: Sequence[tuple[float, int]]) -> Percentiles:
    total = sum(weight for _, weight in ordered)

    def at(percent: int) -> float:
        wanted, seen = -(-total * percent // 100), 0
        for value, weight in ordered:
            seen += weight
            if seen >= wanted:
                return value
        raise AssertionError("percentiles end at 100")

    return Percentiles(p50=at(50), p99=at(99), max=ordered[-1][0])

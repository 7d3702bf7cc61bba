"""What results are made of: frozen parts, and distributions in three numbers."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from traffic.measures import percentile


class Part(BaseModel):
    """A part of a result."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class Percentiles(Part):
    """A distribution in three numbers."""

    p50: float
    p99: float
    max: float


def percentiles(values: Sequence[float]) -> Percentiles | None:
    """Those of a set of values; none of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return Percentiles(p50=percentile(ordered, 50), p99=percentile(ordered, 99), max=ordered[-1])

"""Rates: at least a bit per second each, for none would mean no limit."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

MBPS, GBPS = 1_000_000, 1_000_000_000

Gbps = Annotated[float, Field(ge=1 / GBPS, le=10_000)]
LinkGbps = Annotated[float, Field(ge=0.001, le=10_000)]


def bps(rate: float, unit: int = GBPS) -> int:
    """Whole bits per second; what is something does not become nothing."""
    return round(rate * unit) or int(rate > 0)


def _is_whole_bit(mbps: float) -> float:
    if 0 < mbps * MBPS < 1:
        raise ValueError(f"it must be 0, or at least {1 / MBPS:g}: a bit per second")
    return mbps


Mbps = Annotated[float, AfterValidator(_is_whole_bit)]  # its bounds are those of what it is for

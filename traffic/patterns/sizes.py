"""How large flows are: distributions measured in data centres, by name.

Each is a cumulative distribution given at a few sizes, straight lines between them, as published
with the HPCC simulations: web search (from the DCTCP paper), Hadoop at Facebook, and distributed
storage at Alibaba, 2019. Most flows are small, and most bytes are in large flows.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from params.quantity import summed
from traffic.collectives import SizeError
from traffic.collectives.errors import nearest


@dataclass(frozen=True)
class SizeDistribution:
    """Points (bytes, share of flows no larger), ending at 1."""

    name: str
    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        ordered = all(a < b and p < q for (a, p), (b, q) in pairwise(self.points))
        if not ordered or self.points[0][1] != 0 or self.points[-1][1] != 1:
            raise SizeError(
                f"the size distribution '{self.name}' does not rise from 0 to 1",
                "give points (bytes, share), both increasing",
            )

    @property
    def mean(self) -> float:
        """The average size."""
        return summed((q - p) * (a + b) / 2 for (a, p), (b, q) in pairwise(self.points))

    def at(self, share: float) -> int:
        """The size that this share of flows does not exceed; at least one byte."""
        place = max(1, bisect_left(self.points, share, key=lambda point: point[1]))
        (low, below), (high, above) = self.points[place - 1 : place + 1]
        return max(1, round(low + (high - low) * (share - below) / (above - below)))

    def draw(self, chance: Random) -> int:
        """A random size."""
        return self.at(chance.random())


def _percent(name: str, *points: tuple[int, float]) -> SizeDistribution:
    return SizeDistribution(name, ((0, 0.0), *((size, share / 100) for size, share in points)))


SIZES = {
    distribution.name: distribution
    for distribution in (
        _percent(
            "websearch",
            (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53), (200_000, 60),
            (1_000_000, 70), (2_000_000, 80), (5_000_000, 90), (10_000_000, 97),
            (30_000_000, 100),
        ),
        _percent(
            "hadoop",
            (100, 1), (200, 2), (300, 5), (350, 15), (400, 20), (500, 30), (600, 40), (700, 50),
            (1_000, 60), (2_000, 67), (7_000, 70), (30_000, 72), (50_000, 82), (80_000, 87),
            (120_000, 90), (300_000, 95), (1_000_000, 97.5), (2_000_000, 99), (10_000_000, 100),
        ),
        _percent(
            "storage",
            (4_000, 22.93), (8_000, 69.21), (16_000, 80.61), (32_000, 90.47), (64_000, 93.53),
            (128_000, 96.77), (256_000, 97.53), (2_000_000, 100),
        ),
    )
}  # fmt: skip


def size_distribution(name: str) -> SizeDistribution:
    """The distribution of this name."""
    if name not in SIZES:
        raise SizeError(f"there is no size distribution '{name}'", nearest(name, SIZES))
    return SIZES[name]

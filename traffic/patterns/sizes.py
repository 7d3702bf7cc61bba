"""How large flows are: distributions measured in data centres, by name, or from a file.

Each is a cumulative distribution given at a few sizes, straight lines between them, as published
with the HPCC simulations: web search (from the DCTCP paper), Hadoop at Facebook, distributed
storage at Alibaba, 2019, and remote procedure calls at Google, 2008. Most flows are small, and most
bytes are in large flows.

A file has the form of HPCC's and ConWeave's, a point a line, sizes and shares never less than those
before them, the last share 100 (or 1):

    0 0
    10000 15       15 % of flows have 10,000 bytes or less
    30000000 100
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import pairwise
from pathlib import Path
from random import Random

from files import FileError, read_text
from params.data import Data
from params.quantity import summed
from traffic.collectives import SizeError
from traffic.collectives.errors import nearest


class SizeDistribution(Data):
    """Points (bytes, share of flows no larger), ending at 1."""

    name: str
    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        ordered = all(a <= b and p <= q for (a, p), (b, q) in pairwise(self.points))
        if not ordered or self.points[0][1] != 0 or self.points[-1][1] != 1:
            raise SizeError(
                f"the size distribution '{self.name}' does not rise from 0 to 1",
                "give points (bytes, share), neither less than the one before",
            )

    @property
    def mean(self) -> float:
        """The average size."""
        return summed((q - p) * (a + b) / 2 for (a, p), (b, q) in pairwise(self.points))

    def at(self, share: float) -> int:
        """The size that this share of flows does not exceed; at least one byte."""
        place = max(1, bisect_left(self.points, share, key=lambda point: point[1]))
        (low, below), (high, above) = self.points[place - 1 : place + 1]
        if above == below:  # nobody is between the two
            return max(1, low)
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
        _percent(  # without points that lie on a line with their neighbours, but for 0.02 %
            "google-rpc",
            (36, 10.8913), (77, 22.0705), (110, 31.8856), (158, 40.6446), (268, 52.3994),
            (313, 60.2272), (402, 70.6643), (573, 80.1695), (597, 80.7286), (623, 81.2878),
            (683, 82.406), (717, 82.9652), (755, 83.5243), (796, 84.0834), (843, 84.6426),
            (896, 85.2017), (956, 85.7608), (1_117, 87.081), (1_229, 87.842), (1_365, 88.6031),
            (1_536, 89.3641), (1_676, 89.8715), (1_843, 90.3788), (2_234, 91.3211),
            (2_521, 91.8647), (2_891, 92.4083), (3_277, 92.8431), (3_781, 93.278),
            (4_096, 93.4955), (4_617, 94.1583), (5_183, 94.7265), (5_521, 95.0105),
            (6_194, 95.484), (7_054, 95.9574), (8_957, 96.7789), (9_735, 97.0773),
            (10_663, 97.3756), (12_214, 97.7733), (14_292, 98.1711), (16_699, 98.4909),
            (18_091, 98.5771), (19_962, 98.674), (22_265, 98.7709), (25_170, 98.8679),
            (28_945, 98.9648), (33_250, 99.0485), (40_375, 99.1477), (47_600, 99.218),
            (59_500, 99.2966), (71_930, 99.3944), (80_798, 99.4719), (95_133, 99.5666),
            (119_156, 99.6742), (140_605, 99.7308), (184_125, 99.7892), (222_540, 99.8217),
            (267_387, 99.8494), (292_759, 99.8672), (324_761, 99.8856), (362_969, 99.9034),
            (407_188, 99.9198), (463_677, 99.9362), (529_425, 99.9503), (590_136, 99.9556),
            (662_487, 99.9607), (749_820, 99.9655), (922_664, 99.9723), (1_240_351, 99.9798),
            (1_960_314, 99.9879), (4_883_570, 99.9962), (10_668_901, 99.9992), (15_158_197, 100),
        ),
    )
}  # fmt: skip


_MAX_BYTES, _MAX_POINTS = 1_000_000, 20_000
_MAX_SIZE = 1 << 40


def is_file_name(name: str) -> bool:
    """Whether a distribution is given as a file's name, and not as its own."""
    return "/" in name or Path(name).suffix in (".txt", ".cdf", ".csv")


def size_distribution(name: str) -> SizeDistribution:
    """The distribution of this name, or that a file of this name has."""
    if is_file_name(name):
        return read_sizes(Path(name))
    if name not in SIZES:
        raise SizeError(
            f"there is no size distribution '{name}'",
            f"{nearest(name, SIZES)}; or name a file, such as ./sizes.txt",
        )
    return SIZES[name]


def read_sizes(path: Path) -> SizeDistribution:
    """A distribution from a file of points."""
    try:
        text = read_text(path, _MAX_BYTES)
    except FileError as error:
        raise SizeError(str(error)) from None
    points: list[tuple[int, float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        said = line.partition("#")[0].replace(",", " ").split()
        if not said:
            continue
        try:
            points.append(_point(said, points[-1] if points else (0, 0.0)))
        except SizeError as error:
            raise SizeError(f"{path}:{number}: {error.message}", error.cure) from None
        if len(points) > _MAX_POINTS:
            raise SizeError(f"{path}: more than {_MAX_POINTS:,} points")
    whole = points[-1][1] if points else 0
    if whole not in (1, 100) or points[-1][0] < 1:
        raise SizeError(
            f"{path}: the last line says that {whole:g} % of flows are no larger",
            "all are no larger than the largest: end with 100, or with 1 if shares are of 1",
        )
    first = [(points[0][0], 0.0)] if points[0][1] > 0 else []
    shares = [(size, share / whole) for size, share in points]
    return SizeDistribution(path.stem, (*first, *shares))


def _point(said: list[str], before: tuple[int, float]) -> tuple[int, float]:
    """A line's size and share."""
    try:
        size, share = (float(each) for each in said)
    except ValueError:
        raise SizeError(
            f"'{' '.join(said)[:60]}' is no point", "write bytes and per cent"
        ) from None
    if not (math.isfinite(size) and math.isfinite(share)) or size > _MAX_SIZE:
        raise SizeError(f"'{' '.join(said)[:60]}' is no point", f"up to {_MAX_SIZE:,} bytes can be")
    if size < before[0] or not before[1] <= share <= 100:
        raise SizeError(
            f"{size:g} bytes and {share:g} % follow {before[0]} bytes and {before[1]:g} %",
            "sizes and shares never become less, and no share is above 100",
        )
    return round(size), share

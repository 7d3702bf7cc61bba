"""Chance, as everything here draws from it: all of it follows from one seed."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, TypeVar

_T = TypeVar("_T")
Section = dict[str, Any]


class Lot:
    """A seed's chance."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311
        self.seed = seed

    def chance(self, of: float) -> bool:
        """Whether something happens that does so in this share of cases."""
        return self._random.random() < of

    def one(self, among: Sequence[_T]) -> _T:
        """One of these."""
        return self._random.choice(among)

    def some(self, among: Sequence[_T], count: int) -> list[_T]:
        """So many of these, each once."""
        return self._random.sample(among, count)

    def upto(self, most: int, least: int = 1) -> int:
        """A number, the most included."""
        return self._random.randint(least, most)

    def share(self, least: float = 0.0, most: float = 1.0) -> float:
        """A number between, of few digits."""
        return float(f"{self._random.uniform(least, most):.3g}")

    def wide(self, least: float, most: float) -> int:
        """A whole number, each order of magnitude as likely."""
        return max(1, round(math.exp(self._random.uniform(math.log(least), math.log(most)))))

    def maybe(self, of: float, **keys: Any) -> Section:
        """These keys in a share of cases, or none. Their values are drawn in any case."""
        return keys if self.chance(of) else {}

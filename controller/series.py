"""Time series: what was read off switches, when."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of one cell."""

    time_s: float  # since the series began
    switch: str
    name: str  # of the counter or register
    index: int
    value: int


@dataclass(slots=True)
class Series:
    """Readings in the order they were made; a cell is kept again only when it changed."""

    samples: list[Sample] = field(default_factory=list)
    _latest: dict[tuple[str, str, int], int] = field(default_factory=dict)

    def add(self, time_s: float, switch: str, name: str, cells: Iterable[tuple[int, int]]) -> None:
        """Add readings of an array's cells."""
        for index, value in cells:
            cell = switch, name, index
            if self._latest.get(cell, 0) != value:
                self._latest[cell] = value
                self.samples.append(Sample(time_s, switch, name, index, value))

    def of(self, switch: str, name: str, index: int) -> list[tuple[float, int]]:
        """One cell's story."""
        return [
            (sample.time_s, sample.value)
            for sample in self.samples
            if (sample.switch, sample.name, sample.index) == (switch, name, index)
        ]

    def rates(self, switch: str, name: str, index: int) -> Iterator[tuple[float, float]]:
        """How fast a counter grew from one reading to the next, per second."""
        story = self.of(switch, name, index)
        for (before, was), (after, became) in pairwise(story):
            yield after, (became - was) / (after - before)

    def save(self, path: Path) -> None:
        """Write all of it as CSV."""
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("time_s", "switch", "name", "index", "value"))
            for sample in self.samples:
                writer.writerow(
                    (
                        f"{sample.time_s:.6f}",
                        sample.switch,
                        sample.name,
                        sample.index,
                        sample.value,
                    )
                )

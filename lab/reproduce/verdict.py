"""What the lab comes to beside what was published, line by line, and whether that holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from heapq import heapreplace
from statistics import median
from typing import Any

from lab.reproduce.observed import Observed
from lab.reproduce.paper import Line, Reproduction
from params.data import Data

PROCESSORS = 4
"""On which a reproduction is to take ten minutes at most."""


class Verdict(Enum):
    """How a reproduction stands."""

    WITHIN = "within its criterion"
    OUTSIDE = "not within its criterion"
    UNVERIFIED = "from memory, unverified"


class Compared(Data):
    """A line, with what each seed comes to."""

    line: Line
    by_seed: tuple[float, ...]

    @property
    def ours(self) -> float:
        """What is judged."""
        return median(self.by_seed)

    @property
    def holds(self) -> bool | None:
        """Whether the criterion is met; None where there is none."""
        return self.line.judge(self.ours)

    @property
    def seeds_held(self) -> int:
        """In how many seeds it would be met."""
        return sum(bool(self.line.judge(ours)) for ours in self.by_seed)

    @property
    def ratio(self) -> float | None:
        """Ours over theirs, where that is one figure other than 0."""
        published = self.line.published
        return self.ours / published[0] if len(published) == 1 and published[0] else None

    def record(self) -> dict[str, Any]:
        """For machines."""
        line = self.line
        return {
            "what": line.what,
            "theirs": list(line.published) or line.theirs,
            "ours": self.ours,
            "by_seed": list(self.by_seed),
            "unit": line.unit if line.holds is None else "holds",
            "ratio": self.ratio,
            "formula": line.formula.text,
            "criterion": line.criterion,
            "holds": self.holds,
            "reason": line.reason,
        }


class Judged(Data):
    """A reproduction, with all its lines compared."""

    name: str
    paper: Reproduction
    lines: tuple[Compared, ...]
    causes: tuple[Compared, ...]
    took_s: float = 0.0
    """How long its runs take on so many processors."""

    @property
    def verdict(self) -> Verdict:
        """By the lines that have a criterion: all must meet it."""
        if not self.paper.source.verified:
            return Verdict.UNVERIFIED
        held = all(line.holds is not False for line in self.lines)
        return Verdict.WITHIN if held else Verdict.OUTSIDE

    @property
    def sentence(self) -> str:
        """The verdict in a line."""
        judged = [line for line in self.lines if line.holds is not None]
        met = sum(bool(line.holds) for line in judged)
        return f"{self.verdict.value}: {met} of {len(judged)} lines are met"


def compared(name: str, paper: Reproduction, runs: Sequence[Mapping[str, Observed]]) -> Judged:
    """What a reproduction's runs come to; of each seed the runs by their cases."""

    def each(lines: Sequence[Line]) -> tuple[Compared, ...]:
        return tuple(
            Compared(line, tuple(line.formula.value(seed) for seed in runs)) for line in lines
        )

    return Judged(name, paper, each(paper.lines), each(paper.causes))


def took_s(times: Iterable[float], processors: int = PROCESSORS) -> float:
    """How long jobs of such processor times take on so many processors, each taken when one is
    free."""
    free_at = [0.0] * processors
    for time in times:
        heapreplace(free_at, free_at[0] + time)
    return max(free_at)

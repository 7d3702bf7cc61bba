"""Checks: what a submission must do, one thing each."""

from __future__ import annotations

from collections.abc import Callable

from course.bench import Bench
from params.data import Data


class Check(Data):
    """One thing that a submission must do, said as a sentence, and who judges it."""

    says: str
    points: int
    judge: Callable[[Bench], None]  # raises Wrong
    comes_last: bool = False  # judged only if nothing before is wrong: it takes a while


def check(
    says: str, points: int = 1, *, comes_last: bool = False
) -> Callable[[Callable[[Bench], None]], Check]:
    """Make a check of the function that judges it."""
    return lambda judge: Check(says, points, judge, comes_last)

"""What each test costs, in processor time, and which tests say most for it: `closlab test --quick`.

costs.csv has, by function of the default run, how many cases it had and what all of them took,
their children and fixtures included. Processor time says nearly the same on a busy machine as on a
quiet one. To note it anew and merge it in, whole files or all of them:

    closlab test --costs FILE tests
    python -m tests.costs FILE
"""

from __future__ import annotations

import csv
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

COSTS = Path(__file__).with_name("costs.csv")
# Of processor time: what the default run may take, on a processor half as slow again as the one
# documented, with what set-up builds there, and most other code compiled on the way. To be lowered.
DAY_S = 680.0
QUICK_S = 35.0  # of that; pytest itself and shared fixtures take about as much again


class Cost(NamedTuple):
    """A function's."""

    function: str
    cases: int
    seconds: float


def noted(path: Path | None = None) -> list[Cost]:
    """What was noted, some functions perhaps more than once."""
    with (path or COSTS).open(newline="") as file:
        return [Cost(name, int(cases), float(cost)) for name, cases, cost in csv.reader(file)]


def cheap(costs: list[Cost], budget_s: float = QUICK_S) -> set[str]:
    """The functions with the most cases for so much time; what nobody noted is none of them."""
    found = set()
    for cost in sorted(costs, key=lambda cost: (cost.seconds / cost.cases, cost.function)):
        budget_s -= cost.seconds
        if budget_s >= 0:
            found.add(cost.function)
    return found


def function_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def file_of(function: str) -> str:
    return function.partition("::")[0]


_ADDED = 0.0  # processor time of what this process asked others to start


def add(seconds: float) -> None:
    """Note what somebody else's child took, who started it for us."""
    global _ADDED  # noqa: PLW0603 - what a process has used is one number
    _ADDED += seconds


def spent() -> float:
    """Processor time of this process, of children it has waited for, and of what was added."""
    return sum(os.times()[:4]) + _ADDED


class Recorder:
    """Notes what the tests of this process cost."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cases: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before = spent()
        result = yield
        self.cases[function_of(item)] += 1
        self.seconds[function_of(item)] += spent() - before
        return result

    def pytest_sessionfinish(self) -> None:
        with self.path.open("a", newline="") as file:
            for name, cases in self.cases.items():
                csv.writer(file).writerow((name, cases, f"{self.seconds[name]:.2f}"))


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what is quick: no network is brought up, and no clock is waited for."""
    quick = cheap(noted())
    kept: list[pytest.Item] = []
    rest: list[pytest.Item] = []
    for item in items:
        is_quick = function_of(item) in quick and not (
            item.get_closest_marker("mininet") or item.get_closest_marker("clock")
        )
        (kept if is_quick else rest).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=rest)


def merge(path: Path) -> None:
    """Replace what is noted of files by what was noted of them anew."""
    cases: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    for cost in noted(path):
        cases[cost.function] += cost.cases
        seconds[cost.function] += cost.seconds
    files = {file_of(name) for name in cases}
    old = {cost.function: cost for cost in noted() if file_of(cost.function) not in files}
    new = {name: Cost(name, cases[name], seconds[name]) for name in cases}
    with COSTS.open("w", newline="") as file:
        for _, cost in sorted((old | new).items()):
            csv.writer(file, lineterminator="\n").writerow((*cost[:2], f"{cost.seconds:.2f}"))


if __name__ == "__main__":
    merge(Path(sys.argv[1]))

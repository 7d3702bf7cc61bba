"""How deep sweeps go: a sample by day, all of it by night, and as deep as the processor is quick.

`@pytest.mark.by_day(5)` leaves five of a test's cases to the default run; the others are `slow`.

Where a processor takes thirty times as long for ordinary work, as one that is interpreted does, the
default run would take hours, most of them for the hundredth seed of something. There a test that is
run for many seeds takes so many times fewer of them, from the first on, and so do examples that
Hypothesis draws; never fewer than MIN, and the run's first lines say it. With --reference so does
a test that asks p4c or BMv2 about many programs or scenarios, from all over them.

Processor time alone judges that: a machine that others keep busy, or that is given little of its
processors, runs all there is, however long it takes. Noise stays far below FROM.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest

from lab.machine.speed import processor_slowness
from tests.costs import function_of

FROM = 4.0  # times slower
MIN = 3
_NAME = "CLOSLAB_TESTS_FEWER"  # to workers, who have to choose the same

if _NAME not in os.environ:
    os.environ[_NAME] = f"{processor_slowness():.1f}"


def times_fewer() -> float:
    """By how much sweeps are cut here; 1 on a machine that is not slow."""
    slower = float(os.environ[_NAME])
    return slower if slower >= FROM else 1.0


def of(count: int) -> int:
    """How many of so many seeds or examples."""
    return min(count, max(MIN, round(count / times_fewer())))


def header() -> str | None:
    """What a run says of it, if there is anything to say."""
    fewer = times_fewer()
    return None if fewer == 1 else f"a slow processor: {fewer:.0f} times fewer seeds and examples"


class Case(NamedTuple):
    """A test: its function, and what it is run for."""

    function: str
    params: dict[str, Any]
    asks_reference: bool = False
    by_day: int | None = None  # so many of the sweep that it is one of

    @property
    def sweep(self) -> str | None:
        """What it is one seed, or one program, of, if it is."""
        if "seed" in self.params:
            others = sorted((name, repr(v)) for name, v in self.params.items() if name != "seed")
            return repr((self.function, others))
        return self.function if self.asks_reference or self.by_day else None


def chosen(
    cases: Sequence[Case], count_of: Callable[[Case, int], int] = lambda _, size: of(size)
) -> Iterator[bool]:
    """Whether each is kept; `count_of`: how many of a sweep that has so many."""
    sweeps = [case.sweep for case in cases]
    sizes, seen = Counter(sweeps), Counter[str | None]()
    for case, sweep in zip(cases, sweeps, strict=True):
        size, number = sizes[sweep], seen[sweep]
        seen[sweep] += 1
        count = count_of(case, size)
        # Seeds from the first on; programs, which are in some order, from everywhere.
        place = number if "seed" in case.params else number * count % size
        yield sweep is None or place < count


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep as much of each sweep as is to be run."""
    if times_fewer() == 1:
        return
    cases = [_case(item)._replace(by_day=None) for item in items]
    kept: list[pytest.Item] = []
    rest: list[pytest.Item] = []
    for item, keep in zip(items, chosen(cases), strict=True):
        (kept if keep else rest).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=rest)


def leave_to_night(items: list[pytest.Item]) -> None:
    """Mark as slow what is more than a day's."""
    ours = [i for i in items if i.get_closest_marker("by_day") and not i.get_closest_marker("slow")]
    cases = [_case(item) for item in ours]
    kept = chosen(cases, lambda case, size: min(case.by_day or size, size))
    for item, keep in zip(ours, kept, strict=True):
        if not keep:
            item.add_marker(pytest.mark.slow)


def _case(item: pytest.Item) -> Case:
    marker = item.get_closest_marker("by_day")
    return Case(
        function_of(item),
        _params(item),
        item.get_closest_marker("reference") is not None,
        marker.args[0] if marker else None,
    )


def _params(item: pytest.Item) -> dict[str, Any]:
    """What a test is run for."""
    return getattr(getattr(item, "callspec", None), "params", {})

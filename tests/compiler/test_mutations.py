"""Mutated programs: an answer for each, no traceback, none slow. `mutate.py` runs many more."""

import pytest

from .mutate import FOLDERS, run


def check(seed: int, count: int) -> None:
    print(f"seed {seed}, {count} mutations")
    outcome = run(seed, 0, count, FOLDERS)
    assert not outcome.failures, outcome.failures[0]
    assert outcome.accepted
    assert outcome.rejected > outcome.accepted


def test_some() -> None:
    check(seed=1, count=300)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [2, 3, 4])
def test_many(seed: int) -> None:
    check(seed, count=20_000)

"""What is said of steps that only nearly repeat, by steps of which all is known."""

from array import array
from itertools import accumulate, pairwise
from random import Random

import pytest

from lab.runs.steady_state import Steps, settled


def steps(lengths: list[int], late: list[int] | None = None) -> Steps:
    """Steps of these lengths, in which something happens so late."""
    begins = [0, *accumulate(lengths)]
    shapes = [array("q", [at]).tobytes() for at in late or [0] * len(lengths)]
    return Steps(begins, (min(lengths), max(lengths)), shapes)


def said(*jobs: Steps, meet: bool = True) -> float | str:
    """How wrong their pace may be; why that is not known."""
    found = settled({f"job {at}": job for at, job in enumerate(jobs)}, lambda *_: meet)
    return found if isinstance(found, str) else found.error


def noise(count: int, spread: int, seed: int) -> list[int]:
    """By lot, each without the others."""
    chance = Random(seed)
    return [100_000 + chance.randrange(-spread, spread + 1) for _ in range(count)]


def test_means_are_within_what_is_said() -> None:
    """Of 300 by lot, whose true mean is known: no more than chance would have."""
    beyond = 0
    for seed in range(300):
        lengths = noise(80, 5000, seed)
        error = said(steps(lengths))
        assert isinstance(error, float)
        beyond += abs(sum(lengths) / len(lengths) - 100_000) > error * 100_000
    assert beyond <= 1


def test_what_is_all_alike_is_known() -> None:
    assert said(steps([100_000] * 40)) == 0


def test_more_steps_tell_more() -> None:
    few, many = (said(steps(noise(count, 5000, 1))) for count in (40, 640))
    assert isinstance(few, float)
    assert isinstance(many, float)
    assert many < few / 3


@pytest.mark.parametrize(
    ("jobs", "why"),
    [
        ([steps([100_000] * 20)], "too few"),
        ([steps([100_000] * 60, late=list(range(60)))], "change slowly"),
        ([steps([100_000] * 60), steps([100_001] * 60)], "drift past each other"),
        ([steps([100_000] * 60), steps([150_001] * 60)], "drift past each other"),
    ],
)
def test_what_creeps_is_not_settled(jobs: list[Steps], why: str) -> None:
    assert why in str(said(*jobs))


def test_who_never_meets_may_creep() -> None:
    assert said(steps([100_000] * 60), steps([100_001] * 60), meet=False) == 0


def test_what_goes_round_is_settled() -> None:
    """One begins everywhere within a step of the other, in either half."""
    assert said(steps([100_000] * 60), steps([106_180] * 60)) == 0


def test_what_is_held_is_settled() -> None:
    chance = Random(3)
    begins = [100_000 * at + chance.randrange(50) for at in range(61)]
    lengths = [b - a for a, b in pairwise(begins)]
    error = said(steps([100_000] * 60), steps(lengths))
    assert isinstance(error, float)
    assert error < 0.001

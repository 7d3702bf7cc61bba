"""What is said of steps that only nearly repeat, by steps of which all is known."""

from array import array
from collections.abc import Callable
from itertools import accumulate, pairwise
from random import Random

import pytest

from lab.runs.steady_state import Led, Steps, settled


def steps(lengths: list[int], late: list[int] | None = None, led: Led | None = None) -> Steps:
    """Steps of these lengths, in which something happens so late."""
    begins = [0, *accumulate(lengths)]
    shapes = [array("q", [at]).tobytes() for at in late or [0] * len(lengths)]
    return Steps(begins, (min(lengths), max(lengths)), shapes, led)


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


_SAME = Led(0, (100_000, 100_000), lambda *_: 0)


def test_what_is_led_round_tells_how_far_any_way_to_meet_is() -> None:
    """A sixth of the ways costs a fiftieth more, and the jobs may stay in it for ever."""
    ways = [102_000 if turn % 24 < 4 else 100_000 for turn in range(48)]
    other = steps([100_000] * 48)
    assert "drift past each other" in str(said(other, steps(ways)))
    led = _SAME._replace(delay_ns=(2 * 100_000 - 16_000) // 48)
    other = other._replace(led=_SAME)
    error = said(other, steps(ways, led=led))
    assert isinstance(error, float)
    assert sum(ways) / len(ways) * (1 + error) >= 102_000


def test_what_is_led_round_tells_what_may_lie_between() -> None:
    """Ways in which they met before, and messages that may collide between two of them."""
    other = steps([100_000] * 48, led=_SAME)
    delay_ns = 2 * 100_000 // 48
    asked: list[float] = []

    def collide_ns(less_than_ns: float, share: Callable[[float], float]) -> float:
        asked.append(less_than_ns)
        return 500 * share(10)

    led = Led(delay_ns, (99_000, 103_000), collide_ns)
    assert said(other, steps([100_000] * 48, led=led)) == pytest.approx(0.035)
    assert asked == [pytest.approx(delay_ns / 2, rel=0.1)]


def test_what_varies_from_step_to_step_collides_in_few_of_them() -> None:
    """Half of what messages cost that take 20 ns, where steps vary by 2 µs; of 10 µs all."""
    chance = Random(5)
    lengths = [100_000 + chance.randrange(2_000) for _ in range(200)]
    mean_ns = sum(lengths) // len(lengths)

    def error(message_ns: float) -> float:
        led = Led(
            2 * mean_ns // 200, (mean_ns, mean_ns), lambda _, share: 10_000 * share(message_ns)
        )
        found = said(steps([mean_ns] * 200, led=_SAME), steps(lengths, led=led))
        assert isinstance(found, float)
        return found

    assert 4500 < (error(10_000) - error(20)) * mean_ns < 5000


def test_what_drifts_is_led_though_its_steps_change_slowly() -> None:
    """What one costs the other follows from how they meet, which changes slowly."""
    ways = [100_000 + 40 * turn for turn in range(48)]
    shapes = [array("q", [length]).tobytes() for length in ways]
    changing = steps(ways)._replace(shapes=shapes)
    assert "change slowly" in str(said(changing))
    assert "drift past each other" in str(said(steps([100_000] * 48), changing))


def test_what_cannot_be_led_round_is_not_settled() -> None:
    """It is held where it is: how long its steps are by themselves is not seen."""
    held = steps([100_000 - 4000] * 48, led=_SAME._replace(delay_ns=4000))
    assert "drift past each other" in str(said(steps([100_000] * 48, led=_SAME), held))

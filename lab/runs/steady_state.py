"""Whether steps that never repeat to the nanosecond have settled, and how well their mean is known.

Steps of jobs side by side have settled if three things hold of those looked at. What happens in a
step happens as late after its beginning in the first half of them as in the second, give or take
how that varies. When steps of one job begin within those of another does not creep: it is always
the same, comes back again and again, or goes round the whole step in either half. And no mean of a
batch of steps is far from the others: from how these differ follows, by Student's distribution, how
far the mean of all that come after may be off. Where steps begin along a straight line, and cross
it more often than any sum of chance, how far they strayed from it tells that as well. Of 1,000 such
means one is off by more, if what is to come is like what was. Kinds of steps of which none was seen
may come too, though not many: they count as if they were as far from the others as any was.

Of two jobs that drift past each other slowly, one may have been delayed in every step, so that they
met in all ways. How long they will stay in which is not known then: the mean of what comes may be
as far off as that of a few steps in a row ever was, delayed or not. And between two ways in which
they met there may be one in which their messages collide that take less time than lies between
these: each of them may be in the other's way, all that wait for each other in a step. They collide
in no larger share of steps than can have two jobs meet so alike: if that is p, of steps that follow
each other 2p - 1 meet so at least, and of all changes seen no more were as alike.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations, pairwise
from math import ceil, sqrt
from typing import NamedTuple

FEWEST = 32  # steps of a job, below which nothing is said
_BATCHES = ((8, 5.41), (16, 4.07))  # how many, and Student's t for 99.9 % with one less
_NONE_OF = 6.9  # of n steps: what makes a larger share than so many is seen 999 times of 1,000
_CREEPS = 17.0  # t of two means of four batches each, in one of a million if they are of one kind
_HALF = 4  # batches
_LONGEST_CYCLE = 4  # steps after which one begins within another job's as it did
_GAP_SHARE = 8  # a whole round leaves no gap that is larger than one in so many of it
_FEW = 4  # steps in a row, in one of the ways in which two jobs may meet,
_FEW_SHARE = 16  # or one in so many of all
_CROSSES = 6  # its mean at least once in so many steps, if it is held there
_RETURNS = (
    1.5  # times the root of as many steps: a sum of chance crosses its mean less, 999 of 1,000
)


class Drift(str):
    """That two jobs drift past each other slowly, and which."""

    __slots__ = ()


class Led(NamedTuple):
    """A job, while one of two was delayed in each step."""

    delay_ns: int  # by which a step began later than it would have; none of the other's
    paces: tuple[float, float]  # of few steps in a row, at least and at most, when none was delayed
    # Of messages that wait for each other and take less than so long, each for a share that follows
    # from what it takes.
    collide_ns: Callable[[float, Callable[[float], float]], float]


class Steps(NamedTuple):
    """Some steps of a job, one after the other."""

    begins: Sequence[int]  # and when the last of them was over
    extremes: tuple[int, int]  # the shortest step ever seen of it, and the longest
    shapes: Sequence[bytes]  # when everything of it happened, since it began
    led: Led | None = None

    @property
    def began(self) -> Sequence[int]:
        """When they did begin, though ``begins`` leave out by what they were delayed."""
        delay_ns = self.led.delay_ns if self.led else 0
        return [begin + turn * delay_ns for turn, begin in enumerate(self.begins)]


class Settled(NamedTuple):
    """How well it is known how long steps take."""

    error: float  # of a mean, as a share of it
    wander_ns: int  # the most by which a step began sooner or later than the mean would have it


def settled(jobs: Mapping[str, Steps], meet: Callable[[int, int], bool]) -> Settled | str:
    """How well the steps of jobs side by side are known; why they have not settled.

    Where some cannot ``meet``, by number, it makes no difference when one begins in the other's.
    """
    for name, steps in jobs.items():
        if len(steps.shapes) < FEWEST:
            return f"too few steps of {name} were alike"
    found = Settled(0.0, 0)
    for (at, (one, ones)), (number, (other, others)) in combinations(enumerate(jobs.items()), 2):
        if not meet(at, number):
            continue
        is_led = bool(ones.led or others.led)
        if not _meet_evenly(ones.began, others.began, may_stay=not is_led):
            return Drift(f"{one} and {other} drift past each other slowly")
        if is_led:
            phases, turn = _phases(ones.began, others.began)
            error = max(_furthest(steps, phases, turn) for steps in (ones, others))
            found = found._replace(error=max(found.error, error))
    for name, steps in jobs.items():
        if _creeps(steps.shapes):
            return f"steps of {name} change slowly"
        error = _error(steps.begins) + _unseen(steps)
        found = Settled(max(found.error, error), max(found.wander_ns, _wander_ns(steps.begins)))
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _error(begins: Sequence[int]) -> float:
    """Of their mean length."""
    span, count = begins[-1] - begins[0], len(begins) - 1
    if _crossings(_strayed(begins)) >= _RETURNS * sqrt(count):
        return min(2 * _wander_ns(begins) / span, _error_by_batches(begins))
    return _error_by_batches(begins)


def _unseen(steps: Steps) -> float:
    """What steps of a kind may add of which none was looked at, as different as any ever was."""
    shortest, longest = steps.extremes
    return _NONE_OF * (longest - shortest) / (steps.begins[-1] - steps.begins[0])


def _error_by_batches(begins: Sequence[int]) -> float:
    count = len(begins) - 1
    mean = (begins[-1] - begins[0]) / count
    errors = []
    for batches, t in _BATCHES:
        bounds = [begins[turn * count // batches] for turn in range(batches + 1)]
        sizes = [(turn + 1) * count // batches - turn * count // batches for turn in range(batches)]
        means = [(b - a) / size for (a, b), size in zip(pairwise(bounds), sizes, strict=True)]
        errors.append(t * sqrt(_variance(means) / batches))
    return max(errors) / mean


def few_paces(begins: Sequence[int]) -> tuple[float, float]:
    """The least mean of a few steps in a row, and the largest."""
    few = max(_FEW, (len(begins) - 1) // _FEW_SHARE)
    paces = [(b - a) / few for a, b in zip(begins, begins[few:], strict=False)]
    return min(paces), max(paces)


def _furthest(steps: Steps, phases: Sequence[float], turn: float) -> float:
    """How far any way in which two jobs meet is from the mean of all of them."""
    assert steps.led is not None
    mean = (steps.begins[-1] - steps.begins[0]) / (len(steps.begins) - 1)
    paces = *few_paces(steps.begins), *steps.led.paces
    off_ns = max(abs(pace - mean) for pace in paces)
    between_ns = _largest_gap(phases, turn) / 2
    collide_ns = steps.led.collide_ns(between_ns, partial(_share_within, phases, turn))
    return (off_ns + collide_ns) / mean + _unseen(steps)


def _share_within(phases: Sequence[float], turn: float, message_ns: float) -> float:
    """Of how many steps two messages that take so long may collide, if jobs stay where they do."""
    changes = [(b - a) % turn for a, b in pairwise(phases)]
    middle = changes[0] - turn / 2
    ordered = sorted((change - middle) % turn for change in changes)
    # They collide if one begins sooner or later than the other by less; a change is between two.
    alike = max(
        bisect_right(ordered, first + 4 * message_ns) - at for at, first in enumerate(ordered)
    )
    return (1 + alike / len(ordered)) / 2


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _strayed(begins: Sequence[int]) -> list[float]:
    """How much later each begins than if all were equally long."""
    mean = (begins[-1] - begins[0]) / (len(begins) - 1)
    late = [begin - begins[0] - mean * at for at, begin in enumerate(begins)]
    middle = _mean(late)
    return [each - middle for each in late]


def _wander_ns(begins: Sequence[int]) -> int:
    return ceil(max(map(abs, _strayed(begins))))


def _crossings(values: Sequence[float]) -> int:
    mean = _mean(values)
    return sum((a < mean) != (b < mean) for a, b in pairwise(values))


def _creeps(shapes: Sequence[bytes]) -> bool:
    """Whether anything in a step comes ever later, or sooner."""
    if len(set(shapes)) == 1:
        return False
    rows = [array("q", shape) for shape in shapes]
    half = len(rows) // 2
    early, late = rows[:half], rows[-half:]
    bounds = (map(few, *each) for each in (early, late) for few in (min, max))
    for lowest, highest, low, high in zip(*bounds, strict=True):
        if highest < low or high < lowest:
            return True
    size = half // _HALF
    batches = [
        [*map(sum, zip(*each[turn * size : (turn + 1) * size], strict=True))]
        for each in (early, late)
        for turn in range(_HALF)
    ]
    return any(_differ(sums[:_HALF], sums[_HALF:]) for sums in zip(*batches, strict=True))


def _differ(ones: Sequence[int], others: Sequence[int]) -> bool:
    spread = sqrt((_variance(ones) + _variance(others)) / _HALF)
    return abs(_mean(ones) - _mean(others)) > _CREEPS * max(spread, 1e-9)


def _meet_evenly(ones: Sequence[int], others: Sequence[int], *, may_stay: bool) -> bool:
    """Whether steps of one job begin within those of another as they will ever after."""
    phases, turn = _phases(ones, others)
    half = len(phases) // 2
    if all(
        _largest_gap(each, turn) <= turn / _GAP_SHARE for each in (phases[:half], phases[-half:])
    ):
        return True
    return may_stay and any(
        all(_is_held(phases[first::cycle], turn) for first in range(cycle))
        for cycle in range(1, _LONGEST_CYCLE + 1)
    )


def _phases(ones: Sequence[int], others: Sequence[int]) -> tuple[list[float], float]:
    """When steps of one job begin within those of another, which take so long."""
    if len(ones) < len(others):
        ones, others = others, ones
    turn = (ones[-1] - ones[0]) / (len(ones) - 1)
    return [(begin - ones[0]) % turn for begin in others], turn


def _largest_gap(phases: Sequence[float], turn: float) -> float:
    ordered = sorted(phases)
    return max(b - a for a, b in pairwise([*ordered, ordered[0] + turn]))


def _is_held(phases: Sequence[float], turn: float) -> bool:
    """Whether they stay, or come back to where they were often enough."""
    unrolled = [phases[0]]
    for phase in phases[1:]:
        step = (phase - unrolled[-1] + turn / 2) % turn - turn / 2
        unrolled.append(unrolled[-1] + step)
    if max(unrolled) - min(unrolled) < 1:
        return True
    return _crossings(unrolled) * _CROSSES >= len(unrolled)

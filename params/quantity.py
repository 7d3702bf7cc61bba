"""Quantities as people read them: a number with the unit that suits it."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from functools import reduce

from params.data import Data


class Unit(Data):
    """A unit, and how many of the base unit make one."""

    name: str
    size: float


NANOSECONDS = (Unit("ns", 1), Unit("µs", 1e3), Unit("ms", 1e6), Unit("s", 1e9))
BYTES = (Unit("B", 1), Unit("KB", 1e3), Unit("MB", 1e6), Unit("GB", 1e9), Unit("TB", 1e12))
JOULES = tuple(
    Unit(f"{prefix}J", size)
    for prefix, size in (("p", 1e-12), ("n", 1e-9), ("µ", 1e-6), ("m", 1e-3), ("", 1), ("k", 1e3))
)
PLAIN = (Unit("", 1),)
PER_CENT = (Unit("%", 0.01),)


def summed(values: Iterable[float]) -> float:
    """Their sum, rounded after each of them: so results are the same by every version of Python.

    `sum` does that up to 3.11; from 3.12 on it keeps what is rounded off, and rounds at the end.
    """
    return reduce(operator.add, values, 0)


def unit_for(value: float, units: Sequence[Unit]) -> Unit:
    """The largest unit of which the value is at least one."""
    return max((unit for unit in units if unit.size <= abs(value)), key=_size, default=units[0])


def _size(unit: Unit) -> float:
    return unit.size


def quantity(value: float, units: Sequence[Unit]) -> str:
    """A value in its unit."""
    unit = unit_for(value, units)
    return f"{number(value / unit.size)} {unit.name}"


def duration(ns: float) -> str:
    """A time."""
    return quantity(ns, NANOSECONDS)


def energy(joules: float) -> str:
    """An energy."""
    return quantity(joules, JOULES)


def size(count: float) -> str:
    """A number of bytes."""
    return quantity(count, BYTES)


def number(value: float) -> str:
    """Three significant digits, or all of what is larger."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{round(value):,}"


def percent(share: float) -> str:
    """A share of one; what is not nothing does not look like it."""
    if 0 < share < 0.001:
        return "less than 0.1 %"
    return f"{round(100 * share, 1 if share < 0.1 else None):g} %"


def packets(count: int) -> str:
    """A number of packets, in the singular where that is right."""
    return plural(count, "packet")


def plural(count: int, noun: str) -> str:
    """A count and what is counted."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def listed(names: Sequence[str]) -> str:
    """Some names in a sentence."""
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last

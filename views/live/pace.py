"""How often somebody looks, and how fast virtual time passes meanwhile."""

from __future__ import annotations

import math

from pydantic import TypeAdapter, ValidationError

from lab.errors import LabError
from lab.scenario.experiment import Experiment
from params.units import DurationNs

_TIME: TypeAdapter[int] = TypeAdapter(DurationNs)


def nanoseconds(given: str | float, what: str) -> int:
    """A time as people write it, at least a nanosecond."""
    try:
        found = _TIME.validate_python(given)
    except ValidationError:
        found = 0
    if found < 1:
        raise LabError(f"{what}: '{given}' is no time", "Write one such as 10us, 500ns or 2ms.")
    return found


def pace_of(text: str) -> int:
    """Nanoseconds of the fabric that pass in a second here, of words such as 100us/s."""
    amount, slash, unit = text.partition("/")
    if slash and unit.strip() != "s":
        raise LabError(f"--pace: '{text}' is no pace", "Write one such as 100us/s.")
    return nanoseconds(amount, "--pace")


def round_ns(ns: float) -> int:
    """About as much, as 1, 2 or 5 times a power of ten; at least a nanosecond."""
    magnitude = 10 ** math.floor(math.log10(max(1.0, ns)))
    return int(next(f * magnitude for f in (1, 2, 5, 10) if f * magnitude >= ns * 0.999))


def share_of(experiment: Experiment, parts: int) -> int:
    """How long it is until so many snapshots are had of a run, if nothing holds it up."""
    return round_ns(experiment.least_ns / parts)

"""What is decided: when a switch marks, and how much of its buffer one queue may have.

A decision is four numbers from -1 to 1. They go to steps on a ladder, so that a fabric that decides
often writes few different entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from controller.settings import Settings
from lab.errors import LabError
from params.data import Data

Numbers = NDArray[np.float32]

NAMES = ("kmin", "kmax", "pmax", "alpha")
_KMIN = (5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 640_000)
_WIDER = (1.0, 2.0, 4.0, 8.0)  # kmax, in kmins
_PMAX = (0.02, 0.1, 0.25, 0.5, 1.0)
_ALPHA = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)


class Decision(Data):
    """What a switch is to do from now on."""

    kmin: int
    kmax: int
    pmax: float
    alpha: float

    @property
    def marks(self) -> tuple[int, int, float]:
        """When to mark."""
        return self.kmin, self.kmax, self.pmax

    def marking(self, settings: Settings) -> Settings:
        """The same settings, but for when to mark."""
        ecn = settings.ecn.but(kmin=self.kmin, kmax=self.kmax, pmax=self.pmax)
        return replace(settings, ecn=ecn)

    def sharing(self, settings: Settings) -> Settings:
        """The same settings, but for what a queue may have."""
        return replace(settings, buffer=settings.buffer.but(alpha=self.alpha))


def taken(action: object) -> Numbers:
    """An action as four numbers from -1 to 1; those beyond are taken as these, none as 0."""
    numbers = np.zeros(0, np.float32)
    with suppress(TypeError, ValueError, OverflowError), np.errstate(over="ignore"):
        given = np.asarray(action)
        if given.dtype.kind != "c":
            numbers = given.astype(np.float32)
    if numbers.shape != (len(NAMES),):
        raise LabError(
            f"{str(action)[:80]} is no action", f"Give four numbers: {', '.join(NAMES)}."
        )
    return np.clip(np.nan_to_num(numbers), -1.0, 1.0)


def decided(numbers: Sequence[float]) -> Decision:
    """What four numbers mean; those beyond -1 and 1 are taken as these."""
    return _decided(*(_step(numbers[at], len(ladder)) for at, ladder in enumerate(_LADDERS)))


_LADDERS: tuple[Sequence[float], ...] = (_KMIN, _WIDER, _PMAX, _ALPHA)


def _step(number: float, steps: int) -> int:
    inside = min(1.0, max(-1.0, float(number)))
    return round((inside + 1) / 2 * (steps - 1))


@cache
def _decided(kmin: int, wider: int, pmax: int, alpha: int) -> Decision:
    least = _KMIN[kmin]
    return Decision(least, round(least * _WIDER[wider]), _PMAX[pmax], _ALPHA[alpha])


def numbers_of(kmin: float, kmax: float, pmax: float, alpha: float) -> tuple[float, ...]:
    """The numbers that come nearest to a setting."""
    wanted = (kmin, kmax / kmin, pmax, alpha)
    found = []
    for want, ladder in zip(wanted, _LADDERS, strict=True):
        at = min(range(len(ladder)), key=lambda step: abs(ladder[step] / want - 1))
        found.append(2 * at / (len(ladder) - 1) - 1)
    return tuple(found)

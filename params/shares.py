"""Shares of one: of packets, of memory; as fine as switches count them."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

ALPHAS = tuple(2.0 ** (code - 8) for code in range(16))  # by their codes
_CHANCES = 0xFFFFFFFF  # what a switch draws is at most that


def chance_code(share: float) -> int:
    """A probability as the fabric program takes it."""
    if not 0 <= share <= 1:
        raise ValueError(f"{share} is no share; it must be from 0 to 1")
    return round(share * _CHANCES)


def alpha_code(alpha: float) -> int:
    """alpha as p4src/buffer.p4 takes it: 8 stands for 1, one more for the double."""
    if alpha not in ALPHAS:
        raise ValueError("it must be a power of two from 1/256 to 128")
    return ALPHAS.index(alpha)


def _is_drawn(share: float) -> float:
    if share > 0 and not chance_code(share):
        raise ValueError(f"it must be 0, or at least {1 / _CHANCES:.2g}: less never happens")
    return share


def _is_power(alpha: float) -> float:
    alpha_code(alpha)
    return alpha


Share = Annotated[float, Field(ge=0, le=1), AfterValidator(_is_drawn)]
Alpha = Annotated[float, AfterValidator(_is_power)]

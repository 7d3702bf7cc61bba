"""Collectives in the network (INC): what a job of them has of the switches.

The same numbers are in p4src/sizes.p4 and traffic/core/inc.h; docs/inc.md has the protocol.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from pydantic import Field

from params.section import Section
from params.units import DurationNs

CELLS = 2048
"""Of a switch: two for each slot."""
PORT = 0xC105
"""UDP's."""
MAX_CHILDREN = 64
"""Of a switch in a tree."""
MAX_SLOTS = CELLS // 2


class Inc(Section):
    """Collectives in the network: what traffic with algorithm=in-network has of the switches."""

    slots: int = Field(default=512, ge=1, le=MAX_SLOTS)
    """Chunks of 1,024 bytes that all jobs together may have in every switch at once, each as many;
    a power of two each, so some may stay unused."""
    rto_ns: DurationNs | None = Field(default=None, ge=1, le=10**12)
    """How long after a part its result counts as lost; without it sixteen round trips."""
    numbers: Literal["integers", "floats"] = "integers"
    """What is added up. Floats go in fixed point, by an exponent that members agree on a window of
    chunks before: that takes a round more, and each sum is off by half of its last bit at most for
    each member."""
    tries: int = Field(default=4, ge=1, le=60)
    """How often in a row no result at all comes, each time after twice as long, before hosts give
    up the tree."""


class Group(NamedTuple):
    """Who does collectives together, in the order of their hosts."""

    number: int  # from 1
    members: tuple[str, ...]
    slots: int
    first_cell: int


def share(slots: int, groups: int) -> int:
    """How many slots each of several groups has: a power of two; 0 if there are too few."""
    each = slots // max(1, groups)
    return 1 << each.bit_length() - 1 if each else 0

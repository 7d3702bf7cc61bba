"""Buffer: a switch's memory, and how its queues share it; see p4src/buffer.p4."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from params.section import Section
from params.shares import Alpha
from params.units import MAX_MEMORY, Size


class Buffer(Section):
    """A switch's memory, shared by its ports."""

    bytes: Size = Field(default=4_000_000, ge=1, le=MAX_MEMORY)
    """How much there is, headroom included."""
    alpha: Alpha = 0.125
    """The share of what is free that one queue may take; a power of two."""
    lossy_alpha: Alpha | None = None
    """The same for classes that may lose, if it differs."""
    static: Size | None = Field(default=None, ge=1, le=MAX_MEMORY)
    """What one queue may take of the shared buffer, however much is free: instead of alpha."""
    lossy_static: Size | None = Field(default=None, ge=1, le=MAX_MEMORY)
    """The same for classes that may lose, if it differs."""
    reserved: Size = Field(default=0, ge=0, le=MAX_MEMORY)
    """What each lossless class has to itself at every port, beside what is shared."""
    lossy_reserved: Size = Field(default=0, ge=0, le=MAX_MEMORY)
    """What each other class has to itself at every port it leaves by."""
    headroom_pool: Size | None = Field(default=None, ge=1, le=MAX_MEMORY)
    """What ports share for their headroom; without it each has its own, which always suffices."""
    cell: Size = Field(default=1, ge=1, le=4096)
    """Memory is taken in so many bytes: a packet counts as whole cells."""
    follow_rate: bool = False
    """Whether trim.threshold and ecn's kmin and kmax are less at links of less than the usual rate,
    for the same time; of one that has become slow the controller hears by reroute_ns."""
    profile: Literal["tomahawk-like", "tomahawk4-like"] | None = None
    """A chip whose buffer this is to be like, where no key says otherwise: controller/asics.py."""

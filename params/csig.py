"""Congestion signalling (CSIG): which tag packets carry, and what its values mean.

The same numbers are in p4src/csig.p4's tables (controller/tables.py) and in the endpoint
(traffic/core/csig.c); docs/csig.md says what the drafts leave to whoever builds it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum, StrEnum
from typing import NamedTuple

from pydantic import Field

from params.section import Section

COMPACT_BITS = 5
_SHARE = 1 << 16  # what a share is told in


class Tag(StrEnum):
    """What a packet carries of its way: 4 or 8 bytes."""

    COMPACT = "compact"
    WIDE = "wide"

    @property
    def bytes(self) -> int:
        """Its size, the EtherType included."""
        return {Tag.COMPACT: 4, Tag.WIDE: 8}[self]


class Signal(IntEnum):
    """What a tag asks the hops for: the least of the first two, the most of the others."""

    ABW = 0  # the rate that was free, Mb/s
    ABW_SHARE = 1  # the same as a share of the link's, in 1/65536
    DELAY = 2  # ns in the switch
    QUEUE = 3  # ns that the queue takes at the link's rate

    @property
    def first(self) -> int:
        """Below it is a compact tag's bucket 0; each octave above has two buckets."""
        return {Signal.ABW: 32, Signal.ABW_SHARE: 0, Signal.DELAY: 16, Signal.QUEUE: 16}[self]

    @property
    def shift(self) -> int:
        """A wide tag's step is two to this."""
        return {Signal.ABW: 3, Signal.ABW_SHARE: 0, Signal.DELAY: 3, Signal.QUEUE: 3}[self]


class Bucket(NamedTuple):
    """One of a compact tag's: its least value, and that as a prefix of 32 bits."""

    number: int
    least: int
    length: int


def buckets(signal: Signal) -> Iterator[Bucket]:
    """A compact tag's 32; the last prefix is of all that no other one has."""
    last = (1 << COMPACT_BITS) - 1
    if signal is Signal.ABW_SHARE:
        width = _SHARE >> COMPACT_BITS
        yield from (Bucket(number, number * width, 32 - 11) for number in range(last))
        yield Bucket(last, last * width, 0)
        return
    bits = signal.first.bit_length() - 1
    yield Bucket(0, 0, 32 - bits)
    for number in range(1, last):
        octave, half = divmod(number - 1, 2)
        yield Bucket(number, (signal.first << octave) * (2 + half) // 2, 33 - bits - octave)
    yield Bucket(last, signal.first << (last - 1) // 2, 0)


class Csig(Section):
    """CSIG: a packet's tag keeps what the worst hop says; transport.cc=poseidon goes by it."""

    tag: Tag = Tag.COMPACT
    """The tag that hosts put into packets: of 4 bytes (compact) or of 8 (wide)."""
    unaware: tuple[str, ...] = Field(default=())
    """Hosts that do not speak CSIG, such as [h3]: their leaves take the tags off."""

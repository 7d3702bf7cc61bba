"""What a data plane tells its control plane of its own accord."""

from __future__ import annotations

from typing import TYPE_CHECKING

from params.data import Data

if TYPE_CHECKING:
    from .ops import Entry


class PacketIn(Data):
    """A packet sent to the CPU port, its controller header (if any) in front."""

    data: bytes
    time_ns: int


class DigestList(Data):
    """Samples of one digest; acknowledge `list_id` to hear of equal samples again."""

    digest: int
    list_id: int
    samples: tuple[tuple[int, ...], ...]
    time_ns: int


class IdleTimeout(Data):
    """An entry that no packet has hit for its idle time (its match part, and the timeout)."""

    entry: Entry
    time_ns: int


class PortState(Data):
    """A port's interface went up or down."""

    port: int
    is_up: bool
    time_ns: int


Event = PacketIn | DigestList | IdleTimeout | PortState

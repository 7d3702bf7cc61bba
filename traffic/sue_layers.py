"""Scale-up Ethernet for scapy, by the places of `core/sue_wire.h`.

    Ether / Sunh / SueRh / SuePdu / payload, and an R-CRC of four bytes

A PDU's commands are a list; what they store follows, and the R-CRC, which `r_crc` works out.
"""

from __future__ import annotations

import zlib

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteEnumField,
    ByteField,
    FieldLenField,
    IntField,
    PacketListField,
    ShortField,
    XByteField,
    XShortField,
)
from scapy.layers.l2 import Ether
from scapy.packet import Packet, bind_layers

from traffic.sue import ETHERTYPE_SUNH, NEXT_HEADER

__all__ = ["SueCommand", "SuePdu", "SueRh", "Sunh", "r_crc"]

OPS = ["ACK", "NACK"]
_BEFORE_RH = 22  # Ethernet and SUNH


class Sunh(Packet):  # type: ignore[misc]
    """The compressed network header."""

    name = "SUNH"
    fields_desc = [
        XByteField("tc", 0),
        ByteField("nh", NEXT_HEADER),
        BitField("hlim", 15, 4),
        BitField("label", 0, 12),
        XShortField("src", 0),
        XShortField("dst", 0),
    ]


class SueRh(Packet):  # type: ignore[misc]
    """The reliability header."""

    name = "SUE RH"
    fields_desc = [
        BitField("ver", 0, 2),
        BitEnumField("op", 0, 2, OPS),
        BitField("rsvd", 0, 2),
        BitField("xpuid", 0, 10),
        ShortField("npsn", 0),
        BitField("vc", 0, 2),
        BitField("rsvd2", 0, 4),
        BitField("partition", 0, 10),
        ShortField("apsn", 0),
    ]


class SueCommand(Packet):  # type: ignore[misc]
    """A store: of so many bytes, where."""

    name = "SUE command"
    fields_desc = [
        ByteEnumField("op", 1, {1: "STORE"}),
        ByteEnumField("flags", 0, {0: "", 1: "LAST"}),
        ShortField("length", 0),
        IntField("key", 0),
        IntField("offset", 0),
    ]

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes]:
        """What follows is the next one."""
        return b"", s


class SuePdu(Packet):  # type: ignore[misc]
    """Commands that go together."""

    name = "SUE PDU"
    fields_desc = [
        FieldLenField("count", None, count_of="commands", fmt="B"),
        ByteField("rsvd", 0),
        ShortField("size", 0),
        PacketListField("commands", [], SueCommand, count_from=lambda pdu: pdu.count),
    ]


def r_crc(frame: bytes) -> bytes:
    """That of a frame, from RH to the end of its PDU."""
    size = int.from_bytes(frame[32:34], "big")
    return zlib.crc32(frame[_BEFORE_RH : 34 + size]).to_bytes(4, "big")


bind_layers(Ether, Sunh, type=ETHERTYPE_SUNH)
bind_layers(Sunh, SueRh, nh=NEXT_HEADER)
bind_layers(SueRh, SuePdu)

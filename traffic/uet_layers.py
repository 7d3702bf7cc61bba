"""Ultra Ethernet Transport for scapy: packet delivery (PDS) and an RDMA write (SES).

    Ether / IP / UDP(4793) / UetPds / UetSes / payload, and a CRC of four bytes    a request
    Ether / IP / UDP(4793) / UetPds / UetSesShort / payload, CRC     one whose message fits a packet
    Ether / IP / UDP(4793) / UetPds, and the CRC                                   what answers it

The fields are those of `core/uet_wire.h`, after UE specification 1.0.1, by Wireshark's names.
What a switch cut has no CRC: UDP says how long it was.
"""

from __future__ import annotations

from scapy.fields import (
    BitEnumField,
    BitField,
    ByteField,
    ConditionalField,
    Field,
    IntField,
    ShortField,
    SignedShortField,
    ThreeBytesField,
    XByteField,
    XIntField,
    XLongField,
)
from scapy.layers.inet import UDP
from scapy.packet import Packet, Raw, bind_layers

from traffic.frames import UET_PORT

__all__ = ["CRC_BYTES", "UetPds", "UetSes", "UetSesShort"]

CRC_BYTES = 4
RUD_REQ, ROD_REQ, RUDI_REQ, RUDI_RESP, UUD_REQ = 2, 3, 4, 5, 6
ACK_CC, NACK, CONTROL, RUD_CC_REQ, ROD_CC_REQ = 8, 10, 11, 13, 14
_TYPES = {
    RUD_REQ: "RUD_REQ", ROD_REQ: "ROD_REQ", RUDI_REQ: "RUDI_REQ", RUDI_RESP: "RUDI_RESP",
    UUD_REQ: "UUD_REQ", ACK_CC: "ACK_CC", NACK: "NACK", CONTROL: "CTRL", RUD_CC_REQ: "RUD_CC_REQ",
    ROD_CC_REQ: "ROD_CC_REQ",
}  # fmt: skip
_SMALL, _MEDIUM = 1, 2  # next headers; all else is standard
_CODES = {1: "TRIMMED", 2: "TRIMMED_LAST_HOP", 13: "ROD_OOO"}
_CREDITED = RUD_CC_REQ, ROD_CC_REQ
_CONNECTED = RUD_REQ, ROD_REQ, *_CREDITED
_REQUESTS = *_CONNECTED, RUDI_REQ, UUD_REQ
_LONE = RUDI_REQ, RUDI_RESP  # of no connection, and told by a packet's id


def _of(field: Field, *types: int) -> ConditionalField:
    """A field that packets of these types have."""
    return ConditionalField(field, lambda pds: pds.type in types)


class UetPds(Packet):  # type: ignore[misc]
    """Whose packet it is, which of theirs, and what is said of others."""

    name = "UET PDS"
    fields_desc = [
        BitEnumField("type", RUD_REQ, 5, _TYPES),
        BitField("next", 0, 4),  # the header that follows, or what is controlled
        BitField("flags", 0, 7),
        _of(SignedShortField("clear_psn_offset", 0), *_CONNECTED),
        _of(ShortField("reserved", 0), *_LONE, UUD_REQ),
        _of(XIntField("packet_id", 0), *_LONE),
        _of(SignedShortField("ack_psn_offset", 0), ACK_CC),
        _of(ShortField("opaque", 0), CONTROL),
        _of(BitEnumField("nack_code", 1, 8, _CODES), NACK),
        _of(ByteField("vendor", 0), NACK),
        _of(IntField("psn", 0), *_CONNECTED, CONTROL),
        _of(IntField("cack_psn", 0), ACK_CC),
        _of(IntField("nack_psn", 0), NACK),
        _of(ShortField("spdcid", 0), *_CONNECTED, ACK_CC, NACK, CONTROL),
        _of(ShortField("dpdcid", 0), *_CONNECTED, ACK_CC, NACK, CONTROL),
        _of(XByteField("ccc_id", 0), *_CREDITED),
        _of(ThreeBytesField("credit_target", 0), *_CREDITED),
        _of(BitField("cc_type", 0, 4), ACK_CC),
        _of(BitField("cc_flags", 0, 4), ACK_CC),
        _of(ByteField("mpr", 0), ACK_CC),
        _of(ShortField("sack_offset", 1), ACK_CC),
        _of(XLongField("sack_bitmap", 0), ACK_CC),
        _of(XLongField("cc_state", 0), ACK_CC),
        _of(IntField("max_recv_psn", 0), NACK),
        _of(XIntField("payload_", 0), CONTROL),
    ]

    def guess_payload_class(self, _: bytes) -> type[Packet]:
        """A request has a semantic header."""
        behind: type[Packet] = UetSesShort if self.next in (_SMALL, _MEDIUM) else UetSes
        return behind if self.type in _REQUESTS else Raw

    def extract_padding(self, rest: bytes) -> tuple[bytes, bytes]:
        """Behind what answers there is a CRC and nothing else."""
        return (rest, b"") if self.type in _REQUESTS else (b"", rest)


def _opening() -> list[Field]:
    """What every form begins with."""
    return [
        BitField("rsvd", 0, 2),
        BitEnumField("opcode", 1, 6, {1: "WRITE"}),
        BitField("version", 0, 2),
        BitField("dc", 0, 1),
        BitField("ie", 0, 1),
        BitField("rel", 1, 1),
        BitField("hd", 0, 1),
        BitField("eom", 0, 1),
        BitField("som", 0, 1),
    ]


class _Ses(Packet):  # type: ignore[misc]
    def extract_padding(self, rest: bytes) -> tuple[bytes, bytes]:
        """The CRC, if the packet is whole."""
        udp = self.underlayer.underlayer if self.underlayer else None
        before = 8 + len(self.underlayer.self_build()) + len(self.self_build()) if udp else 0
        is_whole = isinstance(udp, UDP) and before + len(rest) == udp.len
        return (rest[:-CRC_BYTES], rest[-CRC_BYTES:]) if is_whole else (rest, b"")


class UetSes(_Ses):
    """The standard form, of an RDMA write: which message, and where in it the payload belongs."""

    name = "UET SES"
    fields_desc = [
        *_opening(),
        ShortField("message_id", 0),
        ByteField("generation", 0),
        ThreeBytesField("job_id", 0),
        ShortField("pid_on_fep", 0),
        ShortField("resource_index", 0),
        XLongField("buffer_offset", 0),
        IntField("initiator", 0),
        XLongField("memory_key", 0),
        ConditionalField(XLongField("header_data", 0), lambda ses: ses.som == 1),
        ConditionalField(IntField("payload_length", 0), lambda ses: ses.som == 0),
        ConditionalField(IntField("message_offset", 0), lambda ses: ses.som == 0),
        IntField("request_length", 0),
    ]


def _is_medium(ses: Packet) -> bool:
    return ses.underlayer is None or ses.underlayer.next == _MEDIUM


class UetSesShort(_Ses):
    """A message in one packet: the medium form, and, up to the buffer offset, the small one."""

    name = "UET SES, short"
    fields_desc = [
        *_opening(),
        BitField("rsvd2", 0, 2),
        BitField("request_length", 0, 14),
        ByteField("generation", 0),
        ThreeBytesField("job_id", 0),
        ShortField("pid_on_fep", 0),
        ShortField("resource_index", 0),
        XLongField("buffer_offset", 0),
        ConditionalField(IntField("initiator", 0), _is_medium),
        ConditionalField(XLongField("memory_key", 0), _is_medium),
    ]


bind_layers(UDP, UetPds, dport=UET_PORT)

"""The layers that scapy lacks: what rides behind a BTH, and in-band telemetry.

    Ether / IP / UDP(4791) / BTH / RETH / ImmDt / payload        an RDMA WRITE, one of its packets
    Ether / IP / UDP(4791) / BTH / METH / RETH / ImmDt / payload      the same of MRC
    Ether / IP / UDP(4791) / BTH / SETH, NETH or PETH            what answers that, and asks
    Ether / IP / UDP(INT_PORT) / IntShim / IntHeader / BTH ...   the same with INT on board
    Ether / IP / UDP(REPORT_PORT) / ReportGroup / Report ...     a telemetry report
    Ether / Conga / IP ...                                       anything, between two leaves
    Ether / Csig or CsigWide / IP ...                            anything, between speakers of CSIG

Importing this module teaches scapy to dissect them.
"""

from __future__ import annotations

from collections.abc import Iterator

from scapy.contrib.roce import AETH, BTH, CNPPadding, cnp
from scapy.fields import (
    BitEnumField,
    BitField,
    ByteField,
    FieldListField,
    IntField,
    ShortField,
    SignedShortField,
    ThreeBytesField,
    XIntField,
    XLongField,
    XShortField,
)
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw, bind_layers

from traffic.frames import INT_DOMAIN, INT_PORT, ROCE_PORT

__all__ = [
    "AETH",
    "BTH",
    "EETH",
    "ERTH",
    "INT_DOMAIN",
    "INT_PORT",
    "METH",
    "MRC_OPCODES",
    "NETH",
    "PETH",
    "REPORT_PORT",
    "RETH",
    "ROCE_PORT",
    "SETH",
    "TSETH",
    "CNPPadding",
    "Conga",
    "Csig",
    "CsigWide",
    "ImmDt",
    "IntHeader",
    "IntShim",
    "Report",
    "ReportGroup",
    "cnp",
    "telemetry",
]

ETHERTYPE_IP, ETHERTYPE_IPV6 = 0x0800, 0x86DD
ETHERTYPE_CONGA = 0x88B5  # for local experiments
ETHERTYPE_CSIG, ETHERTYPE_CSIG_WIDE = 0x9900, 0x9901  # none is assigned: docs/csig.md
REPORT_PORT = 32766  # ours to choose: the UDP destination of telemetry reports

MRC_OPCODES = {
    0xC6: "WRITE_FIRST", 0xC7: "WRITE_MIDDLE", 0xC8: "WRITE_LAST", 0xC9: "WRITE_LAST_IMM",
    0xCA: "WRITE_ONLY", 0xCB: "WRITE_ONLY_IMM", 0xD8: "EP_REQ", 0xD9: "EP_RSP", 0xDC: "SACK",
    0xDD: "NACK", 0xDE: "PROBE_REQ",
}  # fmt: skip
_MRC_IMM = (0xC9, 0xCB)
_MRC_STAMPED = 0x10  # of what scapy calls reserved in a BTH
_WRITE_FIRST, _WRITE_LAST_IMM, _WRITE_ONLY, _WRITE_ONLY_IMM = 0x06, 0x09, 0x0A, 0x0B

# What each instruction bit, most significant first, makes a hop write: names and widths in bits.
_INSTRUCTIONS: dict[int, tuple[tuple[str, int], ...]] = {
    0: (("node", 32),),
    1: (("ingress_port", 16), ("egress_port", 16)),
    2: (("hop_latency", 32),),
    3: (("queue", 8), ("queue_occupancy", 24)),
    4: (("ingress_time", 64),),
    5: (("egress_time", 64),),
    6: (("ingress_port_2", 32), ("egress_port_2", 32)),
    7: (("utilisation", 32),),
    8: (("buffer", 8), ("buffer_occupancy", 24)),
    15: (("complement", 32),),
}
_DROP = (("queue", 8), ("drop_reason", 8), ("pad", 16))  # bit 15 of a report


class RETH(Packet):  # type: ignore[misc]
    """The RDMA extended transport header: where the message goes in the receiver's memory."""

    name = "RETH"
    fields_desc = [XLongField("va", 0), XIntField("rkey", 0), IntField("dmalen", 0)]

    def guess_payload_class(self, _: bytes) -> type[Packet]:
        """An immediate follows if the opcode says so, else the message's bytes."""
        bth = self.underlayer
        while isinstance(bth, METH | TSETH):
            bth = bth.underlayer
        has_imm = isinstance(bth, BTH) and bth.opcode in (_WRITE_ONLY_IMM, *_MRC_IMM)
        return ImmDt if has_imm else Raw


class METH(Packet):  # type: ignore[misc]
    """MRC's count of messages; a RETH follows in every packet (core/mrc_wire.h)."""

    name = "METH"
    fields_desc = [ShortField("rqmsn", 0), ShortField("msn", 0)]

    def guess_payload_class(self, _: bytes) -> type[Packet]:
        """A time stamp if the BTH says so."""
        bth = self.underlayer
        return TSETH if isinstance(bth, BTH) and bth.resv7 & _MRC_STAMPED else RETH


_STAMP = (
    ShortField("tx_timestamp", 0),
    BitField("tsr", 0, 1),
    BitField("rsvd_ts", 0, 11),
    BitField("ftype", 1, 4),
)


class TSETH(Packet):  # type: ignore[misc]
    """When an MRC packet left, in 128 ns."""

    name = "TSETH"
    fields_desc = [*_STAMP]

    def guess_payload_class(self, _: bytes) -> type[Packet]:
        """A RETH, as in every packet."""
        return RETH


_M = {0: "NONE", 1: "SKIP_ONCE", 2: "ALWAYS_SKIP"}
_PROLOGUE = (
    BitField("rsvd0", 0, 9), BitEnumField("m", 0, 2, _M), BitField("rsvd", 0, 3),
    BitField("pr", 0, 1), BitField("rsvd2", 0, 1),
)  # fmt: skip
_IDS = (ShortField("spdcid", 0), ShortField("dpdcid", 0))


class SETH(Packet):  # type: ignore[misc]
    """MRC's selective acknowledgement, and what its congestion control goes by."""

    name = "SETH"
    fields_desc = [
        *_PROLOGUE,
        SignedShortField("ack_psn_offset", 0),  # of a probe's answer its number
        XIntField("entropy", 0),
        *_IDS,
        ByteField("rsvd3", 0),
        ThreeBytesField("cack_psn", 0),
        BitField("cc_type", 0, 4),
        BitField("cc_flags", 0, 4),
        ByteField("mpr", 0),
        ShortField("sack_offset", 1),
        XLongField("sack_bitmap", 0),
        ShortField("tx_timestamp", 0),
        ShortField("ooo_count", 0),
        ByteField("rcv_cwnd_pen", 0),
        ThreeBytesField("rcvd_bytes", 0),
    ]


class NETH(Packet):  # type: ignore[misc]
    """MRC's refusal of one packet."""

    name = "NETH"
    fields_desc = [
        *_PROLOGUE,
        BitEnumField("reason", 1, 8, {1: "TRIMMED", 2: "TRIMMED_LASTHOP"}),
        ByteField("vendor", 0),
        XIntField("entropy", 0),
        *_IDS,
        ByteField("rsvd3", 0),
        ThreeBytesField("nack_psn", 0),
        BitField("cc_type", 2, 4),
        BitField("cc_flags", 0, 4),
        ByteField("rsvd4", 0),
        ShortField("tx_timestamp", 0),
    ]


class PETH(Packet):  # type: ignore[misc]
    """MRC's question: of a way, if it has a number, else of what has come."""

    name = "PETH"
    fields_desc = [
        *_PROLOGUE,
        ByteField("rsvd3", 0),
        ByteField("vendor", 0),
        ShortField("probe_id", 0),
        ShortField("rsvd4", 0),
        *_IDS,
        *_STAMP,
    ]


_OPERATIONS = {0: "PORT_STATUS", 1: "EV_PROBE"}


class ERTH(Packet):  # type: ignore[misc]
    """A request of one MRC adapter to another; the BTH's PSN is its number."""

    name = "ERTH"
    fields_desc = [
        BitField("rsvd0", 0, 14),
        BitEnumField("op", 0, 2, _OPERATIONS),
        ByteField("rsvd1", 0),
        ByteField("vendor", 0),
        XIntField("port_status_mask", 0),
        IntField("rsvd2", 0),
        *_STAMP,
    ]


class EETH(Packet):  # type: ignore[misc]
    """The response to it."""

    name = "EETH"
    fields_desc = [
        BitField("rsvd0", 0, 12),
        BitEnumField("op", 0, 2, _OPERATIONS),
        BitField("rsvd1", 0, 2 + 8 * 26),
        ShortField("tx_timestamp", 0),
        BitField("rsvd2", 0, 8 * 6),
    ]


class ImmDt(Packet):  # type: ignore[misc]
    """Immediate data: 32 bits handed to the receiver's program when the message is complete."""

    name = "ImmDt"
    fields_desc = [XIntField("data", 0)]


class Conga(Packet):  # type: ignore[misc]
    """How busy ways between two leaves are: p4src/conga.p4 says what of it is whose."""

    name = "CONGA"
    fields_desc = [
        ShortField("leaf", 0),
        ByteField("path", 0),
        ByteField("metric", 0),
        ByteField("feedback_path", 0),
        ByteField("feedback_metric", 0),
        XShortField("type", ETHERTYPE_IP),
    ]


_SIGNALS = {0: "ABW", 1: "ABW/C", 2: "PD", 3: "nQD"}


class Csig(Packet):  # type: ignore[misc]
    """CSIG's compact tag: what the worst hop had to say, as a bucket."""

    name = "CSIG"
    fields_desc = [
        BitEnumField("t", 0, 3, _SIGNALS),
        BitField("d", 0, 1),
        BitField("s", 0, 5),
        BitField("lm", 0, 7),
        XShortField("type", ETHERTYPE_IP),
    ]


class CsigWide(Packet):  # type: ignore[misc]
    """CSIG's wide tag: the same, in steps."""

    name = "CSIG wide"
    fields_desc = [
        XShortField("lm", 0),
        BitEnumField("t", 0, 4, _SIGNALS),
        BitField("s", 0, 20),
        BitField("d", 0, 1),
        BitField("rsvd", 0, 7),
        XShortField("type", ETHERTYPE_IP),
    ]


class IntShim(Packet):  # type: ignore[misc]
    """What tells a packet with INT-MD on board from one without, and keeps its UDP port."""

    name = "INT shim"
    fields_desc = [
        BitEnumField("type", 1, 4, {1: "MD", 2: "destination", 3: "MX"}),
        BitEnumField("npt", 1, 2, {0: "dscp", 1: "port", 2: "protocol"}),
        BitField("rsvd", 0, 2),
        ByteField("length", None),  # words behind the shim
        ShortField("port", ROCE_PORT),
    ]

    def post_build(self, header: bytes, payload: bytes) -> bytes:
        """Count the words that follow."""
        if self.length is None:
            words = len(self.payload.self_build()) // 4 if self.payload else 0
            header = header[:1] + bytes((words,)) + header[2:]
        return header + payload


class IntHeader(Packet):  # type: ignore[misc]
    """The INT-MD header and the stack of what the hops wrote, newest first."""

    name = "INT-MD"
    fields_desc = [
        BitField("version", 2, 4),
        BitField("discard", 0, 1),
        BitField("exceeded", 0, 1),
        BitField("mtu_exceeded", 0, 1),
        BitField("rsvd", 0, 12),
        BitField("hop_words", 0, 5),
        ByteField("remaining_hops", 0),
        XShortField("instructions", 0),
        XShortField("domain", 0),
        XShortField("domain_instructions", 0),
        XShortField("domain_flags", 0),
        FieldListField(
            "stack",
            [],
            XIntField("", 0),
            count_from=lambda header: max(0, (_shim_words(header) - 3)),
        ),
    ]

    def hops(self) -> list[dict[str, int]]:
        """What each hop wrote, newest first; what a hop could not tell is all ones."""
        size = self.hop_words
        own = self.domain_instructions if self.domain == INT_DOMAIN else 0
        return [
            telemetry(self.instructions, self.stack[at : at + size], own)
            for at in range(0, len(self.stack) - size + 1, size or 1)
            if size
        ]

    def guess_payload_class(self, _: bytes) -> type[Packet]:
        """What the shim remembers of the UDP port."""
        shim = self.underlayer
        is_roce = isinstance(shim, IntShim) and shim.port == ROCE_PORT
        return BTH if is_roce else Raw  # type: ignore[no-any-return]


def _shim_words(header: Packet) -> int:
    shim = header.underlayer
    return int(shim.length or 0) if isinstance(shim, IntShim) else 0


class ReportGroup(Packet):  # type: ignore[misc]
    """The header of a telemetry report packet, v2.0."""

    name = "telemetry report group"
    fields_desc = [
        BitField("version", 2, 4),
        BitField("hardware", 0, 6),
        BitField("sequence", 0, 22),
        IntField("node", 0),
    ]


class Report(Packet):  # type: ignore[misc]
    """One report of a group: what happened to a packet, and the packet's beginning."""

    name = "telemetry report"
    fields_desc = [
        BitEnumField("type", 1, 4, {1: "INT"}),
        BitEnumField("inner", 3, 4, {3: "Ethernet", 4: "IPv4", 5: "IPv6"}),
        ByteField("length", None),  # words behind this one, the packet reported on included
        ByteField("metadata_words", None),
        BitField("dropped", 0, 1),
        BitField("congested_queue", 0, 1),
        BitField("tracked_flow", 0, 1),
        BitField("intermediate", 0, 1),
        BitField("rsvd", 0, 4),
        XShortField("bits", 0),
        XShortField("domain", 0),
        XShortField("domain_bits", 0),
        XShortField("domain_status", 0),
        FieldListField(
            "metadata", [], XIntField("", 0), count_from=lambda report: report.metadata_words
        ),
    ]

    def post_build(self, header: bytes, payload: bytes) -> bytes:
        """Count the words."""
        if self.length is None:
            words = min((len(header) + len(payload) - 4 + 3) // 4, 255)
            header = header[:1] + bytes((words,)) + header[2:]
        if self.metadata_words is None:
            header = header[:2] + bytes((len(self.metadata),)) + header[3:]
        return header + payload

    def values(self) -> dict[str, int]:
        """The metadata by name."""
        return telemetry(self.bits, self.metadata, report=True)

    def guess_payload_class(self, _: bytes) -> type[Packet]:
        """The packet reported on."""
        return {3: Ether, 4: IP, 5: IPv6}.get(self.inner, Raw)  # type: ignore[no-any-return]


def telemetry(
    instructions: int, words: list[int], own: int = 0, *, report: bool = False
) -> dict[str, int]:
    """Name the metadata that a bitmap of instructions put into `words`, as far as they go.

    `own` are our domain's instructions, whose words follow.
    """
    data = b"".join(word.to_bytes(4, "big") for word in words)
    values: dict[str, int] = {}
    fields = [*_fields(instructions, report=report)]
    fields += [(name, 32) for bit, name in enumerate(_OWN) if own & 0x8000 >> bit]
    for name, bits in fields:
        if len(data) < bits // 8:
            break
        values[name] = int.from_bytes(data[: bits // 8], "big")
        data = data[bits // 8 :]
    return values


_OWN = ("link_mbps", "left_ns", "link_bytes")  # by INT_DOMAIN's instructions


def _fields(instructions: int, *, report: bool) -> Iterator[tuple[str, int]]:
    for bit, fields in _INSTRUCTIONS.items():
        if instructions & 0x8000 >> bit:
            yield from _DROP if report and bit == 15 else fields


bind_layers(Ether, Conga, type=ETHERTYPE_CONGA)
bind_layers(Conga, IP, type=ETHERTYPE_IP)
bind_layers(Conga, IPv6, type=ETHERTYPE_IPV6)
for _tag, _type in ((Csig, ETHERTYPE_CSIG), (CsigWide, ETHERTYPE_CSIG_WIDE)):
    bind_layers(Ether, _tag, type=_type)
    bind_layers(Conga, _tag, type=_type)
    bind_layers(_tag, IP, type=ETHERTYPE_IP)
    bind_layers(_tag, IPv6, type=ETHERTYPE_IPV6)
bind_layers(BTH, RETH, opcode=_WRITE_FIRST)
bind_layers(BTH, RETH, opcode=_WRITE_ONLY)
bind_layers(BTH, RETH, opcode=_WRITE_ONLY_IMM)
bind_layers(BTH, ImmDt, opcode=_WRITE_LAST_IMM)
_MRC_HEADERS = {0xD8: ERTH, 0xD9: EETH, 0xDC: SETH, 0xDD: NETH, 0xDE: PETH}
for _opcode in MRC_OPCODES:
    bind_layers(BTH, _MRC_HEADERS.get(_opcode, METH), opcode=_opcode)
bind_layers(UDP, IntShim, dport=INT_PORT)
bind_layers(IntShim, IntHeader, type=1)
bind_layers(UDP, ReportGroup, dport=REPORT_PORT)
bind_layers(ReportGroup, Report)

"""Telemetry reports v2.0, taken apart.

    Ethernet IPv4 UDP | group header | report header | this hop, or the drop | the packet, cut short

The packet in a report of a sink is as it came: INT-MD v2.1 sits between its UDP header and what
that carries, or IOAM's trace (RFC 9197) in the hop-by-hop options of an IPv6 header around it; the
newest hop's words first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address

from params.data import Data

ETHERNET, IPV4, IPV6, UDP = 14, 20, 40, 8
GROUP, REPORT, MAIN = 8, 4, 8
SHIM, MD_HEADER = 4, 12
TWO_WORDS = frozenset({4, 5, 6})  # of the instruction bits


class ReportError(ValueError):
    """Bytes that are no telemetry report; the text says where."""


class Hop(Data):
    """What one switch said of a packet; times in its own ticks, but in a trace.

    None: it was not asked, or could not tell.
    """

    node: int | None = None
    ingress_port: int | None = None
    egress_port: int | None = None
    latency: int | None = None
    latency_ns: int | None = None  # in place of it, where IOAM told
    queue: int | None = None
    queue_bytes: int | None = None
    ingress_time: int | None = None
    egress_time: int | None = None
    utilisation: float | None = None  # of the link it left by
    buffer_bytes: int | None = None

    def stayed_ns(self, tick_ns: float) -> float | None:
        """How long the packet was in the switch."""
        if self.latency_ns is not None:
            return self.latency_ns
        return None if self.latency is None else self.latency * tick_ns


class Flow(Data):
    """Whose packet it was."""

    src: IPv4Address | IPv6Address
    dst: IPv4Address | IPv6Address
    protocol: int
    src_port: int = 0
    dst_port: int = 0


class Report(Data):
    """A report; ``hops`` in the order the packet met them."""

    node: int
    sequence: int
    flow: Flow | None
    hops: tuple[Hop, ...] = ()
    drop_reason: int | None = None
    packet: bytes = b""
    mtu_exceeded: bool = False  # some hop had no room for its words


def decode(frame: bytes) -> Report:
    """Take a report's Ethernet frame apart."""
    if len(frame) < ETHERNET + IPV4 + UDP or frame[12:14] != b"\x08\x00" or frame[23] != 17:
        raise ReportError(f"a frame of {len(frame)} bytes is no UDP over IPv4")
    udp = ETHERNET + (frame[ETHERNET] & 15) * 4
    length = int.from_bytes(frame[udp + 4 : udp + 6], "big")
    return decode_payload(frame[udp + UDP : udp + length])


def decode_payload(data: bytes) -> Report:
    """Take a report apart, as its UDP header delivers it."""
    if len(data) < GROUP + REPORT + MAIN:
        raise ReportError(f"{len(data)} bytes are too few for a report's headers")
    first, node, head, bits, _domain, _bits, _status = struct.unpack_from("!IIIHHHH", data)
    if first >> 28 != 2 or head >> 28 != 1:
        raise ReportError(f"version {first >> 28}, type {head >> 28}: only 2 and 1 are known")
    metadata_at = GROUP + REPORT + MAIN
    inner_at = metadata_at + 4 * (head >> 8 & 0xFF)
    if inner_at > len(data):
        raise ReportError("the metadata is longer than the report")
    inner = data[inner_at:]
    # Bit 0 is not used here, the node is in the group header, and bit 15 means the drop.
    own, drop_reason = _own_metadata(node, bits, data[metadata_at:inner_at])
    flow, hops, exceeded = _dissect(inner) if head >> 24 & 15 == 3 else (None, (), False)
    return Report(node, first & 0x3FFFFF, flow, (*hops, own), drop_reason, inner, exceeded)


def _own_metadata(node: int, bits: int, words: bytes) -> tuple[Hop, int | None]:
    drop_reason = None
    if bits & 1:
        if len(words) < 4:
            raise ReportError("the drop reason is missing")
        words, drop = words[:-4], words[-4:]
        drop_reason = drop[1]
        queue = drop[0]
    hop = _hop(bits & 0x7FFE, words)
    fields = {name: getattr(hop, name) for name in Hop.__dataclass_fields__}
    fields["node"] = node
    if drop_reason is not None:
        fields["queue"] = queue
    return Hop(**fields), drop_reason


def _hop(instructions: int, words: bytes) -> Hop:
    """One hop's words."""
    fields: dict[str, int | float] = {}
    at = 0
    for bit in range(16):
        if not instructions >> (15 - bit) & 1:
            continue
        size = 8 if bit in TWO_WORDS else 4
        if at + size > len(words):
            raise ReportError(f"instruction bit {bit} has no words")
        value = int.from_bytes(words[at : at + size], "big")
        at += size
        if value != (1 << size * 8) - 1:  # all ones: the hop could not tell
            fields.update(_meaning(bit, value))
    return Hop(**fields)  # type: ignore[arg-type]


def _meaning(bit: int, value: int) -> dict[str, int | float]:
    match bit:
        case 0:
            return {"node": value}
        case 1:
            return {"ingress_port": value >> 16, "egress_port": value & 0xFFFF}
        case 2:
            return {"latency": value}
        case 3:
            return {"queue": value >> 24, "queue_bytes": value & 0xFFFFFF}
        case 4:
            return {"ingress_time": value}
        case 5:
            return {"egress_time": value}
        case 7:
            return {"utilisation": value / 65536}
        case 8:
            return {"buffer_bytes": value & 0xFFFFFF}
    return {}


def _dissect(packet: bytes) -> tuple[Flow | None, tuple[Hop, ...], bool]:
    """The flow of a packet that was cut short, the hops whose words it carries, and its M bit."""
    at = ETHERNET
    if packet[12:14] == b"\x88\xb5":  # between two leaves: eight bytes more
        at += 8
    ether_type = packet[at - 2 : at]
    if ether_type == b"\x86\xdd" and packet[at + 6 : at + 7] == b"\x00":  # hop-by-hop options
        hops, exceeded, inner = _traced(packet[at + IPV6 :])
        ether_type = {4: b"\x08\x00", 41: b"\x86\xdd"}.get(packet[at + IPV6], b"")
        flow, _, _ = _dissect(bytes(12) + ether_type + inner)
        return flow, hops, exceeded
    if ether_type == b"\x08\x00" and len(packet) >= at + IPV4:
        udp = at + (packet[at] & 15) * 4
        ends = IPv4Address(packet[at + 12 : at + 16]), IPv4Address(packet[at + 16 : at + 20])
        flow = Flow(*ends, protocol=packet[at + 9])
    elif ether_type == b"\x86\xdd" and len(packet) >= at + IPV6:
        udp = at + IPV6
        here, there = (packet[at + first : at + first + 16] for first in (8, 24))
        flow = Flow(IPv6Address(here), IPv6Address(there), protocol=packet[at + 6])
    else:
        return None, (), False
    if flow.protocol != 17 or len(packet) < udp + UDP:
        return flow, (), False
    src_port, dst_port = struct.unpack_from("!HH", packet, udp)
    shim = udp + UDP
    if dst_port != _INT_PORT or len(packet) < shim + SHIM + MD_HEADER or packet[shim] >> 2 != 5:
        return replace(flow, src_port=src_port, dst_port=dst_port), (), False
    original = int.from_bytes(packet[shim + 2 : shim + 4], "big")
    hops = tuple(_stacked(packet[shim:]))
    is_exceeded = bool(packet[shim + SHIM] & _M_BIT)
    return replace(flow, src_port=src_port, dst_port=original), hops[::-1], is_exceeded


def _traced(options: bytes) -> tuple[tuple[Hop, ...], bool, bytes]:
    """A trace's hops, the first first; whether one had no room; and the packet behind it."""
    if len(options) < _IOAM or options[4] != _OPTION_IOAM or options[7] != 0:
        return (), False, b""
    size = (options[1] + 1) * 8
    lengths, kind = struct.unpack_from("!HI", options, 10)
    node_bytes, left = (lengths >> 11) * 4, (lengths & 0x7F) * 4
    end = 6 + options[5]
    if not _IOAM + left <= end <= min(size, len(options)):
        raise ReportError("a trace's lengths do not fit")
    written = range(_IOAM + left, end - node_bytes + 1, node_bytes or end)
    hops = tuple(_node(kind >> 8, options[at : at + node_bytes]) for at in written)
    return hops[::-1], bool(lengths & _OVERFLOW), options[size:]


def _node(trace: int, words: bytes) -> Hop:
    """What one node wrote into a trace of this type."""
    fields: dict[str, int | float] = {}
    at = 0
    for bit in range(12):
        if not trace >> (23 - bit) & 1:
            continue
        size = 8 if bit in _WIDE else 4
        value = int.from_bytes(words[at : at + size], "big")
        at += size
        if value == (1 << size * 8) - 1:
            continue
        match bit:
            case 0:
                fields["node"] = value & 0xFFFFFF
            case 1:
                fields |= {"ingress_port": value >> 16, "egress_port": value & 0xFFFF}
            case 4 if value < 1 << 31:  # or else it was longer than can be told
                fields["latency_ns"] = value
            case 5:
                fields["utilisation"] = value / 65536
            case 6:
                fields["queue_bytes"] = value
            case 8:
                fields["node"] = value & (1 << 56) - 1
            case 9:
                fields |= {"ingress_port": value >> 32, "egress_port": value & 0xFFFFFFFF}
            case 11:
                fields["buffer_bytes"] = value
    return Hop(**fields)  # type: ignore[arg-type]


_IOAM = 16  # bytes of hop-by-hop options before a trace's words
_OPTION_IOAM = 0x31
_OVERFLOW = 0x400  # in the word that has the lengths
_WIDE = frozenset({8, 9, 10})  # bits that ask for two words
_INT_PORT = 20052  # as p4src/types.p4 has it
_M_BIT = 0x02  # in the first byte of the metadata header, behind the version, D and E


def _stacked(data: bytes) -> Iterator[Hop]:
    """The hops of a stack, the newest first."""
    end = SHIM + 4 * data[1]
    (head, instructions) = struct.unpack_from("!IH", data, SHIM)
    size = 4 * (head >> 8 & 0x1F)
    if end > len(data):
        raise ReportError("the packet was cut off within its telemetry")
    for at in range(SHIM + MD_HEADER, end, size or end):
        yield _hop(instructions, data[at : at + size])

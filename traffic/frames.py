"""What RoCEv2 frames are made of, their checksum, and the headers that endpoints stamp.

A message of an RDMA WRITE travels as one or more frames of at most the path MTU:

    Ethernet | IP | UDP 4791 | BTH | RETH (first or only) | payload, padded to words | ICRC

Nothing here uses scapy: whoever needs none does not wait for its half second of a start.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum
from functools import cache
from ipaddress import IPv4Address, IPv6Address

from params.data import Data

ROCE_PORT = 4791
UET_PORT = 4793
INT_DOMAIN = 0xC105  # whose domain-specific instructions are ours (p4src/types.p4)
INT_PORT = 20052  # ours to choose (p4src/types.p4): the UDP destination of packets with INT
DSCP_ROCE = 26
DSCP_CONTROL = 48  # CNPs; ACKs and NAKs have that of their data, unless told otherwise
INT_QUEUE = 0x8000 >> 3  # the instruction that HPCC gives
INT_LINK = 0x8000 | 0x4000 | 0x2000  # those of INT_DOMAIN: a link's rate, the time, bytes sent
ECN_CAPABLE = 0b10

_DO_NOT_FRAGMENT, _NO_PARTITION = 0x4000, 0xFFFF
_INT_MD, _INT_VERSION = 0x14, 2 << 12  # the type of a shim that keeps a UDP port; INT-MD v2

_ETHERNET = struct.Struct("!6s6sH")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_IPV6 = struct.Struct("!IHBB16s16s")
_UDP_PROTOCOL, _TTL = 17, 64
IP_BYTES = {4: _IPV4.size, 6: _IPV6.size}
_UDP = struct.Struct("!HHHH")
_BTH = struct.Struct("!BBHB3sB3s")
_ICRC = struct.Struct("<I")
_INT_SHIM = struct.Struct("!BBH")
_INT_HEADER = struct.Struct("!HBBHHHH")


class FrameError(ValueError):
    """A frame that cannot be made as it was asked for."""


class Opcode(IntEnum):
    """Opcodes of an RDMA WRITE on a reliable connection."""

    WRITE_FIRST = 0x06
    WRITE_MIDDLE = 0x07
    WRITE_LAST = 0x08
    WRITE_LAST_IMMEDIATE = 0x09
    WRITE_ONLY = 0x0A
    WRITE_ONLY_IMMEDIATE = 0x0B

    @property
    def starts(self) -> bool:
        """Whether the frame opens a message and so carries a RETH."""
        return self in (Opcode.WRITE_FIRST, Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMMEDIATE)

    @property
    def ends(self) -> bool:
        """Whether the frame closes a message."""
        return self not in (Opcode.WRITE_FIRST, Opcode.WRITE_MIDDLE)

    @property
    def has_immediate(self) -> bool:
        """Whether 32 bits for the receiver's program stand before the payload."""
        return self in (Opcode.WRITE_LAST_IMMEDIATE, Opcode.WRITE_ONLY_IMMEDIATE)


class FlowAddress(Data):
    """Everything about a flow's frames that does not change from one to the next."""

    src_mac: str
    dst_mac: str
    src: IPv4Address | IPv6Address
    dst: IPv4Address | IPv6Address
    src_port: int  # in IPv6 the flow label too
    queue_pair: int


_MACS = 12  # bytes of both
_LABEL = slice(16, 18)  # the lower bits of IPv6's flow label


class Template(Data):
    """Headers that many flows have in common, in pieces between what is each flow's own."""

    begin: bytes  # from the Ethernet type on, in IPv6 to the flow label
    to_addresses: bytes
    has_label: bool
    to_queue_pair: bytes  # from the UDP destination on
    rest: bytes

    @classmethod
    def cut(cls, headers: bytes, version: int) -> Template:
        """Of headers whose addresses are not filled in."""
        udp = _ETHERNET.size + IP_BYTES[version]
        addresses = udp - (32 if version == 6 else 8)
        label = _LABEL if version == 6 else slice(_MACS, _MACS)
        return cls(
            headers[_MACS : label.start],
            headers[label.stop : addresses],
            version == 6,
            headers[udp + 2 : -7],
            headers[-4:],
        )

    def addressed(self, ends: bytes, src_port: int, queue_pair: int) -> bytes:
        """A flow's; the lengths and checksums are the endpoint's to stamp."""
        port = src_port.to_bytes(2, "big")
        return b"".join(
            (
                ends[:_MACS],
                self.begin,
                port if self.has_label else b"",
                self.to_addresses,
                ends[_MACS:],
                port,
                self.to_queue_pair,
                queue_pair.to_bytes(3, "big"),
                self.rest,
            )
        )


@cache  # thousands of flows have the same
def template_of(
    version: int, tos: int, telemetry: int = 0, own_telemetry: int = 0, port: int = ROCE_PORT
) -> Template:
    """What such packets have in common."""
    return Template.cut(_headers(version, tos, telemetry, own_telemetry, port), version)


def datagram_headers(ends: bytes, src_port: int, port: int, tos: int) -> bytes:
    """Ethernet, IP and UDP of a datagram, its ends as `ends_of` has them; lengths to be stamped."""
    version = 6 if len(ends) > _MACS + 8 else 4
    headers = _headers(version, tos, 0, 0, port)[: _ETHERNET.size + IP_BYTES[version] + _UDP.size]
    addresses = _ETHERNET.size + IP_BYTES[version] - len(ends[_MACS:])
    return b"".join(
        (
            ends[:_MACS],
            headers[_MACS:addresses],
            ends[_MACS:],
            src_port.to_bytes(2, "big"),
            headers[-6:],
        )
    )


_INT_HOPS = 8
_INT_WORDS = (1, 1, 1, 1, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 0, 1)  # per instruction and hop


def _headers(version: int, tos: int, telemetry: int, own_telemetry: int, port: int) -> bytes:
    """Headers whose addresses are still to be filled in."""
    words = sum(words for bit, words in enumerate(_INT_WORDS) if telemetry & 0x8000 >> bit)
    words += own_telemetry.bit_count()
    domain = INT_DOMAIN if own_telemetry else 0
    transport = _BTH.pack(0, 0, _NO_PARTITION, 0, bytes(3), 0, bytes(3))
    if telemetry:
        on_board = (telemetry, domain, own_telemetry, 0)
        header = _INT_HEADER.pack(_INT_VERSION, words, _INT_HOPS, *on_board)
        transport = _INT_SHIM.pack(_INT_MD, len(header) // 4, ROCE_PORT) + header + transport
    length = _UDP.size + len(transport) + _ICRC.size
    network = _ipv6_header(tos, length) if version == 6 else _ipv4_header(tos, length)
    port = INT_PORT if telemetry else port
    udp = _UDP.pack(0, port, length, 0)
    ethernet = _ETHERNET.pack(bytes(6), bytes(6), 0x86DD if version == 6 else 0x0800)
    return ethernet + network + udp + transport


def _ipv6_header(tos: int, length: int) -> bytes:
    nobody = bytes(16)
    return _IPV6.pack(6 << 28 | tos << 20, length, _UDP_PROTOCOL, _TTL, nobody, nobody)


def _ipv4_header(tos: int, length: int) -> bytes:
    nobody, total = bytes(4), _IPV4.size + length
    marks = (0, _DO_NOT_FRAGMENT, _TTL, _UDP_PROTOCOL)
    network = _IPV4.pack(0x45, tos, total, *marks, 0, nobody, nobody)
    total16 = sum(word for (word,) in struct.iter_unpack("!H", network))
    checksum: int = ~(total16 + (total16 >> 16)) & 0xFFFF
    return network[:10] + checksum.to_bytes(2, "big") + network[12:]


def ends_of(flow: FlowAddress) -> bytes:
    """Both ends of a flow as they stand in a frame: MAC addresses, to and from, then IP's."""
    return mac_bytes(flow.dst_mac) + mac_bytes(flow.src_mac) + flow.src.packed + flow.dst.packed


@cache
def mac_bytes(text: str) -> bytes:
    """A MAC address as it stands in a frame."""
    return bytes.fromhex(text.replace(":", ""))


def icrc(packet: bytes) -> int:
    """The invariant CRC of an IP packet of RoCEv2 or UET from its IP header on, ICRC left off.

    What routers may change counts as ones: TOS, TTL, checksums, the BTH's congestion bits; of IPv6
    the traffic class, the flow label and the hop limit.
    """
    masked = bytearray(packet)
    version = masked[0] >> 4
    if version == 6:
        masked[0] |= 0x0F
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF
    else:
        masked[1] = masked[8] = 0xFF
        masked[10:12] = b"\xff\xff"
    udp = IP_BYTES[version]
    masked[udp + 6 : udp + 8] = b"\xff\xff"
    if int.from_bytes(masked[udp + 2 : udp + 4], "big") == ROCE_PORT:
        masked[udp + 12] = 0xFF
    return zlib.crc32(b"\xff" * 8 + masked)

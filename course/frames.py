"""Frames for packet tests: Ethernet, IPv4 and UDP, made and read byte by byte."""

from __future__ import annotations

import struct
from dataclasses import replace

from course.verdict import Wrong
from params.data import Data

MAC_SWITCH = "020000000001"
MAC_HOST = "0200000000aa"
WIRE_OVERHEAD = 24  # bytes around a frame on the wire: preamble, FCS and gap
_MIN = 14 + 20  # bytes of Ethernet and IPv4


def address(text: str) -> int:
    """An IPv4 address as a number."""
    return int.from_bytes(bytes(map(int, text.split("."))), "big")


def checksum(header: bytes) -> int:
    """RFC 1071's, of an even number of bytes."""
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Udp(Data):
    """A datagram in a frame."""

    src: str = "10.0.1.1"
    dst: str = "10.0.2.1"
    sport: int = 49152
    dport: int = 4791
    ttl: int = 64
    dscp: int = 26
    ecn: int = 2
    identification: int = 0
    payload: bytes = bytes(range(32))
    dst_mac: str = MAC_SWITCH
    src_mac: str = MAC_HOST

    @property
    def frame(self) -> bytes:
        """Its bytes."""
        length = 8 + len(self.payload)
        head = struct.pack(
            ">BBHHHBBHII",
            0x45,
            self.dscp << 2 | self.ecn,
            20 + length,
            self.identification,
            0x4000,
            self.ttl,
            17,
            0,
            address(self.src),
            address(self.dst),
        )
        ip = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
        macs = bytes.fromhex(self.dst_mac + self.src_mac)
        udp = struct.pack(">HHHH", self.sport, self.dport, length, 0)
        return macs + b"\x08\x00" + ip + udp + self.payload

    def but(self, **changes: object) -> Udp:
        """The same with something else."""
        return replace(self, **changes)  # type: ignore[arg-type]


class Seen(Data):
    """A frame that left, taken apart as far as lessons ask."""

    frame: bytes

    def __post_init__(self) -> None:
        if len(self.frame) < _MIN:
            raise Wrong(
                f"what leaves has {len(self.frame)} bytes; Ethernet and IPv4 alone have {_MIN}",
                "which headers are emitted, and which of them are there?",
            )

    @property
    def dst_mac(self) -> str:
        """In hex digits."""
        return self.frame[:6].hex()

    @property
    def src_mac(self) -> str:
        """In hex digits."""
        return self.frame[6:12].hex()

    @property
    def tos(self) -> int:
        """DSCP and ECN together."""
        return self.frame[15]

    @property
    def ecn(self) -> int:
        """0 to 3."""
        return self.tos & 3

    @property
    def dscp(self) -> int:
        """0 to 63."""
        return self.tos >> 2

    @property
    def total_length(self) -> int:
        """What the IPv4 header says."""
        return int.from_bytes(self.frame[16:18], "big")

    @property
    def identification(self) -> int:
        """By which tests tell packets apart."""
        return int.from_bytes(self.frame[18:20], "big")

    @property
    def ttl(self) -> int:
        """Time to live."""
        return self.frame[22]

    @property
    def has_right_checksum(self) -> bool:
        """Whether the IPv4 header adds up."""
        return checksum(self.frame[14:34]) == 0

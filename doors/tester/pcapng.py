"""A pcap with nanoseconds, as pcapng: which also says that frames end in their check sequences."""

from __future__ import annotations

import struct
from collections.abc import Iterator

_FILE = struct.Struct("=IHHiIII")
_RECORD = struct.Struct("=IIII")
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_ORDER = 0x1A2B3C4D
_ETHERNET = 1
_RESOLUTION, _FCS_LENGTH = 9, 13  # options of an interface
_NANOSECONDS, _FCS = 9, 4
_NS_IN_S = 10**9


def pcapng(pcap: bytes) -> bytes:
    """The same frames; of one that is not whole yet, nothing."""
    section = struct.pack("=IHHq", _ORDER, 1, 0, -1)
    options = b"".join(
        struct.pack("=HHB3x", kind, 1, each)
        for kind, each in ((_RESOLUTION, _NANOSECONDS), (_FCS_LENGTH, _FCS))
    )
    interface = struct.pack("=HHI", _ETHERNET, 0, 0) + options + bytes(4)
    blocks = [_block(_SECTION, section), _block(_INTERFACE, interface), *_packets(pcap)]
    return b"".join(blocks)


def _packets(pcap: bytes) -> Iterator[bytes]:
    at = _FILE.size
    while at + _RECORD.size <= len(pcap):
        seconds, ns, stored, wire = _RECORD.unpack_from(pcap, at)
        frame = pcap[at + _RECORD.size : at + _RECORD.size + stored]
        if len(frame) < stored:
            return
        when = seconds * _NS_IN_S + ns
        head = struct.pack("=IIIII", 0, when >> 32, when & 0xFFFFFFFF, stored, wire)
        yield _block(_PACKET, head + frame + bytes(-stored % 4))
        at += _RECORD.size + stored


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + length + body + length

"""RoCEv2 frames, read by hand, so that what scapy builds is read by other code than wrote it."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address

from params.data import Data
from traffic.frames import ROCE_PORT, FrameError, Opcode, icrc

_ETHERNET = struct.Struct("!6s6sH")
_IPV4 = struct.Struct("!BBHHHBBH4s4s")
_UDP = struct.Struct("!HHHH")
_BTH = struct.Struct("!BBHB3sB3s")
_RETH = struct.Struct("!QII")
_IMMDT = struct.Struct("!I")
_ICRC = struct.Struct("<I")


class RoceFrame(Data):
    """What a receiver takes from a sound frame of an RDMA WRITE."""

    src: IPv4Address
    dst: IPv4Address
    src_port: int
    ttl: int
    congestion_experienced: bool
    opcode: Opcode
    queue_pair: int
    psn: int
    va: int | None
    message_bytes: int | None
    payload: bytes
    immediate: int | None = None


def read_frame(frame: bytes) -> RoceFrame | None:
    """Read a frame; None if it is no RoCEv2 at all, FrameError if it is a damaged one."""
    if len(frame) < _ETHERNET.size + _IPV4.size + _UDP.size:
        return None
    if _ETHERNET.unpack_from(frame)[2] != 0x0800:
        return None
    ip_at = _ETHERNET.size
    version, tos, total, _, fragment, ttl, protocol, _, src, dst = _IPV4.unpack_from(frame, ip_at)
    if version != 0x45 or protocol != 17 or fragment & 0x3FFF:
        return None
    udp_at = ip_at + _IPV4.size
    src_port, dst_port, _, _ = _UDP.unpack_from(frame, udp_at)
    if dst_port != ROCE_PORT:
        return None

    bth_at = udp_at + _UDP.size
    end = ip_at + total - _ICRC.size
    if end < bth_at + _BTH.size or ip_at + total > len(frame):
        raise FrameError(f"a RoCEv2 frame from {IPv4Address(src)} is cut short")
    if _ICRC.unpack_from(frame, end)[0] != icrc(frame[ip_at:end]):
        raise FrameError(f"a RoCEv2 frame from {IPv4Address(src)} has a wrong ICRC")
    number, flags, _, _, queue_pair, _, psn = _BTH.unpack_from(frame, bth_at)
    try:
        opcode = Opcode(number)
    except ValueError:
        raise FrameError(f"opcode {number:#04x} is not of an RDMA WRITE") from None

    data_at = bth_at + _BTH.size
    va = message_bytes = None
    if opcode.starts:
        if end < data_at + _RETH.size:
            raise FrameError(f"a RoCEv2 frame from {IPv4Address(src)} has no room for its RETH")
        va, _, message_bytes = _RETH.unpack_from(frame, data_at)
        data_at += _RETH.size
    immediate = None
    if opcode.has_immediate:
        if end < data_at + _IMMDT.size:
            raise FrameError(f"a RoCEv2 frame from {IPv4Address(src)} has no room for its ImmDt")
        (immediate,) = _IMMDT.unpack_from(frame, data_at)
        data_at += _IMMDT.size
    padding = flags >> 4 & 3
    if end - padding < data_at:
        raise FrameError(f"a RoCEv2 frame from {IPv4Address(src)} has more padding than payload")
    return RoceFrame(
        src=IPv4Address(src),
        dst=IPv4Address(dst),
        src_port=src_port,
        ttl=ttl,
        congestion_experienced=tos & 3 == 3,
        opcode=opcode,
        queue_pair=int.from_bytes(queue_pair, "big"),
        psn=int.from_bytes(psn, "big"),
        va=va,
        message_bytes=message_bytes,
        payload=frame[data_at : end - padding],
        immediate=immediate,
    )

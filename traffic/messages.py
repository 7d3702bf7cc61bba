"""The frames of a message, built by scapy."""

from __future__ import annotations

from collections.abc import Iterator

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from traffic.frames import DSCP_ROCE, ECN_CAPABLE, ROCE_PORT, FlowAddress, FrameError, Opcode
from traffic.layers import BTH, RETH

_PSN_MASK = 0xFFFFFF


def write_frames(
    flow: FlowAddress, data: bytes, *, mtu: int, va: int = 0, rkey: int = 0, psn: int = 0
) -> Iterator[bytes]:
    """The frames of one RDMA WRITE message, the ICRC in place."""
    if not data:
        raise FrameError("an RDMA WRITE message of no bytes has nothing to send")
    chunks = [data[at : at + mtu] for at in range(0, len(data), mtu)]
    headers = (
        Ether(src=flow.src_mac, dst=flow.dst_mac)
        / IP(
            src=str(flow.src),
            dst=str(flow.dst),
            tos=DSCP_ROCE << 2 | ECN_CAPABLE,
            flags="DF",
            id=0,
        )
        / UDP(sport=flow.src_port, dport=ROCE_PORT, chksum=0)
    )
    for index, chunk in enumerate(chunks):
        opcode = _opcode(index, len(chunks))
        padding = -len(chunk) % 4
        bth = BTH(
            opcode=int(opcode),
            padcount=padding,
            dqpn=flow.queue_pair,
            ackreq=int(opcode.ends),
            psn=(psn + index) & _PSN_MASK,
        )
        reth = RETH(va=va, rkey=rkey, dmalen=len(data)) if opcode.starts else None
        payload = Raw(chunk + bytes(padding))
        yield bytes(headers / bth / reth / payload if reth else headers / bth / payload)


def _opcode(index: int, count: int) -> Opcode:
    if count == 1:
        return Opcode.WRITE_ONLY
    if index == 0:
        return Opcode.WRITE_FIRST
    return Opcode.WRITE_LAST if index == count - 1 else Opcode.WRITE_MIDDLE

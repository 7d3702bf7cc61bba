"""What messages hold, and the packets that carry them and answer them, built by scapy.

    Ether / IP / UDP / BTH / RETH (on the first) / ImmDt (on the last) / data      RDMA WRITE
    Ether / IP / UDP / BTH / AETH                                                  ACK or NAK

The headers up to UDP are a template's; lengths, checksums and the ICRC are scapy's to fill in.
"""

from __future__ import annotations

import struct

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from traffic.frames import Opcode
from traffic.layers import AETH, BTH, RETH, ImmDt

ACK, NAK_OUT_OF_SEQUENCE = 0x1F, 0x60  # syndromes
NAK_INVALID_REQUEST, NAK_REMOTE_ACCESS, NAK_REMOTE_OPERATION = 0x61, 0x62, 0x63
_ACKNOWLEDGE = 0x11  # the opcode of both
_PSN_MASK = 0xFFFFFF
_WORD_MASK = (1 << 64) - 1


def pattern(message: int, offset: int, size: int) -> bytes:
    """The bytes of a message from an offset on, which both ends can compute: core/pattern.h."""
    of_message = message * 0xD6E8FEB86659FD93
    words = []
    for number in range(offset // 8 + 1, (offset + size + 7) // 8 + 1):
        word = (number * 0x9E3779B97F4A7C15 ^ of_message) & _WORD_MASK
        words.append(word ^ word >> 29)
    return struct.pack(f"<{len(words)}Q", *words)[:size]


def headers(template: bytes) -> Packet:
    """A template's Ether / IP / UDP, with what depends on the packet left for scapy to fill in."""
    packet = Ether(template)
    packet[UDP].remove_payload()
    del packet[UDP].len
    if IPv6 in packet:
        del packet[IPv6].plen
    else:
        del packet[IP].len, packet[IP].chksum
    return packet


def network_of(packet: Packet) -> Packet:
    """A packet's IP header, of either version."""
    return packet[IPv6] if IPv6 in packet else packet[IP]


def traffic_class(packet: Packet) -> int:
    """DSCP and ECN of a packet's IP header."""
    network = network_of(packet)
    return int(network.tc if isinstance(network, IPv6) else network.tos)


def set_traffic_class(packet: Packet, value: int) -> None:
    """Give a packet's IP header another DSCP and ECN."""
    network = network_of(packet)
    if isinstance(network, IPv6):
        network.tc = value
    else:
        network.tos = value


def packets_of(size: int, mtu: int) -> int:
    """How many packets carry a message of so many bytes; one of none has one."""
    return max(1, -(-size // mtu))


def data_frame(
    onto: Packet,
    queue_pair: int,
    psn: int,
    *,
    message: int,
    size: int,
    index: int,
    mtu: int,
    wants_answer: bool,
) -> bytes:
    """One packet of a message, the ``index``-th; the message's id is its rkey and immediate."""
    opcode = _opcode(index, packets_of(size, mtu))
    data = pattern(message, index * mtu, min(mtu, size - index * mtu))
    padding = -len(data) % 4
    packet = onto / BTH(
        opcode=int(opcode),
        padcount=padding,
        dqpn=queue_pair,
        ackreq=int(wants_answer),
        psn=psn & _PSN_MASK,
    )
    if opcode.starts:
        packet /= RETH(va=0, rkey=message, dmalen=size)
    if opcode.has_immediate:
        packet /= ImmDt(data=message)
    return bytes(packet / Raw(data + bytes(padding)))


def answer_frame(onto: Packet, queue_pair: int, psn: int, *, syndrome: int, msn: int) -> bytes:
    """An ACK of all up to a packet, or a NAK of one; ``msn`` counts the messages that came."""
    bth = BTH(opcode=_ACKNOWLEDGE, dqpn=queue_pair, psn=psn & _PSN_MASK)
    return bytes(onto / bth / AETH(syndrome=syndrome, msn=msn & _PSN_MASK))


def _opcode(index: int, count: int) -> Opcode:
    if index == count - 1:
        return Opcode.WRITE_LAST_IMMEDIATE if index else Opcode.WRITE_ONLY_IMMEDIATE
    return Opcode.WRITE_MIDDLE if index else Opcode.WRITE_FIRST

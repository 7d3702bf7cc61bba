"""Flows drawn by a seed, and what their frames are by an independent account: scapy's."""

from __future__ import annotations

import ipaddress
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from scapy.contrib.roce import BTH
from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from params.data import Data

Value = Callable[[int], int]
"""A field's value in the i-th frame."""


class Drawn(Data, frozen=False):
    """A flow: its configuration is made, and this is what is to be seen of it."""

    name: str
    fits: Callable[[int, int], bool]  # whether the i-th frame may have so many bytes
    sees: list[tuple[type[Packet], int, str, Value]] = field(default_factory=list)
    is_roce: bool = False
    has_inner: bool = False


def draw(config: Any, rng: random.Random, name: str, packets: int) -> Drawn:
    """Add a flow to a configuration."""
    flow = config.flows.add(name=name)
    flow.tx_rx.port.tx_name, flow.tx_rx.port.rx_names = "p1", ["p2"]
    flow.duration.fixed_packets.packets = packets
    flow.rate.pps = rng.choice([5_000, 20_000])
    flow.metrics.enable = True
    drawn = Drawn(name, _sizes(flow.size, rng))
    _ethernet(drawn, flow, rng)
    kind = rng.choice(["udp", "tcp", "roce", "icmp", "vxlan"])
    version = rng.choice([4, 6]) if kind != "icmp" else 4
    _ip(drawn, flow, rng, version, 1)
    match kind:
        case "udp" | "tcp":
            _layer4(drawn, flow, rng, kind, 1)
        case "roce":
            udp = flow.packet.add().udp
            udp.dst_port.value = 4791
            psn, qpn = rng.randrange(1 << 24), rng.randrange(1 << 24)
            head = struct.pack(">BBHII", 0x0A, 0x40, 0xFFFF, qpn, psn)
            flow.packet.add().custom.bytes = head.hex()
            drawn.is_roce = True
            drawn.sees += [
                (UDP, 1, "dport", lambda _: 4791),
                (BTH, 1, "opcode", lambda _: 0x0A),
                (BTH, 1, "dqpn", lambda _: qpn),
                (BTH, 1, "psn", lambda _: psn),
            ]
        case "icmp":
            echo = flow.packet.add().icmp.echo
            drawn.sees.append((ICMP, 1, "seq", _varied(echo.sequence_number, rng, 16)))
            drawn.sees.append((ICMP, 1, "type", lambda _: 8))
        case "vxlan":
            flow.packet.add().udp.dst_port.value = 4789
            vxlan = flow.packet.add().vxlan
            drawn.sees.append((VXLAN, 1, "vni", _varied(vxlan.vni, rng, 24)))
            flow.packet.add().ethernet.dst.value = "02:00:00:00:00:09"
            drawn.has_inner = True
            _ip(drawn, flow, rng, 4, 2 if version == 4 else 1)
            _layer4(drawn, flow, rng, "tcp", 1)
    return drawn


def _sizes(size: Any, rng: random.Random) -> Callable[[int, int], bool]:
    match rng.randrange(3):
        case 0:
            fixed = rng.randint(200, 1518)
            size.fixed = fixed
            return lambda _, found: found == fixed
        case 1:
            start, step, count = rng.randint(200, 600), rng.randint(1, 90), rng.randint(1, 6)
            size.increment.start, size.increment.step = start, step
            size.increment.end = start + step * (count - 1) + rng.randrange(step)
            return lambda i, found: found == start + step * (i % count)
        case _:
            least, most = rng.randint(200, 400), rng.randint(400, 1500)
            size.random.min, size.random.max = least, most
            return lambda _, found: least <= found <= most


def _ethernet(drawn: Drawn, flow: Any, rng: random.Random) -> None:
    header = flow.packet.add().ethernet
    drawn.sees.append((Ether, 1, "src", _varied(header.src, rng, 48, form="mac")))
    drawn.sees.append((Ether, 1, "dst", _varied(header.dst, rng, 48, form="mac")))
    if rng.random() < 0.3:
        vlan = flow.packet.add().vlan
        drawn.sees.append((Dot1Q, 1, "vlan", _varied(vlan.id, rng, 12)))
        drawn.sees.append((Dot1Q, 1, "prio", _varied(vlan.priority, rng, 3)))


def _ip(drawn: Drawn, flow: Any, rng: random.Random, version: int, nth: int) -> None:
    if version == 6:
        header = flow.packet.add().ipv6
        drawn.sees += [
            (IPv6, nth, "tc", _varied(header.traffic_class, rng, 8)),
            (IPv6, nth, "hlim", _varied(header.hop_limit, rng, 8)),
            (IPv6, nth, "src", _varied(header.src, rng, 128, form="ipv6")),
            (IPv6, nth, "dst", _varied(header.dst, rng, 128, form="ipv6")),
        ]
        return
    header = flow.packet.add().ipv4
    phb = _varied(header.priority.dscp.phb, rng, 6)
    ecn = _varied(header.priority.dscp.ecn, rng, 2)
    drawn.sees += [
        (IP, nth, "tos", lambda i: int(phb(i)) << 2 | int(ecn(i))),
        (IP, nth, "id", _varied(header.identification, rng, 16)),
        (IP, nth, "ttl", _varied(header.time_to_live, rng, 8)),
        (IP, nth, "src", _varied(header.src, rng, 32, form="ipv4")),
        (IP, nth, "dst", _varied(header.dst, rng, 32, form="ipv4")),
    ]


def _layer4(drawn: Drawn, flow: Any, rng: random.Random, kind: str, nth: int) -> None:
    layer = UDP if kind == "udp" else TCP
    header = getattr(flow.packet.add(), kind)
    least = 20_000  # no port that scapy takes for something
    drawn.sees.append((layer, nth, "sport", _varied(header.src_port, rng, 16, least)))
    drawn.sees.append((layer, nth, "dport", _varied(header.dst_port, rng, 16, least)))
    if kind == "tcp":
        drawn.sees.append((layer, nth, "seq", _varied(header.seq_num, rng, 32)))
        header.ctl_syn.value = 1
        drawn.sees.append((layer, nth, "flags", lambda _: 2))


def _varied(
    pattern: Any, rng: random.Random, width: int, least: int = 0, form: str = "number"
) -> Value:
    """Have a field vary in one of the ways there are; what it is in frame i."""
    space = (1 << width) - least

    def number() -> int:
        return least + rng.randrange(space)

    match rng.choice(["value", "values", "increment", "decrement"]):
        case "value":
            only = number()
            pattern.value = _worded(only, form)
            return lambda _: only
        case "values":
            several = [number() for _ in range(rng.randint(1, 5))]
            pattern.values = [_worded(each, form) for each in several]
            return lambda i: several[i % len(several)]
        case kind:
            count, sign = rng.randint(1, min(6, 1 << width)), 1 if kind == "increment" else -1
            step = rng.randint(1, max(1, space // 16))
            start = least + (space >> 1) if least else number()
            counter = getattr(pattern, kind)
            counter.start, counter.step = _worded(start, form), _worded(step, form)
            counter.count = count
            return lambda i: (start + sign * step * (i % count)) % (1 << width)


def _worded(value: int, form: str) -> int | str:
    match form:
        case "mac":
            return ":".join(f"{byte:02x}" for byte in value.to_bytes(6))
        case "ipv4":
            return str(ipaddress.IPv4Address(value))
        case "ipv6":
            return str(ipaddress.IPv6Address(value))
    return value


def number(seen: Any) -> int:
    """What scapy shows of a field, as a number."""
    if not isinstance(seen, str):
        return int(seen)
    if seen.count(":") == 5:
        return int(seen.replace(":", ""), 16)
    return int(ipaddress.ip_address(seen))


def frames(pcap: bytes) -> Iterator[tuple[int, bytes]]:
    """Of a capture, with their times."""
    at = 24
    while at < len(pcap):
        seconds, ns, stored, _ = struct.unpack_from("=IIII", pcap, at)
        yield seconds * 10**9 + ns, pcap[at + 16 : at + 16 + stored]
        at += 16 + stored


def mark(frame: bytes, behind: int = 4) -> tuple[int, int, int]:
    """By what a port knows a frame: its flow, its number, and when its first bit left."""
    magic, name, number, left = struct.unpack_from(">HHIQ", frame, len(frame) - behind - 16)
    assert magic == 0xC15A
    return name & 1023, number, left


def assert_whole(frame: bytes) -> None:
    """A frame ends in its check sequence."""
    assert zlib.crc32(frame[:-4]) == int.from_bytes(frame[-4:], "little")


def recomputed(frame: bytes, drawn: Drawn) -> bytes:
    """A frame without its check sequence, its checksums and lengths as scapy computes them."""
    packet = Ether(frame)
    if not drawn.has_inner:
        return _summed(packet, drawn)
    # The inner frame ends in its check sequence, too, which scapy takes for padding.
    udp, head = packet[UDP], len(VXLAN())
    behind = len(frame) - len(udp) + 8 + head
    inner = frame[behind:-4]
    assert zlib.crc32(inner) == int.from_bytes(frame[-4:], "little")
    vxlan = frame[behind - head : behind]
    udp.remove_payload()
    udp.add_payload(Raw(vxlan + _summed(Ether(inner), drawn) + frame[-4:]))
    return _summed(packet, drawn)


def _summed(packet: Packet, drawn: Drawn) -> bytes:
    for layer in packet.iterpayloads():
        if isinstance(layer, IP | TCP | ICMP) or (isinstance(layer, UDP) and not drawn.is_roce):
            del layer.chksum
        if isinstance(layer, BTH):
            layer.icrc = None
        for name in ("len", "plen"):
            if name in layer.fields and isinstance(layer, IP | IPv6 | UDP):
                delattr(layer, name)
    return bytes(packet)

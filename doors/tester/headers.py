"""Packets as OTG describes them, header by header, laid out as bytes and what varies in them.

A header is a row of fields with a width each, as the wire has it; where its lengths and checksums
are left to us, the program that sends them mends them in each frame (traffic/tester/tester.h).
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from snappi import otg_pb2 as otg

from doors.tester.models import MAC, chosen, missing, value, wrong
from params.data import Data

ROCE_PORT = 4791
ICRC = 4  # bytes, behind the payload of RoCEv2
FCS = 4  # behind that of a frame
_BTH = 12
_MAX_VALUES = 65_536
_OFFSET = 5  # words of a TCP header without options
_UDP, _TCP, _ICMP = 17, 6, 1

_TYPES = {"vlan": 0x8100, "ipv4": 0x0800, "ipv6": 0x86DD, "arp": 0x0806, "mpls": 0x8847}
_PROTOCOLS = {"udp": _UDP, "tcp": _TCP, "icmp": _ICMP, "ipv4": 4, "ipv6": 41}
Message = Any
"""One of OTG's, whose fields are known when it is seen."""
_Row = tuple[tuple[str, int], ...]
_ROWS: dict[str, _Row] = {
    "ethernet": (("dst", 48), ("src", 48), ("ether_type", 16)),
    "vlan": (("priority", 3), ("cfi", 1), ("id", 12), ("tpid", 16)),
    "mpls": (("label", 20), ("traffic_class", 3), ("bottom_of_stack", 1), ("time_to_live", 8)),
    "ipv4": (
        *(("version", 4), ("header_length", 4), ("priority", 8), ("total_length", 16)),
        *(("identification", 16), ("reserved", 1), ("dont_fragment", 1), ("more_fragments", 1)),
        *(("fragment_offset", 13), ("time_to_live", 8), ("protocol", 8), ("header_checksum", 16)),
        *(("src", 32), ("dst", 32)),
    ),
    "ipv6": (
        *(("version", 4), ("traffic_class", 8), ("flow_label", 20), ("payload_length", 16)),
        *(("next_header", 8), ("hop_limit", 8), ("src", 128), ("dst", 128)),
    ),
    "udp": (("src_port", 16), ("dst_port", 16), ("length", 16), ("checksum", 16)),
    "tcp": (
        *(("src_port", 16), ("dst_port", 16), ("seq_num", 32), ("ack_num", 32)),
        *(("data_offset", 4), ("", 3), ("ecn_ns", 1), ("ecn_cwr", 1), ("ecn_echo", 1)),
        *(("ctl_urg", 1), ("ctl_ack", 1), ("ctl_psh", 1), ("ctl_rst", 1), ("ctl_syn", 1)),
        *(("ctl_fin", 1), ("window", 16), ("checksum", 16), ("", 16)),
    ),
    "vxlan": (("flags", 8), ("reserved0", 24), ("vni", 24), ("reserved1", 8)),
    "arp": (
        *(("hardware_type", 16), ("protocol_type", 16), ("hardware_length", 8)),
        *(("protocol_length", 8), ("operation", 16), ("sender_hardware_addr", 48)),
        *(("sender_protocol_addr", 32), ("target_hardware_addr", 48)),
        ("target_protocol_addr", 32),
    ),
    "pfcpause": (
        *(("dst", 48), ("src", 48), ("ether_type", 16), ("control_op_code", 16)),
        ("class_enable_vector", 16),
        *((f"pause_class_{number}", 16) for number in range(8)),
    ),
    "ethernetpause": (
        *(("dst", 48), ("src", 48), ("ether_type", 16), ("control_op_code", 16), ("time", 16)),
    ),
}
_ECHO: _Row = (
    *(("type", 8), ("code", 8), ("checksum", 16), ("identifier", 16)),
    ("sequence_number", 16),
)
_TOS = (("precedence", 3), ("delay", 1), ("throughput", 1), ("reliability", 1), ("monetary", 1),
        ("unused", 1))  # fmt: skip
_DSCP = (("phb", 6), ("ecn", 2))


class Varying(Data):
    """A field that differs from frame to frame, as the program is told it."""

    bit: int
    width: int
    how: str


class Packet(Data, frozen=False):
    """What a flow's frames begin with, what varies in it, and what is to be mended."""

    bits: int = 0
    width: int = 0
    varying: list[Varying] = field(default_factory=list)
    lengths: list[str] = field(default_factory=list)  # MORE by AT: what the length leaves out
    sums: list[str] = field(default_factory=list)  # from the outside to the inside
    dscp: int | None = None  # of the outermost IP header's first frame
    pfc_queue: int | None = None
    depth: int = 0  # how many Ethernet frames the last header is in, within the first
    icrc: bool = False

    @property
    def bytes(self) -> bytes:
        """The template."""
        return self.bits.to_bytes(self.width // 8)

    @property
    def trailer(self) -> int:
        """How many bytes are behind the payload."""
        return self.tail + ICRC * self.icrc

    @property
    def tail(self) -> int:
        """How many of them are check sequences of frames within the frame."""
        return FCS * self.depth

    @property
    def at(self) -> int:
        """How many bytes there are by now."""
        return self.width // 8

    def add(self, values: Sequence[int], width: int, how: str = "") -> None:
        """One more field: its first value, and how it varies if it does."""
        if how:
            self.varying.append(Varying(self.width, width, how))
        self.bits = self.bits << width | values[0] & ((1 << width) - 1)
        self.width += width


class Ends(Data):
    """What `auto` stands for at a port."""

    mac: str
    ip: str
    gateway_mac: str


def laid_out(headers: Sequence[Message], ends: Ends, where: str) -> Packet:
    """A flow's packet; without headers it is Ethernet's."""
    packet = Packet()
    headers = headers or [otg.FlowHeader(choice="ethernet")]
    kinds = [chosen(header) for header in headers]
    contents: list[Message] = [
        getattr(header, kind) if kind else None for header, kind in zip(headers, kinds, strict=True)
    ]
    at_ip: tuple[int, int] | None = None  # where the last IP header begins, and its version
    for number, (kind, content) in enumerate(zip(kinds, contents, strict=True)):
        then = kinds[number + 1] if number + 1 < len(kinds) else ""
        place = f"{where}.packet[{number}].{kind}"
        match kind:
            case "custom":
                _custom(packet, content.bytes, place)
            case "icmp":
                _icmp(packet, content.echo)
            case _:
                begins = packet.at
                if kind == "ethernet" and begins:
                    packet.depth += 1
                    packet.sums.append(f"fcs 0 {begins} 0 0 0 {packet.tail}")
                _header(packet, kind, content, then, ends, place)
                if kind in ("ipv4", "ipv6"):
                    at_ip = (begins, 4 if kind == "ipv4" else 6)
                if kind in ("udp", "tcp"):
                    next_one = contents[number + 1] if then == "custom" else None
                    _layer4(packet, kind, content, begins, at_ip, next_one)
    if packet.depth > 1:
        raise missing(
            f"{where}.packet: more than two frames in each other are not there in closlab"
        )
    if packet.at < 14:
        raise wrong(f"{where}.packet: its headers have {packet.at} bytes, and Ethernet has 14")
    return packet


def _header(packet: Packet, kind: str, content: Message, then: str, ends: Ends, place: str) -> None:
    begins = packet.at
    for name, width in _ROWS[kind]:
        if not name:
            packet.add([0], width)
        elif kind == "ipv4" and name == "priority":
            _priority(packet, content.priority)
        elif kind == "ipv4" and name == "header_checksum":
            _sum(packet, content, name, f"ipv4 {packet.at} {begins}")
        elif name == "checksum":
            packet.add([0], width)  # whose turn comes when it is known what is before it
        else:
            _field(
                packet, content, name, width, _usual(kind, name, then, ends, packet, begins), place
            )
        if kind == "ipv6" and name == "traffic_class" and packet.dscp is None:
            packet.dscp = (packet.bits & 0xFF) >> 2
    if kind == "ethernet" and content.HasField("pfc_queue"):
        packet.pfc_queue = _values(content.pfc_queue, place)[0][0]


def _usual(
    kind: str, name: str, then: str, ends: Ends, packet: Packet, begins: int
) -> Callable[[], int] | None:
    """What a field is where it is left to us; None: what the model says."""
    match kind, name:
        case ("ethernet", "ether_type") | ("vlan", "tpid"):
            return (lambda: _TYPES[then]) if then in _TYPES else None
        case ("ipv4", "protocol") | ("ipv6", "next_header"):
            return (lambda: _PROTOCOLS[then]) if then in _PROTOCOLS else None
        case "ethernet", "dst":
            return lambda: _mac(ends.gateway_mac)
        case "ethernet", "src":
            return lambda: _mac(ends.mac)
        case (("ipv4" | "ipv6"), "src"):
            of_kind = ipaddress.ip_address(ends.ip).version == int(kind[-1])
            return (lambda: int(ipaddress.ip_address(ends.ip))) if of_kind else None
        case ("ipv4", "total_length") | ("ipv6", "payload_length") | ("udp", "length"):
            at, less = packet.at, begins + (40 if kind == "ipv6" else 0) + packet.tail

            def mended() -> int:
                packet.lengths.append(f"length {at} 0 0 {less} 0 0")
                return 0

            return mended
        case "tcp", "data_offset":
            return lambda: _OFFSET
        case "mpls", "bottom_of_stack":
            return lambda: int(then != "mpls")
        case _:
            return None


def _field(
    packet: Packet,
    content: Message,
    name: str,
    width: int,
    usual: Callable[[], int] | None,
    place: str,
) -> None:
    """A field; where nothing is said, or that it is left to us, it is what is usual."""
    pattern = getattr(content, name)
    is_ours = not content.HasField(name) or chosen(pattern) == "auto"
    if is_ours and usual is not None:
        packet.add([usual()], width)
    else:
        packet.add(*_shaped(*_values(pattern, f"{place}.{name}"), width))


def _shaped(values: list[int], how: str, width: int) -> tuple[list[int], int, str]:
    return values, width, how


def _values(pattern: Message, place: str) -> tuple[list[int], str]:
    """A field's first value and how it goes on, as a program is told it."""
    kind = chosen(pattern)
    match kind:
        case "value":
            return [_number(value(pattern, "value"))], ""
        case "values":
            numbers = [*map(_number, pattern.values)]
            if not numbers:
                raise wrong(f"{place}.values: there are none")
            if len(numbers) > _MAX_VALUES:
                raise wrong(f"{place}.values: {_MAX_VALUES:,} are the most that there may be")
            return numbers, "list " + ",".join(f"{number:x}" for number in numbers)
        case "increment" | "decrement":
            counter = getattr(pattern, kind)
            start, step = _number(value(counter, "start")), _number(value(counter, "step"))
            count = max(1, value(counter, "count"))
            step = step if kind == "increment" else (1 << 128) - step
            return [start], f"step {start:x} {step:x} {count}"
        case "random":
            drawn = _drawn(pattern.random, place)
            return drawn, "list " + ",".join(f"{number:x}" for number in drawn)
        case "auto":  # and nothing is known that it could be
            return [_number(_model_default(pattern).value)], ""
        case _:
            raise missing(f"{place}.{kind} is not there in closlab")


def _drawn(given: Message, place: str) -> list[int]:
    least, most = _number(value(given, "min")), _number(value(given, "max"))
    count = max(1, value(given, "count"))
    if least > most:
        raise wrong(f"{place}.random: min is more than max")
    if count > _MAX_VALUES:
        raise wrong(f"{place}.random.count: {_MAX_VALUES:,} are the most that there may be")
    by_seed = random.Random(value(given, "seed"))  # noqa: S311 - nothing secret
    return [by_seed.randint(least, most) for _ in range(count)]


class _Default(Data):
    value: Any


def _model_default(pattern: Message) -> _Default:
    return _Default(value(type(pattern)(), "value"))


def _number(given: Any) -> int:
    """A value as the wire has it."""
    if isinstance(given, int):
        return given
    text = str(given)
    return _mac(text) if MAC.fullmatch(text) else int(ipaddress.ip_address(text))


def _mac(text: str) -> int:
    return int(text.replace(":", ""), 16)


def _priority(packet: Packet, given: Message) -> None:
    kind = chosen(given)
    if kind == "raw":
        _field(packet, given, "raw", 8, None, "priority")
    else:
        content = getattr(given, kind)
        for name, width in _TOS if kind == "tos" else _DSCP:
            _field(packet, content, name, width, None, f"priority.{kind}")
    if packet.dscp is None:
        packet.dscp = (packet.bits & 0xFF) >> 2


def _sum(packet: Packet, content: Message, name: str, mending: str) -> None:
    """A checksum, right, wrong on purpose, or somebody's own."""
    given = getattr(content, name)
    if content.HasField(name) and chosen(given) == "custom":
        packet.add([given.custom], 16)
        return
    packet.add([0], 16)
    packet.sums.append(f"{mending} 0 0 {int(_is_bad(content, name))} {packet.tail}")


def _is_bad(content: Message, name: str) -> bool:
    given = getattr(content, name)
    field_ = given.DESCRIPTOR.fields_by_name["generated"]
    bad = field_.enum_type.values_by_name["bad"].number
    return bool(content.HasField(name) and given.HasField("generated") and given.generated == bad)


def _layer4(
    packet: Packet,
    kind: str,
    content: Message,
    begins: int,
    at_ip: tuple[int, int] | None,
    then: Message | None,
) -> None:
    """The checksum over all that follows, and RoCEv2's own at the end."""
    at = begins + (6 if kind == "udp" else 16)
    ports = content.dst_port if content.HasField("dst_port") else None
    is_roce = (
        kind == "udp"
        and at_ip is not None
        and ports is not None
        and _values(ports, "")[0] == [ROCE_PORT]
        and then is not None
        and len(_hex(then.bytes)) >= _BTH
    )
    if content.HasField("checksum") and chosen(content.checksum) == "custom":
        sum_ = content.checksum.custom
        place = 8 * (packet.at - at - 2)
        packet.bits |= sum_ << place
    elif at_ip is not None and not (is_roce and not content.HasField("checksum")):
        protocol = _UDP if kind == "udp" else _TCP
        bad = int(_is_bad(content, "checksum"))
        packet.sums.append(f"udp {at} {begins} {at_ip[0]} {protocol} {bad} {packet.tail}")
    if is_roce and at_ip is not None:
        packet.icrc = True
        packet.sums.append(f"icrc 0 {begins + 8} {at_ip[0]} 0 0 {packet.tail}")


def _icmp(packet: Packet, echo: Message) -> None:
    begins = packet.at
    for name, width in _ECHO:
        if name == "checksum":
            _sum(packet, echo, name, f"plain {packet.at} {begins}")
        else:
            _field(packet, echo, name, width, None, "icmp.echo")


def _custom(packet: Packet, text: str, place: str) -> None:
    given = _hex(text)
    if not given:
        raise wrong(f"{place}.bytes: there are none")
    packet.add([int.from_bytes(given)], 8 * len(given))


def _hex(text: str) -> bytes:
    digits = text.removeprefix("0x").removeprefix("0X").replace(":", "").replace(" ", "")
    return bytes.fromhex(digits if len(digits) % 2 == 0 else f"0{digits}")

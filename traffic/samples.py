"""One packet of each kind that crosses the fabric, built by scapy: to look at, change and send.

packet = sample("write-only")
change(packet, "BTH.psn", "7")
print(dissect(bytes(packet)))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from scapy.contrib.mac_control import MACControlClassBasedFlowControl
from scapy.fields import AnyField, BitField, ConditionalField
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.packet import NoPayload, Packet, Padding, Raw

from params.data import Data
from traffic.frames import (
    DSCP_CONTROL,
    DSCP_ROCE,
    ECN_CAPABLE,
    IP_BYTES,
    UET_PORT,
    FrameError,
    Opcode,
    icrc,
)
from traffic.layers import (
    AETH,
    BTH,
    EETH,
    ERTH,
    INT_PORT,
    METH,
    NETH,
    PETH,
    REPORT_PORT,
    RETH,
    ROCE_PORT,
    SETH,
    TSETH,
    CNPPadding,
    ImmDt,
    IntHeader,
    IntShim,
    Report,
    ReportGroup,
)
from traffic.sue import COMMAND_BYTES
from traffic.sue_layers import SueCommand, SuePdu, SueRh, Sunh, r_crc
from traffic.uet_layers import UetPds, UetSes, UetSesShort

_PAUSE_ADDRESS = "01:80:c2:00:00:01"
_ACK, _CNP = 0x11, 0x81
_PSN_ERROR = 0x60  # the syndrome of a NAK for a packet that came before its turn
_DATA = b"Remote DMA data."
_ICRC_BYTES = 4
_UDP_BYTES = 8
_NODE_AND_LATENCY = 0xA000  # INT instructions
_DSCP_CUT = 41
_CUT_TO = 64
_HOPS = [[2, 340], [1, 120]]  # newest first: node, hop latency in ns


class Kind(Data):
    """A kind of packet."""

    about: str
    build: Callable[[], Packet]


def _ethernet() -> Packet:
    return Ether(src="02:00:0a:00:01:01", dst="02:01:01:00:00:01")


def _network(dscp: int) -> Packet:
    tos = dscp << 2 | ECN_CAPABLE
    return _ethernet() / IP(src="10.0.1.1", dst="10.0.2.1", tos=tos, flags="DF", id=0)


def _transport(dscp: int = DSCP_ROCE) -> Packet:
    return _network(dscp) / UDP(sport=0xC123, dport=ROCE_PORT, chksum=0)


def _reth() -> Packet:
    return RETH(va=0x1000, rkey=0xABCD, dmalen=len(_DATA))


def _data(opcode: Opcode) -> Packet:
    packet = _transport() / BTH(opcode=int(opcode), dqpn=0x101, ackreq=int(opcode.ends), psn=7)
    packet = packet / _reth() if opcode.starts else packet
    packet = packet / ImmDt(data=0x2A) if opcode.has_immediate else packet
    return packet / Raw(_DATA)


def _answer(syndrome: int) -> Packet:
    bth = BTH(opcode=_ACK, dqpn=0x100, psn=7)
    return _transport(DSCP_CONTROL) / bth / AETH(syndrome=syndrome, msn=1)


def _with_telemetry() -> Packet:
    stack = [word for hop in _HOPS for word in hop]
    header = IntHeader(hop_words=2, remaining_hops=6, instructions=_NODE_AND_LATENCY, stack=stack)
    transport = UDP(sport=0xC123, dport=INT_PORT, chksum=0) / IntShim() / header
    bth = BTH(opcode=int(Opcode.WRITE_ONLY), dqpn=0x101, ackreq=1, psn=7, icrc=0)
    packet = _network(DSCP_ROCE) / transport / bth / _reth() / Raw(_DATA)
    frame = bytes(packet)  # the ICRC is that of the packet without INT
    return Ether(frame[:-_ICRC_BYTES] + _right_icrc(frame).to_bytes(_ICRC_BYTES, "little"))


def _report() -> Packet:
    report = Report(bits=_NODE_AND_LATENCY, tracked_flow=1, metadata=[1, 120])
    transport = UDP(sport=REPORT_PORT, dport=REPORT_PORT) / ReportGroup(sequence=1, node=1)
    return _network(0) / transport / report / _data(Opcode.WRITE_ONLY)


_ETHERNET = 14  # bytes of a header
_MIN = 60  # of a frame


_MRC_SENT_AGAIN = 0x20  # of what scapy calls reserved
_MRC_STAMPED = 0x10
_MRC_NODE = 2  # in place of a queue pair's number: the adapter itself
_ENTROPY = 0xC1230000  # as the samples' UDP source port says it


def _mrc(opcode: int, behind: Packet, dscp: int = DSCP_CONTROL, **fields: int) -> Packet:
    """An MRC packet."""
    said = {"dqpn": 0x101, "psn": 7} | fields
    return _transport(dscp) / BTH(opcode=opcode, **said) / behind


def _mrc_write(stamp: Packet | None = None) -> Packet:
    head = METH(rqmsn=1, msn=1) / stamp if stamp else METH(rqmsn=1, msn=1)
    behind = head / RETH(va=0, rkey=0x2A, dmalen=len(_DATA)) / ImmDt(data=0x2A) / Raw(_DATA)
    return _mrc(0xCB, behind, DSCP_ROCE, ackreq=1, resv7=_MRC_STAMPED if stamp else 0)


def _cut(packet: Packet) -> Packet:
    """What p4src/trim.p4 leaves of a packet."""
    left = Ether(bytes(packet)[:_CUT_TO])
    left[IP].tos, left[IP].len = _DSCP_CUT << 2 | ECN_CAPABLE, _CUT_TO - _ETHERNET
    del left[IP].chksum
    return left


def _uet(dscp: int, pds: Packet) -> Packet:
    """A UET packet, closed by its CRC."""
    udp = UDP(sport=0xC123, dport=UET_PORT, chksum=0)
    frame = bytes(_network(dscp) / udp / pds / Padding(bytes(_ICRC_BYTES)))
    # scapy counts no padding in lengths.
    ip = Ether(frame)[IP]
    ip.len, ip[UDP].len = len(frame) - 14, len(frame) - 34
    del ip.chksum
    closed = bytes(_ethernet() / ip)[:-_ICRC_BYTES]
    return Ether(closed + icrc(closed[14:]).to_bytes(_ICRC_BYTES, "little"))


def _uet_write() -> Packet:
    pds = UetPds(next=3, flags=0x08, clear_psn_offset=-1, psn=0x1000007, spdcid=0x100, dpdcid=0x101)
    ses = UetSes(som=1, eom=1, message_id=0x2A, memory_key=0x2A, request_length=len(_DATA))
    return _uet(DSCP_ROCE, pds / ses / Raw(_DATA))


def _uet_short() -> Packet:
    ses = UetSesShort(som=1, eom=1, buffer_offset=0x2A << 32, request_length=len(_DATA))
    said = {"next": 1, "flags": 0x08, "clear_psn_offset": -1, "psn": 0x1000007}
    return _uet(DSCP_ROCE, UetPds(**said, spdcid=0x100, dpdcid=0x101) / ses / Raw(_DATA))


def _uet_lone(**fields: int) -> Packet:
    """Of no connection: its job is the target's number."""
    ses = UetSes(
        som=1, eom=1, message_id=0x2A, job_id=0x101, memory_key=0x2A, request_length=len(_DATA)
    )
    return _uet(DSCP_ROCE, UetPds(next=3, **fields) / ses / Raw(_DATA))


def _uet_answer(**fields: int) -> Packet:
    return _uet(DSCP_CONTROL, UetPds(spdcid=0x101, dpdcid=0x100, **fields))


def _sue(pdu: Packet, dscp: int = DSCP_ROCE, **fields: int) -> Packet:
    """A frame of scale-up Ethernet, closed by its R-CRC."""
    rh = SueRh(xpuid=0x101, apsn=6, **fields)
    frame = bytes(_ethernet() / Sunh(tc=dscp << 2, label=0x123, src=0x101, dst=0x201) / rh / pdu)
    return Ether((frame + r_crc(frame)).ljust(_MIN, b"\0"))


def _sue_stores() -> Packet:
    two = [SueCommand(flags=1, length=8, key=0x2A), SueCommand(flags=1, length=8, key=0x2B)]
    return _sue(SuePdu(size=2 * COMMAND_BYTES + len(_DATA), commands=two) / Raw(_DATA), npsn=7)


KINDS = {
    "write-only": Kind("an RDMA WRITE in one packet", lambda: _data(Opcode.WRITE_ONLY)),
    "write-first": Kind("the first packet of a WRITE", lambda: _data(Opcode.WRITE_FIRST)),
    "write-middle": Kind("one between first and last", lambda: _data(Opcode.WRITE_MIDDLE)),
    "write-last": Kind("the last packet", lambda: _data(Opcode.WRITE_LAST)),
    "write-last-immediate": Kind(
        "the last, with 32 bits for the program", lambda: _data(Opcode.WRITE_LAST_IMMEDIATE)
    ),
    "write-only-immediate": Kind(
        "one packet with an immediate", lambda: _data(Opcode.WRITE_ONLY_IMMEDIATE)
    ),
    "write-int": Kind("a WRITE that two switches have put telemetry on", _with_telemetry),
    "ack": Kind("all up to a sequence number has arrived", lambda: _answer(0x1F)),
    "nak": Kind("a packet is missing: go back to this one", lambda: _answer(_PSN_ERROR)),
    "cnp": Kind(
        "congestion was experienced: send more slowly",
        lambda: _transport(DSCP_CONTROL) / BTH(opcode=_CNP, dqpn=0x100, becn=1) / CNPPadding(),
    ),
    "pause": Kind(
        "802.1Qbb: nothing of priority 3 for a while",
        lambda: (
            Ether(src="02:01:01:00:00:01", dst=_PAUSE_ADDRESS)
            / MACControlClassBasedFlowControl(c3_enabled=1, c3_pause_time=0xFFFF)
        ),
    ),
    "uet-write": Kind("UET: a write in one packet, which may take any way", _uet_write),
    "uet-small-write": Kind("UET: the same, behind the smallest header", _uet_short),
    "uet-rudi": Kind(
        "UET: a write to a target that keeps nothing (RUDI)",
        lambda: _uet_lone(type=4, packet_id=0x1000007),
    ),
    "uet-rudi-answer": Kind("UET: it has come", lambda: _uet_answer(type=5, packet_id=0x1000007)),
    "uet-uud": Kind("UET: a datagram, which nobody answers (UUD)", lambda: _uet_lone(type=6)),
    "uet-out-of-order": Kind(
        "UET: this came before its turn (ROD): go back",
        lambda: _uet_answer(type=10, nack_code=13, nack_psn=0x1000009, max_recv_psn=0x1000008),
    ),
    "uet-cut": Kind("UET: what a switch without room left of it", lambda: _cut(_uet_write())),
    "uet-ack": Kind(
        "UET: one packet has come, and what others have",
        lambda: _uet_answer(type=8, cack_psn=0x1000007, ack_psn_offset=2, sack_bitmap=0b10),
    ),
    "uet-nack": Kind(
        "UET: one was cut: send it again",
        lambda: _uet_answer(type=10, nack_code=1, nack_psn=0x1000008, max_recv_psn=0x1000009),
    ),
    "uet-probe": Kind(
        "UET: what of these has come?",
        lambda: _uet_answer(type=11, next=6, psn=0x1000008, payload_=0x1000008),
    ),
    "uet-credit": Kind(
        "UET: so much may be sent in all", lambda: _uet_answer(type=11, next=7, payload_=0x400)
    ),
    "mrc-write": Kind("MRC: a write in one packet, which may take any way", _mrc_write),
    "mrc-cut": Kind("MRC: what a switch without room left of it", lambda: _cut(_mrc_write())),
    "mrc-sack": Kind(
        "MRC: one packet has come, marked, and what others have",
        lambda: _mrc(
            0xDC,
            SETH(
                m=1,
                cack_psn=7,
                ack_psn_offset=2,
                entropy=_ENTROPY,
                sack_bitmap=0b10,
                spdcid=0x101,
                dpdcid=0x100,
            ),
            dqpn=0x100,
            psn=9,
        ),
    ),
    "mrc-nack": Kind(
        "MRC: one was cut: send it again",
        lambda: _mrc(
            0xDD,
            NETH(reason=1, nack_psn=8, entropy=_ENTROPY, spdcid=0x101, dpdcid=0x100),
            dqpn=0x100,
            psn=8,
            resv7=_MRC_SENT_AGAIN,
        ),
    ),
    "mrc-probe": Kind(
        "MRC: does this way lead there?",
        lambda: _mrc(
            0xDE, PETH(probe_id=0x124, spdcid=0x100, dpdcid=0x101, tx_timestamp=0x1234, ftype=1)
        ),
    ),
    "mrc-stamped": Kind(
        "MRC: a write that bears the time it left at",
        lambda: _mrc_write(TSETH(tx_timestamp=0x1234)),
    ),
    "mrc-port-status": Kind(
        "MRC: which ports of an adapter have a link",
        lambda: _mrc(0xD8, ERTH(port_status_mask=0b11010, tx_timestamp=0x1234), dqpn=_MRC_NODE),
    ),
    "mrc-ev-probe": Kind(
        "MRC: does this way lead to that adapter?",
        lambda: _mrc(0xD8, ERTH(op=1, tx_timestamp=0x1234), dqpn=_MRC_NODE),
    ),
    "mrc-response": Kind(
        "MRC: it does",
        lambda: _mrc(0xD9, EETH(op=1, tx_timestamp=0x1234), dqpn=_MRC_NODE),
    ),
    "sue-stores": Kind("scale-up Ethernet: two stores that waited together", _sue_stores),
    "sue-ack": Kind(
        "scale-up Ethernet: all up to a number has come",
        lambda: _sue(SuePdu(), DSCP_CONTROL, npsn=1),
    ),
    "sue-nack": Kind(
        "scale-up Ethernet: what follows that number is missing",
        lambda: _sue(SuePdu(), DSCP_CONTROL, npsn=1, op=1),
    ),
    "report": Kind("a telemetry report of one packet", _report),
}


def sample(kind: str) -> Packet:
    """A packet of a kind, whole, with all that scapy works out."""
    return Ether(bytes(KINDS[kind].build()))


def change(packet: Packet, place: str, text: str) -> None:
    """Set ``LAYER.FIELD`` of a packet.

    Lengths, checksums and the ICRC stay what they were, unless they are set to "auto".
    """
    name, _, field = place.partition(".")
    layers = {_short(layer).lower(): layer for layer in layers_of(packet)}
    layer = layers.get(name.lower())
    if layer is None:
        known = ", ".join(_short(layer) for layer in layers_of(packet))
        raise FrameError(f"this packet has no layer '{name}'; it has {known}")
    fields = {known.name: known for known in layer.fields_desc}
    if field not in fields:
        raise FrameError(f"{_short(layer)} has no field '{field}'; it has {', '.join(fields)}")
    is_number = re.fullmatch(r"0[xX][0-9a-fA-F]+|\d+", text)
    try:
        if text == "auto":
            layer.delfieldval(field)
        else:
            layer.setfieldval(field, _fitting(fields[field], text) if is_number else text)
        packet.build()
    except Exception as error:  # scapy checks nothing itself: whatever packs the field complains
        raise FrameError(f"'{text}' is no value for {place}: {error}") from None


def _fitting(field: AnyField, text: str) -> int:
    """A number that has room in a field."""
    bits = field.size if isinstance(field, BitField) else 8 * field.sz
    number = int(text, 0)
    if number >> bits:
        raise FrameError(f"it has {bits} bits")
    return number


def layers_of(packet: Packet) -> Iterator[Packet]:
    """Its layers, outermost first."""
    while not isinstance(packet, NoPayload):
        yield packet
        packet = packet.payload


def _short(layer: Packet) -> str:
    return "PFC" if isinstance(layer, MACControlClassBasedFlowControl) else type(layer).__name__


class Field(Data):
    """A field as it is shown; only the first of a layer names that."""

    layer: str
    name: str
    value: str


def dissect(frame: bytes) -> list[Field]:
    """A frame field by field; one too short to be any is its bytes."""
    if len(frame) < _ETHERNET:
        return [Field("too short for Ethernet", "bytes", frame.hex(" "))]
    fields: list[Field] = []
    for layer in layers_of(Ether(frame)):
        fields += _fields_of(layer, frame)
        if isinstance(layer, Report):
            break  # what follows is the packet reported on, and may be cut anywhere
    return fields


def _fields_of(layer: Packet, frame: bytes) -> Iterator[Field]:
    for index, field in enumerate(layer.fields_desc):
        is_uet_crc = isinstance(layer, Padding) and layer.underlayer is not None
        is_icrc = is_uet_crc or (isinstance(layer, BTH) and field.name == "icrc")
        if isinstance(field, ConditionalField) and not field._evalcond(layer):
            continue
        value = str(field.i2repr(layer, layer.getfieldval(field.name)))
        name = "" if index else _short(layer)
        yield Field(name, field.name, f"{value}, {_icrc_verdict(frame)}" if is_icrc else value)
    if isinstance(layer, IntHeader):
        for number, hop in enumerate(layer.hops(), 1):
            yield Field("", f"hop {number}", ", ".join(f"{k} {v:,}" for k, v in hop.items()))


def icrc_is_right(frame: bytes) -> bool | None:
    """Whether the ICRC of a frame of RoCEv2 or UET is right; none if it has none."""
    if (carried := _carried(frame)) is None:
        return None
    at, network = carried
    end = at + _total(network)
    was = at + IP_BYTES[network.version] + network[UDP].len if UDP in network else end
    if max(end, was) > len(frame):
        return None  # a capture that was cut, or a switch's doing
    return frame[end - _ICRC_BYTES : end] == _right_icrc(frame).to_bytes(_ICRC_BYTES, "little")


def _carried(frame: bytes) -> tuple[int, Packet] | None:
    """Where the IP header lies that a RoCEv2 or UET header belongs to, and its layer.

    What else is before it, a carrier of segments say, is not the ICRC's concern.
    """
    at = 0
    found = None
    for layer in layers_of(Ether(frame)):
        if isinstance(layer, Report):
            break
        if isinstance(layer, IP | IPv6):
            found = (at, layer) if layer.version == (4 if isinstance(layer, IP) else 6) else None
        if isinstance(layer, BTH | UetPds):
            return found
        at += len(layer.raw_packet_cache or b"")
    return None


def _total(network: Packet) -> int:
    """Bytes of a packet from its IP header on."""
    return int(network.len if network.version == 4 else IP_BYTES[6] + network.plen)


def _icrc_verdict(frame: bytes) -> str:
    is_right = icrc_is_right(frame)
    if is_right is None:
        return "cut off"
    right = _right_icrc(frame).to_bytes(_ICRC_BYTES, "little").hex()
    return "right" if is_right else f"WRONG: 0x{right} would be right"


def _right_icrc(frame: bytes) -> int:
    """The ICRC a frame should have: that of the packet as it was before INT came on board."""
    carried = _carried(frame)
    assert carried is not None
    at, network = carried
    ip = bytearray(frame[at : at + _total(network) - _ICRC_BYTES])
    if IntShim in network:
        udp = IP_BYTES[network.version]
        shim = udp + _UDP_BYTES
        del ip[shim : shim + 4 + 4 * network[IntShim].length]
        datagram = len(ip) + _ICRC_BYTES - udp
        if network.version == 4:
            ip[2:4] = (udp + datagram).to_bytes(2, "big")
        else:
            ip[4:6] = datagram.to_bytes(2, "big")
        ip[udp + 2 : udp + 4] = network[IntShim].port.to_bytes(2, "big")
        ip[udp + 4 : udp + 6] = datagram.to_bytes(2, "big")
    return icrc(bytes(ip))

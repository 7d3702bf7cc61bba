"""IOAM's trace: every word of every hop against what frames did, by a reader of its own.

The reader is written from RFC 9197 (4.4.1, 4.4.2) and RFC 9486 (3); the witness knows when frames
went into and came out of switches, and nothing of how switches work out what they say.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field, replace
from functools import partial
from ipaddress import IPv6Address

import pytest

from controller import Settings
from controller.reports import ReportError, decode
from controller.segments import sid, usid_of
from controller.settings import HopTelemetry, LinkSpec
from controller.tables import SwitchSite, node_id
from params.data import Data
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from params.telemetry import Format
from params.trim import Trim
from switch.dataplane import PacketIn
from tests.fabric.testbed import Testbed, ecn_of
from topologies import Fabric, fat_tree, leaf_spine, rail

CPU = 500
TRACED = Settings(
    ecn=Ecn(enabled=False),
    telemetry=HopTelemetry(share=1.0, format=Format.IOAM, hops=4, report_port=CPU),
)
ALL_ONES = 0xFFFFFFFF


class Trace(Data, frozen=False):
    """A trace, read byte by byte."""

    outer: bytes  # the IPv6 header
    namespace: int
    node_words: int
    flags: int
    left: int
    kind: int
    words: list[int]  # all, those that are free first
    network: bytes  # the EtherType of what is inside
    inner: bytes

    @property
    def nodes(self) -> list[list[int]]:
        """What each hop wrote, in the order the packet met them."""
        written = self.words[self.left :]
        each = range(0, len(written) - self.node_words + 1, self.node_words or 1)
        return [written[at : at + self.node_words] for at in each][::-1]


def network_at(frame: bytes) -> int:
    """Behind CONGA's header, if there is one."""
    return 22 if frame[12:14] == b"\x88\xb5" else 14


def read(frame: bytes, *, whole: bool = True) -> Trace | None:
    at = network_at(frame)
    if frame[at - 2 : at] != b"\x86\xdd" or frame[at + 6] != 0:
        return None
    outer, options = frame[at : at + 40], frame[at + 40 :]
    size = 8 * (options[1] + 1)
    assert options[2:4] == b"\x01\x00" and options[4] == 0x31 and options[7] == 0
    assert not whole or int.from_bytes(outer[4:6], "big") == len(options)
    data = options[16 : 6 + options[5]]
    assert 6 + options[5] <= size and len(data) % 4 == 0
    lengths = int.from_bytes(options[10:12], "big")
    return Trace(
        outer,
        int.from_bytes(options[8:10], "big"),
        lengths >> 11,
        lengths >> 7 & 15,
        lengths & 127,
        int.from_bytes(options[12:15], "big"),
        [int.from_bytes(data[n : n + 4], "big") for n in range(0, len(data), 4)],
        {4: b"\x08\x00", 41: b"\x86\xdd"}[options[0]],
        options[size:],
    )


def number_of(frame: bytes) -> int:
    """Frames are told apart by what they carry, behind UDP."""
    trace = read(frame, whole=False)
    at = network_at(frame)
    inner = frame[at:] if trace is None else trace.inner
    start = {4: 28, 6: 48}[inner[0] >> 4]
    return int.from_bytes(inner[start : start + 8], "big")


def with_trace(
    frame: bytes, kind: int, node_words: int, words: int, left: int, flags: int = 0
) -> bytes:
    """A packet into whose trace others wrote."""
    inner = frame[14:]
    padding = b"\x01\x02\0\0" if words % 2 else b""
    option = bytes((0x31, 10 + 4 * words, 0, 0)) + b"\xc1\x05"
    option += (node_words << 11 | flags << 7 | left).to_bytes(2, "big") + (kind << 8).to_bytes(
        4, "big"
    )
    option += bytes(4 * words) + padding
    carried = {b"\x08\x00": 4, b"\x86\xdd": 41}[frame[12:14]]
    head = bytes((carried, (4 + len(option)) // 8 - 1, 1, 0)) + option
    ends = IPv6Address("fcbb:bb00:1001::").packed + IPv6Address("fcbb:bb00:1002::").packed
    outer = (6 << 28 | 26 << 22).to_bytes(4, "big") + (len(head) + len(inner)).to_bytes(2, "big")
    return frame[:12] + b"\x86\xdd" + outer + b"\0\x40" + ends + head + inner


class Stay(Data, frozen=False):
    """A frame in a switch."""

    in_port: int
    port: int
    came: int
    began: float
    size: int  # as it came


class Witness(Data, frozen=False):
    """When each frame went into and came out of each switch."""

    bed: Testbed
    stays: dict[tuple[str, int], Stay] = field(default_factory=dict)
    order: dict[int, list[str]] = field(default_factory=dict)
    largest: int = 0

    def __post_init__(self) -> None:
        network, came = self.bed.network, dict[tuple[str, int], tuple[int, int, int]]()
        inject = network.inject

        def enter(name: str, port: int, frame: bytes) -> None:
            came[name, number_of(frame)] = port, network.now, len(frame)
            inject(name, port, frame)

        def leave(when: int, name: str, port: int, frame: bytes) -> None:
            number, link = number_of(frame), self.link(name, port)
            in_port, at, size = came[name, number]
            began = when - link.delay_ns - (len(frame) + 24) * 8e9 / link.rate_bps
            self.stays[name, number] = Stay(in_port, port, at, began, size)
            self.order.setdefault(number, []).append(name)
            if read(frame):
                self.largest = max(self.largest, len(frame) - 14)

        network.inject = enter
        network.tap = leave

    def link(self, name: str, port: int) -> LinkSpec:
        return SwitchSite(self.bed.fabric, self.bed.node(name), self.bed.settings).link(port)

    def queue(self, name: str, stay: Stay) -> tuple[int, int]:
        """The bytes that waited where it did, itself included: at least, and at most."""
        others = [s for (at, _), s in self.stays.items() if at == name and s.port == stay.port]
        now = stay.began
        least = sum(s.size for s in others if s.came < now - 2 < s.began)
        most = sum(s.size for s in others if s.came <= now + 2 and s.began > now - 2)
        return least, most

    def check(self, number: int, nodes: list[list[int]]) -> None:
        """What hops wrote by the type that leaves ask for: six words each."""
        names = self.order[number][: len(nodes)]
        for place, (name, words) in enumerate(zip(names, nodes, strict=True)):
            stay = self.stays[name, number]
            node, ports, delay, load, queue, pool = words
            assert node == (64 - place) << 24 | node_id(self.bed.node(name))
            assert ports == stay.in_port << 16 | stay.port
            assert delay == pytest.approx(stay.began - stay.came, abs=2)
            assert load > 0
            least, most = self.queue(name, stay)
            assert least <= queue <= most
            assert queue <= pool


def reports(bed: Testbed) -> Iterator[bytes]:
    """Of all leaves."""
    for switch in bed.network.switches.values():
        yield from (event.data for event in switch.plane.drain() if isinstance(event, PacketIn))


def drawn(draw: random.Random) -> Fabric:
    fabric = draw.choice((leaf_spine(3, 2, 2), leaf_spine(2, 1, 4), fat_tree(4), rail(2, 2, 1)))
    return fabric.speaking(draw.choice((4, 6)))


@pytest.mark.parametrize(
    "seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 200))]
)
def test_every_hop_tells_the_truth_and_packets_arrive_as_they_were(seed: int) -> None:
    draw = random.Random(seed)
    policy = draw.choice((Policy.ECMP, Policy.CONGA, Policy.SPRAY))
    room = draw.choice((1, 2, 4))
    telemetry = TRACED.telemetry.but(hops=room, mtu=draw.choice((None, 700, 1100)))
    settings = replace(TRACED, telemetry=telemetry, lb=LoadBalancing(policy=policy))
    bed = Testbed.build(drawn(draw), settings, seed + 1)
    witness = Witness(bed)
    names = [host.name for host in bed.fabric.hosts]
    target = draw.choice(names)
    sent: dict[int, bytes] = {}
    for source in draw.sample([name for name in names if name != target], min(3, len(names) - 1)):
        for _ in range(draw.choice((5, 25))):
            number, size = len(sent), draw.choice((100, 101, 640, 1000))
            sent[number] = bed.frame(source, target, size=size, mark=number)
            bed.host(source).queue.append(sent[number])
        start = draw.choice((0, 3_000))
        bed.network.at(start, partial(bed.network.start, bed.host(source)))
    bed.network.run(3_000_000)
    bed.check_accounts()
    assert not bed.drops()
    arrived = {number_of(frame): frame for _, frame in bed.host(target).arrived}
    assert set(arrived) == set(sent)
    for number, frame in arrived.items():
        assert lasting(frame) == lasting(sent[number])
    traced = sum(check_report(bed, witness, data, room) for data in reports(bed))
    assert witness.largest <= (telemetry.mtu or 9999)
    assert (
        traced == Counter(is_due(sent[number], witness, number, telemetry) for number in sent)[True]
    )


def lasting(frame: bytes) -> bytes:
    """All that no router changes: not MAC addresses, hop limits and IPv4's checksum."""
    first, more, end = (22, 24, 26) if frame[12:14] == b"\x08\x00" else (21, 22, 22)
    return frame[12:first] + frame[first + 1 : more] + frame[end:]


def is_due(frame: bytes, witness: Witness, number: int, telemetry: HopTelemetry) -> bool:
    """Whether a packet was to have a trace: it leaves its leaf, and has room on every link."""
    conga = 8 if witness.bed.settings.lb.policy is Policy.CONGA else 0
    size = len(frame) - 14 + conga + 56 + 24 * telemetry.hops
    return len(witness.order[number]) > 1 and (telemetry.mtu is None or size <= telemetry.mtu)


def check_report(bed: Testbed, witness: Witness, data: bytes, room: int) -> bool:
    """One sink's; whether the packet had a trace."""
    report = decode(data)
    assert report.flow is not None and report.flow.dst_port == 4791
    own = report.hops[-1]
    trace = read(report.packet, whole=False)
    if trace is None:
        assert len(report.hops) == 1
        return False
    number = number_of(report.packet)
    names = witness.order[number]
    assert own.node == node_id(bed.node(names[-1]))
    hops = min(room, len(names) - 1)
    assert len(trace.words) == 6 * room
    assert trace.left == 6 * (room - hops)
    assert trace.flags == (8 if hops < len(names) - 1 else 0)  # Overflow
    assert report.mtu_exceeded == bool(trace.flags)
    assert (trace.namespace, trace.kind, trace.node_words) == (0xC105, 0xCE1000, 6)
    ends = [IPv6Address(trace.outer[at : at + 16]) for at in (8, 24)]
    assert ends == [IPv6Address(sid(usid_of(bed.node(name)))) for name in (names[0], names[-1])]
    witness.check(number, trace.nodes)
    for hop, words in zip(report.hops, trace.nodes, strict=False):
        assert hop.node == words[0] & 0xFFFFFF
        assert (hop.ingress_port, hop.egress_port) == divmod(words[1], 1 << 16)
        assert (hop.latency_ns, hop.utilisation) == (words[2], words[3] / 65536)
        assert (hop.queue_bytes, hop.buffer_bytes) == (words[4], words[5])
    return True


# --- a transit switch, and other people's traces -------------------------------------------------


def transit(ip: int, *trace: int) -> Trace:
    """What a spine makes of a packet with this trace."""
    bed = Testbed.build(leaf_spine(2, 1, 1).speaking(ip), TRACED)
    out: list[bytes] = []
    bed.network.tap = lambda _when, name, _port, frame: (
        out.append(frame) if name == "spine1" else None
    )
    plain = bed.frame("h1", "h2", size=200)
    bed.network.inject("spine1", 1, with_trace(plain, *trace))
    bed.network.run(1000)
    (frame,) = out
    found = read(frame)
    assert found is not None
    assert len(frame) == len(with_trace(plain, *trace))
    assert found.outer[7] == 63
    assert found.inner[40:] == plain[54:]
    return found


@pytest.mark.parametrize("bit", range(12))
def test_each_bit_of_a_type_has_its_words(bit: int) -> None:
    size = 2 if bit in (8, 9, 10) else 1
    found = transit(4 if bit % 2 else 6, 1 << 23 - bit, size, 3 * size + 1, 2 * size)
    assert found.left == size and found.words[:size] == [0] * size
    added = found.words[size : 2 * size]
    spine1 = 2 << 16 | 1
    expected = {
        0: [63 << 24 | spine1],
        1: [1 << 16 | 2],
        4: [0],
        8: [63 << 24, spine1],
        9: [1, 2],
    }
    if bit in (5, 6, 11):
        assert 0 < added[0] < 65536
    else:
        assert added == expected.get(bit, [ALL_ONES] * size)
    assert found.words[2 * size :] == [0] * (size + 1)


def test_all_bits_at_once_come_in_order() -> None:
    found = transit(4, 0xFFF000, 15, 15, 15)
    assert found.left == 0
    assert found.words[:2] == [63 << 24 | 2 << 16 | 1, 1 << 16 | 2]
    assert found.words[2:4] == found.words[12:14] == [ALL_ONES] * 2
    assert found.words[8:12] == [63 << 24, 2 << 16 | 1, 1, 2]


@pytest.mark.parametrize(
    ("trace", "flags"),
    [
        ((0xCE1800, 7, 14, 7), 0),  # a bit that nobody has defined
        ((0xCE1002, 6, 12, 6), 0),  # an opaque state snapshot
        ((0xCE1000, 5, 10, 5), 0),  # words of another number than its bits ask for
        ((0xCE1000, 6, 12, 5), 8),  # no room left
        ((0xCE1000, 6, 12, 0), 8),
        ((0xCE1000, 6, 12, 6, 8), 8),  # somebody had none
        ((0, 0, 12, 6), 0),
    ],
)
def test_a_hop_that_cannot_tell_all_writes_nothing(trace: tuple[int, ...], flags: int) -> None:
    found = transit(4, *trace)
    assert (found.left, found.flags) == (trace[3], flags)
    assert not any(found.words)


def test_a_host_cannot_begin_a_trace() -> None:
    bed = Testbed.build(leaf_spine(2, 1, 1), TRACED)
    bed.network.inject("leaf1", 1, with_trace(bed.frame("h1", "h2", size=200), 0xCE1000, 6, 12, 6))
    bed.network.run(100_000)
    assert bed.drops() == {"forged_header": 1}
    assert not bed.host("h2").arrived
    bed.check_accounts()


@pytest.mark.parametrize(
    "at, value", [(4, 0x11), (7, 1), (2, 0), (5, 70), (5, 30), (1, 40), (0, 6)]
)
def test_what_is_no_trace_alone_is_malformed(at: int, value: int) -> None:
    """Another option or kind, no padding, lengths that do not fit, another header behind it."""
    bed = Testbed.build(leaf_spine(2, 1, 1), TRACED)
    frame = bytearray(with_trace(bed.frame("h1", "h2", size=200), 0xCE1000, 6, 12, 12))
    frame[54 + at] = value
    bed.network.inject("spine1", 1, bytes(frame))
    bed.network.run(100_000)
    assert bed.drops() == {"malformed": 1}
    bed.check_accounts()


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))]
)
def test_traces_by_lot_break_nothing(seed: int) -> None:
    """Options of any bytes and lengths at any switch: a packet goes on whole, or has a reason."""
    draw = random.Random(seed)
    bed = Testbed.build(leaf_spine(2, 1, 1), TRACED)
    names = [(name, draw.randrange(1, 3)) for name in ("leaf1", "spine1", "leaf2")]
    for at in range(60):
        frame = bed.frame("h1", "h2", size=200, mark=at)
        words = draw.randrange(61)
        kind = draw.choice((draw.getrandbits(24), 0xCE1000, draw.getrandbits(12) << 12))
        size = draw.choice((6, draw.randrange(32)))
        made = bytearray(with_trace(frame, kind, size, words, draw.randrange(words + 1)))
        for _ in range(draw.choice((0, 0, 1, 3))):
            made[draw.randrange(14, 70)] = draw.getrandbits(8)
        name, port = draw.choice(names)
        cut = draw.choice((len(made), draw.randrange(14, len(made))))
        bed.network.at(10_000 * at, partial(bed.network.inject, name, port, bytes(made[:cut])))
    bed.network.run(2_000_000)
    bed.check_accounts()
    for data in reports(bed):
        with suppress(ReportError):  # which is told, too
            decode(data)


@pytest.mark.parametrize("ip", [4, 6])
def test_marks_outside_follow_those_inside(ip: int) -> None:
    ecn = Ecn(kmin=1, kmax=2, pmax=1.0)
    bed = Testbed.build(leaf_spine(2, 1, 2).speaking(ip), replace(TRACED, ecn=ecn))
    seen = Counter[tuple[int, int]]()

    def note(_when: int, _name: str, _port: int, frame: bytes) -> None:
        if trace := read(frame):
            inside = trace.inner[1] & 3 if ip == 4 else trace.inner[1] >> 4 & 3
            seen[trace.outer[1] >> 4 & 3, inside] += 1

    bed.network.tap = note
    for host in ("h1", "h2"):
        bed.send(host, "h3", 30, ecn=2)
    bed.network.run(1_000_000)
    assert {outside for outside, _ in seen} == {inside for _, inside in seen} and seen[3, 3]
    assert all(outside == inside for outside, inside in seen)
    assert any(ecn_of(frame) == 3 for _, frame in bed.host("h3").arrived)


@pytest.mark.parametrize("ip", [4, 6])
def test_what_is_cut_keeps_its_trace(ip: int) -> None:
    trim = Trim(enabled=True, threshold=5_000, size=64)
    settings = replace(TRACED, trim=trim, pfc=TRACED.pfc.but(enabled=False))
    bed = Testbed.build(leaf_spine(3, 1, 2).speaking(ip), settings)
    cut = 0

    def note(_when: int, _name: str, _port: int, frame: bytes) -> None:
        nonlocal cut
        if trace := read(frame):
            length = int.from_bytes(trace.inner[2:4] if ip == 4 else trace.inner[4:6], "big")
            assert length + (0 if ip == 4 else 40) == len(trace.inner)
            cut += len(trace.inner) < 900

    bed.network.tap = note
    for host in ("h1", "h2", "h3", "h4"):
        bed.send(host, "h5", 60)
    bed.network.run(2_000_000)
    bed.check_accounts()
    arrived = [len(frame) for _, frame in bed.host("h5").arrived]
    assert len(arrived) == 240
    assert set(arrived) == {1000, 64 if ip == 4 else 84}
    assert cut > 10

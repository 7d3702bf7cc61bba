"""Fast CNPs: who is told, how often, and by what bytes; whatever else the packet carries."""

from __future__ import annotations

import random
import struct
from collections import Counter
from dataclasses import replace

import pytest

from controller import Settings
from controller.settings import HopTelemetry
from params.csig import Csig, Tag
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from tests.fabric.test_csig import asking
from tests.fabric.testbed import Testbed, ecn_of, ipv4_frame
from topologies import fat_tree, leaf_spine
from traffic.frames import icrc

EVERY_NS = 2_000
TELLING = Settings(ecn=Ecn(kmin=2_000, kmax=2_000, fast_cnp=True, fast_cnp_ns=EVERY_NS))
WRITE, ACK, CNP = 0x07, 0x11, 0x81


def roce(
    bed: Testbed, src: str, dst: str, pair: int, size: int = 1000, opcode: int = WRITE
) -> bytes:
    """A packet of RoCEv2, as far as a switch looks."""
    plain = bed.frame(src, dst, size=size, ecn=2)
    at = 14 + (40 if bed.fabric.ip == 6 else 20) + 8
    bth = struct.pack("!BBHB3sB3s", opcode, 0x70, 0xFFFF, 0, pair.to_bytes(3, "big"), 0x80, b"abc")
    return plain[:at] + bth + plain[at + 12 :]


def crowd(bed: Testbed, frames: dict[str, list[bytes]], ns: int = 400_000) -> None:
    for source, some in frames.items():
        bed.host(source).queue += some
        bed.network.start(bed.host(source))
    bed.network.run(ns)
    bed.check_accounts()


def expected(bed: Testbed, switch: str, src: str, dst: str, pair: int, port: int) -> bytes:
    """The IP packet of a notification, made from the description alone; TTL is left out."""
    node = bed.fabric.address
    to, about = node(bed.node(src)), node(bed.node(dst))
    own = bed.fabric.loopback(bed.node(switch)).packed
    bth = bytes((CNP, 0x40, 255, 255, 0x40)) + pair.to_bytes(3, "big") + bytes(4)
    udp = struct.pack("!HHHH", port, 4791, 40, 0) + bth + about.packed.ljust(16, b"\0")
    if bed.fabric.ip == 6:
        source = bytes(10) + b"\xff\xff" + own
        head = struct.pack("!IHBB", 6 << 28 | (48 << 2 | 2) << 20, 40, 17, 64) + source + to.packed
    else:
        head = (
            struct.pack("!BBHHHBBH", 0x45, 48 << 2 | 2, 60, 0, 0x4000, 64, 17, 0) + own + to.packed
        )
    return head + udp + icrc(head + udp).to_bytes(4, "little")


def same(frame: bytes, packet: bytes) -> bool:
    """But for what routers change: the TTL and the sum over it."""
    there, wanted = bytearray(frame[14:]), bytearray(packet)
    for each in (there, wanted):
        each[slice(7, 8) if each[0] >> 4 == 6 else slice(8, 9)] = b"\0"
        if each[0] >> 4 == 4:
            each[10:12] = bytes(2)
    return there == wanted


WAYS = {
    "plain": TELLING,
    "telemetry": replace(TELLING, telemetry=HopTelemetry(share=1.0)),
    "conga": replace(TELLING, lb=LoadBalancing(policy=Policy.CONGA)),
    "csig": replace(TELLING, csig=Csig()),
    "vlan": TELLING,
}


@pytest.mark.parametrize(
    ("way", "ip"), [(way, ip) for way in WAYS for ip in (4, 6) if (way, ip) != ("conga", 6)]
)
def test_a_sender_is_told_whose_queue_pair_is_to_slow_down(way: str, ip: int) -> None:
    fabric = leaf_spine(2, 1, 2).speaking(ip)
    bed = Testbed.build(fabric, WAYS[way])

    def carried(src: str, pair: int) -> bytes:
        frame = roce(bed, src, "h3", pair)
        if way == "csig":
            return asking(frame, Tag.WIDE, 2)
        return frame[:12] + b"\x81\x00\x60\x07" + frame[12:] if way == "vlan" else frame

    crowd(bed, {"h1": [carried("h1", 77)] * 60, "h2": [carried("h2", 78)] * 60})
    data = [frame for _, frame in bed.host("h3").arrived]
    assert len(data) == 120
    for name, pair in (("h1", 77), ("h2", 78)):
        notices = [frame for _, frame in bed.host(name).arrived]
        telling = ("leaf1", "spine1")  # telemetry makes packets longer behind the leaf
        wanted = [expected(bed, switch, name, "h3", pair, 49152) for switch in telling]
        assert len(notices) >= 3
        for frame in notices:
            assert frame[12:14] == (b"\x86\xdd" if ip == 6 else b"\x08\x00")
            assert any(same(frame, each) for each in wanted), frame.hex()
        assert any(same(frame, wanted[0]) for frame in notices)
    if way == "plain":
        assert {ecn_of(frame) for frame in data} == {2}
    assert not bed.drops()


@pytest.mark.parametrize("seed", range(6))
def test_each_flow_is_told_once_in_an_interval(seed: int) -> None:
    """Over several hops, with many flows: the gaps at the congested switch, and that it went on."""
    draw = random.Random(seed)
    fabric = draw.choice((leaf_spine(3, 2, 3), fat_tree(4)))
    interval = draw.choice((1_000, 5_000, 20_000))
    settings = replace(
        TELLING, ecn=Ecn(kmin=3_000, kmax=3_000, fast_cnp=True, fast_cnp_ns=interval)
    )
    bed = Testbed.build(fabric, settings, seed + 1)
    sent: list[tuple[int, str, bytes]] = []
    bed.network.tap = lambda when, name, _, frame: sent.append((when, name, frame))
    hosts = [host.name for host in fabric.hosts]
    sources = draw.sample(hosts[1:], 5)
    crowd(
        bed, {src: [roce(bed, src, "h1", 1000 + n)] * 150 for n, src in enumerate(sources)}, 900_000
    )
    assert len(bed.host("h1").arrived) == 5 * 150
    last: dict[tuple[bytes, bytes], int] = {}
    by_flow = Counter[bytes]()
    notices = 0
    for when, _, frame in sent:
        if len(frame) == 74 and frame[42] == CNP and frame[22] == 63:  # as its switch sent it
            flow = frame[26:30], frame[47:50]
            if flow in last:
                assert when - last[flow] >= interval - 200  # as they leave, after others perhaps
            last[flow] = when
            by_flow[frame[47:50]] += 1
            notices += 1
    assert len(by_flow) == 5
    assert notices == sum(sum(s.counters("notices")) for s in bed.network.switches.values())
    for number, src in enumerate(sources):
        assert len(bed.host(src).arrived) == by_flow[(1000 + number).to_bytes(3, "big")]
    assert sum(sum(s.counters("marked")) for s in bed.network.switches.values()) <= len(sources)


@pytest.mark.parametrize(
    ("opcode", "port", "marks", "is_notified"),
    [(ACK, 4791, False, False), (CNP, 4791, False, False), (0x04, 4791, False, True),
     (WRITE, 4793, True, False)],
)  # fmt: skip
def test_only_what_has_a_sender_to_slow_is_told_of(
    opcode: int, port: int, marks: bool, is_notified: bool
) -> None:
    """Answers have none, and other transports' are marked as ever."""
    bed = Testbed.build(leaf_spine(2, 1, 2), TELLING)
    frames = {}
    for src in ("h1", "h2"):
        frame = bytearray(roce(bed, src, "h3", 5, opcode=opcode))
        frame[36:38] = port.to_bytes(2, "big")
        frames[src] = [bytes(frame)] * 60
    crowd(bed, frames)
    assert any(ecn_of(frame) == 3 for _, frame in bed.host("h3").arrived) == marks
    assert bool(bed.host("h1").arrived) == is_notified


def test_nothing_from_outside_begins_a_notification() -> None:
    bed = Testbed.build(leaf_spine(1, 1, 2), TELLING)
    inner = ipv4_frame("10.0.1.1", "10.0.1.2", size=100)
    for frame in (inner[:12] + b"\x88\xb6" + inner[14:], inner[:12] + b"\x88\xb6"):
        bed.network.inject("leaf1", 1, frame)
    bed.network.run(50_000)
    assert bed.drops() in ({"not_ip": 1, "malformed": 1}, {"not_ip": 2})
    assert not bed.host("h1").arrived
    bed.check_accounts()

"""INT: every hop tells the truth, the packet comes out as it went in, the reports can be read."""

import random
import struct
from dataclasses import replace
from functools import reduce
from operator import xor

import pytest

from controller import Settings
from controller.reports import Hop, Report, decode
from controller.settings import HopTelemetry
from controller.tables import DROP_REASONS, link_number, node_id
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from switch.dataplane import PacketIn
from tests.fabric.network import Network
from tests.fabric.testbed import UDP_ROCE, Testbed, checksum, ipv4_frame, mark_of
from topologies import fat_tree, leaf_spine
from traffic.frames import INT_DOMAIN, icrc

CPU = 500
WATCHED = Settings(
    ecn=Ecn(enabled=False), telemetry=HopTelemetry(share=1.0, drop_share=1.0, report_port=CPU)
)


def reports_of(bed: Testbed, name: str) -> list[Report]:
    events = bed.switch(name).plane.drain()
    return [decode(event.data) for event in events if isinstance(event, PacketIn)]


class Clock:
    """When each frame went into and came out of each switch, by the switches' own ends."""

    def __init__(self, network: Network) -> None:
        self.came: dict[tuple[str, int], tuple[int, int]] = {}
        self.left: dict[tuple[str, int], tuple[int, int, int]] = {}
        inject = network.inject

        def note_inject(name: str, port: int, frame: bytes) -> None:
            self.came[name, self.number(frame)] = (port, network.now)
            inject(name, port, frame)

        def note_output(when: int, name: str, port: int, frame: bytes) -> None:
            self.left[name, self.number(frame)] = (port, when, len(frame))

        network.inject = note_inject
        network.tap = note_output

    @staticmethod
    def number(frame: bytes) -> int:
        """Telemetry in front of the number moves it."""
        at = 42
        if frame[36:38] == (20052).to_bytes(2, "big"):
            at += 4 + 4 * frame[43]
        return int.from_bytes(frame[at : at + 8], "big")


@pytest.mark.parametrize("size", [60, 61, 100, 1000, 4170])
def test_a_packet_comes_out_as_if_it_had_carried_nothing(size: int) -> None:
    arrived = []
    for settings in (WATCHED, replace(WATCHED, telemetry=HopTelemetry())):
        bed = Testbed.build(leaf_spine(2, 1, 1), settings)
        bed.send("h1", "h2", 3, size=size)
        bed.network.run(100_000)
        arrived.append([frame for _, frame in bed.host("h2").arrived])
        bed.check_accounts()
    assert len(arrived[0]) == 3
    assert arrived[0] == arrived[1]
    assert len(arrived[0][0]) == size


def test_the_invariant_crc_of_a_rocev2_packet_still_holds() -> None:
    bed = Testbed.build(leaf_spine(2, 1, 1), WATCHED)
    bth = bytes.fromhex("0a 00 ffff 00000011 80000007")
    body = bth + struct.pack("!QII", 0x1000, 0x77, 512) + bytes(range(256)) * 2
    plain = bed.frame("h1", "h2", size=42 + len(body) + 4)
    frame = plain[:42] + body
    crc = icrc(frame[14:]).to_bytes(4, "little")
    bed.host("h1").queue.append(frame + crc)
    bed.network.start(bed.host("h1"))
    bed.network.run(50_000)
    ((_, out),) = bed.host("h2").arrived
    assert out[42:] == body + crc
    assert icrc(out[14:-4]).to_bytes(4, "little") == out[-4:]


def test_hops_tell_what_the_switches_did() -> None:
    """Two senders, so that there are queues; every word of every report is checked."""
    bed = Testbed.build(leaf_spine(2, 1, 2), WATCHED)
    clock = Clock(bed.network)
    size = 1000
    for first, host in enumerate(("h1", "h2")):
        bed.host(host).queue = [
            bed.frame(host, "h3", size=size, mark=n * 2 + first) for n in range(50)
        ]
        bed.network.start(bed.host(host))
    bed.network.run(1_000_000)
    assert len(bed.host("h3").arrived) == 100
    reports = reports_of(bed, "leaf2")
    assert len(reports) == 100
    assert [report.sequence for report in reports] == list(range(100))
    deepest = 0
    for report in reports:
        number = Clock.number(report.packet)
        assert report.drop_reason is None
        assert report.flow is not None
        assert (report.flow.dst_port, str(report.flow.dst)) == (UDP_ROCE, "10.0.2.1")
        names = ("leaf1", "spine1", "leaf2")
        assert [hop.node for hop in report.hops] == [node_id(bed.node(name)) for name in names]
        for name, hop in zip(names, report.hops, strict=True):
            port_in, came = clock.came[name, number]
            port_out, arrival, length = clock.left[name, number]
            # The switch's last bit arrived at the far end so much later than it began to send.
            began = arrival - 1000 - (length + 24) * 8 / 100
            assert (hop.ingress_port, hop.egress_port) == (port_in, port_out)
            assert hop.ingress_time == came
            assert hop.egress_time == pytest.approx(began, abs=2)
            assert hop.latency == hop.egress_time - hop.ingress_time
            assert hop.queue == 3
            deepest = max(deepest, hop.queue_bytes or 0)
    # Twice what the uplink carries comes in: the queue of the first leaf grows to half of it.
    assert 40 * size < deepest < 60 * size


def test_queue_depth_and_load_are_in_bytes_and_shares() -> None:
    window_ns = 65536
    settings = replace(WATCHED, lb=LoadBalancing(flowlet_gap_ns=4 * window_ns))
    bed = Testbed.build(leaf_spine(2, 1, 1), settings)
    frames = [bed.frame("h1", "h2", size=1000, mark=n) for n in range(10)]
    for frame in frames:
        bed.network.inject("leaf1", 1, frame)
    bed.network.run(50_000)
    reports = reports_of(bed, "leaf2")
    first = {Clock.number(report.packet): report.hops[0] for report in reports}
    # The first leaves as soon as it is there; each of the others while those after it still wait.
    depths = [1000, *(1000 * (10 - n) for n in range(1, 10))]
    assert [first[n].queue_bytes for n in range(10)] == depths
    window = window_ns * 100 / 8
    for n in range(10):
        assert first[n].utilisation == pytest.approx((n + 1) * 1000 / window, rel=0.02)


def int_packet(
    bed: Testbed,
    instructions: int,
    words: int,
    hops: int = 5,
    stack: int = 0,
    own: int = 0,
    to: str = "h2",
) -> bytes:
    """A packet that some other source has put telemetry into."""
    inner = bed.frame("h1", to, size=200)
    shim = struct.pack("!BBH", 0x14, 3 + stack, UDP_ROCE)
    head = struct.pack(
        "!IHHHH", 2 << 28 | words << 8 | hops, instructions, INT_DOMAIN if own else 0, own, 0
    )
    carried = shim + head + bytes(4 * stack)
    ip = bytearray(inner[14:34])
    ip[2:4] = (int.from_bytes(ip[2:4], "big") + len(carried)).to_bytes(2, "big")
    ip[10:12] = b"\0\0"
    ip[10:12] = checksum(bytes(ip)).to_bytes(2, "big")
    udp = struct.pack("!HHHH", 49152, 20052, 8 + len(carried) + 158, 0)
    return inner[:14] + bytes(ip) + udp + carried + inner[42:]


@pytest.mark.parametrize("seed", range(3))
def test_links_tell_their_rate_the_time_and_what_they_had_sent(seed: int) -> None:
    """What HPCC divides: against all that left by each link, telemetry or not, and when."""
    draw = random.Random(seed)
    settings = replace(WATCHED, telemetry=HopTelemetry(by_hosts=True))
    bed = Testbed.build(leaf_spine(2, 1, 2), settings)
    sent: dict[tuple[str, int], int] = {}
    seen = 0

    def check(when: int, name: str, port: int, frame: bytes) -> None:
        nonlocal seen
        if is_watched(frame):
            queue, mbps, left, before = struct.unpack_from("!4I", frame, 58)
            assert queue >> 24 == 3
            assert mbps == 100_000
            assert left == pytest.approx(when - 1000 - (len(frame) + 24) * 8 / 100, abs=2)
            assert before == sent.get((name, port), 0)
            way = [("leaf1", 3), ("spine1", 2), ("leaf2", 1)]
            hops = way[: [each for each, _ in way].index(name) + 1]
            numbers = [link_number(bed.node(each), at) for each, at in hops]
            assert int.from_bytes(frame[56:58], "big") == reduce(xor, numbers)
            seen += 1
        sent[name, port] = sent.get((name, port), 0) + len(frame)

    bed.network.tap = check
    for at in range(60):
        plain = bed.frame("h2", "h3", size=draw.randrange(64, 1500), mark=at)
        carrier = int_packet(bed, 0x1000, 4, own=0xE000, to="h3")
        bed.network.at(100 * at, lambda f=carrier: bed.network.inject("leaf1", 1, f))
        bed.network.at(draw.randrange(6000), lambda f=plain: bed.network.inject("leaf1", 2, f))
    bed.network.run(200_000)
    assert seen == 3 * 60


def transit_stack(instructions: int, words: int, hops: int = 5) -> bytes:
    """What one transit switch adds, and the header it leaves."""
    bed = Testbed.build(leaf_spine(2, 1, 1), WATCHED)
    out: list[bytes] = []
    bed.network.tap = lambda _when, name, _port, frame: (
        out.append(frame) if name == "spine1" else None
    )
    bed.network.inject("spine1", 1, int_packet(bed, instructions, words, hops))
    bed.network.run(1000)
    (frame,) = out
    end = 42 + 4 + 4 * frame[43]
    assert int.from_bytes(frame[16:18], "big") == len(frame) - 14
    assert int.from_bytes(frame[38:40], "big") == len(frame) - 34
    assert checksum(frame[14:34]) == 0
    assert frame[end:] == int_packet(bed, 0, 0)[58:]
    return frame[42:end]


@pytest.mark.parametrize("bit", range(16))
def test_each_instruction_adds_its_words(bit: int) -> None:
    words = 2 if bit in (4, 5, 6) else 1
    added = transit_stack(1 << (15 - bit), words)[16:]
    assert len(added) == 4 * words
    spine1 = int.to_bytes(2 << 16 | 1, 4, "big")
    expected = {
        0: spine1,
        1: bytes.fromhex("00010002"),
        2: bytes(4),
        3: b"\x03" + (214 + 2).to_bytes(3, "big"),
        4: bytes(8),
        5: bytes(8),
        8: b"\x00" + (216).to_bytes(3, "big"),
    }
    if bit == 7:
        assert 0 < int.from_bytes(added, "big") < 65536
    else:
        assert added == expected.get(bit, b"\xff" * 4 * words)


def test_all_instructions_at_once_come_in_order() -> None:
    added = transit_stack(0xFFFF, 19)[16:]
    assert added[:4] == int.to_bytes(2 << 16 | 1, 4, "big")
    assert added[4:8] == bytes.fromhex("00010002")
    assert added[-28:] == b"\xff" * 28


def test_a_hop_adds_nothing_when_the_hops_are_used_up_or_the_length_is_not_its_own() -> None:
    used_up = transit_stack(0xFD00, 9, hops=0)
    assert len(used_up) == 16
    assert used_up[4] == 0x24  # version 2, hops exceeded
    wrong = transit_stack(0xFD00, 4)
    assert len(wrong) == 16
    assert wrong[4] == 0x20
    right = transit_stack(0xFD00, 9)
    assert right[7] == 4  # hops left


@pytest.mark.by_day(8)
@pytest.mark.parametrize("seed", range(24))
def test_hops_without_room_add_nothing_and_say_so(seed: int) -> None:
    """Packets of sizes around the MTU over four hops and a sink, held against counting bytes."""
    draw = random.Random(seed)
    mtu = draw.randrange(200, 700)
    instructions = draw.choice((0x8000, 0xD000, 0xFD00, 0xFF80))
    policy = draw.choice((Policy.ECMP, Policy.CONGA))
    telemetry = WATCHED.telemetry.but(mtu=mtu, instructions=instructions)
    bed = Testbed.build(
        fat_tree(4), replace(WATCHED, telemetry=telemetry, lb=LoadBalancing(policy=policy))
    )
    largest = 0

    def note(_when: int, name: str, port: int, frame: bytes) -> None:
        nonlocal largest
        if is_watched(frame):
            largest = max(largest, len(frame) - 14)

    bed.network.tap = note
    sizes = [max(64, mtu + 14 + draw.randrange(-4 * telemetry.most_bytes, 20)) for _ in range(40)]
    sizes = [mtu + 14 - 16 - 8, mtu + 14 - 16, mtu + 14 - 15, *sizes]
    for at, size in enumerate(sizes):
        frame = bed.frame("h1", "h16", size=size, mark=at, src_port=1024 + at)
        bed.network.at(1000 * at, lambda f=frame: bed.network.inject("leaf1", 1, f))
    bed.network.run(200_000)
    assert [len(frame) for _, frame in bed.host("h16").arrived] == sizes

    due: dict[int, tuple[bool, int]] = {}
    for at, size in enumerate(sizes):
        carried = size - 14 + (8 if policy is Policy.CONGA else 0) + 16
        if carried > mtu:
            continue
        hops, is_exceeded = 0, False
        for _ in range(4):
            if carried + 4 * telemetry.hop_words <= mtu:
                carried += 4 * telemetry.hop_words
                hops += 1
            else:
                is_exceeded = True
        due[at] = is_exceeded, hops
    reported = {
        Clock.number(report.packet): (report.mtu_exceeded, len(report.hops) - 1)
        for report in reports_of(bed, "leaf8")
    }
    assert reported == due
    assert largest <= mtu
    assert len(set(due.values())) > 1


def is_watched(frame: bytes) -> bool:
    """Whether it carries telemetry, behind CONGA's header or not."""
    at = 36 + (8 if frame[12:14] == b"\x88\xb5" else 0)
    return frame[at : at + 2] == (20052).to_bytes(2, "big")


def test_only_the_share_asked_for_is_watched() -> None:
    bed = Testbed.build(
        leaf_spine(2, 1, 1), replace(WATCHED, telemetry=WATCHED.telemetry.but(share=0.1))
    )
    bed.send("h1", "h2", 4000, size=100)
    bed.network.run(1_000_000)
    assert len(bed.host("h2").arrived) == 4000
    assert 320 < len(reports_of(bed, "leaf2")) < 480


def test_drops_are_reported_with_their_reason() -> None:
    bed = Testbed.build(leaf_spine(2, 1, 1), WATCHED)
    bed.network.inject("leaf1", 1, bed.frame("h1", "h2", ttl=1, mark=42))
    bed.network.inject("leaf1", 1, ipv4_frame("10.0.1.1", "11.0.0.1", size=500, mark=43))
    bed.network.run(10_000)
    by_mark = {mark_of(report.packet): report for report in reports_of(bed, "leaf1")}
    assert DROP_REASONS[by_mark[42].drop_reason or 0] == "ttl_expired"
    assert DROP_REASONS[by_mark[43].drop_reason or 0] == "no_route"
    assert by_mark[43].hops == (
        Hop(node=1 << 16 | 1, ingress_port=1, egress_port=0, queue=3, ingress_time=0),
    )
    assert str(by_mark[43].flow.dst if by_mark[43].flow else "") == "11.0.0.1"
    assert len(by_mark[43].packet) == 320


def test_telemetry_and_congestion_headers_go_together() -> None:
    bed = Testbed.build(
        leaf_spine(2, 2, 1), replace(WATCHED, lb=LoadBalancing(policy=Policy.CONGA))
    )
    for n in range(20):
        bed.send("h1", "h2", n + 1, size=500)
        bed.send("h2", "h1", n + 1, size=500)
    bed.network.run(1_000_000)
    assert len(bed.host("h2").arrived) == len(bed.host("h1").arrived) == 210
    assert {len(frame) for _, frame in bed.host("h2").arrived} == {500}
    assert len(reports_of(bed, "leaf2")) == 210
    assert bed.drops() == {}

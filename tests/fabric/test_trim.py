"""Trimming: what there is no room for arrives as headers, and every packet is told for."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import pytest

from controller import LinkSpec, Settings, decode
from controller.headroom import in_cells
from controller.settings import HopTelemetry
from controller.tables import DROP_REASONS, queue_index
from params.buffer import Buffer
from params.classes import PRIORITIES
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from params.pfc import Pfc
from params.schedule import Schedule
from params.trim import Trim
from switch.dataplane import PacketIn
from tests.fabric.test_classes import tagged
from tests.fabric.testbed import Testbed, checksum, mark_of
from topologies import leaf_spine

CUT, CUT_LAST, CLASS = 41, 42, 5
PLAIN = Settings(
    max_frame=4300,
    pfc=Pfc(enabled=False),
    ecn=Ecn(enabled=False),
    trim=Trim(enabled=True, priority=CLASS, dscp=CUT, last_hop_dscp=CUT_LAST),
)


def cuts(bed: Testbed, switch: str) -> dict[tuple[int, int], int]:
    """What a switch cut, by port and the class it had."""
    found = {
        (port, priority): bed.switch(switch).counter("trimmed", queue_index(port, priority))
        for port in bed.fabric.ports(bed.node(switch))
        for priority in PRIORITIES
    }
    return {place: count for place, count in found.items() if count}


@pytest.mark.by_day(6)
@pytest.mark.parametrize("seed", range(12))
def test_as_much_is_cut_as_finds_no_room_and_has_room_as_headers(seed: int) -> None:
    """A burst into one port: the queue fills to its threshold, what cut packets have fills next."""
    rng = random.Random(seed)
    size, cell = rng.randrange(200, 4200), rng.choice([1, 1, 64, 80, 208])
    left = rng.randrange(58, 190)
    threshold, reserved = rng.randrange(45_000, 90_000), rng.randrange(0, 8000)
    trim = PLAIN.trim.but(size=left, threshold=threshold, reserved=reserved)
    share, follows = rng.choice([1.0, 0.5, 0.3, 0.1]), seed % 3 == 0
    buffer = Buffer(bytes=1_000_000, cell=cell, follow_rate=follows)
    settings = replace(PLAIN, trim=trim, buffer=buffer, slowed={"leaf1>h2": share})
    bed = Testbed.build(leaf_spine(2, 1, 2), settings)
    count = 400
    for n in range(count):
        bed.network.inject("leaf1", 1, bed.frame("h1", "h2", size=size, mark=n))
    most = math.ceil(threshold * share) if follows else threshold
    whole = 1 + most // in_cells(size, cell)  # the first is on the wire at once
    cut = min(count - whole, reserved // in_cells(left, cell))
    assert cuts(bed, "leaf1") == ({(2, 3): cut} if cut else {})
    bed.network.run(10_000_000)
    sizes = Counter(len(frame) for _, frame in bed.host("h2").arrived)
    assert sizes == Counter({size: whole}) + Counter({left: cut})
    dropped = count - whole - cut
    assert bed.drops() == ({"buffer_full": dropped} if dropped else {})
    bed.check_accounts()


@pytest.mark.by_day(5)
@pytest.mark.parametrize("seed", range(10))
def test_every_packet_arrives_whole_or_as_headers_or_is_counted(seed: int) -> None:
    """Anything on board, any way, any memory: what arrives is to the byte what it should be."""
    rng = random.Random(seed)
    fabric = leaf_spine(rng.randrange(2, 4), rng.randrange(1, 4), rng.randrange(3, 6))
    left, has_tags = rng.choice([64, 100, 128]), seed % 5 == 4
    settings = replace(
        PLAIN,
        host_link=LinkSpec(100_000_000_000, rng.randrange(100, 3000)),
        fabric_link=LinkSpec(rng.choice([50, 100]) * 10**9, 500),
        buffer=Buffer(
            bytes=400_000, lossy_alpha=rng.choice([1 / 8, 1 / 2]), cell=rng.choice([1, 80])
        ),
        trim=PLAIN.trim.but(
            size=left,
            reserved=rng.choice([300, 3000, 30_000]),
            threshold=rng.choice([12_000, 40_000]),
        ),
        schedule=Schedule(kind="ets", weights={3: 3, CLASS: 1}) if seed % 2 else Schedule(),
        lb=LoadBalancing(policy=rng.choice([Policy.ECMP, Policy.SPRAY, Policy.CONGA])),
        telemetry=HopTelemetry(share=rng.choice([0.0, 0.5]), drop_share=1.0, report_port=500),
    )
    bed = Testbed.build(fabric, settings, seed)
    hosts = [host.name for host in fabric.hosts]
    sent: dict[int, tuple[str, bytes]] = {}
    for src in hosts:
        host = bed.host(src)
        for _ in range(200):
            dst = rng.choice(hosts[:2])
            if dst == src:
                continue
            fields = {
                "size": rng.choice([60, 70, 500, 4200]),
                "dscp": rng.choice([26, 26, 26, 0, 48]),
                "mark": len(sent),
                "src_port": 49152 + rng.randrange(64),
            }
            frame = bed.frame(src, dst, **fields)
            sent[len(sent)] = dst, frame
            host.queue.append(tagged(frame, 0) if has_tags else frame)
        bed.network.start(host)
    bed.network.run(20_000_000)

    seen: Counter[int] = Counter()
    cut: Counter[int] = Counter()
    for name in hosts:
        for _, arrived in bed.host(name).arrived:
            got = arrived[:12] + arrived[16:] if has_tags else arrived
            number = mark_of(got)
            seen[number] += 1
            dst, was = sent[number]
            assert dst == name
            assert checksum(got[14:34]) == 0
            dscp = got[15] >> 2
            length = int.from_bytes(got[16:18])
            if dscp in (CUT, CUT_LAST):
                cut[dscp] += 1
                assert (was[15] >> 2, length) == (26, left - 14)
                assert got[14 + length :] == b"" or settings.telemetry.share
                assert got[26 : 14 + length] == was[26 : 14 + length]  # UDP's length as it was
            else:
                assert (dscp, length) == (was[15] >> 2, int.from_bytes(was[16:18]))
                assert got[26:] == was[26:]
    assert set(seen.values()) == {1}

    counted = {switch: cuts(bed, switch) for switch in bed.network.switches}
    assert {priority for by in counted.values() for _, priority in by} <= {3}
    everywhere = sum(sum(by.values()) for by in counted.values())
    at_last = sum(
        count
        for switch, by in counted.items()
        for (port, _), count in by.items()
        if switch.startswith("leaf") and port <= len(fabric.hosts_of(bed.node(switch)))
    )
    drops = bed.drops()
    assert everywhere > 40
    assert cut[CUT_LAST] == at_last
    assert everywhere == cut[CUT] + cut[CUT_LAST] + drops.get("cut_lost", 0)
    assert set(drops) <= {"buffer_full", "cut_lost"}
    assert len(sent) == len(seen) + sum(drops.values())
    bed.check_accounts()

    reasons: Counter[int] = Counter()
    for switch in bed.network.switches.values():
        for event in switch.plane.drain():
            if isinstance(event, PacketIn):
                reasons[decode(event.data).drop_reason or 0] += 1
    assert reasons[DROP_REASONS.index("trimmed")] == everywhere
    assert reasons[DROP_REASONS.index("cut_lost")] == drops.get("cut_lost", 0)


def test_cut_packets_have_a_share_and_no_more() -> None:
    """Fifteen to one: headers that overtake everything would leave nothing for data."""
    shares = {}
    for name, schedule in (
        ("strict", Schedule()),
        ("a quarter", Schedule(kind="ets", weights={3: 3, 5: 1})),
    ):
        settings = replace(
            PLAIN,
            trim=PLAIN.trim.but(threshold=50_000),
            schedule=schedule,
            buffer=Buffer(bytes=4_000_000),
        )
        bed = Testbed.build(leaf_spine(2, 1, 48), settings)
        for number in range(2, 49):
            bed.send(f"h{number}", "h1", 300, size=1000)
        bed.network.run(20_000)
        arrived = [frame for when, frame in bed.host("h1").arrived if when > 5000]
        headers = sum(len(frame) + 24 for frame in arrived if frame[15] >> 2 == CUT_LAST)
        shares[name] = headers / sum(len(frame) + 24 for frame in arrived)
        bed.network.run(10_000_000)
        bed.check_accounts()
    assert shares["strict"] > 0.9
    assert shares["a quarter"] == pytest.approx(0.25, abs=0.02)

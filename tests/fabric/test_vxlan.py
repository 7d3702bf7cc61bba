"""Tenants' networks: tunnels between leaves, what comes out of them, and what does not get in.

The judges know neither the tables nor the program: an outer header is written down here byte by
byte, RFC 6040's rules as its table has them, and who reaches whom as who is of which tenant.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

import pytest

from controller import Settings, switch_plans
from controller.settings import HopTelemetry
from params.buffer import Buffer
from params.marking import Ecn
from params.pfc import Pfc
from tests.fabric.testbed import Testbed, checksum, ecn_of, ipv4_frame, mark_of
from tests.veths import run_alone
from topologies import Fabric, leaf_spine

PLAIN = Settings(max_frame=1300, ecn=Ecn(enabled=False))
BLUE, RED = ["h1", "h3", "h5"], ["h2", "h4", "h6"]
EVERYBODY = [f"h{n}" for n in range(1, 7)]
ALL = bytes.fromhex("ffffffffffff")
LEAF = {n: IPv4Address(f"10.255.16.{n}") for n in range(1, 9)}


def two_tenants(*, stretched: bool, spines: int = 2) -> Fabric:
    return leaf_spine(3, spines, 2).with_tenants([BLUE, RED], stretched=stretched)


def build(*, stretched: bool, settings: Settings = PLAIN, spines: int = 2) -> Testbed:
    return Testbed.build(two_tenants(stretched=stretched, spines=spines), settings)


def tapped(bed: Testbed) -> list[tuple[str, int, bytes]]:
    """All that switches send from now on."""
    seen: list[tuple[str, int, bytes]] = []
    bed.network.tap = lambda _when, name, port, frame: seen.append((name, port, frame))
    return seen


def arrived(bed: Testbed) -> dict[str, int]:
    return {name: n for name in EVERYBODY if (n := len(bed.host(name).arrived))}


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def tunnelled(
    inner: bytes, src: IPv4Address, dst: IPv4Address, vni: int, *,
    tos: int = 26 << 2, flags: int = 8, port: int = 4789, source_port: int = 50_000, ttl: int = 64,
    macs: bytes = bytes(12),
) -> bytes:  # fmt: skip
    """A frame in VXLAN (RFC 7348, figure 1)."""
    vxlan = struct.pack("!BxxxI", flags, vni << 8)
    udp = struct.pack("!HHHH", source_port, port, 16 + len(inner), 0)
    ip = struct.pack("!BBHHHBBH", 0x45, tos, 36 + len(inner), 0, 0x4000, ttl, 17, 0)
    ip += src.packed + dst.packed
    ip = ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]
    return macs + b"\x08\x00" + ip + udp + vxlan + inner


# --- who reaches whom -----------------------------------------------------------------------------


@pytest.mark.parametrize("stretched", [False, True])
def test_tenants_with_the_same_addresses_reach_their_own(stretched: bool) -> None:
    bed = build(stretched=stretched)
    fabric = bed.fabric
    assert [fabric.address(bed.node(n)) for n in BLUE] == [fabric.address(bed.node(n)) for n in RED]
    seen = tapped(bed)
    for src, dst in (("h1", "h3"), ("h4", "h2"), ("h5", "h1")):
        bed.send(src, dst, 20, ecn=1)
    bed.network.run(1_000_000)
    assert arrived(bed) == {"h3": 20, "h2": 20, "h1": 20}
    sent = bed.frame("h1", "h3", ecn=1)
    for n, (_, frame) in enumerate(bed.host("h3").arrived):
        assert mark_of(frame) == n
        if stretched:  # as it was sent
            assert frame == bed.frame("h1", "h3", mark=n, ecn=1)
        else:  # by two routers, whatever is between them
            assert frame[:12] == mac(fabric.mac(bed.node("h3"))) + mac(
                fabric.mac(bed.node("leaf2"))
            )
            assert (frame[22], frame[26:42]) == (sent[22] - 2, sent[26:42])
    outside = [(name, port, frame) for name, port, frame in seen if len(frame) > 1000]
    assert {len(frame) for _, _, frame in outside} == {1050}
    assert len(outside) == 2 * 60
    assert not bed.drops()
    bed.check_accounts()


def test_what_stands_outside_is_what_rfc_7348_says() -> None:
    bed = build(stretched=True, spines=1)
    seen = tapped(bed)
    plain = bed.frame("h1", "h3", ecn=2, dscp=26, src_port=51_234)
    bed.network.inject("leaf1", 1, plain)
    bed.network.run(1_000_000)
    (name, port, frame), *_ = seen
    assert (name, port) == ("leaf1", 3)
    source_port = int.from_bytes(frame[34:36], "big")
    assert source_port >= 49_152
    macs = mac(bed.fabric.mac(bed.node("spine1"))) + mac(bed.fabric.mac(bed.node("leaf1")))
    assert frame == tunnelled(
        plain, LEAF[1], LEAF[2], 20_001, tos=26 << 2 | 2, source_port=source_port, macs=macs
    )


def test_a_flow_keeps_its_way_and_flows_spread() -> None:
    bed = build(stretched=False, spines=4)
    seen = tapped(bed)
    for n in range(1000):
        for _ in range(2):
            bed.network.inject("leaf1", 1, bed.frame("h1", "h3", size=150, src_port=10_000 + n))
        bed.network.run(bed.network.now + 2_000)
    bed.network.run(bed.network.now + 100_000)
    ways = [(port, frame[34:36]) for name, port, frame in seen if name == "leaf1"]
    assert ways[::2] == ways[1::2]
    counts = Counter(port for port, _ in ways[::2])
    off = sum((count - 250) ** 2 / 250 for count in counts.values())
    assert len(counts) == 4 and off < 21, counts  # chi-squared of 3 degrees: one in ten thousand
    ports = Counter(source for _, source in ways[::2])
    assert len(ports) > 900  # of 16,384, drawn a thousand times: some 970
    assert arrived(bed) == {"h3": 2000}


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", range(6))
def test_nobody_is_reached_but_by_his_tenant(seed: int) -> None:
    """Any tenants, any addresses and MACs that a host may ask for: a model of who gets what."""
    draw = random.Random(seed)
    names = [f"h{n}" for n in range(1, 13)]
    draw.shuffle(names)
    parts = [names[:4], names[4:7], names[7:10]]  # two hosts have no tenant
    stretched = bool(seed % 2)
    fabric = leaf_spine(4, 2, 3).with_tenants(parts, stretched=stretched)
    bed = Testbed.build(fabric, PLAIN)
    whose = {name: n for n, part in enumerate(parts) for name in part}
    due: Counter[tuple[str, int]] = Counter()
    for mark in range(150):
        src, dst = draw.choice(names), draw.choice(names)
        here, there = fabric.node(src), fabric.node(dst)
        own_leaf = fabric.mac(fabric.leaf_of(here))
        by_mac = draw.random() < 0.5
        frame = ipv4_frame(
            str(fabric.address(here)), str(fabric.address(there)), size=200, mark=mark, ecn=1,
            src_mac=fabric.mac(here), dst_mac=fabric.mac(there) if by_mac else own_leaf,
        )  # fmt: skip
        bed.network.inject(
            str(fabric.leaf_of(here)), fabric.port_towards(fabric.leaf_of(here), here), frame
        )
        bed.network.run(bed.network.now + 20_000)

        def joined(one: str, other: str) -> bool:
            return whose.get(one) == whose.get(other)

        if src not in whose or not by_mac:  # by address: whoever of the same network has it
            due.update(
                (name, mark)
                for name in names
                if joined(src, name) and fabric.address(fabric.node(name)) == fabric.address(there)
            )
            continue
        together = [
            name
            for name in names
            if joined(src, name) and name != src
            and (stretched or fabric.leaf_of(fabric.node(name)) == fabric.leaf_of(here))
        ]  # fmt: skip
        if dst in together:
            due[dst, mark] += 1
        elif dst != src:  # nobody of theirs: all are asked
            due.update((name, mark) for name in together)
    got = Counter((name, mark_of(frame)) for name in names for _, frame in bed.host(name).arrived)
    assert (got - due, due - got) == (Counter(), Counter())
    bed.check_accounts()


def test_what_is_for_all_reaches_all_of_the_tenant_once() -> None:
    bed = build(stretched=True)
    own = mac(bed.fabric.mac(bed.node("h4")))
    seen = tapped(bed)
    frames = [
        ALL + own + b"\x08\x06" + bytes(46),  # ARP
        ALL + own + b"\x86\xdd" + bytes(60),  # what is no IP that hosts speak here is nobody's
        b"\x01\x00\x5e\x00\x00\xfb" + bed.frame("h4", "h6", ecn=1)[6:],
        mac("02:00:00:00:12:34") + bed.frame("h4", "h6")[6:],
    ]
    for frame in frames:
        bed.network.inject("leaf2", 2, frame)
        bed.network.run(bed.network.now + 100_000)
    expected = [frames[0], *frames[2:]]
    for name in ("h2", "h6"):
        got = [frame for _, frame in bed.host(name).arrived]
        assert [f[:15] + f[16:24] + f[26:] for f in got] == [
            f[:15] + f[16:24] + f[26:] for f in expected
        ], name
    assert arrived(bed) == {"h2": 3, "h6": 3}
    # Best effort outside, and so inside: it pauses nobody.
    assert {frame[15] >> 2 for name, port, frame in seen if name == "leaf2" and port > 2} == {0}
    assert set(bed.drops()) <= {"malformed"}
    bed.check_accounts()


def test_a_flood_goes_on_where_one_way_is_dead() -> None:
    bed = build(stretched=True)
    own = mac(bed.fabric.mac(bed.node("h1")))
    bed.switch("leaf2").plane.set_port_up(1, False)
    bed.network.inject("leaf1", 1, ALL + own + b"\x08\x06" + bytes(46))
    bed.network.run(1_000_000)
    assert arrived(bed) == {"h5": 1}
    assert bed.drops() == {"port_down": 1}
    bed.check_accounts()


def test_a_flood_goes_on_though_its_losses_are_reported() -> None:
    """A packet has one copy, which goes round: a report of its end has to wait for another."""
    reports = HopTelemetry(share=1.0, drop_share=1.0, report_port=9)
    no_room = replace(PLAIN, buffer=Buffer(lossy_static=64), telemetry=reports)
    bed = build(stretched=True, settings=no_room)
    bed.network.inject("leaf2", 2, mac("02:00:00:00:12:34") + bed.frame("h4", "h6")[6:])
    bed.network.run(1_000_000)
    assert bed.drops() == {"buffer_full": 2}  # on its way to each of two leaves


# --- ECN and DSCP ---------------------------------------------------------------------------------

NOT, ECT1, ECT0, CE = 0, 1, 2, 3
# RFC 6040, figure 4: by what is inside, what comes out for Not-ECT, ECT(0), ECT(1) and CE outside.
RFC_6040: dict[int, dict[int, int | None]] = {
    NOT: {NOT: NOT, ECT0: NOT, ECT1: NOT, CE: None},
    ECT0: {NOT: ECT0, ECT0: ECT0, ECT1: ECT1, CE: CE},
    ECT1: {NOT: ECT1, ECT0: ECT1, ECT1: ECT1, CE: CE},
    CE: {NOT: CE, ECT0: CE, ECT1: CE, CE: CE},
}


def test_marks_come_out_as_rfc_6040_has_it_and_the_class_as_it_went() -> None:
    bed = build(stretched=True)
    due: list[Any] = []
    for inside, outsides in RFC_6040.items():
        for outside, result in outsides.items():
            for dscp in (0, 26, 48):
                inner = bed.frame("h3", "h1", ecn=inside, dscp=10, mark=len(due))
                frame = tunnelled(inner, LEAF[2], LEAF[1], 20_001, tos=dscp << 2 | outside)
                bed.network.inject("leaf1", 3, frame)
                bed.network.run(bed.network.now + 10_000)
                due.append(None if result is None else (dscp << 2 | result))
    got = {mark_of(frame): frame[15] for _, frame in bed.host("h1").arrived}
    assert got == {mark: tos for mark, tos in enumerate(due) if tos is not None}
    assert all(checksum(frame[14:34]) == 0 for _, frame in bed.host("h1").arrived)
    assert bed.drops() == {"bad_tunnel": due.count(None)}


@pytest.mark.parametrize("stretched", [False, True])
def test_marks_on_the_way_reach_who_is_in_the_tunnel(stretched: bool) -> None:
    bed = build(stretched=stretched, settings=replace(PLAIN, ecn=Ecn(kmin=0, kmax=1)))
    bed.send("h1", "h3", 20, ecn=1)
    bed.network.run(1_000_000)
    assert [ecn_of(frame) for _, frame in bed.host("h3").arrived] == [CE] * 20


def test_nothing_is_lost_in_tunnels_where_senders_are_paused() -> None:
    settings = replace(PLAIN, buffer=Buffer(bytes=200_000), pfc=Pfc(response_ns=0))
    bed = build(stretched=False, settings=settings)
    for src in ("h3", "h5"):
        bed.send(src, "h1", 400, ecn=1)
    for src in ("h4", "h6"):
        bed.send(src, "h2", 400, ecn=1)
    bed.network.run(5_000_000)
    assert arrived(bed) == {"h1": 800, "h2": 800}  # of what is no pause
    assert not bed.drops()
    assert any(bed.host(name).pauses for name in ("h3", "h4", "h5", "h6"))
    bed.check_accounts()


# --- what does not get in -------------------------------------------------------------------------


def test_what_is_forged_ends_and_is_counted() -> None:
    bed = build(stretched=True)
    fabric = bed.fabric
    h1, h3, h6 = (bed.node(name) for name in ("h1", "h3", "h6"))
    inner = bed.frame("h3", "h1")
    other = bed.frame("h4", "h2")
    routed = ipv4_frame(
        str(fabric.address(h3)), str(fabric.address(h1)), size=300, dst_mac=fabric.mac(h6)
    )
    cases = [  # by which port of leaf1, what, and why it ends
        (1, mac(fabric.mac(h3)) + mac(fabric.mac(h6)) + inner[12:], "forged_source"),
        (1, mac(fabric.mac(h3)) + mac(fabric.mac(h6)) + bed.frame("h1", "h3")[12:], "foreign_mac"),
        (1, ALL + mac(fabric.mac(h6)) + b"\x08\x06" + bytes(46), "foreign_mac"),
        # Hosts reach no leaf's own address, with or without a tunnel, from their networks.
        (1, tunnelled(other, fabric.address(h1), LEAF[2], 20_002,
                      macs=mac(fabric.mac(bed.node("leaf1"))) + mac(fabric.mac(h1))), "no_route"),
        (3, tunnelled(inner, LEAF[2], LEAF[1], 20_003), "unknown_vni"),
        (3, tunnelled(inner, LEAF[2], LEAF[1], 0xFFFFFF), "unknown_vni"),
        (3, tunnelled(b"\xff" * 60, LEAF[2], LEAF[1], 20_003), "unknown_vni"),
        (3, tunnelled(inner, LEAF[8], LEAF[1], 20_001), "foreign_tunnel"),
        (3, tunnelled(inner, IPv4Address("10.0.2.1"), LEAF[1], 20_001), "foreign_tunnel"),
        (3, tunnelled(inner, LEAF[2], LEAF[1], 20_001, flags=0), "bad_tunnel"),
        (3, tunnelled(inner, LEAF[2], LEAF[1], 20_001, port=4790), "bad_tunnel"),
        (3, ipv4_frame("10.255.16.2", "10.255.16.1", size=200), "bad_tunnel"),
        (3, tunnelled(inner[:30], LEAF[2], LEAF[1], 20_001), "malformed"),
        (3, tunnelled(b"", LEAF[2], LEAF[1], 20_001), "malformed"),
        (3, tunnelled(inner, LEAF[2], LEAF[1], 20_001)[:46], "malformed"),
        (3, tunnelled(routed, LEAF[2], LEAF[1], 10_001), "foreign_mac"),
        (3, tunnelled(ALL + bytes(54), LEAF[2], LEAF[1], 10_001), "foreign_mac"),
    ]  # fmt: skip
    due: Counter[str] = Counter()
    for port, frame, reason in cases:
        bed.network.inject("leaf1", port, frame)
        bed.network.run(bed.network.now + 50_000)
        due[reason] += 1
        assert bed.drops() == due, reason
    assert not arrived(bed)
    bed.check_accounts()


def test_a_host_without_a_tenant_gets_into_no_tunnel() -> None:
    """It speaks the fabric's own addresses, and so may ask for a leaf's: it is no leaf."""
    fabric = leaf_spine(2, 1, 2).with_tenants([["h1", "h3"]], stretched=True)
    bed = Testbed.build(fabric, PLAIN)
    h2, h3 = bed.node("h2"), bed.node("h3")
    inner = bed.frame("h1", "h3")
    for n, source in enumerate((fabric.address(h2), LEAF[1])):
        macs = mac(fabric.mac(bed.node("leaf1"))) + mac(fabric.mac(h2))
        bed.network.inject("leaf1", 2, tunnelled(inner, source, LEAF[2], 20_001, macs=macs))
        bed.network.run(bed.network.now + 50_000)
        assert bed.drops() == ({"foreign_tunnel": 1}, {"foreign_tunnel": 1, "forged_source": 1})[n]
    assert not bed.host(h3.name).arrived
    bed.send("h2", "h4", 3)  # and is served as ever
    bed.network.run(bed.network.now + 1_000_000)
    assert len(bed.host("h4").arrived) == 3


@pytest.mark.parametrize("seed", range(3))
def test_no_tunnel_that_anybody_makes_up_upsets_a_leaf(seed: int) -> None:
    """Whatever comes by a cable of the fabric: it arrives where it may, or is counted."""
    draw = random.Random(seed)
    bed = build(stretched=bool(seed % 2))
    inner = [bed.frame("h3", "h1"), bed.frame("h4", "h2"), bytes(60), ALL + bytes(54)]
    for _ in range(200):
        frame = bytearray(
            tunnelled(
                draw.choice(inner), draw.choice((LEAF[2], LEAF[3], LEAF[5])), LEAF[1],
                draw.choice((10_001, 10_002, 20_001, 20_002, 5)),
                flags=draw.choice((8, 8, 8, 0xFF, 0)),
                tos=draw.randrange(256),
            )
        )  # fmt: skip
        for _ in range(draw.choice((0, 0, 1, 3))):
            frame[draw.randrange(34, len(frame))] = draw.randrange(256)
        bed.network.inject(
            "leaf1", 3, bytes(frame[: draw.choice((len(frame), draw.randrange(40, 120)))])
        )
        bed.network.run(bed.network.now + 5_000)
    bed.network.run(bed.network.now + 1_000_000)
    bed.check_accounts()
    assert set(bed.drops()) <= {
        "malformed", "not_ip", "bad_checksum", "ttl_expired", "no_route", "unknown_vni",
        "foreign_tunnel", "bad_tunnel", "foreign_mac",
    }  # fmt: skip


# --- plans ----------------------------------------------------------------------------------------


def test_without_tenants_switches_are_told_nothing_of_them() -> None:
    tables = {
        getattr(entity, "table", "")
        for plan in switch_plans(leaf_spine(2, 2, 2)).values()
        for entity in plan
    }
    assert not tables & {
        "vtep_routes", "vnis", "vteps", "tenant_ports", "tenant_routes", "tenant_macs", "floods",
        "own_vtep",
    }  # fmt: skip


# --- the kernel -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_kernel_and_tshark_agree() -> None:
    """The kernel's vxlan device reads ours, ours its, and tshark both."""
    cases = run_alone("tests.fabric.kernel_vxlan")
    assert len(cases) >= 6
    for name, (got, due_there) in cases.items():
        assert got == due_there, name

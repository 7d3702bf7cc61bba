"""Micro-segments: lists that leaves put on, places that take theirs out, ends that take all off.

The judge of the sweep is RFC 9800's behaviour, written down here once more in terms of addresses.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from dataclasses import replace
from ipaddress import IPv6Address

import pytest

from controller import Settings, SettingsError, Steering, switch_plans
from controller import segments as sr
from params.data import Data
from params.marking import Ecn
from tests.fabric.testbed import Testbed, ecn_of, ipv4_frame, ipv6_frame
from tests.veths import run_alone
from topologies import Fabric, IpVersion, fat_tree, leaf_spine

PLAIN = Settings(max_frame=1200, ecn=Ecn(enabled=False), segments=True)
BLOCK = 0xFCBBBB00
END = 0xF000
BOTH: tuple[IpVersion, ...] = (4, 6)


def build(fabric: Fabric, settings: Settings = PLAIN, ip: IpVersion = 6) -> Testbed:
    return Testbed.build(fabric.speaking(ip), settings)


def tapped(bed: Testbed) -> list[tuple[str, int, bytes]]:
    """All that switches send from now on."""
    seen: list[tuple[str, int, bytes]] = []
    bed.network.tap = lambda _when, name, port, frame: seen.append((name, port, frame))
    return seen


def in_carrier(inner: bytes, dst: int, segments: tuple[int, ...] = (), **fields: int) -> bytes:
    """A frame's packet in a carrier; ``segments`` come after it, the first of them first."""
    is_ipv6 = inner[12:14] == b"\x86\xdd"
    payload, kind = inner[14:], 41 if is_ipv6 else 4
    if segments:
        left = fields.get("left", len(segments))
        last = fields.get("last", len(segments) - 1)
        head = struct.pack(
            "!BBBBBBH", kind, fields.get("length", 2 * len(segments)), fields.get("type", 4), left,
            last, 0, 0,
        )  # fmt: skip
        payload = head + b"".join(s.to_bytes(16, "big") for s in reversed(segments)) + payload
        kind = 43
    word = 6 << 28 | fields.get("dscp", 26) << 22 | fields.get("ecn", 0) << 20
    ip = struct.pack("!IHBB", word, len(payload), kind, fields.get("ttl", 64))
    src = fields.get("src", sr.sid(0x9999))
    ip += src.to_bytes(16, "big") + dst.to_bytes(16, "big")
    return inner[:12] + b"\x86\xdd" + ip + payload


# --- a whole fabric -------------------------------------------------------------------------------


@pytest.mark.parametrize("ip", BOTH)
@pytest.mark.parametrize("spine", [1, 2, 3])
def test_what_is_steered_goes_where_it_is_told_and_comes_out_as_it_was(
    ip: IpVersion, spine: int
) -> None:
    steering = (Steering("leaf1", "h3", via=((f"spine{spine}",),)),)
    bed = build(leaf_spine(3, 3, 2), replace(PLAIN, steering=steering), ip)
    plain = build(leaf_spine(3, 3, 2), PLAIN, ip)
    ways = tapped(bed)
    for each in (bed, plain):
        each.send("h1", "h3", 30, ecn=1)
        each.send("h2", "h4", 5)
        each.network.run(1_000_000)
        each.check_accounts()
        assert not each.drops()
    took = Counter((name, port) for name, port, frame in ways if frame[20] in (4, 41))
    to_spine = bed.fabric.port_towards(bed.node("leaf1"), bed.node(f"spine{spine}"))
    assert took == {("leaf1", to_spine): 30, (f"spine{spine}", 2): 30}
    # A carrier is one hop to what is in it.
    at = (14 + 8, 14 + 7)[ip == 6]
    changed = {at, *((24, 25) if ip == 4 else ())}  # and IPv4's checksum

    def rest(frame: bytes) -> bytes:
        return bytes(byte for n, byte in enumerate(frame) if n not in changed)

    for (_, one), (_, other) in zip(bed.host("h3").arrived, plain.host("h3").arrived, strict=True):
        assert (one[at], other[at]) == (63, 61)
        assert rest(one) == rest(other)
    assert len(bed.host("h4").arrived) == 5


@pytest.mark.parametrize("ip", BOTH)
def test_all_ways_are_taken_evenly_and_a_flow_keeps_its_own(ip: IpVersion) -> None:
    bed = build(leaf_spine(2, 4, 1), replace(PLAIN, steering=(Steering("leaf1", "leaf2"),)), ip)
    seen = tapped(bed)
    for n in range(2000):
        for _ in range(2):
            bed.network.inject("leaf1", 1, bed.frame("h1", "h2", size=150, src_port=10_000 + n))
        bed.network.run(bed.network.now + 2000)
    bed.network.run(bed.network.now + 100_000)
    ports = [port for name, port, _ in seen if name == "leaf1"]
    assert ports[::2] == ports[1::2]
    counts = Counter(ports[::2])
    off = sum((count - 500) ** 2 / 500 for count in counts.values())
    assert len(counts) == 4 and off < 21, counts  # chi-squared of 3 degrees: one in ten thousand
    assert len(bed.host("h2").arrived) == 4000
    bed.check_accounts()


def test_three_tiers_are_crossed_by_one_address() -> None:
    fabric = fat_tree(4)
    first, last = fabric.hosts[0].name, fabric.hosts[-1].name
    steering = (Steering("leaf1", last),)
    bed = build(fabric, replace(PLAIN, steering=steering))
    seen = tapped(bed)
    bed.send(first, last, 50)
    bed.network.run(1_000_000)
    assert len(bed.host(last).arrived) == 50
    assert {frame[20] for name, _, frame in seen if name.startswith("core")} == {41}
    assert not bed.drops()


def test_tenants_are_steered_by_their_own_policies() -> None:
    steering = (
        Steering("leaf1", "leaf2", tenant=1, via=(("spine1",),)),
        Steering("leaf1", "leaf2", tenant=2, via=(("spine2",),)),
    )
    tenants = {"h1": 1, "h2": 2, "h3": 1, "h4": 2}
    bed = build(leaf_spine(2, 2, 2), replace(PLAIN, steering=steering, tenants=tenants))
    seen = tapped(bed)
    for src, dst in (("h1", "h3"), ("h2", "h4")):
        bed.send(src, dst, 10)
    bed.network.run(1_000_000)
    took = Counter(port for name, port, _ in seen if name == "leaf1")
    assert took == {3: 10, 4: 10}
    bed.check_accounts()


@pytest.mark.parametrize("spines", [1, 2])
@pytest.mark.parametrize("to", ["leaf2", "h3"])
@pytest.mark.parametrize("ip", BOTH)
def test_who_is_of_another_tenant_goes_by_the_routes(spines: int, to: str, ip: IpVersion) -> None:
    steering = (Steering("leaf1", to, tenant=1),)
    tenants = {"h1": 1, "h2": 2, "h3": 1, "h4": 2}
    bed = build(leaf_spine(2, spines, 2), replace(PLAIN, steering=steering, tenants=tenants), ip)
    seen = tapped(bed)
    for src, dst in (("h1", "h3"), ("h2", "h4")):
        bed.send(src, dst, 10)
    bed.network.run(1_000_000)
    assert {name: len(bed.host(name).arrived) for name in ("h3", "h4")} == {"h3": 10, "h4": 10}
    inside = [frame[20] for name, _, frame in seen if name == "leaf1" and frame[14] >> 4 == 6]
    assert inside.count(4 if ip == 4 else 41) == 10  # carried: those of the first tenant alone
    assert not bed.drops()
    bed.check_accounts()


def test_dead_ways_are_taken_out_and_without_any_routes_lead_on() -> None:
    fabric = leaf_spine(2, 2, 1).speaking(6)
    settings = replace(PLAIN, steering=(Steering("leaf1", "leaf2"),))

    def lists(dead: set[str]) -> tuple[int, int]:
        plan = switch_plans(fabric, settings, dead)["leaf1"]
        tables = [getattr(entity, "table", "") for entity in plan]
        return tables.count("segment_lists"), tables.count("segment_policies")

    assert lists(set()) == (2, 1)
    assert lists({"leaf1-spine2"}) == lists({"leaf2-spine2"}) == (1, 1)
    assert lists({"leaf1-spine2", "leaf2-spine1"}) == (0, 0)


def test_marks_on_the_way_reach_who_is_in_the_carrier() -> None:
    settings = replace(
        PLAIN, ecn=Ecn(kmin=0, kmax=1), steering=(Steering("leaf1", "leaf2"),), max_frame=1200
    )
    for ip in BOTH:
        bed = build(leaf_spine(2, 1, 1), settings, ip)
        bed.send("h1", "h2", 20, ecn=1)
        bed.network.run(1_000_000)
        assert [ecn_of(frame) for _, frame in bed.host("h2").arrived] == [3] * 20


def test_a_list_that_no_cable_has_is_refused_with_the_cure() -> None:
    for via, said in (("leaf2", "no cable leads from leaf1 to leaf2; from leaf1 .* spine1"),):
        settings = replace(PLAIN, steering=(Steering("leaf1", "h3", via=((via,),)),))
        with pytest.raises(SettingsError, match=said):
            switch_plans(leaf_spine(3, 2, 1).speaking(6), settings)
    settings = replace(PLAIN, steering=(Steering("leaf1", "h1"),))
    with pytest.raises(SettingsError, match="at leaf1 itself"):
        switch_plans(leaf_spine(3, 2, 1), settings)


# --- one switch, any list -------------------------------------------------------------------------


class Came(Data):
    """What becomes of a carrier at a switch: where to, and as which list."""

    port: int | None
    dst: int = 0
    left: int = 0


def due(dst: int, segments: tuple[int, ...], left: int, fabric: Fabric, name: str) -> Came:
    """RFC 9800, 4.1: the behaviours of a switch whose routes are the shortest ways."""
    node = fabric.node(name)
    own = {1: 0x1000, 2: 0x2000}[int(node.kind)] | node.number
    words = [dst >> 16 * n & 0xFFFF for n in range(5, -1, -1)]
    peers = fabric.ports(node)
    port: int | None = None

    def leave(words: list[int], port: int | None) -> Came:
        nonlocal left
        if any(words):
            target = BLOCK
            for word in words:
                target = target << 16 | word
        elif segments and 0 < left <= len(segments):
            target, left = segments[len(segments) - left], left - 1
        else:
            return Came(None)
        if port is None:
            port = towards(target)
        return Came(port, target, left if segments else 0) if port else Came(None)

    def towards(target: int) -> int | None:
        if target >> 96 != BLOCK:
            return None
        usid = target >> 80 & 0xFFFF
        for at, peer in peers.items():
            if peer.name[0] != "h" and usid == (int(peer.kind) << 12 | peer.number):
                return at
        if node.name == "leaf1" and usid == 0x1002:
            return next(at for at, peer in peers.items() if peer.name == "spine1")
        return None

    if dst >> 96 != BLOCK:
        return Came(None)
    if words[0] == own:
        if words[1] == END and name.startswith("leaf"):
            return Came(0 if not any(words[2:]) and not (segments and left) else None)
        port = words[1] - 0xE000
        if port in peers:
            return leave([*words[2:], 0, 0], port)
        return leave([*words[1:], 0], None)
    if words[0] == END and name.startswith("leaf"):
        return Came(0 if not any(words[1:]) and not (segments and left) else None)
    if words[0] - 0xE000 in peers:
        return leave([*words[1:], 0], words[0] - 0xE000)
    port = towards(dst)
    return Came(port, dst, left if segments else 0) if port else Came(None)


def drawn(rng: random.Random) -> tuple[int, tuple[int, ...], int]:
    def words() -> int:
        usids = [
            rng.choice((0x1001, 0x2001, 0x1002, 0xE001, 0xE002, 0xE003, END, 0x3333))
            for _ in range(rng.randrange(7))
        ]
        return sr.sid(*usids)

    segments = tuple(words() for _ in range(rng.choice((0, 0, 1, 2, 3))))
    left = rng.choice((len(segments), rng.randrange(len(segments) + 3)))
    block = rng.choice((0, 0, 0, 0, 1 << 100))
    return words() ^ block, segments, left


@pytest.mark.by_day(3)
@pytest.mark.parametrize("name", ["leaf1", "spine1"])
@pytest.mark.parametrize("seed", range(3))
def test_any_list_goes_where_the_standard_says(name: str, seed: int) -> None:
    rng = random.Random(seed)
    fabric = leaf_spine(2, 1, 2).speaking(6)
    bed = Testbed.build(fabric, PLAIN)
    seen = tapped(bed)
    came: Counter[bool] = Counter()
    for _ in range(600):
        dst, segments, left = drawn(rng)
        inner = ipv6_frame("fd00:0:0:9::1", "fd00:0:0:1::2", size=120)
        frame = in_carrier(inner, dst, segments, left=left)
        wanted = due(dst, segments, left, fabric, name)
        before, drops = len(seen), sum(bed.drops().values())
        bed.network.inject(name, 3 if name == "leaf1" else 1, frame)
        # An end has the packet routed; a spine has none.
        sent = [item for item in seen[before:] if item[0] == name]
        came[wanted.port is not None] += 1
        case = (IPv6Address(dst), [IPv6Address(s) for s in segments], left)
        if wanted.port is None:
            assert not sent and sum(bed.drops().values()) == drops + 1, case
        elif wanted.port == 0:
            ((_, port, out),) = sent
            assert port == 2 and out[54:] == inner[54:] and out[14:21] == inner[14:21], case
        else:
            ((_, port, out),) = sent
            assert (port, int.from_bytes(out[38:54], "big")) == (wanted.port, wanted.dst), case
            assert out[21] == 63
            assert out[54:] == (
                frame[54:57] + bytes([wanted.left]) + frame[58:] if segments else frame[54:]
            ), case
        bed.network.run(bed.network.now + 5000)
    assert min(came.values()) > 50
    bed.check_accounts()


BAD = {
    "another routing type": {"type": 0},
    "a length that is not its segments'": {"length": 6},
    "more segments than are read": {"last": 3, "length": 8},
}


@pytest.mark.parametrize("what", BAD)
def test_a_segment_routing_header_that_makes_no_sense_ends_as_malformed(what: str) -> None:
    bed = build(leaf_spine(2, 1, 1))
    inner = bed.frame("h1", "h2", size=200)
    frame = in_carrier(inner, sr.sid(0x1001, 0x2001), (sr.sid(0x1002, END),), **BAD[what])
    bed.network.inject("leaf1", 2, frame)
    bed.network.run(10_000)
    assert bed.drops() == {"malformed": 1}


# --- hosts ----------------------------------------------------------------------------------------


def test_hosts_steer_if_they_may_and_only_as_themselves() -> None:
    fabric = leaf_spine(2, 2, 2)
    for may in (False, True):
        bed = build(fabric, replace(PLAIN, hosts_steer=may, tenants={"h1": 1, "h3": 1, "h4": 2}))
        own = int(bed.fabric.address(bed.node("h1")))
        way = sr.sid(0x1001, 0x2002, 0x1002, END)
        to = {name: bed.frame("h1", name, size=150) for name in ("h3", "h4")}
        forged = ipv6_frame("fd00:0:0:1::9", "fd00:0:0:2::1", size=150)
        v4 = ipv4_frame("10.0.1.1", "10.0.2.1", size=150)
        for frame in (
            in_carrier(to["h3"], way, src=own),
            in_carrier(to["h4"], way, src=own),  # another tenant's, whatever the carrier says
            in_carrier(to["h3"], way, src=own + 1),  # somebody else's carrier
            in_carrier(to["h3"], int(bed.fabric.address(bed.node("h4"))), src=own),  # no list
            in_carrier(forged, way, src=own),
            in_carrier(v4, way, src=own),
        ):
            bed.network.inject("leaf1", 1, frame)
        bed.network.run(100_000)
        assert len(bed.host("h3").arrived) == may
        if may:
            assert bed.drops() == {"other_tenant": 1, "forged_header": 2, "forged_source": 2}
        else:
            assert bed.drops() == {"forged_header": 4, "forged_source": 2}
        bed.check_accounts()


# --- the kernel -----------------------------------------------------------------------------------


def test_the_kernel_agrees_both_ways() -> None:
    """Carriers of ours through its namespaces with next-csid, and its carriers through ours."""
    cases = run_alone("tests.fabric.kernel_sids")
    assert len(cases) == 8
    unknown = [name for name, case in cases.items() if case is None]
    for name in cases.keys() - unknown:
        got, due_there = cases[name]
        assert got == due_there, name
    if unknown:
        pytest.skip(f"all agree but what this kernel does not know: {', '.join(unknown)}")

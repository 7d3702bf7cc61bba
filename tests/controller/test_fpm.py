"""What zebra says is understood, in pieces of any size, and what switches are told of it is right.

Messages are built here from rtnetlink(7) and linux/nexthop.h. The judge of the sweep keeps routes
as plainly as can be: by prefix, a set of ports.
"""

from __future__ import annotations

import random
import struct
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any

import pytest

from controller.fpm import BgpRoute, FpmError, Message, NextHops, Reader, Way, link_local, mac_of
from controller.rib import Rib
from controller.routes import NextHop
from controller.settings import Settings
from controller.tables import Groups, SwitchSite, routed, routing
from topologies import leaf_spine

BGP, KERNEL = 186, 2
LINK_LOCAL = bytes.fromhex("fe80000000000000000102fffe0000")  # and a number


def attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def message(kind: int, body: bytes) -> bytes:
    netlink = struct.pack("=IHHII", 16 + len(body), kind, 0, 1, 0) + body
    return struct.pack("!BBH", 1, 1, 4 + len(netlink)) + netlink


def route(
    prefix: str, *attributes: bytes, new: bool = True, protocol: int = BGP, family: int = 0
) -> bytes:
    network = ip_network(prefix)
    family = family or (2 if network.version == 4 else 10)
    head = struct.pack("=8BI", family, network.prefixlen, 0, 0, 254, protocol, 0, 1, 0)
    destination = attribute(1, network.network_address.packed)
    return message(24 if new else 25, head + destination + b"".join(attributes))


def next_hop(number: int, interface: int, gateway: bytes = b"") -> bytes:
    fields = attribute(1, struct.pack("=I", number)) + attribute(5, struct.pack("=I", interface))
    return message(104, struct.pack("=4BI", 10, 0, 11, 0, 0) + fields + attribute(6, gateway))


def group(number: int, *members: int) -> bytes:
    packed = b"".join(struct.pack("=IBBH", member, 0, 0, 0) for member in members)
    fields = attribute(1, struct.pack("=I", number)) + attribute(2, packed)
    return message(104, struct.pack("=4BI", 0, 0, 11, 0, 0) + fields)


def gone(number: int) -> bytes:
    fields = attribute(1, struct.pack("=I", number))
    return message(105, struct.pack("=4BI", 0, 0, 11, 0, 0) + fields)


def by_number(number: int) -> bytes:
    return attribute(30, struct.pack("=I", number))


def gateway(of: int) -> bytes:
    return LINK_LOCAL + bytes((of,))


def heard(data: bytes) -> list[Message]:
    return list(Reader().feed(data))


def test_a_mac_is_found_in_an_address_made_of_it() -> None:
    of_mac = bytes.fromhex("fe80000000000000000102fffe000003")
    assert mac_of(of_mac) == "02:01:02:00:00:03"
    assert link_local("02:01:02:00:00:03") == of_mac
    assert mac_of(bytes.fromhex("fe800000000000001234567812345678")) is None
    assert Way(1, bytes.fromhex("20010db800000000000102fffe000003")).mac is None
    assert Way(1, bytes((169, 254, 0, 1))).mac is None


def test_sets_and_routes() -> None:
    data = next_hop(7, 3, gateway(1)) + group(9, 7, 8) + route("10.0.2.0/24", by_number(9))
    assert heard(data + gone(9) + route("10.0.2.0/24", new=False)) == [
        NextHops(7, Way(3, gateway(1))),
        NextHops(9, members=(7, 8)),
        BgpRoute(IPv4Network("10.0.2.0/24"), 9),
        NextHops(9),
        BgpRoute(IPv4Network("10.0.2.0/24")),
    ]


def test_routes_with_ways_of_their_own() -> None:
    via = attribute(18, struct.pack("=H", 10) + gateway(2))
    one = route("10.0.3.0/24", attribute(4, struct.pack("=I", 5)), via)
    ways = (
        struct.pack("=HBBi", 8 + len(encap), 0, 0, interface) + encap
        for interface, encap in ((3, attribute(18, struct.pack("=H", 10) + gateway(1))), (5, via))
    )
    many = route("10.0.4.0/24", attribute(9, b"".join(ways)))
    assert heard(one + many) == [
        BgpRoute(IPv4Network("10.0.3.0/24"), ways=(Way(5, gateway(2)),)),
        BgpRoute(IPv4Network("10.0.4.0/24"), ways=(Way(3, gateway(1)), Way(5, gateway(2)))),
    ]


def test_ipv6_is_told_like_ipv4() -> None:
    prefix = "2001:db8:1::/48"
    assert heard(route(prefix, by_number(9)) + route(prefix, new=False)) == [
        BgpRoute(IPv6Network(prefix), 9),
        BgpRoute(IPv6Network(prefix)),
    ]


def test_what_is_not_bgps_is_left_out() -> None:
    assert not heard(route("10.0.2.0/24", by_number(9), protocol=KERNEL))
    assert not heard(route("10.0.2.0/24", by_number(9), family=28))
    assert not heard(route("2001:db8::/48", by_number(9), family=2))
    assert not heard(message(28, bytes(12)))  # a neighbour


@pytest.mark.parametrize("seed", range(3))
def test_pieces_of_any_size(seed: int) -> None:
    draw = random.Random(seed)
    sent = [next_hop(7, 3, gateway(1)), group(9, 7), *(route(f"10.0.{n}.0/24") for n in range(9))]
    data, reader = b"".join(sent), Reader()
    found: list[Any] = []
    while data:
        size = draw.randrange(1, 40)
        found += reader.feed(data[:size])
        data = data[size:]
    assert found == heard(b"".join(sent))


@pytest.mark.parametrize("seed", range(200))
def test_bytes_of_any_kind_are_understood_or_refused(seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray(group(9, 7, 8) + next_hop(7, 3, gateway(1)) + route("10.0.2.0/24"))
    for _ in range(draw.randrange(1, 6)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    try:
        heard(bytes(data))
    except FpmError as error:
        assert str(error)


# --- what a switch is told ----------------------------------------------------------------------

FABRIC = leaf_spine(4, 4, 2)
LEAF = FABRIC.node("leaf1")
PORTS = {10 + port: port for port in FABRIC.ports(LEAF)}
UPLINKS = {13: 1, 14: 2, 15: 3, 16: 4}  # interfaces towards spines


def rib() -> Rib:
    return Rib(PORTS, sorted(PORTS.values()))


def ports_of(found: Rib) -> dict[str, set[int]]:
    return {str(r.prefix): {hop.port for hop in r.next_hops} for r in found.routes()}


def hear(found: Rib, data: bytes) -> None:
    for one in heard(data):
        found.hear(one)


def test_ways_are_in_the_order_of_ports() -> None:
    found = rib()
    hear(found, next_hop(1, 14, gateway(2)) + next_hop(2, 13, gateway(1)) + group(3, 1, 2))
    hear(found, route("10.0.2.0/24", by_number(3)))
    (only,) = found.routes()
    assert only.next_hops == (NextHop(3, "02:01:02:00:00:01"), NextHop(4, "02:01:02:00:00:02"))


def test_a_set_that_changes_moves_its_routes() -> None:
    found = rib()
    hear(found, next_hop(1, 13, gateway(1)) + next_hop(2, 14, gateway(2)) + group(3, 1, 2))
    hear(found, route("10.0.2.0/24", by_number(3)) + group(3, 2))
    assert ports_of(found) == {"10.0.2.0/24": {4}}


def test_what_restarts_is_believed_when_it_knows_again() -> None:
    """Withdrawn while nothing is known, told again otherwise, and never told again."""
    found = rib()
    hear(found, next_hop(1, 13, gateway(1)) + next_hop(2, 14, gateway(2)))
    hear(found, b"".join(route(f"10.0.{n}.0/24", by_number(1)) for n in (2, 3, 4)))
    found.grow_stale()
    hear(found, b"".join(route(f"10.0.{n}.0/24", new=False) for n in (2, 3, 4)) + gone(1))
    assert ports_of(found) == {f"10.0.{n}.0/24": {3} for n in (2, 3, 4)}
    hear(found, route("10.0.2.0/24", by_number(2)) + route("10.0.3.0/24", by_number(2)))
    hear(found, route("10.0.3.0/24", new=False))  # by somebody who knows
    assert ports_of(found) == {"10.0.2.0/24": {4}, "10.0.4.0/24": {3}}
    assert found.sweep() == 1
    assert ports_of(found) == {"10.0.2.0/24": {4}}


def test_what_switches_were_told_counts_until_it_is_told_again() -> None:
    """By whoever begins to follow a daemon that went on meanwhile."""
    before, found = rib(), rib()
    hear(before, next_hop(1, 13, gateway(1)) + next_hop(2, 14, gateway(2)) + group(3, 1, 2))
    hear(before, route("10.0.2.0/24", by_number(3)) + route("10.0.3.0/24", by_number(1)))
    found.adopt(before.routes())
    found.grow_stale(forgets_sets=True)
    assert found.routes() == before.routes()
    hear(found, next_hop(7, 14, gateway(2)) + route("10.0.2.0/24", by_number(7)))
    assert ports_of(found) == {"10.0.2.0/24": {4}, "10.0.3.0/24": {3}}
    found.sweep()
    assert ports_of(found) == {"10.0.2.0/24": {4}}


@pytest.mark.parametrize("seed", range(30))
def test_any_history_ends_in_what_was_last_told(seed: int) -> None:
    draw = random.Random(seed)
    found, model = rib(), {}
    groups: Groups = {}
    site = SwitchSite(FABRIC, LEAF, Settings())
    sets: dict[int, set[int]] = {}
    for interface, spine in UPLINKS.items():
        hear(found, next_hop(interface, interface, gateway(spine)))
    routes: dict[str, int] = {}
    before: dict[tuple[NextHop, ...], int] = {}
    for step in range(60):
        what = draw.choice(["set", "route", "route", "withdraw"])
        if what == "set" or not sets:
            number = draw.choice([100, 101, 102, 103])
            members = draw.sample(sorted(UPLINKS), draw.randrange(1, 5))
            sets[number] = {PORTS[each] for each in members}
            hear(found, group(number, *members))
        elif what == "route":
            prefix = f"10.0.{draw.randrange(2, 9)}.0/24"
            routes[prefix] = draw.choice(sorted(sets))
            hear(found, route(prefix, by_number(routes[prefix])))
        else:
            prefix = f"10.0.{draw.randrange(2, 9)}.0/24"
            routes.pop(prefix, None)
            hear(found, route(prefix, new=False))
        model = {prefix: sets[number] for prefix, number in routes.items()}
        assert ports_of(found) == model, (seed, step)
        # A group that is still wanted keeps its number, and no other takes it meanwhile.
        plan = tuple(routing(site, found.routes(), groups))
        assert routed(plan) == (found.routes(), groups)
        assert len(set(groups.values())) == len(groups)
        for hops, number in groups.items():
            assert before.get(hops, number) == number
            if hops not in before:
                assert number not in before.values()
        before = dict(groups)

"""What the kernel tells of its forwarding tables and routes, and which of it is EVPN's.

Messages are built here from rtnetlink(7) and linux/neighbour.h; the judge of the sweep keeps a set.
"""

import random
import struct
import subprocess
import sys
from contextlib import suppress
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

import pytest

from controller.fdb import Fdb
from controller.netlink import NetlinkError, messages
from controller.rib import Rib
from controller.tenants import FarMac, FarMember, FarPrefix
from tests.veths import alone

ROOT = Path(__file__).parents[2]
NEW, DELETED, NEW_ROUTE, DELETED_ROUTE, INET, BRIDGE = 28, 29, 24, 25, 2, 7
DEVICE, ROUTED, OTHER = 5, 9, 6
BGP, STATIC = 186, 4
NOBODY = "00:00:00:00:00:00"
LEAF2, LEAF3 = "10.255.16.2", "10.255.16.3"
MAC2, MAC3 = "02:01:01:00:00:02", "02:01:01:00:00:03"


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def message(kind: int, device: int, mac: str, vtep: str | None, family: int = BRIDGE) -> bytes:
    body = struct.pack("=BBHiHBB", family, 0, 0, device, 0x80, 0x12, 0)
    body += attribute(2, bytes.fromhex(mac.replace(":", "")))
    body += attribute(1, IPv4Address(vtep).packed) if vtep else b""
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def route(kind: int, prefix: str, vtep: str, *, protocol: int = BGP, device: int = ROUTED) -> bytes:
    network = IPv4Network(prefix)
    body = struct.pack("=8BI", INET, network.prefixlen, 0, 0, 254, protocol, 0, 1, 0)
    body += attribute(1, network.network_address.packed)
    body += attribute(5, IPv4Address(vtep).packed) + attribute(4, struct.pack("=I", device))
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def hear(fdb: Fdb, data: bytes) -> bool:
    return fdb.hear(messages(data))


def fdb_of_one() -> Fdb:
    return Fdb(1, ROUTED, DEVICE)


def test_hosts_and_leaves_come_and_go() -> None:
    fdb = fdb_of_one()
    mac = "02:00:0a:00:02:01"
    assert hear(fdb, message(NEW, DEVICE, NOBODY, LEAF2) + message(NEW, DEVICE, mac, LEAF2))
    assert fdb.members() == (FarMember(20_001, IPv4Address(LEAF2)),)
    assert fdb.macs() == (FarMac(1, mac, IPv4Address(LEAF2)),)
    assert not hear(fdb, message(NEW, DEVICE, mac, LEAF2))  # known
    assert hear(fdb, message(DELETED, DEVICE, mac, LEAF2))
    assert not hear(fdb, message(DELETED, DEVICE, mac, LEAF2))
    assert fdb.macs() == ()


def test_addresses_are_behind_a_leaf_once_its_mac_is_known() -> None:
    fdb = fdb_of_one()
    prefix = IPv4Network("10.0.2.0/24")
    hear(fdb, route(NEW_ROUTE, "10.0.2.0/24", LEAF2))
    assert fdb.prefixes() == fdb.members() == ()
    hear(fdb, message(NEW, ROUTED, MAC2, LEAF2, family=INET))
    assert fdb.prefixes() == (FarPrefix(1, prefix, IPv4Address(LEAF2), MAC2),)
    assert fdb.members() == (FarMember(10_001, IPv4Address(LEAF2)),)
    hear(fdb, message(NEW, ROUTED, MAC3, LEAF3, family=INET) + route(NEW_ROUTE, str(prefix), LEAF3))
    assert fdb.prefixes() == (FarPrefix(1, prefix, IPv4Address(LEAF3), MAC3),)
    hear(fdb, route(DELETED_ROUTE, str(prefix), LEAF3))
    assert fdb.prefixes() == fdb.members() == ()


def test_a_route_that_stays_leads_on_though_its_neighbour_goes() -> None:
    """As zebra leaves it when one of a route's two ways is withdrawn."""
    fdb = fdb_of_one()
    known = route(NEW_ROUTE, "10.0.2.0/24", LEAF2)
    hear(fdb, known + message(NEW, ROUTED, MAC2, LEAF2, family=INET))
    assert not hear(fdb, message(DELETED, ROUTED, MAC2, LEAF2, family=INET))
    assert not fdb.learn_anew(messages(known))
    assert [found.mac for found in fdb.prefixes()] == [MAC2]
    hear(fdb, message(NEW, ROUTED, MAC3, LEAF2, family=INET))
    assert [found.mac for found in fdb.prefixes()] == [MAC3]


def test_what_was_lost_is_learned_from_all_there_is() -> None:
    fdb = fdb_of_one()
    hear(
        fdb,
        message(NEW, DEVICE, "02:00:00:00:00:01", LEAF2) + route(NEW_ROUTE, "10.0.9.0/24", LEAF2),
    )
    now = message(NEW, DEVICE, "02:00:00:00:00:02", LEAF3)
    assert fdb.learn_anew(messages(now))
    assert not fdb.learn_anew(messages(now))
    assert fdb.macs() == (FarMac(1, "02:00:00:00:00:02", IPv4Address(LEAF3)),)
    assert fdb.prefixes() == ()


@pytest.mark.parametrize(
    "other",
    [
        message(NEW, OTHER, "02:00:00:00:00:01", "10.255.16.2"),
        message(NEW, DEVICE, "02:00:00:00:00:01", None),  # at a port of the bridge
        message(NEW, DEVICE, "02:00:00:00:00:01", "10.255.16.2", family=INET),
        route(NEW_ROUTE, "10.0.2.0/24", LEAF2, protocol=STATIC),
        route(NEW_ROUTE, "10.0.2.0/24", LEAF2, device=OTHER),
        struct.pack("=IHHII", 20, NEW, 0, 0, 0) + bytes(4),
        struct.pack("=IHHII", 16, 3, 0, 0, 0),
    ],
)
def test_what_is_not_evpns_is_left_out(other: bytes) -> None:
    fdb = fdb_of_one()
    assert not hear(fdb, other)
    assert fdb.macs() == fdb.members() == fdb.prefixes() == ()


def test_a_host_that_moves_is_where_it_was_last_told() -> None:
    """As the kernel has it: a replaced entry is told anew, without a word of the old one."""
    fdb = fdb_of_one()
    mac = "02:00:00:00:00:01"
    hear(fdb, message(NEW, DEVICE, mac, "10.255.16.2"))
    hear(fdb, message(NEW, DEVICE, mac, "10.255.16.3"))
    assert fdb.macs() == (FarMac(1, mac, IPv4Address("10.255.16.3")),)
    hear(fdb, message(DELETED, DEVICE, mac, "10.255.16.3"))
    assert fdb.macs() == ()


@pytest.mark.parametrize("seed", range(20))
def test_any_history_and_any_bytes(seed: int) -> None:
    draw = random.Random(seed)
    fdb = fdb_of_one()
    hosts: dict[str, str] = {}
    leaves: set[str] = set()
    prefixes: dict[str, str] = {}
    known: dict[str, str] = {}
    macs = [NOBODY, *(f"02:00:00:00:00:{n:02x}" for n in range(1, 6))]
    for _ in range(300):
        mac, is_new = draw.choice(macs), draw.random() < 2 / 3
        leaf, prefix = f"10.255.16.{draw.randrange(1, 4)}", f"10.0.{draw.randrange(4)}.0/24"
        what = draw.choice((DEVICE, ROUTED, None))
        if what is None:
            hear(fdb, route(NEW_ROUTE if is_new else DELETED_ROUTE, prefix, leaf))
            prefixes = {**prefixes, prefix: leaf} if is_new else prefixes
            if not is_new:
                prefixes.pop(prefix, None)
        elif what == ROUTED:
            hear(fdb, message(NEW if is_new else DELETED, ROUTED, mac, leaf, family=INET))
            known |= {leaf: mac} if is_new else {}
        else:
            hear(fdb, message(NEW if is_new else DELETED, DEVICE, mac, leaf))
            if mac == NOBODY:
                (leaves.add if is_new else leaves.discard)(leaf)
            elif is_new:
                hosts[mac] = leaf
            elif hosts.get(mac) == leaf:
                del hosts[mac]
        assert {m.mac: str(m.vtep) for m in fdb.macs()} == hosts
        assert {str(m.vtep) for m in fdb.members() if m.vni == 20_001} == leaves
        assert {str(p.prefix): (str(p.vtep), p.mac) for p in fdb.prefixes()} == {
            prefix: (leaf, known[leaf]) for prefix, leaf in prefixes.items() if leaf in known
        }
    for _ in range(50):
        frame = bytearray(
            message(NEW, DEVICE, macs[1], LEAF2) + route(NEW_ROUTE, "10.0.2.0/24", LEAF2)
        )
        for _ in range(draw.randrange(1, 6)):
            frame[draw.randrange(len(frame))] = draw.randrange(256)
        with suppress(NetlinkError):
            hear(fdb, bytes(frame[: draw.randrange(len(frame) + 1)]))


def test_routes_of_the_switch_itself_are_the_kernels_too() -> None:
    """There IPv4 through a neighbour without it is written as 169.254.0.1, whose MAC is told."""
    rib = Rib({3: 1, 4: 2}, [1, 2])
    for device, mac in ((3, MAC2), (4, MAC3)):
        rib.hear_kernel(messages(message(NEW, device, mac, "169.254.0.1", family=INET)))
    rib.hear_kernel(messages(route(NEW_ROUTE, "10.0.2.0/24", "169.254.0.1", device=4)))
    (found,) = rib.routes()
    assert [(hop.port, hop.mac) for hop in found.next_hops] == [(2, MAC3)]
    rib.learn_anew(
        messages(
            message(NEW, 3, MAC2, "169.254.0.1", family=INET)
            + route(NEW_ROUTE, "10.0.3.0/24", "169.254.0.1", device=3)
        )
    )
    (found,) = rib.routes()
    assert (str(found.prefix), found.next_hops[0].port) == ("10.0.3.0/24", 1)


OVERRUN = """
import select
import subprocess
from ipaddress import IPv4Address
from socket import if_nametoindex
from controller.fdb import Fdb
from controller.kernel import View
from controller.netlink import messages

def ip(*lines):
    subprocess.run(["ip", "-batch", "-"], input="\\n".join(lines), text=True, check=True)

ip("link set lo up", "link add routed type bridge", "link set routed up")
view, fdb = View(), Fdb(1, if_nametoindex("routed"))
count = 3000
leaves = [IPv4Address("10.255.0.0") + n for n in range(1, count)]
ip(*(f"neighbour add {leaf} lladdr 02:00:00:00:00:01 nud noarp dev routed" for leaf in leaves[:9]))
ip(*(f"route add {leaf + (1 << 16)}/32 via {leaf} dev routed onlink proto bgp" for leaf in leaves))
ip("neighbour del 10.255.0.1 dev routed")
lost = 0
def anew(told):
    global lost
    lost += 1
    fdb.learn_anew(told)

while view.news in select.select([view.news], [], [], 0)[0]:
    view.tell(fdb.hear, anew)
print(lost, len(fdb.prefixes()), fdb.prefixes()[0].vtep)
ip("route del 11.0.0.2/32")
fdb.hear(messages(view.hear()))
print(len(fdb.prefixes()))
"""


@pytest.mark.mininet
def test_news_that_found_no_room_are_asked_for() -> None:
    """The kernel tells of thousands of routes while nobody listens; what is gone is gone."""
    done = subprocess.run(
        [*alone(), sys.executable, "-c", OVERRUN],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lost, known, first, after = done.stdout.split()
    assert int(lost) >= 1
    assert (int(known), first, int(after)) == (8, "10.255.0.2", 7)

"""What the kernel tells of its forwarding tables, and which of it is EVPN's.

Messages are built here from rtnetlink(7) and linux/neighbour.h; the judge of the sweep keeps a set.
"""

import random
import struct
from contextlib import suppress
from ipaddress import IPv4Address

import pytest

from controller.fdb import Fdb
from controller.netlink import NetlinkError
from controller.tenants import FarMac, FarMember

NEW, DELETED, INET, BRIDGE = 28, 29, 2, 7
FIRST, SECOND, OTHER = 5, 9, 6  # devices
NOBODY = "00:00:00:00:00:00"


def attribute(kind: int, content: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(content), kind) + content + bytes(-len(content) % 4)


def message(kind: int, device: int, mac: str, vtep: str | None, family: int = BRIDGE) -> bytes:
    body = struct.pack("=BBHiHBB", family, 0, 0, device, 0x80, 0x12, 0)
    body += attribute(2, bytes.fromhex(mac.replace(":", "")))
    body += attribute(1, IPv4Address(vtep).packed) if vtep else b""
    return struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body


def test_hosts_and_leaves_come_and_go() -> None:
    fdb = Fdb({FIRST: 1, SECOND: 2})
    mac, leaf2, leaf3 = "02:00:0a:00:02:01", "10.255.16.2", "10.255.16.3"
    assert fdb.hear(message(NEW, FIRST, NOBODY, leaf2) + message(NEW, FIRST, mac, leaf2))
    assert fdb.hear(message(NEW, SECOND, mac, leaf3))
    assert fdb.members() == (FarMember(20_001, IPv4Address(leaf2)),)
    assert fdb.macs() == (
        FarMac(1, mac, IPv4Address(leaf2)),
        FarMac(2, mac, IPv4Address(leaf3)),
    )
    assert not fdb.hear(message(NEW, FIRST, mac, leaf2))  # known
    assert fdb.hear(message(DELETED, FIRST, mac, leaf2))
    assert not fdb.hear(message(DELETED, FIRST, mac, leaf2))
    assert fdb.macs() == (FarMac(2, mac, IPv4Address(leaf3)),)


@pytest.mark.parametrize(
    "other",
    [
        message(NEW, OTHER, "02:00:00:00:00:01", "10.255.16.2"),
        message(NEW, FIRST, "02:00:00:00:00:01", None),  # at a port of the bridge
        message(NEW, FIRST, "02:00:00:00:00:01", "10.255.16.2", family=INET),
        struct.pack("=IHHII", 20, NEW, 0, 0, 0) + bytes(4),
        struct.pack("=IHHII", 16, 3, 0, 0, 0),
    ],
)
def test_what_is_not_evpns_is_left_out(other: bytes) -> None:
    fdb = Fdb({FIRST: 1})
    assert not fdb.hear(other)
    assert fdb.macs() == fdb.members() == ()


def test_a_host_that_moves_is_where_it_was_last_told() -> None:
    """As the kernel has it: a replaced entry is told anew, without a word of the old one."""
    fdb = Fdb({FIRST: 1})
    mac = "02:00:00:00:00:01"
    fdb.hear(message(NEW, FIRST, mac, "10.255.16.2"))
    fdb.hear(message(NEW, FIRST, mac, "10.255.16.3"))
    assert fdb.macs() == (FarMac(1, mac, IPv4Address("10.255.16.3")),)
    fdb.hear(message(DELETED, FIRST, mac, "10.255.16.3"))
    assert fdb.macs() == ()


@pytest.mark.parametrize("seed", range(20))
def test_any_history_and_any_bytes(seed: int) -> None:
    draw = random.Random(seed)
    fdb = Fdb({FIRST: 1, SECOND: 2})
    hosts: dict[tuple[int, str], str] = {}
    leaves: set[tuple[int, str]] = set()
    macs = [NOBODY, *(f"02:00:00:00:00:{n:02x}" for n in range(1, 6))]
    for _ in range(300):
        device, mac = draw.choice((FIRST, SECOND)), draw.choice(macs)
        kind, leaf = draw.choice((NEW, NEW, DELETED)), f"10.255.16.{draw.randrange(1, 4)}"
        tenant = {FIRST: 1, SECOND: 2}[device]
        fdb.hear(message(kind, device, mac, leaf))
        if mac == NOBODY:
            (leaves.add if kind == NEW else leaves.discard)((tenant, leaf))
        elif kind == NEW:
            hosts[tenant, mac] = leaf
        elif hosts.get((tenant, mac)) == leaf:
            del hosts[tenant, mac]
        assert {(m.tenant, m.mac): str(m.vtep) for m in fdb.macs()} == hosts
        assert {(m.vni - 20_000, str(m.vtep)) for m in fdb.members()} == leaves
    for _ in range(50):
        frame = bytearray(message(NEW, FIRST, macs[1], "10.255.16.2") * 2)
        for _ in range(draw.randrange(1, 6)):
            frame[draw.randrange(len(frame))] = draw.randrange(256)
        with suppress(NetlinkError):
            fdb.hear(bytes(frame[: draw.randrange(len(frame) + 1)]))

"""What is for a switch itself reaches its control port, and what that says the front port.

The sweep's judge is a list of what frames are for whom, written down here from the promises alone.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import pytest

from controller import Loss, Punt, Settings
from controller.tables import control_port
from params.marking import Ecn
from tests.fabric.testbed import Testbed, ipv4_frame
from topologies import leaf_spine

OWN = Settings(max_frame=1600, ecn=Ecn(enabled=False), punt=Punt(every_ns=1000, burst=4))
NONE = replace(OWN, punt=None)
ARP, IPV6, LLDP = b"\x08\x06", b"\x86\xdd", b"\x88\xcc"
UPLINK = 3  # of a leaf with two hosts
PUNTED = "control_port"


LINK_LOCAL = bytes.fromhex("fe80000000000000000101fffe000001")
ALL_NODES = bytes.fromhex("ff020000000000000000000000000001")
ALL_MLD_ROUTERS = bytes.fromhex("ff020000000000000000000000000016")


def layer2(
    kind: bytes, mark: int = 0, size: int = 90, dst: bytes = LINK_LOCAL, next_header: int = 59
) -> bytes:
    """A frame between neighbours; if it is IPv6, between two link-local addresses."""
    macs = bytes.fromhex("0201010000010201020000" + "01")
    head = struct.pack("!IHBB", 6 << 28, size - 54, next_header, 255) + LINK_LOCAL + dst
    body = (head if kind == IPV6 else b"") + mark.to_bytes(8, "big")
    return (macs + kind + body).ljust(size, b"\xa5")


class Seen(NamedTuple):
    at: int
    port: int
    frame: bytes


class Bench:
    """A fabric whose control ports somebody listens at."""

    def __init__(self, settings: Settings, seed: int = 1) -> None:
        self.bed = Testbed.build(leaf_spine(2, 2, 2), settings, seed)
        self.seen: list[Seen] = []
        for node in self.bed.fabric.switches:
            for port in self.bed.fabric.ports(node):
                self.bed.switch(node.name).add_port(control_port(port), 0, 0)
        self.bed.network.tap = lambda at, name, port, frame: (
            self.seen.append(Seen(at, port, frame)) if name == "leaf1" else None
        )

    def says(self, port: int, *frames: bytes, at: int = 0) -> None:
        """Let frames arrive at leaf1."""
        for frame in frames:
            self.bed.network.at(at, lambda f=frame: self.bed.network.inject("leaf1", port, f))

    def run(self, until: int = 10**7) -> list[tuple[int, bytes]]:
        """What leaf1 sent, and by which port."""
        self.bed.network.run(until)
        self.bed.check_accounts()
        return [(port, frame) for _, port, frame in self.seen]


def gateway_frame(bench: Bench, mark: int = 0) -> bytes:
    """What a host says to its leaf."""
    fabric = bench.bed.fabric
    h1, leaf1 = fabric.node("h1"), fabric.node("leaf1")
    return ipv4_frame(
        str(fabric.address(h1)), str(fabric.gateway(leaf1)), size=100, mark=mark, ttl=1
    )


@pytest.mark.parametrize("kind", [ARP, IPV6])
def test_neighbours_words_come_as_they_were(kind: bytes) -> None:
    bench = Bench(OWN)
    bench.says(UPLINK, layer2(kind))
    assert bench.run() == [(control_port(UPLINK), layer2(kind))]


def test_what_is_for_all_of_a_link_comes_too() -> None:
    bench = Bench(OWN)
    bench.says(UPLINK, layer2(IPV6, dst=ALL_NODES))
    assert bench.run() == [(control_port(UPLINK), layer2(IPV6, dst=ALL_NODES))]


@pytest.mark.parametrize(
    "frame", [layer2(IPV6), layer2(IPV6, dst=ALL_MLD_ROUTERS, next_header=0)], ids=["ND", "MLD"]
)
def test_what_control_says_leaves_as_it_is(frame: bytes) -> None:
    bench = Bench(OWN)
    bench.says(control_port(UPLINK), frame)
    assert bench.run() == [(UPLINK, frame)]


def test_its_own_address_is_reached_by_whoever_may() -> None:
    """With a TTL of 1, which nobody may forward."""
    bench = Bench(OWN)
    frame = gateway_frame(bench)
    bench.says(1, frame)
    assert bench.run() == [(control_port(1), frame)]


def test_what_control_says_in_ipv4_is_routed() -> None:
    bench = Bench(OWN)
    fabric = bench.bed.fabric
    leaf1, h2 = fabric.node("leaf1"), fabric.node("h2")
    frame = ipv4_frame(str(fabric.gateway(leaf1)), str(fabric.address(h2)), size=100)
    bench.says(control_port(1), frame)
    ((port, sent),) = bench.run()
    assert port == 2
    assert sent[22] == frame[22] - 1  # the TTL


@pytest.mark.parametrize(("settings", "kind"), [(OWN, LLDP), (NONE, ARP), (NONE, IPV6)])
def test_what_nobody_asked_for_is_dropped(settings: Settings, kind: bytes) -> None:
    bench = Bench(settings)
    bench.says(UPLINK, layer2(kind))
    assert bench.run() == []
    assert bench.bed.drops() == {"link_local" if kind == IPV6 else "not_ip": 1}


def test_a_flood_does_not_keep_control_busy() -> None:
    """Four at once, then one in a microsecond; other ports have their own share."""
    bench = Bench(OWN)
    for number in range(2000):
        bench.says(UPLINK, layer2(ARP, number), at=number * 50)
    bench.says(UPLINK + 1, layer2(ARP), at=60_000)
    sent = bench.run()
    assert len([port for port, _ in sent if port == control_port(UPLINK)]) == 4 + 99
    assert (control_port(UPLINK + 1), layer2(ARP)) in sent
    assert bench.bed.drops() == {"control_limit": 2000 - 103}


@pytest.mark.parametrize("received", [True, False])
def test_a_silent_cable_loses_it_too(received: bool) -> None:
    bench = Bench(replace(OWN, losses=(Loss("leaf1", UPLINK, 1.0, received=received),)))
    bench.says(UPLINK if received else control_port(UPLINK), layer2(IPV6))
    assert bench.run() == []
    assert bench.bed.drops() == {"injected_loss": 1}


def test_a_dead_port_takes_nothing() -> None:
    bench = Bench(OWN)
    bench.bed.switch("leaf1").plane.set_port_up(UPLINK, False)
    bench.says(control_port(UPLINK), layer2(IPV6))
    assert bench.run() == []
    assert bench.bed.drops() == {"port_down": 1}


@pytest.mark.parametrize("seed", range(4))
def test_everything_arrives_where_it_belongs(seed: int) -> None:
    """Random frames at random ports, seldom enough for nobody to be too much."""
    draw = random.Random(seed)
    bench = Bench(OWN, seed + 1)
    fabric = bench.bed.fabric
    address = {host.name: str(fabric.address(host)) for host in fabric.hosts}
    ports = {"h1": 1, "h2": 2}
    wanted: Counter[tuple[int, bytes]] = Counter()
    dropped: Counter[str] = Counter()
    forwarded = 0
    for number in range(300):
        mark, at = number + 1, number * 20_000
        way = draw.choice(["up", "down", "host", "gateway", "forged", "stray"])
        front = draw.choice([1, 2, 3, 4])
        kind = ARP if front in ports.values() else draw.choice([ARP, IPV6])  # hosts speak IPv4
        if way == "up":
            bench.says(front, layer2(kind, mark), at=at)
            wanted[control_port(front), layer2(kind, mark)] += 1
        elif way == "down":
            bench.says(control_port(front), layer2(kind, mark), at=at)
            wanted[front, layer2(kind, mark)] += 1
        elif way == "host":
            src, dst = draw.choice([("h1", "h2"), ("h2", "h1"), ("h1", "h3"), ("h2", "h4")])
            frame = ipv4_frame(address[src], address[dst], size=200, mark=mark)
            bench.says(ports[src], frame, at=at)
            forwarded += 1
        elif way == "gateway":
            frame = gateway_frame(bench, mark)
            bench.says(1, frame, at=at)
            wanted[control_port(1), frame] += 1
        elif way == "forged":
            bench.says(2, gateway_frame(bench, mark), at=at)
            dropped["forged_source"] += 1
        else:
            bench.says(front, layer2(LLDP, mark), at=at)
            dropped["not_ip"] += 1
    sent = Counter(bench.run())
    assert {key: n for key, n in sent.items() if key in wanted} == wanted
    assert sum(sent.values()) - sum(wanted.values()) == forwarded, seed
    assert bench.bed.drops() == {k: n for k, n in dropped.items() if n}

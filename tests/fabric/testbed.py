"""Fabrics of real graphs and plans, in virtual time; and the frames that cross them."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address

from controller import Route, Settings, routes_of, switch_plan
from controller.settings import USUAL
from controller.tables import DROP_REASONS, SwitchSite
from params.data import Data
from tests.fabric.network import Host, Network, Switch
from topologies import Fabric, Node, NodeKind

UDP_ROCE = 4791
ECN_CONGESTED = 3


def checksum(header: bytes) -> int:
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return int(total ^ 0xFFFF)


def ipv4_frame(
    src: str,
    dst: str,
    *,
    size: int,
    src_mac: str = "02:00:00:00:00:01",
    dst_mac: str = "02:00:00:00:00:02",
    dscp: int = 26,
    ecn: int = 0,
    ttl: int = 64,
    src_port: int = 49152,
    dst_port: int = UDP_ROCE,
    mark: int = 0,
) -> bytes:
    """A UDP frame of `size` bytes without FCS, that carries a number."""

    def address(text: str) -> bytes:
        return bytes(int(part) for part in text.split("."))

    payload = mark.to_bytes(8, "big").ljust(size - 42, b"\x5a")
    udp = struct.pack("!HHHH", src_port, dst_port, 8 + len(payload), 0)
    head = struct.pack(
        "!BBHHHBBH4s4s",
        *(0x45, dscp << 2 | ecn, 28 + len(payload), 0, 0x4000, ttl, 17, 0),
        *(address(src), address(dst)),
    )
    head = head[:10] + checksum(head).to_bytes(2, "big") + head[12:]
    macs = bytes.fromhex((dst_mac + src_mac).replace(":", ""))
    return macs + b"\x08\x00" + head + udp + payload


def ipv6_frame(
    src: str,
    dst: str,
    *,
    size: int,
    src_mac: str = "02:00:00:00:00:01",
    dst_mac: str = "02:00:00:00:00:02",
    dscp: int = 26,
    ecn: int = 0,
    ttl: int = 64,
    src_port: int = 49152,
    dst_port: int = UDP_ROCE,
    mark: int = 0,
    label: int = 0,
    next_header: int = 17,
) -> bytes:
    """The same over IPv6; as long as IPv4's, which has 20 bytes more to carry."""
    payload = mark.to_bytes(8, "big").ljust(size - 62, b"\x5a")
    udp = struct.pack("!HHHH", src_port, dst_port, 8 + len(payload), 0)
    word = 6 << 28 | dscp << 22 | ecn << 20 | label
    head = struct.pack("!IHBB", word, 8 + len(payload), next_header, ttl)
    head += IPv6Address(src).packed + IPv6Address(dst).packed
    macs = bytes.fromhex((dst_mac + src_mac).replace(":", ""))
    return macs + b"\x86\xdd" + head + udp + payload


def is_ipv6(frame: bytes) -> bool:
    return frame[12:14] == b"\x86\xdd"


def mark_of(frame: bytes) -> int:
    """The number a frame carries."""
    at = 62 if is_ipv6(frame) else 42
    return int.from_bytes(frame[at : at + 8], "big")


def ecn_of(frame: bytes) -> int:
    return frame[15] >> 4 & 3 if is_ipv6(frame) else frame[15] & 3


class Testbed(Data, frozen=False):
    __test__ = False  # for pytest: not a class of tests

    """A fabric that runs."""

    fabric: Fabric
    settings: Settings
    network: Network

    @classmethod
    def build(
        cls,
        fabric: Fabric,
        settings: Settings = USUAL,
        seed: int = 1,
        routes: dict[Node, tuple[Route, ...]] | None = None,
        make_switch: Callable[[str, int], Switch] = Switch.make,
    ) -> Testbed:
        """Switches with their plans, hosts, cables; ``routes`` instead of the shortest."""
        network = Network()
        bed = cls(fabric, settings, network)
        for number, node in enumerate(fabric.switches):
            network.switches[node.name] = make_switch(node.name, seed * 1000 + number)
        for host in fabric.hosts:
            link = SwitchSite(fabric, fabric.leaf_of(host), settings).link(
                fabric.port_towards(fabric.leaf_of(host), host)
            )
            network.add_host(host.name, link.rate_bps, link.delay_ns)
        for cable in fabric.links:
            switch = cable.a if cable.a.kind is not NodeKind.HOST else cable.b
            port = cable.a_port if switch == cable.a else cable.b_port
            link = SwitchSite(fabric, switch, settings).link(port)
            network.connect(
                *(cable.a.name, cable.a_port, cable.b.name, cable.b_port),
                *(link.rate_bps, link.delay_ns),
            )
        routes = routes or routes_of(fabric)
        for node in fabric.switches:
            network.switches[node.name].tell(switch_plan(fabric, node, routes[node], settings))
        return bed

    def switch(self, name: str) -> Switch:
        return self.network.switches[name]

    def host(self, name: str) -> Host:
        return self.network.hosts[name]

    def node(self, name: str) -> Node:
        return self.fabric.node(name)

    def frame(self, src: str, dst: str, **fields: int) -> bytes:
        """A frame from one host to another, as the host would send it."""
        a, b = self.node(src), self.node(dst)
        make = ipv4_frame if self.fabric.ip == 4 else ipv6_frame
        return make(
            str(self.fabric.address(a)),
            str(self.fabric.address(b)),
            src_mac=self.fabric.mac(a),
            dst_mac=self.fabric.next_mac(a, b),
            **{"size": 1000, **fields},
        )

    def send(self, src: str, dst: str, count: int, **fields: int) -> None:
        """Let a host send frames, numbered from 0, as fast as it may."""
        host = self.host(src)
        host.queue += [self.frame(src, dst, mark=n, **fields) for n in range(count)]
        self.network.start(host)

    def check_accounts(self) -> None:
        """Nothing unaccounted for, anywhere; with nothing held the buffers are empty."""
        for switch in self.network.switches.values():
            assert switch.balance() == 0, switch.name
            if not switch.plane.stats().held:
                assert not any(switch.used().values()), (switch.name, switch.used())

    def drops(self) -> dict[str, int]:
        """Packets dropped in all switches, by reason."""
        sums = Counter[str]()
        for switch in self.network.switches.values():
            for number, count in enumerate(switch.counters("dropped")):
                if count:
                    sums[DROP_REASONS[number]] += count
        return dict(sums)

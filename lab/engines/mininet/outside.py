"""Routers of others in hosts' places, as their leaves see them (topology.outside).

Such a host keeps its cable and its address, and beside all else runs a daemon (`routers.py`) that
speaks BGP with its leaf and tells it what is behind it: prefixes, whose first addresses it has
itself, so that who is pinged there answers. Sessions go from address to address, the leaf being the
host's gateway, and carry IPv6 too where any is behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from controller import NextHop
from lab.scenario.topology import OutsideRouter
from params.data import Data
from topologies import Fabric, Network, Node
from topologies.ip import run_ip
from topologies.offload import network_of

HOPS = 2  # a leaf's room is one further than its port
ALIVE_S, HOLD_S = 3, 9
_FIRST_AS = 65_001  # of those for private use
_MAX_PREFIXES = 200  # that a router may tell
_MAP, _GATEWAY, _OWN = "outside", "gateway", "fabric"  # two route maps, and a list of prefixes

Address = IPv4Address | IPv6Address


def answers_at(prefix: Network) -> Address:
    """The address of a prefix that its router has itself."""
    return prefix.network_address + (1 if prefix.num_addresses > 2 else 0)


class Neighbour(Data):
    """A router, and the leaf that it speaks with."""

    fabric: Fabric
    settings: OutsideRouter
    place: int  # among all of them

    @cached_property
    def host(self) -> Node:
        """In whose place it is."""
        return self.fabric.node(self.settings.host)

    @cached_property
    def leaf(self) -> Node:
        """With whom it speaks."""
        return self.fabric.leaf_of(self.host)

    @property
    def number(self) -> int:
        """Its autonomous system."""
        return _FIRST_AS + self.place

    @property
    def device(self) -> str:
        """The host's interface."""
        return self.host.interface(0)

    @property
    def hop(self) -> NextHop:
        """By which its leaf sends to it."""
        return NextHop(self.fabric.port_towards(self.leaf, self.host), self.fabric.mac(self.host))

    @cached_property
    def cable(self) -> tuple[tuple[Address, Address], ...]:
        """Its own address and its leaf's: IPv4, and IPv6 if any of that is behind it."""
        spoken = (self.fabric, *([self.fabric.speaking(6)] if self.has(6) else ()))
        return tuple((each.address(self.host), each.gateway(self.leaf)) for each in spoken)

    def has(self, version: int) -> bool:
        """Whether any of IPv4, or IPv6, is behind it."""
        return any(prefix.version == version for prefix in self.settings.networks)

    # --- its leaf's end ---------------------------------------------------------------------------

    def session(self) -> Iterator[str]:
        """What its leaf's bgpd is told of it."""
        (address, _), *_ = self.cable
        yield f" neighbor {address} remote-as {self.number}"
        yield f" neighbor {address} ebgp-multihop {HOPS}"
        yield f" neighbor {address} timers {ALIVE_S} {HOLD_S}"
        yield f" neighbor {address} passive"  # connections that meet may end both (frr.py)

    def carried(self, version: int) -> Iterator[str]:
        """What it is told of IPv4, or IPv6, in the session."""
        (address, _), *_ = self.cable
        if version == 4 or self.has(6):
            yield f"  neighbor {address} activate"
            yield f"  neighbor {address} route-map {_MAP} in"
            yield f"  neighbor {address} maximum-prefix {_MAX_PREFIXES}"
        if version == 6 and self.has(6):  # else a map of IPv4: the gateway is at all ports
            yield f"  neighbor {address} route-map {_GATEWAY} out"

    def leaf_furniture(self) -> Iterator[str]:
        """What the leaf's room has at this port beside what it has at every host's."""
        name, mac = self.leaf.interface(self.hop.port), self.hop.mac
        for address, gateway in self.cable[1:]:
            yield f"ip link set {name} addrgenmode none"
            yield f"echo 0 > /proc/sys/net/ipv6/conf/{name}/disable_ipv6"
            yield f"ip -6 address add {gateway}/128 dev {name} nodad"
            yield f"ip -6 neighbour add {address} lladdr {mac} dev {name}"
            yield f"ip -6 route add {address} dev {name}"

    # --- its own ----------------------------------------------------------------------------------

    def furnish(self, pid: int) -> None:
        """Give the host, whose namespace a process holds, what is behind it."""
        with network_of(pid):
            if self.has(6):
                run_ip([f"link set {self.device} addrgenmode none"])
                for name in (self.device, "lo"):
                    for key in ("accept_ra", "disable_ipv6"):
                        Path(f"/proc/sys/net/ipv6/conf/{name}/{key}").write_text("0")
            run_ip(self._furniture())

    def _furniture(self) -> Iterator[str]:
        for address, gateway in self.cable:
            to_leaf = f"dev {self.device}"
            if address.version == 6:
                yield f"address replace {address}/128 {to_leaf} nodad"
            yield (
                f"neighbour replace {gateway} "
                f"lladdr {self.fabric.mac(self.leaf)} {to_leaf} nud permanent"
            )
            yield f"route replace {gateway} {to_leaf}"
            if address.version == 6 and not self.settings.speaks.writes_kernel:
                yield f"route replace default via {gateway} {to_leaf}"
        for prefix in self.settings.networks:
            address = answers_at(prefix)
            yield f"address replace {address}/{address.max_prefixlen} dev lo"


def maps(fabric: Fabric, leaf: Node) -> list[str]:
    """What a leaf takes from such routers, anything but what is the fabric's own; and by which
    address it says that IPv6 is sent through it."""
    gateway = fabric.speaking(6).gateway(leaf)
    lines = [f"route-map {_GATEWAY} permit 10", f" set ipv6 next-hop global {gateway}"]
    for place, (ip, each) in enumerate((("ip", fabric), ("ipv6", fabric.speaking(6))), 1):
        own = (each.prefix(leaf) for leaf in each.switches if each.hosts_of(leaf))
        lines += [f"{ip} prefix-list {_OWN} permit {p} le {p.max_prefixlen}" for p in own]
        lines += [f"route-map {_MAP} deny {place}", f" match {ip} address prefix-list {_OWN}"]
    return [*lines, f"route-map {_MAP} permit 10"]


def behind(neighbours: Iterable[Neighbour]) -> dict[Network, dict[Node, tuple[NextHop, ...]]]:
    """By prefix: the leaves behind which it is, and how these send there."""
    found: dict[Network, dict[Node, tuple[NextHop, ...]]] = {}
    for each in neighbours:
        for prefix in each.settings.networks:
            ways = found.setdefault(prefix, {})
            ways[each.leaf] = (*ways.get(each.leaf, ()), each.hop)
    return found

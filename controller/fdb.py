"""What EVPN found of a tenant, as the kernel beside a switch is told: who is behind which leaf.

A tenant has a network namespace there, with a bridge for its routed network, and one for its
bridged network if that leads to other leaves; behind each is a vxlan device. zebra writes there
what EVPN tells, and whoever listens to rtnetlink hears of it:

    a neighbour of the bridged          a host's MAC and its leaf (type 2); a MAC of zeros: that
    network's device                    leaf takes part (type 3)
    a route of BGP's by the routed      addresses and their leaf (type 5, or 2 with an address)
    network's bridge
    a neighbour at that bridge          the MAC of such a leaf

A leaf's MAC is kept once it was told, until another is: it counts only where routes lead there.
zebra (8.4, say) takes it back, and never tells it again, when bgpd withdraws a route of two ways
and tells it anew at once, as it does when a cable goes: the route stays, and its neighbour goes.
"""

from __future__ import annotations

from dataclasses import field
from ipaddress import IPv4Address, IPv4Network

from controller.fpm import BgpRoute
from controller.kernel import BRIDGED, ROUTED, Events, Neighbour, found_of
from controller.tenants import BRIDGED_VNI, ROUTED_VNI, FarMac, FarMember, FarPrefix
from params.data import Data

_NOBODY = bytes(6)


class Fdb(Data, frozen=False):
    """Of one tenant at one switch."""

    tenant: int
    routed: int  # the number of the bridge,
    bridged: int = 0  # and of the vxlan device, if there is one

    _hosts: dict[bytes, IPv4Address] = field(default_factory=dict)
    _members: set[IPv4Address] = field(default_factory=set)
    _prefixes: dict[IPv4Network, IPv4Address] = field(default_factory=dict)
    _leaves: dict[IPv4Address, bytes] = field(default_factory=dict)

    def hear(self, events: Events) -> bool:
        """Take in what the kernel tells; whether that was anything new."""
        before = self._all()
        self._take_all(events)
        return before != self._all()

    def learn_anew(self, everything: Events) -> bool:
        """Know what the kernel says there is, and nothing else; whether that is anything new."""
        before = self._all()
        for known in (self._hosts, self._members, self._prefixes):
            known.clear()
        self._take_all(everything)
        return before != self._all()

    def _all(self) -> tuple[object, ...]:
        known = self._hosts, self._members, self._prefixes, self._leaves
        return tuple(each.copy() for each in known)

    def _take_all(self, events: Events) -> None:
        for found in found_of(events):
            match found:
                case Neighbour():
                    self._take_neighbour(found)
                case BgpRoute():
                    self._take_route(found)

    def _take_neighbour(self, found: Neighbour) -> None:
        if len(found.address) != 4:
            return
        leaf, mac = IPv4Address(found.address), found.mac
        if (found.family, found.device) == (ROUTED, self.routed):
            if found.is_there and mac:
                self._leaves[leaf] = mac
        elif (found.family, found.device) == (BRIDGED, self.bridged) and mac:
            if mac == _NOBODY:
                (self._members.add if found.is_there else self._members.discard)(leaf)
            elif found.is_there:  # a host has one place: where it was before, nothing is said of
                self._hosts[mac] = leaf
            elif self._hosts.get(mac) == leaf:
                del self._hosts[mac]

    def _take_route(self, route: BgpRoute) -> None:
        if not isinstance(route.prefix, IPv4Network):
            return  # tenants speak IPv4
        leaves = [
            IPv4Address(way.gateway)
            for way in route.ways
            if way.interface == self.routed and len(way.gateway) == 4
        ]
        if leaves:
            self._prefixes[route.prefix] = leaves[0]
        else:
            self._prefixes.pop(route.prefix, None)

    def prefixes(self) -> tuple[FarPrefix, ...]:
        """Addresses behind other leaves whose MACs are known."""
        return tuple(
            FarPrefix(self.tenant, prefix, leaf, self._leaves[leaf].hex(":"))
            for prefix, leaf in sorted(self._prefixes.items())
            if leaf in self._leaves
        )

    def macs(self) -> tuple[FarMac, ...]:
        """Hosts behind other leaves."""
        return tuple(
            FarMac(self.tenant, mac.hex(":"), leaf) for mac, leaf in sorted(self._hosts.items())
        )

    def members(self) -> tuple[FarMember, ...]:
        """Leaves that take part in a network of the tenant's."""
        routed = {found.vtep for found in self.prefixes()}
        return (
            *(FarMember(ROUTED_VNI + self.tenant, leaf) for leaf in sorted(routed)),
            *(FarMember(BRIDGED_VNI + self.tenant, leaf) for leaf in sorted(self._members)),
        )

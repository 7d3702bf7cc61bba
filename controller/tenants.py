"""Tenants with networks of their own: which there are, and what a leaf is told of them.

A tenant has a routed network (its VRF, VNI 10,000 + its number) and a bridged one. Where each
leaf's hosts are a subnet, the bridged one ends at the leaf; where all of a tenant's hosts are one
subnet, it leads from leaf to leaf (VNI 20,000 + the number), with whatever a host sends to all.

What a leaf knows of itself follows from the fabric (`own_entries`); what it knows of others is
told to it (`Far`): by our controller (`far_of`), which knows everybody, or by EVPN (`fdb.py`).
p4src/vxlan.p4 has both.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, ip_network
from itertools import pairwise

from controller.entities import Entity, default, entry, mac_bits
from params.data import Data
from topologies import Fabric, Network, Node

ROUTED_VNI, BRIDGED_VNI = 10_000, 20_000
HEADERS_BYTES = 50  # of Ethernet, IPv4, UDP and VXLAN around a tenant's frame


def routed_net(tenant: int) -> int:
    """What a switch calls a tenant's routed network."""
    return 2 * tenant


def bridged_net(tenant: int) -> int:
    """And the bridged one."""
    return 2 * tenant + 1


class FarPrefix(Data):
    """Addresses of a tenant at another leaf: EVPN's type 5, or 2 with an address."""

    tenant: int
    prefix: Network
    vtep: IPv4Address
    mac: str  # the leaf's


class FarMac(Data):
    """A host of a tenant at another leaf: EVPN's type 2."""

    tenant: int
    mac: str
    vtep: IPv4Address


class FarMember(Data):
    """Another leaf takes part in a tenant's network: EVPN's type 3, or any of the others."""

    vni: int
    vtep: IPv4Address


class Far(Data):
    """What a leaf knows of others."""

    prefixes: tuple[FarPrefix, ...] = ()
    macs: tuple[FarMac, ...] = ()
    members: tuple[FarMember, ...] = ()


def tenants_at(fabric: Fabric, leaf: Node) -> dict[int, list[Node]]:
    """A leaf's hosts by tenant, of those that have networks of their own."""
    found: dict[int, list[Node]] = {}
    for host in fabric.hosts_of(leaf):
        if host in fabric.tenants:
            found.setdefault(fabric.tenants[host], []).append(host)
    return dict(sorted(found.items()))


def far_leaves(fabric: Fabric, leaf: Node) -> Iterator[Network]:
    """The addresses of leaves that have a tenant in common with this one."""
    here = tenants_at(fabric, leaf)
    for other in fabric.switches if here else ():
        if other != leaf and here.keys() & tenants_at(fabric, other):
            yield ip_network(fabric.loopback(other))


def far_of(fabric: Fabric, leaf: Node) -> Far:
    """All that a leaf has to know of others."""
    prefixes: list[FarPrefix] = []
    macs: list[FarMac] = []
    members: list[FarMember] = []
    here = tenants_at(fabric, leaf)
    for other in fabric.switches if here else ():
        vtep, mac = fabric.loopback(other), fabric.mac(other)
        for tenant, hosts in tenants_at(fabric, other).items() if other != leaf else ():
            if tenant not in here:
                continue
            members.append(FarMember(ROUTED_VNI + tenant, vtep))
            if fabric.is_stretched:
                members.append(FarMember(BRIDGED_VNI + tenant, vtep))
                macs += [FarMac(tenant, fabric.mac(host), vtep) for host in hosts]
                there = [ip_network(fabric.address(host)) for host in hosts]
            else:
                there = [fabric.prefix(other)]
            prefixes += [FarPrefix(tenant, prefix, vtep, mac) for prefix in there]
    return Far(tuple(prefixes), tuple(macs), tuple(members))


OWN_ACTIONS = "to_tunnel_end", "to_tenant_host", "bridge_to_port"  # of tables that have both


def own_entries(fabric: Fabric, leaf: Node) -> Iterator[Entity]:
    """What of tenants is at a leaf itself."""
    here = tenants_at(fabric, leaf)
    if not here:
        return
    own, mac = int(fabric.loopback(leaf)), mac_bits(fabric.mac(leaf))
    yield entry("ipv4_routes", {"hdr.ipv4.dst_addr": (own, 32)}, "to_tunnel_end")
    yield default("own_vtep", "encapsulate", address=own, mac=mac)
    for tenant, hosts in here.items():
        routed, bridged = routed_net(tenant), bridged_net(tenant)
        yield entry(
            "vnis", {"hdr.vxlan.vni": ROUTED_VNI + tenant}, "routed", net=routed, own_mac=mac
        )
        if fabric.is_stretched:
            yield entry("vnis", {"hdr.vxlan.vni": BRIDGED_VNI + tenant}, "bridged", net=bridged)
        for host in hosts:
            port, host_mac = fabric.port_towards(leaf, host), mac_bits(fabric.mac(host))
            yield entry(
                "tenant_ports",
                {"standard_metadata.ingress_port": port},
                "attach",
                routed_net=routed,
                bridged_net=bridged,
                gateway=mac,
                mac=host_mac,
            )
            address = int(fabric.address(host)), 32
            yield entry(
                "tenant_routes",
                {"meta.net": routed, "hdr.ipv4.dst_addr": address},
                "to_tenant_host",
                port=port,
                next_mac=host_mac,
            )
            match = {"meta.net": bridged, "dst_mac": host_mac}
            yield entry("tenant_macs", match, "bridge_to_port", port=port)


def far_entries(fabric: Fabric, leaf: Node, far: Far) -> Iterator[Entity]:
    """What of tenants is elsewhere, and whom a flood goes to."""
    for each in far.prefixes:
        network, length = int(each.prefix.network_address), each.prefix.prefixlen
        yield entry(
            "tenant_routes",
            {"meta.net": routed_net(each.tenant), "hdr.ipv4.dst_addr": (network, length)},
            "to_tenant_leaf",
            vtep=int(each.vtep),
            vni=ROUTED_VNI + each.tenant,
            leaf_mac=mac_bits(each.mac),
        )
    for found in far.macs:
        yield entry(
            "tenant_macs",
            {
                "meta.net": bridged_net(found.tenant),
                "dst_mac": mac_bits(found.mac),
            },
            "bridge_to_leaf",
            vtep=int(found.vtep),
            vni=BRIDGED_VNI + found.tenant,
        )
    for member in far.members:
        match = {"hdr.outer_ipv4.src_addr": int(member.vtep), "hdr.vxlan.vni": member.vni}
        yield entry("vteps", match, "NoAction")
    for tenant, hosts in tenants_at(fabric, leaf).items():
        ports = [{"port": fabric.port_towards(leaf, host)} for host in hosts]
        vni = BRIDGED_VNI + tenant
        leaves = [{"vtep": int(m.vtep), "vni": vni} for m in far.members if m.vni == vni]
        yield from _flood(bridged_net(tenant), ports, is_from_tunnel=True)
        yield from _flood(bridged_net(tenant), [*ports, *leaves], is_from_tunnel=False)


def _flood(net: int, targets: list[dict[str, int]], *, is_from_tunnel: bool) -> Iterator[Entity]:
    """One after the other; the last has none after it."""
    for step, following in pairwise((*range(len(targets)), 0)):
        match = {
            "meta.net": net,
            "meta.is_from_tunnel": int(is_from_tunnel),
            "meta.flood_step": step,
        }
        target = targets[step]
        action = "flood_to_port" if "port" in target else "flood_to_leaf"
        yield entry("floods", match, action, **target, next=following)

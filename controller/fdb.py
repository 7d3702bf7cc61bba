"""What a switch's EVPN found, as the kernel beside it is told: who is behind which other leaf.

zebra writes what EVPN tells of a bridged network into the kernel's forwarding table of its vxlan
device. Whoever listens to rtnetlink hears of it, both kinds in the same words:

    RTM_NEWNEIGH, RTM_DELNEIGH, of AF_BRIDGE, with a MAC (NDA_LLADDR) and a leaf's address (NDA_DST)

A MAC of zeros means all that nobody knows: that leaf takes part (EVPN's type 3). Any other is a
host's (type 2). FPM tells of hosts only, so it is not asked.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from controller.netlink import attributes, messages
from controller.tenants import BRIDGED_VNI, FarMac, FarMember

_NEW, _DELETED = 28, 29
_BRIDGE = 7
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
_ADDRESS, _MAC = 1, 2
_NEWS = 1 << 2  # RTMGRP_NEIGH
_NOBODY = bytes(6)
_ROOM = 1 << 20  # bytes of news that may wait


def listener() -> socket.socket:
    """What the kernel of this network namespace tells from now on."""
    news = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    news.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
    news.bind((0, _NEWS))
    news.setblocking(False)
    return news


@dataclass
class Fdb:
    """Of one switch."""

    tenants: Mapping[int, int]  # by the number of the vxlan device

    _hosts: dict[tuple[int, bytes], IPv4Address] = field(default_factory=dict)
    _leaves: set[tuple[int, IPv4Address]] = field(default_factory=set)

    def hear(self, data: bytes) -> bool:
        """Take in what the kernel tells; whether that was anything new."""
        before = dict(self._hosts), set(self._leaves)
        for kind, body in messages(data):
            if kind in (_NEW, _DELETED) and len(body) >= _NEIGHBOUR.size:
                self._take(body, is_new=kind == _NEW)
        return before != (self._hosts, self._leaves)

    def _take(self, body: bytes, *, is_new: bool) -> None:
        family, device = _NEIGHBOUR.unpack_from(body)[:2]
        said = dict(attributes(body[_NEIGHBOUR.size :]))
        tenant, address, mac = (
            self.tenants.get(device),
            said.get(_ADDRESS, b""),
            said.get(_MAC, b""),
        )
        if family != _BRIDGE or tenant is None or len(address) != 4 or len(mac) != len(_NOBODY):
            return
        leaf = IPv4Address(address)
        if mac == _NOBODY:
            (self._leaves.add if is_new else self._leaves.discard)((tenant, leaf))
        elif is_new:  # a host has one place: where it was before, nothing is said of
            self._hosts[tenant, mac] = leaf
        elif self._hosts.get((tenant, mac)) == leaf:
            del self._hosts[tenant, mac]

    def macs(self) -> tuple[FarMac, ...]:
        """Hosts behind other leaves."""
        return tuple(
            FarMac(tenant, mac.hex(":"), leaf)
            for (tenant, mac), leaf in sorted(self._hosts.items())
        )

    def members(self) -> tuple[FarMember, ...]:
        """Leaves that take part in a bridged network."""
        return tuple(FarMember(BRIDGED_VNI + tenant, leaf) for tenant, leaf in sorted(self._leaves))

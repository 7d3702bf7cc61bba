"""What zebra tells of its routes: the FPM protocol, which carries messages of rtnetlink over TCP.

zebra's module dplane_fpm_nl connects and sends, each message behind a header of version 1, type 1
(netlink) and the length of both. Routes name sets of next hops by number, or carry their own:

    RTM_NEWNEXTHOP  a set: one way out, or the numbers of others
    RTM_DELNEXTHOP  it is no more
    RTM_NEWROUTE    a prefix and its set, in place of what it had
    RTM_DELROUTE    it is withdrawn

Everything else, such as routes of other protocols than BGP, is somebody else's and left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Address, IPv6Network

from controller.netlink import NetlinkError, aligned, attributes, messages
from params.data import Data
from topologies import Network

PORT = 2620
_HEADER = struct.Struct("!BBH")
_VERSION, _NETLINK = 1, 1
_ROUTE = struct.Struct("=8BI")
_NEXT_HOP = struct.Struct("=4BI")
_ONE_OF_MANY = struct.Struct("=HBBi")  # of RTA_MULTIPATH
_MEMBER = struct.Struct("=IBBH")  # of NHA_GROUP
NEW_ROUTE, DEL_ROUTE, _NEW_NEXT_HOP, _DEL_NEXT_HOP = 24, 25, 104, 105
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_MULTIPATH, _RTA_VIA, _RTA_NH_ID = 1, 4, 5, 9, 18, 30
_NHA_ID, _NHA_GROUP, _NHA_OIF, _NHA_GATEWAY = 1, 2, 5, 6
_PREFIXES: dict[int, tuple[type[IPv4Network] | type[IPv6Network], int]] = {
    2: (IPv4Network, 4),
    10: (IPv6Network, 16),
}
"""By family of addresses: what a prefix is, and how many bytes it has."""
_UNICAST = 1
_BGP = 186  # RTPROT_BGP


class FpmError(ValueError):
    """What came is no message of the FPM's; the text says where it went wrong."""


class Way(Data):
    """One way out: an interface's number, and who is asked there."""

    interface: int
    gateway: bytes = b""  # an address, of 4 or 16 bytes; none: whoever is meant is on the link

    @property
    def mac(self) -> str | None:
        """The gateway's MAC, where its address was made of it (EUI-64)."""
        if len(self.gateway) != 16 or not IPv6Address(self.gateway).is_link_local:
            return None
        return mac_of(self.gateway)


def mac_of(address: bytes) -> str | None:
    """The MAC that an IPv6 address ends in, if it does."""
    end = address[8:]
    if end[3:5] != b"\xff\xfe":
        return None
    return (bytes((end[0] ^ 2,)) + end[1:3] + end[5:]).hex(":")


def link_local(mac: str) -> bytes:
    """The address that an interface makes of its MAC."""
    octets = bytes.fromhex(mac.replace(":", ""))
    end = bytes((octets[0] ^ 2,)) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return b"\xfe\x80" + bytes(6) + end


class NextHops(Data):
    """A set of next hops: a way, or the numbers of other sets; neither: it is no more."""

    number: int
    way: Way | None = None
    members: tuple[int, ...] = ()


class BgpRoute(Data):
    """A prefix, and the number of its set or its own ways; neither: it is withdrawn."""

    prefix: Network
    number: int | None = None
    ways: tuple[Way, ...] = ()


Message = NextHops | BgpRoute


class Reader:
    """Takes what comes, in pieces of any size, apart."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """What was told by now and not before."""
        self._rest += data
        while len(self._rest) >= _HEADER.size:
            version, kind, length = _HEADER.unpack_from(self._rest)
            if version != _VERSION or length < _HEADER.size:
                raise FpmError(f"a header of version {version} and {length} bytes is none of FPM's")
            if len(self._rest) < length:
                return
            body, self._rest = self._rest[_HEADER.size : length], self._rest[length:]
            if kind == _NETLINK:
                try:
                    yield from _messages(body)
                except NetlinkError as error:
                    raise FpmError(str(error)) from None


def _messages(data: bytes) -> Iterator[Message]:
    for kind, body in messages(data):
        message: Message | None = None
        if kind in (NEW_ROUTE, DEL_ROUTE):
            message = route_of(body, is_new=kind == NEW_ROUTE)
        elif kind in (_NEW_NEXT_HOP, _DEL_NEXT_HOP):
            message = _next_hops(body, is_new=kind == _NEW_NEXT_HOP)
        if message is not None:
            yield message


def route_of(body: bytes, *, is_new: bool) -> BgpRoute | None:
    """A route of BGP's, if it is one; the kernel tells its ways beside their number."""
    if len(body) < _ROUTE.size:
        raise FpmError(f"a route of {len(body)} bytes")
    family, length, _, _, _, protocol, _, kind, _ = _ROUTE.unpack_from(body)
    # zebra withdraws routes without saying whose they were.
    if family not in _PREFIXES or (is_new and (protocol, kind) != (_BGP, _UNICAST)):
        return None
    made, size = _PREFIXES[family]
    if length > 8 * size:
        return None
    found = dict(attributes(body[_ROUTE.size :]))
    address = found.get(_RTA_DST, b"").ljust(size, b"\0")
    prefix = made((int.from_bytes(address[:size], "big"), length), strict=False)
    if not is_new:
        return BgpRoute(prefix)
    ways = tuple(_many(found.get(_RTA_MULTIPATH, b"")))
    way = _way(found, _number(found.get(_RTA_OIF, b"")))
    if way.interface and not ways:
        ways = (way,)
    return BgpRoute(prefix, _number(found[_RTA_NH_ID]) if _RTA_NH_ID in found else None, ways)


def _many(data: bytes) -> Iterator[Way]:
    while len(data) >= _ONE_OF_MANY.size:
        length, _, _, interface = _ONE_OF_MANY.unpack_from(data)
        if not _ONE_OF_MANY.size <= length <= len(data):
            raise FpmError(f"a next hop of {length} bytes where {len(data)} are left")
        yield _way(dict(attributes(data[_ONE_OF_MANY.size : length])), interface)
        data = data[aligned(length) :]


def _way(nested: dict[int, bytes], interface: int) -> Way:
    via = nested.get(_RTA_VIA, b"")  # a family in two bytes, and the address
    return Way(interface, nested.get(_RTA_GATEWAY) or via[2:])


def _next_hops(body: bytes, *, is_new: bool) -> NextHops | None:
    if len(body) < _NEXT_HOP.size:
        raise FpmError(f"a next hop of {len(body)} bytes")
    found = dict(attributes(body[_NEXT_HOP.size :]))
    number = _number(found.get(_NHA_ID, b""))
    if not is_new:
        return NextHops(number)
    if _NHA_GROUP in found:
        group = found[_NHA_GROUP]
        whole = len(group) // _MEMBER.size * _MEMBER.size
        return NextHops(number, members=tuple(m[0] for m in _MEMBER.iter_unpack(group[:whole])))
    interface = _number(found.get(_NHA_OIF, b""))
    return NextHops(number, Way(interface, found.get(_NHA_GATEWAY, b""))) if interface else None


def _number(data: bytes) -> int:
    return int.from_bytes(data[:4], "little" if _IS_LITTLE else "big")


_IS_LITTLE = struct.pack("=H", 1) == b"\x01\0"

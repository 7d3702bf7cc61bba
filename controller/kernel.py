"""What the kernel knows of a network namespace: as news, and all at once.

News that find no room are lost, which is told (ENOBUFS); then one asks for everything there is.
What is asked goes by a socket of its own: news that come meanwhile wait, and have the last word.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from controller.fpm import DEL_ROUTE, NEW_ROUTE, BgpRoute, FpmError, route_of
from controller.netlink import NetlinkError, attributes, messages
from params.data import Data

BRIDGED, ROUTED = 7, 2  # families: of MACs behind bridges, and of IPv4
NEW_NEIGHBOUR, DEL_NEIGHBOUR = 28, 29
IN_PLACE_OF_IPV6 = bytes((169, 254, 0, 1))  # zebra tells the kernel so of neighbours without IPv4
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
_ADDRESS, _MAC = 1, 2
_NEW_LINK = 16
_LINK = struct.Struct("=BxHiII")
_NAME = 3
_LOWER_UP, _UP = 1 << 16, 1
_ERROR, _DONE = 2, 3
_DUMP, _INTERRUPTED = 0x301, 0x10  # NLM_F_REQUEST and NLM_F_DUMP; NLM_F_DUMP_INTR
_FLAGS = struct.Struct("=6xH")
_REQUEST = struct.Struct("=IHHIIB")
_ROOM = 1 << 20  # bytes of news that may wait
_PIECE = 1 << 16
_HEADER = 16
_ANSWER_S = 5.0

Event = tuple[int, bytes]  # a message's type and body
Events = Iterable[Event]
T = TypeVar("T")


class Neighbour(Data):
    """Somebody behind a device."""

    family: int
    device: int
    address: bytes
    mac: bytes  # none: not known
    is_there: bool  # or was


def found_of(events: Events) -> Iterator[Neighbour | BgpRoute]:
    """What messages tell of neighbours and of BGP's routes; one without ways is withdrawn."""
    for kind, body in events:
        if kind in (NEW_NEIGHBOUR, DEL_NEIGHBOUR) and len(body) >= _NEIGHBOUR.size:
            yield _neighbour(body, is_there=kind == NEW_NEIGHBOUR)
        elif kind in (NEW_ROUTE, DEL_ROUTE):
            try:
                route = route_of(body, is_new=kind == NEW_ROUTE)
            except FpmError as error:
                raise NetlinkError(str(error)) from None
            if route is not None:
                yield route


def _neighbour(body: bytes, *, is_there: bool) -> Neighbour:
    family, device = _NEIGHBOUR.unpack_from(body)[:2]
    said = dict(attributes(body[_NEIGHBOUR.size :]))
    mac = said.get(_MAC, b"")
    address = said.get(_ADDRESS, b"")
    return Neighbour(family, device, address, mac if len(mac) == 6 else b"", is_there)


def carriers_of(events: Events) -> Iterator[tuple[str, bool]]:
    """The interfaces that messages are about, and whether they are up and have a carrier."""
    for kind, body in events:
        if kind == _NEW_LINK and len(body) >= _LINK.size:
            flags = _LINK.unpack_from(body)[3]
            for what, content in attributes(body[_LINK.size :]):
                if what == _NAME:
                    name = content.rstrip(b"\0").decode(errors="replace")
                    yield name, bool(flags & _LOWER_UP and flags & _UP)


class Subject(Data):
    """What one wants to know."""

    groups: int  # of rtnetlink, whose news tell of it
    asked: tuple[tuple[int, int, int], ...]  # requests for all: type, family, bytes of the body


CARRIERS = Subject(1 << 0, ((18, 0, 16),))  # RTMGRP_LINK; RTM_GETLINK
NEIGHBOURS_AND_ROUTES = Subject(
    1 << 2 | 1 << 6,  # RTMGRP_NEIGH, RTMGRP_IPV4_ROUTE
    ((30, BRIDGED, 12), (30, ROUTED, 12), (26, ROUTED, 12)),  # RTM_GETNEIGH, RTM_GETROUTE
)


class View:
    """Of one namespace: the one that it is made in."""

    def __init__(self, subject: Subject = NEIGHBOURS_AND_ROUTES) -> None:
        self._asked = subject.asked
        self.news = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.news.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        self.news.bind((0, subject.groups))
        self.news.setblocking(False)
        self._asks = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._asks.bind((0, 0))
        self._asks.settimeout(_ANSWER_S)

    def tell(self, hear: Callable[[Events], T], anew: Callable[[Events], T]) -> T:
        """Hand on what is new; or, if some of that was lost, all there is, to be learned anew."""
        news = self.hear()
        return anew(self.everything()) if news is None else hear(messages(news))

    def hear(self) -> bytes | None:
        """What is new; None: some of it was lost."""
        try:
            return self.news.recv(_PIECE)
        except BlockingIOError:
            return b""
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            return None

    def everything(self) -> list[Event]:
        """All there is, as the messages that would tell of it as news; those that wait are old."""
        while self.hear() != b"":
            pass
        return [message for each in self._asked for message in self._asked_for(*each)]

    def _asked_for(self, kind: int, family: int, body: int) -> list[Event]:
        length = _HEADER + body
        request = _REQUEST.pack(length, kind, _DUMP, 0, 0, family).ljust(length, b"\0")
        while True:
            self._asks.send(request)
            found, is_whole = self._answer()
            if is_whole:
                return found

    def _answer(self) -> tuple[list[Event], bool]:
        """All of it, and whether nothing changed while it was told."""
        found: list[Event] = []
        is_whole = True
        while True:
            data = self._asks.recv(_PIECE)
            is_whole &= not _FLAGS.unpack_from(data)[0] & _INTERRUPTED
            for kind, body in messages(data):
                if kind == _DONE:
                    return found, is_whole
                if kind == _ERROR:
                    raise NetlinkError("the kernel does not tell what it knows")
                found.append((kind, body))

    def close(self) -> None:
        """Look no more."""
        self.news.close()
        self._asks.close()

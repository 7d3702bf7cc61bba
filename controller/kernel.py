"""What the kernel knows of a network namespace's routes and neighbours: as news, and all at once.

News that find no room are lost, which is told (ENOBUFS); then one asks for everything there is.
What is asked goes by a socket of its own: news that come meanwhile wait, and have the last word.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from controller.netlink import NetlinkError, attributes, messages

BRIDGED, ROUTED = 7, 2  # families: of MACs behind bridges, and of IPv4
NEW_NEIGHBOUR, DEL_NEIGHBOUR = 28, 29
IN_PLACE_OF_IPV6 = bytes((169, 254, 0, 1))  # zebra tells the kernel so of neighbours without IPv4
_NEIGHBOUR = struct.Struct("=BxxxiHBB")
_ADDRESS, _MAC = 1, 2
_NEIGHBOURS, _ROUTES = 1 << 2, 1 << 6  # RTMGRP_NEIGH, RTMGRP_IPV4_ROUTE
_GET_NEIGHBOURS = 30
_ALL_ROUTES = 26, ROUTED
_ERROR, _DONE = 2, 3
_DUMP, _INTERRUPTED = 0x301, 0x10  # NLM_F_REQUEST and NLM_F_DUMP; NLM_F_DUMP_INTR
_FLAGS = struct.Struct("=6xH")
_REQUEST = struct.Struct("=IHHIIB11x")
_ROOM = 1 << 20  # bytes of news that may wait
_PIECE = 1 << 16
_ANSWER_S = 5.0


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Somebody behind a device."""

    family: int
    device: int
    address: bytes
    mac: bytes  # none: not known


def neighbour_of(body: bytes) -> Neighbour | None:
    """What a message tells of one, if it is whole."""
    if len(body) < _NEIGHBOUR.size:
        return None
    family, device = _NEIGHBOUR.unpack_from(body)[:2]
    said = dict(attributes(body[_NEIGHBOUR.size :]))
    mac = said.get(_MAC, b"")
    return Neighbour(family, device, said.get(_ADDRESS, b""), mac if len(mac) == 6 else b"")


class View:
    """One namespace: the one that it is made in."""

    def __init__(self) -> None:
        self.news = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.news.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        self.news.bind((0, _NEIGHBOURS | _ROUTES))
        self.news.setblocking(False)
        self._asks = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._asks.bind((0, 0))
        self._asks.settimeout(_ANSWER_S)

    def hear(self) -> bytes | None:
        """What is new; None: some of it was lost."""
        try:
            return self.news.recv(_PIECE)
        except BlockingIOError:
            return b""
        except OSError:  # ENOBUFS
            return None

    def everything(self) -> list[tuple[int, bytes]]:
        """All there is, as the messages that would tell of it as news; those that wait are old."""
        while self.hear() != b"":
            pass
        return [
            message
            for kind, family in ((_GET_NEIGHBOURS, BRIDGED), (_GET_NEIGHBOURS, ROUTED), _ALL_ROUTES)
            for message in self._asked_for(kind, family)
        ]

    def _asked_for(self, kind: int, family: int) -> list[tuple[int, bytes]]:
        while True:
            self._asks.send(_REQUEST.pack(_REQUEST.size, kind, _DUMP, 0, 0, family))
            found, is_whole = self._answer()
            if is_whole:
                return found

    def _answer(self) -> tuple[list[tuple[int, bytes]], bool]:
        """All of it, and whether nothing changed while it was told."""
        found: list[tuple[int, bytes]] = []
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

"""Where the ends of an emulated cable tell each other when its frames are due.

A frame is handed over as soon as it leaves, and lies at the other end until its last bit has
arrived: so a process that gets its turn late delays nothing, by as much as a frame takes to cross a
link. When that is, is told beside the cable, in memory that all processes share
(`switch/rt/dues.h`), for frames on the interfaces are to be what they are on a wire.
"""

from __future__ import annotations

import os
from typing import Self

from topologies import Fabric, Node

_BYTES = 16_384  # struct dues, as its header asserts


class Dues:
    """The shared memory of a fabric, a piece for each direction of each link."""

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        ends = [
            end for link in fabric.links for end in ((link.a, link.a_port), (link.b, link.b_port))
        ]
        self._places = {end: number * _BYTES for number, end in enumerate(ends)}
        self.file = os.memfd_create("dues")
        os.truncate(self.file, len(ends) * _BYTES)

    def of(self, node: Node, port: int) -> tuple[int, int]:
        """Where a port reads what is due, and where it notes it."""
        link, there = self._fabric.link_at(node, port), self._fabric.ports(node)[port]
        return self._places[node, port], self._places[there, link.port_of(there)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Those who were told of it keep it."""
        os.close(self.file)

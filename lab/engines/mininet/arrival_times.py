"""Where the ends of an emulated cable tell each other when its frames are due.

A frame is handed over as soon as it leaves, and lies at the other end until its last bit has
arrived: so a process that gets its turn late delays nothing, by as much as a frame takes to cross a
link. When that is, is told beside the cable, in memory that all processes share
(`switch/rt/arrival_times.h`), for frames on the interfaces are to be what they are on a wire.
"""

from __future__ import annotations

import errno
import fcntl
import os
from typing import Self

from lab.errors import RunError
from switch.layout import ARRIVAL_BYTES
from topologies import Fabric, Node

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_NO_ROOM = errno.ENOMEM, errno.ENOSPC, errno.EFBIG


class ArrivalTimes:
    """The shared memory of a fabric (or part), a piece for each direction of each link.

    Nobody else has a name for it, and it goes with the last that was told of it. All of it is asked
    of the kernel at once, and can become no other size: what is mapped is there.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        ends = [
            end for link in fabric.links for end in ((link.a, link.a_port), (link.b, link.b_port))
        ]
        self._places = {end: number * ARRIVAL_BYTES for number, end in enumerate(ends)}
        # Of several machines one may have a switch alone, all of whose cables leave it.
        self.file = _file_of(max(1, len(ends)) * ARRIVAL_BYTES)

    def of(self, node: Node, port: int) -> tuple[int, int]:
        """Where a port reads what is due, and where it notes it."""
        link, there = self._fabric.link_at(node, port), self._fabric.ports(node)[port]
        return self._places[node, port], self._places[there, link.port_of(there)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Those who were told of it keep it."""
        os.close(self.file)


def _file_of(size: int) -> int:
    """A file in memory of so many bytes, or what to do about it that there is none."""
    file = -1
    try:
        file = os.memfd_create("arrival_times", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.posix_fallocate(file, 0, size)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
    except OSError as error:
        if file >= 0:
            os.close(file)
        cure = "--engine sim needs none."
        if error.errno in _NO_ROOM:
            cure = f"Let other programs end, choose a smaller fabric, or: {cure}"
        raise RunError(
            f"of shared memory {size / 1e6:,.1f} MB are needed, in which the ends of cables tell "
            f"each other when frames are due: {error.strerror}",
            cure,
        ) from None
    return file

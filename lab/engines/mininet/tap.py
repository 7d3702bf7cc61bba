"""``closlab pcap``: what crosses a link, both ways, into a capture file with nanoseconds.

Run inside the sandbox as ``python -m lab.engines.mininet.tap INTERFACE FILE PACKETS``; FILE may be
``-``, PACKETS 0 for all until Ctrl-C.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time
from pathlib import Path
from typing import BinaryIO

from lab.machine.paths import CONGA_DISSECTOR
from switch.capture import Capture

_ALL_PROTOCOLS = 3
_CONGA = b"\x88\xb5"  # what follows Ethernet between leaves under lb.policy=conga
_LONGEST = 65535
_SOL_PACKET, _ADD_MEMBERSHIP, _PROMISCUOUS = 263, 1, 1

# A user by name only: it reads the same files as before.
NOT_ROOT = ("unshare", "--user", "--map-user=1000")


def conga_hint(capture: str) -> str:
    """How to look at a capture between switches under conga."""
    return (
        "Under conga, frames between switches have a header of its own after Ethernet's. To see "
        f"what is in them:\n  tshark -X lua_script:{CONGA_DISSECTOR} -r {capture}\n"
        f"Root, for whom newer ones run no scripts, puts before it:  {' '.join(NOT_ROOT)}"
    )


def record(interface: str, file: BinaryIO, most: int) -> tuple[int, bool]:
    """Write frames as they cross, until there are so many or the user interrupts.

    Returns how many there were, and whether any has CONGA's header.
    """
    count, has_conga = 0, False
    with (
        Capture(file.fileno()) as capture,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS)) as tap,
    ):
        tap.bind((interface, 0))
        # Of this the kernel tells switches, whose frames go by memory while nobody looks.
        wish = struct.pack("iHH8x", socket.if_nametoindex(interface), _PROMISCUOUS, 0)
        tap.setsockopt(_SOL_PACKET, _ADD_MEMBERSHIP, wish)
        try:
            while not most or count < most:
                frame = tap.recv(_LONGEST)
                capture.write(frame, time.time_ns())
                count += 1
                has_conga = has_conga or frame[12:14] == _CONGA
        except KeyboardInterrupt:
            pass
    return count, has_conga


def main(interface: str, path: str, most: str) -> int:
    """Record into a file or to standard output."""
    try:
        if path == "-":
            count, has_conga = record(interface, sys.stdout.buffer, int(most))
        else:
            print(f"Recording {interface} into {path}; Ctrl-C ends it.", file=sys.stderr)
            with Path(path).open("wb") as file:
                count, has_conga = record(interface, file, int(most))
    except BrokenPipeError:  # who read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        print(f"closlab: {path} cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    print(f"{count:,} frames", file=sys.stderr)
    if has_conga:
        print(conga_hint(path), file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Interfaces made and set by iproute2, many in one call."""

from __future__ import annotations

import fcntl
import signal
import socket
import struct
import subprocess
from collections.abc import Iterable

from topologies.fabric import TopologyError

_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP
_REQUEST = struct.Struct("16sH22x")


def turn(interface: str, *, is_up: bool) -> None:
    """Have an interface up, or down, at once: without a process that would do it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        asked = _REQUEST.pack(interface.encode(), 0)
        name, flags = _REQUEST.unpack(fcntl.ioctl(control, _GET_FLAGS, asked))
        flags = flags | _UP if is_up else flags & ~_UP
        fcntl.ioctl(control, _SET_FLAGS, _REQUEST.pack(name, flags))


def run_ip(commands: Iterable[str], within: int | None = None) -> None:
    """Carry out commands of ``ip``, such as ``link set leaf1-eth1 up``, in their order.

    They are carried out here, or ``within`` a network of which a descriptor is open.
    """
    enter = () if within is None else ("nsenter", f"--net=/proc/self/fd/{within}")
    done = subprocess.run(
        [*enter, "ip", "-batch", "-"],
        input="\n".join(commands),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        pass_fds=() if within is None else (within,),
    )
    if done.returncode < 0:
        raise TopologyError(f"ip was killed ({signal.Signals(-done.returncode).name})")
    if done.returncode:
        raise TopologyError(f"ip ended with {done.returncode}: {' '.join(done.stderr.split())}")


def add_veths(pairs: Iterable[tuple[str, str]], mtu: int | None = None) -> None:
    """Connect interfaces in pairs, beside those of a fabric, up and ready to carry frames."""
    size = f"mtu {mtu} " if mtu else ""
    run_ip(
        command
        for a, b in pairs
        for command in (
            f"link add {a} {size}type veth peer name {b} {size}",
            f"link set {a} up",
            f"link set {b} up",
        )
    )

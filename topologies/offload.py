"""Offloads of virtual cables.

A veth claims that hardware will fill in checksums, and so hands over frames without them. A
software switch has no such hardware: it must be told not to claim it. Likewise with segments that
hardware would cut into frames, or has made of several: who receives must expect 64 KB at once.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SIOCETHTOOL = 0x8946
_ETHTOOL_SET_TX_CHECKSUM = 0x17
_ETHTOOL_SET_SEGMENTATION = 0x1F
_ETHTOOL_SET_GENERIC_SEGMENTATION = 0x24
_ETHTOOL_SET_GENERIC_RECEPTION = 0x2C
_CLONE_NEWNET = 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


def switch_off_checksum_offload(interface: str, pid: int | None = None) -> None:
    """Have checksums and segments made in software, in a process's namespace if one is given."""
    if pid is None:
        _set(interface, (_ETHTOOL_SET_SEGMENTATION, _ETHTOOL_SET_TX_CHECKSUM))
        return
    with network_of(pid):
        _set(interface, (_ETHTOOL_SET_SEGMENTATION, _ETHTOOL_SET_TX_CHECKSUM))


def switch_off_segmentation(interface: str) -> None:
    """Have an interface receive frames, and nothing larger."""
    commands = (
        _ETHTOOL_SET_SEGMENTATION,
        _ETHTOOL_SET_GENERIC_SEGMENTATION,
        _ETHTOOL_SET_GENERIC_RECEPTION,
    )
    _set(interface, commands)


def _set(interface: str, commands: tuple[int, ...]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in commands:
            value = ctypes.create_string_buffer(struct.pack("=II", command, 0), 8)
            request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(control, _SIOCETHTOOL, request)


@contextmanager
def network_of(place: int | Path) -> Iterator[None]:
    """Let the calling thread work for a while in a process's network namespace, or a file's."""
    file = place if isinstance(place, Path) else Path(f"/proc/{place}/ns/net")
    with Path("/proc/thread-self/ns/net").open("rb") as home, file.open("rb") as away:
        _enter(away.fileno())
        try:
            yield
        finally:
            _enter(home.fileno())


def _enter(namespace: int) -> None:
    if _libc.setns(namespace, _CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot enter a network namespace: {os.strerror(error)}")

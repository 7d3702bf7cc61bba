"""What a command and all that it started listens at, in whichever network namespace."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_LISTENS = {"tcp": "0A", "udp": "07"}  # TCP_LISTEN; TCP_CLOSE, which UDP is that takes from anybody


class Listener(NamedTuple):
    """A socket of a process that takes what comes."""

    is_inside: bool  # in a network namespace other than ours
    protocol: str
    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int
    command: str

    @property
    def is_local(self) -> bool:
        """Whether nobody but this machine, or what is in the namespace, comes to it."""
        mapped = getattr(self.address, "ipv4_mapped", None)
        return (mapped or self.address).is_loopback


def listeners(pid: int) -> set[Listener]:
    """Of a process, and of all that descend from it."""
    return {each for one in _tree(pid) for each in _of(one)}


def _tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with suppress(OSError):
            for task in Path(f"/proc/{one}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def _of(pid: int) -> Iterator[Listener]:
    place = Path("/proc", str(pid))
    with suppress(OSError):
        links = [str(each.readlink()) for each in (place / "fd").iterdir()]
        inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
        is_inside = (place / "ns/net").readlink() != Path("/proc/self/ns/net").readlink()
        command = (place / "cmdline").read_text().replace("\0", " ").strip()
        for table in ("tcp", "tcp6", "udp", "udp6"):
            for line in (place / "net" / table).read_text().splitlines()[1:]:
                _, local, _, state, *_, inode = re.split(r"\s+", line.strip())[:10]
                if inode in inodes and state == _LISTENS[table[:3]]:
                    address, _, port = local.partition(":")
                    yield Listener(is_inside, table, _address(address), int(port, 16), command)


def _address(hexadecimal: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """As the kernel prints it: words of this machine's order."""
    words = [bytes.fromhex(hexadecimal[at : at + 8])[::-1] for at in range(0, len(hexadecimal), 8)]
    return ipaddress.ip_address(b"".join(words))

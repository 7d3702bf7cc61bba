"""Veths for tests, in namespaces of their own, on which nobody speaks but the test.

Left to itself the kernel says much on a new interface: does someone have this address, is there a
router, I listen to these groups. A test that waits for the next frame would take that for it.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

MTU = 9216


def run(words: str) -> None:
    """Run one command."""
    subprocess.run(words.split(), check=True, capture_output=True)


def veth(left: str, right: str) -> None:
    """Make one, both ends up."""
    run(f"ip link add {left} mtu {MTU} type veth peer name {right} mtu {MTU}")
    for end in (left, right):
        bring_up(end)


def bring_up(interface: str) -> None:
    """Let an interface of this namespace carry frames, and none of the kernel's."""
    with suppress(FileNotFoundError):  # a kernel without IPv6
        Path(f"/proc/sys/net/ipv6/conf/{interface}/disable_ipv6").write_text("1")
    run(f"ip link set {interface} arp off multicast off up")

"""Interfaces made and set by iproute2, many in one call."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable


def run_ip(commands: Iterable[str]) -> None:
    """Carry out commands of ``ip``, such as ``link set leaf1-eth1 up``, in their order."""
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)


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

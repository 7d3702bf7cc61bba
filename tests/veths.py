"""Veths for tests, in namespaces of their own, on which nobody speaks but the test.

Left to itself the kernel says much on a new interface: does someone have this address, is there a
router, I listen to these groups. A test that waits for the next frame would take that for it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import LONG_S

MTU = 9216
NO_KERNEL = 77  # how a module ends that the kernel lacks something for


def unshare(*more: str) -> list[str]:
    """How to start what is to have a network of its own and all this user's rights."""
    return _namespaces("--net", *([] if os.geteuid() == 0 else ["--map-root-user"]), *more)


def alone(*more: str) -> list[str]:
    """How to start what is to have a network of its own, in which it is root and nothing else."""
    return _namespaces("--user", "--map-root-user", "--net", *more)


def _namespaces(*which: str) -> list[str]:
    """How to get them, or a skip that says why not."""
    words = ["unshare", *which]
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("unshare (util-linux) or ip (iproute2) is not installed")
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not make network namespaces")
    return words


def entering(holder: int) -> tuple[str, ...]:
    """How to start something in the network of a process that was started so."""
    user = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
    return ("nsenter", *user, "--net", "--target", str(holder))


def run_alone(module: str) -> dict[str, Any]:
    """What a module prints in namespaces of its own: by case, what came and what should have."""
    done = subprocess.run(
        [*alone("--mount"), sys.executable, "-m", module],
        capture_output=True, text=True, check=False, timeout=LONG_S,
    )  # fmt: skip
    if done.returncode == NO_KERNEL:
        pytest.skip(f"this kernel, or its ip, cannot do that: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


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

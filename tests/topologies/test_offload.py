"""Offloads of virtual cables: what an interface says of itself once they are off."""

from __future__ import annotations

import fcntl
import socket
import struct
import subprocess
import sys
from array import array

import pytest

from tests.waiting import LONG_S
from topologies.ip import add_veths
from topologies.offload import switch_off_segmentation

SIOCETHTOOL = 0x8946
ASKED = {"TSO": 0x1E, "GSO": 0x23, "GRO": 0x2B}


def offloads(interface: str) -> dict[str, int]:
    """Which of what libpcap asks for, before it makes a ring, an interface has on."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for name, command in ASKED.items():
            value = array("I", [command, 0])
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(control, SIOCETHTOOL, request)
            found[name] = value[1]
    return found


def main() -> None:
    """In a network namespace of its own."""
    add_veths([("ours", "theirs")], 4296)
    before = offloads("ours")
    assert before["TSO"] and before["GSO"], before
    switch_off_segmentation("ours")
    assert not any(offloads("ours").values()), offloads("ours")
    assert offloads("theirs") == before


@pytest.mark.mininet
def test_an_interface_hands_over_frames_and_nothing_larger() -> None:
    words = ["unshare", "-rn", sys.executable, "-m", "tests.topologies.test_offload"]
    subprocess.run(words, check=True, timeout=LONG_S)


if __name__ == "__main__":
    main()

"""Our JSON on the real simple_switch: it must load, and packets must come out as expected.

Packets go in and out through pcap files, so nothing of the network is needed; programs that need
entries from a control plane are left to the STF runner.
"""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

import pytest

from compiler.cli import main

from .programs import P4

PROGRAMS = [
    "arith_mul", "sat_sub_signed", "slice_of_slice_write", "if_in_action", "for_nested",
    "function_inout", "header_equality", "stack_push_front", "union_exclusive", "varbit_extract",
    "select_range", "subparser_states", "checksum_update", "hash_crc16", "register_if_in_action",
    "table_const_ternary", "table_range_const", "truncate", "resubmit", "wide_add",
]  # fmt: skip
WAIT_SECONDS = 3
needs_bmv2 = pytest.mark.skipif(
    shutil.which("simple_switch") is None, reason="BMv2's simple_switch is not on PATH"
)


def write_pcap(path: Path, packets: list[bytes]) -> None:
    data = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for number, packet in enumerate(packets):
        data += struct.pack("<IIII", 0, number * 100_000, len(packet), len(packet)) + packet
    path.write_bytes(data)


def read_pcap(path: Path) -> list[bytes]:
    data = path.read_bytes()
    packets, at = [], 24
    while at + 16 <= len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        packets.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return packets


def stf(name: str) -> tuple[list[bytes], list[bytes]]:
    """The packets that go into port 1, and those that leave by port 2."""
    into, out = [], []
    for line in (P4 / f"{name}.stf").read_text().splitlines():
        words = line.split()
        if words[:2] == ["packet", "1"]:
            into.append(bytes.fromhex("".join(words[2:])))
        elif words[:2] == ["expect", "2"]:
            out.append(bytes.fromhex("".join(words[2:]).rstrip("$")))
        else:
            raise ValueError(f"{name}.stf needs a control plane: {line}")
    return into, out


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@needs_bmv2
@pytest.mark.parametrize("name", PROGRAMS)
def test_packets_on_bmv2(tmp_path: Path, name: str) -> None:
    into, out = stf(name)
    assert main([str(P4 / f"{name}.p4"), "-o", str(tmp_path / "x.json"), "--Wdisable"]) == 0
    for port in (1, 2):
        write_pcap(tmp_path / f"p{port}_in.pcap", into if port == 1 else [])
    switch = subprocess.Popen(
        ["simple_switch", "x.json", "-i", "1@p1", "-i", "2@p2", "--use-files", "1",
         "--thrift-port", str(free_port())],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        got: list[bytes] = []
        deadline = time.monotonic() + WAIT_SECONDS * 10
        while time.monotonic() < deadline and len(got) < len(out) and switch.poll() is None:
            time.sleep(0.2)
            result = tmp_path / "p2_out.pcap"
            got = read_pcap(result) if result.exists() else []
        time.sleep(0.3)
    finally:
        switch.terminate()
        log, _ = switch.communicate(timeout=10)
    assert read_pcap(tmp_path / "p2_out.pcap") == out, log

"""Real BMv2 beside our switch: the same frames through pcap files, and what came out of each."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from switch.dataplane import Dataplane, Program

SIMPLE_SWITCH = shutil.which("simple_switch")
PORTS = range(8)
START_S = 1  # before BMv2 reads its files
SETTLE_S = 0.6
GIVE_UP_S = 20.0

Frames = list[tuple[int, bytes]]


@dataclass
class Outcome:
    """What left, port by port, in order."""

    frames: dict[int, list[bytes]]

    def of(self, port: int) -> list[bytes]:
        return self.frames.get(port, [])


def ours(program: Program, frames: Frames) -> Outcome:
    found: dict[int, list[bytes]] = {}
    with Dataplane("ours", program) as dataplane:
        for port in PORTS:
            dataplane.add_port(port)
        now = 0
        for port, frame in frames:
            now += 1_000_000
            dataplane.inject(port, frame, now)
        wake = dataplane.service(now)
        while wake is not None:
            wake = dataplane.service(wake)
        for port, frame, _ in dataplane.outputs():
            if frame:
                found.setdefault(port, []).append(frame)
    return Outcome(found)


def write_pcap(path: Path, frames: list[tuple[int, bytes]]) -> None:
    """Frames with the microsecond each was sent at; BMv2 merges its inputs by these."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 0))
        for when, frame in frames:
            file.write(struct.pack("<IIII", when // 10**6, when % 10**6, len(frame), len(frame)))
            file.write(frame)


def read_pcap(path: Path) -> list[bytes]:
    data = path.read_bytes() if path.exists() else b""
    frames, at = [], 24
    while at + 16 <= len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16 : at + 16 + size])
        at += 16 + size
    return frames


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def bmv2(json: bytes, frames: Frames) -> Outcome:
    """Run frames through simple_switch, slowly enough that its queues lose none."""
    assert SIMPLE_SWITCH is not None
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "p.json").write_bytes(json)
        stamped = [(port, 1000 * (i + 1), frame) for i, (port, frame) in enumerate(frames)]
        for port in PORTS:
            own = [(when, frame) for p, when, frame in stamped if p == port]
            write_pcap(directory / f"p{port}_in.pcap", own or [(10**6 * 3600, b"")][:0])
        command = [
            SIMPLE_SWITCH,
            *(arg for port in PORTS for arg in ("-i", f"{port}@p{port}")),
            *("--use-files", str(START_S)),
            *("--thrift-port", str(free_port())),
            *("--device-id", str(os.getpid() % 1000 * 1000 + directory.stat().st_ino % 1000)),
            "p.json",
        ]
        log = (directory / "log").open("wb")
        process = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
        try:
            wait_for(process, directory)
        finally:
            process.kill()
            process.wait()
            log.close()
        found = {port: read_pcap(directory / f"p{port}_out.pcap") for port in PORTS}
        return Outcome({port: [f for f in fs if f] for port, fs in found.items()})


def wait_for(process: subprocess.Popen[bytes], directory: Path) -> None:
    """Until the output files have stopped growing."""
    start = changed = time.monotonic()
    sizes: list[int] = []
    while time.monotonic() - start < GIVE_UP_S:
        if process.poll() is not None:
            raise RuntimeError(f"simple_switch ended: {(directory / 'log').read_text()}")
        now = [p.stat().st_size for p in sorted(directory.glob("p*_out.pcap"))]
        if now != sizes:
            sizes, changed = now, time.monotonic()
        elapsed = time.monotonic()
        if elapsed - start > START_S + SETTLE_S and elapsed - changed > SETTLE_S:
            return
        time.sleep(0.05)

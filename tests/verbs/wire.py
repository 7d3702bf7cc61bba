"""Two hosts and a wire between them that may lose, double and overtake what RoCEv2 sends.

    python -m tests.verbs.wire LOSS SEED PCAP "WAITS" "ASKS"

To be run in a network of its own (`tests.veths.unshare`). Both commands run in networks of their
own, at 10.9.0.1 and 10.9.0.2; the second begins when the first has. What passes is written to PCAP
("-": not). It prints a JSON record: of both, how it ended and what it said.
"""

from __future__ import annotations

import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import field
from pathlib import Path
from typing import IO

from lab.machine.native_host import verbs_libraries
from lab.runs.adapter_files import found_by, lay_out
from params.data import Data
from tests.veths import unshare
from topologies.offload import switch_off_checksum_offload

HOSTS = ("10.9.0.1", "10.9.0.2")
MTU = 4500
GBPS = 100
EVERY_PROTOCOL = 0x0003
ROCE = (4791).to_bytes(2, "big")
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23
LONGEST_S = 200.0
HELD_MAX = 300  # frames that pass before an old one comes once more


def ip(words: str, *, pid: int | None = None) -> None:
    """Set something up, in the network of a process if one is given."""
    entering = [] if pid is None else ["nsenter", "--net", "--target", str(pid)]
    subprocess.run([*entering, "ip", *words.split()], check=True)


class Host(Data, frozen=False):
    """A program in a network of its own, which waits for a line before it begins."""

    number: int
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    end: socket.socket  # of the wire

    @classmethod
    def start(cls, number: int, command: str, said: IO[bytes], files: Path) -> Host:
        lay_out(files, GBPS)
        shell = f"read x; sleep {number * 0.5}; exec {command}"
        words = ["unshare", "--net", "--mount", *found_by(["sh", "-c", shell], files)]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=said, stderr=said)
        ours, theirs = Path("/proc/self/ns/net"), Path(f"/proc/{process.pid}/ns/net")
        while theirs.readlink() == ours.readlink():
            time.sleep(0.01)
        ip(f"link add w{number} mtu {MTU} type veth peer name e{number} mtu {MTU}")
        ip(f"link set e{number} netns {process.pid}")
        switch_off_checksum_offload(f"e{number}", process.pid)
        ip(f"link set w{number} up")
        ip("link set lo up", pid=process.pid)
        ip(f"addr add {HOSTS[number]}/24 dev e{number}", pid=process.pid)
        ip(f"link set e{number} up", pid=process.pid)
        return cls(number, process, said, _end(f"w{number}"))

    def begin(self) -> None:
        """Let it go."""
        assert self.process.stdin
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def outcome(self) -> dict[str, object]:
        """How it ended and what it said."""
        if self.process.poll() is None:
            self.process.kill()
        code = self.process.wait()
        self.said.seek(0)
        return {"code": code, "said": self.said.read().decode(errors="replace")}


def _end(interface: str) -> socket.socket:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
    end.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    end.bind((interface, EVERY_PROTOCOL))
    end.setblocking(False)
    return end


def is_roce(frame: bytes) -> bool:
    """Whether a frame is RoCEv2 by IPv4."""
    return frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[36:38] == ROCE


class Wire(Data, frozen=False):
    """What comes at one end goes to the other, more or less."""

    hosts: list[Host]
    loss: float
    chance: random.Random
    pcap: IO[bytes] | None
    overtaken: list[tuple[int, bytes]] = field(default_factory=list)
    held: list[tuple[int, int, bytes]] = field(default_factory=list)  # until so many have passed
    passed: int = 0

    def carry(self) -> None:
        """Carry frames until both have ended, or for so long."""
        ends = [host.end for host in self.hosts]
        until = time.monotonic() + LONGEST_S
        while any(host.process.poll() is None for host in self.hosts):
            if time.monotonic() > until:
                return
            readable, _, _ = select.select(ends, [], [], 0.05)
            for end in readable:
                with suppress(OSError):  # nothing is there, or the other end is gone
                    self._pass(1 - ends.index(end), end.recv(1 << 16))
            while self.overtaken and (not readable or self.chance.random() < 0.5):
                self._send(*self.overtaken.pop())

    def _pass(self, to: int, frame: bytes) -> None:
        if not is_roce(frame):
            self._send(to, frame)
            return
        if self.pcap:
            seconds, micros = divmod(time.time_ns() // 1000, 1_000_000)
            self.pcap.write(struct.pack("<IIII", seconds, micros, len(frame), len(frame)) + frame)
        if self.chance.random() < self.loss:
            return
        if self.chance.random() < self.loss / 2:
            self.overtaken.append((to, frame))
            return
        self._send(to, frame)
        self.passed += 1
        if self.chance.random() < self.loss / 2:
            self.held.append((self.passed + self.chance.randrange(HELD_MAX), to, frame))
        for due in [one for one in self.held if one[0] <= self.passed]:
            self.held.remove(due)
            self._send(*due[1:])

    def _send(self, to: int, frame: bytes) -> None:
        with suppress(OSError):
            self.hosts[to].end.send(frame)


def libraries_in(folder: Path) -> Path:
    """The folder, with the libraries by the names that programs look for."""
    for name, path in verbs_libraries().items():
        (folder / name).symlink_to(path)
    return folder


def over_wire(
    libraries: Path, waits: str, asks: str, *, loss: float = 0, seed: int = 1, pcap: str = "-"
) -> list[tuple[int, str]]:
    """How two programs ended and what they said."""
    words = (str(loss), str(seed), pcap, waits, asks)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    done = subprocess.run(
        [*unshare(), sys.executable, "-m", "tests.verbs.wire", *words],
        env=environment, capture_output=True, text=True, check=False, timeout=LONGEST_S + 60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(one["code"], one["said"]) for one in json.loads(done.stdout)]


def main() -> None:
    """Run both, and be the wire."""
    loss, seed, pcap, *commands = sys.argv[1:]
    with ExitStack() as stack:
        kept = None if pcap == "-" else stack.enter_context(Path(pcap).open("wb"))
        if kept:
            kept.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        ip("link set lo up")
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        hosts = []
        for number, command in enumerate(commands):
            said = stack.enter_context(tempfile.TemporaryFile())
            hosts.append(Host.start(number, command, said, folder / str(number)))
        for host in hosts:
            host.begin()
        Wire(hosts, float(loss), random.Random(int(seed)), kept).carry()
        print(json.dumps([host.outcome() for host in hosts]))


if __name__ == "__main__":
    main()

"""The kernel's vxlan device and the fabric program's tunnels, each reading what the other wrote.

To be run in namespaces of its own:

    unshare -rmn python -m tests.fabric.kernel_vxlan

The kernel is leaf2 of a fabric in memory, and leaf1 is ours. Prints JSON: by case, what came out
and what should have.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from controller import Settings
from params.marking import Ecn
from switch.capture import Capture
from tests.fabric.testbed import Testbed
from tests.veths import NO_KERNEL, bring_up, run, veth
from tests.waiting import SLOWNESS
from topologies import leaf_spine

VNI, DEVICE = 20_001, "vx1"
_WAIT_S = 5.0 * SLOWNESS
HERE, THERE = "10.255.16.2", "10.255.16.1"
OWN = "02:01:01:00:00:02"  # the MAC of leaf2
EVERYBODY = b"\xff" * 6


def build() -> Testbed:
    """The fabric in memory; what its leaf2 says, the kernel says instead."""
    fabric = leaf_spine(2, 1, 1).with_tenants([["h1", "h2"]], stretched=True)
    return Testbed.build(fabric, Settings(max_frame=1300, ecn=Ecn(enabled=False)))


def set_up(bed: Testbed) -> None:
    """A vxlan device over a veth."""
    veth("u0", "w0")
    run(f"ip link set u0 address {OWN}")
    run(f"ip addr add {HERE}/32 dev u0")
    run(
        f"ip link add {DEVICE} type vxlan id {VNI} dstport 4789 local {HERE} nolearning tos inherit"
    )
    bring_up(DEVICE)
    run("ip link set u0 arp on")
    run(f"ip route add {THERE}/32 dev u0")
    spine = bed.fabric.mac(bed.node("spine1"))
    run(f"ip neigh replace {THERE} lladdr {spine} dev u0 nud permanent")
    for each in (bed.fabric.mac(bed.node("h1")), "00:00:00:00:00:00"):
        run(f"bridge fdb append {each} dev {DEVICE} dst {THERE}")


@contextmanager
def listening(device: str) -> Iterator[socket.socket]:
    """What an interface takes in or gives out."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as receiver:
        receiver.bind((device, 0))
        receiver.settimeout(_WAIT_S)
        yield receiver


def through(into: str, out: str, frame: bytes) -> bytes | None:
    """What comes out of one interface once a frame has gone into another."""
    with (
        listening(out) as receiver,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
    ):
        sender.bind((into, 0))
        sender.send(frame)
        try:
            while True:
                data, (_, _, kind, _, _) = receiver.recvfrom(9000)
                if kind != socket.PACKET_OUTGOING:
                    return data
        except TimeoutError:
            return None


def shown(frame: bytes | None) -> str | None:
    return None if frame is None else frame.hex()


def main() -> None:
    """Ask both."""
    bed = build()
    try:
        set_up(bed)
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode(), file=sys.stderr)
        sys.exit(NO_KERNEL)
    cases: dict[str, tuple[str | None, str | None]] = {}
    seen: list[bytes] = []

    def note(_when: int, name: str, _port: int, frame: bytes) -> None:
        if name == "leaf1" and len(frame) > 100:
            seen.append(frame)

    bed.network.tap = note
    own = bytes.fromhex(OWN.replace(":", ""))
    to_all = EVERYBODY + bed.frame("h1", "h2", size=300)[6:]
    for name, plain in (
        ("a packet", bed.frame("h1", "h2", size=300, ecn=2)),
        ("what is for all", to_all),
    ):
        bed.network.inject("leaf1", 1, plain)
        bed.network.run(bed.network.now + 100_000)
        outer = own + seen[-1][6:]
        cases[f"{name}, ours to the kernel"] = shown(through("w0", DEVICE, outer)), shown(plain)
    # A mark on the way: the kernel takes it in as ours does.
    marked = bytearray(own + seen[0][6:])
    marked[15] |= 3
    sum_ = (~int.from_bytes(marked[24:26], "big") & 0xFFFF) + 1
    marked[24:26] = (~((sum_ & 0xFFFF) + (sum_ >> 16)) & 0xFFFF).to_bytes(2, "big")
    cases["a marked packet, ours to the kernel"] = (
        shown(through("w0", DEVICE, bytes(marked))),
        shown(bed.frame("h1", "h2", size=300, ecn=3)),
    )
    back: list[bytes] = []
    for name, plain, ecn in (
        ("a packet", bed.frame("h2", "h1", size=300, ecn=2), 2),
        ("a packet of another class", bed.frame("h2", "h1", size=300, dscp=48, ecn=1), 1),
        ("what is for all", EVERYBODY + bed.frame("h2", "h1", size=300, ecn=1)[6:], 1),
    ):
        outer = through(DEVICE, "w0", plain)
        bed.host("h1").arrived.clear()
        if outer is not None:
            back.append(outer)
            assert outer[15] & 3 == ecn
            bed.network.inject("spine1", 2, outer)
            bed.network.run(bed.network.now + 100_000)
        came = [frame for _, frame in bed.host("h1").arrived]
        cases[f"{name}, the kernel's to ours"] = shown(came[0] if came else None), shown(plain)
    if shutil.which("tshark"):
        ours, its = (
            f"{end},{host}|\n" for end, host in ((THERE, "172.16.0.1"), (HERE, "172.16.0.2"))
        )
        due = [f"4789,4791|{VNI}|{each}" for each in (ours, ours, its, its, its)]
        cases["tshark"] = by_tshark([*seen[:2], *back]), "".join(due)
    json.dump(cases, sys.stdout)


def by_tshark(frames: list[bytes]) -> str:
    """The port, the network and whether what is inside is sound, frame by frame."""
    with TemporaryDirectory() as folder:
        capture = Path(folder) / "both.pcap"
        with capture.open("wb") as file, Capture(file.fileno()) as kept:
            for frame in frames:
                kept.write(frame, 0)
        fields = ("udp.dstport", "vxlan.vni", "ip.src", "_ws.malformed")
        done = subprocess.run(
            ["tshark", "-r", str(capture), "-T", "fields", "-E", "separator=|",
             *(word for field in fields for word in ("-e", field))],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    main()

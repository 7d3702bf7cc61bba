"""Micro-segments of the kernel's and of the fabric program's, one after the other: what came out.

To be run in namespaces of its own:

    unshare -rmn python -m tests.fabric.kernel_sids

A leaf of ours puts a carrier on, a namespace takes a uN or a uA out of it, the next is its end; and
a namespace puts one on, by each way the kernel has, for a spine and a leaf of ours. Prints JSON:
by case, what a host got and what it should have; nothing of a case that the kernel does not know.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import replace
from ipaddress import IPv6Address

from controller import Settings, Steering
from controller import segments as sr
from params.marking import Ecn
from tests.fabric.testbed import Testbed, ipv6_frame
from tests.veths import NO_KERNEL, bring_up, run
from tests.waiting import SLOWNESS
from topologies import leaf_spine

PLAIN = Settings(max_frame=1200, ecn=Ecn(enabled=False), segments=True)
_WAIT_S = 5.0 * SLOWNESS
LEAF2, SPINE1 = 0x1002, 0x2001
KERNELS_UA = "fcbb:bb00:2001:e002::/64"
Cases = dict[str, tuple[str | None, str | None] | None]
UP = "net.ipv6.conf.all.forwarding=1 net.ipv6.conf.all.seg6_enabled=1"


def space(name: str) -> None:
    run(f"ip netns add {name}")
    run(f"ip netns exec {name} sysctl -qw {UP} net.ipv6.conf.default.seg6_enabled=1")


def cable(name: str, inside: str, outside: str, other: str | None, address: str) -> None:
    """A veth from a namespace to another, or to here."""
    run(f"ip link add {outside} type veth peer name {inside} netns {name}")
    run(f"ip -n {name} addr add {address} dev {inside} nodad")
    run(f"ip -n {name} link set {inside} addrgenmode none up")
    run(f"ip netns exec {name} sysctl -qw net.ipv6.conf.{inside}.seg6_enabled=1")
    if other is None:
        bring_up(outside)
    else:
        run(f"ip link set {outside} netns {other}")


def route(name: str, words: str) -> None:
    done = subprocess.run(
        f"ip -n {name} -6 route replace {words}".split(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{words}: {done.stderr.strip()}", file=sys.stderr)
        sys.exit(NO_KERNEL)


def takes_by_port(name: str, sid: str) -> bool:
    """Whether a route to a uA is one: kernels before 6.6 take it for an End.X, and say nothing."""
    return b"next-csid" in subprocess.check_output(f"ip -n {name} -6 route show {sid}".split())


def mac_of(name: str, device: str) -> bytes:
    shown = subprocess.run(
        ["ip", "-n", name, "-j", "link", "show", device], capture_output=True, check=True
    )
    (found,) = json.loads(shown.stdout)
    return bytes.fromhex(found["address"].replace(":", ""))


def through(into: str, out: str, frame: bytes, to: bytes) -> bytes | None:
    """What comes out of one interface once a frame has gone into another."""
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender,
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x86DD)) as receiver,
    ):
        sender.bind((into, 0))
        receiver.bind((out, 0))
        receiver.settimeout(_WAIT_S)
        sender.send(to + frame[6:])
        try:
            while True:
                data, (_, _, kind, _, _) = receiver.recvfrom(9000)
                if kind != socket.PACKET_OUTGOING and data[20] != 58:  # neighbours asked for
                    return data
        except TimeoutError:
            return None


def rest(frame: bytes | None) -> str | None:
    """A packet without what routers change."""
    return None if frame is None else (frame[14:21] + frame[22:]).hex()


def main() -> None:
    """Set up the chain and ask it."""
    run("mount -t tmpfs tmpfs /run")
    for name in ("kb", "kc", "ka"):
        space(name)
    cable("kb", "e0", "i0", None, "fd10::1/64")
    cable("kb", "e1", "x1", "kc", "fd20::1/64")
    run("ip -n kc link set x1 name e0")
    run("ip -n kc addr add fd20::2/64 dev e0 nodad")
    run("ip -n kc link set e0 addrgenmode none up")
    cable("kc", "e1", "o0", None, "fd40::1/64")
    cable("ka", "e0", "s0", None, "fd50::1/64")
    cable("ka", "e1", "s1", None, "fd30::1/64")
    for name, near, lladdr, device in (
        ("kb", "fd20::2", mac_of("kc", "e0").hex(":"), "e1"),
        ("kc", "fd40::2", "02:00:0a:00:02:01", "e1"),
        ("ka", "fd30::2", "02:01:02:00:00:01", "e1"),
    ):
        run(f"ip -n {name} neigh replace {near} lladdr {lladdr} dev {device} nud permanent")
    own = "encap seg6local action"
    csid = "flavors next-csid lblen 32 nflen"
    route("kb", f"fcbb:bb00:2001::/48 {own} End {csid} 16 dev e0")
    route("kb", f"{KERNELS_UA} {own} End.X nh6 fd20::2 {csid} 32 dev e0")
    route("kb", "fcbb:bb00:1002::/48 via fd20::2 dev e1")
    route("kc", f"fcbb:bb00:1002:f000::/64 {own} End.DT6 table main dev e0")
    route("kc", "fd00:0:0:2::/64 via fd40::2 dev e1")
    route("ka", "fcbb:bb00::/32 via fd30::2 dev e1")
    json.dump({**ours_to_kernel(), **kernel_to_ours()}, sys.stdout)


def ours_to_kernel() -> Cases:
    """Our leaf's carrier through uN or uA, and to uDT6, of the kernel."""
    fabric = leaf_spine(2, 1, 1).speaking(6)
    bed = Testbed.build(fabric, replace(PLAIN, steering=(Steering("leaf1", "h2"),)))
    sent: list[bytes] = []

    def note(_when: int, name: str, _port: int, frame: bytes) -> None:
        if name == "leaf1":
            sent.append(frame)

    bed.network.tap = note
    plain = bed.frame("h1", "h2", size=300, label=0x12345, ecn=2)
    bed.network.inject("leaf1", 1, plain)
    bed.network.run(1000)
    (carrier,) = sent
    by_port = sr.sid(SPINE1, 0xE002, LEAF2, sr.END).to_bytes(16, "big")
    to_port = carrier[:38] + by_port + carrier[54:] if takes_by_port("kb", KERNELS_UA) else None
    cases = {"uN, uDT6": carrier, "uA, uDT6": to_port}
    kb = mac_of("kb", "e0")
    return {
        f"ours to the kernel's {name}": (
            None if frame is None else (rest(through("i0", "o0", frame, kb)), rest(plain))
        )
        for name, frame in cases.items()
    }


def kernel_to_ours() -> Cases:
    """The kernel's carriers, of one address or several, through our uN and uA to our uDT."""
    found: Cases = {}
    way = sr.sid(SPINE1, LEAF2, sr.END)
    by_port = sr.sid(SPINE1, 0xE002, LEAF2, sr.END)
    once, then = sr.sid(SPINE1), sr.sid(LEAF2, sr.END)
    plain = ipv6_frame("fd00:0:0:1::1", "fd00:0:0:2::1", size=300, label=0x54321, ecn=2)
    for mode in ("encap", "encap.red"):
        for what, sids in (("uN", (way,)), ("uA", (by_port,)), ("two carriers", (once, then))):
            listed = ",".join(str(IPv6Address(sid)) for sid in sids)
            route("ka", f"fd00:0:0:2::/64 encap seg6 mode {mode} segs {listed} via fd30::2 dev e1")
            carrier = through("s0", "s1", plain, mac_of("ka", "e0"))
            bed = Testbed.build(leaf_spine(2, 1, 1).speaking(6), PLAIN)
            if carrier is not None:
                bed.network.inject("spine1", 1, carrier)
                bed.network.run(100_000)
            arrived = [frame for _, frame in bed.host("h2").arrived]
            name = f"the kernel's {mode}, {what}, to ours"
            found[name] = (rest(arrived[0]) if arrived else None, rest(plain))
    return found


if __name__ == "__main__":
    main()

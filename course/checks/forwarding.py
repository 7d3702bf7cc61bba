"""Lesson 1: a router that spreads flows over equally good ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from course.bench import Bench, Switch
from course.check import check
from course.frames import MAC_SWITCH, Seen, Udp
from course.verdict import Wrong

PROGRAM = "forward.p4"
_HOST_MAC = "020000000b01"
_FLOWS = 600
_TABLES = """
add routes hdr.ipv4.dst_addr:0x0a000201/32 to_port(port:7, next_mac:0x020000000b01)
add routes hdr.ipv4.dst_addr:0x0a000200/24 to_port(port:8, next_mac:0x020000000b02)
add routes hdr.ipv4.dst_addr:0x0a000300/24 to_group(group:1, ways:4)
add routes hdr.ipv4.dst_addr:0x0a000400/24 to_group(group:2, ways:3)
"""


def _switch(bench: Bench) -> Switch:
    ways = [
        f"add ways meta.group:{group} meta.way:{way} "
        f"to_port(port:{10 * group + way}, next_mac:{0x020000000C00 + 16 * group + way})"
        for group, count in ((1, 4), (2, 3))
        for way in range(count)
    ]
    return bench.switch(PROGRAM, _TABLES + "\n".join(ways))


@check("A packet to a host leaves by the port of its route", 2)
def to_a_host(bench: Bench) -> None:
    """By the longest prefix."""
    switch = _switch(bench)
    for dst, port in (("10.0.2.1", 7), ("10.0.2.9", 8)):
        left = switch.send(1, Udp(dst=dst).frame)
        if not left:
            raise Wrong(
                f"a packet to {dst} was dropped; its route says port {port}",
                f"{PROGRAM}: apply: what drops it?",
            )
        if left[0][0] == 0:
            raise Wrong(
                f"a packet to {dst} left by port 0, which is where all go that nobody sends "
                f"anywhere; its route says {port}",
                f"{PROGRAM}: action to_port (TODO 1): which field says where a packet goes?",
            )
        if left[0][0] != port:
            raise Wrong(
                f"a packet to {dst} left by port {left[0][0]}; its route says {port}",
                f"{PROGRAM}: action to_port (TODO 1)",
            )


@check("What leaves is a router's: addresses, time to live, checksum", 2)
def as_a_router(bench: Bench) -> None:
    """The rest is as it was."""
    sent = Udp(ttl=9)
    left = _switch(bench).send(1, sent.frame)
    if not left:
        raise Wrong("a packet with 9 hops to live was dropped", f"{PROGRAM}: apply (TODO 4)")
    seen = Seen(left[0][1])
    if seen.dst_mac != _HOST_MAC:
        raise Wrong(
            f"the frame goes to {seen.dst_mac}; the route says {_HOST_MAC}",
            f"{PROGRAM}: action to_port (TODO 2): the destination's address",
        )
    if seen.src_mac != MAC_SWITCH:
        raise Wrong(
            f"the frame says it comes from {seen.src_mac}; it came to this switch as {MAC_SWITCH}",
            f"{PROGRAM}: action to_port (TODO 2): the source's address, and which of the two is "
            "written first",
        )
    if seen.ttl != sent.ttl - 1:
        raise Wrong(
            f"the time to live was {sent.ttl} and is {seen.ttl}",
            f"{PROGRAM}: action to_port (TODO 3)",
        )
    if seen.frame[34:] != sent.frame[34:] or not seen.has_right_checksum:
        raise Wrong(
            "the packet is not what it was: its checksum or what comes after IPv4",
            f"{PROGRAM}: what else is written there?",
        )


@check("What has no hop left, or is not IPv4, ends here")
def ends_here(bench: Bench) -> None:
    """By the host's route and by a group's."""
    switch = _switch(bench)
    for dst in ("10.0.2.1", "10.0.3.1"):
        for ttl in (0, 1):
            if switch.send(1, Udp(dst=dst, ttl=ttl).frame):
                raise Wrong(
                    f"a packet to {dst} with {ttl} hops to live went on",
                    f"{PROGRAM}: apply (TODO 4): what arrives with 1 would leave with 0",
                )
        if not switch.send(1, Udp(dst=dst, ttl=2).frame):
            raise Wrong(
                f"a packet to {dst} with 2 hops to live was dropped",
                f"{PROGRAM}: apply (TODO 4): it may go one hop more",
            )
    arp = bytes.fromhex("ffffffffffff0200000000aa0806").ljust(60, b"\0")
    if switch.send(1, arp):
        raise Wrong(
            "an ARP request was forwarded as if it were IPv4",
            f"{PROGRAM}: apply (TODO 4): how does one ask whether a header was there?",
        )


@check("All packets of a flow take one way", 2)
def keeps_its_way(bench: Bench) -> None:
    """Whatever else of them differs."""
    switch = _switch(bench)
    flow = Udp(dst="10.0.3.1")
    for name, packets in (
        ("identification", [flow.but(identification=n) for n in range(40)]),
        ("payload", [flow.but(payload=bytes([n] * (20 + n))) for n in range(40)]),
        ("time to live", [flow.but(ttl=n) for n in range(10, 50)]),
    ):
        ways = _ports(switch, packets)
        if not set(ways) <= {10, 11, 12, 13}:
            raise Wrong(
                f"a packet for a group of ways took none of them, but port {next(iter(ways))}",
                f"{PROGRAM}: apply (TODO 5)",
            )
        if len(ways) != 1:
            raise Wrong(
                f"packets of one flow that differ in their {name} took {len(ways)} ways: they "
                "overtake one another",
                f"{PROGRAM}: apply (TODO 5): the hash may know what tells flows apart, no more",
            )


@check("Flows spread over all ways, evenly", 3)
def spreads(bench: Bench) -> None:
    """By each of what tells flows apart."""
    switch = _switch(bench)
    base = Udp(dst="10.0.3.1")
    kinds = {
        "source ports": [base.but(sport=1024 + 7 * n) for n in range(_FLOWS)],
        "sources": [base.but(src=f"10.1.{n // 200}.{n % 200}") for n in range(_FLOWS)],
        "destinations": [base.but(dst=f"10.0.3.{n}") for n in range(1, 200)],
        "destination ports": [base.but(dport=1024 + 7 * n) for n in range(_FLOWS)],
    }
    for what, packets in kinds.items():
        _even(switch, packets, (10, 11, 12, 13), f"flows that differ in their {what}")
    three = [packet.but(dst="10.0.4.1") for packet in kinds["source ports"]]
    _even(switch, three, (20, 21, 22), "flows over three ways")


def _ports(switch: Switch, packets: Iterable[Udp]) -> Counter[int]:
    """How many left by each port; -1 is that they were dropped."""
    found: Counter[int] = Counter()
    for packet in packets:
        left = switch.send(1, packet.frame)
        found[left[0][0] if left else -1] += 1
    return found


def _even(switch: Switch, packets: list[Udp], ports: tuple[int, ...], what: str) -> None:
    found = _ports(switch, packets)
    where = f"{PROGRAM}: apply (TODO 5)"
    if set(found) == {0}:
        raise Wrong(f"{what} have no way: the group's ways are never asked for", where)
    if found[-1]:
        raise Wrong(
            f"{what}: {found[-1]} of {len(packets)} were dropped, for ways their group does not "
            "have, or none",
            f"{where}: a group of n ways has 0 to n - 1; is it the group's own n?",
        )
    if len(found) == 1:
        raise Wrong(
            f"{what} all took port {next(iter(found))}", f"{where}: what does the hash know?"
        )
    unused = [port for port in ports if not found[port]]
    if unused:
        raise Wrong(
            f"{what} never took port {', '.join(map(str, unused))}",
            f"{where}: how many ways does the group have, and how many are drawn from?",
        )
    fair = len(packets) / len(ports)
    if max(found.values()) > 1.5 * fair or min(found.values()) < 0.5 * fair:
        raise Wrong(
            f"{what} are spread unevenly: {dict(sorted(found.items()))}",
            f"{where}: which hash is it?",
        )

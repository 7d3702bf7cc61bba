"""A host that says all that is not its to say, beside one that sends: nothing of it gets anywhere.

Each kind of frame has the reason by which its end is counted, written down here from the promises
alone; kinds come in any order, in fabrics of either IP with whatever mechanism they are about. The
neighbour's packets all arrive, by the ways they took before, and nobody else's books are touched.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import field, replace

import pytest

from controller import Punt, Settings
from controller import segments as sr
from controller.tables import control_port
from params.data import Data
from params.link import LinkLevel, Replay
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from params.pfc import Pfc
from tests.fabric.test_conga import with_header
from tests.fabric.test_credits import ASK, GRANT, answer, numbered, word
from tests.fabric.test_forged import with_shim
from tests.fabric.test_pause import pause_frame
from tests.fabric.test_usid import in_carrier
from tests.fabric.testbed import UDP_ROCE, Testbed, ipv4_frame, ipv6_frame, mark_of
from topologies import Fabric, IpVersion, leaf_spine

PLAIN = Settings(max_frame=1300, ecn=Ecn(enabled=False))
ATTACKER, VICTIM, FAR = "h1", "h2", "h4"
PORT = 1  # of leaf1, where h1 is
BURST = 8
# What switches put before a packet's type, and how long it is: words of paths, and numbers.
BETWEEN_SWITCHES = {b"\x88\xb5": 8, b"\x88\xb6": 6}
ANSWER = b"\x88\xb6\x02"
WORLDS: dict[str, tuple[IpVersion, Settings]] = {
    "plain": (4, PLAIN),
    "ipv6": (6, replace(PLAIN, lb=LoadBalancing(policy=Policy.CONGA))),
    "segments": (6, replace(PLAIN, segments=True, lb=LoadBalancing(policy=Policy.FLOWLET))),
    "segments-of-ipv4": (4, replace(PLAIN, segments=True)),
    "credits": (4, replace(PLAIN, link=LinkLevel(cbfc=True))),
    "retry": (6, replace(PLAIN, link=LinkLevel(llr=Replay.SELECTIVE))),
    "lossy": (4, replace(PLAIN, pfc=Pfc(enabled=False, priorities=()))),
    "bgp": (4, replace(PLAIN, max_frame=1600, punt=Punt(every_ns=10_000, burst=BURST))),
}
TENANTS = {"h1": 1, "h3": 1, "h2": 2, "h4": 2}


class Attacker(Data, frozen=False):
    """What one host may think of."""

    bed: Testbed
    draw: random.Random
    expected: Counter[str] = field(default_factory=Counter)

    @property
    def fabric(self) -> Fabric:
        return self.bed.fabric

    def own(self, to: str = "h3", **fields: int) -> bytes:
        return self.bed.frame(ATTACKER, to, size=self.draw.choice((90, 300)), **fields)

    def forged(self) -> bytes:
        """In another's name, also in one of the other IP."""
        other = self.draw.choice(("h2", "h3", "h4"))
        if self.draw.random() < 0.7:
            return self.bed.frame(other, "h3", size=200)
        if self.fabric.ip == 4:
            return ipv6_frame("fd00:0:0:1::1", "fd00:0:0:2::1", size=200)
        return ipv4_frame("10.0.1.1", "10.0.2.1", size=200)

    def steered(self) -> bytes:
        """By a list of its own, with its own name on the carrier or none."""
        way = sr.sid(0x1001, self.draw.choice((0x2001, 0x2002)), 0x1002, 0xF000)
        address = self.fabric.address(self.bed.node(ATTACKER))
        src = int(address) if self.fabric.ip == 6 else sr.sid(0x9999)
        rest = (sr.sid(0x1002, 0xF000),) if self.draw.random() < 0.3 else ()
        return in_carrier(self.own(), way, rest, src=src)

    def learnt(self) -> bytes:
        """What leaves tell each other of their paths."""
        return with_header(self.own(), self.draw.randrange(2), 7, (0, 7), self.draw.choice((1, 2)))

    def measured(self) -> bytes:
        return with_shim(self.own(), self.draw.choice((UDP_ROCE, 80)))

    def granted(self) -> bytes:
        """Credit of classes that have none, or more than there is."""
        priority = self.draw.choice((0, 1, 3, 6, 8, 255))
        return word(GRANT, self.draw.randrange(2**24, 2**31), priority)

    def asked(self) -> bytes:
        return word(ASK, self.draw.getrandbits(32), self.draw.choice((0, 4, 7, 9, 255)))

    def sequenced(self) -> bytes:
        """As links between switches number frames."""
        number = self.draw.choice((0, 1, 5, 0xFFFFFF))
        inner = self.bed.frame(VICTIM, FAR, size=200)
        return self.draw.choice((numbered(number, inner), answer(number, 0, number)))

    def paused(self) -> bytes:
        """Classes that no pause holds."""
        lossless = sum(1 << each for each in self.bed.settings.lossless)
        return pause_frame(0xFFFF, self.draw.choice((0x01, 0x40, 0x77, 0xFF)) & ~lossless)

    def stretched(self) -> bytes:
        """Ports hidden behind an extension header."""
        return ipv6_frame("fd00:0:0:1::1", "fd00:0:0:2::1", size=200,
                          next_header=self.draw.choice((0, 43, 44, 60)))  # fmt: skip

    def neighbourly(self) -> bytes:
        """ARP, of which a control plane takes little."""
        macs = bytes.fromhex("ffffffffffff020000000001")
        sender = struct.pack("!HHBBH", 1, 0x0800, 6, 4, self.draw.choice((1, 2)))
        return (macs + b"\x08\x06" + sender + self.draw.randbytes(20)).ljust(60, b"\0")

    def other_tenants(self) -> bytes:
        return self.own(self.draw.choice(("h2", "h4")))

    def kinds(self) -> list[tuple[Callable[[], bytes], str]]:
        """All of them, with the reason for which each ends."""
        found = [
            (self.forged, "forged_source"),
            (self.steered, "forged_header"),
            (self.learnt, "forged_header"),
            (self.granted, "foreign_credit"),
            (self.asked, "foreign_credit"),
            (self.sequenced, "not_ip"),
            (self.paused, "foreign_pause"),
            (self.stretched, "malformed"),
            (self.other_tenants, "other_tenant"),
            (self.neighbourly, "not_ip" if self.bed.settings.punt is None else "control_limit"),
        ]
        return found + ([(self.measured, "forged_header")] if self.fabric.ip == 4 else [])


def built(name: str) -> Testbed:
    ip, settings = WORLDS[name]
    fabric = leaf_spine(2, 2, 2).speaking(ip)
    bed = Testbed.build(fabric, replace(settings, tenants=TENANTS))
    if settings.punt is not None:
        for node in fabric.switches:
            for port in fabric.ports(node):
                bed.switch(node.name).add_port(control_port(port), 0, 0)
    return bed


def lived(bed: Testbed, attacks: list[bytes]) -> tuple[list[int], dict[int, int], Counter[int]]:
    """What of the neighbour's arrived, by which ways it went, and what control ports got."""
    ways: dict[int, int] = {}
    controls: Counter[int] = Counter()
    victim = bed.fabric.address(bed.node(VICTIM)).packed

    def note(_when: int, name: str, port: int, frame: bytes) -> None:
        if name != "leaf1":
            return
        if port >= control_port(0):
            controls[port - control_port(0)] += 1
        elif port > 2 and frame[12:15] != ANSWER:  # all that it lets into the fabric
            before = BETWEEN_SWITCHES.get(frame[12:14], 0)
            frame = frame[:12] + frame[12 + before :]
            assert victim in frame[22:42], frame.hex()
            ways[mark_of(frame)] = port

    bed.network.tap = note
    for mark in range(len(attacks)):
        frame = bed.frame(VICTIM, FAR, size=300, mark=mark, src_port=20_000 + mark % 40)
        bed.network.inject("leaf1", 2, frame)
        if attacks[mark]:
            bed.network.inject("leaf1", PORT, attacks[mark])
        bed.network.run(bed.network.now + 500)
    bed.network.run(bed.network.now + 1_000_000)
    return [mark_of(frame) for _, frame in bed.host(FAR).arrived], ways, controls


@pytest.mark.parametrize("world", WORLDS)
def test_nothing_that_is_not_a_hosts_to_say_gets_anywhere(world: str) -> None:
    count = 250
    quiet, bed = built(world), built(world)
    alone = lived(quiet, [b""] * count)
    attacker = Attacker(bed, random.Random(world))
    attacks = []
    for _ in range(count):
        make, reason = attacker.draw.choice(attacker.kinds())
        attacks.append(make())
        attacker.expected[reason] += 1
    arrived, ways, controls = lived(bed, attacks)
    assert arrived == alone[0] == list(range(count))
    assert ways == alone[1]
    assert not bed.host("h3").arrived
    assert _others(bed) == _others(quiet)
    drops = Counter(bed.drops())
    # A control plane is told a little, of this port alone; all the rest is counted.
    assert set(controls) <= {PORT} and controls.total() <= BURST + count * 500 // 10_000 + 1
    drops["control_limit"] += controls.total()
    assert +drops == +attacker.expected
    bed.check_accounts()


def _others(bed: Testbed) -> list[int]:
    """What leaf1 goes by at all ports but the attacker's: credits, retries, and paths elsewhere."""
    leaf = bed.switch("leaf1")
    own = range(8 * PORT, 8 * PORT + 8)
    cells = [cell for cell in range(8 * 6) if cell not in own]
    credits = [leaf.register(name, c) for name in ("credit_limit", "credit_told") for c in cells]
    retries = [leaf.register("link_counts", cell) for cell in own]
    return [*credits, *retries, *(leaf.register("queue_gate", c) for c in own)]

"""What a host must not say: as whom it may speak, and which headers are not its own to write.

Each is tried as an attacker would, at a host's port, and each end has a reason that counts it. The
judge of the sweep is a table of who may say what, written down here from the promises alone.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from dataclasses import replace

import pytest

from controller import Settings
from controller.settings import HopTelemetry
from params.access import Rule
from params.classes import PAUSE_PRIORITY
from params.data import Data
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from params.pfc import Pfc
from tests.fabric.test_conga import with_header
from tests.fabric.test_pause import pause_frame
from tests.fabric.testbed import UDP_ROCE, Testbed, checksum, ipv4_frame
from topologies import leaf_spine

PLAIN = Settings(max_frame=1100, ecn=Ecn(enabled=False))
CONGA = replace(PLAIN, lb=LoadBalancing(policy=Policy.CONGA))
UDP_INT = 20052
MORE_FRAGMENTS = 1 << 13


def with_fragment(frame: bytes, flags_and_offset: int) -> bytes:
    """The same packet as one of several fragments."""
    head = (
        frame[14:20] + flags_and_offset.to_bytes(2, "big") + frame[22:24] + b"\0\0" + frame[26:34]
    )
    head = head[:10] + checksum(head).to_bytes(2, "big") + head[12:]
    return frame[:14] + head + frame[34:]


def with_shim(frame: bytes, claimed: int, instructions: int = 0xFD00) -> bytes:
    """The same packet with telemetry's headers, whose shim claims a port."""
    carried = struct.pack("!BBH", 0x14, 3, claimed)
    carried += struct.pack("!IHHHH", 2 << 28 | 9 << 8 | 5, instructions, 0, 0, 0)
    head = bytearray(frame[14:34])
    head[2:4] = (int.from_bytes(head[2:4], "big") + len(carried)).to_bytes(2, "big")
    head[10:12] = b"\0\0"
    head[10:12] = checksum(bytes(head)).to_bytes(2, "big")
    length = int.from_bytes(frame[38:40], "big") + len(carried)
    udp = frame[34:36] + struct.pack("!HHH", UDP_INT, length, 0)
    return frame[:14] + bytes(head) + udp + carried + frame[42:]


# --- one by one ---------------------------------------------------------------------------------


def uplinks_of_others(bed: Testbed, attack: bytes | None) -> Counter[int]:
    """The uplinks that 200 flows of h2 take while h1 says something before each of them."""
    chosen: Counter[int] = Counter()

    def note(_when: int, name: str, port: int, frame: bytes) -> None:
        if name == "leaf1" and bytes((10, 0, 1, 2)) in frame[26:46]:
            chosen[port] += 1

    bed.network.tap = note
    uplinks = [
        port for port, peer in bed.fabric.ports(bed.node("leaf1")).items() if peer.name[0] == "s"
    ]
    for n in range(200):
        if attack:
            bed.network.inject("leaf1", 1, attack)
        bed.network.inject("leaf1", 2, bed.frame("h2", "h4", src_port=20000 + n))
        bed.network.run(bed.network.now + 200_000)  # nothing is queued, no link is busy any more
    assert sum(chosen[port] for port in uplinks) == 200
    return chosen


@pytest.mark.parametrize("way", [0, 1])
def test_nobody_steers_others_by_what_only_leaves_say(way: int) -> None:
    """Told that one way is busy, leaves would put all on the other."""
    settings = replace(CONGA, tenants={"h1": 1, "h3": 1, "h2": 2, "h4": 2})
    alone = uplinks_of_others(Testbed.build(leaf_spine(2, 2, 2), settings), None)
    bed = Testbed.build(leaf_spine(2, 2, 2), settings)
    attack = with_header(bed.frame("h1", "h3", size=200), 0, 7, (way, 7), leaf=2)
    attacked = uplinks_of_others(bed, attack)
    assert attacked == alone
    assert min(alone.values()) > 50
    assert bed.drops() == {"forged_header": 200}
    bed.check_accounts()


@pytest.mark.parametrize("policy", list(Policy))
def test_headers_of_leaves_are_refused_whatever_the_policy(policy: Policy) -> None:
    bed = Testbed.build(leaf_spine(2, 2, 2), replace(PLAIN, lb=LoadBalancing(policy=policy)))
    frame = bed.frame("h1", "h3", size=200)
    for leaf in (0, 2, 9, 0xFFFF):
        bed.network.inject("leaf1", 1, with_header(frame, 1, 7, (0, 7), leaf))
    bed.network.run(100_000)
    assert not bed.host("h3").arrived
    assert bed.drops() == {"forged_header": 4}


def test_a_denied_packet_teaches_a_leaf_nothing() -> None:
    """Not even by a cable between switches."""
    settings = replace(CONGA, rules=(Rule(allow=False, dst_port=80),))
    bed = Testbed.build(leaf_spine(2, 2, 2), settings)
    uplink = max(bed.fabric.ports(bed.node("leaf1")))
    for port, paths in ((80, 0), (81, 2)):
        frame = bed.frame("h3", "h1", size=200, dst_port=port)
        bed.network.inject("leaf1", uplink, with_header(frame, 1, 5, (0, 0), leaf=2))
        bed.network.run(bed.network.now + 10_000)
        assert bed.switch("leaf1").register("conga_paths", 2) == paths
    assert bed.drops() == {"denied": 1}


@pytest.mark.parametrize("cnp", [0x81, 0x11])
def test_nobody_answers_in_anothers_name(cnp: int) -> None:
    """A CNP or a NAK slows whom it is about; endpoints take them from their peers only."""
    bed = Testbed.build(leaf_spine(2, 1, 2), PLAIN)
    bth = bytes((cnp, 0, 0xFF, 0xFF)) + (7).to_bytes(4, "big") + bytes(4) + b"\x60\0\0\0"
    for name, forged in (("h3", True), ("h2", False)):
        frame = bed.frame(name, "h1", size=42 + 16 + 4)
        bed.network.inject("leaf1", 2, frame[:42] + bth + frame[58:])
        bed.network.run(bed.network.now + 10_000)
        assert len(bed.host("h1").arrived) == (0 if forged else 1)
    assert bed.drops() == {"forged_source": 1}


def test_forged_telemetry_makes_no_reports() -> None:
    telemetry = HopTelemetry(share=0.0001, drop_share=0.0, report_port=9)
    bed = Testbed.build(leaf_spine(2, 1, 2), replace(PLAIN, telemetry=telemetry))
    for leaf in ("leaf1", "leaf2"):
        bed.network.switches[leaf].add_port(9, 100_000_000_000, 0)
    made = 0

    def note(_when: int, _name: str, port: int, _frame: bytes) -> None:
        nonlocal made
        made += port == 9

    bed.network.tap = note
    for n in range(500):
        bed.network.inject("leaf1", 1, with_shim(bed.frame("h1", "h3", size=300, mark=n), UDP_ROCE))
    bed.network.run(1_000_000)
    assert made == 0
    assert bed.drops() == {"forged_header": 500}


@pytest.mark.parametrize("asymmetric", [False, True])
@pytest.mark.parametrize("classes", [0, 1, 1 << 3, 0x41, 0xF7, 0xFF])
def test_pauses_of_other_classes_hold_nothing_and_are_counted(
    classes: int, asymmetric: bool
) -> None:
    bed = Testbed.build(leaf_spine(2, 1, 2), replace(PLAIN, pfc=Pfc(asymmetric=asymmetric)))
    leaf = bed.switch("leaf1")
    bed.network.inject("leaf1", 1, pause_frame(0xFFFF, classes))
    held = [leaf.register("queue_gate", 8 + priority) > 0 for priority in range(8)]
    own = 1 << PAUSE_PRIORITY  # the class by which pause frames leave, which nobody may hold
    holds = classes & ~own if asymmetric else classes & 1 << 3
    assert held == [bool(holds >> priority & 1) for priority in range(8)]
    assert bed.drops() == ({} if holds else {"foreign_pause": 1})
    assert leaf.balance() == 0


def test_fragments_take_one_path_and_come_out_as_they_were() -> None:
    bed = Testbed.build(leaf_spine(2, 8, 1), PLAIN)
    for flow in range(20):
        ways: set[int] = set()
        bed.network.tap = lambda _w, name, port, _f, seen=ways: name == "leaf1" and seen.add(port)
        whole = bed.frame("h1", "h2", size=300, src_port=30000 + flow, dst_port=2000 + 7 * flow)
        sent = [with_fragment(whole, MORE_FRAGMENTS | n * 32) for n in range(3)]
        sent.append(with_fragment(whole, 96))
        for fragment in sent:
            bed.network.inject("leaf1", 1, fragment)
        bed.network.run(bed.network.now + 100_000)
        got = [frame for _, frame in bed.host("h2").arrived[-4:]]
        assert [frame[34:] for frame in got] == [frame[34:] for frame in sent]
        assert len(ways) == 1


# --- all of it at once, against a table of who may say what --------------------------------------


class Said(Data, frozen=False):
    """A packet by what matters of it."""

    port: int
    src: str
    dst: str
    dst_port: int
    fragment: int
    conga: bool
    claims: int | None

    def frame(self) -> bytes:
        frame = ipv4_frame(self.src, self.dst, size=300, dst_port=self.dst_port)
        if self.claims is not None:
            frame = with_shim(frame, self.claims)
        if self.fragment:
            frame = with_fragment(frame, self.fragment)
        return with_header(frame, 0, 7, (0, 7), 2) if self.conga else frame

    def end(self, owners: dict[int, str], settings: Settings, denied: int) -> str:
        """Why it ends at leaf1, or where it goes."""
        is_whole = self.fragment in (0, 0x4000)
        carries = self.claims is not None and is_whole
        if self.port in owners:
            if self.src != owners[self.port]:
                return "forged_source"
            if self.conga:
                return "forged_header"
            if carries and not (settings.telemetry.by_hosts and self.claims == UDP_ROCE):
                return "forged_header"
            names = {"10.0.1.1": "h1", "10.0.1.2": "h2", "10.0.2.1": "h3", "10.0.2.2": "h4"}
            tenants = settings.tenants
            if tenants and tenants.get(names[self.src], 0) != tenants.get(names[self.dst], 0):
                return "other_tenant"
        is_later = self.fragment & 0x1FFF
        port = self.claims if carries else UDP_INT if self.claims is not None else self.dst_port
        if not is_later and port == denied:
            return "denied"
        return "passes"


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", range(6))
def test_who_may_say_what(seed: int) -> None:
    draw = random.Random(seed)
    denied = draw.choice((80, UDP_ROCE, UDP_INT))
    tenants = draw.choice(({}, {"h1": 1, "h3": 1, "h2": 2}))
    settings = replace(
        PLAIN,
        pfc=Pfc(enabled=False),
        lb=LoadBalancing(policy=draw.choice(list(Policy))),
        tenants=tenants,
        rules=(Rule(allow=False, dst_port=denied),),
        telemetry=HopTelemetry(by_hosts=draw.random() < 0.5),
    )
    bed = Testbed.build(leaf_spine(2, 2, 2), settings)
    owners = {1: "10.0.1.1", 2: "10.0.1.2"}
    uplink = max(bed.fabric.ports(bed.node("leaf1")))
    addresses = ["10.0.1.1", "10.0.1.2", "10.0.2.1", "10.0.2.2"]
    leaf = bed.switch("leaf1")
    for _ in range(400):
        port = draw.choice((1, 2, uplink))
        own = owners.get(port, addresses[2])
        said = Said(
            port=port,
            src=own if draw.random() < 0.8 else draw.choice([*addresses, "10.0.1.9", "0.0.0.0"]),
            dst=draw.choice(addresses),
            dst_port=draw.choice((80, UDP_ROCE, 9)),
            fragment=draw.choice((0, 0, 0x4000, MORE_FRAGMENTS, MORE_FRAGMENTS | 1, 1, 0x1FFF)),
            conga=draw.random() < 0.1,
            claims=draw.choice((None, None, None, UDP_ROCE, 80, 0)),
        )
        before = bed.drops()
        sent_before = leaf.plane.stats().sent
        bed.network.inject("leaf1", port, said.frame())
        ends = Counter(bed.drops())
        ends.subtract(before)
        gone = {name: count for name, count in ends.items() if count}
        bed.network.run(bed.network.now + 10_000)
        expected = said.end(owners, settings, denied)
        if expected == "passes":
            assert gone == {}, said
            assert leaf.plane.stats().sent == sent_before + 1, said
        else:
            assert gone == {expected: 1}, said
    bed.check_accounts()

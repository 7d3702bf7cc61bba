"""Words of credits and numbered frames from those who have no business with them.

None changes what anybody may send, or what others get, and each is counted.
"""

from __future__ import annotations

import random
import struct
from dataclasses import replace

import pytest

from controller import Settings
from controller.tables import DROP_REASONS
from params.link import LinkLevel, Replay
from params.marking import Ecn
from tests.fabric.testbed import Testbed, ipv4_frame
from topologies import leaf_spine

PLAIN = Settings(max_frame=1100, ecn=Ecn(enabled=False))
CREDITS = replace(PLAIN, link=LinkLevel(cbfc=True))
GRANT, ASK = 1, 2
HOST_PORT = 1  # of leaf1, towards h1


def word(kind: int, count: int, priority: int = 3, oui: int = 0x02C105) -> bytes:
    """A frame about credits."""
    head = bytes.fromhex("0180c2000001020000000001") + b"\x88\x08\xff\xfe"
    said = oui.to_bytes(3, "big") + struct.pack("!BBI", kind, priority, count % 2**32)
    return (head + said).ljust(60, b"\0")


def numbered(number: int, inner: bytes) -> bytes:
    """A frame as a link that tries again numbers it."""
    return inner[:12] + b"\x88\xb6\x01" + number.to_bytes(3, "big") + inner[12:]


def answer(expected: int, first: int, behind: int) -> bytes:
    fields = b"".join(number.to_bytes(3, "big") for number in (expected, first, behind))
    return bytes(12) + b"\x88\xb6\x02" + fields


def bed_of(settings: Settings) -> Testbed:
    return Testbed.build(leaf_spine(2, 1, 2), settings)


def state_of(bed: Testbed, switch: str = "leaf1") -> tuple[int, ...]:
    """What a switch goes by: limits of all its queues, and what was freed."""
    plane = bed.network.switches[switch]
    cells = range(8, 8 * 6)
    return tuple(
        plane.register(name, cell)
        for name in ("credit_limit", "credit_spent", "credit_told")
        for cell in cells
    )


def dropped(bed: Testbed, reason: str, switch: str = "leaf1") -> int:
    return bed.network.switches[switch].dropped(DROP_REASONS.index(reason))


@pytest.mark.parametrize("settings", [PLAIN, CREDITS], ids=["pauses", "credits"])
def test_nobody_grants_a_switch_what_its_link_has_not(settings: Settings) -> None:
    bed = bed_of(settings)
    before = state_of(bed)
    rng = random.Random(1)
    for _ in range(200):
        port = rng.choice((HOST_PORT, 2, 3))  # two hosts, and the spine
        grant = word(GRANT, rng.randrange(2**20, 2**32), rng.randrange(256))
        bed.network.inject("leaf1", port, grant)
    assert state_of(bed) == before
    assert dropped(bed, "foreign_credit") == 200
    assert bed.network.switches["leaf1"].balance() == 0


def test_what_is_said_in_other_words_is_no_word_of_credits() -> None:
    bed = bed_of(CREDITS)
    before = state_of(bed)
    bed.network.inject("leaf1", HOST_PORT, word(3, 1000))
    bed.network.inject("leaf1", HOST_PORT, word(GRANT, 1000, oui=0x0080C2))
    bed.network.inject("leaf1", HOST_PORT, word(GRANT, 1000)[:22])
    assert state_of(bed) == before
    assert dropped(bed, "foreign_credit") == 1
    assert dropped(bed, "not_ip") == 1
    assert dropped(bed, "malformed") == 1


def test_who_sends_without_credit_takes_its_own_memory_alone() -> None:
    """A host that never stops, and another beside it that had no part in it."""
    bed = bed_of(CREDITS)
    network = bed.network
    leaf = network.switches["leaf1"]
    frame = ipv4_frame("10.0.1.1", "10.0.2.1", size=1000)
    for _ in range(2000):  # all at once: nothing leaves meanwhile
        leaf.plane.inject(HOST_PORT, frame, network.now)
    assert dropped(bed, "no_credit") > 1000
    assert dropped(bed, "headroom_full") == 0
    other = ipv4_frame("10.0.1.2", "10.0.2.2", size=1000)
    for _ in range(20):
        leaf.plane.inject(2, other, network.now)
    refused = dropped(bed, "no_credit")
    network.inject("leaf1", HOST_PORT, word(ASK, 123456))  # it lies about what it spent
    network.run(network.now + 10_000_000)
    arrived = [each for _, each in network.hosts["h4"].arrived]
    assert len(arrived) == 20
    assert dropped(bed, "no_credit") == refused
    assert not any(leaf.used().values())


def test_numbered_frames_of_a_host_are_no_ip() -> None:
    for settings in (PLAIN, replace(PLAIN, link=LinkLevel(llr=Replay.GO_BACK_N))):
        bed = bed_of(settings)
        frame = ipv4_frame("10.0.1.1", "10.0.2.1", size=200)
        bed.network.inject("leaf1", HOST_PORT, numbered(0, frame))
        bed.network.inject("leaf1", HOST_PORT, answer(5, 0, 5))
        bed.network.run(bed.network.now + 1_000_000)
        assert dropped(bed, "not_ip") == 2
        assert not bed.network.hosts["h3"].arrived
        assert not any(bed.network.switches["leaf1"].register("link_counts", n) for n in range(16))


@pytest.mark.parametrize("replay", [Replay.GO_BACK_N, Replay.SELECTIVE], ids=str)
@pytest.mark.parametrize("seed", range(4))
def test_rubbish_on_a_link_that_tries_again_loses_and_adds_nothing(
    replay: Replay, seed: int
) -> None:
    """Between frames of a flow come answers, frames and bytes that nobody sent."""
    rng = random.Random(seed)
    bed = bed_of(replace(PLAIN, link=LinkLevel(llr=replay)))
    network = bed.network
    strange = 0
    for mark in range(300):
        frame = ipv4_frame("10.0.1.1", "10.0.2.1", size=300, mark=mark)
        network.inject("leaf1", HOST_PORT, frame)
        inner = ipv4_frame("10.0.1.2", "10.0.2.1", size=300, mark=9999)
        far = rng.randrange(1 << 22, 3 << 22)  # a number that is not near
        rubbish = rng.choice(
            (numbered(far, inner), answer(far, far, far + 9), rng.randbytes(rng.randrange(14, 90)))
        )
        network.inject("spine1", 1, rubbish)
        strange += 1
        network.run(network.now + rng.choice((50, 500)))
    network.run(network.now + 1_000_000)
    arrived = [int.from_bytes(each[42:50], "big") for _, each in network.hosts["h3"].arrived]
    assert arrived == list(range(300))
    counts = [network.switches["spine1"].register("link_counts", 8 + n) for n in range(8)]
    assert counts[6] == strange
    assert all(switch.balance() == 0 for switch in network.switches.values())

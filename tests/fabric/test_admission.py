"""Who is let in, what is lost on purpose, and that every end has its reason and its count."""

from dataclasses import replace

import pytest

from controller import Loss, Settings
from controller.tables import DROP_REASONS, SwitchSite, pool_of
from params.access import Rule
from params.buffer import Buffer
from params.marking import Ecn
from params.pfc import Pfc
from tests.fabric.testbed import Testbed, ipv4_frame
from topologies import leaf_spine

PLAIN = Settings(max_frame=1100, ecn=Ecn(enabled=False))


def build(settings: Settings = PLAIN) -> Testbed:
    return Testbed.build(leaf_spine(2, 1, 2), settings)


def arrived(bed: Testbed, name: str) -> int:
    return len(bed.host(name).arrived)


BAD_CHECKSUM = bytearray(ipv4_frame("10.0.1.1", "10.0.1.2", size=100))
BAD_CHECKSUM[24] ^= 1
OPTIONS = bytearray(ipv4_frame("10.0.1.1", "10.0.1.2", size=100))
OPTIONS[14] = 0x46
VERSION = bytearray(ipv4_frame("10.0.1.1", "10.0.1.2", size=100))
VERSION[14] += 0x20
VERSION[24] -= 0x20  # the checksum is right all the same
BAD = {
    "malformed": [
        bytes(OPTIONS),
        bytes(VERSION),
        ipv4_frame("10.0.1.1", "10.0.1.2", size=100)[:33],
        bytes.fromhex("020000000001 020000000002 0800"),
        bytes(5),
        # telemetry whose length is less than its own header's
        ipv4_frame("10.0.1.1", "10.0.1.2", size=50, dst_port=20052)[:42]
        + bytes.fromhex("14 02 12b7 2000 0901 fd00 0000 0000 0000"),
    ],
    "not_ip": [
        bytes.fromhex("020000000001 020000000002 88cc") + bytes(50),
        bytes.fromhex("0180c2000001 020000000002 8808 0001 ffff") + bytes(42),
    ],
    "bad_checksum": [bytes(BAD_CHECKSUM)],
    "ttl_expired": [ipv4_frame("10.0.1.1", "10.0.1.2", size=100, ttl=ttl) for ttl in (0, 1)],
    "no_route": [ipv4_frame("10.0.1.1", "192.168.0.1", size=100)],
}


@pytest.mark.parametrize("reason", BAD)
def test_a_bad_frame_ends_with_its_reason(reason: str) -> None:
    bed = build()
    for frame in BAD[reason]:
        bed.network.inject("leaf1", 1, frame)
    bed.network.run(10_000)
    assert bed.drops() == {reason: len(BAD[reason])}
    assert sum(bed.switch("leaf1").counters("in_discards")[8:16]) == len(BAD[reason])  # port 1
    assert arrived(bed, "h2") == 0
    bed.check_accounts()


def test_no_bytes_whatever_upset_the_accounts() -> None:
    import random

    bed = build()
    random.seed(7)
    good = ipv4_frame("10.0.1.1", "10.0.2.1", size=200, dst_port=20052)
    for _ in range(3000):
        frame = bytearray(good[: random.randrange(1, 200)])
        for _ in range(random.randrange(6)):
            frame[random.randrange(len(frame))] = random.randrange(256)
        bed.network.inject("leaf1", 1, bytes(frame))
    bed.network.run(5_000_000)
    bed.check_accounts()
    assert all(not switch.plane.stats().held for switch in bed.network.switches.values())


def test_lossy_traffic_gets_its_share_of_the_pool_and_no_more() -> None:
    settings = replace(PLAIN, buffer=Buffer(bytes=1_000_000, alpha=1 / 4), pfc=Pfc(enabled=False))
    bed = build(settings)
    leaf = bed.switch("leaf1")
    pool = pool_of(SwitchSite(bed.fabric, bed.node("leaf1"), settings))
    assert pool == 1_000_000
    fits, used = 0, 0
    while used + 1000 <= (pool - used) // 4:
        fits, used = fits + 1, used + 1000
    for n in range(1 + fits + 10):  # the first is on the wire at once
        bed.network.inject("leaf1", 1, bed.frame("h1", "h2", mark=n))
    assert leaf.used()["buffer_pool_used"] == used
    bed.network.run(1_000_000)
    assert arrived(bed, "h2") == 1 + fits
    assert bed.drops() == {"buffer_full": 10}
    bed.check_accounts()


def test_a_queue_takes_no_more_than_is_free_whatever_alpha() -> None:
    settings = replace(PLAIN, buffer=Buffer(bytes=20_500, alpha=8), pfc=Pfc(enabled=False))
    bed = build(settings)
    # The first fills the pool but for 1,500 bytes; of those alpha allows the second eight times.
    for receiver in ("h2", "h3"):
        for n in range(25):
            bed.network.inject("leaf1", 1, bed.frame("h1", receiver, mark=n))
    assert bed.switch("leaf1").used()["buffer_pool_used"] == 20_000
    bed.network.run(1_000_000)
    assert set(bed.drops()) == {"buffer_full"}
    bed.check_accounts()


def test_a_host_reaches_its_own_tenants_hosts_only() -> None:
    bed = build(replace(PLAIN, tenants={"h1": 7, "h2": 8, "h3": 7, "h4": 8}))
    for src, dst in (("h1", "h3"), ("h1", "h2"), ("h1", "h4"), ("h4", "h2"), ("h4", "h3")):
        bed.send(src, dst, 10)
    bed.network.run(100_000)
    assert [arrived(bed, name) for name in ("h1", "h2", "h3", "h4")] == [0, 10, 10, 0]
    assert bed.drops() == {"other_tenant": 30}
    bed.check_accounts()


def test_who_has_no_tenant_reaches_only_those_who_have_none() -> None:
    bed = build(replace(PLAIN, tenants={"h1": 7}))
    for src, dst in (("h2", "h1"), ("h3", "h1"), ("h1", "h3"), ("h2", "h4"), ("h3", "h4")):
        bed.send(src, dst, 10)
    bed.network.run(100_000)
    assert [arrived(bed, name) for name in ("h1", "h2", "h3", "h4")] == [0, 0, 0, 20]
    assert bed.drops() == {"other_tenant": 30}


def test_the_first_rule_that_matches_decides() -> None:
    rules = (
        Rule(allow=True, src="10.0.1.1/32", dst_port=4791),
        Rule(allow=False, src="10.0.1.0/24"),
    )
    bed = build(replace(PLAIN, rules=rules))
    bed.send("h1", "h3", 5)
    bed.send("h1", "h3", 5, dst_port=80)
    bed.send("h2", "h3", 5)
    bed.send("h4", "h3", 5)
    bed.network.run(100_000)
    assert arrived(bed, "h3") == 10
    assert bed.drops() == {"denied": 10}


@pytest.mark.by_day(3)
@pytest.mark.parametrize("received", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 1.0])
def test_the_share_asked_for_is_lost(share: float, received: bool) -> None:
    """At the last switch: by the port from the spine, or by the one to the host."""
    loss = Loss("leaf2", 3 if received else 1, share, received=received, priority=3)
    bed = build(replace(PLAIN, losses=(loss,), pfc=Pfc(enabled=False)))
    bed.send("h1", "h3", 10_000, size=100)
    bed.send("h2", "h4", 1000, size=100, dscp=0)
    bed.network.run(5_000_000)
    lost = bed.drops().get("injected_loss", 0)
    counter = "in_discards" if received else "out_discards"
    assert bed.switch("leaf2").counters(counter)[8 * loss.port + 3] == lost
    assert arrived(bed, "h3") == 10_000 - lost
    assert arrived(bed, "h4") == 1000  # another priority
    deviation = (10_000 * share * (1 - share)) ** 0.5
    assert abs(lost - 10_000 * share) <= 5 * deviation
    bed.check_accounts()


def test_reasons_have_the_names_and_numbers_of_the_program() -> None:
    import re
    from pathlib import Path

    source = (Path(__file__).parents[2] / "p4src" / "types.p4").read_text()
    body = re.search(r"enum bit<8> drop_reason_t \{(.*?)\}", source, re.DOTALL)
    assert body
    numbered = re.findall(r"(\w+)\s*=\s*(\d+)", body[1])
    assert [(name.lower(), int(number)) for name, number in numbered] == [
        (name, number) for number, name in enumerate(DROP_REASONS)
    ]

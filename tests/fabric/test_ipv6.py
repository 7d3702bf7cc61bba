"""IPv6 through the fabric program: whatever IPv4 meets there, it meets too.

The judge of the sweep is the same world in IPv4, with frames of the same length, in which all that
IPv6 shares with it happens at the same nanosecond: admissions, pauses, marks, losses, reports.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from controller import Loss, Settings, SettingsError, switch_plans
from controller.reports import ReportError, decode
from controller.settings import HopTelemetry
from params.access import Rule
from params.buffer import Buffer
from params.data import Data
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from params.pfc import Pfc
from params.trim import Trim
from switch.dataplane import PacketIn
from tests.fabric.testbed import Testbed, ecn_of, ipv4_frame, ipv6_frame, is_ipv6, mark_of
from topologies import Fabric, IpVersion, leaf_spine

CPU = 500
PLAIN = Settings(max_frame=1100, ecn=Ecn(enabled=False))
NOWHERE = {4: "172.31.0.1", 6: "fd99::1"}


# --- the same world in either ------------------------------------------------------------------


class World(Data):
    """What may differ from one to the next, and the frames that are sent in it."""

    leaves: int
    hosts: int
    settings: Settings
    frames: tuple[tuple[str, str, dict[str, int], str | None], ...]  # from, to, what, forged as

    @classmethod
    def drawn(cls, seed: int) -> World:
        rng = random.Random(seed)
        leaves, hosts = rng.randrange(2, 4), rng.randrange(2, 4)
        names = [f"h{n}" for n in range(1, leaves * hosts + 1)]
        settings = Settings(
            max_frame=1500,
            pfc=Pfc(enabled=rng.random() < 0.6),
            buffer=Buffer(bytes=rng.choice([400_000, 1_000_000]), alpha=rng.choice([0.125, 1.0])),
            ecn=Ecn(kmin=5000, kmax=rng.choice([5000, 60_000])),
            lb=LoadBalancing(policy=rng.choice([Policy.ECMP, Policy.CONGA, Policy.FLOWLET])),
            telemetry=HopTelemetry(
                share=rng.choice([0.0, 0.3, 1.0]),
                drop_share=1.0,
                report_port=CPU,
                mtu=rng.choice([700, 0xFFFF]),
            ),
            tenants={name: rng.randrange(2) for name in names} if rng.random() < 0.4 else {},
            rules=tuple(
                Rule(
                    allow=rng.random() < 0.3,
                    protocol=rng.choice([None, 17]),
                    dst_port=rng.choice([80, 81]),
                    src_port=rng.choice([None, 50_000]),
                )
                for _ in range(rng.randrange(3))
            ),
            losses=(Loss("leaf1", hosts + 1, 0.1, received=rng.random() < 0.5),),
        )
        frames = tuple(
            (
                rng.choice(names),
                rng.choice([*names, *names, "nowhere"]),
                {
                    "size": rng.choice([90, 300, 1000, 1400]),
                    "dscp": rng.choice([26, 26, 0, 48, 10]),
                    "ecn": rng.randrange(4),
                    "ttl": rng.choice([1, 2, 3, 64, 64, 64]),
                    "src_port": rng.choice([49_152, 50_000]),
                    "dst_port": rng.choice([80, 81, 4791, 4791]),
                },
                rng.choice(names) if rng.random() < 0.05 else None,
            )
            for _ in range(400)
        )
        return cls(leaves, hosts, settings, frames)

    def lived(self, ip: IpVersion) -> dict[str, Any]:
        """All that came of it and does not tell the versions apart."""
        fabric = leaf_spine(self.leaves, 1, self.hosts).speaking(ip)
        bed = Testbed.build(fabric, self.settings)
        for number, (src, dst, what, forged) in enumerate(self.frames):
            bed.host(src).queue.append(_frame(bed, src, dst, forged, {**what, "mark": number}))
        for host in bed.network.hosts.values():
            bed.network.start(host)
        bed.network.run(3_000_000)
        bed.check_accounts()
        return {
            "arrived": {
                name: [
                    (at, len(frame), mark_of(frame), ecn_of(frame), _ttl(frame))
                    for at, frame in host.arrived
                ]
                for name, host in bed.network.hosts.items()
            },
            "paused": {name: host.pauses for name, host in bed.network.hosts.items()},
            "dropped": {name: _dropped(bed, name) for name in bed.network.switches},
            "reports": {name: list(_reports(bed, name)) for name in bed.network.switches},
        }


def _frame(bed: Testbed, src: str, dst: str, forged: str | None, what: dict[str, int]) -> bytes:
    fabric = bed.fabric
    make = ipv4_frame if fabric.ip == 4 else ipv6_frame
    return make(
        str(fabric.address(bed.node(forged or src))),
        NOWHERE[fabric.ip] if dst == "nowhere" else str(fabric.address(bed.node(dst))),
        src_mac=fabric.mac(bed.node(src)),
        dst_mac=fabric.mac(fabric.leaf_of(bed.node(src))),
        **what,
    )


def _ttl(frame: bytes) -> int:
    return frame[21] if is_ipv6(frame) else frame[22]


def _dropped(bed: Testbed, name: str) -> dict[int, int]:
    return {reason: n for reason in range(32) if (n := bed.switch(name).dropped(reason))}


def _reports(bed: Testbed, name: str) -> Iterator[tuple[Any, ...]]:
    for event in bed.switch(name).plane.drain():
        if isinstance(event, PacketIn):
            try:
                report = decode(event.data)
            except ReportError as error:  # of a packet that grew here before it was lost
                yield (str(error),)
                continue
            flow = report.flow
            ports = flow and (flow.protocol, flow.src_port, flow.dst_port)
            yield (report.sequence, report.drop_reason, report.hops, ports, report.mtu_exceeded)


@pytest.mark.by_day(4)
@pytest.mark.parametrize("seed", range(12))
def test_ipv6_meets_what_ipv4_meets(seed: int) -> None:
    world = World.drawn(seed)
    of_ipv4, of_ipv6 = world.lived(4), world.lived(6)
    assert sum(map(len, of_ipv4["arrived"].values())) > 20
    for what, found in of_ipv4.items():
        assert of_ipv6[what] == found, what


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 250))
def test_ipv6_meets_what_ipv4_meets_in_many_worlds(seed: int) -> None:
    world = World.drawn(seed)
    assert world.lived(6) == world.lived(4)


# --- what is IPv6's own ------------------------------------------------------------------------


def build(fabric: Fabric | None = None, settings: Settings = PLAIN) -> Testbed:
    return Testbed.build((fabric or leaf_spine(2, 1, 2)).speaking(6), settings)


def chosen(bed: Testbed, frames: list[bytes]) -> list[int]:
    """The uplink that each frame of leaf1's first host takes."""
    ports: list[int] = []
    bed.network.tap = lambda _when, name, port, _frame: (
        ports.append(port) if name == "leaf1" else None
    )
    for frame in frames:
        bed.network.inject("leaf1", 1, frame)
        bed.network.run(bed.network.now + 10_000)
    return ports


def test_the_flow_label_spreads_what_ports_do_not() -> None:
    bed = build(leaf_spine(2, 8, 1))
    frames = [bed.frame("h1", "h2", size=100, label=label) for label in range(4000)]
    counts = Counter(chosen(bed, frames))
    assert len(counts) == 8 and sum(counts.values()) == 4000
    off = sum((count - 500) ** 2 / 500 for count in counts.values())
    assert off < 29.9, counts  # chi-squared of 7 degrees: one in ten thousand is more
    assert len(set(chosen(bed, frames[7:8] * 50))) == 1  # a label's packets keep their way


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        ("fd00:0:0:1::1", "ff02::1:ff00:2"),  # neighbour solicitation
        ("fe80::1", "ff02::2"),  # router solicitation
        ("fd00:0:0:1::1", "ff05::1"),
        ("fe80::1", "fd00:0:0:2::1"),
        ("fd00:0:0:1::1", "febf:ffff::1"),
    ],
)
def test_what_belongs_to_its_link_stays_there(src: str, dst: str) -> None:
    bed = build()
    bed.network.inject("spine1", 1, ipv6_frame(src, dst, size=100, next_header=58))
    bed.network.run(10_000)
    assert bed.drops() == {"link_local": 1}
    bed.check_accounts()


@pytest.mark.parametrize(
    ("extension", "reason"), [(0, "link_local"), (44, "malformed"), (60, "malformed")]
)
def test_only_hop_by_hop_options_go_with_multicast(extension: int, reason: str) -> None:
    """As hosts say which groups they listen to (MLD)."""
    bed = build()
    frame = ipv6_frame("fe80::1", "ff02::16", size=100, next_header=extension)
    bed.network.inject("spine1", 1, frame)
    bed.network.run(10_000)
    assert bed.drops() == {reason: 1}
    bed.check_accounts()


@pytest.mark.parametrize("extension", [0, 43, 44, 51, 60, 135])
def test_ports_cannot_hide_behind_extension_headers(extension: int) -> None:
    bed = build(settings=replace(PLAIN, rules=(Rule(allow=False, dst_port=80),)))
    frame = bed.frame("h1", "h3", size=100, next_header=extension, dst_port=80)
    bed.network.inject("leaf1", 1, frame)
    bed.network.run(10_000)
    assert bed.drops() == {"malformed": 1}


def test_a_frame_cut_anywhere_ends_with_its_reason() -> None:
    bed = build()
    whole = bed.frame("h1", "h2", size=90)
    for length in range(14, 62):
        bed.network.inject("leaf1", 1, whole[:length])
    bed.network.inject("leaf1", 1, whole[:14] + b"\x40" + whole[15:])
    bed.network.run(100_000)
    assert bed.drops() == {"malformed": 49}


def test_ipv4_is_no_way_to_speak_as_another() -> None:
    """Nor does a port whose host has only one of the two let the other pass."""
    bed = build()
    bed.network.inject("leaf1", 1, ipv4_frame("10.0.1.1", "10.0.2.1", size=100))
    bed.network.inject("leaf1", 1, ipv4_frame("0.0.0.0", "10.0.2.1", size=100))
    bed.network.run(10_000)
    assert bed.drops() == {"forged_source": 2}
    other = Testbed.build(leaf_spine(2, 1, 2), PLAIN)
    for src in ("fd00:0:0:1::1", "::", "::a00:101"):
        other.network.inject("leaf1", 1, ipv6_frame(src, "fd00:0:0:2::1", size=100))
    other.network.run(10_000)
    assert other.drops() == {"forged_source": 3}


def test_one_switch_routes_both() -> None:
    """The tables stand beside each other: a spine that has the routes of both."""
    fabric = leaf_spine(2, 1, 1)
    bed = Testbed.build(fabric, PLAIN)
    beside = switch_plans(fabric.speaking(6), PLAIN)["spine1"]
    bed.switch("spine1").tell(tuple(e for e in beside if getattr(e, "table", "") == "ipv6_routes"))
    ports: Counter[tuple[int, bool]] = Counter()
    bed.network.tap = lambda _when, name, port, frame: (
        ports.update([(port, is_ipv6(frame))]) if name == "spine1" else None
    )
    for leaf in (1, 2):
        bed.network.inject("spine1", 1, ipv4_frame("10.0.9.1", f"10.0.{leaf}.1", size=100))
        bed.network.inject("spine1", 1, ipv6_frame("fd00::9", f"fd00:0:0:{leaf}::1", size=100))
    bed.network.run(10_000)
    assert ports == {(port, v6): 1 for port in (1, 2) for v6 in (False, True)}


def test_what_is_cut_keeps_a_whole_header() -> None:
    trim = Trim(enabled=True, threshold=20_000, size=64)
    settings = Settings(
        pfc=Pfc(enabled=False),
        ecn=Ecn(enabled=False),
        trim=trim,
        telemetry=HopTelemetry(share=0.5),
    )
    bed = build(settings=settings)
    for n in range(100):
        bed.network.inject("leaf1", 1, bed.frame("h1", "h2", size=1000, mark=n, ecn=1))
    bed.network.run(1_000_000)
    frames = [frame for _, frame in bed.host("h2").arrived]
    sizes = Counter(map(len, frames))
    assert sizes.keys() == {1000, 84} and sum(sizes.values()) == 100
    for frame in frames:
        word = int.from_bytes(frame[14:18], "big")
        is_cut = len(frame) == 84
        assert word >> 22 & 63 == (42 if is_cut else 26)
        assert word >> 20 & 3 == 1
        assert int.from_bytes(frame[18:20], "big") == len(frame) - 54
        assert int.from_bytes(frame[58:60], "big") == 1000 - 54  # what it had been
    assert sorted(map(mark_of, frames)) == list(range(100))
    bed.check_accounts()


def test_a_prefix_of_the_other_version_is_refused_with_the_cure() -> None:
    rules = (Rule(allow=False, src="10.0.1.0/24"),)
    with pytest.raises(SettingsError, match=r"10\.0\.1\.0/24 is of IPv4, .*link\.ip"):
        switch_plans(leaf_spine(2, 1, 1).speaking(6), replace(PLAIN, rules=rules))

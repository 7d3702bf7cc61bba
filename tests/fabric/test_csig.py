"""CSIG: a tag arrives with what its way's worst hop has to say, by a model that knows when frames
went into and came out of switches, and nothing of how switches work that out.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import field, replace
from functools import cached_property, partial
from itertools import count
from math import floor, log2

import pytest

from controller import Settings
from controller.settings import LinkSpec
from controller.tables import SwitchSite, link_number, stage
from params.csig import Csig, Signal, Tag, buckets
from params.data import Data
from params.load_balancing import LoadBalancing
from params.marking import Ecn
from params.pfc import Pfc
from params.trim import Trim
from tests.fabric.network import Switch
from tests.fabric.testbed import Testbed, ipv4_frame, ipv6_frame
from topologies import Fabric, Speed, fat_tree, leaf_spine, rail

GBPS = 1_000_000_000
TYPES = {Tag.COMPACT: b"\x99\x00", Tag.WIDE: b"\x99\x01"}
ALL_ONES = {Tag.COMPACT: 31, Tag.WIDE: 0xFFFFF}
GAP_NS = 20_000
SPEAKING = Settings(ecn=Ecn(enabled=False), csig=Csig(), lb=LoadBalancing(flowlet_gap_ns=GAP_NS))


def tag(kind: Tag, signal: int, value: int, locator: int = 0, *, cut: bool = False) -> bytes:
    """By the drafts' figures, written out."""
    if kind is Tag.COMPACT:
        return TYPES[kind] + (signal << 13 | cut << 12 | value << 7 | locator).to_bytes(2, "big")
    word = signal << 28 | value << 8 | cut << 7
    return TYPES[kind] + locator.to_bytes(2, "big") + word.to_bytes(4, "big")


def asking(frame: bytes, kind: Tag, signal: int) -> bytes:
    """A frame as its sender tags it."""
    value = ALL_ONES[kind] if signal < 2 else 0
    return frame[:12] + tag(kind, signal, value) + frame[12:]


def read(frame: bytes) -> tuple[Tag, int, int, int]:
    """Kind, signal, value, locator."""
    if frame[12:14] == TYPES[Tag.COMPACT]:
        word = int.from_bytes(frame[14:16], "big")
        return Tag.COMPACT, word >> 13, word >> 7 & 31, word & 127
    assert frame[12:14] == TYPES[Tag.WIDE]
    word = int.from_bytes(frame[16:20], "big")
    return Tag.WIDE, word >> 28, word >> 8 & 0xFFFFF, int.from_bytes(frame[14:16], "big")


def number_of(frame: bytes) -> int:
    at = 42 + read(frame)[0].bytes
    return int.from_bytes(frame[at : at + 8], "big")


def quantised(kind: Tag, signal: Signal, value: float) -> int:
    """As docs/csig.md has it, in logarithms where the switch has prefixes."""
    value = max(0.0, value)
    if kind is Tag.WIDE:
        step = {Signal.ABW: 8, Signal.ABW_SHARE: 1, Signal.DELAY: 8, Signal.QUEUE: 8}[signal]
        return min(floor(value / step), 0xFFFFF)
    if signal is Signal.ABW_SHARE:
        return min(floor(value / 2048), 31)
    first = 32 if signal is Signal.ABW else 16
    if value < first:
        return 0
    octave = floor(log2(value / first))
    return int(min(1 + 2 * octave + (value >= first * 2**octave * 1.5), 31))


class Stay(Data, frozen=False):
    """A frame in a switch."""

    port: int
    came: int
    began: float
    size: int


class Witness(Data, frozen=False):
    """When each frame went into and came out of each switch."""

    bed: Testbed
    stays: dict[tuple[str, int], Stay] = field(default_factory=dict)
    order: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        network, came = self.bed.network, dict[tuple[str, int], int]()
        inject = network.inject

        def enter(name: str, port: int, frame: bytes) -> None:
            came[name, number_of(frame)] = network.now
            inject(name, port, frame)

        def leave(when: int, name: str, port: int, frame: bytes) -> None:
            number, link = number_of(frame), self.link(name, port)
            began = when - link.delay_ns - (len(frame) + 24) * 8e9 / link.rate_bps
            self.stays[name, number] = Stay(port, came[name, number], began, len(frame))
            self.order[number].append(name)

        network.inject = enter
        network.tap = leave

    def link(self, name: str, port: int) -> LinkSpec:
        return SwitchSite(self.bed.fabric, self.bed.node(name), self.bed.settings).link(port)

    @cached_property
    def shared(self) -> dict[tuple[str, int], list[Stay]]:
        """By switch and port: who left by it, in turn."""
        found = defaultdict(list)
        for (name, _), stay in self.stays.items():
            found[name, stay.port].append(stay)
        return {key: sorted(stays, key=lambda stay: stay.began) for key, stays in found.items()}

    @cached_property
    def free(self) -> dict[tuple[str, int, float], float]:
        """The share of a link that was free when a frame left: an estimator, by all that left."""
        found = {}
        for (name, port), stays in self.shared.items():
            rate, window_ns = self.link(name, port).rate_bps, self.window_ns(name)
            held, last = 0.0, 0.0
            for stay in stays:
                held = held * max(0.0, 1 - (stay.began - last) / window_ns) + stay.size
                last = stay.began
                found[name, port, last] = max(0.0, 1 - held * 8e9 / (rate * window_ns))
        return found

    def window_ns(self, name: str) -> float:
        """A quarter of the flowlet gap, or four frames of the slowest cable; as a power of two."""
        ports = self.bed.fabric.ports(self.bed.node(name))
        slowest = min(self.link(name, port).rate_bps for port in ports)
        frames = 4 * (self.bed.settings.max_frame + 24) * 8e9 / slowest
        return 2.0 ** round(log2(max(GAP_NS / 4, frames)))

    def queue(self, name: str, stay: Stay) -> tuple[int, int]:
        """The bytes that waited where it did, itself included: at least, and at most."""
        others = self.shared[name, stay.port]
        at = stay.began
        least = sum(s.size for s in others if s.came < at - 2 < s.began)
        most = sum(s.size for s in others if s.came <= at + 2 and s.began > at - 2)
        return least, most


def bounds_of(witness: Witness, name: str, number: int, signal: Signal) -> tuple[float, float]:
    """What a hop has to say: no less, and no more, by what rounding to nanoseconds hides."""
    stay = witness.stays[name, number]
    rate = witness.link(name, stay.port).rate_bps
    if signal is Signal.DELAY:
        return stay.began - stay.came - 2, stay.began - stay.came + 2
    if signal is Signal.QUEUE:
        least, most = witness.queue(name, stay)
        return least * 8e9 / rate * 0.9999 - 1, most * 8e9 / rate * 1.0001 + 1
    unit = rate / 1e6 if signal is Signal.ABW else 65536
    free = witness.free[name, stay.port, stay.began]
    return (free - 0.004) * unit - 1, (free + 0.004) * unit + 1


def check(witness: Witness, frame: bytes, asked: Signal) -> bool:
    """Whether a hop had put itself in, having asserted all that there is to say."""
    kind, signal, value, locator = read(frame)
    number = number_of(frame)
    assert signal == asked
    worst = min if signal < 2 else max
    bounds, names = [], witness.order[number]
    start = ALL_ONES[kind] if signal < 2 else 0
    for name in names:
        low, high = bounds_of(witness, name, number, asked)
        bounds.append((quantised(kind, asked, low), quantised(kind, asked, high)))
    least = worst([start, *(low for low, _ in bounds)])
    most = worst([start, *(high for _, high in bounds)])
    assert least <= value <= most, (asked, value, bounds)
    if value == start:
        assert locator == 0
        return False
    may_be = set()
    for name, (low, high) in zip(names, bounds, strict=True):
        if low <= value <= high:
            node, port = witness.bed.node(name), witness.stays[name, number].port
            peer = witness.bed.fabric.ports(node)[port]
            is_compact = kind is Tag.COMPACT
            may_be.add(stage(node, peer) if is_compact else link_number(node, port) or 1)
    assert locator in may_be
    return True


def drawn(draw: random.Random) -> Fabric:
    fabric = draw.choice(
        (leaf_spine(3, 2, 2), leaf_spine(2, 1, 4), fat_tree(4), rail(2, 2, 1), leaf_spine(2, 3, 2))
    )
    rates = [draw.choice((10, 25, 100, 400)) * GBPS for _ in fabric.links]
    return fabric.at_speeds(
        {link.name: Speed(rate_bps=rate) for link, rate in zip(fabric.links, rates, strict=True)}
    )


@pytest.mark.by_day(10)
@pytest.mark.parametrize("seed", range(200))
def test_a_tag_tells_what_the_worst_hop_has_to_say(seed: int) -> None:
    draw = random.Random(seed)
    bed = Testbed.build(drawn(draw), SPEAKING, seed + 1)
    witness = Witness(bed)
    hosts = [host.name for host in bed.fabric.hosts]
    asked: dict[int, Signal] = {}
    kind = draw.choice(list(Tag))
    target = draw.choice(hosts)
    for source in draw.sample([host for host in hosts if host != target], min(3, len(hosts) - 1)):
        for _ in range(draw.choice((5, 30))):
            asked[len(asked)] = signal = draw.choice(list(Signal))
            size = draw.choice((100, 1000, 4000))
            frame = bed.frame(source, target, size=size, mark=len(asked) - 1)
            bed.host(source).queue.append(asking(frame, kind, signal))
        start = draw.choice((0, 3_000, 40_000))
        bed.network.at(start, partial(bed.network.start, bed.host(source)))
    bed.network.run(3_000_000)
    bed.check_accounts()
    assert not bed.drops()
    arrived = [frame for _, frame in bed.host(target).arrived]
    assert len(arrived) == len(asked)
    spoke = sum(check(witness, frame, asked[number_of(frame)]) for frame in arrived)
    assert spoke > len(arrived) / 4


def one_switch(settings: Settings = SPEAKING) -> Testbed:
    return Testbed.build(leaf_spine(1, 1, 2), settings)


MOMENTS = count(100_000, 100_000)


def through(switch: Switch, frame: bytes) -> list[bytes]:
    now = next(MOMENTS)
    switch.plane.inject(1, frame, now)
    switch.plane.service(now)
    return [sent for _, sent, _ in switch.plane.outputs()]


@pytest.mark.parametrize("kind", Tag)
def test_what_is_not_to_be_changed_passes_as_it_came(kind: Tag) -> None:
    """Another signal, a cut packet, a switch that speaks no CSIG; but for TTL and MAC addresses."""
    top = 7 if kind is Tag.COMPACT else 15
    for signal in (*range(4, top + 1), *Signal):
        for speaks, cut in ((True, signal < 4), (False, False)):
            bed = one_switch(SPEAKING if speaks else replace(SPEAKING, csig=None))
            plain = bed.frame("h1", "h2", size=200)
            given = tag(kind, signal, 9, 0, cut=cut)
            (out,) = through(bed.switch("leaf1"), plain[:12] + given + plain[12:])
            assert out[12 : 12 + len(given) + 2] == given + b"\x08\x00"
            assert out[12 + len(given) + 16 :][8:] == plain[28:][8:]


@pytest.mark.parametrize("ip", [4, 6])
def test_a_host_that_speaks_none_gets_packets_without(ip: int) -> None:
    fabric = leaf_spine(1, 1, 2).speaking(ip)
    bed = Testbed.build(fabric, replace(SPEAKING, csig=Csig(unaware=("h2",))))
    untagged = Testbed.build(fabric, SPEAKING)
    plain = bed.frame("h1", "h2", size=300)
    (expected,) = through(untagged.switch("leaf1"), plain)
    for kind in Tag:
        (out,) = through(bed.switch("leaf1"), asking(plain, kind, Signal.DELAY))
        assert out == expected
    with_vlan = plain[:12] + b"\x81\x00\x60\x05" + plain[12:]
    both = with_vlan[:16] + tag(Tag.WIDE, 0, 7) + with_vlan[16:]
    (out,) = through(bed.switch("leaf1"), both)
    assert out[12:18] == with_vlan[12:18]
    assert len(out) == len(with_vlan)


def test_bad_tags_end_with_a_reason() -> None:
    bed = one_switch()
    plain = ipv4_frame("10.0.1.1", "10.0.1.2", size=100)
    six = ipv6_frame("fd00::1", "fd00::2", size=100)
    bad = {
        "malformed": [
            plain[:12] + tag(kind, 0, 1)[:length]
            for kind, length in ((Tag.COMPACT, 3), (Tag.WIDE, 3), (Tag.WIDE, 7), (Tag.COMPACT, 2))
        ],
        "not_ip": [
            plain[:12] + tag(Tag.COMPACT, 0, 1) * 2 + plain[12:],
            plain[:12] + tag(Tag.WIDE, 0, 1) + tag(Tag.COMPACT, 0, 1) + plain[12:],
            plain[:12] + tag(Tag.WIDE, 0, 1) + b"\x81\x00\x60\x05" + plain[12:],
            plain[:12] + tag(Tag.COMPACT, 0, 1) + b"\x88\x08" + bytes(46),
        ],
    }
    bad["malformed"] += [
        plain[:12] + tag(Tag.COMPACT, 0, 1) + plain[12:20],
        plain[:12] + tag(Tag.WIDE, 0, 1) + b"\x86\xdd" + plain[14:],
        six[:12] + tag(Tag.WIDE, 0, 1) + six[12:40],
    ]
    for frames in bad.values():
        for frame in frames:
            assert through(bed.switch("leaf1"), frame) == []
    assert bed.drops() == {reason: len(frames) for reason, frames in bad.items()}
    bed.check_accounts()


def test_buckets_leave_no_value_out() -> None:
    """A compact tag's buckets, as prefixes, are what `quantised` makes of any value."""
    draw = random.Random(1)
    values = [0, 1, 15, 16, 31, 32, 47, 48, 65535, 65536, 2**20, 2**32 - 1]
    values += [draw.randrange(2 ** draw.randrange(1, 32)) for _ in range(2000)]
    for signal in Signal:
        for value in values:
            found = max(
                (
                    bucket
                    for bucket in buckets(signal)
                    if not bucket.length
                    or value >> 32 - bucket.length == bucket.least >> 32 - bucket.length
                ),
                key=lambda bucket: bucket.length,
            )
            assert found.number == quantised(Tag.COMPACT, signal, value), (signal, value)
            assert found.least <= value or found.number == 31


def test_a_cut_packet_says_so_to_hops_behind() -> None:
    trim = Trim(enabled=True, threshold=5_000)
    settings = replace(SPEAKING, pfc=Pfc(enabled=False), trim=trim)
    for kind in Tag:
        bed = Testbed.build(leaf_spine(2, 1, 3), settings)
        for source in ("h1", "h2", "h3"):
            frames = [bed.frame(source, "h4", size=1000, mark=n) for n in range(60)]
            bed.host(source).queue += [asking(frame, kind, Signal.DELAY) for frame in frames]
            bed.network.start(bed.host(source))
        bed.network.run(1_000_000)
        bed.check_accounts()
        sizes = defaultdict(list)
        for _, frame in bed.host("h4").arrived:
            at = 15 if kind is Tag.COMPACT else 19
            flag = bool(frame[14] & 0x10) if kind is Tag.COMPACT else bool(frame[at] & 0x80)
            sizes[flag].append(len(frame))
        assert set(sizes[False]) == {1000 + kind.bytes}
        assert set(sizes[True]) == {64 + kind.bytes}
        assert len(sizes[True]) > 20

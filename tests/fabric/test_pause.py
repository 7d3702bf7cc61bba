"""Pause frames: what is asked for and when, what is obeyed, and that nothing lossless is lost."""

import itertools
import math
import random
from itertools import pairwise

import pytest

from controller import LinkSpec, Settings
from controller.headroom import headroom
from controller.tables import SwitchSite, headroom_of, pool_of
from params.buffer import Buffer
from params.data import Data
from params.marking import Ecn
from params.pfc import Pfc, Remedy
from tests.fabric.network import NS, PFC_PREFIX
from tests.fabric.testbed import Testbed
from topologies import leaf_spine

RATE = 100_000_000_000
FRAME = 1100
LOSSLESS = 3
HEADROOM_FULL, WATCHDOG = 8, 9


def settings(**changes: object) -> Settings:
    usual = {"max_frame": FRAME, "ecn": Ecn(enabled=False), "pfc": Pfc(response_ns=0)}
    return Settings(**usual | changes)


def pause_frame(quanta: int, classes: int = 1 << LOSSLESS) -> bytes:
    """802.1Qbb, spelled out."""
    timers = b"".join((quanta if classes >> i & 1 else 0).to_bytes(2, "big") for i in range(8))
    head = PFC_PREFIX + bytes.fromhex("020000000009 8808 0101") + classes.to_bytes(2, "big")
    return (head + timers).ljust(60, b"\0")


def incast(bed: Testbed, until: int, **fields: int) -> None:
    """Every host but the last sends to the last at full rate."""
    *senders, receiver = (host.name for host in bed.fabric.hosts)
    for name in senders:
        frame = bed.frame(name, receiver, size=FRAME, **fields)
        bed.host(name).source = lambda _, f=frame: f
        bed.network.start(bed.host(name))
    bed.network.run(until)
    for name in senders:
        bed.host(name).source = None


def test_incast_loses_nothing_and_pauses_every_sender() -> None:
    bed = Testbed.build(leaf_spine(4, 2, 2), settings())
    incast(bed, 800_000)
    bed.network.run(2_400_000)
    assert bed.drops() == {}
    received = [len(bed.host(f"h{n}").pauses) for n in range(1, 9)]
    assert all(received[:7]) and not received[7]
    # The receiver's link never idled while there was something to send.
    assert len(bed.host("h8").arrived) >= 800_000 / ((FRAME + 24) * 8 / 100) * 0.99
    bed.check_accounts()


def test_the_same_incast_without_pfc_loses() -> None:
    bed = Testbed.build(leaf_spine(4, 2, 2), settings(pfc=Pfc(response_ns=0, enabled=False)))
    incast(bed, 500_000)
    bed.network.run(1_500_000)
    assert set(bed.drops()) == {"buffer_full"}
    assert not any(host.pauses for host in bed.network.hosts.values())
    bed.check_accounts()


def test_a_lossy_priority_is_never_paused() -> None:
    bed = Testbed.build(leaf_spine(4, 2, 2), settings())
    incast(bed, 300_000, dscp=0)
    bed.network.run(1_000_000)
    assert set(bed.drops()) == {"buffer_full"}
    assert not any(host.pauses for host in bed.network.hosts.values())
    bed.check_accounts()


def overrun(
    headroom: int | None, phase: int, link: LinkSpec, frame: int = FRAME, max_frame: int = FRAME
) -> int:
    """Frames lost when a sender at full rate meets a receiver that stands still.

    The way back to the sender is busy with the largest frames, the first of which starts at
    `phase`: XOFF has to wait for one of them.
    """
    own = settings(
        max_frame=max_frame,
        pfc=Pfc(response_ns=0, headroom=headroom, watchdog_ns=0),
        host_link=link,
        buffer=Buffer(bytes=3 * computed_headroom(link, max_frame) + 64 * max_frame, alpha=1 / 64),
    )
    bed = Testbed.build(leaf_spine(1, 1, 2), own)
    bed.network.inject("leaf1", 2, pause_frame(0xFFFF))
    for src, dst, dscp in (("h1", "h2", 26), ("h2", "h1", 0)):
        data = bed.frame(src, dst, size=frame, dscp=dscp)
        bed.host(src).source = lambda _, f=data: f
    bed.network.start(bed.host("h1"))
    bed.network.at(phase, lambda: bed.network.start(bed.host("h2")))
    bed.network.run(6 * link.delay_ns + 80 * (max_frame + 24) * 8 * NS // link.rate_bps)
    assert bed.host("h1").pauses
    assert bed.network.switches["leaf1"].balance() == 0
    return bed.switch("leaf1").dropped(HEADROOM_FULL)


LINKS = {
    "100G-200m": LinkSpec(RATE, 1000),
    "100G-20m": LinkSpec(RATE, 100),
    "400G-60m": LinkSpec(4 * RATE, 300),
    "25G-200m": LinkSpec(RATE // 4, 1000),
}


def computed_headroom(link: LinkSpec, max_frame: int = FRAME) -> int:
    fabric = leaf_spine(1, 1, 2)
    own = settings(host_link=link, max_frame=max_frame)
    return headroom_of(SwitchSite(fabric, fabric.node("leaf1"), own), 1)


def worst_overrun(
    headroom: int | None, link: LinkSpec, frame: int = FRAME, phases: int = 16
) -> int:
    """The most frames that any phase of the way back loses."""
    frame_ns = (frame + 24) * 8 * NS / link.rate_bps
    steps = {round(frame_ns * step / phases) for step in range(phases)}
    return max(overrun(headroom, phase, link, frame, frame) for phase in steps)


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_headroom_is_enough_and_one_frame_less_is_not(link: LinkSpec) -> None:
    assert worst_overrun(None, link) == 0
    assert worst_overrun(computed_headroom(link) - FRAME, link) == 1


@pytest.mark.by_day(3)
@pytest.mark.parametrize("gbps", [25, 50, 100, 200, 400, 800])
def test_headroom_is_exact_at_any_speed_length_and_frame(gbps: int) -> None:
    draw = random.Random(gbps)
    for _ in range(3):
        link = LinkSpec(gbps * 10**9, round(10 ** draw.uniform(1.5, 3.7)))
        frame = draw.randrange(300, 9300)
        computed = computed_headroom(link, frame)
        # The last frame comes in only if XOFF had to wait for nearly a whole one: in this share of
        # the phases, and they are tried finely enough to meet it.
        share = computed % frame / frame
        if share < 0.05:
            continue
        phases = max(4, math.ceil(1.5 / share))
        assert worst_overrun(None, link, frame, phases) == 0, (link, frame)
        assert worst_overrun(computed - frame, link, frame, phases) == 1, (link, frame)


SPEEDS = (25, 50, 100, 200, 400, 800)
FEEDERS = 8  # hosts of a leaf, whose frames all leave by one uplink


class Pair(Data):
    """Hosts' links of one speed, the fabric's of another, and frames that show a bound exactly."""

    host: LinkSpec
    fabric: LinkSpec
    frame: int

    def settings(self, room: int, ports: int, pool: int) -> Settings:
        """So much headroom at every port, and so much for all to share at a switch of so many."""
        return settings(
            max_frame=self.frame,
            pfc=Pfc(response_ns=0, headroom=room, watchdog_ns=0),
            host_link=self.host,
            fabric_link=self.fabric,
            buffer=Buffer(bytes=ports * room + pool, alpha=1 / 8),
        )

    def phases(self, link: LinkSpec) -> list[int]:
        """When the way back may begin to be busy: finely enough that some pause frame has to wait
        for all but nothing of a frame."""
        frame_ns = (self.frame + 24) * 8 * NS / link.rate_bps
        share = headroom(link, self.frame) % self.frame / self.frame
        steps = max(8, math.ceil(1.5 / share))
        return sorted({round(frame_ns * step / steps) for step in range(steps)})


def stand_still(bed: Testbed, sender: str, towards: str, until: int) -> None:
    """Let a switch hear, from now on and until then, that it may not send there."""
    port = bed.fabric.port_towards(bed.node(sender), bed.node(towards))
    half_ns = 0xFFFF * 512 * NS // bed.settings.fabric_link.rate_bps // 2
    for at in range(bed.network.now, until, half_ns):
        bed.network.at(at, lambda: bed.network.inject(sender, port, pause_frame(0xFFFF)))


def time_for(size: int, link: LinkSpec) -> int:
    """What so many bytes take on a link, there and back, with time to spare."""
    return size * 10 * NS // link.rate_bps + 6 * link.delay_ns


def lost_from_host(pair: Pair, spared: int, phase: int) -> int:
    """Frames lost where a host at full rate meets an uplink that stands still.

    The way back to the host is busy with frames of its neighbour's.
    """
    room, pool = headroom(pair.host, pair.frame) - spared, 64 * pair.frame
    bed = Testbed.build(leaf_spine(2, 1, 2), pair.settings(room, 3, pool))
    network = bed.network
    end = time_for(pool // 8 + room + 16 * pair.frame, pair.host)
    stand_still(bed, "leaf1", "spine1", end)
    for src, dst, dscp, at in (("h1", "h3", 26, 0), ("h2", "h1", 0, phase)):
        frame = bed.frame(src, dst, size=pair.frame, dscp=dscp)
        bed.host(src).source = lambda _, f=frame: f
        network.at(at, lambda src=src: network.start(bed.host(src)))
    network.run(end)
    assert bed.host("h1").pauses
    assert bed.switch("leaf1").balance() == 0
    return bed.switch("leaf1").dropped(HEADROOM_FULL)


def lost_from_leaf(pair: Pair, spared: int, phase: int) -> int:
    """Frames lost where a leaf at full rate meets a spine's port that stands still.

    Hosts have filled the leaf first, while its uplink stood still, with more than the spine takes:
    slower or faster than the fabric, they do not matter from then on. The way back is busy.
    """
    room = headroom(pair.fabric, pair.frame) - spared
    pool = 8 * room + 64 * pair.frame
    bed = Testbed.build(leaf_spine(2, 1, FEEDERS), pair.settings(room, FEEDERS + 1, pool))
    fabric, network = bed.fabric, bed.network
    leaf, spine, beyond = (bed.node(name) for name in ("leaf1", "spine1", "leaf2"))
    each = pool * 2 // 5 // FEEDERS // pair.frame
    filled = time_for(each * (pair.frame + 24), pair.host)
    end = filled + time_for(2 * pool, pair.fabric)
    stand_still(bed, "spine1", "leaf2", end)
    stand_still(bed, "leaf1", "spine1", filled)
    for number in range(FEEDERS):
        bed.send(f"h{number + 1}", f"h{FEEDERS + 1}", each, size=pair.frame)
    network.run(filled)
    network.inject("leaf1", fabric.port_towards(leaf, spine), pause_frame(0))
    back = bed.frame(f"h{FEEDERS + 1}", "h1", size=pair.frame, dscp=0)
    frame_ps = (pair.frame + 24) * 8 * 1000 * NS // pair.fabric.rate_bps
    entry = fabric.port_towards(spine, beyond)
    for number in range((end - filled) * 1000 // frame_ps):
        at = filled + phase + number * frame_ps // 1000
        network.at(at, lambda: network.inject("spine1", entry, back))
    network.run(end)
    uplink = fabric.port_towards(spine, leaf) * 8 + LOSSLESS
    assert bed.switch("spine1").counter("xoff_sent", uplink) > 0
    assert not any(bed.host(f"h{number + 1}").pauses for number in range(FEEDERS))
    assert all(switch.balance() == 0 for switch in network.switches.values())
    return bed.switch("spine1").dropped(HEADROOM_FULL)


def exact(host: int, fabric: int, seed: int) -> None:
    """At both kinds of link: nothing is lost with what is computed, one frame with a frame less."""
    draw = random.Random(seed)
    links = [LinkSpec(gbps * 10**9, round(10 ** draw.uniform(1.5, 3))) for gbps in (host, fabric)]
    for link, lost in zip(links, (lost_from_host, lost_from_leaf), strict=True):
        frame = draw.randrange(600, 9300)
        while headroom(link, frame) % frame < 0.1 * frame:  # met in too few of the phases
            frame = draw.randrange(600, 9300)
        pair = Pair(*links, frame=frame)
        phases = pair.phases(link)
        assert max(lost(pair, 0, phase) for phase in phases) == 0, (pair, lost)
        assert max(lost(pair, frame, phase) for phase in phases) == 1, (pair, lost)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(("host", "fabric"), [(25, 800), (400, 100)])
def test_headroom_is_exact_between_two_speeds(host: int, fabric: int) -> None:
    exact(host, fabric, seed=host + fabric)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("host", "fabric"), list(itertools.product(SPEEDS, SPEEDS)))
def test_headroom_is_exact_between_any_two_speeds(host: int, fabric: int, seed: int) -> None:
    exact(host, fabric, 1000 * host + fabric + seed)


@pytest.mark.parametrize("frame", [60, 200, 700])
def test_headroom_is_enough_for_smaller_frames_too(frame: int) -> None:
    assert max(overrun(None, phase, LINKS["100G-200m"], frame) for phase in range(0, 90, 15)) == 0


def test_xoff_and_xon_come_where_the_thresholds_say() -> None:
    """One sender, a receiver that stands still: every byte of the account can be foretold."""
    own = settings(
        pfc=Pfc(response_ns=0, xon_gap=5 * FRAME, watchdog_ns=0),
        buffer=Buffer(bytes=400_000, alpha=0.125),
    )
    bed = Testbed.build(leaf_spine(1, 1, 2), own)
    leaf = bed.switch("leaf1")
    pool = pool_of(SwitchSite(bed.fabric, bed.node("leaf1"), own))
    # Admitted while used + size <= alpha * (pool - used).
    fits, used = 0, 0
    while used + FRAME <= (pool - used) // 8:
        fits, used = fits + 1, used + FRAME

    bed.network.inject("leaf1", 2, pause_frame(0xFFFF))
    for n in range(fits):
        bed.network.inject("leaf1", 1, bed.frame("h1", "h2", size=FRAME, mark=n))
    bed.network.run(20_000)
    assert bed.host("h1").pauses == []
    bed.network.inject("leaf1", 1, bed.frame("h1", "h2", size=FRAME, mark=fits))
    asked = bed.network.now
    bed.network.run(40_000)
    ((when, quanta),) = bed.host("h1").pauses
    assert (when - asked, quanta) == (1000 + 84 * 8 // 100 + 1, 0xFFFF)
    assert leaf.used() == {
        "buffer_pool_used": used,
        "buffer_in_used": used,
        "buffer_in_headroom": FRAME,
        "buffer_out_used": used + FRAME,
        "buffer_shared": used,
        "buffer_headroom_used": FRAME,
    }

    bed.network.inject("leaf1", 2, pause_frame(0))
    released = bed.network.now
    bed.network.run(200_000)
    assert [quanta for _, quanta in bed.host("h1").pauses] == [0xFFFF, 0]
    # Headroom empties with the first departure; XON leaves with the one that reaches the mark.
    departures = 1 + 5
    frame_ns = (FRAME + 24) * 8 / 100
    xon_at = bed.host("h1").pauses[1][0]
    assert xon_at == pytest.approx(released + (departures - 1) * frame_ns + 1000 + 6.72, abs=2)
    assert len(bed.host("h2").arrived) == fits + 1
    bed.check_accounts()


def test_frames_received_hold_the_queue_for_their_quanta_and_no_longer() -> None:
    bed = Testbed.build(leaf_spine(1, 1, 2), settings())
    bed.network.inject("leaf1", 2, pause_frame(100))  # 512 ns
    for n, dscp in ((0, 26), (1, 0)):
        bed.network.inject("leaf1", 1, bed.frame("h1", "h2", dscp=dscp, mark=n))
    bed.network.run(10_000)
    lossy, lossless = bed.host("h2").arrived
    flight = 1000 + 1024 * 8 // 100 + 1
    assert lossy[0] == flight
    assert 512 + flight - 1 <= lossless[0] <= 512 + flight + 1
    leaf = bed.switch("leaf1")
    assert leaf.register("pause_total", 2 * 8 + LOSSLESS) == 512
    assert leaf.counter("xoff_received", 2 * 8 + LOSSLESS) == 1


def test_a_pause_for_lossy_classes_is_ignored() -> None:
    bed = Testbed.build(leaf_spine(1, 1, 2), settings())
    bed.network.inject("leaf1", 2, pause_frame(0xFFFF, classes=0xFF & ~(1 << LOSSLESS)))
    bed.send("h1", "h2", 3, dscp=0)
    bed.network.run(10_000)
    assert len(bed.host("h2").arrived) == 3


def test_a_pause_is_renewed_along_a_chain_in_which_nothing_moves() -> None:
    """The receiver stands still for 5 ms; all the way back, pauses must outlive their quanta."""
    bed = Testbed.build(
        leaf_spine(2, 1, 1),
        settings(pfc=Pfc(response_ns=0, watchdog_ns=0), buffer=Buffer(bytes=200_000, alpha=1 / 64)),
    )
    for at in range(0, 5_000_000, 150_000):
        bed.network.at(at, lambda: bed.network.inject("leaf2", 1, pause_frame(0xFFFF)))
    frame = bed.frame("h1", "h2", size=FRAME)
    bed.host("h1").source = lambda _: frame
    bed.network.start(bed.host("h1"))
    bed.network.run(4_900_000)
    assert bed.drops() == {}
    assert bed.host("h2").arrived == []
    pauses = bed.host("h1").pauses
    assert all(quanta == 0xFFFF for _, quanta in pauses)
    gaps = [b - a for (a, _), (b, _) in pairwise(pauses)]
    assert max(gaps) < 0xFFFF * 512 * NS // RATE
    bed.host("h1").source = None
    bed.network.run(8_000_000)
    assert len(bed.host("h2").arrived) > 0
    bed.check_accounts()


@pytest.mark.by_day(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_pause_is_renewed_by_the_clock_whatever_leaves(seed: int) -> None:
    """Packets leave by lot, often or for a while not at all, and never enough for an XON."""
    draw, renewal, crowd = random.Random(seed), 0xFFFF * 512 * NS / RATE / 2, 200
    pfc = Pfc(response_ns=0, xon_gap=crowd * FRAME, headroom=crowd * FRAME, watchdog_ns=0)
    bed = Testbed.build(
        leaf_spine(1, 1, 2), settings(pfc=pfc, buffer=Buffer(bytes=4_000_000, alpha=0.125))
    )
    leaf, network, frame = bed.switch("leaf1"), bed.network, bed.frame("h1", "h2", size=FRAME)
    bed.host("h1").obeys = False
    network.inject("leaf1", 2, pause_frame(0xFFFF))
    while not leaf.used()["buffer_in_headroom"]:
        network.inject("leaf1", 1, frame)
    began, at, departures = network.now, network.now, 0
    while departures < crowd // 2:
        at += round(draw.choice((0.05, 0.6, 1.7)) * draw.random() * renewal) + 1000
        for after, quanta in ((0, 0), (1, 0xFFFF)):
            network.at(at + after, lambda q=quanta: network.inject("leaf1", 2, pause_frame(q)))
        departures += 1
    network.run(at)
    assert len(bed.host("h2").arrived) in (departures, departures - 1)
    flight = 1000 + 84 * 8 // 100 + 1
    expected = [
        began + flight + n * renewal for n in range(1 + int((at - began - flight) / renewal))
    ]
    assert [when for when, _ in bed.host("h1").pauses] == pytest.approx(expected, abs=len(expected))
    assert {quanta for _, quanta in bed.host("h1").pauses} == {0xFFFF}


STUCK = 2 * 8 + LOSSLESS  # leaf1's queue towards h2


class Stuck:
    """A queue that its receiver pauses, under a watchdog drawn by lot, and what came of it."""

    def __init__(self, seed: int, remedy: Remedy = Remedy.DROP) -> None:
        self.draw = random.Random(seed)
        poll = self.draw.randrange(20_000, 120_000)
        self.pfc = Pfc(
            watchdog_ns=poll * self.draw.randrange(1, 6),
            watchdog_restore_ns=poll * self.draw.randrange(1, 6),
            watchdog_poll_ns=poll,
            watchdog_action=remedy,
        )
        self.bed = Testbed.build(leaf_spine(1, 1, 2), settings(pfc=self.pfc))
        self.leaf = self.bed.switch("leaf1")

    def pauses(self, begin: int, end: int) -> int:
        """Pause frames from time to time, none later than a poll after the one before; the last."""
        at = last = begin
        while at < end:
            self.bed.network.at(
                at, lambda: self.bed.network.inject("leaf1", 2, pause_frame(0xFFFF))
            )
            last = at
            at += self.draw.randrange(self.pfc.poll_ns // 4, self.pfc.poll_ns)
        return last

    @property
    def storms(self) -> int:
        return self.leaf.counter("pause_storms", STUCK)

    @property
    def dropped(self) -> int:
        return self.leaf.dropped(WATCHDOG)


@pytest.mark.parametrize("seed", range(8))
def test_the_watchdog_drops_what_is_stuck_and_nothing_before_or_after(seed: int) -> None:
    stuck = Stuck(seed)
    bed, every = stuck.bed, stuck.pfc.poll_ns
    last = stuck.pauses(0, 12 * every + 2 * stuck.pfc.watchdog_ns)
    bed.network.run(every // 3)
    count = stuck.draw.randrange(1, 20)
    bed.send("h1", "h2", count, size=FRAME)
    began = bed.network.now
    bed.network.run(began + stuck.pfc.watchdog_ns - 1)
    assert (stuck.storms, stuck.dropped) == (0, 0)
    bed.network.run(began + stuck.pfc.watchdog_ns + 3 * every)
    assert (stuck.storms, stuck.dropped) == (1, count)
    bed.network.run(last)
    bed.send("h1", "h2", 5, size=FRAME)
    over = last + max(stuck.pfc.restore_ns, 0xFFFF * 512 * NS // RATE + 1)
    bed.network.run(over - 1)
    assert stuck.dropped == count + 5  # still
    bed.network.run(over + every)
    bed.send("h1", "h2", 7, size=FRAME)
    bed.network.run(bed.network.now + 10_000)
    assert len(bed.host("h2").arrived) == 7
    assert (stuck.storms, stuck.dropped) == (1, count + 5)
    bed.check_accounts()
    # Nobody pauses any more: nothing is to be looked at.
    bed.network.run(bed.network.now + 2 * every)
    assert stuck.leaf.plane.service(bed.network.now) is None


def test_a_stuck_queue_may_be_forwarded_or_only_told_of() -> None:
    forwards = Stuck(1, Remedy.FORWARD)
    alerts = Stuck(1, Remedy.ALERT)
    for stuck in (forwards, alerts):
        last = stuck.pauses(0, 3 * stuck.pfc.watchdog_ns + 10 * stuck.pfc.poll_ns)
        stuck.bed.network.run(100)
        stuck.bed.send("h1", "h2", 9, size=FRAME)
        stuck.bed.network.run(last)
        assert (stuck.storms, stuck.dropped) == (1, 0)
    assert len(forwards.bed.host("h2").arrived) == 9
    assert alerts.bed.host("h2").arrived == []
    alerts.bed.network.inject("leaf1", 2, pause_frame(0))
    alerts.bed.network.run(alerts.bed.network.now + 10_000)
    assert len(alerts.bed.host("h2").arrived) == 9


@pytest.mark.parametrize("seed", range(4))
def test_a_queue_that_moves_is_congested_and_not_stuck(seed: int) -> None:
    """However long it is paused for most of the time: a packet now and then is life enough."""
    stuck = Stuck(seed)
    network = stuck.bed.network
    frame = stuck.bed.frame("h1", "h2", size=FRAME)
    for n in range(60):
        network.inject("leaf1", 1, frame)
        for at, quanta in ((0, 0), (1, 0xFFFF), (stuck.pfc.poll_ns // 2, 0xFFFF)):
            when = n * stuck.pfc.poll_ns * 9 // 10 + at
            network.at(when, lambda q=quanta: network.inject("leaf1", 2, pause_frame(q)))
    network.run(60 * stuck.pfc.poll_ns)
    assert (stuck.storms, stuck.dropped) == (0, 0)
    assert 30 < len(stuck.bed.host("h2").arrived) <= 60


@pytest.mark.parametrize("asymmetric", [False, True])
def test_only_asymmetric_pauses_hold_what_may_be_lost(asymmetric: bool) -> None:
    bed = Testbed.build(
        leaf_spine(1, 1, 2), settings(pfc=Pfc(response_ns=0, asymmetric=asymmetric))
    )
    bed.network.inject("leaf1", 2, pause_frame(0xFFFF, classes=0xFF))
    bed.send("h1", "h2", 3, dscp=0)
    bed.network.run(100_000)
    assert len(bed.host("h2").arrived) == (0 if asymmetric else 3)
    bed.network.inject("leaf1", 2, pause_frame(0, classes=0xFF))
    bed.network.run(200_000)
    assert len(bed.host("h2").arrived) == 3


def test_a_host_that_pauses_all_classes_can_be_paused_itself() -> None:
    """Pause frames to it are in no class that it can hold: else its own would overrun headroom."""
    own = settings(
        pfc=Pfc(response_ns=0, asymmetric=True), buffer=Buffer(bytes=100_000, alpha=1 / 64)
    )
    bed = Testbed.build(leaf_spine(1, 1, 2), own)
    for port in (1, 2):
        bed.network.inject("leaf1", port, pause_frame(0xFFFF, classes=0xFF))
    bed.send("h2", "h1", 100, size=FRAME)
    bed.network.run(100_000)
    assert bed.host("h2").pauses
    assert not bed.host("h1").arrived
    assert bed.drops() == {}
    assert bed.switch("leaf1").dropped(HEADROOM_FULL) == 0
    bed.check_accounts()


def test_the_frame_on_the_wire_is_802_1qbb() -> None:
    bed = Testbed.build(leaf_spine(1, 1, 3), settings(buffer=Buffer(bytes=300_000, alpha=1 / 64)))
    sent: list[tuple[int, bytes]] = []
    bed.network.tap = lambda _when, _name, port, frame: (
        sent.append((port, frame)) if frame[12:14] == b"\x88\x08" else None
    )
    incast(bed, 50_000)
    bed.network.run(500_000)
    xoff = next(frame for port, frame in sent if port == 1)
    assert len(xoff) == 60
    assert xoff[:6] == PFC_PREFIX
    assert xoff[6:12].hex(":") == bed.fabric.mac(bed.node("leaf1"))
    assert xoff[12:18].hex() == "880801010008"
    assert xoff[18:34].hex() == "000000000000ffff0000000000000000"
    assert xoff[34:] == bytes(26)

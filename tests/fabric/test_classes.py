"""Traffic classes: what tells them, who serves them, and what each may lose."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from controller import LinkSpec, Settings
from params.buffer import Buffer
from params.classes import DSCP_PRIORITIES, Classes
from params.data import Data
from params.load_balancing import LoadBalancing, Policy
from params.marking import ClassMarking, Ecn
from params.pfc import Pfc
from params.schedule import Schedule
from tests.fabric.test_pause import pause_frame
from tests.fabric.testbed import Testbed, ecn_of
from topologies import Fabric, leaf_spine
from topologies.fabric import Speed

GBPS = 1_000_000_000
OVERHEAD = 24
DSCP = {0: 0, 1: 8, 2: 16, 3: 26, 4: 32, 5: 40}


def star(senders: int, receiver_bps: int) -> Fabric:
    """One leaf with hosts, the first of which is slower than the others."""
    usual = leaf_spine(2, 1, senders + 1)
    fabric = Fabric()
    for link in usual.links:
        if link.joins_switches:
            fabric.add_link(link.a, link.b, link.speed)
        else:
            speed = Speed(rate_bps=receiver_bps) if link.a.name == "h1" else link.speed
            fabric.add_host(link.a, link.b, speed)
    return fabric


class Load(Data):
    """What a host sends to h1: frames of a class, so many bits a second on the wire."""

    host: str
    priority: int
    bps: float


def offer(bed: Testbed, load: Load, size: int, until: int) -> None:
    """Let a host have a frame more to send whenever one is due."""
    host = bed.host(load.host)
    host.priority = load.priority
    frame = bed.frame(load.host, "h1", size=size, dscp=DSCP[load.priority])
    gap = (size + OVERHEAD) * 8e9 / load.bps

    def send(number: int) -> None:
        host.queue.append(frame)
        bed.network.start(host)
        if (due := round((number + 1) * gap)) <= until:
            bed.network.at(due, lambda: send(number + 1))

    send(0)


def rates(bed: Testbed, begin: int, end: int) -> dict[int, float]:
    """What arrived at h1 in a time, by class: bits a second on the wire."""
    of_dscp = {dscp: priority for priority, dscp in DSCP.items()}
    found: Counter[int] = Counter()
    for when, frame in bed.host("h1").arrived:
        if begin < when <= end:
            found[of_dscp[frame[15] >> 2]] += len(frame) + OVERHEAD
    return {priority: size * 8e9 / (end - begin) for priority, size in found.items()}


def fluid(demand: dict[int, float], weights: dict[int, int], rate: float) -> dict[int, float]:
    """Who gets what if bits could be divided: nobody more than asked for, the rest by weight."""
    got: dict[int, float] = {}
    asking = dict(demand)
    while asking:
        unit = rate / sum(weights[q] for q in asking)
        modest = {q: d for q, d in asking.items() if d <= unit * weights[q] + 1}
        for q, d in (modest or asking).items():
            got[q] = d if modest else unit * weights[q]
        rate -= sum(modest.values())
        if not modest:
            break
        asking = {q: d for q, d in asking.items() if q not in modest}
    return got


@pytest.mark.parametrize("seed", range(6))
def test_lossless_gives_way_to_lossy_by_weight_and_loses_nothing(seed: int) -> None:
    """Lossy of 40 % of a port passes whole; lossless of 90 % is throttled to what is left.

    The first is the case of 400 Gb/s into 100; then other speeds, classes, weights and sizes.
    """
    rng = random.Random(seed)
    slow, fast = (
        (100, 400) if not seed else rng.choice([(25, 100), (50, 50), (100, 200), (400, 800)])
    )
    lossy, lossless = (0, 3) if not seed else rng.sample(range(6), 2)
    weights = {lossy: 1, lossless: 1} if not seed else {lossy: rng.randrange(6, 9), lossless: 5}
    size = 4000 if not seed else rng.choice([1000, 2000, 4096])
    settings = Settings(
        host_link=LinkSpec(fast * GBPS, 500),
        max_frame=4200,
        pfc=Pfc(priorities=(lossless,), response_ns=0),
        buffer=Buffer(bytes=2_000_000),
        ecn=Ecn(enabled=False),
        schedule=Schedule(kind="ets", weights={q: w * 600 for q, w in weights.items()}),
    )
    bed = Testbed.build(star(2, slow * GBPS), settings, seed)
    end = round(2_000_000 * 8 / slow * size / 1000)  # some 2000 frames of the slow link
    demand = {lossy: 0.4 * slow * GBPS, lossless: 0.9 * slow * GBPS}
    for host, priority in (("h2", lossy), ("h3", lossless)):
        offer(bed, Load(host, priority, demand[priority]), size, end)
    bed.network.run(end)
    assert bed.drops() == {}
    assert bed.host("h3").pauses
    wanted = fluid(demand, weights, slow * GBPS)
    assert wanted[lossy] == demand[lossy]
    for priority, rate in rates(bed, end // 2, end).items():
        assert rate == pytest.approx(wanted[priority], rel=0.01), priority


@pytest.mark.parametrize("seed", range(6))
def test_lossy_overload_loses_what_is_too_much_and_lossless_nothing(seed: int) -> None:
    """Lossy 2 x 30 % and lossless 2 x 25 % of a port: a sixth of the lossy is lost."""
    rng = random.Random(100 + seed)
    speed = 100 if not seed else rng.choice([25, 40, 200, 400])
    lossy, lossless = (0, 3) if not seed else rng.sample(range(6), 2)
    size = 4000 if not seed else rng.choice([700, 1500, 4096])
    settings = Settings(
        host_link=LinkSpec(speed * GBPS, 500),
        max_frame=4200,
        pfc=Pfc(priorities=(lossless,), response_ns=0),
        buffer=Buffer(bytes=1_000_000),
        ecn=Ecn(enabled=False),
        schedule=Schedule(kind="ets", weights={lossy: 1000, lossless: 1100}),
    )
    bed = Testbed.build(star(4, speed * GBPS), settings, seed)
    end = round(2_500_000 * 8 / speed * size / 1000)
    for host, priority, share in (
        ("h2", lossy, 0.3),
        ("h3", lossy, 0.3),
        ("h4", lossless, 0.25),
        ("h5", lossless, 0.25),
    ):
        offer(bed, Load(host, priority, share * speed * GBPS), size, end)
    bed.network.run(end // 2)
    before = bed.drops().get("buffer_full", 0)
    bed.network.run(end)
    assert bed.drops().keys() == {"buffer_full"}
    offered = 0.6 * speed * (end - end // 2) / 8 / (size + OVERHEAD)
    assert (bed.drops()["buffer_full"] - before) / offered == pytest.approx(1 / 6, abs=0.01)
    got = rates(bed, end // 2, end)
    assert got[lossless] == pytest.approx(0.5 * speed * GBPS, rel=0.01)
    assert got[lossy] == pytest.approx(0.5 * speed * GBPS, rel=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_each_lossless_class_is_paused_by_itself(seed: int) -> None:
    rng = random.Random(seed)
    full, other, lossy = rng.sample(range(6), 3)
    settings = Settings(
        host_link=LinkSpec(100 * GBPS, 500),
        max_frame=4200,
        pfc=Pfc(priorities=(full, other), response_ns=0),
        buffer=Buffer(bytes=1_000_000),
        ecn=Ecn(enabled=False),
        schedule=Schedule(kind="ets", weights=dict.fromkeys((full, other, lossy), 1000)),
    )
    bed = Testbed.build(star(4, 100 * GBPS), settings, seed)
    end = 400_000
    loads = [Load("h2", full, 80e9), Load("h3", full, 80e9), Load("h4", other, 10e9)]
    for load in (*loads, Load("h5", lossy, 10e9)):
        offer(bed, load, 4000, end)
    bed.network.run(end)
    assert bed.drops() == {}
    assert bed.host("h2").pauses
    assert bed.host("h3").pauses
    assert not bed.host("h4").pauses
    sent = {p: bed.switch("leaf1").counter("xoff_sent", 8 * 2 + p) for p in range(8)}
    assert {p for p, count in sent.items() if count} == {full}
    got = rates(bed, end // 2, end)
    assert (got[other], got[lossy]) == pytest.approx((10e9, 10e9), rel=0.02)
    assert got[full] == pytest.approx(80e9, rel=0.01)


def test_a_pause_holds_its_class_and_no_other() -> None:
    settings = Settings(pfc=Pfc(priorities=(3, 4)), ecn=Ecn(enabled=False))
    bed = Testbed.build(leaf_spine(2, 1, 2), settings)
    bed.network.inject("leaf1", 2, pause_frame(0xFFFF, classes=1 << 4))
    for priority in (3, 4):
        bed.network.inject("leaf1", 1, bed.frame("h1", "h2", dscp=DSCP[priority]))
    bed.network.run(20_000)
    assert [frame[15] >> 2 for _, frame in bed.host("h2").arrived] == [DSCP[3]]


# --- what tells a class ---------------------------------------------------------------------------


def tagged(frame: bytes, pcp: int, vlan: int = 7) -> bytes:
    return frame[:12] + bytes.fromhex("8100") + (pcp << 13 | vlan).to_bytes(2, "big") + frame[12:]


def queue_of(settings: Settings, frame: bytes) -> int:
    """The queue in which a frame waits for h2's port."""
    bed = Testbed.build(leaf_spine(2, 1, 2), settings)
    for _ in range(2):  # the first is on its way at once
        bed.network.inject("leaf1", 1, frame)
    (found,) = (
        q for q, n in enumerate(bed.switch("leaf1").plane.stats().ports[2].queue_packets) if n
    )
    bed.network.run(100_000)
    (_, first), (_, second) = bed.host("h2").arrived
    assert first[12:16] == second[12:16] == frame[12:16]  # the tag is still there
    bed.check_accounts()
    return found


@pytest.mark.by_day(16)
@pytest.mark.parametrize("dscp", [0, 16, 26, 46, 63])
@pytest.mark.parametrize("pcp", [None, 0, 2, 5, 7])
@pytest.mark.parametrize("trusts", [False, True])
def test_tags_count_where_they_are_trusted(dscp: int, pcp: int | None, trusts: bool) -> None:
    classes = Classes(trust="pcp" if trusts else "dscp", dscp={46: 5}, pcp={2: 1})
    settings = Settings(classes=classes, ecn=Ecn(enabled=False))
    bed = Testbed.build(leaf_spine(2, 1, 2), settings)
    plain = bed.frame("h1", "h2", dscp=dscp)
    by_dscp = {8: 1, 16: 2, 26: 3, 32: 4, 40: 5, 48: 6, 46: 5}.get(dscp, 0)
    if pcp is None:
        assert queue_of(settings, plain) == by_dscp
    else:
        wanted = {0: 0, 2: 1, 5: 5, 7: 6}[pcp] if trusts else by_dscp
        assert queue_of(settings, tagged(plain, pcp)) == wanted


def test_tagged_packets_cross_a_fabric_whatever_it_adds() -> None:
    settings = Settings(lb=LoadBalancing(policy=Policy.CONGA), ecn=Ecn(enabled=False))
    bed = Testbed.build(leaf_spine(2, 2, 2), settings)
    frame = tagged(bed.frame("h1", "h3", size=300), 3)
    bed.network.inject("leaf1", 1, frame)
    bed.network.run(100_000)
    ((_, arrived),) = bed.host("h3").arrived
    assert (arrived[12:18], arrived[38:]) == (frame[12:18], frame[38:])


def test_every_class_has_a_dscp_of_its_own() -> None:
    usual = Settings()
    assert {usual.dscp_of(p): p for p in range(7)} == {0: 0, **DSCP_PRIORITIES}
    assert Settings(classes=Classes(dscp={26: 0, 46: 3})).dscp_of(3) == 46


# --- marks and early drops ------------------------------------------------------------------------


@pytest.mark.parametrize("step", [True, False])
@pytest.mark.parametrize("priority", [0, 2])
def test_what_cannot_be_marked_is_dropped_where_others_are(step: bool, priority: int) -> None:
    profile = ClassMarking(kmin=40_000, kmax=40_000 if step else 90_000, pmax=0.5, drop=True)
    settings = Settings(
        max_frame=1100,
        buffer=Buffer(bytes=4_000_000, alpha=1),
        ecn=Ecn(classes={priority: profile}),
        pfc=Pfc(enabled=False),
    )
    kept, marked = {}, {}
    for ecn in (0, 2):
        bed = Testbed.build(leaf_spine(2, 1, 2), settings, seed=5)
        frames = 200
        for number in range(frames):
            frame = bed.frame("h1", "h2", mark=number, dscp=DSCP[priority], ecn=ecn)
            bed.network.inject("leaf1", 1, frame)
        bed.network.run(10_000_000)
        arrived = [frame for _, frame in bed.host("h2").arrived]
        marked[ecn] = sum(ecn_of(frame) == 3 for frame in arrived)
        kept[ecn] = len(arrived)
        drops = bed.drops().get("early_drop", 0)
        assert len(arrived) + drops == frames
        bed.check_accounts()
    assert (kept[2], marked[0]) == (200, 0)
    assert frames - kept[0] == marked[2] > 50  # the same draws from the same queue
    if step:
        # The first leaves at once; then 199 wait, and those are marked that leave more than 40.
        assert marked[2] == 199 - 40


def test_lossless_classes_keep_their_own_marks() -> None:
    settings = Settings(max_frame=1100, ecn=Ecn(kmin=0, kmax=1), pfc=Pfc(priorities=(3, 5)))
    bed = Testbed.build(leaf_spine(2, 1, 2), settings)
    for dscp in (0, 26, 40):
        bed.network.inject("leaf1", 1, bed.frame("h1", "h2", dscp=dscp, ecn=2))
    bed.network.run(100_000)
    assert {f[15] >> 2: ecn_of(f) for _, f in bed.host("h2").arrived} == {0: 2, 26: 3, 40: 3}

"""Path choice: each policy does what it promises, and a dead port is avoided at once.

What that makes of traffic from end to end is in tests.fabric.shows.
"""

from collections import Counter

import pytest

from controller import Settings
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from tests.fabric.testbed import Testbed, mark_of
from topologies import Fabric, Node, NodeKind, Speed, leaf_spine

RATE = 100_000_000_000
SIZE = 1000
FRAME_NS = (SIZE + 24) * 8 / 100


def build(policy: Policy, spines: int = 2, hosts: int = 2, **lb: object) -> Testbed:
    settings = Settings(
        max_frame=1100,
        ecn=Ecn(enabled=False),
        lb=LoadBalancing(policy=policy, **lb),
    )
    return Testbed.build(leaf_spine(2, spines, hosts), settings)


def uplinks(bed: Testbed, leaf: str = "leaf1") -> list[int]:
    """Frames a leaf sent to each spine."""
    node = bed.node(leaf)
    return [
        bed.switch(leaf).counter("sent", port)
        for port, peer in bed.fabric.ports(node).items()
        if peer.kind is NodeKind.SPINE
    ]


def reordered(bed: Testbed, host: str) -> int:
    """Frames that arrived after a later one of their flow."""
    latest: Counter[bytes] = Counter()
    late = 0
    for _, frame in bed.host(host).arrived:
        flow = frame[26:38]
        late += mark_of(frame) < latest[flow]
        latest[flow] = max(latest[flow], mark_of(frame))
    return late


def flows(bed: Testbed, count: int, each: int, gap_ns: int, size: int = 100) -> None:
    """Many small flows from h1, their frames in turn, `gap_ns` apart."""
    last = bed.fabric.hosts[-1].name
    for n in range(count * each):
        frame = bed.frame("h1", last, size=size, src_port=1024 + n % count, mark=n // count)
        bed.network.at(n * gap_ns, lambda f=frame: bed.network.inject("leaf1", 1, f))
    bed.network.run(count * each * gap_ns + 100_000)


@pytest.mark.parametrize("spines", [2, 3, 4, 8, 16])
def test_ecmp_keeps_each_flow_on_a_path_and_spreads_flows_evenly(spines: int) -> None:
    bed = build(Policy.ECMP, spines)
    flows(bed, 1600, 2, 20)
    sent = uplinks(bed)
    assert sum(sent) == 3200
    assert all(count % 2 == 0 for count in sent)
    share = 3200 / spines
    assert all(0.7 * share < count < 1.3 * share for count in sent), sent
    assert reordered(bed, "h4") == 0


@pytest.mark.parametrize("spines", [4, 8, 16])
def test_neighbouring_ports_take_all_ways_of_a_leaf_equally_often(spines: int) -> None:
    """What a sprayed transport's entropies are: a CRC is linear, and none of their bits is lost."""
    bed = build(Policy.ECMP, spines, hosts=3)
    for source, base in ((1, 0xC000), (2, 0xC080), (3, 0x4380)):
        before = uplinks(bed)
        for port in range(base, base + 128):
            frame = bed.frame(f"h{source}", f"h{7 - source}", size=100, src_port=port)
            bed.network.inject("leaf1", source, frame)
        bed.network.run(bed.network.now + 100_000)
        sent = [now - then for now, then in zip(uplinks(bed), before, strict=True)]
        assert sent == [128 // spines] * spines


def test_spray_is_even_and_reorders() -> None:
    bed = build(Policy.SPRAY)
    # One path is longer: there the order is lost.
    for side in ("leaf1", "spine1"):
        bed.switch(side).plane.configure_port(
            {"leaf1": 3, "spine1": 2}[side], rate_bps=RATE, delay_ns=3000
        )
    bed.send("h1", "h4", 2000, size=SIZE)
    bed.network.run(1_000_000)
    sent = uplinks(bed)
    assert len(bed.host("h4").arrived) == 2000
    assert abs(sent[0] - sent[1]) < 200
    assert reordered(bed, "h4") > 100


@pytest.mark.parametrize("policy", [Policy.FLOWLET, Policy.DLB, Policy.CONGA])
def test_flowlet_schemes_move_a_flow_only_when_it_rests(policy: Policy) -> None:
    bed = build(policy, spines=4, flowlet_gap_ns=5000)
    bed.send("h1", "h4", 300, size=SIZE)
    bed.network.run(200_000)
    assert sorted(uplinks(bed)) == [0, 0, 0, 300]
    # Bursts of ten, with rests longer than the gap and than what a path can hold.
    for burst in range(200):
        bed.network.at(200_000 + burst * 10_000, lambda: bed.send("h1", "h4", 10, size=SIZE))
    bed.network.run(3_000_000)
    assert sum(uplinks(bed)) == 2300
    if policy is Policy.FLOWLET:  # the others stay while that is as good as any
        assert min(uplinks(bed)) > 300


def test_dlb_takes_the_shortest_queue() -> None:
    bed = build(Policy.DLB, spines=4, hosts=3, flowlet_gap_ns=1000)
    bed.network.run(1000)
    for n in range(40):  # forty flows at once: four queues of ten
        bed.network.inject("leaf1", 1, bed.frame("h1", "h6", size=SIZE, src_port=2000 + n))
    bed.network.run(50_000)
    assert all(9 <= sent <= 11 for sent in uplinks(bed)), uplinks(bed)
    before = uplinks(bed)
    for n in range(15):  # fifteen packets of one flow at once: one flowlet
        bed.network.inject("leaf1", 1, bed.frame("h1", "h6", size=SIZE, mark=n))
    bed.network.run(100_000)
    gained = [b - a for a, b in zip(before, uplinks(bed), strict=True)]
    assert sorted(gained) == [0, 0, 0, 15]


@pytest.mark.parametrize("policy", list(Policy))
def test_a_dead_port_is_avoided_from_the_next_packet_on(policy: Policy) -> None:
    bed = build(policy, spines=4, flowlet_gap_ns=1000)
    flows(bed, 400, 1, 20)
    before = uplinks(bed)
    leaf = bed.switch("leaf1")
    leaf.plane.set_port_up(4, False)
    start = bed.network.now
    for n in range(400):
        frame = bed.frame("h1", "h4", size=100, src_port=1024 + n, mark=1)
        bed.network.at(start + n * 20, lambda f=frame: bed.network.inject("leaf1", 1, f))
    bed.network.run(start + 200_000)
    after = [b - a for a, b in zip(before, uplinks(bed), strict=True)]
    assert after[1] == 0
    assert sum(after) == 400
    assert min(after[0], after[2], after[3]) > (0 if policy is Policy.CONGA else 90)
    assert len(bed.host("h4").arrived) == 800
    leaf.plane.set_port_up(4, True)
    start = bed.network.now
    for n in range(400):
        frame = bed.frame("h1", "h4", size=100, src_port=5024 + n, mark=1)
        bed.network.at(start + n * 20, lambda f=frame: bed.network.inject("leaf1", 1, f))
    bed.network.run(start + 200_000)
    assert uplinks(bed)[1] > before[1] or policy is Policy.CONGA
    assert bed.drops() == {}


def test_ecmp_flows_of_living_ports_stay_where_they_are() -> None:
    ways: list[dict[int, int]] = []
    for dead in (None, 3):
        bed = build(Policy.ECMP, spines=4)
        if dead:
            bed.switch("leaf1").plane.set_port_up(dead, False)
        seen: dict[int, int] = {}
        bed.network.tap = lambda _w, name, port, frame, s=seen: (
            s.update({int.from_bytes(frame[34:36], "big"): port}) if name == "leaf1" else None
        )
        flows(bed, 200, 1, 20)
        ways.append(seen)
    for flow, port in ways[0].items():
        if port != 3:
            assert ways[1][flow] == port
    moved = Counter(ways[1][flow] for flow, port in ways[0].items() if port == 3)
    assert set(moved) == {4, 5, 6}


def test_with_all_ports_dead_packets_end_with_a_reason() -> None:
    bed = build(Policy.ECMP)
    for port in (3, 4):
        bed.switch("leaf1").plane.set_port_up(port, False)
    bed.send("h1", "h4", 5)
    bed.send("h1", "h2", 5)
    bed.network.run(100_000)
    assert bed.drops() == {"port_down": 5}
    assert len(bed.host("h2").arrived) == 5
    bed.check_accounts()


def test_packets_queued_when_their_port_dies_are_accounted_for() -> None:
    bed = build(Policy.ECMP)
    bed.send("h1", "h2", 50, size=SIZE)
    bed.send("h3", "h2", 50, size=SIZE)
    bed.network.run(6_000)
    assert bed.switch("leaf1").used()["buffer_pool_used"]
    bed.switch("leaf1").plane.set_port_up(2, False)
    bed.network.run(500_000)
    bed.check_accounts()
    assert bed.switch("leaf1").used()["buffer_pool_used"] == 0


def test_two_tiers_do_not_choose_by_the_same_bits() -> None:
    """A spine that is also a place of choice must spread what a leaf's choice has sent it."""
    fabric = Fabric()
    for number in (1, 2):
        fabric.add_host(Node(NodeKind.HOST, number), Node(NodeKind.LEAF, number))
    for leaf in (1, 2):
        for spine in (1, 2):
            fabric.add_link(Node(NodeKind.LEAF, leaf), Node(NodeKind.SPINE, spine + 2 * (leaf - 1)))
    for spine in (1, 2, 3, 4):
        for core in (1, 2):
            fabric.add_link(Node(NodeKind.SPINE, spine), Node(NodeKind.CORE, core))
    bed = Testbed.build(fabric, Settings(max_frame=1100, ecn=Ecn(enabled=False)))
    for n in range(800):
        frame = bed.frame("h1", "h2", size=100, src_port=1024 + n)
        bed.network.at(n * 20, lambda f=frame: bed.network.inject("leaf1", 1, f))
    bed.network.run(200_000)
    assert len(bed.host("h2").arrived) == 800
    for spine in ("spine1", "spine2"):
        ports = [p for p, peer in bed.fabric.ports(bed.node(spine)).items() if peer.kind > 2]
        sent = [bed.switch(spine).counter("sent", port) for port in ports]
        assert min(sent) > 150, (spine, sent)


def test_unequal_links_share_by_their_rates() -> None:
    fabric = Fabric()
    leaves = [Node(NodeKind.LEAF, number) for number in (1, 2)]
    for number, leaf in enumerate(leaves, 1):
        fabric.add_host(Node(NodeKind.HOST, number), leaf)
    for number, rate in ((1, 3 * RATE), (2, RATE)):
        for leaf in leaves:
            fabric.add_link(leaf, Node(NodeKind.SPINE, number), Speed(rate_bps=rate))
    bed = Testbed.build(fabric, Settings(max_frame=1100, ecn=Ecn(enabled=False)))
    for n in range(1600):
        frame = bed.frame("h1", "h2", size=100, src_port=1024 + n)
        bed.network.at(n * 20, lambda f=frame: bed.network.inject("leaf1", 1, f))
    bed.network.run(200_000)
    assert sum(uplinks(bed)) == 1600
    assert 1100 < uplinks(bed)[0] < 1300

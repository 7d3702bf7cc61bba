"""Groups: flows are spread by the weights of ways, tier after tier, as chance would spread them.

The judge is Pearson's chi-squared, computed here; what each way is due follows from the rates of
its links alone.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import pairwise

import pytest

from controller import Settings, routes_of, switch_plan
from controller.entities import TableEntry
from controller.settings import SettingsError
from controller.tables import MAX_SLOTS, slots_of
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from params.pfc import Pfc
from tests.fabric.network import Switch
from tests.fabric.testbed import ipv4_frame
from topologies import Fabric, Node, NodeKind, Speed, leaf_spine

RATE = 100_000_000_000
HOST_PORT = 1  # of every leaf here: its only host's


def chi_squared(counts: list[int], shares: list[float]) -> float:
    total = sum(counts)
    expected = [total * share / sum(shares) for share in shares]
    assert min(expected) >= 5, "too few flows for the test to mean anything"
    return sum((n - e) ** 2 / e for n, e in zip(counts, expected, strict=True))


def most_by_chance(degrees: int) -> float:
    """What chi-squared exceeds once in 100,000 times (Wilson and Hilferty)."""
    part = 2 / (9 * degrees)
    return float(degrees * (1 - part + 4.265 * part**0.5) ** 3)


def assert_as_by_chance(counts: list[int], shares: list[float], what: object) -> None:
    if len(counts) > 1:
        found = chi_squared(counts, shares)
        assert found <= most_by_chance(len(counts) - 1), (what, found, counts)


@pytest.mark.parametrize("degrees", [2, 4, 10, 16, 62, 64])
def test_chance_exceeds_the_bound_once_in_100_000_times(degrees: int) -> None:
    """By the distribution itself, which has a closed form for even degrees."""
    half = most_by_chance(degrees) / 2
    tail = math.exp(-half) * sum(half**k / math.factorial(k) for k in range(degrees // 2))
    assert 0.3e-5 < tail < 3e-5


def three_tiers(spines: int, cores: int, rates: list[int] | None = None) -> Fabric:
    """A leaf, its spines, cores above them, the far spines, and the far leaf: three choices."""
    fabric = Fabric()
    leaves = [Node(NodeKind.LEAF, number) for number in (1, 2)]
    for number, leaf in enumerate(leaves, 1):
        fabric.add_host(Node(NodeKind.HOST, number), leaf)
    sides = [[Node(NodeKind.SPINE, s + at * spines) for s in range(1, spines + 1)] for at in (0, 1)]
    for leaf, side in zip(leaves, sides, strict=True):
        for at, spine in enumerate(side):
            fabric.add_link(leaf, spine, Speed(rate_bps=rates[at] if rates else RATE))
    for core in range(1, cores + 1):
        for spine in (*sides[0], *sides[1]):
            fabric.add_link(spine, Node(NodeKind.CORE, core))
    return fabric


class Walker:
    """Lets single frames through switches of a fabric, one switch at a time."""

    def __init__(self, fabric: Fabric, policy: Policy = Policy.ECMP, seed: int = 1) -> None:
        self.fabric = fabric
        self.settings = Settings(
            max_frame=1100,
            pfc=Pfc(enabled=False),
            ecn=Ecn(enabled=False),
            lb=LoadBalancing(policy=policy),
        )
        self.routes = routes_of(fabric)
        self.seed = seed
        self.switches: dict[Node, Switch] = {}

    def switch(self, node: Node) -> Switch:
        if node not in self.switches:
            made = self.switches[node] = Switch.make(node.name, seed=self.seed)
            for port in self.fabric.ports(node):
                made.add_port(port, RATE * 100, 0)
            made.tell(
                tuple(  # frames come from anywhere, as if no port led to a host
                    entity
                    for entity in switch_plan(self.fabric, node, self.routes[node], self.settings)
                    if not (isinstance(entity, TableEntry) and entity.table == "host_ports")
                )
            )
        return self.switches[node]

    def ways(self, node: Node, frames: list[bytes], in_port: int = HOST_PORT) -> list[int]:
        """The port each frame leaves by."""
        plane = self.switch(node).plane
        ways = []
        for at, frame in enumerate(frames, 1):
            plane.inject(in_port, frame, at * 1000)
            plane.service(at * 1000)
            ways += [port for port, _, _ in plane.outputs()]
        assert len(ways) == len(frames)
        return ways


def flows(count: int, seed: int) -> list[bytes]:
    """Frames of flows from anywhere to hosts of leaf2."""
    draw = random.Random(seed)
    return [
        ipv4_frame(
            f"10.0.{draw.randrange(3, 200)}.{draw.randrange(1, 254)}",
            f"10.0.2.{draw.randrange(2, 250)}",
            size=64,
            src_port=draw.randrange(49152, 65536),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("spines", "cores", "count", "seed"),
    [
        *((2, 2, 3000, 1), (3, 5, 4000, 2), (16, 4, 6000, 3), (48, 64, 16_000, 6)),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in ((17, 33, 12_000, 4), (64, 2, 8000, 5), (64, 64, 16_000, 7))
        ),
    ],
)
def test_flows_are_spread_as_by_chance_tier_after_tier(
    spines: int, cores: int, count: int, seed: int
) -> None:
    fabric = three_tiers(spines, cores)
    walker = Walker(fabric)
    frames = flows(count, seed)

    leaf = Node(NodeKind.LEAF, 1)
    ways = walker.ways(leaf, frames)
    uplinks = sorted(fabric.ports(leaf))[1:]
    assert_as_by_chance([Counter(ways)[port] for port in uplinks], [1.0] * spines, "leaf")

    # What the first tier sent one way the second must spread anew, over all of its own ways. With
    # many tiny shares the flows of several spines are judged together, way by way.
    together: Counter[tuple[int, int]] = Counter()
    to_core: dict[int, list[bytes]] = {}
    for port in uplinks[:8]:
        spine = fabric.ports(leaf)[port]
        mine = [frame for frame, way in zip(frames, ways, strict=True) if way == port]
        back = next(p for p, peer in fabric.ports(spine).items() if peer == leaf)
        ups = [p for p, peer in fabric.ports(spine).items() if peer.kind is NodeKind.CORE]
        chosen = walker.ways(spine, mine, back)
        for frame, way in zip(mine, chosen, strict=True):
            together[port, ups.index(way)] += 1
            to_core.setdefault(ups.index(way), []).append(frame)
        if len(mine) >= 6 * cores:
            assert_as_by_chance([Counter(chosen)[p] for p in ups], [1.0] * cores, spine)
    by_core = [sum(n for (_, core), n in together.items() if core == at) for at in range(cores)]
    assert_as_by_chance(by_core, [1.0] * cores, "all spines")

    # And the third, down again over the far spines, where the first came over the near ones.
    core, mine = max(to_core.items(), key=lambda item: len(item[1]))
    node = Node(NodeKind.CORE, core + 1)
    downs = [p for p, peer in fabric.ports(node).items() if peer.number > spines]
    chosen = walker.ways(node, mine, 1)
    if len(mine) >= 6 * spines:
        assert_as_by_chance([Counter(chosen)[p] for p in downs], [1.0] * spines, node)
    assert len(set(chosen)) > min(spines, len(mine)) / 2


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", [Policy.ECMP, Policy.SPRAY, Policy.FLOWLET])
def test_ways_have_shares_by_their_rates(seed: int, policy: Policy) -> None:
    draw = random.Random(seed)
    spines = draw.choice([2, 5, 16, 40, 64])
    rates = [draw.choice([1, 2, 4]) * RATE // 4 for _ in range(spines)]
    fabric = three_tiers(spines, 1, rates)
    leaf = Node(NodeKind.LEAF, 1)
    ways = Counter(Walker(fabric, policy, seed + 1).ways(leaf, flows(60 * spines + 1500, seed)))
    counts = [ways[port] for port in sorted(fabric.ports(leaf))[1:]]
    assert_as_by_chance(counts, [float(rate) for rate in rates], (policy, rates))


@pytest.mark.parametrize("seed", range(20))
def test_shares_come_as_near_to_rates_as_slots_allow(seed: int) -> None:
    draw = random.Random(seed)
    rates = [draw.randrange(1, 800) for _ in range(draw.randrange(2, 65))]
    slots = slots_of(rates)
    assert len(slots) <= MAX_SLOTS
    assert slots[: len(rates)] == tuple(range(len(rates)))
    shares = Counter(slots)
    heavier = sorted(range(len(rates)), key=lambda way: rates[way])
    assert all(shares[a] <= shares[b] + 1 for a, b in pairwise(heavier))
    for way, rate in enumerate(rates):
        due = rate / sum(rates) * len(slots)
        assert abs(shares[way] - due) <= max(1.0, 0.25 * due), (way, due, shares[way])


@pytest.mark.parametrize(("ways", "dead"), [(4, 1), (64, 2), (64, 40)])
def test_what_dead_ports_would_have_carried_is_spread_over_the_living(ways: int, dead: int) -> None:
    fabric = three_tiers(ways, 1)
    leaf = Node(NodeKind.LEAF, 1)
    ports = sorted(fabric.ports(leaf))[1:]
    gone = set(random.Random(dead).sample(ports, dead))
    frames = flows(16_000, dead)
    before = Walker(fabric).ways(leaf, frames)
    walker = Walker(fabric)
    for port in gone:
        walker.switch(leaf).plane.set_port_up(port, False)
    after = walker.ways(leaf, frames)
    assert all(a == b for a, b in zip(before, after, strict=True) if b in ports and a not in gone)
    moved = Counter(b for a, b in zip(before, after, strict=True) if a in gone)
    living = [port for port in ports if port not in gone]
    assert not gone & set(moved)
    assert_as_by_chance([moved[port] for port in living], [1.0] * len(living), "the living")


def test_a_group_of_too_many_ways_is_refused_with_the_cure() -> None:
    fabric = leaf_spine(2, 65, 1)
    leaf = fabric.switches[0]
    with pytest.raises(SettingsError, match=r"65 equal ways .* holds 64: build the"):
        switch_plan(fabric, leaf, routes_of(fabric)[leaf])


def test_a_way_round_a_dead_cable_may_be_by_any_of_many_leaves() -> None:
    fabric = leaf_spine(100, 2, 1)
    spine = fabric.node("spine1")
    routes = routes_of(fabric, {"leaf1-spine1"})[spine]
    assert max(len(route.next_hops) for route in routes) == 64
    switch_plan(fabric, spine, routes, Settings(pfc=Pfc(enabled=False)))

"""adaptive and drill: each packet's choice, held against queues counted here.

Packets arrive at one instant, so that a port's queue is what was sent its way, but for the first,
which is on the wire at once. DRILL's balance is compared with a simulation of its few lines in
this file.
"""

from __future__ import annotations

import random
from collections import Counter
from statistics import fmean, pstdev

import pytest

from controller import Settings, routes_of, switch_plan
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from params.pfc import Pfc
from tests.fabric.network import Switch
from tests.fabric.test_groups import assert_as_by_chance, three_tiers
from tests.fabric.testbed import ipv4_frame
from topologies import Node, NodeKind

FRAME = 1000
QUANTUM = 1024  # of frames of up to 1100 bytes
LEAF = Node(NodeKind.LEAF, 1)
RATE = 100_000_000_000


def leaf(policy: Policy, ways: int, seed: int) -> tuple[Switch, list[int]]:
    """A leaf and its uplinks; its buffer is larger than anything here fills."""
    fabric = three_tiers(ways, 1)
    switch = Switch.make("leaf1", seed=seed)
    for port in fabric.ports(LEAF):
        switch.add_port(port, RATE, 0)
    settings = Settings(
        max_frame=1100,
        pfc=Pfc(enabled=False),
        ecn=Ecn(enabled=False),
        lb=LoadBalancing(policy=policy),
    )
    switch.tell(switch_plan(fabric, LEAF, routes_of(fabric)[LEAF], settings))
    return switch, sorted(fabric.ports(LEAF))[1:]


def choices(switch: Switch, count: int, sizes: list[int]) -> list[tuple[int, int]]:
    """The port, and the size, of each of so many packets that come at once, in their order."""
    for n in range(count):
        frame = ipv4_frame(
            "10.0.1.1", "10.0.2.1", size=sizes[n % len(sizes)], src_port=49152 + n % 7, mark=n
        )
        switch.plane.inject(1, frame, 1000)
    sent: dict[int, tuple[int, int]] = {}
    now: int | None = 1000
    while now is not None:
        now = switch.plane.service(now)
        for port, frame, _ in switch.plane.outputs():
            sent[int.from_bytes(frame[42:50], "big")] = port, len(frame)
    assert len(sent) == count
    return [sent[n] for n in range(count)]


@pytest.mark.by_day(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ways", [2, 7, 16, 17, 64])
def test_adaptive_takes_a_shortest_queue(ways: int, seed: int) -> None:
    switch, ports = leaf(Policy.ADAPTIVE, ways, seed + 1)
    queues = dict.fromkeys(ports, 0)
    busy: set[int] = set()
    sizes = random.Random(seed).choices((64, 300, 700, 1000, 1100), k=37)
    for port, size in choices(switch, 40 * ways, sizes):
        levels = {port: queue // QUANTUM for port, queue in queues.items()}
        least = min(levels.values())
        assert levels[port] == least
        queues[port] += size if port in busy else 0
        busy.add(port)
    assert max(queues.values()) - min(queues.values()) <= QUANTUM + max(sizes)


def test_adaptive_draws_among_equals_as_by_chance() -> None:
    switch, ports = leaf(Policy.ADAPTIVE, 17, 5)
    first = Counter[int]()
    for at in range(1, 4001):  # each finds all queues empty
        switch.plane.inject(1, ipv4_frame("10.0.1.1", "10.0.2.1", size=64), at * 1000)
        switch.plane.service(at * 1000)
        first.update(port for port, _, _ in switch.plane.outputs())
    assert sum(first.values()) == 4000
    assert_as_by_chance([first[port] for port in ports], [1.0] * 17, "equals")


def drill(ways: int, count: int, draw: random.Random) -> list[int]:
    """The queues that DRILL leaves with two samples and one remembered way."""
    queues = [-1] * ways  # the first packet leaves
    best = 0
    for _ in range(count):
        candidates = {*draw.sample(range(ways), 2), best}
        best = min(candidates, key=lambda way: (max(0, queues[way]), draw.random()))
        queues[best] += 1
    return [max(0, queue) for queue in queues]


@pytest.mark.parametrize("ways", [2, 5, 16, 40, 64])
def test_drill_is_as_even_as_its_reference(ways: int) -> None:
    count = 12 * ways + 60
    spreads: dict[str, list[float]] = {"switch": [], "reference": [], "at random": []}
    for seed in range(1, 13):
        switch, ports = leaf(Policy.DRILL, ways, seed)
        queues = dict.fromkeys(ports, 0)
        best: int | None = None
        busy: set[int] = set()
        for port, size in choices(switch, count, [FRAME]):
            if best is not None:  # the one that won last is always a candidate
                assert queues[port] <= queues[best]
            best = port
            queues[port] += size if port in busy else 0
            busy.add(port)
        draw = random.Random(seed)
        spreads["switch"].append(pstdev(queue / FRAME for queue in queues.values()))
        spreads["reference"].append(pstdev(drill(ways, count, draw)))
        counts = Counter[int](draw.choices(range(ways), k=count))
        spreads["at random"].append(pstdev(counts[way] for way in range(ways)))
    means = {name: fmean(values) for name, values in spreads.items()}
    error = pstdev(spreads["reference"]) / 12**0.5
    assert abs(means["switch"] - means["reference"]) < 5 * error + 0.02, means
    if ways > 2:
        assert means["switch"] < 0.5 * means["at random"], means


@pytest.mark.parametrize("ways", [3, 16, 64])
def test_drill_samples_two_ways_of_all(ways: int) -> None:
    """From empty queues again and again, so that only samples and chance decide."""
    switch, ports = leaf(Policy.DRILL, ways, 9)
    first = Counter[int]()
    for at in range(1, 150 * ways + 1):
        switch.plane.inject(1, ipv4_frame("10.0.1.1", "10.0.2.1", size=64), at * 1000)
        switch.plane.service(at * 1000)
        first.update(port for port, _, _ in switch.plane.outputs())
    # Packets depend on each other through what is remembered: judge shares, not independence.
    due = sum(first.values()) / ways
    assert all(0.5 * due < first[port] < 1.6 * due for port in ports), first

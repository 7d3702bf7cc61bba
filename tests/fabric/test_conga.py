"""CONGA: what leaves hear of each other, and what they choose by it, held against a model.

The model is the paper's arithmetic in plain Python: a discounting estimator for each uplink, what
was heard of each way and when, and the way whose larger metric is the least.
"""

from __future__ import annotations

import random
from dataclasses import field

import pytest

from controller import Settings, routes_of, switch_plan, thresholds
from controller.tables import SwitchSite
from params.data import Data
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from params.pfc import Pfc
from tests.fabric.network import Switch
from tests.fabric.testbed import ipv4_frame
from topologies import Fabric, Node, NodeKind, Speed

GBPS = 1_000_000_000
LEAF = Node(NodeKind.LEAF, 1)
HEADER = 8  # bytes: leaf 2, path, metric, path told of, its metric, EtherType 2


def fabric_of(near: list[int], far: list[int]) -> Fabric:
    """Two leaves, each with uplinks of its own rates in Gb/s; a rate of 0 is no cable."""
    fabric = Fabric()
    for number in (1, 2):
        fabric.add_host(Node(NodeKind.HOST, number), Node(NodeKind.LEAF, number))
    for number, rates in ((1, near), (2, far)):
        for spine, rate in enumerate(rates, 1):
            if rate:
                speed = Speed(rate_bps=rate * GBPS)
                fabric.add_link(Node(NodeKind.LEAF, number), Node(NodeKind.SPINE, spine), speed)
    return fabric


def with_header(frame: bytes, path: int, metric: int, echo: tuple[int, int], leaf: int) -> bytes:
    header = leaf.to_bytes(2, "big") + bytes((path, metric, *echo))
    return frame[:12] + b"\x88\xb5" + header + frame[12:]


def header_of(frame: bytes) -> tuple[int, int, int, int, int]:
    """Leaf, path, metric, path told of and its metric."""
    assert frame[12:14] == b"\x88\xb5"
    return int.from_bytes(frame[14:16], "big"), *frame[16:20]


class Uplink(Data, frozen=False):
    """A discounting estimator, in exact arithmetic where the switch has integers."""

    rate_bps: int
    window_ns: int
    held: float = 0.0
    last_ns: int = 0

    def sent(self, now_ns: int, size: int) -> None:
        self.held = self.held * max(0.0, 1 - (now_ns - self.last_ns) / self.window_ns) + size
        self.last_ns = now_ns

    def eighths(self, now_ns: int) -> float:
        """How busy it is, of 8."""
        left = max(0.0, 1 - (now_ns - self.last_ns) / self.window_ns)
        return 8 * self.held * left * 8e9 / (self.rate_bps * self.window_ns)


class Leaf(Data, frozen=False):
    """What leaf1 should know, and so choose."""

    uplinks: list[Uplink]
    age_ns: int
    heard: dict[int, tuple[int, int]] = field(default_factory=dict)  # by way: metric, when

    def metric(self, way: int, now_ns: int) -> tuple[int, int]:
        """The least and the most it can be, for what rounding does at an edge."""
        metric, when = self.heard.get(way, (0, -self.age_ns))
        remote = metric if now_ns - when < self.age_ns else 0
        local = self.uplinks[way].eighths(now_ns)
        least, most = (min(7, int(max(0.0, local + off))) for off in (-0.02, 0.02))
        return max(least, remote), max(most, remote)

    def best(self, now_ns: int) -> set[int]:
        """The ways it may take."""
        spans = [self.metric(way, now_ns) for way in range(len(self.uplinks))]
        bound = min(most for _, most in spans)
        return {way for way, (least, _) in enumerate(spans) if least <= bound}


def rig(near: list[int], far: list[int], seed: int) -> tuple[Switch, Leaf, dict[int, int]]:
    """leaf1, the model of it, and its ways by port."""
    fabric = fabric_of(near, far)
    lb = LoadBalancing(policy=Policy.CONGA, flowlet_gap_ns=2000)
    settings = Settings(max_frame=1200, pfc=Pfc(enabled=False), ecn=Ecn(enabled=False), lb=lb)
    switch = Switch.make("leaf1", seed=seed)
    site = SwitchSite(fabric, LEAF, settings)
    for port in fabric.ports(LEAF):
        switch.add_port(port, 1000 * GBPS, 0)  # so that a frame leaves when it came
    switch.tell(switch_plan(fabric, LEAF, routes_of(fabric)[LEAF], settings))
    links = [site.link_now(port) for port in site.ports]
    asked = thresholds.load_window_ns(lb, links, settings.max_frame)
    window = 2 ** _log2(asked)
    uplinks = [port for port, peer in fabric.ports(LEAF).items() if peer.kind is NodeKind.SPINE]
    model = Leaf(
        [Uplink(site.link_now(port).rate_bps, window) for port in uplinks],
        thresholds.metric_age_ns(lb),
    )
    return switch, model, {port: way for way, port in enumerate(uplinks)}


def _log2(number: float) -> int:
    """The nearest power of two's exponent, on a scale of ratios."""
    exponent = 0
    while 2 ** (exponent + 0.5) < number:
        exponent += 1
    return exponent


@pytest.mark.parametrize("seed", range(12))
def test_each_flowlet_takes_a_way_that_the_model_allows(seed: int) -> None:
    draw = random.Random(seed)
    near = [draw.choice((25, 50, 100, 100, 100)) for _ in range(draw.choice((2, 3, 4, 9, 20, 40)))]
    switch, model, ways = rig(near, [100] * len(near), seed + 1)
    now, avoided, checked = 10_000, 0, 0
    for number in range(600):
        now += draw.choice((20, 50, 100, 400, 3000))
        if draw.random() < 0.6:  # the far leaf tells of some way
            way, metric = draw.randrange(len(near)), draw.randrange(8)
            frame = ipv4_frame("10.0.2.1", "10.0.1.1", size=200, src_port=draw.randrange(65536))
            switch.plane.inject(2, with_header(frame, 0, 0, (way, metric), leaf=2), now)
            switch.plane.service(now)
            switch.plane.outputs()
            model.heard[way] = metric, now
            continue
        allowed = model.best(now)
        size = draw.choice((100, 1000))
        frame = ipv4_frame("10.0.1.1", "10.0.2.1", size=size, src_port=1024 + number)
        switch.plane.inject(1, frame, now)
        switch.plane.service(now)
        ((port, sent, _),) = switch.plane.outputs()
        leaf, path, _, _, _ = header_of(sent)
        assert (leaf, path) == (1, ways[port])
        assert path in allowed, (number, [model.metric(w, now) for w in range(len(near))])
        checked += 1
        avoided += len(allowed) < len(near)
        model.uplinks[path].sent(now, size + HEADER)
    assert checked > 150
    assert avoided > 50


@pytest.mark.parametrize("seed", range(10))
def test_every_way_of_the_far_leaf_is_told_of_in_turn(seed: int) -> None:
    """Also where leaves differ in how many ways they have, and in those ways' weights."""
    draw = random.Random(seed)
    spines = draw.choice((3, 4, 8, 33, 64))
    near = [draw.choice((0, 25, 100)) for _ in range(spines)]
    far = [draw.choice((25, 50, 100)) for _ in range(spines)]
    near[:2] = [100, 25]
    switch, _, _ = rig(near, far, seed + 1)
    theirs = sum(1 for a, b in zip(near, far, strict=True) if a and b)
    echoed: list[tuple[int, int]] = []
    metrics = [draw.randrange(1, 8) for _ in range(theirs)]
    now = 10_000
    for path in [*range(theirs), *(draw.randrange(theirs) for _ in range(3 * theirs))]:
        now += 10
        frame = ipv4_frame("10.0.2.1", "10.0.1.1", size=200)
        switch.plane.inject(2, with_header(frame, path, metrics[path], (0, 0), leaf=2), now)
        switch.plane.service(now)
        switch.plane.outputs()
    for _ in range(3 * theirs):
        now += 10
        switch.plane.inject(1, ipv4_frame("10.0.1.1", "10.0.2.1", size=200), now)
        switch.plane.service(now)
        ((_, sent, _),) = switch.plane.outputs()
        echoed.append(header_of(sent)[3:])
    assert echoed == [(way, metrics[way]) for way in range(theirs)] * 3

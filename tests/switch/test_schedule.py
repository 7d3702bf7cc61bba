"""Schedules of the traffic manager: turns by deficit, strict queues before them, shapers.

What is right is worked out by a fluid that knows nothing of packets: at every moment the link goes
to the strict queues first, and what is left to the weighted ones in proportion, each of them at no
more than its shaper lets through. Packets may be ahead of it or behind by what a turn is worth.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import field

import pytest

from params.data import Data
from switch.dataplane import Dataplane, DataplaneError, Loop, RegisterWrite, Role

from .paths import SOURCE, Want, ask
from .programs import compiled
from .test_paths import check_account
from .test_queues import GBPS, OVERHEAD, drain, gate

OUT = 2
LARGEST = 4200


@pytest.fixture
def switch() -> Iterator[Dataplane]:
    with Dataplane("schedule", compiled(SOURCE)) as dataplane:
        yield ready(dataplane)
        check_account(dataplane)


def ready(dataplane: Dataplane) -> Dataplane:
    for port in (1, OUT):
        dataplane.add_port(port)
        dataplane.set_queue_limits(port, None, packets=1 << 20, bytes_=1 << 30)
    return dataplane


class Fluid(Data, frozen=False):
    """The link's bytes, by queue, if they could be divided at will."""

    rate_bps: float
    weights: dict[int, int]
    limits: dict[int, float]  # bits a second, of shaped queues
    port_limit: float | None
    backlog: dict[int, float]
    served: dict[int, float] = field(default_factory=dict)
    now_ns: float = 0

    def rates(self) -> dict[int, float]:
        """What each queue gets now, in bits a second."""
        left = min(self.rate_bps, self.port_limit or self.rate_bps)
        waiting = [q for q in sorted(self.backlog, reverse=True) if self.backlog[q] > 1e-6]
        rates = {}
        for q in (q for q in waiting if q not in self.weights):
            rates[q] = min(left, self.limits.get(q, left))
            left -= rates[q]
        sharing = [q for q in waiting if q in self.weights]
        while sharing:  # whoever is shaped to less than its share leaves the rest to the others
            unit = left / sum(self.weights[q] for q in sharing)
            slow = [q for q in sharing if self.limits.get(q, 1e99) < unit * self.weights[q]]
            for q in slow or sharing:
                rates[q] = self.limits[q] if slow else unit * self.weights[q]
                left -= rates[q]
                sharing = [other for other in sharing if other != q]
        return rates

    def advance(self, until_ns: float) -> None:
        """Let it flow."""
        while self.now_ns < until_ns:
            rates = {q: rate / 8e9 for q, rate in self.rates().items() if rate > 0}
            if not rates:
                break
            emptied = min(self.backlog[q] / rate for q, rate in rates.items())
            step = min(until_ns - self.now_ns, emptied)
            for q, rate in rates.items():
                self.served[q] = self.served.get(q, 0) + rate * step
                self.backlog[q] -= rate * step
            self.now_ns += step
        self.now_ns = until_ns


class Plan(Data, frozen=False):
    """How the queues of a port are served, and what waits in them: sizes of frames."""

    rate_bps: int
    quanta: dict[int, int]
    limits: dict[int, tuple[int, int]]  # bits a second, burst
    port_limit: tuple[int, int] | None
    waiting: dict[int, list[int]]

    @classmethod
    def random(cls, rng: random.Random) -> Plan:
        """Any."""
        queues = rng.sample(range(8), rng.randrange(2, 6))
        rate = rng.choice([1, 10, 25, 100, 400, 800]) * GBPS
        weighted = queues[: rng.randrange(1, len(queues) + 1)]
        unit = rng.choice([1, 64, 1500, 4320])
        quanta = {q: unit * rng.choice([1, 2, 3, 10, 50, 97]) for q in weighted}
        # A bucket holds what is due to a queue while others have their turns: else that is gone.
        burst = sum(quanta.values()) + 2 * LARGEST
        limits = {
            q: (round(rate * rng.uniform(0.05, 0.6)), burst)
            for q in queues
            if q not in weighted or rng.random() < 0.3
        }
        port_limit = (round(rate * rng.uniform(0.3, 0.9)), 0) if rng.random() < 0.4 else None
        sizes = [(64,), (1500,), (64, 300, LARGEST), (4096,)]
        waiting = {}
        for q in queues:
            of = rng.choice(sizes)
            amount = rng.uniform(0.2, 1) * 400_000 * (1 if of != (64,) else 0.3)
            waiting[q] = [rng.choice(of) for _ in range(round(amount / (sum(of) / len(of))))]
        return cls(rate, quanta, limits, port_limit, waiting)

    def tell(self, dataplane: Dataplane) -> None:
        """Let a switch serve its queues so."""
        dataplane.configure_port(OUT, rate_bps=self.rate_bps)
        for q in self.waiting:
            limit, burst = self.limits.get(q, (0, 0))
            dataplane.schedule_queue(
                OUT, q, quantum=self.quanta.get(q, 0), rate_bps=limit, burst=burst
            )
        if self.port_limit:
            dataplane.shape_port(OUT, rate_bps=self.port_limit[0], burst=self.port_limit[1])

    def fluid(self) -> Fluid:
        """The same without packets."""
        return Fluid(
            self.rate_bps,
            self.quanta,
            {q: limit for q, (limit, _) in self.limits.items()},
            self.port_limit[0] if self.port_limit else None,
            {q: float(sum(wire(size) for size in sizes)) for q, sizes in self.waiting.items()},
        )

    @property
    def leeway(self) -> int:
        """Bytes by which packets may differ from a fluid: turns, bursts, and a packet each."""
        bursts = sum(burst for _, burst in self.limits.values())  # full when it begins
        return sum(self.quanta.values()) + bursts + (len(self.waiting) + 1) * wire(LARGEST)


def wire(size: int) -> int:
    return size + OVERHEAD


@pytest.mark.by_day(10)
@pytest.mark.parametrize("seed", range(24))
def test_any_schedule_follows_its_fluid(switch: Dataplane, seed: int) -> None:
    plan = Plan.random(random.Random(seed))
    plan.tell(switch)
    order = [(q, size) for q, sizes in plan.waiting.items() for size in sizes]
    random.Random(seed).shuffle(order)
    # What comes while the link is busy with its first packet finds all the others there.
    switch.configure_port(OUT, rate_bps=1)
    for q, size in [(order[0][0], LARGEST), *order]:
        switch.inject(1, ask(Want.FORWARD, OUT, prio=q, size=size), 0)
    switch.configure_port(OUT, rate_bps=plan.rate_bps)
    begin = switch.service(0)
    assert begin is not None
    switch.outputs()
    plan.tell(switch)  # afresh: nothing is owed for the first
    fluid = plan.fluid()
    fluid.now_ns = begin
    sent = dict.fromkeys(plan.waiting, 0)
    for _, frame, when in drain(switch, begin - 1):
        sent[frame[2]] += wire(len(frame))
        fluid.advance(when)
        for q, size in sent.items():
            assert abs(size - fluid.served.get(q, 0)) <= plan.leeway, (q, when)
    assert sent == {q: sum(map(wire, sizes)) for q, sizes in plan.waiting.items()}


def shares_until_one_is_empty(dataplane: Dataplane, queues: list[int], now: int) -> dict[int, int]:
    """What queues sent while all of them had something to send, in bytes of the link."""
    sent = dict.fromkeys(queues, 0)
    wake: int | None = now
    while wake is not None and all(dataplane.stats().ports[OUT].queue_packets[q] for q in queues):
        wake = dataplane.service(wake)
        for _, frame, _ in dataplane.outputs():
            sent[frame[2]] += wire(len(frame))
    return sent


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    ("rate", "weights"),
    [(100 * GBPS, (3, 1, 1)), (800 * GBPS, (1, 1, 2, 4)), (10 * GBPS, (50, 30, 20))],
)
def test_shares_are_as_weights_within_a_percent(
    switch: Dataplane, rate: int, weights: tuple[int, ...]
) -> None:
    """Whatever the sizes: one queue has small packets, others large and mixed ones."""
    rng = random.Random(f"{rate} {weights}")
    switch.configure_port(OUT, rate_bps=rate)
    queues = rng.sample(range(8), len(weights))
    kinds = [(64, 300), (LARGEST,), (64, 1500, LARGEST), (1500,), (4096, 256)]
    for q, weight, sizes in zip(queues, weights, kinds, strict=False):
        switch.schedule_queue(OUT, q, quantum=weight * (4320 // max(weights)))
        ahead = 0
        while ahead < 4_500_000 * weight / sum(weights):
            size = rng.choice(sizes)
            switch.inject(1, ask(Want.FORWARD, OUT, prio=q, size=size), 0)
            ahead += wire(size)
    sent = shares_until_one_is_empty(switch, queues, 0)
    total = sum(sent.values())
    for q, weight in zip(queues, weights, strict=True):
        assert sent[q] / total == pytest.approx(weight / sum(weights), rel=0.01)
    drain(switch, 10**9)


def test_a_turn_missed_is_not_made_up_for(switch: Dataplane) -> None:
    """A queue that was held has its share again when it may send, and no more."""
    switch.share_register(Role.QUEUE_GATE, gate(switch))
    switch.configure_port(OUT, rate_bps=GBPS)
    for q in (1, 2):
        switch.schedule_queue(OUT, q, quantum=1000)
    switch.inject(1, ask(Want.PAUSE, OUT, prio=1, arg=400_000), 0)
    for q in (1, 2) * 100:
        switch.inject(1, ask(Want.FORWARD, OUT, prio=q, size=976), 0)
    found = drain(switch, 0)
    order = [frame[2] for _, frame, _ in found]
    held = [frame[2] for _, frame, when in found if when <= 400_000]
    assert held == [2] * 50
    assert order[51:149].count(1) == 49  # one and one, in turn


def test_what_egress_drops_costs_no_turn(switch: Dataplane) -> None:
    switch.configure_port(OUT, rate_bps=GBPS)
    for q in (1, 2):
        switch.schedule_queue(OUT, q, quantum=1000)
    switch.inject(1, ask(Want.FORWARD, OUT, prio=7, size=976), 0)
    for _ in range(50):
        for want in (Want.DROP_EGRESS, Want.DROP_EGRESS, Want.FORWARD):
            switch.inject(1, ask(want, OUT, prio=1, size=976), 0)
        switch.inject(1, ask(Want.FORWARD, OUT, prio=2, size=976), 0)
    order = [frame[2] for _, frame, _ in drain(switch, 0)][1:]
    assert all(set(order[at : at + 2]) == {1, 2} for at in range(0, 100, 2))


def test_a_shaper_without_a_burst_spaces_evenly_and_exactly(switch: Dataplane) -> None:
    """At 7 of 400 Gb/s a packet is due every 100.57 ns; rounding must not add up."""
    switch.configure_port(OUT, rate_bps=400 * GBPS)
    switch.schedule_queue(OUT, 4, rate_bps=7 * GBPS)
    for _ in range(1000):
        switch.inject(1, ask(Want.FORWARD, OUT, prio=4, size=64), 1000)
    times = [when for _, _, when in drain(switch, 1000)]
    gaps = {b - a for a, b in itertools.pairwise(times)}
    assert gaps <= {99, 100, 101, 102}
    assert times[-1] - times[0] == pytest.approx(999 * 88 * 8 / 7, abs=2)


def test_a_burst_passes_at_once_and_no_more(switch: Dataplane) -> None:
    switch.configure_port(OUT, rate_bps=100 * GBPS)
    switch.schedule_queue(OUT, 4, rate_bps=GBPS, burst=10_000)
    for _ in range(40):
        switch.inject(1, ask(Want.FORWARD, OUT, prio=4, size=976), 1_000_000)
    times = [when for _, _, when in drain(switch, 1_000_000)]
    at_once = sum(when < 1_001_000 for when in times)
    assert at_once == 11  # the depth, and the packet that finds it not yet exceeded
    assert times[-1] - 1_000_000 == pytest.approx(29 * 8000 + 80, rel=0.01)


def test_a_shaped_port_lets_exempt_queues_pass(switch: Dataplane) -> None:
    switch.configure_port(OUT, rate_bps=100 * GBPS)
    switch.shape_port(OUT, rate_bps=GBPS, classes=0x7F)
    for q in (0, 6) * 20:
        switch.inject(1, ask(Want.FORWARD, OUT, prio=q, size=976), 0)
    found = []
    for now in range(1000, 20_000, 1000):
        switch.service(now - 1)
        switch.inject(1, ask(Want.FORWARD, OUT, prio=7, size=976), now)
        switch.service(now + 80)
        found += switch.outputs()
    found += drain(switch, 20_000)
    control = [when for _, frame, when in found if frame[2] == 7]
    assert control == [now + 80 for now in range(1000, 20_000, 1000)]
    others = [when for _, frame, when in found if frame[2] != 7]
    assert others[-1] - others[0] == pytest.approx(39 * 8000, abs=2 * 80 + 1)


def test_without_a_schedule_service_is_strict_again(switch: Dataplane) -> None:
    switch.configure_port(OUT, rate_bps=GBPS)
    for q in (1, 2):
        switch.schedule_queue(OUT, q, quantum=1000, rate_bps=GBPS // 10)
    switch.shape_port(OUT, rate_bps=GBPS // 10)
    for q in (1, 2):
        switch.schedule_queue(OUT, q)
    switch.shape_port(OUT)
    for q in (0, 1, 2) * 5:
        switch.inject(1, ask(Want.FORWARD, OUT, prio=q), 0)
    found = drain(switch, 0)
    assert [frame[2] for _, frame, _ in found] == [0, *[2] * 5, *[1] * 5, *[0] * 4]
    assert found[-1][2] == 15 * 124 * 8


def test_a_priority_that_cannot_be_is_refused(switch: Dataplane) -> None:
    for call in (
        lambda: switch.schedule_queue(OUT, 8, quantum=1),
        lambda: switch.schedule_queue(600, 1, quantum=1),
        lambda: switch.shape_port(600, rate_bps=1),
    ):
        with pytest.raises(DataplaneError):
            call()


@pytest.mark.clock
@pytest.mark.parametrize(
    ("dilation", "weights"), [(1.0, {0: 3, 4: 1, 2: 1}), (20.0, {0: 50, 4: 30, 2: 20})]
)
def test_shares_under_the_real_clock(dilation: float, weights: dict[int, int]) -> None:
    """A loop serves the queues when it gets to it; what it then sends is shared as ever."""
    with (
        Loop(dilation=dilation) as loop,
        Dataplane("clocked", compiled(SOURCE), loop=loop) as dataplane,
    ):
        ready(dataplane)
        dataplane.configure_port(OUT, rate_bps=200_000_000 * round(dilation))
        register = gate(dataplane)
        dataplane.share_register(Role.QUEUE_GATE, register)
        closed = [RegisterWrite(register, OUT * 8 + q, 10**18) for q in weights]
        dataplane.write(closed)
        for q, weight in weights.items():
            dataplane.schedule_queue(OUT, q, quantum=weight * (4320 // max(weights.values())))
            sizes = (1500,) if q else (300, 1500, LARGEST)
            for n in range(900):
                frame = ask(Want.FORWARD, OUT, prio=q, size=sizes[n % len(sizes)])
                dataplane.inject(1, frame, 0)
        dataplane.share_register(Role.QUEUE_GATE, None)
        while all(dataplane.stats().ports[OUT].queue_packets[q] for q in weights):
            time.sleep(0.001)
        loop.stop()  # what it has sent is now ours to look at
        frames = [frame for _, frame, _ in dataplane.outputs()]
    sent = dict.fromkeys(weights, 0)
    for frame in frames:
        sent[frame[2]] += wire(len(frame))
        if sum(sent.values()) > 2_000_000:
            break
    else:
        raise AssertionError("too little was sent to tell")
    for q, weight in weights.items():
        assert sent[q] / sum(sent.values()) == pytest.approx(
            weight / sum(weights.values()), rel=0.01
        )

"""The traffic manager on a virtual clock: link rates, priorities, gates, limits, pace, metadata."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from switch.dataplane import Dataplane, DataplaneError, RegisterWrite, Role

from .paths import SOURCE, Want, ask, seen_of
from .programs import compiled
from .test_paths import check_account

if TYPE_CHECKING:
    from collections.abc import Iterator

GBPS = 1_000_000_000
OVERHEAD = 24


@pytest.fixture
def switch() -> Iterator[Dataplane]:
    with Dataplane("queues", compiled(SOURCE)) as dataplane:
        for port in range(1, 5):
            dataplane.add_port(port)
        yield dataplane
        check_account(dataplane)


def drain(dataplane: Dataplane, now: int = 0) -> list[tuple[int, bytes, int]]:
    """Serve the switch whenever it asks, until it is empty."""
    found = dataplane.outputs()
    wake = dataplane.service(now)
    while wake is not None:
        assert wake > now
        now = wake
        wake = dataplane.service(now)
        check_account(dataplane)
        found += dataplane.outputs()
    return found


def test_a_rate_spaces_packets(switch: Dataplane) -> None:
    switch.configure_port(2, rate_bps=GBPS, delay_ns=500)
    for _ in range(5):
        switch.inject(1, ask(Want.FORWARD, 2, size=101), 1000)
    times = [when for _, _, when in drain(switch, 1000)]
    step = (101 + OVERHEAD) * 8  # ns at 1 Gb/s
    assert times == [1000 + 500 + step * (i + 1) for i in range(5)]


def test_rates_are_exact_over_time(switch: Dataplane) -> None:
    """At 400 Gb/s a small frame lasts 1.76 ns; rounding must not add up."""
    switch.configure_port(2, rate_bps=400 * GBPS)
    for _ in range(1000):
        switch.inject(1, ask(Want.FORWARD, 2, size=64), 1000)
    times = [when for _, _, when in drain(switch, 1000)]
    assert len(times) == 1000
    assert times[-1] - 1000 == pytest.approx(1000 * (64 + OVERHEAD) * 8 / 400, abs=1)


def test_late_service_loses_no_rate(switch: Dataplane) -> None:
    switch.configure_port(2, rate_bps=GBPS, overhead_bytes=0)
    for _ in range(10):
        switch.inject(1, ask(Want.FORWARD, 2, size=125), 0)
    switch.service(1_000_000)
    assert [when for _, _, when in switch.outputs()] == [1000 * (i + 1) for i in range(10)]


def test_strict_priority(switch: Dataplane) -> None:
    switch.configure_port(2, rate_bps=GBPS)
    for prio in (0, 3, 7, 3, 0, 7):
        switch.inject(1, ask(Want.FORWARD, 2, prio=prio), 10)
    order = [frame[2] for _, frame, _ in drain(switch, 10)]
    assert order == [0, 7, 7, 3, 3, 0]  # the first was on its way already


def test_depth_and_time_metadata(switch: Dataplane) -> None:
    switch.configure_port(2, rate_bps=GBPS, overhead_bytes=0)
    for i in range(4):
        switch.inject(1, ask(Want.FORWARD, 2, size=125), i)
    seen = [seen_of(f) for _, f, _ in drain(switch, 3)]
    assert [t.enq_depth for t in seen] == [0, 0, 1, 2]
    assert [t.deq_depth for t in seen] == [0, 2, 1, 0]
    assert [t.at for t in seen] == [0, 1000, 2000, 3000]
    assert [t.waited for t in seen] == [0, 999, 1998, 2997]


def test_limits_in_packets_and_bytes(switch: Dataplane) -> None:
    switch.configure_port(2, rate_bps=1000)
    switch.set_queue_limits(2, 0, packets=3)
    switch.set_queue_limits(2, 1, bytes_=250)
    for _ in range(6):
        switch.inject(1, ask(Want.FORWARD, 2, prio=0), 10)
    for _ in range(6):
        switch.inject(1, ask(Want.FORWARD, 2, prio=1), 10)
    port = switch.stats().ports[2]
    assert port.queue_packets[:2] == (3, 2)
    assert port.queue_bytes[:2] == (300, 200)
    assert switch.stats().drops == {"queue_full": 2 + 4}


def gate(dataplane: Dataplane) -> int:
    assert dataplane.program is not None
    return next(r.index for r in dataplane.program.registers if r.name.endswith("gate"))


@pytest.mark.parametrize("rate", [0, GBPS])
def test_a_gate_holds_a_queue_until_its_time(switch: Dataplane, rate: int) -> None:
    switch.share_register(Role.QUEUE_GATE, gate(switch))
    switch.configure_port(2, rate_bps=rate)
    switch.inject(1, ask(Want.PAUSE, 2, prio=3, arg=5000), 100)
    for prio in (3, 3, 0):
        switch.inject(1, ask(Want.FORWARD, 2, prio=prio), 1000)
    early = [f[2] for _, f, _ in switch.outputs()]
    assert early == [0]
    found = drain(switch, 1000)
    assert [f[2] for _, f, _ in found] == [3, 3]
    assert all(when >= 5000 for _, _, when in found)
    assert seen_of(found[0][1]).at == 5000


def test_a_gate_opens_early(switch: Dataplane) -> None:
    """A pause of zero resumes: the packet that says so comes in while the queue stands."""
    switch.share_register(Role.QUEUE_GATE, gate(switch))
    switch.inject(1, ask(Want.PAUSE, 2, prio=3, arg=1_000_000), 100)
    switch.inject(1, ask(Want.FORWARD, 2, prio=3), 200)
    assert switch.service(250) == 1_000_000
    assert switch.outputs() == []
    switch.inject(1, ask(Want.PAUSE, 2, prio=3, arg=0), 300)
    assert [when for _, _, when in switch.outputs()] == [300]


def test_the_control_plane_can_close_a_gate(switch: Dataplane) -> None:
    register = gate(switch)
    switch.share_register(Role.QUEUE_GATE, register)
    switch.write([RegisterWrite(register, 2 * 8 + 1, 10**9)])
    switch.inject(1, ask(Want.FORWARD, 2, prio=1), 5)
    assert switch.stats().held == 1
    switch.share_register(Role.QUEUE_GATE, None)
    assert switch.service(6) is None
    assert switch.stats().held == 0


def test_pace_in_packets(switch: Dataplane) -> None:
    switch.set_queue_rate(2, 0, 1_000_000)
    for _ in range(4):
        switch.inject(1, ask(Want.FORWARD, 2), 0)
    assert [seen_of(f).at for _, f, _ in drain(switch, 0)] == [0, 1000, 2000, 3000]


def test_dropping_in_egress_takes_no_time_on_the_link(switch: Dataplane) -> None:
    switch.configure_port(2, rate_bps=GBPS, overhead_bytes=0)
    for want in (Want.DROP_EGRESS, Want.DROP_EGRESS, Want.FORWARD):
        switch.inject(1, ask(want, 2, size=125), 0)
    assert [when for _, _, when in drain(switch, 0)] == [1000]


def test_ports_that_do_not_exist(switch: Dataplane) -> None:
    for call in (
        lambda: switch.configure_port(512, rate_bps=1),
        lambda: switch.set_queue_limits(600, None, packets=1),
        lambda: switch.add_port(-1),
        lambda: switch.add_port(1),
        lambda: switch.add_port(9, "eth-none"),
    ):
        with pytest.raises(DataplaneError):
            call()


@pytest.mark.parametrize("seed", range(3))
def test_order_within_a_queue_and_conservation_under_overload(switch: Dataplane, seed: int) -> None:
    """Random traffic beyond the links' rates, with pauses: nothing is lost unseen or overtaken."""
    rng = random.Random(seed)
    switch.share_register(Role.QUEUE_GATE, gate(switch))
    for port in (2, 3, 4):
        switch.configure_port(port, rate_bps=rng.choice([GBPS, 10 * GBPS]), delay_ns=100)
        switch.set_queue_limits(port, None, packets=20)
    now, number = 0, 0
    sent: list[tuple[int, bytes, int]] = []
    for _ in range(2000):
        now += rng.randrange(1000)
        port, prio = rng.choice((2, 3, 4)), rng.randrange(8)
        if rng.random() < 0.1:
            switch.inject(1, ask(Want.PAUSE, port, prio=prio, arg=now + rng.randrange(3000)), now)
        else:
            number += 1
            size = rng.choice([64, 300, 1500])
            switch.inject(1, ask(Want.FORWARD, port, prio=prio, arg=number, size=size), now)
        check_account(switch)
        sent += switch.outputs()
    sent += drain(switch, now)
    stats = switch.stats()
    assert stats.held == 0
    assert stats.drops["queue_full"] > 0
    last: dict[tuple[int, int], int] = {}
    link: dict[int, int] = {}
    for port, frame, when in sent:
        queue, order = (port, frame[2]), int.from_bytes(frame[3:7], "big")
        assert order > last.get(queue, 0)
        assert when >= link.get(port, 0)
        last[queue], link[port] = order, when

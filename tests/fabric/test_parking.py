"""Ticketed parking: queues that cannot stand still stand still all the same.

The switches here are given what BMv2 has, and no more: queues paced in packets a second, no gate.
"""

from functools import cache
from itertools import pairwise

import pytest

from compiler import CompileOptions, compile_program
from controller import LinkSpec
from params.buffer import Buffer
from params.pfc import Pfc
from switch.dataplane import Dataplane
from switch.program import Program
from tests.fabric.network import FABRIC, NS, OVERHEAD, Switch
from tests.fabric.test_pause import FRAME, LOSSLESS, RATE, incast, pause_frame, settings
from tests.fabric.testbed import Testbed, mark_of
from topologies import Fabric, leaf_spine

HOLD = 256  # added to a port's number: its hold port, as p4src/parking.p4 has it
FRAME_NS = (FRAME + OVERHEAD) * 8 * NS // RATE


@cache
def parking_program() -> Program:
    compiled = compile_program(FABRIC, CompileOptions(defines=("PARKING",)))
    return Program.load(compiled.json_text.encode())


class PacedSwitch(Switch, frozen=False):
    """A switch whose traffic manager is no better than BMv2's."""

    @classmethod
    def make(  # type: ignore[override]
        cls, name: str, seed: int = 1, program: Program | None = None
    ) -> Switch:
        return cls(name, Dataplane(name, program or parking_program(), seed=seed, cpu_port=500))

    def add_port(self, port: int, rate_bps: int, delay_ns: int) -> None:
        pace = rate_bps // (8 * (FRAME + OVERHEAD))
        for number, priority in ((port, LOSSLESS), (port | HOLD, None)):
            self.plane.add_port(number)
            self.plane.configure_port(number, rate_bps=0, delay_ns=delay_ns)
            self.plane.set_queue_limits(number, None, packets=1 << 20, bytes_=1 << 30)
            self.plane.set_queue_rate(number, priority, pace)


def build(fabric: Fabric | None = None, **changes: object) -> Testbed:
    own = settings(**{"control_queue": 0, "buffer": Buffer(bytes=1_000_000), **changes})
    return Testbed.build(fabric or leaf_spine(4, 2, 2), own, make_switch=PacedSwitch.make)


@pytest.mark.slow
def test_incast_loses_nothing_and_keeps_the_receiver_busy() -> None:
    bed = build()
    incast(bed, 400_000)
    bed.network.run(2_000_000)
    assert bed.drops() == {}
    received = [len(bed.host(f"h{n}").pauses) for n in range(1, 9)]
    assert all(received[:7]) and not received[7]
    assert len(bed.host("h8").arrived) >= 400_000 / FRAME_NS * 0.98
    bed.check_accounts()


@pytest.mark.by_day(1)
@pytest.mark.parametrize("rest_ns", [500, 7_777, 60_000])
def test_a_paused_queue_stands_still_and_goes_on_in_order(rest_ns: int) -> None:
    bed = build()
    port = 1  # of leaf1, towards h1: two senders, so that there is a queue
    for sender in ("h3", "h2"):
        bed.send(sender, "h1", 300, size=FRAME)
    pauses = [(20_000 + n * (rest_ns + 9_000), rest_ns) for n in range(8)]
    for at, lasts in pauses:
        bed.network.at(at, lambda: bed.network.inject("leaf1", port, pause_frame(0xFFFF)))
        bed.network.at(at + lasts, lambda: bed.network.inject("leaf1", port, pause_frame(0)))
    bed.network.run(3_000_000)

    arrived = [(when, frame) for when, frame in bed.host("h1").arrived]
    for sender in ("h3", "h2"):
        source = bed.frame(sender, "h1")[26:30]
        marks = [mark_of(frame) for _, frame in arrived if frame[26:30] == source]
        assert marks == list(range(300))
    delay_ns = bed.settings.host_link.delay_ns
    for at, lasts in pauses:
        for when, _ in arrived:
            assert not at < when - delay_ns < at + lasts
    assert bed.drops() == {}
    bed.check_accounts()
    for register in ("parking_issued", "parking_entered", "parking_served"):
        assert bed.switch("leaf1").register(register, port << 3 | LOSSLESS) == 600


def test_after_a_pause_the_link_is_soon_as_busy_as_before() -> None:
    bed = build()
    for sender in ("h3", "h2"):
        bed.send(sender, "h1", 600, size=FRAME)
    bed.network.at(10_000, lambda: bed.network.inject("leaf1", 1, pause_frame(0xFFFF)))
    bed.network.at(60_000, lambda: bed.network.inject("leaf1", 1, pause_frame(0)))
    bed.network.run(3_000_000)
    after = [when for when, _ in bed.host("h1").arrived if when > 60_000]
    assert len(after) * FRAME_NS >= 0.9 * (after[-1] - 60_000)


@pytest.mark.parametrize(
    "fabric_gbps", [100, *(pytest.param(gbps, marks=pytest.mark.slow) for gbps in (25, 400))]
)
def test_pauses_are_renewed_by_packets_that_go_round(fabric_gbps: int) -> None:
    """A receiver stands still for 3 ms, and at no speed of the fabric does a pause run out."""
    bed = build(
        leaf_spine(2, 1, 2),
        pfc=Pfc(watchdog_ns=0),
        fabric_link=LinkSpec(fabric_gbps * 10**9, 1000),
        buffer=Buffer(bytes=1_000_000, alpha=1 / 64),
    )
    for at in range(0, 3_000_000, 150_000):
        bed.network.at(at, lambda: bed.network.inject("leaf2", 1, pause_frame(0xFFFF)))
    for sender in ("h1", "h2"):
        frame = bed.frame(sender, "h3", size=FRAME)
        bed.host(sender).source = lambda _, f=frame: f
        bed.network.start(bed.host(sender))
    bed.network.run(2_900_000)
    assert bed.drops() == {}
    assert bed.host("h3").arrived == []
    for sender in ("h1", "h2"):
        gaps = [b - a for (a, _), (b, _) in pairwise(bed.host(sender).pauses)]
        assert gaps and max(gaps) < 0xFFFF * 512 * NS // RATE
        assert len(gaps) <= 2 * 2_900_000 / (0xFFFF * 512 * NS // RATE) + 1
        bed.host(sender).source = None
    bed.network.inject("leaf2", 1, pause_frame(0))
    bed.network.run(8_000_000)
    assert bed.drops() == {}
    assert bed.host("h3").arrived
    bed.check_accounts()


def test_parked_packets_keep_the_watchdog_awake() -> None:
    bed = build(leaf_spine(1, 1, 2), pfc=Pfc(watchdog_ns=200_000))
    for at in range(0, 1_000_000, 40_000):
        bed.network.at(at, lambda: bed.network.inject("leaf1", 2, pause_frame(0xFFFF)))
    bed.network.run(100)
    bed.send("h1", "h2", 5, size=FRAME)
    bed.network.run(190_000)
    leaf = bed.switch("leaf1")
    queue = 2 << 3 | LOSSLESS
    assert leaf.counter("pause_storms", queue) == 0
    bed.network.run(400_000)
    assert leaf.counter("pause_storms", queue) == 1
    assert bed.drops() == {"watchdog": 5}

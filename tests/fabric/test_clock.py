"""A switch that has been up for long: its program's clock is set back, and nobody notices.

The same packets, pauses and silences, by lot, at a time far from the clock's end and as it comes to
it: what leaves, when and by which way, and what is counted, has to be the same.
"""

import random

import pytest

from controller import Settings, routes_of, switch_plan
from params.load_balancing import LoadBalancing, Policy
from params.pfc import Pfc
from switch.dataplane import DataplaneError
from tests.fabric.network import Switch
from tests.fabric.test_conga import with_header
from tests.fabric.test_pause import pause_frame
from tests.fabric.testbed import ipv4_frame
from topologies import leaf_spine

FABRIC = leaf_spine(2, 2, 2)
LEAF = FABRIC.node("leaf1")
TURN = 2**48 - 2**44  # when the clock is set back first (switch/rt/sw.h),
BACK = 2**47  # by how much, and when again
EARLY = 2**45
SPAN = 400_000
Seen = list[object]


def lived(begin: int, seed: int, policy: Policy) -> Seen:
    """All that leaves a leaf within a while, its times from the beginning, and what it counts."""
    rng = random.Random(f"{policy} {seed}")
    settings = Settings(
        lb=LoadBalancing(policy=policy), pfc=Pfc(watchdog_ns=60_000, watchdog_restore_ns=90_000)
    )
    leaf = Switch.make("leaf1", seed=3)
    for port in FABRIC.ports(LEAF):
        leaf.add_port(port, 100_000_000_000, 500)
    leaf.tell(switch_plan(FABRIC, LEAF, routes_of(FABRIC)[LEAF], settings))
    near = ipv4_frame("10.0.2.1", "10.0.1.1", size=900)
    far = [
        ipv4_frame("10.0.1.1", "10.0.2.1", size=1500, src_port=port) for port in range(1000, 1016)
    ]
    heard = [with_header(near, 1, 7, (0, 7), leaf=2), pause_frame(0xFFFF), pause_frame(0x40)]
    seen: Seen = []
    now, wake = begin, leaf.plane.service(begin)
    while now < begin + SPAN:
        now += rng.choice((50, 50, 50, 200, 3000, 30_000))
        while wake is not None and wake <= now:
            wake = leaf.plane.service(wake)
        port, frame = rng.choice(
            [(1, rng.choice(far))] * 12 + [(3, heard[0]), (1, near)] * 2
            + [(rng.randrange(1, 5), rng.choice((*heard, pause_frame(0))))] * 3
        )  # fmt: skip
        leaf.plane.inject(port, frame, now)
        wake = leaf.plane.service(now)
        seen += [(port, frame, when - begin) for port, frame, when in leaf.plane.outputs()]
    stats = leaf.plane.stats()
    assert stats.received + stats.copies == stats.sent + stats.held + sum(stats.drops.values())
    totals = [leaf.register("pause_total", cell) for cell in range(8 * 5)]
    gates = [leaf.register("queue_gate", cell) - leaf.register("clock") for cell in range(8 * 5)]
    return [*seen, dict(stats.drops), totals, [gate for gate in gates if gate > 0]]


@pytest.mark.parametrize("policy", [Policy.FLOWLET, Policy.CONGA])
def test_nobody_notices_that_the_clock_is_set_back(policy: Policy) -> None:
    """Once, and again in the middle of it, or as the first thing that happens."""
    for seed in range(3):
        usual = lived(EARLY, seed, policy)
        assert len(usual) > 20 and any(usual[-2]), "nobody paused anybody"
        part = random.Random(seed).randrange(SPAN)
        for begin in (TURN - part, TURN, TURN + BACK - part, TURN + 9 * BACK - part):
            assert lived(begin, seed, policy) == usual, begin


def test_times_have_as_many_bits_as_the_clock() -> None:
    leaf = Switch.make("leaf1")
    names = [register.name for register in leaf.program.registers]
    for number in (names.index("port_down"), len(names)):
        with pytest.raises(DataplaneError, match="cannot hold times"):
            leaf.plane.keep_times([number])
    with pytest.raises(DataplaneError, match="too many"):
        leaf.plane.keep_times([names.index("pause_heard")] * 33)

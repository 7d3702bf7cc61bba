"""While cables are drained nothing is lost: not between two words to a switch, nor between two
switches that are told."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import pytest

from controller import Settings, Steering, in_turn, switch_plans
from controller.entities import Entity, changes
from controller.tables import Groups
from params.marking import Ecn
from switch.ops import Verb
from tests.fabric.testbed import Testbed
from topologies import Fabric, dragonfly, dual_tor, fat_tree, leaf_spine

PLAIN = Settings(max_frame=1200, ecn=Ecn(enabled=False))
SMALL = 120


def words_of(had: tuple[Entity, ...], wanted: tuple[Entity, ...]) -> list[tuple[Verb, Entity]]:
    """One at a time, in the order of `controller.client.writes_of`."""
    difference = changes(had, wanted)
    return [
        *((Verb.INSERT, entity) for entity in difference.add),
        *((Verb.MODIFY, entity) for entity in difference.change),
        *((Verb.DELETE, entity) for entity in difference.remove),
    ]


def fabrics(rng: random.Random) -> Fabric:
    return rng.choice((leaf_spine(3, 3, 1), leaf_spine(2, 2, 2), leaf_spine(2, 4, 1), fat_tree(4)))


def pairs_of_leaves(rng: random.Random) -> Fabric:
    return dual_tor(rng.randrange(2, 4), rng.randrange(1, 4), 1)


def groups(rng: random.Random) -> Fabric:
    return dragonfly(rng.randrange(2, 5), rng.randrange(2, 4), 1, rng.randrange(1, 3))


BY_DAY, BY_NIGHT = 4, 16  # of each, and twice as many of the first
MAKERS = [
    pytest.param(make, n, marks=[] if n < times * BY_DAY else pytest.mark.slow)
    for make, times in ((fabrics, 2), (pairs_of_leaves, 1), (groups, 1))
    for n in range(times * BY_NIGHT)
]


@pytest.mark.by_day(6)
@pytest.mark.parametrize(("make", "seed"), MAKERS)
def test_every_word_may_be_the_last_that_a_packet_meets(
    make: Callable[[random.Random], Fabric], seed: int
) -> None:
    rng = random.Random(seed)
    fabric = make(rng).speaking(rng.choice((4, 6)))
    leaves = [leaf for leaf in fabric.switches if fabric.hosts_of(leaf)]
    steering = tuple(
        Steering(one.name, rng.choice([other.name, fabric.hosts_of(other)[0].name]))
        for one in leaves
        for other in leaves
        if one != other and rng.random() < 0.6
    )
    steers = bool(seed % 4) and not fabric.has_pairs  # lists lead to one leaf
    settings = replace(PLAIN, segments=steers, steering=steering if steers else ())
    links = [link.name for link in fabric.links if link.joins_switches]
    bed = Testbed.build(fabric, settings)
    numbers: dict[str, Groups] = {}
    plans = switch_plans(bed.fabric, settings, groups=numbers)
    pairs = [(a, b) for a in bed.fabric.hosts for b in bed.fabric.hosts if a != b]
    sent = steps = 0
    drained: frozenset[str] = frozenset()
    changes: deque[frozenset[str]] = deque()
    while steps < 60:
        if not changes:
            wanted = frozenset(rng.sample(links, rng.randrange(min(len(links), 4))))
            changes.extend(in_turn(fabric, drained, wanted))
        drained = changes.popleft()
        after = switch_plans(bed.fabric, replace(settings, drained=drained), groups=numbers)
        pending = [(name, word) for name in plans for word in words_of(plans[name], after[name])]
        # Switches are told side by side, each its own words in their order.
        turns = [name for name, _ in pending]
        rng.shuffle(turns)
        left = {name: [word for whose, word in pending if whose == name] for name in plans}
        for name in turns:
            verb, entity = left[name].pop(0)
            bed.switch(name).tell((entity,), verb)
            steps += 1
            for src, dst in rng.choices(pairs, k=4):
                leaf = bed.fabric.leaf_of(src)
                port = rng.randrange(49152, 60000)
                frame = bed.frame(src.name, dst.name, size=SMALL, src_port=port)
                bed.network.inject(leaf.name, bed.fabric.port_towards(leaf, src), frame)
                sent += 1
            bed.network.run(bed.network.now + rng.choice((200, 3000, 20_000)))
        plans = after
    bed.network.run(bed.network.now + 1_000_000)
    assert not bed.drops()
    assert sum(len(host.arrived) for host in bed.network.hosts.values()) == sent
    bed.check_accounts()

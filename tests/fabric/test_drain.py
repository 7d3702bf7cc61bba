"""While cables are drained nothing is lost: not between two words to a switch, nor between two
switches that are told."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from controller import Ecn, Settings, Steering, switch_plans
from controller.entities import Entity, changes
from controller.tables import Groups
from switch.ops import Verb
from tests.fabric.testbed import Testbed
from topologies import Fabric, fat_tree, leaf_spine

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


@pytest.mark.parametrize("seed", range(24))
def test_every_word_may_be_the_last_that_a_packet_meets(seed: int) -> None:
    rng = random.Random(seed)
    fabric = fabrics(rng).speaking(rng.choice((4, 6)))
    leaves = [leaf for leaf in fabric.switches if fabric.hosts_of(leaf)]
    steering = tuple(
        Steering(one.name, rng.choice([other.name, fabric.hosts_of(other)[0].name]))
        for one in leaves
        for other in leaves
        if one != other and rng.random() < 0.6
    )
    settings = replace(PLAIN, segments=bool(seed % 4), steering=steering if seed % 4 else ())
    links = [link.name for link in fabric.links if link.joins_switches]
    bed = Testbed.build(fabric, settings)
    groups: dict[str, Groups] = {}
    plans = switch_plans(bed.fabric, settings, groups=groups)
    pairs = [(a, b) for a in bed.fabric.hosts for b in bed.fabric.hosts if a != b]
    sent = steps = 0
    while steps < 60:
        drained = frozenset(rng.sample(links, rng.randrange(min(len(links), 4))))
        after = switch_plans(bed.fabric, replace(settings, drained=drained), groups=groups)
        told = [(name, word) for name in plans for word in words_of(plans[name], after[name])]
        # Switches are told side by side, each its own words in their order.
        turns = [name for name, _ in told]
        rng.shuffle(turns)
        left = {name: [word for whose, word in told if whose == name] for name in plans}
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

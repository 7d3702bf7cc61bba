"""Dragonflies: all of a group are cabled, groups reach each other, and nothing goes too far."""

from collections import Counter
from itertools import combinations
from random import Random

import networkx as nx
import pytest

from topologies import NodeKind, TopologyError, dragonfly


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_whole_and_joined_alike(seed: int) -> None:
    chance = Random(seed)
    switches, each = chance.randint(1, 5), chance.randint(1, 3)
    groups, hosts = chance.randint(2, switches * each + 1), chance.randint(1, 3)
    fabric = dragonfly(groups, switches, hosts, each)
    assert len(fabric.hosts) == groups * switches * hosts
    assert {switch.kind for switch in fabric.switches} == {NodeKind.LEAF}
    group = {leaf: (leaf.number - 1) // switches for leaf in fabric.switches}
    inside, between, long = Counter[int](), Counter[tuple[int, int]](), Counter[object]()
    for link in fabric.links:
        if not link.joins_switches:
            continue
        ends = sorted((group[link.a], group[link.b]))
        if ends[0] == ends[1]:
            inside[ends[0]] += 1
        else:
            between[ends[0], ends[1]] += 1
            long.update((link.a, link.b))
    assert all(inside[one] == switches * (switches - 1) // 2 for one in range(groups))
    rounds = switches * each // (groups - 1)
    assert between == Counter(dict.fromkeys(combinations(range(groups), 2), rounds))
    assert max(long.values()) <= each
    graph = fabric.graph.subgraph(fabric.switches)
    assert nx.diameter(graph) <= 3


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(TopologyError, match="2 long cables of a group do not reach 3 others"):
        dragonfly(4, 2, 1, 1)
    for sizes, what in (((1, 2, 1, 1), "groups is 1"), ((3, 2, 254, 1), "hosts_per_leaf is 254")):
        with pytest.raises(TopologyError, match=what):
            dragonfly(*sizes)

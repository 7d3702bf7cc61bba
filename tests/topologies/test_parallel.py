"""Several cables between the same two switches: each has a name, ports and a speed of its own."""

import random

import pytest

from controller import Settings, routes_of, switch_plan
from topologies import (
    Fabric,
    Node,
    NodeKind,
    Speed,
    TopologyError,
    dot,
    import_tutorial,
    leaf_spine,
)


def test_names_can_be_computed() -> None:
    fabric = leaf_spine(2, 2, 1, links=3)
    leaf, spine = fabric.node("leaf1"), fabric.node("spine2")
    cables = fabric.links_between(spine, leaf)
    assert [link.name for link in cables] == ["leaf1-spine2", "leaf1-spine2.2", "leaf1-spine2.3"]
    assert [link.up for link in cables] == ["leaf1>spine2", "leaf1>spine2.2", "leaf1>spine2.3"]
    assert [link.down for link in cables] == ["spine2>leaf1", "spine2>leaf1.2", "spine2>leaf1.3"]
    assert [leaf.interface(link.port_of(leaf)) for link in cables] == [
        "leaf1-eth5", "leaf1-eth6", "leaf1-eth7",
    ]  # fmt: skip
    assert [spine.interface(link.port_of(spine)) for link in cables] == [
        "spine2-eth1", "spine2-eth2", "spine2-eth3",
    ]  # fmt: skip
    assert dot(fabric).count("leaf1 -- spine2 [") == 3


@pytest.mark.parametrize("links", [0, 65])
def test_an_impossible_number_is_refused(links: int) -> None:
    with pytest.raises(TopologyError, match=f"links is {links}; it must be from 1 to 64"):
        leaf_spine(2, 2, 1, links)


def test_a_host_has_one_cable() -> None:
    fabric = leaf_spine(1, 1, 1)
    with pytest.raises(TopologyError, match="h1 and leaf1 are cabled already: a host has one"):
        fabric.add_link(fabric.node("h1"), fabric.node("leaf1"))


def test_a_file_may_lay_several_with_speeds_of_their_own() -> None:
    hosts = {f"h{n}": {"ip": f"10.0.{n}.{n}/24", "mac": f"08:00:00:00:0{n}:00"} for n in (1, 2)}
    cables = [["s1-p2", "s2-p2"], ["s2-p4", "s1-p3", "5us"], ["s1-p4", "s2-p3", "0", 10]]
    content = {
        "hosts": hosts,
        "switches": {"s1": {}, "s2": {}},
        "links": [["h1", "s1-p1"], ["h2", "s2-p1"], *cables],
    }
    fabric = import_tutorial(content).fabric
    a, b = fabric.node("leaf1"), fabric.node("leaf2")
    found = {link.name: link for link in fabric.links_between(a, b)}
    assert list(found) == ["leaf1-leaf2", "leaf1-leaf2.2", "leaf1-leaf2.3"]
    assert [(link.port_of(a), link.port_of(b)) for link in found.values()] == [
        (2, 2), (3, 4), (4, 3),
    ]  # fmt: skip
    assert found["leaf1-leaf2.2"].speed == Speed(delay_ns=5000)
    assert found["leaf1-leaf2.3"].speed == Speed(rate_bps=10_000_000, delay_ns=0)
    (route,) = (route for route in routes_of(fabric)[a] if route.leaf == b.number)
    assert [hop.port for hop in route.next_hops] == [2, 3, 4]


def random_fabric(draw: random.Random) -> Fabric:
    """Leaves and spines with any number of cables between them, laid in any order."""
    fabric = Fabric()
    leaves = [Node(NodeKind.LEAF, n) for n in range(1, draw.randrange(2, 5))]
    spines = [Node(NodeKind.SPINE, n) for n in range(1, draw.randrange(2, 5))]
    for number, leaf in enumerate(leaves, 1):
        fabric.add_host(Node(NodeKind.HOST, number), leaf)
    pairs = [(leaf, spine) for leaf in leaves for spine in spines for _ in range(draw.randrange(4))]
    draw.shuffle(pairs)
    for a, b in pairs:
        fabric.add_link(*((a, b) if draw.random() < 0.5 else (b, a)))
    return fabric


@pytest.mark.parametrize("seed", range(40))
def test_every_living_cable_that_leads_nearer_is_a_way_of_its_own(seed: int) -> None:
    draw = random.Random(seed)
    fabric = random_fabric(draw)
    names = [link.name for link in fabric.links]
    assert len(set(names)) == len(names)
    sent = {d for link in fabric.links for d in (link.up, link.down)}
    assert len(sent) == 2 * len(names)
    dead = {link.name for link in fabric.links if link.joins_switches and draw.random() < 0.2}
    routes = routes_of(fabric, dead)
    living = [link for link in fabric.links if link.joins_switches and link.name not in dead]
    for leaf in (node for node in fabric.switches if node.kind is NodeKind.LEAF):
        # Distances by relaxation, over the cables themselves.
        far = {leaf: 0}
        for _ in fabric.switches:
            for link in living:
                for here, there in ((link.a, link.b), (link.b, link.a)):
                    if here in far:
                        far[there] = min(far.get(there, 99), far[here] + 1)
        for switch in fabric.switches:
            found = [r for r in routes[switch] if r.leaf == leaf.number]
            if switch == leaf or switch not in far:
                assert not found
                continue
            due = {
                link.port_of(switch)
                for link in living
                for peer in {link.a, link.b} - {switch}
                if switch in (link.a, link.b) and far.get(peer, 99) < far[switch]
            }
            (route,) = found
            assert {hop.port for hop in route.next_hops} == due
            assert len(route.next_hops) == len(due)
    for switch in fabric.switches:
        switch_plan(fabric, switch, routes[switch], Settings())

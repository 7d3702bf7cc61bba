"""Hosts with two ports: into a pair of leaves, or into a back-end and a front-end fabric."""

from __future__ import annotations

from itertools import product
from random import Random

import networkx as nx
import pytest

from controller.routes import Route, routes_of
from lab.errors import ScenarioError
from lab.scenario import catalogue
from topologies import Fabric, Node, Speed, TopologyError, dual_tor, leaf_spine, rail, two_fabrics

FRONT = Speed(rate_bps=25 * 10**9)


def way(routes: dict[Node, tuple[Route, ...]], fabric: Fabric, at: Node, host: Node,
        chance: Random, plane: int | None = None) -> list[Node]:  # fmt: skip
    """Where a packet goes: the longest prefix at every switch, and of equal ways any."""
    address = fabric.address(host, fabric.leaf_of(host, plane))
    gone = [at]
    while gone[-1] != host and len(gone) < 12:
        known = [route for route in routes[gone[-1]] if address in route.prefix]
        if not known:
            break
        hop = chance.choice(max(known, key=lambda route: route.prefix.prefixlen).next_hops)
        gone.append(fabric.ports(gone[-1])[hop.port])
    return gone


@pytest.mark.parametrize("ip", [4, 6])
def test_a_pair_of_leaves_is_one_to_its_hosts(ip: int) -> None:
    fabric = dual_tor(3, 2, 4).speaking(6 if ip == 6 else 4)
    assert (len(fabric.hosts), len(fabric.switches)) == (12, 8)
    assert (fabric.planes, fabric.host_ports, fabric.ports_abreast) == (1, 2, 2)
    for host in fabric.hosts:
        first, second = fabric.leaves_of(host)
        assert (first.number + 1, first.number % 2) == (second.number, 1)
        assert len(set(fabric.addresses(host))) == 1
        assert fabric.mac(host, first) == fabric.mac(host, second)
        assert fabric.prefix(first) == fabric.prefix(second)
    assert len({fabric.address(host) for host in fabric.hosts}) == 12


def test_whatever_dies_packets_arrive_where_a_way_is_left() -> None:
    """Against the graph: no loop, and nothing is lost that one living port could have had."""
    chance = Random(5)
    for _ in range(25):
        fabric = dual_tor(chance.randint(1, 3), chance.randint(1, 3), chance.randint(1, 3))
        dead = {link.name for link in fabric.links if chance.random() < 0.2}
        routes = routes_of(fabric, dead)
        living = nx.Graph(
            (link.a, link.b)
            for link in fabric.links
            if link.joins_switches and link.name not in dead
        )
        living.add_nodes_from(fabric.switches)
        for at, host in product(fabric.switches, fabric.hosts):
            ends = [
                link.b
                for leaf in fabric.leaves_of(host)
                for link in fabric.links_between(host, leaf)
                if link.name not in dead
            ]
            near = [nx.shortest_path_length(living, at, end) for end in ends
                    if nx.has_path(living, at, end)]  # fmt: skip
            gone = way(routes, fabric, at, host, chance)
            if near:
                assert gone[-1] == host
                assert len(gone) == min(near) + 2
            else:
                assert gone[-1] != host
                assert len(gone) < 12


def test_two_fabrics_share_the_gpus_alone() -> None:
    fabric = two_fabrics(2, 2, 4, 3, 2, 1, FRONT)
    gpus, servers = fabric.hosts[:8], fabric.hosts[8:]
    assert (fabric.planes, fabric.host_ports, fabric.ports_abreast) == (2, 2, 1)
    assert [len(fabric.leaves_of(host)) for host in fabric.hosts] == [2] * 8 + [1] * 3
    assert {fabric.planes_of(a, b) for a, b in product(gpus, gpus)} == {(0, 1)}
    assert {fabric.planes_of(a, b) for a, b in product(gpus, servers)} == {(1,)}
    assert {fabric.plane_of(fabric.leaf_of(server)) for server in servers} == {1}
    for link in fabric.links:
        assert link.speed == (FRONT if fabric.plane_of(link.b) else Speed())
    routes = routes_of(fabric)
    chance = Random(1)
    for host, other in product(fabric.hosts, fabric.hosts):
        for plane in fabric.planes_of(host, other) if host != other else ():
            gone = way(routes, fabric, fabric.leaf_of(host, plane), other, chance, plane)
            assert gone[-1] == other
            assert {fabric.plane_of(switch) for switch in gone[:-1]} == {plane}


def test_servers_with_a_switch_of_their_own_use_it_among_themselves_alone() -> None:
    inside = Speed(3_000_000_000_000, 0)
    fabric = rail(4, 3, 2, 2, inside)
    assert (fabric.planes, fabric.host_ports, fabric.ports_abreast) == (5, 2, 1)
    own = {fabric.leaf_of(host) for host in fabric.hosts}
    assert sorted(switch.name for switch in own) == ["leaf10", "leaf7", "leaf8", "leaf9"]
    for (at, host), (there, other) in product(enumerate(fabric.hosts), enumerate(fabric.hosts)):
        first = fabric.planes_of(host, other)[0]
        is_inside = first == fabric.plane_of(fabric.leaf_of(host))
        assert is_inside == (at // 3 == there // 3)
    for link in fabric.links:
        assert link.speed == (inside if link.b in own else Speed())


def test_other_fabrics_have_one_port_a_host() -> None:
    fabric = leaf_spine(2, 2, 2)
    assert (fabric.planes, fabric.host_ports, fabric.ports_abreast) == (1, 1, 1)
    assert not fabric.has_pairs
    assert fabric.planes_of(*fabric.hosts) == (0,)


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [((0, 2, 2), "racks is 0"), ((2, 257, 2), "spines is 257"), ((2, 2, 254), "hosts_per_rack")],
)
def test_pairs_that_cannot_be_are_refused(sizes: tuple[int, int, int], complaint: str) -> None:
    with pytest.raises(TopologyError, match=complaint):
        dual_tor(*sizes)


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ((2, 2, 2, 0, 1, 1), "servers is 0"),
        ((2, 2, 2, 254, 1, 1), "servers is 254"),
        ((2, 2, 2, 2, 0, 1), "front_leaves is 0|servers is 2"),
        ((2, 2, 2, 2, 1, 0), "front_spines is 0"),
    ],
)
def test_two_fabrics_that_cannot_be_are_refused(
    sizes: tuple[int, int, int, int, int, int], complaint: str
) -> None:
    with pytest.raises(TopologyError, match=complaint):
        two_fabrics(*sizes, FRONT)


@pytest.mark.parametrize("kind", ["uet", "mrc"])
@pytest.mark.parametrize("changes", [("two-fabrics",), ("rails", "topology.scale_up_gbps=900")])
def test_what_sprays_goes_through_one_fabric(changes: tuple[str, ...], kind: str) -> None:
    scenario, *others = changes
    with pytest.raises(ScenarioError, match="through one fabric, not two"):
        catalogue.load(scenario, (*others, f"transport.kind={kind}"))

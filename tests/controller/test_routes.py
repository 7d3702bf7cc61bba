from collections.abc import Iterator
from ipaddress import IPv4Address
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller import Route, routes_of
from topologies import Fabric, Node, NodeKind, fat_tree, leaf_spine, rail


def _best(routes: tuple[Route, ...], address: IPv4Address) -> Route:
    return max(
        (route for route in routes if address in route.prefix),
        key=lambda route: route.prefix.prefixlen,
    )


def _walks(
    fabric: Fabric, routes: dict[Node, tuple[Route, ...]], src: Node, dst: Node
) -> Iterator[list[Node]]:
    """Every way the routes let a packet take."""

    def on_from(path: list[Node]) -> Iterator[list[Node]]:
        if path[-1] == dst:
            yield path
            return
        assert len(path) < 16, "the routes loop"
        for hop in _best(routes[path[-1]], fabric.address(dst)).next_hops:
            peer = fabric.ports(path[-1])[hop.port]
            assert fabric.mac(peer) == hop.mac
            yield from on_from([*path, peer])

    yield from on_from([fabric.leaf_of(src)])


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_routes_lead_every_host_to_every_other_over_every_spine(
    leaves: int, spines: int, hosts: int
) -> None:
    fabric = leaf_spine(leaves, spines, hosts)
    routes = routes_of(fabric)
    for src in fabric.hosts:
        for dst in fabric.hosts:
            if src == dst:
                continue
            walks = list(_walks(fabric, routes, src, dst))
            if fabric.leaf_of(src) == fabric.leaf_of(dst):
                assert [len(walk) for walk in walks] == [2]
            else:
                assert [len(walk) for walk in walks] == [4] * spines
                assert len({walk[1] for walk in walks}) == spines


@pytest.mark.parametrize("k", [2, 4, 6])
def test_a_fat_tree_uses_all_its_ways(k: int) -> None:
    fabric = fat_tree(k)
    routes = routes_of(fabric)
    first, neighbour, far = fabric.hosts[0], fabric.hosts[k // 2], fabric.hosts[-1]
    lengths = [len(walk) for walk in _walks(fabric, routes, first, far)]
    assert lengths == [6] * (k // 2) ** 2
    if k > 2:
        walks = list(_walks(fabric, routes, first, neighbour))
        assert [len(walk) for walk in walks] == [4] * (k // 2)


def test_gpus_of_equal_rank_are_one_switch_apart() -> None:
    fabric = rail(servers=4, rails=8, spines=2)
    routes = routes_of(fabric)
    for server in range(4):
        for place in range(8):
            gpu, first = fabric.hosts[server * 8 + place], fabric.hosts[place]
            if gpu != first:
                assert [len(w) for w in _walks(fabric, routes, first, gpu)] == [2]
    across = list(_walks(fabric, routes, fabric.hosts[0], fabric.hosts[9]))
    assert [len(walk) for walk in across] == [4, 4]


@given(st.data())
def test_dead_cables_are_gone_round_as_long_as_there_is_a_way(data: st.DataObject) -> None:
    fabric = fat_tree(4)
    fabric_cables = [link.name for link in fabric.links if link.joins_switches]
    dead: set[str] = data.draw(st.sets(st.sampled_from(fabric_cables), max_size=3))
    routes = routes_of(fabric, dead)
    for src, dst in ((0, -1), (0, 2), (-1, 0), (5, 9)):
        a, b = fabric.hosts[src], fabric.hosts[dst]
        leaf = fabric.leaf_of(a)
        if all(f"{leaf}-{peer}" in dead for peer in fabric.graph[leaf] if peer.kind > 0):
            continue
        leaf = fabric.leaf_of(b)
        if all(f"{leaf}-{peer}" in dead for peer in fabric.graph[leaf] if peer.kind > 0):
            continue
        for walk in _walks(fabric, routes, a, b):
            assert not any("-".join(map(str, sorted(ends))) in dead for ends in pairwise(walk))


def test_routes_know_whose_hosts_they_lead_to() -> None:
    fabric = leaf_spine(2, 2, 1)
    leaf1 = Node(NodeKind.LEAF, 1)
    assert [route.leaf for route in routes_of(fabric)[leaf1]] == [0, 2]

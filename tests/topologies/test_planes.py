from itertools import product

import networkx as nx
import pytest

from controller.routes import routes_of
from topologies import NodeKind, TopologyError, dot, dragonfly, fat_tree, leaf_spine, planes


@pytest.mark.parametrize(
    ("count", "leaves", "spines", "hosts"), [(1, 2, 2, 2), (2, 3, 1, 2), (8, 2, 4, 1)]
)
@pytest.mark.parametrize("ip", [4, 6])
def test_planes_share_their_hosts_and_nothing_else(
    count: int, leaves: int, spines: int, hosts: int, ip: int
) -> None:
    fabric = planes(count, leaves, spines, hosts).speaking(6 if ip == 6 else 4)
    assert (len(fabric.hosts), fabric.planes) == (leaves * hosts, count)
    parts = list(nx.connected_components(fabric.graph.subgraph(fabric.switches)))
    assert len(parts) == count
    for part in parts:
        (plane,) = {fabric.plane_of(switch) for switch in part}
        kinds = [sum(switch.kind is kind for switch in part) for kind in list(NodeKind)[1:3]]
        assert kinds == [leaves, spines]
        for host in fabric.hosts:
            assert fabric.leaf_of(host, plane) in part
            assert fabric.link_at(host, plane).b == fabric.leaf_of(host, plane)
            assert (host.number - 1) // hosts == (fabric.leaf_of(host, plane).number - 1) % leaves


def test_a_host_has_an_address_and_a_mac_of_its_own_in_every_plane() -> None:
    for ip in (4, 6):
        fabric = planes(4, 2, 2, 3).speaking(6 if ip == 6 else 4)
        places = [(host, leaf) for host in fabric.hosts for leaf in fabric.leaves_of(host)]
        assert len(places) == 24
        assert len({fabric.address(*place) for place in places}) == 24
        assert len({fabric.mac(*place) for place in places}) == 24
        for host, leaf in places:
            assert fabric.address(host, leaf) in fabric.prefix(leaf)
            assert fabric.address(host, leaf) in fabric.addresses(host)
        assert all(fabric.address(h) == fabric.addresses(h)[0] for h in fabric.hosts)


def test_routes_stay_in_their_plane_and_lead_to_all_that_is_there() -> None:
    fabric = planes(2, 2, 2, 2)
    for switch, routes in routes_of(fabric).items():
        plane = fabric.plane_of(switch)
        for host, leaf in product(fabric.hosts, fabric.switches):
            if leaf not in fabric.leaves_of(host):
                continue
            known = [r for r in routes if fabric.address(host, leaf) in r.prefix]
            assert len(known) == (fabric.plane_of(leaf) == plane)
            for hop in (hop for route in known for hop in route.next_hops):
                next_node = fabric.ports(switch)[hop.port]
                assert next_node == host or fabric.plane_of(next_node) == plane


def test_each_plane_is_drawn_as_one() -> None:
    text = dot(planes(2, 1, 1, 1))
    assert 'label="plane 2"; leaf2; spine2;' in text
    assert "cluster" not in dot(planes(1, 1, 1, 1))


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [((9, 2, 2, 2), "planes is 9"), ((2, 0, 2, 2), "leaves is 0"), ((2, 2, 2, 254), "hosts_per")],
)
def test_what_cannot_be_is_refused(sizes: tuple[int, int, int, int], complaint: str) -> None:
    with pytest.raises(TopologyError, match=complaint):
        planes(*sizes)


def test_the_longest_way_is_that_of_a_search_from_every_leaf() -> None:
    for fabric in (planes(3, 2, 2, 2), dragonfly(5, 4, 1, 1), fat_tree(6), leaf_spine(1, 1, 3)):
        switches = fabric.graph.subgraph(fabric.switches)
        leaves = {switch for switch in fabric.switches if switch.kind is NodeKind.LEAF}
        ways = (nx.single_source_shortest_path_length(switches, leaf) for leaf in leaves)
        assert fabric.longest_way == 1 + max(way[end] for way in ways for end in leaves & set(way))

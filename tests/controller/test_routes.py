from collections.abc import Iterator
from ipaddress import IPv4Address

from hypothesis import given
from hypothesis import strategies as st

from controller import Route, routes_of
from topologies import Fabric, Node, leaf_spine


def _best(routes: tuple[Route, ...], address: IPv4Address) -> Route:
    return max(
        (route for route in routes if address in route.prefix),
        key=lambda route: route.prefix.prefixlen,
    )


def _walks(fabric: Fabric, src: Node, dst: Node) -> Iterator[list[Node]]:
    """Every way the routes let a packet take."""
    routes = routes_of(fabric)

    def on_from(path: list[Node]) -> Iterator[list[Node]]:
        if path[-1] == dst:
            yield path
            return
        assert len(path) < 8, "the routes loop"
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
    for src in fabric.hosts:
        for dst in fabric.hosts:
            if src == dst:
                continue
            walks = list(_walks(fabric, src, dst))
            if fabric.leaf_of(src) == fabric.leaf_of(dst):
                assert [len(walk) for walk in walks] == [2]
            else:
                assert [len(walk) for walk in walks] == [4] * spines
                assert len({walk[1] for walk in walks}) == spines

import networkx as nx
import pytest

from topologies import NodeKind, TopologyError, rail


def test_a_rail_joins_the_gpus_of_one_rank() -> None:
    fabric = rail(servers=4, rails=8, spines=2)
    assert len(fabric.hosts) == 32
    leaves = [node for node in fabric.switches if node.kind is NodeKind.LEAF]
    assert len(leaves) == 8
    for place, leaf in enumerate(leaves):
        assert [host.number for host in fabric.hosts_of(leaf)] == [
            server * 8 + place + 1 for server in range(4)
        ]
    assert nx.is_connected(fabric.graph)


def test_pods_have_rails_of_their_own() -> None:
    fabric = rail(servers=4, rails=2, spines=1, pods=2)
    assert [host.number for host in fabric.hosts_of(fabric.node("leaf3"))] == [5, 7]


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [((0, 8, 2, 1), "servers is 0"), ((4, 8, 65, 1), "spines is 65"), ((5, 2, 1, 2), "multiple")],
)
def test_what_cannot_be_is_refused(sizes: tuple[int, int, int, int], complaint: str) -> None:
    with pytest.raises(TopologyError, match=complaint):
        rail(*sizes)

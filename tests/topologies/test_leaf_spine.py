import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies import NodeKind, TopologyError, leaf_spine

small = st.integers(1, 6)


def test_names_ports_and_addresses_can_be_computed() -> None:
    fabric = leaf_spine(leaves=4, spines=2, hosts_per_leaf=2)
    h3, leaf2, spine1 = (fabric.node(name) for name in ("h3", "leaf2", "spine1"))

    assert [host.name for host in fabric.hosts] == [f"h{n}" for n in range(1, 9)]
    assert fabric.leaf_of(h3) == leaf2
    assert str(fabric.address(h3)) == "10.0.2.1"
    assert str(fabric.prefix(leaf2)) == "10.0.2.0/24"
    assert str(fabric.gateway(leaf2)) == "10.0.2.254"
    assert fabric.mac(h3) == "02:00:0a:00:02:01"
    assert fabric.mac(leaf2) == "02:01:01:00:00:02"
    assert leaf2.interface(3) == "leaf2-eth3"
    assert [str(peer) for peer in fabric.ports(leaf2).values()] == ["h3", "h4", "spine1", "spine2"]
    assert fabric.port_towards(spine1, leaf2) == 2
    assert fabric.port_towards(h3, leaf2) == 0


@given(leaves=small, spines=small, hosts=small)
def test_every_leaf_meets_every_spine_and_no_two_nodes_share_an_address(
    leaves: int, spines: int, hosts: int
) -> None:
    fabric = leaf_spine(leaves, spines, hosts)

    assert nx.is_connected(fabric.graph)
    assert len(fabric.links) == leaves * (spines + hosts)
    assert len(fabric.switches) == leaves + spines
    macs = [fabric.mac(node) for node in (*fabric.hosts, *fabric.switches)]
    assert len(set(macs)) == len(macs)
    taken = {fabric.address(host) for host in fabric.hosts}
    taken |= {fabric.gateway(s) for s in fabric.switches if s.kind is NodeKind.LEAF}
    assert len(taken) == leaves * (hosts + 1)
    for switch in fabric.switches:
        assert list(fabric.ports(switch)) == list(range(1, len(fabric.ports(switch)) + 1))


def test_the_largest_leaf_still_has_its_gateway_to_itself() -> None:
    fabric = leaf_spine(leaves=1, spines=1, hosts_per_leaf=253)
    (leaf, _) = fabric.switches
    assert fabric.gateway(leaf) not in {fabric.address(host) for host in fabric.hosts}


@pytest.mark.parametrize(
    ("leaves", "spines", "hosts", "complaint"),
    [(0, 2, 2, "leaves is 0"), (4, 257, 2, "spines is 257"), (4, 2, 254, "hosts_per_leaf is 254")],
)
def test_an_impossible_fabric_is_refused_by_name(
    leaves: int, spines: int, hosts: int, complaint: str
) -> None:
    with pytest.raises(TopologyError, match=complaint):
        leaf_spine(leaves, spines, hosts)


def test_an_unknown_node_is_answered_with_the_known_ones() -> None:
    with pytest.raises(TopologyError, match=r"no node 'leaf9'.*leaf1, spine1, h1"):
        leaf_spine(1, 1, 1).node("leaf9")

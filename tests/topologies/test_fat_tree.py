import time

import networkx as nx
import pytest

from topologies import NodeKind, TopologyError, fat_tree


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_counts_and_ports_are_those_of_the_textbook(k: int) -> None:
    fabric = fat_tree(k)
    kinds = [node.kind for node in fabric.switches]
    assert len(fabric.hosts) == k**3 // 4
    assert kinds.count(NodeKind.LEAF) == kinds.count(NodeKind.SPINE) == k * k // 2
    assert kinds.count(NodeKind.CORE) == k * k // 4
    assert nx.is_connected(fabric.graph)
    for switch in fabric.switches:
        assert list(fabric.ports(switch)) == list(range(1, k + 1))
    macs = [fabric.mac(node) for node in (*fabric.hosts, *fabric.switches)]
    assert len(set(macs)) == len(macs)


@pytest.mark.parametrize("k", [4, 6])
def test_each_core_reaches_each_pod_once(k: int) -> None:
    fabric = fat_tree(k)
    for core in (node for node in fabric.switches if node.kind is NodeKind.CORE):
        pods = [(peer.number - 1) // (k // 2) for peer in fabric.ports(core).values()]
        assert sorted(pods) == list(range(k))


def test_oversubscription_is_a_number_of_hosts() -> None:
    assert len(fat_tree(4, hosts_per_leaf=6).hosts) == 48


@pytest.mark.parametrize(("k", "hosts"), [(3, None), (0, None), (66, None), (4, 0), (4, 254)])
def test_what_cannot_be_is_refused(k: int, hosts: int | None) -> None:
    with pytest.raises(TopologyError, match="must be"):
        fat_tree(k, hosts)


def test_the_longest_way_is_found_in_less_time_than_the_tree_is_built() -> None:
    def built() -> float:
        began = time.process_time()
        made.append(fat_tree(16))
        return time.process_time() - began

    def found() -> float:
        began = time.process_time()
        assert made.pop().longest_way == 5
        return time.process_time() - began

    made = [fat_tree(16)]
    assert min(found() for _ in range(3) if built()) < built()

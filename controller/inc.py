"""Trees for collectives in the network: which switches add up what their children send.

A group's root is a switch as near as any to all leaves that have members; groups take turns among
such switches, and so do they at every further step down. Every switch of the tree has one parent,
over one living cable, and its children are switches of the tree or members at its own ports.
Members are numbered in the order of their hosts, so that those below a switch follow one another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from weakref import WeakKeyDictionary

from controller.entities import Entity, entry, mac_bits
from controller.routes import living_switches
from params.data import Data
from params.inc import MAX_CHILDREN, Group
from topologies import Fabric, Node

_IN_CELLS = 2  # that a slot has


class Tree(Data):
    """By switch: its parent, None of the root; and its children, with the members below each."""

    parent: dict[Node, Node | None]
    children: dict[Node, dict[Node, range]]


_Cut = tuple[frozenset[str], frozenset[str]]  # dead cables, and drained ones
# What was asked last of each fabric.
_known: WeakKeyDictionary[Fabric, tuple[_Cut, dict[Group, Tree | None]]] = WeakKeyDictionary()


def tree_of(
    fabric: Fabric, group: Group, dead: Collection[str], drained: Collection[str]
) -> Tree | None:
    """A group's tree, over what lives; None if there is none. Each of its switches asks for it."""
    cut = frozenset(dead), frozenset(drained)
    if fabric not in _known or _known[fabric][0] != cut:
        _known[fabric] = cut, {}
    trees = _known[fabric][1]
    if group not in trees:
        trees[group] = _made(fabric, group, dead, drained)
    return trees[group]


def _made(
    fabric: Fabric, group: Group, dead: Collection[str], drained: Collection[str]
) -> Tree | None:
    import networkx as nx

    members = [fabric.node(name) for name in group.members]
    graph = living_switches(fabric, dead, drained)
    leaves = dict.fromkeys(fabric.leaf_of(member) for member in members)
    far = {leaf: nx.single_source_shortest_path_length(graph, leaf) for leaf in leaves}
    reach = {
        switch: max(far[leaf][switch] for leaf in leaves)
        for switch in fabric.switches
        if all(switch in far[leaf] for leaf in leaves)
    }
    if not reach or any(_cable(fabric, m, fabric.leaf_of(m), dead) is None for m in members):
        return None
    nearest = [switch for switch in reach if reach[switch] == min(reach.values())]
    root = nearest[group.number % len(nearest)]
    depth = nx.single_source_shortest_path_length(graph, root)
    parent: dict[Node, Node | None] = {root: None}
    children: dict[Node, dict[Node, range]] = {root: {}}
    for at, member in enumerate(members):
        below, here = member, fabric.leaf_of(member)
        while True:
            inside = children.setdefault(here, {})
            known = inside.get(below)
            inside[below] = range(known.start if known else at, at + 1)
            if here == root:
                break
            ups = sorted(up for up in graph.neighbors(here) if depth[up] == depth[here] - 1)
            parent[here] = ups[group.number % len(ups)]
            below, here = here, ups[group.number % len(ups)]
    tree = Tree(parent, children)
    return tree if _is_usable(tree) else None


def _is_usable(tree: Tree) -> bool:
    """Whether no switch has too many children, and members below each follow one another."""
    for children in tree.children.values():
        ranges = sorted(children.values(), key=lambda members: members.start)
        if len(children) > MAX_CHILDREN or any(
            before.stop > after.start for before, after in pairwise(ranges)
        ):
            return False
    return True


def _cable(fabric: Fabric, a: Node, b: Node, dead: Collection[str]) -> int | None:
    """The port of `b` to a living cable to `a`."""
    links = (link for link in fabric.links_between(a, b) if link.name not in dead)
    return next((link.port_of(b) for link in links), None)


def inc_entries(
    fabric: Fabric, switch: Node, group: Group, tree: Tree, dead: Collection[str]
) -> Iterator[Entity]:
    """What a switch of a tree is told (p4src/inc.p4)."""
    children = tree.children.get(switch)
    if children is None:
        return
    up = tree.parent[switch]
    job = {"hdr.inc.job": group.number}
    up_port = 0 if up is None else _cable(fabric, up, switch, dead)
    assert up_port is not None
    yield entry(
        "inc_trees",
        job,
        "inc_tree",
        first_cell=group.first_cell,
        cell_mask=_IN_CELLS * group.slots - 1,
        all_children=(1 << len(children)) - 1,
        root=up is None,
        up=up_port,
        up_mac=0 if up is None else mac_bits(fabric.mac(up)),
        address=int(fabric.loopback(switch)),
    )
    if up is not None:
        yield entry(
            "inc_neighbours", {**job, "standard_metadata.ingress_port": up_port}, "inc_parent"
        )
    for at, (child, below) in enumerate(children.items()):
        port = _cable(fabric, child, switch, dead)
        assert port is not None
        step, is_last = at + 1, at + 1 == len(children)
        is_host = child not in tree.children
        yield entry(
            "inc_neighbours",
            {**job, "standard_metadata.ingress_port": port},
            "inc_child",
            number=1 << at,
            result_step=step,
        )
        yield entry(
            "inc_steps",
            {**job, "meta.flood_step": step},
            "inc_give",
            port=port,
            mac=mac_bits(fabric.mac(child, switch) if is_host else fabric.mac(child)),
            address=int(fabric.address(child, switch) if is_host else fabric.loopback(child)),
            first=below.start,
            last=below.stop - 1,
            after=0 if is_last else step + 1,
        )

"""Fabrics from containerlab's topologies (containerlab.dev/manual/topo-def-file).

    name: mine
    topology:
      defaults: {kind: nokia_srlinux}
      nodes: {leaf1: {}, spine1: {}, gpu1: {kind: linux, group: server}}
      links: [{endpoints: ["leaf1:e1-1", "spine1:e1-1"]}, ...]

A node is a host if its `group`, or a label `role`, says so, or if its kind is linux and one cable
leads to it; one of kind linux with several is taken for a router, and told. Rates and delays are
not told there. What leads to the machine itself (host, mgmt-net, macvlan) is no part of the fabric.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from topologies.described import Described, listing, mapping, shown
from topologies.fabric import TopologyError

_HOSTS = {"host", "hosts", "server", "servers", "client", "clients", "gpu", "gpus"}
_SWITCHES = {"leaf", "spine", "superspine", "core", "tor", "router", "switch"}
_OUTSIDE = {"host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch"}
_PLAIN = "linux"


def is_containerlab(content: dict[str, Any]) -> bool:
    """Whether a file is one."""
    topology = content.get("topology")
    return isinstance(topology, dict) and "nodes" in topology


def read_containerlab(content: dict[str, Any]) -> Described:
    """What it describes."""
    found = Described()
    topology = mapping(content.get("topology"), "topology")
    nodes = mapping(topology.get("nodes"), "topology.nodes")
    groups = mapping(topology.get("groups"), "topology.groups")
    usual = mapping(topology.get("defaults"), "topology.defaults")
    links = list(_links(topology, found))
    degree = Counter(name for ends, _ in links for name, _ in ends)
    for name, node in nodes.items():
        said = mapping(node, f"node {shown(name)}")
        group = str(said.get("group", ""))
        of_group = mapping(groups.get(group), f"group {shown(group)}")
        kind = str(said.get("kind", of_group.get("kind", usual.get("kind", ""))))
        labels = mapping(said.get("labels"), f"labels of node {shown(name)}")
        role = str(labels.get("role", group)).lower()
        is_host = role in _HOSTS
        if role not in _HOSTS | _SWITCHES and kind == _PLAIN:
            is_host = degree[name] == 1
            if degree[name] > 1:
                found.note(f"{shown(name)}: its kind is linux, and it has {degree[name]} cables; "
                           "it is taken for a router: say group: server if it is none")  # fmt: skip
        found.hosts[name] = is_host
    for ends, what in links:
        (a, _), (b, _) = ends
        found.cable(a, b, what)
    found.note("containerlab tells neither rates nor delays: link.rate_gbps and link.delay_ns hold")
    return found


def _links(topology: Any, found: Described) -> Any:
    """Pairs of ends, each a node and its interface, and what a note calls them."""
    for at, link in enumerate(listing(topology.get("links"), "topology.links"), 1):
        what = f"link {at}"
        if not isinstance(link, dict):
            raise TopologyError(f"{what} is to have endpoints: [node:interface, node:interface]")
        ends = link.get("endpoints")
        if ends is None and "endpoint" in link:  # of one end: host, mgmt-net, dummy ...
            found.note(f"{what}: its type is {shown(link.get('type', 'none'))}; it is left out")
            continue
        if not isinstance(ends, list) or len(ends) != 2:
            raise TopologyError(f"{what} is to have two endpoints")
        pair = [_end(end, what) for end in ends]
        outside = [name for name, _ in pair if name in _OUTSIDE]
        if outside:
            found.note(f"{what} leads to {outside[0]}, out of the lab; it is left out")
            continue
        unread = sorted(map(shown, link.keys() - {"endpoints", "type"}))
        if unread:
            found.note(f"{what}: {', '.join(unread)} not read")
        yield pair, what


def _end(end: Any, what: str) -> tuple[str, str]:
    """`node:interface`, or the same as keys."""
    if isinstance(end, str) and end.count(":") == 1:
        name, _, interface = end.partition(":")
        return name, interface
    if isinstance(end, dict) and isinstance(end.get("node"), str):
        return end["node"], str(end.get("interface", ""))
    raise TopologyError(f"{what}: an endpoint is to be node:interface, and is {shown(end)}")

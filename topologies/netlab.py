"""Fabrics from netlab's topologies (netlab.tools/topology-reference, netlab.tools/links).

    defaults.device: eos
    nodes: [l1, l2, s1, {name: h1, device: linux}]    # or by name: {l1: {}, h1: {role: host}}
    groups: {hosts: {members: [h2], device: linux}}
    links: [l1-s1, l2-s1, [l1, h1], {l2: {}, h2: {}}]

A node is a host if its role says so, or if its device is linux, which is a host there. A link of
more than two nodes is a segment, and left out as one of a single node is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from topologies.described import Described, listing, mapping, shown
from topologies.fabric import TopologyError

_HOST_DEVICES = {"linux"}
_UNREAD = "bandwidth", "mtu", "type", "prefix", "pool", "vlan", "vrf", "ospf", "isis", "bgp"


def is_netlab(content: dict[str, Any]) -> bool:
    """Whether a file is one, and no graph of networkx."""
    nodes, links = content.get("nodes"), content.get("links")
    if links is None or not isinstance(links, list | dict):
        return False
    if isinstance(nodes, dict):
        return bool(nodes)
    return isinstance(nodes, list) and bool(nodes) and all(
        isinstance(node, str) or (isinstance(node, dict) and "name" in node and "id" not in node)
        for node in nodes
    )  # fmt: skip


def read_netlab(content: dict[str, Any]) -> Described:
    """What it describes."""
    found = Described()
    usual = content.get("defaults.device")
    if usual is None:
        defaults = content.get("defaults")
        usual = defaults.get("device") if isinstance(defaults, dict) else None
    nodes = dict(_nodes(content["nodes"]))
    groups = mapping(content.get("groups"), "groups")
    of_group: dict[str, dict[str, Any]] = {}
    for name, group in groups.items():
        said = mapping(group, f"group {shown(name)}") if not isinstance(group, list) else {}
        members = group if isinstance(group, list) else said.get("members")
        for member in listing(members, f"the members of group {shown(name)}"):
            if isinstance(member, str):
                of_group.setdefault(member, {}).update(said)
    for name, node in nodes.items():
        said = {**of_group.get(name, {}), **node}
        role, device = str(said.get("role", "")), str(said.get("device", usual or ""))
        found.hosts[name] = role == "host" if role else device in _HOST_DEVICES
        if not role and not device:
            found.note(f"{shown(name)}: nothing says what it is; it is taken for a switch")
    for at, link in enumerate(_each(content["links"]), 1):
        _link(found, link, f"link {at}")
    unread = sorted(
        shown(key) for key in content.keys() - {"nodes", "links", "groups", "defaults", "name"}
        if key != "defaults.device"
    )  # fmt: skip
    if unread:
        found.note(f"not read: {', '.join(unread)}")
    found.note("delays are not told, and rates are not read: link.rate_gbps and link.delay_ns hold")
    return found


def _nodes(nodes: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if isinstance(nodes, dict):
        for name, node in mapping(nodes, "nodes").items():
            yield name, mapping(node, f"node {shown(name)}")
        return
    for node in nodes:
        if isinstance(node, str):
            yield node, {}
        elif isinstance(node["name"], str):
            yield node["name"], node
        else:
            raise TopologyError(f"a node's name is {shown(node['name'])}, and is to be a text")


def _each(links: Any) -> Iterator[Any]:
    """Links, which may stand in groups of their own."""
    for link in links if isinstance(links, list) else [
        each for group in links.values() for each in listing(group, "a group of links")
    ]:  # fmt: skip
        if isinstance(link, dict) and isinstance(link.get("links"), list):
            yield from link["links"]
        else:
            yield link


def _link(found: Described, link: Any, what: str) -> None:
    if isinstance(link, str):
        ends: list[Any] = _split(found, link)
    elif isinstance(link, list):
        ends = link
    elif isinstance(link, dict):
        ends = listing(link["interfaces"], f"{what}: interfaces") if "interfaces" in link else [
            key for key in link if key in found.hosts]  # fmt: skip
        unread = [key for key in _UNREAD if key in link]
        if unread:
            found.note(f"{what}: {', '.join(unread)} not read")
    else:
        raise TopologyError(f"{what} is {shown(link)}: write it as a-b, [a, b] or {{a: , b: }}")
    nodes = [end.get("node") if isinstance(end, dict) else end for end in ends]
    names = [name for name in nodes if isinstance(name, str)]
    if len(names) < len(nodes):
        raise TopologyError(f"{what}: its ends are to be nodes' names")
    if len(names) != 2:
        found.note(f"{what} has {len(names)} ends ({shown(', '.join(names))}); it is left out")
        return
    found.cable(names[0], names[1], what)


def _split(found: Described, link: str) -> list[Any]:
    """`a-b`, whatever hyphens names have."""
    if link in found.hosts:
        return [link]
    parts = link.split("-")
    pairs = (["-".join(parts[:at]), "-".join(parts[at:])] for at in range(1, len(parts)))
    ways: list[list[Any]] = [pair for pair in pairs if all(name in found.hosts for name in pair)]
    return ways[0] if len(ways) == 1 else list(parts)

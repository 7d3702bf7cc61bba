"""Fabrics from networkx: graphs as `node_link_data` or `adjacency_data` write them.

    {"nodes": [{"id": "a", "kind": "host"}, {"id": "tor", "kind": "switch"}, ...],
     "links": [{"source": "a", "target": "tor", "rate_gbps": 100, "delay_ns": 500}, ...]}

A node may say what it is (`kind`, `type` or `role`); where none does, those with one cable are
hosts. An edge may say its rate and delay, each in one of the ways of `_RATES` and `_DELAYS`, and at
which ports it ends (`source_port`, `target_port`). Several edges between two switches are several
cables; of a directed graph an edge and the one back are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from topologies.cabling import Cable, End, Identity, Imported, cabled, delay_of, rate_of
from topologies.fabric import MAX_PORT, USUAL, Speed, TopologyError

MAX_EDGES = 1 << 20
_KINDS = ("kind", "type", "role")
_HOSTS = frozenset(("host", "server", "gpu", "npu", "xpu", "nic", "rank"))
_RATES = {
    "rate_gbps": "G", "bandwidth_gbps": "G", "capacity_gbps": "G", "rate_bps": "",
    "rate": None, "bandwidth": None, "capacity": None, "speed": None,
}  # fmt: skip
_DELAYS = {
    "delay_ns": "ns", "latency_ns": "ns", "delay_us": "us", "latency_us": "us", "delay_ms": "ms",
    "latency_ms": "ms", "delay": None, "latency": None,
}  # fmt: skip
_PORTS = ("source_port", "target_port")


def import_networkx(content: Any) -> Imported:
    """Build a fabric from what networkx wrote."""
    nodes = _nodes(content)
    edges = list(_edges(content, nodes))
    if content.get("directed") is True:
        edges = list(_once_each(edges))
    degree = Counter(end.node for _, edge in edges for end in (edge.a, edge.b))
    said = {name: _says(name, node) for name, node in nodes.items()}
    if not any(said.values()):
        said = {name: "host" if degree[name] == 1 else "switch" for name in nodes}
    hosts = {name: Identity() for name, kind in said.items() if kind in _HOSTS}
    return cabled(hosts, [name for name in nodes if name not in hosts], [e for _, e in edges])


def _nodes(content: Any) -> dict[str, dict[str, Any]]:
    if not isinstance(content, dict) or not isinstance(content.get("nodes"), list):
        raise TopologyError("'nodes' is missing, or is no list")
    nodes: dict[str, dict[str, Any]] = {}
    for at, node in enumerate(content["nodes"]):
        if not isinstance(node, dict) or "id" not in node:
            raise TopologyError(f"node {at} has no 'id'")
        name = _name(node["id"])
        if name in nodes:
            raise TopologyError(f"node {name} is there twice")
        nodes[name] = node
    return nodes


def _name(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TopologyError(f"{str(value)[:40]!r} is no node's name: write a text or a number")
    return str(value)


def _says(name: str, node: dict[str, Any]) -> str:
    """What a node says it is; nothing: it does not say."""
    found = next((node[key] for key in _KINDS if node.get(key) is not None), "")
    if not isinstance(found, str):
        raise TopologyError(f"node {name}: its kind is {str(found)[:40]!r}: write host or switch")
    return found.lower()


def _edges(
    content: dict[str, Any], nodes: dict[str, dict[str, Any]]
) -> Iterator[tuple[int, Cable]]:
    """The edges, each with its number."""
    for at, (source, target, edge) in enumerate(_listed(content, list(nodes)), 1):
        if at > MAX_EDGES:
            raise TopologyError(f"more than {MAX_EDGES:,} edges")
        place = f"edge {at}"
        try:
            for end in (source, target):
                if end not in nodes:
                    raise TopologyError(f"there is no node {end[:40]}")
            place += f", {source} to {target}"
            from_port, to_port = (_port(edge, key) for key in _PORTS)
            yield at, Cable(End(source, from_port), End(target, to_port), _speed(edge))
        except TopologyError as error:
            raise TopologyError(f"{place}: {error}") from None


def _listed(content: dict[str, Any], names: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The ends of every edge, and the edge: as a list of them, or node by node."""
    if "adjacency" in content:
        yield from _beside(content, names)
        return
    edges = content.get("links", content.get("edges"))
    if not isinstance(edges, list):
        raise TopologyError("'links' (or 'edges') is missing, or is no list")
    for at, edge in enumerate(edges, 1):
        if not isinstance(edge, dict) or not {"source", "target"} <= edge.keys():
            raise TopologyError(f"edge {at} has no 'source' and 'target'")
        yield _name(edge["source"]), _name(edge["target"]), edge


def _beside(content: dict[str, Any], names: list[str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    rows = content["adjacency"]
    if not isinstance(rows, list) or len(rows) != len(names):
        raise TopologyError("'adjacency' is no list with an entry for each node")
    over: set[str] = set()
    for name, row in zip(names, rows, strict=True):
        for edge in row if isinstance(row, list) else [row]:
            if not isinstance(edge, dict) or "id" not in edge:
                raise TopologyError(f"'adjacency' of {name}: an edge has no 'id'")
            peer = _name(edge["id"])
            if peer not in over or content.get("directed") is True:  # it was told there already
                yield name, peer, edge
        over.add(name)


def _once_each(edges: list[tuple[int, Cable]]) -> Iterator[tuple[int, Cable]]:
    """Without the ways back."""
    back: Counter[tuple[str, str]] = Counter()
    for number, edge in edges:
        ends = edge.a.node, edge.b.node
        if back[ends]:
            back[ends] -= 1
        else:
            back[ends[::-1]] += 1
            yield number, edge


def _speed(edge: dict[str, Any]) -> Speed:
    rates = [rate_of(edge[key], unit) for key, unit in _RATES.items() if key in edge]
    delays = [delay_of(edge[key], unit) for key, unit in _DELAYS.items() if key in edge]
    for found, what in ((rates, "rates"), (delays, "delays")):
        if len(set(found)) > 1:
            raise TopologyError(f"it has two {what}")
    if not rates and not delays:
        return USUAL
    return Speed(rates[0] if rates else None, delays[0] if delays else None)


def _port(edge: dict[str, Any], key: str) -> int | None:
    port = edge.get(key)
    if port is None:
        return None
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= MAX_PORT:
        raise TopologyError(f"{key} is {str(port)[:40]!r}: it is a number from 0 to {MAX_PORT}")
    return port

"""Fabrics from GraphML, as networkx and drawing programs write it.

    <graphml><key id="d0" for="node" attr.name="kind" attr.type="string"/>
      <graph edgedefault="undirected">
        <node id="a"><data key="d0">host</data></node> ...
        <edge source="a" target="tor"/> ...

Keys name what nodes and edges say; what that means is told in `networkx_graph.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from xml.etree.ElementTree import Element

from topologies.cabling import Imported
from topologies.fabric import TopologyError
from topologies.networkx_graph import import_networkx

_TYPES: dict[str, Callable[[str], Any]] = {
    "int": int, "long": int, "float": float, "double": float, "string": str,
    "boolean": lambda text: text.strip().lower() in ("true", "1"),
}  # fmt: skip


class NotGraphMLError(TopologyError):
    """XML of another kind."""


def import_graphml(root: Element) -> Imported:
    """Build a fabric from a file's root element."""
    if _tag(root) != "graphml":
        raise NotGraphMLError(f"it begins with <{_tag(root)[:40]}>, and GraphML with <graphml>")
    keys = {key.get("id", ""): _key(key) for key in _all(root, "key")}
    usual = {
        group: {name: value for where, name, _, value in keys.values() if where in (group, "all")}
        for group in ("node", "edge")
    }
    graphs = list(_all(root, "graph"))
    if len(graphs) != 1:
        raise TopologyError(f"it has {len(graphs)} graphs, and one has to be there")
    (graph,) = graphs
    if next(_all(graph, "hyperedge"), None) is not None:
        raise TopologyError("it has a hyperedge: a cable has two ends")
    nodes = [
        _said(node, keys, usual["node"], f"node {at}") | {"id": node.get("id", "")}
        for at, node in enumerate(_all(graph, "node"), 1)
    ]
    edges = [
        _said(edge, keys, usual["edge"], f"edge {at}")
        | {end: edge.get(end, "") for end in ("source", "target")}
        for at, edge in enumerate(_all(graph, "edge"), 1)
    ]
    directed = graph.get("edgedefault") == "directed"
    return import_networkx({"directed": directed, "nodes": nodes, "links": edges})


# For what it is, its name, how it is read, and what holds where nothing is said.
Key = tuple[str, str, Callable[[str], Any], Any]


def _key(key: Element) -> Key:
    name = key.get("attr.name", key.get("id", ""))
    kind = key.get("attr.type", "string")
    if kind not in _TYPES:
        raise TopologyError(f"key {name[:40]}: there is no type '{kind[:40]}'")
    default = next((_read(_TYPES[kind], each, name) for each in _all(key, "default")), None)
    return key.get("for", "all"), name, _TYPES[kind], default


def _said(
    element: Element, keys: dict[str, Key], usual: dict[str, Any], place: str
) -> dict[str, Any]:
    found = {name: value for name, value in usual.items() if value is not None}
    for data in _all(element, "data"):
        key = keys.get(data.get("key", ""))
        if key is None:
            raise TopologyError(f"{place}: there is no key '{data.get('key', '')[:40]}'")
        found[key[1]] = _read(key[2], data, f"{place}, {key[1]}")
    return found


def _read(kind: Callable[[str], Any], element: Element, place: str) -> Any:
    text = "".join(element.itertext())
    try:
        return kind(text if len(text) <= 400 else "x")
    except ValueError:
        raise TopologyError(f"{place[:60]}: {text[:40]!r} is not of its type") from None


def _all(element: Element, tag: str) -> Iterator[Element]:
    return (child for child in element if _tag(child) == tag)


def _tag(element: Element) -> str:
    """An element's name, without its namespace."""
    return str(element.tag).rpartition("}")[2]

"""Topologies that other labs and switches are described by, as graphs of hosts and switches.

What such a file says and a fabric has not, or what it does not say, is told in notes and left out:
nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from params.data import Data
from topologies.cabling import Imported
from topologies.fabric import TopologyError
from topologies.networkx_graph import import_networkx

MAX_NOTES = 200
_MAX_NAME = 120


class Described(Data, frozen=False):
    """Nodes by name, whether each is a host, cables between them, and what was left out."""

    hosts: dict[str, bool] = field(default_factory=dict)
    cables: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Tell something once; of very many the first ones."""
        if text not in self.notes and len(self.notes) < MAX_NOTES:
            self.notes.append(text)

    def cable(self, a: str, b: str, what: str, **said: Any) -> None:
        """One between two nodes that are there; others are told."""
        for end in (a, b):
            if end not in self.hosts:
                self.note(f"{what}: there is no node {shown(end)}; it is left out")
                return
        if a == b:
            self.note(f"{what}: both ends are {shown(a)}; it is left out")
            return
        self.cables.append({"source": a, "target": b, **said})

    def imported(self) -> Imported:
        """As a fabric; nodes without a cable are left out and told."""
        ends = {edge[end] for edge in self.cables for end in ("source", "target")}
        for name in self.hosts.keys() - ends:
            self.note(f"{shown(name)}: no cable leads to it; it is left out")
        for edge in list(self.cables):
            if self.hosts[edge["source"]] and self.hosts[edge["target"]]:
                self.cables.remove(edge)
                both = f"{shown(edge['source'])} and {shown(edge['target'])}"
                self.note(f"{both} are hosts, with a cable between them; it is left out")
        nodes = [{"id": name, "kind": "host" if is_host else "switch"}
                 for name, is_host in self.hosts.items() if name in ends]  # fmt: skip
        return import_networkx({"nodes": nodes, "links": self.cables})


def shown(value: object) -> str:
    """A stranger's word, as it may be told."""
    text = str(value)
    said = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:_MAX_NAME])
    return said if len(text) <= _MAX_NAME else f"{said}..."


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    """A section, by names; nothing where nothing is said."""
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise TopologyError(f"{what} is to be names, each with what is said of it")
    return value


def listing(value: Any, what: str) -> list[Any]:
    """A list; nothing where nothing is said."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise TopologyError(f"{what} is to be a list")
    return value

"""Fabrics from lists: who is a host, who is a switch, and which cables lie between them.

Whatever a file calls its switches, here they are called by how far they are from hosts: those
with hosts are leaves, their neighbours spines, and all above cores. Hosts and the switches of a
tier keep the order in which they are named.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from params.data import Data
from topologies.fabric import USUAL, Fabric, Node, NodeKind, Speed, TopologyError

MAX_NODES = 1 << 16
_RATES_BPS = 1_000, 10**13  # what a scenario may say too
_LONGEST_NS = 10**9
_BITS = {"b": 1, "B": 8}
_SCALE = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_RATE = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)\s*([KMGT]?)(?:([bB])(?:ps|/s)|bit/s)", re.I)
_TIME = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)\s*(s|ms|us|ns)")
_NS = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}


class Imported(Data):
    """A fabric and what its file called the nodes."""

    fabric: Fabric
    aliases: Mapping[str, Node]


class Identity(Data):
    """What a file says of a host, if it does."""

    address: IPv4Address | None = None
    mac: str | None = None


class End(Data):
    """Where a cable ends: at a node, perhaps at a port of a certain number."""

    node: str
    port: int | None = None


class Cable(Data):
    """What lies between two nodes; without a speed it is like all others."""

    a: End
    b: End
    speed: Speed = USUAL


def cabled(
    hosts: Mapping[str, Identity], switches: Sequence[str], cables: Iterable[Cable]
) -> Imported:
    """The fabric of these nodes and cables."""
    laid = [_host_first(cable, hosts) for cable in cables]
    tiers = _tiers(hosts, switches, laid)
    aliases: dict[str, Node] = {}
    for kind in NodeKind:
        names = [name for name in (*hosts, *switches) if tiers.get(name) is kind]
        aliases |= {name: Node(kind, number) for number, name in enumerate(names, 1)}
    fabric = Fabric()
    for cable in laid:
        a, b = cable.a, cable.b
        if aliases[a.node].kind > aliases[b.node].kind:
            a, b = b, a
        ends = aliases[a.node], aliases[b.node]
        try:
            if a.node in hosts:
                who = hosts[a.node]
                fabric.add_host(
                    *ends, cable.speed, port=b.port, address=who.address, mac=who.mac
                )  # fmt: skip
            else:
                fabric.add_link(*ends, cable.speed, a_port=a.port, b_port=b.port)
        except TopologyError as error:
            raise TopologyError(f"{a.node} to {b.node}: {error}") from None
    return Imported(fabric, aliases)


def _host_first(cable: Cable, hosts: Mapping[str, Identity]) -> Cable:
    a, b = cable.a, cable.b
    if a.node == b.node:
        raise TopologyError(f"{a.node} is cabled to itself")
    if b.node in hosts:
        if a.node in hosts:
            raise TopologyError(f"{a.node} and {b.node} are both hosts; one end must be a switch")
        a, b = b, a
    return Cable(a, b, cable.speed)


def _tiers(
    hosts: Mapping[str, Identity], switches: Sequence[str], cables: Sequence[Cable]
) -> dict[str, NodeKind]:
    """What everybody is, by how far it is from hosts; all have to be cabled together."""
    if not hosts or not switches:
        raise TopologyError(f"there is no {'switch' if hosts else 'host'}")
    if len(hosts) + len(switches) > MAX_NODES:
        raise TopologyError(f"more than {MAX_NODES:,} hosts and switches")
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from((*hosts, *switches))
    seen = set()
    for cable in cables:
        graph.add_edge(cable.a.node, cable.b.node)
        if cable.a.node in seen:
            raise TopologyError(f"host {cable.a.node} has two links; a host has one port here")
        if cable.a.node in hosts:
            seen.add(cable.a.node)
    idle = next((host for host in hosts if host not in seen), None)
    if idle is not None:
        raise TopologyError(f"host {idle} has no link")
    far = nx.multi_source_dijkstra_path_length(graph, set(hosts))
    lost = next((switch for switch in switches if switch not in far), None)
    if lost is None and not nx.is_connected(graph):
        near = nx.node_connected_component(graph, next(iter(hosts)))
        lost = next(name for name in (*hosts, *switches) if name not in near)
    if lost is not None:
        raise TopologyError(f"no cable leads from {next(iter(hosts))} to {lost}")
    return {name: NodeKind(min(int(hops), NodeKind.CORE)) for name, hops in far.items()}


# --- what a cable is like -------------------------------------------------------------------------


def rate_of(value: Any, unit: str | None = None) -> int:
    """A rate: ``100 Gb/s``, or a number of so many units, ``G``."""
    found = None
    if unit is not None:
        found = _number(value, _SCALE[unit])
    elif isinstance(value, str) and (said := _RATE.fullmatch(value.strip())):
        bits = _BITS.get(said[3] or "b", 1)
        found = float(said[1]) * _SCALE[said[2].upper()] * bits
    if found is None or not _RATES_BPS[0] <= found <= _RATES_BPS[1]:
        least, most = (bound / _SCALE[unit or "M"] for bound in _RATES_BPS)
        like = f"a number from {least:g} to {most:g}" if unit else "such as 100Gbps"
        raise TopologyError(f"{_short(value)} is no rate: write {like}")
    return round(found)


def delay_of(value: Any, unit: str | None = None) -> int:
    """A delay: ``500ns``, or a number of so many units, ``ns``."""
    found = None
    if unit is not None:
        found = _number(value, _NS[unit])
    elif isinstance(value, str) and (said := _TIME.fullmatch(value.strip())):
        found = float(said[1]) * _NS[said[2]]
    if found is None or not 0 <= found <= _LONGEST_NS:
        like = f"a number of {unit}, a second at most" if unit else "such as 500ns, at most 1s"
        raise TopologyError(f"{_short(value)} is no delay: write {like}")
    return round(found)


def _number(value: Any, scale: int) -> float | None:
    """A number, or a text that is one."""
    try:
        number = float(value) * scale if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:56]}...'"

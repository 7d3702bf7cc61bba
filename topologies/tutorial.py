"""Fabrics from a `topology.json` in the style of the P4 tutorials.

    {"hosts":    {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": [...]}, ...},
     "switches": {"s1": {"runtime_json": "..."}, ...},
     "links":    [["h1", "s1-p1"], ["s1-p3", "s2-p3", "5ms", 10], ...]}

Hosts keep their names, addresses and MACs, switches their ports. A link may give its latency
(`"5ms"`, or milliseconds as a number) and its bandwidth in Mb/s. Switches with hosts are leaves,
those without are spines here, whatever they are called; `aliases` of the result has the names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

from topologies.fabric import Fabric, Node, NodeKind, Speed, TopologyError

_UNITS_NS = {"": 1_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1, "s": 1_000_000_000}
_LATENCY = re.compile(r"(\d+(?:\.\d+)?)\s*(s|ms|us|ns|)")
_END = re.compile(r"(?P<switch>.+)-p(?P<port>\d+)")


@dataclass(frozen=True, slots=True)
class Imported:
    """A fabric and what its file called the nodes."""

    fabric: Fabric
    aliases: Mapping[str, Node]


def read_tutorial(path: Path) -> Imported:
    """Read a file."""
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise TopologyError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise TopologyError(f"{path} is not JSON: {error}") from None
    try:
        return import_tutorial(content)
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from None


def import_tutorial(content: Any) -> Imported:
    """Build a fabric from a file's content."""
    for key, wanted in (("hosts", dict), ("switches", dict), ("links", list)):
        if not isinstance(content, dict) or not isinstance(content.get(key), wanted):
            raise TopologyError(f"'{key}' is missing, or is no {wanted.__name__}")
    links = [_link(link, content) for link in content["links"]]
    with_hosts = {b for a, _, b, _, _ in links if a in content["hosts"]}
    aliases: dict[str, Node] = {}
    for kind, names in (
        (NodeKind.LEAF, [name for name in content["switches"] if name in with_hosts]),
        (NodeKind.SPINE, [name for name in content["switches"] if name not in with_hosts]),
        (NodeKind.HOST, list(content["hosts"])),
    ):
        aliases |= {name: Node(kind, number) for number, name in enumerate(names, 1)}

    fabric = Fabric()
    cabled = set()
    for a, a_port, b, b_port, speed in links:
        if a in content["hosts"]:
            if a in cabled:
                raise TopologyError(f"host {a} has two links; a host has one port here")
            cabled.add(a)
            address, mac = _addresses(a, content["hosts"][a])
            fabric.add_host(aliases[a], aliases[b], speed, port=b_port, address=address, mac=mac)
        else:
            fabric.add_link(aliases[a], aliases[b], speed, a_port=a_port, b_port=b_port)
    idle = sorted(set(content["hosts"]) - cabled)
    if idle:
        raise TopologyError(f"host {idle[0]} has no link")
    return Imported(fabric, aliases)


def _link(link: Any, content: dict[str, Any]) -> tuple[str, int, str, int, Speed]:
    """Both ends with their ports, a host first, and what is particular."""
    if not isinstance(link, list) or not 2 <= len(link) <= 4:
        raise TopologyError(f"{link!r} is no link: write two ends, a latency, a bandwidth")
    ends = sorted(
        (_end(end, content) for end in link[:2]), key=lambda e: e[0] not in content["hosts"]
    )
    (a, a_port), (b, b_port) = ends
    if b in content["hosts"]:
        raise TopologyError(f"{link!r} joins two hosts; one end must be a switch")
    delay = _latency_ns(link[2]) if len(link) > 2 else None
    rate = round(float(link[3]) * 1_000_000) if len(link) > 3 else None
    return a, a_port, b, b_port, Speed(rate, delay)


def _end(text: Any, content: dict[str, Any]) -> tuple[str, int]:
    if text in content["hosts"]:
        return text, 0
    found = _END.fullmatch(str(text))
    if found is None or found["switch"] not in content["switches"]:
        raise TopologyError(f"{text!r} is no end of a link: write a host's name, or s1-p1")
    return found["switch"], int(found["port"])


def _latency_ns(value: Any) -> int:
    found = _LATENCY.fullmatch(str(value).strip())
    if found is None:
        raise TopologyError(f"{value!r} is no latency: write 5ms, or milliseconds as a number")
    return round(float(found[1]) * _UNITS_NS[found[2]])


def _addresses(name: str, host: Any) -> tuple[IPv4Address, str]:
    try:
        return IPv4Interface(host["ip"]).ip, str(host["mac"]).lower()
    except (KeyError, TypeError, ValueError) as error:
        raise TopologyError(f"host {name}: 'ip' and 'mac' are needed: {error}") from None

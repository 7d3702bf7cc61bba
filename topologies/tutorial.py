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

from topologies.fabric import MAX_PORT, Fabric, Node, NodeKind, Speed, TopologyError

_UNITS_NS = {"": 1_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1, "s": 1_000_000_000}
_LATENCY = re.compile(r"(\d{1,30}(?:\.\d+)?)\s*(s|ms|us|ns|)", re.ASCII)
_END = re.compile(r"(?P<switch>.+)-p(?P<port>\d{1,9})", re.ASCII)
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.ASCII | re.IGNORECASE)
_MOST_BYTES = 16_000_000
_LONGEST_NS = 1_000_000_000
_RATES = 0.001, 10_000_000  # Mb/s: what a scenario may say too


@dataclass(frozen=True, slots=True)
class Imported:
    """A fabric and what its file called the nodes."""

    fabric: Fabric
    aliases: Mapping[str, Node]


def read_tutorial(path: Path) -> Imported:
    """Read a file."""
    try:
        if path.exists() and not path.is_file():
            raise TopologyError("it is no file")
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise TopologyError(f"it is too long: it may have {_MOST_BYTES:,} bytes")
        content = json.loads(data, parse_constant=_no_number, object_pairs_hook=_once_each)
    except OSError as error:
        raise TopologyError(f"{path} cannot be read: {error.strerror}") from None
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from None
    except ValueError as error:
        raise TopologyError(f"{path} is not JSON: {error}") from None
    except RecursionError:
        raise TopologyError(f"{path} is nested too deeply") from None
    try:
        return import_tutorial(content)
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from None


def _no_number(text: str) -> float:
    raise TopologyError(f"{text} is no number here")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise TopologyError(f"'{name}' is there twice")
        found[name] = value
    return found


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
    rate = _rate_bps(link[3]) if len(link) > 3 else None
    return a, a_port, b, b_port, Speed(rate, delay)


def _end(text: Any, content: dict[str, Any]) -> tuple[str, int]:
    if isinstance(text, str) and text in content["hosts"]:
        return text, 0
    found = _END.fullmatch(text) if isinstance(text, str) else None
    if found is None or found["switch"] not in content["switches"]:
        raise TopologyError(f"{text!r} is no end of a link: write a host's name, or s1-p1")
    port = int(found["port"])
    if not 1 <= port <= MAX_PORT:
        raise TopologyError(f"{text!r}: ports have the numbers from 1 to {MAX_PORT}")
    return found["switch"], port


def _latency_ns(value: Any) -> int:
    found = _LATENCY.fullmatch(str(value).strip())
    if found is None:
        raise TopologyError(f"{value!r} is no latency: write 5ms, or milliseconds as a number")
    delay = float(found[1]) * _UNITS_NS[found[2]]
    if delay > _LONGEST_NS:
        raise TopologyError(f"{value!r} is too long a latency: a second is the most")
    return round(delay)


def _rate_bps(value: Any) -> int:
    try:
        rate = float(value)
    except (TypeError, ValueError, OverflowError):
        rate = 0.0
    if not _RATES[0] <= rate <= _RATES[1]:
        raise TopologyError(f"{value!r} is no bandwidth: write Mb/s, from {_RATES[0]} to 10^7")
    return round(rate * 1_000_000)


def _addresses(name: str, host: Any) -> tuple[IPv4Address, str]:
    ip, mac = (host.get(key) if isinstance(host, dict) else None for key in ("ip", "mac"))
    if not isinstance(ip, str) or not isinstance(mac, str):
        raise TopologyError(f"host {name}: 'ip' and 'mac' are needed")
    if not _MAC.fullmatch(mac):
        raise TopologyError(f"host {name}: {mac!r} is no MAC address, such as 08:00:00:00:01:11")
    try:
        return IPv4Interface(ip).ip, mac.lower()
    except ValueError as error:
        raise TopologyError(f"host {name}: {error}") from None

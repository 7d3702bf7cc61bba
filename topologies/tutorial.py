"""Fabrics from a `topology.json` in the style of the P4 tutorials.

    {"hosts":    {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": [...]}, ...},
     "switches": {"s1": {"runtime_json": "..."}, ...},
     "links":    [["h1", "s1-p1"], ["s1-p3", "s2-p3", "5ms", 10], ...]}

Hosts keep their names, addresses and MACs, switches their ports. A link may give its latency
(`"5ms"`, or milliseconds as a number) and its bandwidth in Mb/s. Switches are called by their tier
here (`cabling.py`); `aliases` of the result has their names.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Interface
from typing import Any

from topologies.cabling import Cable, End, Identity, Imported, cabled, delay_of, rate_of
from topologies.fabric import MAX_PORT, Speed, TopologyError

_END = re.compile(r"(?P<switch>.+)-p(?P<port>\d{1,9})", re.ASCII)
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.ASCII | re.IGNORECASE)


def import_tutorial(content: Any) -> Imported:
    """Build a fabric from a file's content."""
    for key, wanted in (("hosts", dict), ("switches", dict), ("links", list)):
        if not isinstance(content, dict) or not isinstance(content.get(key), wanted):
            raise TopologyError(f"'{key}' is missing, or is no {wanted.__name__}")
    hosts = {name: _identity(name, host) for name, host in content["hosts"].items()}
    cables = [_link(link, content) for link in content["links"]]
    return cabled(hosts, list(content["switches"]), cables)


def _link(link: Any, content: dict[str, Any]) -> Cable:
    if not isinstance(link, list) or not 2 <= len(link) <= 4:
        raise TopologyError(f"{link!r} is no link: write two ends, a latency, a bandwidth")
    a, b = (_end(end, content) for end in link[:2])
    delay = _latency_ns(link[2]) if len(link) > 2 else None
    rate = rate_of(link[3], "M") if len(link) > 3 else None
    return Cable(a, b, Speed(rate, delay))


def _end(text: Any, content: dict[str, Any]) -> End:
    if isinstance(text, str) and text in content["hosts"]:
        return End(text)
    found = _END.fullmatch(text) if isinstance(text, str) else None
    if found is None or found["switch"] not in content["switches"]:
        raise TopologyError(f"{text!r} is no end of a link: write a host's name, or s1-p1")
    port = int(found["port"])
    if not 1 <= port <= MAX_PORT:
        raise TopologyError(f"{text!r}: ports have the numbers from 1 to {MAX_PORT}")
    return End(found["switch"], port)


def _latency_ns(value: Any) -> int:
    """``5ms``, or milliseconds as a number or a text."""
    try:
        return delay_of(value, "ms")
    except TopologyError:
        return delay_of(value)


def _identity(name: str, host: Any) -> Identity:
    ip, mac = (host.get(key) if isinstance(host, dict) else None for key in ("ip", "mac"))
    if not isinstance(ip, str) or not isinstance(mac, str):
        raise TopologyError(f"host {name}: 'ip' and 'mac' are needed")
    if not _MAC.fullmatch(mac):
        raise TopologyError(f"host {name}: {mac!r} is no MAC address, such as 08:00:00:00:01:11")
    try:
        return Identity(IPv4Interface(ip).ip, mac.lower())
    except ValueError as error:
        raise TopologyError(f"host {name}: {error}") from None

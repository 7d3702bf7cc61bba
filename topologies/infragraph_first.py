"""InfraGraph's first form, told in its later one.

    devices:     [{name: server, components: [{name: xpu, type: xpu}, {name: nic, type: nic}]}, ...]
    links:       [{name: eth, bandwidth: {choice: gigabytes_per_second, ...}}, ...]
    instances:   [{name: host, device: server}, {name: leaf, device: switch}, ...]
    connections: [host.0.nic.1.eth.leaf.0.port.3, ...]

A connection names both ends and the link between them. How many there are of an instance or a
component need not be said: what connections name is there. A switch's ports are called cards too
(`type: nic`), so that a server is what has an accelerator or a processor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from itertools import islice
from typing import Any

from topologies.cabling import MAX_NODES
from topologies.fabric import TopologyError

_WORDS = 9  # instance, which, component, which, link, and the other end
_OF_SERVERS = ("xpu", "cpu")
_MAX_CONNECTIONS = 1 << 20


def is_first_form(content: dict[str, Any]) -> bool:
    """Whether a file's cables are told so."""
    return "connections" in content and "edges" not in content


def in_later_form(content: dict[str, Any]) -> dict[str, Any]:
    """The same content as `infragraph` reads it."""
    connections = content["connections"]
    if not isinstance(connections, list) or len(connections) > _MAX_CONNECTIONS:
        raise TopologyError("'connections' is no list, or too long a one")
    devices = {str(one.get("name")): one for one in _sections(content, "devices")}
    instances = {str(one.get("name")): one for one in _sections(content, "instances")}
    many: dict[str, int] = defaultdict(int)  # of an instance
    parts: dict[tuple[str, str], int] = defaultdict(int)  # of a device's component
    edges = []
    for at, connection in enumerate(connections):
        words = connection.split(".") if isinstance(connection, str) else []
        if len(words) != _WORDS:
            raise TopologyError(
                f"connections[{at}]: {str(connection)[:60]!r} is no cable between two instances: "
                "write host.0.nic.1.eth.leaf.0.port.3"
            )
        ends = []
        for name, which, component, place in (words[:4], words[5:]):
            if name not in instances:
                raise TopologyError(f"connections[{at}]: {no_instance(name, instances)}")
            device = str(instances[name].get("device"))
            many[name] = max(many[name], _number(which, at) + 1)
            parts[device, component] = max(parts[device, component], _number(place, at) + 1)
            ends.append({"instance": f"{name}[{which}]", "component": f"{component}[{place}]"})
        edges.append({"ep1": ends[0], "ep2": ends[1], "scheme": "one2one", "link": words[4]})
    return {
        "devices": [_device(name, device, parts) for name, device in devices.items()],
        "links": [_link(link) for link in _sections(content, "links")],
        "instances": [{"count": many[name], **one} for name, one in instances.items()],
        "edges": edges,
    }


def no_instance(name: str, there: Collection[str]) -> str:
    """What to say of a name that no instance bears."""
    some = ", ".join(one[:40] for one in islice(there, 8)) or "none"
    return f"there is no instance '{name[:40]}'; there is: {some}"


def _sections(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = content.get(key) or []
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TopologyError(f"'{key}' is no list of sections")
    return found


def _number(text: str, at: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6) or int(text) >= MAX_NODES:
        raise TopologyError(f"connections[{at}]: '{text[:40]}' is no number below {MAX_NODES:,}")
    return int(text)


def _device(name: str, device: dict[str, Any], parts: dict[tuple[str, str], int]) -> dict[str, Any]:
    components = []
    for component in _sections(device, "components"):
        kind = str(component.get("type", component.get("choice", "")))
        components.append(
            {
                "count": parts.get((name, str(component.get("name"))), 1),
                **component,
                "choice": "xpu" if kind in _OF_SERVERS else "",
            }
        )
    return {"name": name, "components": components}


def _link(link: dict[str, Any]) -> dict[str, Any]:
    properties = {key: link[key] for key in ("bandwidth", "latency") if key in link}
    return link if "physical" in link or not properties else {**link, "physical": properties}

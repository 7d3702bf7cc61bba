"""Fabrics from InfraGraph, in which ASTRA-sim and Chakra describe clusters.

    devices:   [{name: server, components: [{name: nic, count: 2, choice: nic}, ...], ...}, ...]
    links:     [{name: eth, physical: {bandwidth: {choice: gigabits_per_second, ...}, ...}}, ...]
    instances: [{name: host, device: server, count: 4}, {name: leaf, device: switch, count: 2}, ...]
    edges:     [{ep1: {instance: "host[0:2]", component: "nic"},
                 ep2: {instance: "leaf[0]", component: "port[0:4]"}, scheme: one2one, link: eth}]

An instance of a device that has network cards or accelerators is a server: each of its components
that a cable leads to is a host here, `host.0.nic.1`. Every other instance is a switch, `leaf.0`,
and its port 3 the lab's port 4. What is inside a server (PCIe, NVLink) is no part of the fabric.
Files that tell cables as `connections` are of the first form (`infragraph_first.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import product
from typing import Any

from params.data import Data
from topologies.cabling import MAX_NODES, Cable, End, Identity, Imported, cabled, delay_of, rate_of
from topologies.fabric import MAX_PORT, USUAL, Speed, TopologyError
from topologies.infragraph_first import in_later_form, is_first_form, no_instance

_MAX_CABLES = 1 << 20
_DEEPEST = 16  # devices made of devices
_PART = re.compile(r"(?P<name>[^\[\].]+)(?:\[(?P<which>[^\[\]]*)\])?")
_RATES = {
    "gigabits_per_second": "Gb/s", "gigabytes_per_second": "GB/s", "giga_bits_per_second": "Gb/s",
    "giga_bytes_per_second": "GB/s",
}  # fmt: skip
_SCHEMES = ("one2one", "many2many")


def devices_missing(content: Mapping[str, Any]) -> set[str]:
    """The devices that instances name, and that are described elsewhere."""
    known = {str(device.get("name")) for device in _list(content, "devices")}
    return {_text(instance, "device") for instance in _list(content, "instances")} - known


class _Device(Data, frozen=False):
    counts: dict[str, int] = field(default_factory=dict)  # by component
    choices: dict[str, str] = field(default_factory=dict)


class _Place(Data, order=True):
    """A component of an instance, in the order in which hosts are counted."""

    instance: int
    number: int
    path: tuple[tuple[int, int], ...]  # which component, and which of them
    name: str = field(compare=False)
    node: str = field(compare=False)  # the instance's own name
    is_server: bool = field(compare=False)


def import_infragraph(content: Any) -> Imported:
    """Build a fabric from a file's content."""
    if not isinstance(content, dict):
        raise TopologyError("it is no infrastructure")
    if not any(content.get(key) for key in ("instances", "edges", "connections")):
        raise TopologyError("it describes devices alone: name the file with their instances")
    cables_are = "edges"
    if is_first_form(content):
        content, cables_are = in_later_form(content), "connections"
    lists = {key: _list(content, key) for key in ("devices", "links", "instances", "edges")}
    reader = _Reader(
        {_text(device, "name"): _device(device) for device in lists["devices"]},
        {_text(link, "name"): link for link in lists["links"]},
        {_text(one, "name"): one for one in lists["instances"]},
    )
    cables: list[tuple[_Place, _Place, Speed]] = []
    for at, edge in enumerate(lists["edges"]):
        try:
            cables += reader.cables(edge)
        except TopologyError as error:
            raise TopologyError(f"{cables_are}[{at}]: {error}") from None
        if len(cables) > _MAX_CABLES:
            raise TopologyError(f"more than {_MAX_CABLES:,} cables")
    places = sorted({place for a, b, _ in cables for place in (a, b)})
    hosts = {place.name: Identity() for place in places if place.is_server}
    switches = list(dict.fromkeys(place.node for place in places if not place.is_server))
    return cabled(hosts, switches, [Cable(_end(a), _end(b), speed) for a, b, speed in cables])


def _end(place: _Place) -> End:
    if place.is_server:
        return End(place.name)
    port = place.path[-1][1] + 1 if len(place.path) == 1 else None
    return End(place.node, port if port is not None and port <= MAX_PORT else None)


def _list(content: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = content.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise TopologyError(f"'{key}' is no list of sections")
    return found


def _text(section: Mapping[str, Any], key: str) -> str:
    found = section.get(key)
    if not isinstance(found, str) or not found:
        raise TopologyError(f"'{key}' is missing, or is no text")
    return found


def _count(section: Mapping[str, Any], what: str) -> int:
    found = section.get("count")
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MAX_NODES:
        raise TopologyError(f"{what}: its count is {str(found)[:40]!r}")
    return found


def _device(device: dict[str, Any]) -> _Device:
    found = _Device()
    for component in _list(device, "components"):
        name = _text(component, "name")
        if name in found.counts:
            raise TopologyError(f"device {device['name']}: component {name} is there twice")
        found.counts[name] = _count(component, f"component {name}")
        found.choices[name] = str(component.get("choice", ""))
    return found


class _Reader(Data, frozen=False):
    """Devices, links and instances by their names, and what edges make of them."""

    devices: dict[str, _Device]
    links: dict[str, dict[str, Any]]
    instances: dict[str, dict[str, Any]]
    named: int = 0  # components, by all edges together

    def cables(self, edge: dict[str, Any]) -> Iterator[tuple[_Place, _Place, Speed]]:
        """The cables of an edge."""
        name = _text(edge, "link")
        if name not in self.links:
            raise TopologyError(f"there is no link '{name[:40]}'")
        speed = _speed(self.links[name])
        ends = [self._places(edge, key) for key in ("ep1", "ep2")]
        scheme = edge.get("scheme", "one2one")
        if scheme not in _SCHEMES:
            raise TopologyError(f"scheme '{str(scheme)[:40]}' is not known: {', '.join(_SCHEMES)}")
        if scheme == "many2many" and len(ends[0]) * len(ends[1]) > _MAX_CABLES:
            raise TopologyError(f"more than {_MAX_CABLES:,} cables")
        pairs = product(*ends) if scheme == "many2many" else zip(*ends, strict=False)
        for a, b in pairs:
            if a != b:
                yield a, b, speed

    def _places(self, edge: dict[str, Any], key: str) -> list[_Place]:
        end = edge.get(key)
        if not isinstance(end, dict):
            raise TopologyError(f"'{key}' is missing")
        ((name, which),) = _parts(_text(end, "instance"), 1)
        if name not in self.instances:
            raise TopologyError(no_instance(name, self.instances))
        instance = self.instances[name]
        device = _text(instance, "device")
        numbers = _chosen(which, _count(instance, f"instance {name}"), name)
        paths = self._paths(device, _text(end, "component"))
        self.named += len(numbers) * len(paths)
        if self.named > _MAX_CABLES:
            raise TopologyError(f"more than {_MAX_CABLES:,} components are named")
        place = list(self.instances).index(name)
        is_server = self._is_server(device, _DEEPEST)
        return [
            _Place(place, number, path, f"{name}.{number}.{dotted}", f"{name}.{number}", is_server)
            for number in numbers
            for path, dotted in paths
        ]

    def _paths(self, device: str, text: str) -> list[tuple[tuple[tuple[int, int], ...], str]]:
        """Components of a device, which may be devices themselves: where, and how called."""
        found: list[tuple[tuple[tuple[int, int], ...], str]] = [((), "")]
        for name, which in _parts(text, _DEEPEST):
            own = self._device(device)
            if name not in own.counts:
                raise TopologyError(f"device {device} has no component '{name[:40]}'")
            at = list(own.counts).index(name)
            numbers = _chosen(which, own.counts[name], name)
            if len(found) * len(numbers) > MAX_NODES:
                raise TopologyError(f"'{text[:40]}' names more than {MAX_NODES:,} components")
            found = [
                ((*path, (at, number)), f"{dotted}.{name}.{number}".lstrip("."))
                for path, dotted in found
                for number in numbers
            ]
            device = name
        return found

    def _device(self, name: str) -> _Device:
        if name not in self.devices:
            raise TopologyError(
                f"device '{name[:40]}' is not described: add a .yaml or .json file that does so "
                "to this file's folder"
            )
        return self.devices[name]

    def _is_server(self, name: str, deep: int) -> bool:
        if not deep:
            raise TopologyError(f"device {name[:40]} is made of more than {_DEEPEST} devices")
        choices = self._device(name).choices
        return any(choice in ("nic", "xpu") for choice in choices.values()) or any(
            self._is_server(part, deep - 1)
            for part, choice in choices.items()
            if choice == "device"
        )


def _parts(text: str, most: int) -> list[tuple[str, str | None]]:
    """``nic[0:2]``, or ``card[0].port``: names, and which of them; None: all."""
    found = [_PART.fullmatch(part) for part in text.split(".", most)]
    if not all(found) or len(found) > most:
        raise TopologyError(f"'{text[:40]}' is no component: write nic, nic[0] or nic[0:2]")
    return [(part["name"], part["which"]) for part in found if part]


def _chosen(which: str | None, count: int, name: str) -> range:
    """The numbers that ``0:2``, ``3`` or nothing stand for."""
    words = (which or ":").split(":")
    try:
        bounds = [int(word) if word.strip() else None for word in words]
    except ValueError:
        bounds = []
    if not 1 <= len(bounds) <= 3 or any(abs(bound or 0) > MAX_NODES for bound in bounds):
        raise TopologyError(f"{name}[{str(which)[:40]}]: write a number, or first:end")
    if len(bounds) == 1:
        (at,) = bounds
        at = at if at is None or at >= 0 else at + count
        if at is None or not 0 <= at < count:
            raise TopologyError(f"there is no {name}[{which}]: they are 0 to {count - 1}")
        return range(at, at + 1)
    if len(bounds) == 3 and bounds[2] == 0:
        raise TopologyError(f"{name}[{which}] goes nowhere: its step is 0")
    if any(bound is not None and bound > count for bound in bounds[:2]):
        raise TopologyError(f"{name}[{which}] goes too far: there are {count}")
    return range(*slice(*bounds).indices(count))


def _speed(link: dict[str, Any]) -> Speed:
    physical = link.get("physical")
    if physical is None:
        return USUAL
    if not isinstance(physical, dict):
        raise TopologyError(f"link {link['name']}: 'physical' is no section")
    rate = _quantity(link, physical, "bandwidth")
    delay = _quantity(link, physical, "latency")
    try:
        if rate and rate[0] not in _RATES:
            raise TopologyError(f"'{rate[0][:40]}' is no cable's rate: {', '.join(_RATES)}")
        if delay and delay[0] not in ("ns", "us", "ms"):
            raise TopologyError(f"'{delay[0][:40]}' is no latency: ns, us or ms")
        return Speed(
            rate_of(f"{rate[1]:f}{_RATES[rate[0]]}") if rate else None,
            delay_of(delay[1], delay[0]) if delay else None,
        )
    except TopologyError as error:
        raise TopologyError(f"link {link['name']}: {error}") from None


def _quantity(link: dict[str, Any], physical: dict[str, Any], key: str) -> tuple[str, float] | None:
    """A unit and how many of it."""
    raw = physical.get(key)
    if raw is None:
        return None
    unit = raw.get("choice") if isinstance(raw, dict) else None
    value = raw.get(unit) if isinstance(unit, str) and isinstance(raw, dict) else None
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > 1e15:
        raise TopologyError(f"link {link['name']}: its {key} names no unit, or no number of it")
    return str(unit), value

"""Fabrics from a minigraph, in which SONiC's switches are told of themselves and their neighbours.

As src/sonic-config-engine/minigraph.py of sonic-buildimage reads it: `Devices` names devices and
their types, and `DeviceInterfaceLinks` cables (`DeviceLinkBase`), with their bandwidth in Mb/s. A
device whose type is Server is a host. Links for management and consoles are no part of the fabric.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

from topologies.described import Described, shown
from topologies.fabric import TopologyError

_TYPE = "{http://www.w3.org/2001/XMLSchema-instance}type"
_HOST, _CABLE = "Server", "DeviceInterfaceLink"
_NOT_OF_FABRIC = {"DeviceMgmtLink", "DeviceSerialLink"}
_MAX_MBPS = 10_000_000


def is_minigraph(root: Element) -> bool:
    """Whether an XML file is one."""
    return _tag(root) == "DeviceMiniGraph"


def read_minigraph(root: Element) -> Described:
    """What it describes."""
    found = Described()
    for device in _all(root, "Device"):
        kind = device.get(_TYPE) or _text(device, "ElementType")
        name = _text(device, "Hostname")
        if not name:
            found.note("a device without a Hostname is left out")
        elif name in found.hosts and found.hosts[name] != (kind == _HOST):
            raise TopologyError(f"device {shown(name)} is there twice, as a server and as none")
        else:
            found.hosts[name] = kind == _HOST
    if not found.hosts:
        raise TopologyError("it names no Device with a Hostname")
    rateless = 0
    seen: set[tuple[tuple[str, str], tuple[str, str]]] = set()
    for at, link in enumerate(_all(root, "DeviceLinkBase"), 1):
        kind = link.get(_TYPE) or _text(link, "ElementType")
        what = f"link {at}"
        if kind in _NOT_OF_FABRIC:
            continue
        if kind != _CABLE:
            found.note(f"links of type {shown(kind) or 'none'} are left out")
            continue
        a = _text(link, "StartDevice"), _text(link, "StartPort")
        b = _text(link, "EndDevice"), _text(link, "EndPort")
        ends = (a, b) if a < b else (b, a)
        if ends in seen:
            continue
        seen.add(ends)
        rate = _rate(link)
        rateless += not rate
        found.cable(a[0], b[0], what, **rate)
    if rateless:
        found.note(f"{rateless} cables tell no Bandwidth in Mb/s: link.rate_gbps holds for them")
    found.note("delays are not told: link.delay_ns holds")
    return found


def _rate(link: Element) -> dict[str, Any]:
    text = _text(link, "Bandwidth")
    is_number = text.isascii() and text.isdigit() and len(text) < len(str(10 * _MAX_MBPS))
    return {"rate_gbps": int(text) / 1000} if is_number and 0 < int(text) <= _MAX_MBPS else {}


def _tag(element: Element) -> str:
    return element.tag.rpartition("}")[2]


def _all(root: Element, tag: str) -> Iterator[Element]:
    return (element for element in root.iter() if _tag(element) == tag)


def _text(element: Element, tag: str) -> str:
    child = next((each for each in element if _tag(each) == tag), None)
    return (child.text or "").strip() if child is not None else ""

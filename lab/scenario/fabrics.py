"""Files that describe a fabric: which kind one is, and what is built of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from files import FileError, parse_json, read_text
from topologies import Described as Topology
from topologies import (
    Imported,
    NotGraphMLError,
    TopologyError,
    devices_missing,
    import_graphml,
    import_infragraph,
    import_networkx,
    import_ns3,
    import_topo,
    import_tutorial,
    is_containerlab,
    is_minigraph,
    is_netlab,
    read_containerlab,
    read_minigraph,
    read_netlab,
)
from traffic.reading import NotYamlError, YamlError, parse_xml, parse_yaml

_MAX_BYTES = 16_000_000
_MAX_BYTES_BESIDE, _MAX_BESIDE = 1_000_000, 64  # of files that may describe a file's devices
_TOPO = re.compile(r"(\s|#[^\n]*\n)*(nodes|tiers|podsize|tier)\s+\d", re.IGNORECASE)
_TOPO_ONLY = re.compile(r"^\s*(tiers|podsize|radix_down)\s+\d", re.IGNORECASE | re.MULTILINE)
_NS3 = re.compile(r"(\s|#[^\n]*\n)*\d+[ \t]+\d+[ \t]+\d+\s*(#[^\n]*)?\n[\d \t]*(#[^\n]*)?\n")
WHAT = {
    "tutorial": "a topology of the P4 tutorials",
    "networkx": "a graph of networkx",
    "graphml": "a graph in GraphML",
    "topo": "a fat tree of htsim",
    "ns3": "a topology of ns-3",
    "infragraph": "an infrastructure of InfraGraph",
    "containerlab": "a topology of containerlab",
    "netlab": "a topology of netlab",
    "minigraph": "a minigraph of SONiC",
}
SUFFIXES = (".json", ".yaml", ".yml", ".graphml", ".topo")
KNOWN = (
    "the P4 tutorials' topology.json, networkx' JSON, GraphML, htsim's .topo, ns-3's topology.txt, "
    "InfraGraph's YAML, topologies of containerlab and netlab, SONiC's minigraph.xml"
)


class NoFabricError(TopologyError):
    """A file that is of none of these kinds."""


class Described(NamedTuple):
    """What a file describes, which kind of file that is, and what was read beside it."""

    kind: str
    imported: Imported
    beside: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()  # what was left out, or not told


def read_fabric(path: Path) -> Imported:
    """The fabric that a file describes."""
    return described(path).imported


def described(path: Path) -> Described:
    """The fabric that a file describes, and which kind of file it is."""
    try:
        kind, content = _read(path)
    except (FileError, TopologyError) as error:
        raise NoFabricError(str(error)) from None
    build: dict[str, Callable[[Any], Imported]] = {
        "tutorial": import_tutorial, "networkx": import_networkx, "graphml": import_graphml,
        "topo": import_topo, "ns3": import_ns3, "infragraph": import_infragraph,
    }  # fmt: skip
    if kind is None:
        raise NoFabricError(f"{path}: it is not known what this is; known: {KNOWN}")
    beside: tuple[Path, ...] = ()
    with_notes: dict[str, Callable[[Any], Topology]] = {
        "containerlab": read_containerlab, "netlab": read_netlab, "minigraph": read_minigraph,
    }  # fmt: skip
    try:
        if kind in with_notes:
            read = with_notes[kind](content)
            return Described(kind, read.imported(), (), tuple(read.notes))
        if kind == "infragraph":
            content, beside = _with_devices(path, content)
        return Described(kind, build[kind](content), beside)
    except NotGraphMLError as error:
        raise NoFabricError(f"{path}: {error}") from None
    except TopologyError as error:
        raise TopologyError(f"{path}: {error}") from None


def _read(path: Path) -> tuple[str | None, Any]:
    """What a file is, and its content, taken apart as far as its form goes."""
    text = read_text(path, _MAX_BYTES)
    start = text.lstrip("\ufeff \t\r\n")
    try:
        if start.startswith("<"):
            root = parse_xml(text)
            return "minigraph" if is_minigraph(root) else "graphml", root
        if _TOPO.match(text) and _TOPO_ONLY.search(text):
            return "topo", text
        if _NS3.match(text):
            return "ns3", text
        content = _json(text) if start.startswith(("{", "[")) else parse_yaml(text)
    except NotYamlError as error:
        raise TopologyError(f"{path} is neither JSON nor YAML: {error}") from None
    except (TopologyError, YamlError, FileError) as error:
        raise TopologyError(f"{path}: {error}") from None
    if not isinstance(content, dict):
        return None, content
    content = _infrastructure(content)
    if is_containerlab(content):
        return "containerlab", content
    if is_netlab(content):
        return "netlab", content
    if "instances" in content or "devices" in content:
        return "infragraph", content
    if "nodes" in content:
        return "networkx", content
    if {"hosts", "switches", "links"} & content.keys():
        return "tutorial", content
    return None, content


def _infrastructure(content: dict[str, Any]) -> dict[str, Any]:
    """What an InfraGraph says, which may stand below a key."""
    inside = content.get("infrastructure")
    return inside if isinstance(inside, dict) else content


def _beside(path: Path) -> list[Path]:
    """What may describe devices, in the folder of a file; of very many files the first."""
    try:
        others = sorted(one for one in path.parent.iterdir() if one.suffix in SUFFIXES)
    except OSError:
        return []
    return others[:_MAX_BESIDE]


def _with_devices(path: Path, content: dict[str, Any]) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """An InfraGraph with the devices that files beside it describe, and these files."""
    missing, read = devices_missing(content), []
    devices = list(content.get("devices", []))
    for other in _beside(path) if missing else ():
        try:
            text = read_text(other, _MAX_BYTES_BESIDE)
            if not any(name in text for name in missing):
                continue
            there = _json(text) if text.lstrip().startswith("{") else parse_yaml(text)
        except (FileError, TopologyError):
            continue  # whatever lies there is none of this file's
        listed = _infrastructure(there).get("devices") if isinstance(there, dict) else None
        found = [
            device
            for device in (listed if isinstance(listed, list) else [])
            if isinstance(device, dict) and device.get("name") in missing
        ]
        if found:
            devices += found
            missing -= {device["name"] for device in found}
            read.append(other)
    return {**content, "devices": devices} if read else content, tuple(read)


def _json(text: str) -> Any:
    try:
        return parse_json(text, parse_constant=_no_number, object_pairs_hook=_once_each)
    except ValueError as error:
        raise TopologyError(f"it is not JSON: {error}") from None


def _no_number(text: str) -> float:
    raise TopologyError(f"{text} is no number here")


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise TopologyError(f"'{name}' is there twice")
        found[name] = value
    return found

"""A folder of switches' configurations as one fabric: who is cabled to whom.

`FOLDER/*.json` and `FOLDER/*/config_db.json` are switches; what stands beside them as
`HOSTNAME.lldp` is what `show lldp table` printed there, for switches without DEVICE_NEIGHBOR.

A neighbour is a switch if its file is in the folder. It is a host if DEVICE_NEIGHBOR_METADATA says
that it is a server, or if whoever asks names hosts by a pattern; any other is left out and told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from controller import LinkSpec
from files import FileError, is_folder, read_text, shown
from lab.errors import ScenarioError
from lab.sonic.config_db import Port, Switch, read_switch

_MOST_SWITCHES = 4096
_MOST_LLDP_BYTES = 4_000_000
_METRES_A_SECOND = 198_000_000  # as SONiC's own headroom calculation has it
_LLDP = re.compile(r"(?P<port>\S+)\s+(?P<device>\S+)\s+(?P<id>\S+)\s+[A-Z]*\s+(?P<about>\S.*)?")
_PORT = re.compile(r"Ethernet\d+(/\d+)*")
CONFIG = "config_db.json"
# How long a sender of so many Mb/s may take to obey, in quanta of 512 bits: IEEE 802.3, 31B.3.7, as
# SONiC's headroom calculation has it (sonic-swss, cfgmgr/buffer_headroom_mellanox.lua).
_QUANTA = {
    10_000: 67, 25_000: 80, 40_000: 118, 50_000: 147, 100_000: 394, 200_000: 453, 400_000: 905,
    800_000: 905,
}  # fmt: skip
_OTHERWISE_NS = 4000  # as pfc.response_ns has it


@dataclass(frozen=True, slots=True)
class Place:
    """A port of a switch."""

    switch: str
    port: str

    def __str__(self) -> str:
        """As a sentence names it."""
        return f"{self.switch} {self.port}"


@dataclass(frozen=True, slots=True)
class Cable:
    """Between two switches, or from a host's name to a switch."""

    a: Place
    b: Place

    @property
    def ends(self) -> tuple[tuple[Place, Place], tuple[Place, Place]]:
        """Each end, with the other."""
        return (self.a, self.b), (self.b, self.a)


@dataclass(slots=True)
class Fabric:
    """Switches, cables between them, and hosts."""

    folder: Path
    switches: dict[str, Switch]
    cables: list[Cable] = field(default_factory=list)
    hosts: dict[str, list[Place]] = field(default_factory=dict)
    one_sided: list[Cable] = field(default_factory=list)  # told by the first end alone
    contradicted: list[tuple[Place, Place]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    outward: set[str] = field(default_factory=set)  # switches with cables that are left out

    def port(self, place: Place) -> Port:
        """What is said of a port."""
        return self.switches[place.switch].ports[place.port]

    def in_use(self, switch: Switch) -> Iterator[Port]:
        """Ports that are up and lead somewhere, or are told how to queue."""
        for port in switch.ports.values():
            if port.is_up and (port.name in switch.neighbours or port.has_qos):
                yield port


def delay_ns(metres: float) -> int:
    """How long a bit takes."""
    return round(metres * 1e9 / _METRES_A_SECOND)


def response_ns(speed_mbps: int) -> int:
    """How long who sends at a speed may take to obey."""
    quanta = _QUANTA.get(speed_mbps)
    return _OTHERWISE_NS if quanta is None else round(quanta * 512 * 1000 / speed_mbps)


def link_of(port: Port) -> LinkSpec | None:
    """The cable at a port; None: its length is not told."""
    if port.cable_m is None:
        return None
    return LinkSpec(port.speed_mbps * 1_000_000, delay_ns(port.cable_m))


def has_configurations(folder: Path) -> bool:
    """Whether a folder looks like one of switches' configurations."""
    return is_folder(folder) and bool(_files(folder)) and not any(folder.glob("*.et"))


def _files(folder: Path) -> list[Path]:
    return [*sorted(folder.glob("*.json")), *sorted(folder.glob(f"*/{CONFIG}"))]


def read_fabric(folder: Path, hosts: str | None = None) -> Fabric:
    """All switches of a folder, cabled; ``hosts``: a pattern of names, such as ``gpu*``."""
    files = _files(folder) if is_folder(folder) else []
    if not files:
        raise ScenarioError(
            f"{shown(folder)} has no switch's configuration in it",
            f"Put each switch's {CONFIG} there, as NAME.json or NAME/{CONFIG}.",
        )
    if len(files) > _MOST_SWITCHES:
        raise ScenarioError(
            f"{shown(folder)} has {len(files):,} files", f"{_MOST_SWITCHES:,} are the most."
        )
    switches: dict[str, Switch] = {}
    for file in files:
        switch = read_switch(file)
        if switch.name in switches:
            raise ScenarioError(
                f"{shown(file)}: {switch.name} is there already, in "
                f"{shown(switches[switch.name].file)}",
                "Leave one of the two files out, or give DEVICE_METADATA its own hostname.",
            )
        switches[switch.name] = switch
    fabric = Fabric(folder, switches)
    for switch in switches.values():
        _hear_lldp(folder, switch)
    _lay(fabric, hosts)
    return fabric


def _hear_lldp(folder: Path, switch: Switch) -> None:
    """Neighbours by `show lldp table`, of a switch that is told of none."""
    beside = (folder / f"{switch.name}.lldp", switch.file.parent / "lldp.txt")
    for file in beside:
        if switch.neighbours or not file.is_file():
            continue
        try:
            text = read_text(file, _MOST_LLDP_BYTES)
        except FileError as error:
            raise ScenarioError(str(error), "It is to be what 'show lldp table' prints.") from None
        for line in text.splitlines():
            found = _LLDP.fullmatch(line.strip())
            if found is None or found["port"] not in switch.ports:
                continue
            about = found["about"] or ""
            port = about if _PORT.fullmatch(about) else found["id"]
            switch.neighbours[found["port"]] = found["device"], port


def _lay(fabric: Fabric, pattern: str | None) -> None:
    told: dict[Place, Place] = {}
    for switch in fabric.switches.values():
        for name, (device, port) in switch.neighbours.items():
            here = Place(switch.name, name)
            peer = fabric.switches.get(device)
            if peer is None:
                is_host = "server" in switch.roles.get(device, "").lower()
                if is_host or (pattern is not None and fnmatchcase(device, pattern)):
                    fabric.hosts.setdefault(device, []).append(here)
                else:
                    fabric.outward.add(switch.name)
                    what = switch.roles.get(device) or "nothing says what it is"
                    fabric.left_out.append(
                        f"{here}: its neighbour {device} has no file here ({what}); the cable is "
                        "left out"
                    )
                continue
            named = next(
                (p.name for p in peer.ports.values() if port in (p.name, p.alias) and port), None
            )
            if named is None:
                fabric.outward.add(switch.name)
                fabric.left_out.append(
                    f"{here}: {device} has no port {port}; the cable is left out"
                )
                continue
            told[here] = Place(device, named)
    taken: set[Place] = set()
    for here, there in sorted(told.items(), key=lambda pair: (pair[0].switch, pair[0].port)):
        back = told.get(there)
        if back is not None and back != here:
            fabric.contradicted.append((here, there))
            fabric.outward |= {here.switch, there.switch}
        elif here not in taken and there not in taken:
            taken |= {here, there}
            cable = Cable(here, there)
            fabric.cables.append(cable)
            if back is None:
                fabric.one_sided.append(cable)

"""A folder of switches' configurations as one fabric: who is cabled to whom.

`sources.py` knows whose files are read. `HOSTNAME.lldp` beside a switch's is what `show lldp
table` (SONiC), `show lldp neighbors` (EOS) or `net show lldp` (Cumulus) printed there, for switches
that do not name their neighbours. What is unknown then may follow from addresses (`joining.py`).

A neighbour is a switch if its file is in the folder. It is a host if DEVICE_NEIGHBOR_METADATA says
that it is a server, if its adapters' settings are in the folder, or if whoever asks names hosts by
a pattern; any other is left out and listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import field
from fnmatch import fnmatchcase
from pathlib import Path

from controller import LinkSpec
from files import FileError, read_text, shown
from lab.configs.adapters import TOS, Adapter
from lab.configs.config_db import Port, Switch, printable
from lab.configs.findings import Finding
from lab.configs.joining import add_routing, cable_by_subnets, know_roles, name_sessions
from lab.configs.sources import CONFIG, FOLDER_HAS, adapters, not_read, routings, sources
from lab.errors import ScenarioError
from params.data import Data

_MAX_SWITCHES = 4096
_MAX_LLDP_BYTES = 4_000_000
_METRES_A_SECOND = 198_000_000  # as SONiC's own headroom calculation has it
_LLDP = re.compile(r"(?P<port>\S+)\s+(?P<device>\S+)\s+(?P<id>\S+)\s+[A-Z]*\s+(?P<about>\S.*)?")
_ANY_PORT = re.compile(r"(Ethernet|Et|swp)\d\S*\s")
_PORT = re.compile(r"Ethernet\d+(/\d+)*")
# `show lldp neighbors` of EOS, and `net show lldp` of Cumulus.
_LLDP_OTHERS = (
    re.compile(r"(?P<port>Et\d\S*)\s+(?P<device>\S+)\s+(?P<id>\S+)\s+\d+"),
    re.compile(r"(?P<port>swp\d\S*)\s+\d+[GM]\s+\S+\s+(?P<device>\S+)\s+(?P<id>\S+)"),
)
# How long a sender of so many Mb/s may take to obey, in quanta of 512 bits: IEEE 802.3, 31B.3.7, as
# SONiC's headroom calculation has it (sonic-swss, cfgmgr/buffer_headroom_mellanox.lua).
_QUANTA = {
    10_000: 67, 25_000: 80, 40_000: 118, 50_000: 147, 100_000: 394, 200_000: 453, 400_000: 905,
    800_000: 905,
}  # fmt: skip
_OTHERWISE_NS = 4000  # as pfc.response_ns has it


class Place(Data):
    """A port of a switch."""

    switch: str
    port: str

    def __str__(self) -> str:
        """As a sentence names it."""
        return f"{self.switch} {self.port}"


class Cable(Data):
    """Between two switches, or from a host's name to a switch."""

    a: Place
    b: Place

    @property
    def ends(self) -> tuple[tuple[Place, Place], tuple[Place, Place]]:
        """Each end, with the other."""
        return (self.a, self.b), (self.b, self.a)


class Fabric(Data, frozen=False):
    """Switches, cables between them, and hosts."""

    folder: Path
    switches: dict[str, Switch]
    cables: list[Cable] = field(default_factory=list)
    hosts: dict[str, list[Place]] = field(default_factory=dict)
    one_sided: list[Cable] = field(default_factory=list)  # named by the first end alone
    contradicted: list[tuple[Place, Place]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    outward: set[str] = field(default_factory=set)  # switches with cables that are left out
    adapters: dict[str, Adapter] = field(default_factory=dict)  # by host

    def port(self, place: Place) -> Port:
        """What is said of a port."""
        return self.switches[place.switch].ports[place.port]

    def file_of(self, finding: Finding) -> Path:
        """The file that a finding is about: a switch's, or an adapter's."""
        if finding.switch in self.switches:
            return self.switches[finding.switch].file
        return self._line_of_adapter(finding)[0]

    def line_of(self, finding: Finding) -> int | None:
        """Where it stands in a text; None: the file is no text, or has no such line."""
        if finding.switch in self.switches:
            switch = self.switches[finding.switch]
            if switch.kind == "sonic":
                return None
            key = finding.key
            places = [(finding.table, k) for k in (key, key.partition("|")[0])] + [
                ("PORT", key.partition("|")[0])]  # fmt: skip
            return next((switch.lines[one] for one in places if one in switch.lines), 1)
        return self._line_of_adapter(finding)[1]

    def _line_of_adapter(self, finding: Finding) -> tuple[Path, int]:
        adapter = self.adapters[finding.switch]
        if finding.table == TOS and adapter.tos_file is not None:
            return adapter.tos_file
        nic = adapter.nics[finding.key]
        return nic.lines.get(finding.table, (nic.file, 1))

    def in_use(self, switch: Switch) -> Iterator[Port]:
        """Ports that are up and lead somewhere, or have QoS configured."""
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
    """The cable at a port; None: its length is not configured."""
    if port.cable_m is None:
        return None
    return LinkSpec(port.speed_mbps * 1_000_000, delay_ns(port.cable_m))


def has_configurations(folder: Path) -> bool:
    """Whether a folder looks like one of switches' configurations."""
    return bool(sources(folder)) and not any(folder.glob("*.et"))


def read_fabric(folder: Path, hosts: str | None = None) -> Fabric:
    """All switches of a folder, cabled; ``hosts``: a pattern of names, such as ``gpu*``."""
    found = sources(folder)
    if not found:
        raise ScenarioError(
            f"{shown(folder)} has no switch's configuration in it",
            f"Put each switch's {CONFIG} there, as {FOLDER_HAS}.",
        )
    if len(found) > _MAX_SWITCHES:
        raise ScenarioError(
            f"{shown(folder)} has {len(found):,} files", f"{_MAX_SWITCHES:,} are the most."
        )
    switches: dict[str, Switch] = {}
    for file, read in found:
        switch = read(file)
        if switch.name in switches:
            raise ScenarioError(
                f"{shown(file)}: {switch.name} is there already, in "
                f"{shown(switches[switch.name].file)}",
                "Leave one of the two files out, or give each its own hostname.",
            )
        switches[switch.name] = switch
    fabric = Fabric(folder, switches, adapters=adapters(folder))
    left = [add_routing(switches, routing) for routing in routings(folder)]
    fabric.left_out += [line for line in left if line is not None]
    fabric.left_out += [
        f"{shown(path)}: it does not look like a switch's configuration; it is not read"
        for path in not_read(folder)
    ]
    for switch in switches.values():
        _hear_lldp(folder, switch)
    cable_by_subnets(switches)
    know_roles(switches)
    _lay(fabric, hosts)
    _know_speeds(fabric)
    ends = {(here.switch, here.port): there.switch
            for cable in fabric.cables for here, there in cable.ends}  # fmt: skip
    name_sessions(switches, ends)
    fabric.left_out += [line for each in fabric.adapters.values() for line in each.unread]
    fabric.left_out += [
        f"{host}: its adapters are told of, and no switch's neighbour has that name"
        for host in fabric.adapters if host not in fabric.hosts
    ]  # fmt: skip
    return fabric


def _hear_lldp(folder: Path, switch: Switch) -> None:
    """Neighbours by `show lldp table`, of a switch whose configuration names none."""
    beside = (folder / f"{switch.name}.lldp", switch.file.parent / "lldp.txt")
    for file in beside:
        if switch.neighbours or not file.is_file():
            continue
        try:
            text = read_text(file, _MAX_LLDP_BYTES)
        except FileError as error:
            raise ScenarioError(str(error), "It is to be what 'show lldp table' prints.") from None
        here = {name: port.name for port in switch.ports.values()
                for name in (port.name, port.alias) if name}  # fmt: skip
        for at, line in enumerate(text.splitlines(), 1):
            match = _LLDP.fullmatch(line.strip())
            about = (match["about"] or "") if match else ""
            other = next((m for one in _LLDP_OTHERS if (m := one.fullmatch(line.strip()))), None)
            found = other or match
            if found is None or found["port"] not in here:
                if _ANY_PORT.match(line.strip()):
                    switch.unread.append(
                        f"{shown(file)}:{at}: not understood: {printable(line.strip())[:80]}"
                    )
                continue
            port = about if _PORT.fullmatch(about) else found["id"]
            switch.neighbours[here[found["port"]]] = found["device"], port


def _lay(fabric: Fabric, pattern: str | None) -> None:
    places: dict[Place, Place] = {}
    for switch in fabric.switches.values():
        for name, (device, port) in switch.neighbours.items():
            here = Place(switch.name, name)
            peer = fabric.switches.get(device)
            if peer is None:
                is_host = device in fabric.adapters
                is_host |= "server" in switch.roles.get(device, "").lower()
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
            places[here] = Place(device, named)
    taken: set[Place] = set()
    for here, there in sorted(places.items(), key=lambda pair: (pair[0].switch, pair[0].port)):
        back = places.get(there)
        if back is not None and back != here:
            fabric.contradicted.append((here, there))
            fabric.outward |= {here.switch, there.switch}
        elif here not in taken and there not in taken:
            taken |= {here, there}
            cable = Cable(here, there)
            fabric.cables.append(cable)
            peer = fabric.switches[there.switch]
            if back is None and peer.kind == "sonic":
                fabric.one_sided.append(cable)
            elif back is None:  # its text has no place for it
                peer.neighbours[there.port] = here.switch, here.port


def _know_speeds(fabric: Fabric) -> None:
    """A cable has one rate; ports without a known rate are left out."""
    for cable in fabric.cables:
        for here, there in cable.ends:
            mine, its = fabric.switches[here.switch], fabric.switches[there.switch]
            if here.port in mine.speedless and there.port not in its.speedless:
                fabric.port(here).speed_mbps = fabric.port(there).speed_mbps
                mine.speedless.discard(here.port)
    for switch in fabric.switches.values():
        for name in sorted(switch.speedless & switch.ports.keys()):
            if name in switch.neighbours or switch.ports[name].pfc:
                switch.unread.append(f"PORT|{name}: nobody tells its speed; it is left out")
            del switch.ports[name]
            switch.neighbours.pop(name, None)

    def is_there(place: Place) -> bool:
        return place.port in fabric.switches[place.switch].ports

    fabric.cables = [one for one in fabric.cables if is_there(one.a) and is_there(one.b)]
    fabric.hosts = {host: kept for host, places in fabric.hosts.items()
                    if (kept := [place for place in places if is_there(place)])}  # fmt: skip

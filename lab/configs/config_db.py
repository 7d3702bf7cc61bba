"""One switch's `config_db.json`: which tables are read, and what is made of them.

Tables are those of sonic-buildimage's src/sonic-yang-models (doc/Configuration.md there lists them
with examples). Numbers may be written as texts, lists of ports as `Ethernet0,Ethernet4`, ranges as
`3-4`, and names of other tables' entries as `NAME` or, as older releases have it, `[TABLE|NAME]`.

What is malformed is refused, with its place and what may stand there. A table that is not read is
told by `Switch.unread`, and so is an entry that names something that is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from ipaddress import IPv4Interface, IPv6Interface, ip_interface
from pathlib import Path
from typing import Any

from files import FileError, read_json, shown
from lab.errors import ScenarioError
from params.data import Data

_MAX_BYTES = 32_000_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./:@-]{0,63}")
_NUMBER = re.compile(r"\s*(-?\d{1,18})\s*")
_LENGTH = re.compile(r"(\d{1,7}(?:\.\d{1,3})?)\s*m")
_REFERENCE = re.compile(r"\[[A-Z_0-9]+\|(.+)\]")
_RANGE = re.compile(r"(\d{1,2})(?:-(\d{1,2}))?")
_PANEL = re.compile(
    r"Ethernet\d{1,4}"
)  # a port that is neither for management nor within a chassis
_MAX_MEMORY = 2**40 - 1  # chips with packet memory of their own beside them have many GB
_LAST_GROUP, _LAST_QUEUE = 7, 63  # some chips have a dozen queues a port; 0 to 7 are listed
USUAL_MTU = 9100  # of a port that says none: buffermgrd's own
_COLOURS = "green"  # of WRED: what no meter has coloured is green

Address = IPv4Interface | IPv6Interface

# What is read, and what it is read for.
READ = {
    "DEVICE_METADATA": "the switch's name, role and AS",
    "DEVICE_NEIGHBOR": "cables",
    "DEVICE_NEIGHBOR_METADATA": "who is a host",
    "PORT": "speeds, MTU, ports that are down",
    "CABLE_LENGTH": "delays",
    "BUFFER_POOL": "the memory ports share",
    "BUFFER_PROFILE": "thresholds and headroom",
    "BUFFER_PG": "which priority groups have headroom",
    "BUFFER_QUEUE": "thresholds of queues that may lose",
    "DEFAULT_LOSSLESS_BUFFER_PARAMETER": "alpha, where the switch computes profiles itself",
    "LOSSLESS_TRAFFIC_PATTERN": "the MTU of lossless traffic",
    "PORT_QOS_MAP": "which maps, and which priorities are paused and watched",
    "DSCP_TO_TC_MAP": "classes",
    "TC_TO_PRIORITY_GROUP_MAP": "classes",
    "TC_TO_QUEUE_MAP": "classes",
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": "what a priority's pause protects",
    "MAP_PFC_PRIORITY_TO_QUEUE": "what a pause holds",
    "WRED_PROFILE": "marks",
    "SCHEDULER": "turns of queues",
    "QUEUE": "turns and marks of queues",
    "PFC_WD": "the watchdog",
    "BGP_NEIGHBOR": "with whom BGP is spoken",
    "INTERFACE": "cables and BGP's neighbours, where they are not named",
    "SWITCH_HASH": "what flows are told apart by",
    "SWITCH_TRIMMING": "what becomes of packets that are cut",
}
# How many of what they map, and of what they map it to; classes of chips that cut go beyond 7.
_MAPS = {
    "DSCP_TO_TC_MAP": (64, 16),
    "TC_TO_PRIORITY_GROUP_MAP": (16, 8),
    "TC_TO_QUEUE_MAP": (16, 64),
    "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": (8, 8),
    "MAP_PFC_PRIORITY_TO_QUEUE": (8, 64),
}
# Fields of PORT_QOS_MAP, and the tables of what they name.
MAPS_OF_PORTS = {
    "dscp_to_tc_map": "DSCP_TO_TC_MAP",
    "tc_to_pg_map": "TC_TO_PRIORITY_GROUP_MAP",
    "tc_to_queue_map": "TC_TO_QUEUE_MAP",
    "pfc_to_pg_map": "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP",
    "pfc_to_queue_map": "MAP_PFC_PRIORITY_TO_QUEUE",
}
SESSIONS_UNNAMED = "it has no name, so with which switches BGP is spoken is not asked"
COMPUTED = "NULL"  # a profile that the switch computes itself


class Pool(Data):
    """Of BUFFER_POOL; sizes in bytes."""

    size: int | None
    xoff: int | None  # headroom that ports share


class Profile(Data):
    """Of BUFFER_PROFILE; sizes in bytes."""

    pool: str
    size: int
    xoff: int | None
    xon: int | None
    xon_offset: int | None
    dynamic_th: int | None
    static_th: int | None
    trims: bool = False  # cuts what there is no room for


class Trimming(Data):
    """Of SWITCH_TRIMMING: how what was cut goes on."""

    dscp: int | None  # None: by class
    queue: int | None  # None: by the DSCP


class Wred(Data):
    """Of WRED_PROFILE: what becomes of packets that no meter has coloured."""

    kmin: int | None
    kmax: int | None
    percent: int
    marks: bool
    drops: bool


class Turn(Data):
    """Of SCHEDULER."""

    kind: str
    weight: int | None
    is_shaped: bool


class Watch(Data):
    """Of PFC_WD, at a port."""

    action: str | None
    detection_ms: int
    restoration_ms: int | None


class Port(Data, frozen=False):
    """All that tables say of a port."""

    name: str
    speed_mbps: int
    mtu: int
    is_up: bool
    alias: str | None = None
    fec: str | None = None
    cable_m: float | None = None
    pfc: frozenset[int] = frozenset()
    watched: frozenset[int] = frozenset()
    has_qos: bool = False
    maps: dict[str, str] = field(default_factory=dict)  # by the field of PORT_QOS_MAP
    groups: dict[int, str] = field(default_factory=dict)  # profiles by priority group
    queues: dict[int, str] = field(default_factory=dict)  # profiles by queue
    wred: dict[int, str] = field(default_factory=dict)
    turns: dict[int, str] = field(default_factory=dict)


class Switch(Data, frozen=False):
    """What a file says of a switch."""

    name: str
    file: Path
    tables: dict[str, dict[str, Any]]
    role: str
    asn: int | None
    hwsku: str
    ports: dict[str, Port]
    pools: dict[str, Pool]
    profiles: dict[str, Profile]
    maps: dict[str, dict[str, dict[int, int]]]  # by table and name
    wred: dict[str, Wred]
    turns: dict[str, Turn]
    watches: dict[str, Watch]
    poll_ms: int | None
    neighbours: dict[str, tuple[str, str | None]]
    roles: dict[str, str]  # of neighbours
    default_th: int | None
    over_subscribe_ratio: int | None
    lossless_mtu: int | None
    trimming: Trimming | None
    hashed: frozenset[str] | None  # the fields that ways are chosen by; None: the chip's own
    bgp: frozenset[str] | None  # BGP's peers by name; None: not known
    dangling: list[tuple[str, str, str, str]]  # a table, a key, and the table and name of nothing
    unread: list[str]
    addresses: dict[str, list[Address]]  # by port
    sessions: set[str] = field(default_factory=set)  # of BGP, by FRR: addresses and ports
    routing: tuple[str, ...] = ()  # what else FRR's configuration says
    kind: str = "sonic"  # of what its file is
    lines: dict[tuple[str, str], int] = field(default_factory=dict)  # of texts, by table and key
    speedless: set[str] = field(default_factory=set)  # ports whose speed is not known yet

    def map_of(self, port: Port, kind: str) -> dict[int, int] | None:
        """A map that a port uses; None: it uses none that is there."""
        return self.maps[MAPS_OF_PORTS[kind]].get(port.maps.get(kind, ""))

    def group_of(self, port: Port, priority: int) -> int:
        """The priority group that a paused priority's packets are counted to."""
        return (self.map_of(port, "pfc_to_pg_map") or {}).get(priority, priority)

    def queue_of(self, port: Port, priority: int) -> int:
        """The queue that a pause of a priority holds."""
        return (self.map_of(port, "pfc_to_queue_map") or {}).get(priority, priority)

    def headroom(self, port: Port, group: int) -> tuple[str, Profile] | None:
        """The profile of a priority group that is given headroom."""
        name = port.groups.get(group, "")
        profile = self.profiles.get(name)
        return None if profile is None or profile.xoff is None else (name, profile)

    def is_lossless(self, port: Port, group: int) -> bool:
        """Whether a group is given headroom, by a profile or by the switch itself."""
        return port.groups.get(group) == COMPUTED or self.headroom(port, group) is not None


def read_switch(path: Path) -> Switch:
    """What a file says."""
    try:
        content = read_json(path, _MAX_BYTES)
    except FileError as error:
        raise ScenarioError(
            str(error), "It is to be a switch's whole config_db.json: copy it anew."
        ) from None
    return switch_of(path, content)


def switch_of(path: Path, content: Any) -> Switch:
    """What a configuration says that was read, or made, of a path."""
    return _Reader(path, content).switch()


class _Reader:
    """A file's content, and how its parts are asked for."""

    def __init__(self, path: Path, content: Any) -> None:
        self._path = path
        self.unread: list[str] = []
        self._dangling: list[tuple[str, str, str, str]] = []
        self._gone: set[str] = set()  # ports that are named and not there
        if not isinstance(content, dict):
            raise self._wrong("its top level", content, "tables, by name, in {}")
        for name, table in content.items():
            if name in READ and not (
                isinstance(table, dict) and all(isinstance(entry, dict) for entry in table.values())
            ):
                raise self._wrong(name, table, "entries with fields, each in {}")
        self._content: dict[str, dict[str, Any]] = content

    # --- parts ------------------------------------------------------------------------------------

    def _wrong(self, place: str, value: Any, cure: str) -> ScenarioError:
        text = repr(value)
        text = text if len(text) <= 60 else f"{text[:56]}..."
        said = text.encode("ascii", "backslashreplace").decode()
        return ScenarioError(
            f"{shown(self._path)}: {_safe(place)} is {said}", f"What may stand there: {cure}."
        )

    def _table(self, name: str) -> dict[str, dict[str, Any]]:
        return self._content.get(name, {})

    def _number(
        self, place: str, entry: Mapping[str, Any], name: str, least: int, most: int
    ) -> int | None:
        value = entry.get(name)
        if value is None or value == "":
            return None
        found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
        number = int(found[1]) if found else value
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise self._wrong(f"{place}|{name}", value, f"a number from {least:,} to {most:,}")
        return number

    def _text(self, place: str, entry: Mapping[str, Any], name: str) -> str | None:
        value = entry.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str) or len(value) > 256:
            raise self._wrong(f"{place}|{name}", value, "a short text")
        return value

    def _name(self, place: str, value: Any) -> str:
        if not isinstance(value, str) or not _NAME.fullmatch(value):
            raise self._wrong(place, value, "a name of letters, digits, '_', '-', '.', '/', ':'")
        return value

    def _reference(self, place: str, entry: Mapping[str, Any], name: str) -> str | None:
        value = self._text(place, entry, name)
        if value is None:
            return None
        found = _REFERENCE.fullmatch(value)
        return self._name(f"{place}|{name}", found[1] if found else value)

    def _classes(self, place: str, entry: Mapping[str, Any], name: str) -> frozenset[int]:
        text = self._text(place, entry, name)
        if text is None:
            return frozenset()
        parts = [part.strip() for part in text.split(",")]
        if not all(re.fullmatch("[0-7]", part) for part in parts):
            raise self._wrong(f"{place}|{name}", text, "priorities from 0 to 7, such as 3,4")
        return frozenset(map(int, parts))

    def _ranged(self, table: str) -> Iterator[tuple[str, str, range, dict[str, Any]]]:
        """Entries `PORT,PORT|N-N`: a place, a port, the numbers, the fields."""
        most = _LAST_GROUP if table == "BUFFER_PG" else _LAST_QUEUE
        for key, entry in self._table(table).items():
            place = f"{table}|{key}"
            ports, _, numbers = key.rpartition("|")
            found = _RANGE.fullmatch(numbers)
            last = int(found[2] or found[1]) if found else -1
            if found is None or not int(found[1]) <= last <= most:
                raise self._wrong(place, key, f"PORT|N or PORT|N-N, N from 0 to {most}")
            for port in ports.split(","):
                yield place, port, range(int(found[1]), last + 1), entry

    # --- the switch -------------------------------------------------------------------------------

    def switch(self) -> Switch:
        """All of it."""
        about = self._table("DEVICE_METADATA").get("localhost", {})
        place = "DEVICE_METADATA|localhost"
        name = self._text(place, about, "hostname")
        if name is None:
            raise ScenarioError(
                f"{shown(self._path)}: {place} has no hostname",
                "A file is one switch's config_db.json; its name is DEVICE_METADATA's hostname.",
            )
        name = self._name(f"{place}|hostname", name)
        ports = self._ports()
        self._cables(ports)
        self._qos(ports)
        self._buffers(ports)
        poll, watches = self._watches()
        defaults = self._only("DEFAULT_LOSSLESS_BUFFER_PARAMETER")
        pattern = self._only("LOSSLESS_TRAFFIC_PATTERN")
        self.unread += [
            f"{_safe(table)}: not read ({len(entries)})"
            if isinstance(entries, dict)
            else f"{_safe(table)}: not read"
            for table, entries in self._content.items()
            if table not in READ
        ]
        self._know_profiles(ports)
        return Switch(
            name=name, file=self._path, tables=self._content,
            role=self._text(place, about, "type") or "",
            asn=self._number(place, about, "bgp_asn", 1, 2**32 - 1)
            if about.get("bgp_asn") not in ("None", "none") else None,
            hwsku=self._text(place, about, "hwsku") or "",
            ports=ports, pools=self._pools(), profiles=self._profiles(), maps=self._maps(),
            wred=self._wreds(), turns=self._turns(), watches=watches, poll_ms=poll,
            neighbours=self._neighbours(ports),
            roles={
                device: self._text(f"DEVICE_NEIGHBOR_METADATA|{device}", entry, "type") or ""
                for device, entry in self._table("DEVICE_NEIGHBOR_METADATA").items()
            },
            default_th=self._number(*defaults, "default_dynamic_th", -128, 127),
            over_subscribe_ratio=self._number(*defaults, "over_subscribe_ratio", 0, 1000),
            lossless_mtu=self._number(*pattern, "mtu", 64, 65535),
            trimming=self._trimming(), hashed=self._hashed(), bgp=self._bgp(),
            addresses=self._addresses(ports),
            dangling=self._dangling,
            unread=self.unread,
        )  # fmt: skip

    def _only(self, table: str) -> tuple[str, dict[str, Any]]:
        """The first entry of a table that has one."""
        for key, entry in self._table(table).items():
            return f"{table}|{key}", entry
        return table, {}

    def _ports(self) -> dict[str, Port]:
        if not self._table("PORT"):
            raise ScenarioError(
                f"{shown(self._path)}: there is no table PORT",
                "A switch's config_db.json has one: copy it anew.",
            )
        found = {}
        for name, entry in self._table("PORT").items():
            place = f"PORT|{name}"
            self._name(place, name)
            speed = self._number(place, entry, "speed", 1, 10_000_000)
            if speed is None:
                self.unread.append(f"{place}: it has no speed, and is left out")
                continue
            mtu = self._number(place, entry, "mtu", 68, 9216)
            found[name] = Port(
                name, speed, USUAL_MTU if mtu is None else mtu,
                self._text(place, entry, "admin_status") != "down",
                self._text(place, entry, "alias"), self._text(place, entry, "fec"),
            )  # fmt: skip
        if not found:
            raise ScenarioError(
                f"{shown(self._path)}: no port in PORT has a speed",
                "Save the running configuration (config save), which has them.",
            )
        return found

    def _known(self, place: str, name: str, ports: Mapping[str, Port]) -> Port | None:
        if name not in ports:
            if _PANEL.fullmatch(name) and name not in self._gone:
                self._gone.add(name)
                table, _, key = place.partition("|")
                self._dangling.append((table, _safe(key), "PORT", name))
            self.unread.append(f"{_safe(place)}: there is no port {_safe(name)}")
            return None
        return ports[name]

    def _neighbours(self, ports: Mapping[str, Port]) -> dict[str, tuple[str, str | None]]:
        """By port; entries are keyed by the port, or by the device and name the port."""
        found = {}
        for key, entry in self._table("DEVICE_NEIGHBOR").items():
            place = f"DEVICE_NEIGHBOR|{key}"
            local = self._text(place, entry, "local_port")
            device = self._text(place, entry, "name") or (None if local is None else key)
            here = self._known(place, key if local is None else local, ports)
            if here is not None and device is not None:
                port = self._text(place, entry, "port")
                found[here.name] = (
                    self._name(f"{place}|name", device),
                    None if port is None else self._name(f"{place}|port", port),
                )
        return found

    def _cables(self, ports: Mapping[str, Port]) -> None:
        for key, entry in self._table("CABLE_LENGTH").items():
            for name, length in entry.items():
                place = f"CABLE_LENGTH|{key}|{name}"
                match = _LENGTH.fullmatch(length.strip()) if isinstance(length, str) else None
                if match is None or float(match[1]) > 200_000:
                    raise self._wrong(place, length, "a length such as 40m, 200000m at most")
                if port := self._known(place, name, ports):
                    port.cable_m = float(match[1])

    def _qos(self, ports: Mapping[str, Port]) -> None:
        common = {}
        for key, entry in self._table("PORT_QOS_MAP").items():
            place = f"PORT_QOS_MAP|{key}"
            by_kind = {kind: self._reference(place, entry, kind) for kind in MAPS_OF_PORTS}
            maps = {kind: name for kind, name in by_kind.items() if name is not None}
            for kind, name in maps.items():
                if name not in self._table(MAPS_OF_PORTS[kind]):
                    self._dangles("PORT_QOS_MAP", key, MAPS_OF_PORTS[kind], name)
            if key == "global":
                common = maps
                continue
            for name in key.split(","):
                if port := self._known(place, name, ports):
                    port.has_qos = True
                    port.maps = maps
                    port.pfc = self._classes(place, entry, "pfc_enable")
                    port.watched = self._classes(place, entry, "pfcwd_sw_enable")
        for port in ports.values():
            port.maps = common | port.maps
        for place, name, numbers, entry in self._ranged("QUEUE"):
            if port := self._known(place, name, ports):
                wred = self._reference(place, entry, "wred_profile")
                turn = self._reference(place, entry, "scheduler")
                for number in numbers:
                    if wred is not None:
                        port.wred[number] = wred
                    if turn is not None:
                        port.turns[number] = turn

    def _buffers(self, ports: Mapping[str, Port]) -> None:
        for table in ("BUFFER_PG", "BUFFER_QUEUE"):
            for place, name, numbers, entry in self._ranged(table):
                if port := self._known(place, name, ports):
                    profile = self._reference(place, entry, "profile")
                    groups = port.groups if table == "BUFFER_PG" else port.queues
                    groups |= dict.fromkeys(numbers, profile or "")

    def _know_profiles(self, ports: Mapping[str, Port]) -> None:
        for port in ports.values():
            for what, names, table in (
                ("BUFFER_PG", port.groups, "BUFFER_PROFILE"),
                ("BUFFER_QUEUE", port.queues, "BUFFER_PROFILE"),
                ("QUEUE", port.wred, "WRED_PROFILE"),
                ("QUEUE", port.turns, "SCHEDULER"),
            ):
                for number, name in names.items():
                    if name not in self._table(table) and name != COMPUTED:
                        self._dangles(what, f"{port.name}|{number}", table, name)
        for key, entry in self._table("BUFFER_PROFILE").items():
            pool = self._reference(f"BUFFER_PROFILE|{key}", entry, "pool")
            if pool is None:
                self._dangles("BUFFER_PROFILE", key, "BUFFER_POOL", "")
            elif pool not in self._table("BUFFER_POOL"):
                self._dangles("BUFFER_PROFILE", key, "BUFFER_POOL", pool)

    def _dangles(self, table: str, key: str, of: str, name: str) -> None:
        self._dangling.append((table, _safe(key), of, name))
        what = f"there is no {of} '{name}'" if name else f"it names no {of}"
        self.unread.append(f"{table}|{_safe(key)}: {what}")

    def _trimming(self) -> Trimming | None:
        entry = self._table("SWITCH_TRIMMING").get("GLOBAL")
        if entry is None:
            return None
        place, fields = "SWITCH_TRIMMING|GLOBAL", dict(entry)
        for name, word in (("dscp_value", "from-tc"), ("queue_index", "dynamic")):
            if fields.get(name) == word:
                fields[name] = None
        return Trimming(
            self._number(place, fields, "dscp_value", 0, 63),
            self._number(place, fields, "queue_index", 0, _LAST_QUEUE),
        )

    def _hashed(self) -> frozenset[str] | None:
        fields = self._table("SWITCH_HASH").get("GLOBAL", {}).get("ecmp_hash")
        if fields is None:
            return None
        names = fields.split(",") if isinstance(fields, str) else fields
        if not isinstance(names, list) or not all(isinstance(one, str) for one in names):
            raise self._wrong("SWITCH_HASH|GLOBAL|ecmp_hash", fields, "fields' names, in []")
        return frozenset(one.strip() for one in names)

    def _addresses(self, ports: Mapping[str, Port]) -> dict[str, list[Address]]:
        found: dict[str, list[Address]] = {}
        for key in self._table("INTERFACE"):
            name, _, address = key.partition("|")
            if not address or name not in ports:
                continue
            try:
                found.setdefault(name, []).append(ip_interface(address))
            except ValueError:
                self.unread.append(f"INTERFACE|{_safe(key)}: it is no address")
        return found

    def _bgp(self) -> frozenset[str] | None:
        names = [
            self._text(f"BGP_NEIGHBOR|{key}", entry, "name")
            for key, entry in self._table("BGP_NEIGHBOR").items()
        ]
        unnamed = [key for key, name in zip(self._table("BGP_NEIGHBOR"), names, strict=True)
                   if name is None]  # fmt: skip
        if unnamed:
            self.unread.append(
                f"BGP_NEIGHBOR|{_safe(unnamed[0])}: {SESSIONS_UNNAMED} ({len(unnamed)})"
            )
        return frozenset(filter(None, names)) if names and not unnamed else None

    def _pools(self) -> dict[str, Pool]:
        return {
            key: Pool(
                self._number(f"BUFFER_POOL|{key}", entry, "size", 0, _MAX_MEMORY),
                self._number(f"BUFFER_POOL|{key}", entry, "xoff", 0, _MAX_MEMORY),
            )
            for key, entry in self._table("BUFFER_POOL").items()
        }

    def _profiles(self) -> dict[str, Profile]:
        found = {}
        for key, entry in self._table("BUFFER_PROFILE").items():
            place = f"BUFFER_PROFILE|{key}"
            sizes = {
                name: self._number(place, entry, name, 0, _MAX_MEMORY)
                for name in ("size", "xoff", "xon", "xon_offset", "static_th")
            }
            found[key] = Profile(
                pool=self._reference(place, entry, "pool") or "", size=sizes["size"] or 0,
                xoff=sizes["xoff"], xon=sizes["xon"], xon_offset=sizes["xon_offset"],
                dynamic_th=self._number(place, entry, "dynamic_th", -128, 127),
                static_th=sizes["static_th"],
                trims=self._text(place, entry, "packet_discard_action") == "trim",
            )  # fmt: skip
        return found

    def _maps(self) -> dict[str, dict[str, dict[int, int]]]:
        found: dict[str, dict[str, dict[int, int]]] = {}
        for table, (most, values) in _MAPS.items():
            found[table] = {}
            for name, entry in self._table(table).items():
                place, made = f"{table}|{name}", {}
                for key in entry:
                    if not key.isascii() or not key.isdigit() or not int(key[:4]) < most:
                        raise self._wrong(place, key, f"numbers from 0 to {most - 1}")
                    value = self._number(place, entry, key, 0, values - 1)
                    if value is not None:
                        made[int(key)] = value
                found[table][name] = made
        return found

    def _wreds(self) -> dict[str, Wred]:
        found = {}
        for key, entry in self._table("WRED_PROFILE").items():
            place, colour = f"WRED_PROFILE|{key}", _COLOURS
            ecn = self._text(place, entry, "ecn") or "ecn_none"
            marks = ecn == "ecn_all" or colour in ecn.split("_")
            sizes = {}
            for what, own in (("min", "ecn_green_min"), ("max", "ecn_green_max")):
                usual = self._number(place, entry, f"green_{what}_threshold", 0, _MAX_MEMORY)
                special = self._number(place, entry, f"{own}_threshold", 0, _MAX_MEMORY)
                sizes[what] = usual if special is None or not marks else special
            usual = self._number(place, entry, "green_drop_probability", 0, 100)
            special = self._number(place, entry, "ecn_green_mark_probability", 0, 100)
            percent = usual if special is None or not marks else special
            low, high = sizes["min"], sizes["max"]
            if low is not None and high is not None and low > high:
                raise self._wrong(
                    f"{place}|green_min_threshold", low, f"no more than the maximum, {high:,}"
                )
            drops = str(entry.get("wred_green_enable", "false")).lower() == "true"
            found[key] = Wred(low, high, 100 if percent is None else percent, marks, drops)
        return found

    def _turns(self) -> dict[str, Turn]:
        self.unread += [
            f"SCHEDULER|{_safe(key)}: it has no type, and is not asked about"
            for key, entry in self._table("SCHEDULER").items()
            if not entry.get("type")
        ]
        return {
            key: Turn(
                (self._text(f"SCHEDULER|{key}", entry, "type") or "").upper(),
                self._number(f"SCHEDULER|{key}", entry, "weight", 1, 100),
                bool({"pir", "cir"} & entry.keys()),
            )
            for key, entry in self._table("SCHEDULER").items()
        }

    def _watches(self) -> tuple[int | None, dict[str, Watch]]:
        poll, found = None, {}
        for key, entry in self._table("PFC_WD").items():
            place = f"PFC_WD|{key}"
            if key == "GLOBAL":
                poll = self._number(place, entry, "POLL_INTERVAL", 1, 3_600_000)
                continue
            detection = self._number(place, entry, "detection_time", 1, 3_600_000)
            if detection is not None:
                action = self._text(place, entry, "action")
                restoration = self._number(place, entry, "restoration_time", 1, 3_600_000)
                found[key] = Watch(action, detection, restoration)
        return poll, found


def printable(text: str) -> str:
    """A line with strangers' texts in it, as a terminal may have it."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _safe(text: str) -> str:
    """A stranger's text, as it may be shown."""
    said = printable(text)
    return said if len(said) <= 120 else f"{said[:100]}..."

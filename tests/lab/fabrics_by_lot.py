"""Fabrics by lot, of two tiers and of three, and their switches' `config_db.json` in any dialect.

Written from what SONiC's documents say of tables, 802.1Q (annex N) of headroom and RFC 7938 of AS
numbers, without what the rules use: where they and this disagree one of the two is wrong. A fabric
is sound. Around it are things that look odd and do no harm: profiles that nobody uses, ports that
are down at both ends, classes that may lose and differ from switch to switch, other tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import field
from pathlib import Path
from random import Random
from typing import Any

from params.data import Data

Tables = dict[str, dict[str, dict[str, Any]]]
_LIGHT = 198e6  # metres a second in glass
_RESPONSE_QUANTA = {25: 80, 100: 394, 200: 453, 400: 905}  # 31B.3.7, by Gb/s
_ROLES = {"leaf": "ToRRouter", "spine": "LeafRouter", "core": "SpineRouter"}


class Wire(Data):
    """Two ends: a switch's or a host's name, and a port's."""

    a: str
    a_port: str
    b: str
    b_port: str
    gbps: int
    metres: int

    def turned(self) -> Wire:
        """The same from the other end."""
        return Wire(self.b, self.b_port, self.a, self.a_port, self.gbps, self.metres)


class Style(Data, frozen=False):
    """What all switches of a fabric have alike."""

    lossless: tuple[int, ...]
    groups: dict[int, int]  # of paused priorities
    dscps: dict[int, int]  # of lossless classes
    mtu: int
    maps: str  # their name
    wred: str
    pool: str
    is_static: bool
    pool_bytes: int
    alpha_log2: int
    limit: int
    kmin: int
    kmax: int
    detection: int
    room: float  # of headroom, to what is needed


class Fabric(Data, frozen=False):
    """One of them."""

    rng: Random
    style: Style
    tiers: dict[str, str] = field(default_factory=dict)  # by switch
    asns: dict[str, int] = field(default_factory=dict)
    wires: list[Wire] = field(default_factory=list)  # between switches
    stubs: list[Wire] = field(default_factory=list)  # from a host to a switch
    tables: dict[str, Tables] = field(default_factory=dict)

    def some(self, tier: str = "") -> str:
        """A switch, of a tier or of any."""
        return self.rng.choice([name for name, of in self.tiers.items() if tier in ("", of)])

    def a_port(self, switch: str | None = None) -> tuple[str, str]:
        """A port that leads to a host or a switch."""
        here = switch or self.some()
        return here, self.rng.choice([wire.a_port for wire in self.ends(here)])

    def ends(self, switch: str) -> Iterator[Wire]:
        """All wires of a switch, from its end."""
        for wire in (*self.wires, *self.stubs):
            if wire.a == switch:
                yield wire
            if wire.b == switch:
                yield wire.turned()

    def an_end(self) -> Wire:
        """A wire between switches, from either end."""
        wire = self.rng.choice(self.wires)
        return wire if self.rng.random() < 0.5 else wire.turned()

    def copy(self) -> Fabric:
        """One that can be damaged."""
        return deepcopy(self)

    def write(self, folder: Path) -> Path:
        """A file a switch, in this fabric's dialect."""
        folder.mkdir(parents=True)
        rng = Random(repr(sorted(self.tiers)))
        brackets, joins, nests = (rng.random() < p for p in (0.3, 0.5, 0.5))
        for name, tables in self.tables.items():
            written = _joined(tables) if joins else tables
            if brackets:
                written = _bracketed(written)
            path = folder / name / "config_db.json" if nests else folder / f"{name}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(written, indent=4))
        return folder


def needed(gbps: int, metres: float, mtu: int) -> int:
    """Headroom in bytes, by 802.1Q's annex N: frames, the pause, the cable twice, the response."""
    lossless = 4096 + 78  # IP, UDP, BTH, RETH, ICRC and Ethernet with its tag, at most
    longest = mtu + 18 + 20  # with preamble and gap
    cable = 2 * metres / _LIGHT * gbps * 1e9 / 8
    return round(longest + 84 + 2 * lossless + cable + 64 * _RESPONSE_QUANTA[gbps])


def sound(seed: int) -> Fabric:
    """A fabric in which nothing is to be found."""
    rng = Random(seed)
    fabric = Fabric(rng, _style(rng))
    gbps = rng.choice((25, 100, 200, 400))
    far = rng.choice((5, 20, 40, 120, 300))
    if rng.random() < 0.4:
        _three_tiers(fabric, gbps, far)
    else:
        _two_tiers(fabric, gbps, far)
    for switch in fabric.tiers:
        fabric.tables[switch] = _tables(fabric, switch)
    for switch in fabric.tiers:
        _odd_but_sound(fabric, switch)
    return fabric


def _style(rng: Random) -> Style:
    lossless = rng.choice(((3, 4), (3,), (2, 5), (3, 4)))
    dscps = {rng.choice((26, 24, 34)): lossless[0]}
    dscps |= {10 + p: p for p in lossless[1:]} | ({3: lossless[0]} if rng.random() < 0.5 else {})
    pool, alpha = rng.choice((16, 24, 48)) * 10**6, rng.choice((-3, -1, 0, 1))
    is_static = rng.random() < 0.3
    limit = rng.choice((600_000, 1_500_000))
    at = limit if is_static else int(pool * 2.0**alpha / (1 + 2.0**alpha))
    kmin = rng.randint(at // 40, at // 4)
    style = Style(
        lossless, {p: p for p in lossless}, dscps, rng.choice((9100, 9216, 4500)),
        rng.choice(("AZURE", "roce", "DEFAULT_MAP")), rng.choice(("AZURE_LOSSLESS", "roce-ecn")),
        rng.choice(("ingress_lossless_pool", "pool.rdma")), is_static, pool, alpha, limit,
        kmin, rng.randint(kmin + 1, at // 2), rng.choice((100, 150, 200)), rng.uniform(1.1, 3),
    )  # fmt: skip
    if len(lossless) == 2 and rng.random() < 0.15:  # groups need not have priorities' numbers
        style.groups = dict(zip(lossless, reversed(lossless), strict=True))
    return style


def _two_tiers(fabric: Fabric, gbps: int, far: int) -> None:
    rng = fabric.rng
    leaves, spines, times = rng.randint(2, 8), rng.randint(2, 5), rng.choice((1, 1, 2))
    names = rng.choice((("leaf", "spine"), ("tor", "t1-"), ("rack", "agg")))
    for at in range(leaves):
        _switch(fabric, f"{names[0]}{at + 1}", "leaf", 4_200_000_000 + at)
    for at in range(spines):
        _switch(fabric, f"{names[1]}{at + 1}", "spine", 64_512)
    for leaf in [n for n, tier in fabric.tiers.items() if tier == "leaf"]:
        for spine in [n for n, tier in fabric.tiers.items() if tier == "spine"]:
            for _ in range(times):
                _wire(fabric, leaf, spine, gbps, far)
    _hosts(fabric, gbps, spines * times, rng.random() < 0.3)


def _three_tiers(fabric: Fabric, gbps: int, far: int) -> None:
    rng = fabric.rng
    pods, leaves, spines = rng.randint(2, 3), rng.randint(2, 3), 2
    cores = spines * rng.randint(2, 3)
    for at in range(cores):
        _switch(fabric, f"core{at}", "core", 64_600)
    for pod in range(pods):
        for at in range(spines):
            _switch(fabric, f"p{pod}-spine{at}", "spine", 64_700 + pod)
            for core in range(at * cores // spines, (at + 1) * cores // spines):  # a plane each
                _wire(fabric, f"p{pod}-spine{at}", f"core{core}", gbps, far)
        for at in range(leaves):
            _switch(fabric, f"p{pod}-leaf{at}", "leaf", 65_000 + 10 * pod + at)
            for spine in range(spines):
                _wire(fabric, f"p{pod}-leaf{at}", f"p{pod}-spine{spine}", gbps, far)
    _hosts(fabric, gbps, spines, False)


def _hosts(fabric: Fabric, gbps: int, ways_up: int, is_rail: bool) -> None:
    """As many as leave cables up enough; on rails a host has a port at every leaf."""
    rng = fabric.rng
    speed = gbps if gbps == 25 else rng.choice((gbps, {100: 25, 200: 100, 400: 200}[gbps]))
    most = max(1, int(2.9 * gbps * ways_up / speed))
    count = rng.randint(1, min(4, most))
    for leaf in [name for name, tier in fabric.tiers.items() if tier == "leaf"]:
        for at in range(count):
            host = f"gpu{at}" if is_rail else f"{leaf}-gpu{at}"
            port = _next(fabric, leaf)
            nic = f"eth{sum(stub.a == host for stub in fabric.stubs)}"
            fabric.stubs.append(Wire(host, nic, leaf, port, speed, rng.choice((2, 3))))


def _switch(fabric: Fabric, name: str, tier: str, asn: int) -> None:
    fabric.tiers[name], fabric.asns[name] = tier, asn


def _next(fabric: Fabric, switch: str) -> str:
    return f"Ethernet{8 * sum(1 for _ in fabric.ends(switch))}"


def _wire(fabric: Fabric, a: str, b: str, gbps: int, metres: int) -> None:
    fabric.wires.append(Wire(a, _next(fabric, a), b, _next(fabric, b), gbps, metres))


# --- tables ---------------------------------------------------------------------------------------


def _tables(fabric: Fabric, switch: str) -> Tables:
    style, tier = fabric.style, fabric.tiers[switch]
    lossless, name = style.lossless, style.maps
    th = {"static_th": str(style.limit)} if style.is_static else (
        {"dynamic_th": str(style.alpha_log2)})  # fmt: skip
    marks = {"min_threshold": style.kmin, "max_threshold": style.kmax, "drop_probability": 20}
    tables: Tables = {
        "DEVICE_METADATA": {"localhost": {
            "hostname": switch, "type": _ROLES[tier], "bgp_asn": str(fabric.asns[switch]),
            "hwsku": "Vendor-X", "platform": "x86_64-vendor", "mac": "00:11:22:33:44:55",
        }},
        "DSCP_TO_TC_MAP": {name: {
            str(dscp): str(style.dscps.get(dscp, {48: 6, 46: 7}.get(dscp, 1)))
            for dscp in range(64)
        }},
        "TC_TO_PRIORITY_GROUP_MAP": {name: {
            str(tc): str(style.groups.get(tc, 0)) for tc in range(8)
        }},
        "TC_TO_QUEUE_MAP": {name: {str(tc): str(tc) for tc in range(8)}},
        "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {name: {
            str(p): str(group) for p, group in style.groups.items()
        }},
        "MAP_PFC_PRIORITY_TO_QUEUE": {name: {str(p): str(p) for p in lossless}},
        "BUFFER_POOL": {
            style.pool: {"type": "ingress", "mode": "static" if style.is_static else "dynamic",
                         "size": str(style.pool_bytes), "xoff": "0"},
            "egress_pool": {"type": "egress", "mode": "dynamic", "size": "40000000"},
        },
        "BUFFER_PROFILE": {
            "in-lossy": {"pool": style.pool, "size": "0", **th},
            "out-lossy": {"pool": "egress_pool", "size": "0", "dynamic_th": "1"},
            "out-lossless": {"pool": "egress_pool", "size": "0", "static_th": "400000000"},
        },
        "WRED_PROFILE": {style.wred: {
            "ecn": "ecn_all", "wred_green_enable": "true",
            **{f"{colour}_{what}": str(value) for what, value in marks.items()
               for colour in ("green", "yellow", "red")},
        }},
        "SCHEDULER": {"turns": {"type": "DWRR", "weight": "20"},
                      "little": {"type": "WRR", "weight": "5"}, "first": {"type": "STRICT"}},
        "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": str(style.detection)}},
        **{table: {} for table in (
            "PORT", "DEVICE_NEIGHBOR", "DEVICE_NEIGHBOR_METADATA", "BUFFER_PG", "BUFFER_QUEUE",
            "PORT_QOS_MAP", "QUEUE", "BGP_NEIGHBOR")},
        "CABLE_LENGTH": {"AZURE": {}},
    }  # fmt: skip
    for at, wire in enumerate(fabric.ends(switch)):
        _port(fabric, tables, wire, f"10.{at}.0.1")
    shared = sum(int(tables["BUFFER_PROFILE"][entry["profile"]].get("xoff", 0))
                 for entry in tables["BUFFER_PG"].values())  # fmt: skip
    tables["BUFFER_POOL"][style.pool]["xoff"] = str(shared)
    return tables


def _port(fabric: Fabric, tables: Tables, wire: Wire, address: str) -> None:
    style, port = fabric.style, wire.a_port
    profile = f"pg_lossless_{wire.gbps}000_{wire.metres}m_profile"
    tables["BUFFER_PROFILE"].setdefault(profile, {
        "pool": style.pool, "size": "9216", "xon": "9216", "xon_offset": "9216",
        "xoff": str(int(style.room * needed(wire.gbps, wire.metres, style.mtu))),
        **({"static_th": str(style.limit)} if style.is_static
           else {"dynamic_th": str(style.alpha_log2)}),
    })  # fmt: skip
    tables["PORT"][port] = {
        "speed": str(1000 * wire.gbps), "mtu": str(style.mtu), "admin_status": "up",
        "alias": f"Eth{int(port[8:]) // 8 + 1}", "lanes": "1,2,3,4", "fec": "rs",
    }  # fmt: skip
    tables["CABLE_LENGTH"]["AZURE"][port] = f"{wire.metres}m"
    peer = tables["DEVICE_NEIGHBOR"]
    peer[port] = {"name": wire.b, "port": wire.b_port}
    role = _ROLES.get(fabric.tiers.get(wire.b, ""), "Server")
    tables["DEVICE_NEIGHBOR_METADATA"][wire.b] = {"type": role}
    if wire.b in fabric.tiers:
        asn = str(fabric.asns[wire.b])
        tables["BGP_NEIGHBOR"][address] = {"name": wire.b, "asn": asn}
    for queue in range(8):
        is_kept = queue in style.lossless
        kind = "turns" if is_kept else "first" if queue == 7 else "little"
        marks = {"wred_profile": style.wred} if is_kept else {}
        tables["QUEUE"][f"{port}|{queue}"] = {"scheduler": kind, **marks}
        out = "out-lossless" if is_kept else "out-lossy"
        tables["BUFFER_QUEUE"][f"{port}|{queue}"] = {"profile": out}
    tables["BUFFER_PG"][f"{port}|0"] = {"profile": "in-lossy"}
    for group in style.groups.values():
        tables["BUFFER_PG"][f"{port}|{group}"] = {"profile": profile}
    paused = ",".join(map(str, style.lossless))
    tables["PORT_QOS_MAP"][port] = {
        "dscp_to_tc_map": style.maps, "tc_to_pg_map": style.maps, "tc_to_queue_map": style.maps,
        "pfc_to_pg_map": style.maps, "pfc_to_queue_map": style.maps,
        "pfc_enable": paused, "pfcwd_sw_enable": paused,
    }  # fmt: skip
    tables["PFC_WD"][port] = {"action": fabric.rng.choice(("drop", "forward")),
                              "detection_time": str(style.detection),
                              "restoration_time": str(2 * style.detection)}  # fmt: skip


def _odd_but_sound(fabric: Fabric, switch: str) -> None:
    """Some of what is unlike others' and does no harm."""
    rng, tables, style = fabric.rng, fabric.tables[switch], fabric.style
    if rng.random() < 0.3:  # nobody uses these
        tables["BUFFER_PROFILE"]["old"] = {"pool": style.pool, "size": "0", "xoff": "10",
                                           "dynamic_th": "0"}  # fmt: skip
        tables["WRED_PROFILE"]["old"] = {"ecn": "ecn_none", "green_min_threshold": "1"}
        tables["DSCP_TO_TC_MAP"]["old"] = {"26": "0"}
    if rng.random() < 0.3:  # a class that may lose, and may be another here
        lossy = rng.choice([p for p in range(8) if p not in style.lossless])
        dscp = next(d for d in range(63, 0, -1) if d not in style.dscps)
        tables["DSCP_TO_TC_MAP"][style.maps][str(dscp)] = str(lossy)
    if rng.random() < 0.3:  # a port that is not in use
        tables["PORT"]["Ethernet504"] = {"speed": "100000", "admin_status": "down", "lanes": "9"}
        tables["CABLE_LENGTH"]["AZURE"]["Ethernet504"] = "300m"
    if rng.random() < 0.3:
        tables["NTP_SERVER"] = {"192.0.2.1": {}}
        tables["FEATURE"] = {"bgp": {"state": "enabled"}}
    if rng.random() < 0.3:
        fields = ["SRC_IP", "DST_IP", "L4_SRC_PORT", "L4_DST_PORT", "IP_PROTOCOL"]
        tables["SWITCH_HASH"] = {"GLOBAL": {"ecmp_hash": fields}}


# --- dialects -------------------------------------------------------------------------------------


def _joined(tables: Tables) -> Tables:
    """Ports with the same fields as a list, and numbers that follow one another as a range."""
    written = dict(tables)
    lists: dict[str, tuple[list[str], dict[str, Any]]] = {}
    for port, entry in tables["PORT_QOS_MAP"].items():
        lists.setdefault(repr(entry), ([], entry))[0].append(port)
    written["PORT_QOS_MAP"] = {",".join(ports): entry for ports, entry in lists.values()}
    for table in ("BUFFER_PG", "BUFFER_QUEUE", "QUEUE"):
        made: dict[str, dict[str, Any]] = {}
        runs: list[tuple[str, int, int, dict[str, Any]]] = []
        for key, entry in sorted(tables[table].items(), key=lambda kv: kv[0].rpartition("|")[::2]):
            port, _, number = key.rpartition("|")
            if not number.isdigit():
                made[key] = entry
            elif runs and runs[-1][0] == port and runs[-1][2] + 1 == int(number) and (
                runs[-1][3] == entry
            ):  # fmt: skip
                runs[-1] = port, runs[-1][1], int(number), entry
            else:
                runs.append((port, int(number), int(number), entry))
        for port, first, last, entry in runs:
            made[f"{port}|{first}" if first == last else f"{port}|{first}-{last}"] = entry
        written[table] = made
    return written


def _bracketed(tables: Tables) -> Tables:
    """References as older releases have them."""
    written = deepcopy(tables)
    for table, names in (
        ("BUFFER_PG", {"profile": "BUFFER_PROFILE"}),
        ("BUFFER_QUEUE", {"profile": "BUFFER_PROFILE"}),
        ("BUFFER_PROFILE", {"pool": "BUFFER_POOL"}),
        ("QUEUE", {"scheduler": "SCHEDULER", "wred_profile": "WRED_PROFILE"}),
        ("PORT_QOS_MAP", {"dscp_to_tc_map": "DSCP_TO_TC_MAP",
                          "tc_to_queue_map": "TC_TO_QUEUE_MAP"}),
    ):  # fmt: skip
        for entry in written[table].values():
            entry |= {
                name: f"[{of}|{entry[name]}]"
                for name, of in names.items()
                if entry.get(name) not in (None, "", "NULL")
            }
    return written

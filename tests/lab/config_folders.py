"""Folders of switches' configurations, drawn by lot: sound ones, and such with a single fault.

Each fault of FAULTS changes a sound fabric at a place drawn by lot, and says which rule is to find
it, and where.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import field
from pathlib import Path
from random import Random
from typing import Any

from controller import LinkSpec
from controller.headroom import headroom
from lab.configs.basis import header_bytes
from lab.configs.config_db import MAPS_OF_PORTS
from lab.configs.fabric import delay_ns, response_ns
from params.data import Data

LOSSLESS = 3, 4
MTU = 9100
_PAYLOAD = 4096
Where = tuple[str, str, str]  # a switch, a table, a key


class Drawn(Data, frozen=False):
    """A fabric's configurations, by switch."""

    rng: Random
    switches: dict[str, dict[str, Any]] = field(default_factory=dict)
    cables: list[tuple[str, str, str, str]] = field(default_factory=list)  # between switches

    def write(self, folder: Path) -> Path:
        """A file a switch."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.switches.items():
            (folder / f"{name}.json").write_text(json.dumps(content, indent=1))
        return folder

    def a_switch(self) -> str:
        """One of them."""
        return self.rng.choice(sorted(self.switches))

    def a_port(self) -> tuple[str, str]:
        """A switch and a port of it that leads somewhere."""
        switch = self.a_switch()
        return switch, self.rng.choice(sorted(self.switches[switch]["DEVICE_NEIGHBOR"]))

    def an_end(self) -> tuple[str, str, str, str]:
        """A cable between switches, from an end."""
        a, a_port, b, b_port = self.rng.choice(self.cables)
        return (a, a_port, b, b_port) if self.rng.random() < 0.5 else (b, b_port, a, a_port)


def need(speed_mbps: int, metres: int) -> int:
    """The headroom of a lossless priority at such a cable."""
    frame = _PAYLOAD + header_bytes()
    waits = -(-(MTU + 18 - frame) * 8000 // speed_mbps)
    link = LinkSpec(speed_mbps * 10**6, delay_ns(metres))
    return headroom(link, frame, response_ns(speed_mbps) + waits)


def sound(seed: int, sizes: tuple[int, int, int] | None = None) -> Drawn:
    """A fabric of two tiers in which nothing is to be found; ``sizes``: leaves, spines, hosts."""
    rng = Random(seed)
    drawn = Drawn(rng)
    drawn_sizes = rng.randint(3, 6), rng.randint(2, 4), rng.randint(1, 3)
    leaves, spines, below = drawn_sizes if sizes is None else sizes
    host_speed = rng.choice((25_000, 100_000, 200_000))
    speed = rng.choice((host_speed, 400_000))
    short, long = rng.choice((3, 5)), rng.choice((30, 40, 100, 300))
    have_one_as = spines < 3 or rng.random() < 0.5  # two of their own close circles round failures
    plus = 1 + rng.random()
    kmin = rng.choice((50_000, 100_000, 300_000))
    drawn.switches = {
        name: _switch(name, asn, plus, kmin)
        for name, asn in (
            *((f"tor{at}", 65000 + at) for at in range(leaves)),
            *((f"agg{at}", 64600 + (0 if have_one_as else at)) for at in range(spines)),
        )
    }
    taken = dict.fromkeys(drawn.switches, 0)

    def port_of(switch: str, peer: str, back: str, mbps: int, metres: int) -> str:
        name = f"Ethernet{4 * taken[switch]}"
        taken[switch] += 1
        _cable(drawn.switches[switch], name, peer, back, mbps, metres, plus)
        return name

    for leaf in range(leaves):
        for host in range(below):
            port_of(f"tor{leaf}", f"gpu{leaf}-{host}", "eth0", host_speed, short)
        for spine in range(spines):
            a, b = f"tor{leaf}", f"agg{spine}"
            back = f"Ethernet{4 * taken[b]}"
            here = port_of(a, b, back, speed, long)
            port_of(b, a, here, speed, long)
            drawn.cables.append((a, here, b, back))
    return drawn


def _switch(name: str, asn: int, plus: float, kmin: int) -> dict[str, Any]:
    is_leaf = name.startswith("tor")
    return {
        "DEVICE_METADATA": {"localhost": {
            "hostname": name, "bgp_asn": str(asn), "hwsku": "Any-SKU",
            "type": "ToRRouter" if is_leaf else "LeafRouter",
        }},
        "DEVICE_NEIGHBOR": {}, "DEVICE_NEIGHBOR_METADATA": {}, "PORT": {},
        "CABLE_LENGTH": {"AZURE": {}},
        "BUFFER_POOL": {
            "ingress_lossless_pool": {"type": "ingress", "mode": "dynamic", "size": "24000000",
                                      "xoff": str(int(plus * 60_000_000))},
            "egress_lossy_pool": {"type": "egress", "mode": "dynamic", "size": "20000000"},
            "egress_lossless_pool": {"type": "egress", "mode": "static", "size": "24000000"},
        },
        "BUFFER_PROFILE": {
            "ingress_lossy_profile": {"pool": "ingress_lossless_pool", "size": "0",
                                      "dynamic_th": "3"},
            "egress_lossy_profile": {"pool": "egress_lossy_pool", "size": "1518",
                                     "dynamic_th": "3"},
            "egress_lossless_profile": {"pool": "egress_lossless_pool", "size": "0",
                                        "static_th": "24000000"},
        },
        "BUFFER_PG": {}, "BUFFER_QUEUE": {},
        "DSCP_TO_TC_MAP": {"AZURE": {
            str(dscp): {3: "3", 4: "4", 26: "3", 48: "6", 46: "5", 8: "0"}.get(dscp, "1")
            for dscp in range(64)
        }},
        "TC_TO_PRIORITY_GROUP_MAP": {"AZURE": {
            str(tc): str(tc) if tc in LOSSLESS else "0" for tc in range(8)
        }},
        "TC_TO_QUEUE_MAP": {"AZURE": {str(tc): str(tc) for tc in range(8)}},
        "MAP_PFC_PRIORITY_TO_QUEUE": {"AZURE": {str(tc): str(tc) for tc in range(8)}},
        "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP": {"AZURE": {"3": "3", "4": "4"}},
        "PORT_QOS_MAP": {},
        "WRED_PROFILE": {"AZURE_LOSSLESS": {
            "ecn": "ecn_all", "wred_green_enable": "true", "wred_yellow_enable": "true",
            "wred_red_enable": "true",
            **{f"{colour}_{what}": value for colour in ("green", "yellow", "red")
               for what, value in (("min_threshold", str(kmin)),
                                   ("max_threshold", str(4 * kmin)),
                                   ("drop_probability", "5"))},
        }},
        "SCHEDULER": {"scheduler.0": {"type": "DWRR", "weight": "14"},
                      "scheduler.1": {"type": "DWRR", "weight": "15"}},
        "QUEUE": {}, "BGP_NEIGHBOR": {},
        "PFC_WD": {"GLOBAL": {"POLL_INTERVAL": "200"}},
        "LOOPBACK_INTERFACE": {"Loopback0": {}},
        "NTP_SERVER": {"192.0.2.1": {}},
    }  # fmt: skip


def _cable(
    content: dict[str, Any], port: str, peer: str, back: str, mbps: int, metres: int, plus: float
) -> None:
    profile = f"pg_lossless_{mbps}_{metres}m_profile"
    content["BUFFER_PROFILE"][profile] = {
        "pool": "ingress_lossless_pool", "size": "1248", "xon": "2288", "xon_offset": "2288",
        "dynamic_th": "-1", "xoff": str(int(plus * need(mbps, metres)) + 1),
    }  # fmt: skip
    lanes = ",".join(map(str, range(int(port[8:]), int(port[8:]) + 4)))
    content["PORT"][port] = {"speed": str(mbps), "mtu": str(MTU), "lanes": lanes,
                             "admin_status": "up", "alias": f"et{port[8:]}"}  # fmt: skip
    content["CABLE_LENGTH"]["AZURE"][port] = f"{metres}m"
    content["DEVICE_NEIGHBOR"][port] = {"name": peer, "port": back}
    kinds = {"gpu": "Server", "tor": "ToRRouter", "agg": "LeafRouter"}
    content["DEVICE_NEIGHBOR_METADATA"][peer] = {"type": kinds[peer[:3]]}
    if not peer.startswith("gpu"):
        content["BGP_NEIGHBOR"][f"10.0.0.{len(content['BGP_NEIGHBOR'])}"] = {"name": peer}
    content["BUFFER_PG"] |= {f"{port}|0": {"profile": "ingress_lossy_profile"},
                             f"{port}|3-4": {"profile": profile}}  # fmt: skip
    content["BUFFER_QUEUE"] |= {f"{port}|0-2": {"profile": "egress_lossy_profile"},
                                f"{port}|3-4": {"profile": "egress_lossless_profile"},
                                f"{port}|5-6": {"profile": "egress_lossy_profile"}}  # fmt: skip
    content["PORT_QOS_MAP"][port] = {
        **dict.fromkeys(MAPS_OF_PORTS, "AZURE"),
        "pfc_enable": "3,4", "pfcwd_sw_enable": "3,4",
    }  # fmt: skip
    for queue in range(7):
        turn = {"scheduler": "scheduler.1" if queue in LOSSLESS else "scheduler.0"}
        marks = {"wred_profile": "AZURE_LOSSLESS"} if queue in LOSSLESS else {}
        content["QUEUE"][f"{port}|{queue}"] = turn | marks
    content["PFC_WD"][port] = {"action": "drop", "detection_time": "200",
                               "restoration_time": "200"}  # fmt: skip


# --- faults ---------------------------------------------------------------------------------------


def _headroom(drawn: Drawn) -> Where:
    switch, port = drawn.a_port()
    content = drawn.switches[switch]
    name = content["BUFFER_PG"][f"{port}|3-4"]["profile"]
    mbps, metres = (int(part.rstrip("m")) for part in name.split("_")[2:4])
    short = int(need(mbps, metres) * drawn.rng.uniform(0.05, 0.85))
    content["BUFFER_PROFILE"][name]["xoff"] = str(short)
    return switch, "BUFFER_PROFILE", name


def _long_cable(drawn: Drawn) -> Where:
    a, a_port, b, b_port = drawn.an_end()
    for switch, port in ((a, a_port), (b, b_port)):
        content = drawn.switches[switch]
        name = content["BUFFER_PG"][f"{port}|3-4"]["profile"]
        content["CABLE_LENGTH"]["AZURE"][port] = "10000m"
        if switch == b:  # whose headroom was thought of
            own = "pg_lossless_own_profile"
            copy = dict(content["BUFFER_PROFILE"][name])
            copy["xoff"] = str(2 * need(int(content["PORT"][port]["speed"]), 10_000))
            content["BUFFER_PROFILE"][own] = copy
            content["BUFFER_PG"][f"{port}|3-4"]["profile"] = own
            name_here = drawn.switches[a]["BUFFER_PG"][f"{a_port}|3-4"]["profile"]
    return a, "BUFFER_PROFILE", name_here


def _pfc(drawn: Drawn) -> Where:
    switch, port, _, _ = drawn.an_end()
    drawn.switches[switch]["PORT_QOS_MAP"][port]["pfc_enable"] = drawn.rng.choice(
        ("3", "4", "", "3,5")
    )
    return switch, "PORT_QOS_MAP", port


def _pfc_off(drawn: Drawn) -> Where:
    leaf = drawn.rng.choice([name for name in sorted(drawn.switches) if name.startswith("tor")])
    drawn.switches[leaf]["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = ""
    return leaf, "PORT_QOS_MAP", "Ethernet0"


def _pg_missing(drawn: Drawn) -> Where:
    switch, port = drawn.a_port()
    groups = drawn.switches[switch]["BUFFER_PG"]
    gone = drawn.rng.choice(LOSSLESS)
    groups[f"{port}|{7 - gone}"] = groups.pop(f"{port}|3-4")
    return switch, "BUFFER_PG", f"{port}|{gone}"


def _unsaved(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    groups = drawn.switches[switch]["BUFFER_PG"]
    for key in [key for key in groups if key.endswith("|3-4")]:
        del groups[key]
    return switch, "BUFFER_PG", ""


def _pool(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    pool = drawn.switches[switch]["BUFFER_POOL"]["ingress_lossless_pool"]
    pool["xoff"] = str(drawn.rng.randint(1000, 5000))
    return switch, "BUFFER_POOL", "ingress_lossless_pool"


def _dscp(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    dscp, tc = drawn.rng.choice((("26", "1"), ("3", "0"), ("26", "4"), ("10", "3")))
    drawn.switches[switch]["DSCP_TO_TC_MAP"]["AZURE"][dscp] = tc
    return switch, "DSCP_TO_TC_MAP", f"AZURE|{dscp}"


def _map(table: str) -> Callable[[Drawn], Where]:
    def inject(drawn: Drawn) -> Where:
        switch = drawn.a_switch()
        tc = drawn.rng.choice(("3", "4"))
        drawn.switches[switch][table]["AZURE"][tc] = drawn.rng.choice(("0", "1", "5"))
        return switch, table, f"AZURE|{tc}"

    return inject


def _ecn_missing(drawn: Drawn) -> Where:
    switch, port = drawn.a_port()
    queue = drawn.rng.choice(LOSSLESS)
    del drawn.switches[switch]["QUEUE"][f"{port}|{queue}"]["wred_profile"]
    return switch, "QUEUE", f"{port}|{queue}"


def _wred_drop(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    drawn.switches[switch]["WRED_PROFILE"]["AZURE_LOSSLESS"]["ecn"] = "ecn_none"
    return switch, "WRED_PROFILE", "AZURE_LOSSLESS"


def _ecn_late(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    profile = drawn.switches[switch]["WRED_PROFILE"]["AZURE_LOSSLESS"]
    profile["green_min_threshold"], profile["green_max_threshold"] = "12000000", "20000000"
    return switch, "WRED_PROFILE", "AZURE_LOSSLESS"


def _unwatched(drawn: Drawn) -> Where:
    switch, port = drawn.a_port()
    drawn.switches[switch]["PORT_QOS_MAP"][port]["pfcwd_sw_enable"] = drawn.rng.choice(("", "4"))
    return switch, "PORT_QOS_MAP", port


def _no_watch(drawn: Drawn) -> Where:
    switch, port = drawn.a_port()
    del drawn.switches[switch]["PFC_WD"][port]
    return switch, "PFC_WD", port


def _slow_watch(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    drawn.switches[switch]["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] = "1000"
    return switch, "PFC_WD", "GLOBAL"


def _mtu(drawn: Drawn) -> Where:
    switch, port, _, _ = drawn.an_end()
    drawn.switches[switch]["PORT"][port]["mtu"] = drawn.rng.choice(("9000", "8192"))
    return switch, "PORT", port


def _length(drawn: Drawn) -> Where:
    switch, port, _, _ = drawn.an_end()
    drawn.switches[switch]["CABLE_LENGTH"]["AZURE"][port] = "2m"
    return switch, "CABLE_LENGTH", f"AZURE|{port}"


def _neighbour(drawn: Drawn) -> Where:
    switch, port, _, _ = drawn.an_end()
    del drawn.switches[switch]["DEVICE_NEIGHBOR"][port]
    return switch, "DEVICE_NEIGHBOR", port


def _alpha(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    th = drawn.rng.choice(("-12", "20"))
    drawn.switches[switch]["BUFFER_PROFILE"]["ingress_lossy_profile"]["dynamic_th"] = th
    return switch, "BUFFER_PROFILE", "ingress_lossy_profile"


def _ring(drawn: Drawn) -> Where:
    """Every leaf cabled to the next one: with four of them or more, ways lead round."""
    leaves = sorted(name for name in drawn.switches if name.startswith("tor"))
    mbps, metres = _speed_of(drawn)
    ports = {}
    for leaf in leaves:
        base = 4 * len(drawn.switches[leaf]["PORT"])
        ports[leaf] = f"Ethernet{base}", f"Ethernet{base + 4}"
    for leaf, on in zip(leaves, (*leaves[1:], leaves[0]), strict=True):
        _cable(drawn.switches[leaf], ports[leaf][1], on, ports[on][0], mbps, metres, 1.0)
        _cable(drawn.switches[on], ports[on][0], leaf, ports[leaf][1], mbps, metres, 1.0)
        drawn.cables.append((leaf, ports[leaf][1], on, ports[on][0]))
    return leaves[0], "DEVICE_NEIGHBOR", ports[leaves[0]][1]


def _speed_of(drawn: Drawn) -> tuple[int, int]:
    switch, port, _, _ = drawn.cables[0]
    content = drawn.switches[switch]
    metres = content["CABLE_LENGTH"]["AZURE"][port]
    return int(content["PORT"][port]["speed"]), int(metres.rstrip("m"))


def _at_queue(field: str, value: str, queue: int = 0) -> Callable[[Drawn], Where]:
    def inject(drawn: Drawn) -> Where:
        switch, port = drawn.a_port()
        drawn.switches[switch]["QUEUE"][f"{port}|{queue}"][field] = value
        return switch, "QUEUE", f"{port}|{queue}"

    return inject


def _strict(drawn: Drawn) -> Where:
    for content in drawn.switches.values():
        content["SCHEDULER"]["scheduler.9"] = {"type": "STRICT"}
    return _at_queue("scheduler", "scheduler.9", drawn.rng.choice(LOSSLESS))(drawn)


def _light(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    drawn.switches[switch]["SCHEDULER"]["scheduler.1"]["weight"] = drawn.rng.choice(("1", "2"))
    return switch, "SCHEDULER", "scheduler.1"


def _field(table: str, key: str, name: str, *values: str) -> Callable[[Drawn], Where]:
    def inject(drawn: Drawn) -> Where:
        switch = drawn.a_switch()
        drawn.switches[switch][table][key][name] = drawn.rng.choice(values)
        return switch, table, f"{key}|{name}" if "_TO_" in table else key

    return inject


def _pfc_path(drawn: Drawn) -> Where:
    leaf = drawn.rng.choice([name for name in sorted(drawn.switches) if name.startswith("tor")])
    content = drawn.switches[leaf]
    content["PORT_QOS_MAP"]["Ethernet0"] |= {"pfc_enable": "", "pfcwd_sw_enable": ""}
    del content["BUFFER_PG"]["Ethernet0|3-4"]
    return leaf, "PORT_QOS_MAP", "Ethernet0"


def _partial(drawn: Drawn) -> Where:
    switch, kept = drawn.a_switch(), drawn.rng.choice(LOSSLESS)
    del drawn.switches[switch]["PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"]["AZURE"][str(kept)]
    return switch, "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP", f"AZURE|{kept}"


def _without_length(drawn: Drawn) -> Where:
    switch, port, _, _ = drawn.an_end()
    del drawn.switches[switch]["CABLE_LENGTH"]["AZURE"][port]
    return switch, "CABLE_LENGTH", f"AZURE|{port}"


def _untrusted(drawn: Drawn) -> Where:
    switch, port = drawn.a_port()
    del drawn.switches[switch]["PORT_QOS_MAP"][port]["dscp_to_tc_map"]
    return switch, "PORT_QOS_MAP", port


def _cnp(drawn: Drawn) -> Where:
    tc = drawn.rng.choice(("3", "4"))
    for content in drawn.switches.values():
        content["DSCP_TO_TC_MAP"]["AZURE"]["48"] = tc
    return "agg0", "DSCP_TO_TC_MAP", "AZURE|48"


def _no_xon(drawn: Drawn) -> Where:
    switch, port = drawn.a_port()
    content = drawn.switches[switch]
    name = content["BUFFER_PG"][f"{port}|3-4"]["profile"]
    del content["BUFFER_PROFILE"][name]["xon"], content["BUFFER_PROFILE"][name]["xon_offset"]
    return switch, "BUFFER_PROFILE", name


def _trim(profile: str, queue: str | None) -> Callable[[Drawn], Where]:
    def inject(drawn: Drawn) -> Where:
        switch = drawn.a_switch()
        content = drawn.switches[switch]
        content["BUFFER_PROFILE"][profile]["packet_discard_action"] = "trim"
        if queue is not None:
            content["SWITCH_TRIMMING"] = {
                "GLOBAL": {"size": "128", "dscp_value": "48", "queue_index": queue}
            }
        if queue == "3":
            return switch, "SWITCH_TRIMMING", "GLOBAL"
        return switch, "BUFFER_PROFILE", profile

    return inject


def _hash(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    drawn.switches[switch]["SWITCH_HASH"] = {"GLOBAL": {"ecmp_hash": ["SRC_IP", "DST_IP"]}}
    return switch, "SWITCH_HASH", "GLOBAL"


def _watch(**fields: str) -> Callable[[Drawn], Where]:
    def inject(drawn: Drawn) -> Where:
        switch, port = drawn.a_port()
        drawn.switches[switch]["PFC_WD"][port] |= fields
        if "detection_time" in fields:
            poll = min(200, int(fields["detection_time"]))
            drawn.switches[switch]["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] = str(poll)
        return switch, "PFC_WD", port

    return inject


def _flat(drawn: Drawn) -> Where:
    switch = drawn.a_switch()
    profile = drawn.switches[switch]["WRED_PROFILE"]["AZURE_LOSSLESS"]
    profile |= {"green_min_threshold": "7500000", "green_max_threshold": "200000000"}
    return switch, "WRED_PROFILE", "AZURE_LOSSLESS"


def _own_as(drawn: Drawn) -> Where:
    """Two spines, each with an AS of its own: round two failures ways lead down and up again."""
    for at, name in enumerate(sorted(drawn.switches)):
        drawn.switches[name]["DEVICE_METADATA"]["localhost"]["bgp_asn"] = str(64_000 + at)
    return "agg0", "DEVICE_NEIGHBOR", "Ethernet0"


def _one_spine(drawn: Drawn) -> Where:
    for name in [name for name in drawn.switches if name.startswith("agg") and name != "agg0"]:
        del drawn.switches[name]
    for content in drawn.switches.values():
        content["DEVICE_NEIGHBOR"] = {
            port: far for port, far in content["DEVICE_NEIGHBOR"].items()
            if far["name"] in drawn.switches or far["name"].startswith("gpu")
        }  # fmt: skip
    leaf = drawn.switches["tor0"]["DEVICE_NEIGHBOR"]
    return "tor0", "DEVICE_NEIGHBOR", next(p for p, far in leaf.items() if far["name"] == "agg0")


def _same_as(drawn: Drawn) -> Where:
    for name in ("tor0", "tor1"):
        drawn.switches[name]["DEVICE_METADATA"]["localhost"]["bgp_asn"] = "65500"
    return "tor0", "DEVICE_NEIGHBOR", ""


def _uplinks(drawn: Drawn) -> tuple[str, list[tuple[str, str, str, str]]]:
    """A leaf, and its cables to spines."""
    leaf = drawn.rng.choice([name for name in sorted(drawn.switches) if name.startswith("tor")])
    return leaf, [cable for cable in drawn.cables if cable[0] == leaf]


def _crowded(drawn: Drawn) -> Where:
    leaf, cables = _uplinks(drawn)
    content = drawn.switches[leaf]
    down = sum(int(content["PORT"][port]["speed"]) for port, far in
               content["DEVICE_NEIGHBOR"].items() if far["name"].startswith("gpu"))  # fmt: skip
    for a, a_port, b, b_port in cables:
        for switch, port in ((a, a_port), (b, b_port)):
            drawn.switches[switch]["PORT"][port]["speed"] = str(down // (4 * len(cables)))
    return leaf, "DEVICE_NEIGHBOR", ""


def _slow_uplink(drawn: Drawn) -> Where:
    leaf, cables = _uplinks(drawn)
    a, a_port, b, b_port = cables[0]
    speed = int(drawn.switches[a]["PORT"][a_port]["speed"])
    slower = {25_000: 10_000, 100_000: 50_000, 200_000: 100_000, 400_000: 200_000}[speed]
    for switch, port in ((a, a_port), (b, b_port)):
        drawn.switches[switch]["PORT"][port]["speed"] = str(slower)
    return leaf, "PORT", a_port


def _in_one_as(drawn: Drawn) -> None:
    """Spines, so that no circle follows from a cable that is missing."""
    for name, content in drawn.switches.items():
        if name.startswith("agg"):
            content["DEVICE_METADATA"]["localhost"]["bgp_asn"] = "64600"


def _fewer(drawn: Drawn) -> Where:
    _in_one_as(drawn)
    leaf, cables = _uplinks(drawn)
    a, a_port, b, b_port = cables[0]
    for switch, port in ((a, a_port), (b, b_port)):
        del drawn.switches[switch]["DEVICE_NEIGHBOR"][port]
    return leaf, "DEVICE_NEIGHBOR", ""


def _fec(drawn: Drawn) -> Where:
    a, a_port, b, b_port = drawn.rng.choice(drawn.cables)
    drawn.switches[a]["PORT"][a_port]["fec"] = "rs"
    drawn.switches[b]["PORT"][b_port]["fec"] = "none"
    return a, "PORT", a_port


def _down(drawn: Drawn) -> Where:
    _in_one_as(drawn)
    switch, port, _, _ = drawn.an_end()
    drawn.switches[switch]["PORT"][port]["admin_status"] = "down"
    return switch, "PORT", port


def _no_bgp(drawn: Drawn) -> Where:
    a, _, b, _ = drawn.an_end()
    sessions = drawn.switches[a]["BGP_NEIGHBOR"]
    for key in [key for key, one in sessions.items() if one["name"] == b]:
        del sessions[key]
    return a, "BGP_NEIGHBOR", b


def _mtu_path(drawn: Drawn) -> Where:
    a, a_port, b, b_port = drawn.rng.choice(drawn.cables)
    for switch, port in ((a, a_port), (b, b_port)):
        drawn.switches[switch]["PORT"][port]["mtu"] = "2000"
    return b, "PORT", b_port


FAULTS: dict[str, tuple[str, Callable[[Drawn], Where]]] = {
    "headroom": ("headroom-small", _headroom),
    "long cable": ("headroom-small", _long_cable),
    "pfc": ("pfc-one-end", _pfc),
    "pfc off": ("pfc-off", _pfc_off),
    "no group": ("pg-missing", _pg_missing),
    "unsaved": ("pg-not-told", _unsaved),
    "pool": ("pool-oversubscribed", _pool),
    "dscp": ("dscp-map", _dscp),
    "group map": ("pg-map", _map("TC_TO_PRIORITY_GROUP_MAP")),
    "queue map": ("queue-map", _map("TC_TO_QUEUE_MAP")),
    "pfc group map": ("pg-map", _map("PFC_PRIORITY_TO_PRIORITY_GROUP_MAP")),
    "pfc queue map": ("queue-map", _map("MAP_PFC_PRIORITY_TO_QUEUE")),
    "no marks": ("ecn-missing", _ecn_missing),
    "drops": ("wred-drop", _wred_drop),
    "late marks": ("ecn-late", _ecn_late),
    "unwatched": ("watchdog-missing", _unwatched),
    "no watch": ("watchdog-missing", _no_watch),
    "slow watch": ("watchdog-slow", _slow_watch),
    "mtu": ("mtu-differs", _mtu),
    "length": ("cable-differs", _length),
    "untold": ("cable-untold", _without_length),
    "partial": ("map-partial", _partial),
    "neighbour": ("neighbour-missing", _neighbour),
    "alpha": ("alpha-range", _alpha),
    "ring": ("deadlock", _ring),
    "bare port": ("pfc-path", _pfc_path),
    "shared group": ("pg-shared", _field("TC_TO_PRIORITY_GROUP_MAP", "AZURE", "1", "3", "4")),
    "shared queue": ("queue-shared", _field("TC_TO_QUEUE_MAP", "AZURE", "1", "3", "4")),
    "untrusted": ("dscp-untrusted", _untrusted),
    "notifications": ("cnp-class", _cnp),
    "strict": ("scheduler-strict", _strict),
    "light": ("scheduler-weight", _light),
    "small queue": (
        "queue-limit",
        _field("BUFFER_PROFILE", "egress_lossless_profile", "static_th", "50000", "300000"),
    ),
    "no xon": ("xon-missing", _no_xon),
    "trim": ("trim-lossless", _trim("egress_lossless_profile", "6")),
    "trim queue": ("trim-queue", _trim("egress_lossy_profile", "3")),
    "trim untold": ("trim-untold", _trim("egress_lossy_profile", None)),
    "dangling": ("reference-missing", _at_queue("scheduler", "scheduler.7")),
    "hash": ("hash-fields", _hash),
    "eager watch": ("watchdog-eager", _watch(detection_time="50")),
    "late watch": ("watchdog-late", _watch(detection_time="1000", restoration_time="1000")),
    "alert": ("watchdog-alert", _watch(action="alert")),
    "flat marks": ("ecn-flat", _flat),
    "own AS": ("deadlock-failure", _own_as),
    "one spine": ("single-cable", _one_spine),
    "same AS": ("unreachable", _same_as),
    "crowded": ("oversubscribed", _crowded),
    "slow uplink": ("uplinks-unequal", _slow_uplink),
    "fewer": ("uplinks-fewer", _fewer),
    "fec": ("fec-differs", _fec),
    "down": ("port-down", _down),
    "no bgp": ("bgp-missing", _no_bgp),
    "mtu path": ("mtu-path", _mtu_path),
}
# What is mended with cables, or by somebody who knows more.
NO_PATCH = {
    "pg-not-told", "reference-missing", "single-cable", "unreachable", "oversubscribed",
    "uplinks-unequal", "uplinks-fewer", "bgp-missing",
}  # fmt: skip
# Of how many leaves and spines at least a fault needs to be there alone, and how many at most.
_SIZES = {
    "ring": (4, 2, 4), "own AS": (4, 2, 2), "fewer": (3, 3, 4), "down": (3, 3, 4),
}  # fmt: skip


def faulty(seed: int, fault: str) -> tuple[Drawn, str, Where]:
    """A sound fabric with a fault in it, the rule that is to find it, and where."""
    rule, inject = FAULTS[fault]
    least, few, most = _SIZES.get(fault, (3, 2, 4))
    while True:
        drawn = sound(seed)
        leaves = sum(name.startswith("tor") for name in drawn.switches)
        if leaves >= least and few <= len(drawn.switches) - leaves <= most:
            return drawn, rule, inject(drawn)
        seed += 1_000_003

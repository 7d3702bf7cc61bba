"""A fault put into a sound fabric by lot, and what is to be said of it: the model's own answer.

Every rule of docs/production.md has at least one kind here. Each kind changes tables as an operator
would by mistake, and answers which rule is to find it, and where. `ALSO` has what follows from a
fault by itself and may be told beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.lab.fabrics_by_lot import Fabric, Tables, Wire, needed

Answer = tuple[str, str, str, str]  # a rule, a switch, a table, a key
Inject = Callable[[Fabric], Answer | None]  # None: this fabric cannot have it


def _kept(fabric: Fabric) -> int:
    return fabric.rng.choice(fabric.style.lossless)


def _lossy(fabric: Fabric) -> int:
    return fabric.rng.choice([p for p in range(7) if p not in fabric.style.lossless])


def _profile(fabric: Fabric, switch: str, port: str) -> str:
    group = fabric.style.groups[fabric.style.lossless[0]]
    return str(fabric.tables[switch]["BUFFER_PG"][f"{port}|{group}"]["profile"])


def _wire_of(fabric: Fabric, switch: str, port: str) -> Wire:
    return next(wire for wire in fabric.ends(switch) if wire.a_port == port)


# --- headroom, pauses -----------------------------------------------------------------------------


def _short(fabric: Fabric) -> Answer:
    switch, port = fabric.a_port()
    wire, name = _wire_of(fabric, switch, port), _profile(fabric, switch, port)
    need = needed(wire.gbps, wire.metres, fabric.style.mtu)
    xoff = str(int(need * fabric.rng.uniform(0.02, 0.8)))
    fabric.tables[switch]["BUFFER_PROFILE"][name]["xoff"] = xoff
    return "headroom-small", switch, "BUFFER_PROFILE", name


def _stretched(fabric: Fabric) -> Answer | None:
    """A cable was replaced by a longer one, told at both ends; one forgot its headroom."""
    wire = fabric.an_end()
    metres = 20 * wire.metres + 1000
    have = fabric.style.room * needed(wire.gbps, wire.metres, fabric.style.mtu)
    if have > 0.8 * needed(wire.gbps, metres, fabric.style.mtu):
        return None
    for end in (wire, wire.turned()):
        fabric.tables[end.a]["CABLE_LENGTH"]["AZURE"][end.a_port] = f"{metres}m"
    tables = fabric.tables[wire.b]
    mended = dict(tables["BUFFER_PROFILE"][_profile(fabric, wire.b, wire.b_port)])
    mended["xoff"] = str(2 * needed(wire.gbps, metres, fabric.style.mtu))
    tables["BUFFER_PROFILE"]["long"] = mended
    for group in fabric.style.groups.values():
        tables["BUFFER_PG"][f"{wire.b_port}|{group}"] = {"profile": "long"}
    pool = tables["BUFFER_POOL"][fabric.style.pool]
    pool["xoff"] = str(int(pool["xoff"]) + 4 * int(mended["xoff"]))
    return "headroom-small", wire.a, "BUFFER_PROFILE", _profile(fabric, wire.a, wire.a_port)


def _no_group(fabric: Fabric) -> Answer:
    switch, port = fabric.a_port()
    group = fabric.style.groups[_kept(fabric)]
    groups = fabric.tables[switch]["BUFFER_PG"]
    if fabric.rng.random() < 0.5:
        del groups[f"{port}|{group}"]
    else:
        groups[f"{port}|{group}"] = {"profile": "in-lossy"}
    return "pg-missing", switch, "BUFFER_PG", f"{port}|{group}"


def _template(fabric: Fabric) -> Answer:
    switch = fabric.some()
    groups = fabric.tables[switch]["BUFFER_PG"]
    for key in [key for key, entry in groups.items() if entry["profile"] != "in-lossy"]:
        del groups[key]
    return "pg-not-told", switch, "BUFFER_PG", ""


def _pool(fabric: Fabric) -> Answer:
    switch = fabric.some()
    pool = fabric.tables[switch]["BUFFER_POOL"][fabric.style.pool]
    pool["xoff"] = str(fabric.rng.randint(500, 9000))
    return "pool-oversubscribed", switch, "BUFFER_POOL", fabric.style.pool


def _pfc(fabric: Fabric) -> Answer:
    wire, lossless = fabric.an_end(), fabric.style.lossless
    other = [str(p) for p in lossless[1:]] or [str(_lossy(fabric))]
    paused = fabric.rng.choice((",".join(other), "", str(_lossy(fabric))))
    fabric.tables[wire.a]["PORT_QOS_MAP"][wire.a_port]["pfc_enable"] = paused
    return "pfc-one-end", wire.a, "PORT_QOS_MAP", wire.a_port


def _host_pfc(fabric: Fabric) -> Answer:
    stub = fabric.rng.choice(fabric.stubs)
    fabric.tables[stub.b]["PORT_QOS_MAP"][stub.b_port] |= {"pfc_enable": "", "pfcwd_sw_enable": ""}
    return "pfc-off", stub.b, "PORT_QOS_MAP", stub.b_port


def _bare(fabric: Fabric) -> Answer:
    stub = fabric.rng.choice(fabric.stubs)
    _host_at(fabric, stub)
    return "pfc-path", stub.b, "PORT_QOS_MAP", stub.b_port


def _host_at(fabric: Fabric, stub: Wire) -> None:
    tables = fabric.tables[stub.b]
    tables["PORT_QOS_MAP"][stub.b_port] |= {"pfc_enable": "", "pfcwd_sw_enable": ""}
    for group in fabric.style.groups.values():
        del tables["BUFFER_PG"][f"{stub.b_port}|{group}"]


def _nowhere(fabric: Fabric) -> Answer:
    for tables in fabric.tables.values():
        for entry in tables["PORT_QOS_MAP"].values():
            del entry["pfc_enable"], entry["pfcwd_sw_enable"]
    return "pfc-nowhere", min(fabric.tables), "PORT_QOS_MAP", ""


def _xon(fabric: Fabric) -> Answer:
    switch, port = fabric.a_port()
    name = _profile(fabric, switch, port)
    profile = fabric.tables[switch]["BUFFER_PROFILE"][name]
    del profile["xon"], profile["xon_offset"]
    return "xon-missing", switch, "BUFFER_PROFILE", name


# --- classes --------------------------------------------------------------------------------------


def _dscp(fabric: Fabric) -> Answer | None:
    if len(fabric.tiers) < 3:
        return None  # of two who disagree nobody can say who is wrong
    switch, style = fabric.some(), fabric.style
    classes = fabric.tables[switch]["DSCP_TO_TC_MAP"][style.maps]
    if fabric.rng.random() < 0.5:
        dscp, tc = fabric.rng.choice(sorted(style.dscps)), _lossy(fabric)
    else:
        dscp, tc = fabric.rng.choice([d for d in range(60) if d not in style.dscps]), _kept(fabric)
    classes[str(dscp)] = str(tc)
    return "dscp-map", switch, "DSCP_TO_TC_MAP", f"{style.maps}|{dscp}"


def _forgotten_dscp(fabric: Fabric) -> Answer:
    switch, style = fabric.some(), fabric.style
    dscp = fabric.rng.choice(sorted(style.dscps))
    del fabric.tables[switch]["DSCP_TO_TC_MAP"][style.maps][str(dscp)]
    return "dscp-map", switch, "DSCP_TO_TC_MAP", f"{style.maps}|{dscp}"


def _cnp(fabric: Fabric) -> Answer:
    for tables in fabric.tables.values():
        tables["DSCP_TO_TC_MAP"][fabric.style.maps]["48"] = str(fabric.style.lossless[-1])
    return "cnp-class", min(fabric.tables), "DSCP_TO_TC_MAP", f"{fabric.style.maps}|48"


def _elsewhere(rule: str, table: str) -> Inject:
    """A lossless class is mapped to what belongs to another."""

    def inject(fabric: Fabric) -> Answer:
        switch, tc = fabric.some(), _kept(fabric)
        taken = {*fabric.style.lossless, *fabric.style.groups.values()}
        value = fabric.rng.choice([p for p in range(7) if p not in taken])
        fabric.tables[switch][table][fabric.style.maps][str(tc)] = str(value)
        return rule, switch, table, f"{fabric.style.maps}|{tc}"

    return inject


def _shared(rule: str, table: str) -> Inject:
    """A class that may lose is mapped to what belongs to a lossless one."""

    def inject(fabric: Fabric) -> Answer:
        switch, tc = fabric.some(), 1
        kept = _kept(fabric)
        value = fabric.style.groups[kept] if rule == "pg-shared" else kept
        fabric.tables[switch][table][fabric.style.maps][str(tc)] = str(value)
        return rule, switch, table, f"{fabric.style.maps}|{tc}"

    return inject


def _partial(fabric: Fabric) -> Answer:
    switch, kept = fabric.some(), _kept(fabric)
    table = fabric.rng.choice(("MAP_PFC_PRIORITY_TO_QUEUE", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"))
    if fabric.style.groups[kept] != kept:
        table = "MAP_PFC_PRIORITY_TO_QUEUE"
    del fabric.tables[switch][table][fabric.style.maps][str(kept)]
    return "map-partial", switch, table, f"{fabric.style.maps}|{kept}"


def _untrusted(fabric: Fabric) -> Answer:
    switch, port = fabric.a_port()
    del fabric.tables[switch]["PORT_QOS_MAP"][port]["dscp_to_tc_map"]
    return "dscp-untrusted", switch, "PORT_QOS_MAP", port


# --- queues ---------------------------------------------------------------------------------------


def _at_queue(rule: str, change: Callable[[dict[str, Any]], Any]) -> Inject:
    def inject(fabric: Fabric) -> Answer:
        switch, port = fabric.a_port()
        key = f"{port}|{_kept(fabric)}"
        entry = dict(fabric.tables[switch]["QUEUE"][key])
        change(entry)
        fabric.tables[switch]["QUEUE"][key] = entry
        return rule, switch, "QUEUE", key

    return inject


def _unmarked(fabric: Fabric) -> Answer | None:
    return _at_queue("ecn-missing", lambda entry: entry.pop("wred_profile"))(fabric)


def _light(fabric: Fabric) -> Answer:
    switch = fabric.some()
    turns = fabric.tables[switch]["SCHEDULER"]
    turns["turns"]["weight"], turns["little"]["weight"] = "1", "60"
    return "scheduler-weight", switch, "SCHEDULER", "turns"


def _limit(fabric: Fabric) -> Answer:
    switch = fabric.some()
    profile = fabric.tables[switch]["BUFFER_PROFILE"]["out-lossless"]
    profile["static_th"] = str(fabric.rng.randint(5000, 90_000))
    return "queue-limit", switch, "BUFFER_PROFILE", "out-lossless"


def _wred(rule: str, change: Callable[[Fabric, dict[str, Any]], None]) -> Inject:
    def inject(fabric: Fabric) -> Answer:
        switch, name = fabric.some(), fabric.style.wred
        change(fabric, fabric.tables[switch]["WRED_PROFILE"][name])
        return rule, switch, "WRED_PROFILE", name

    return inject


def _paused_at(fabric: Fabric) -> int:
    """What a sender alone may have in an empty switch."""
    style = fabric.style
    alpha = 2.0**style.alpha_log2
    return style.limit if style.is_static else int(style.pool_bytes * alpha / (1 + alpha))


def _late(fabric: Fabric, profile: dict[str, Any]) -> None:
    kmin = int(_paused_at(fabric) * fabric.rng.uniform(1.05, 2))
    for colour in ("green", "yellow", "red"):
        profile[f"{colour}_min_threshold"] = str(kmin)
        profile[f"{colour}_max_threshold"] = str(2 * kmin)


def _flat(fabric: Fabric, profile: dict[str, Any]) -> None:
    """So that of what a sender fills the second half with next to no packet is marked."""
    at = _paused_at(fabric)
    chance = min(0.009, fabric.rng.uniform(0.1, 0.5) * 4174 / (at / 2))
    for colour in ("green", "yellow", "red"):
        profile[f"{colour}_min_threshold"] = str(at // 2)
        profile[f"{colour}_max_threshold"] = str(int(at / 2 + at / 2 * 0.2 / chance))


def _no_ecn(_: Fabric, profile: dict[str, Any]) -> None:
    profile["ecn"] = "ecn_none"


def _trim(profile: str, queue: str | None) -> Inject:
    def inject(fabric: Fabric) -> Answer:
        switch = fabric.some()
        tables = fabric.tables[switch]
        tables["BUFFER_PROFILE"][profile]["packet_discard_action"] = "trim"
        if queue is None:
            return "trim-untold", switch, "BUFFER_PROFILE", profile
        on = str(_kept(fabric)) if queue == "kept" else queue
        tables["SWITCH_TRIMMING"] = {
            "GLOBAL": {"size": "256", "dscp_value": "50", "queue_index": on}
        }
        if queue == "kept":
            return "trim-queue", switch, "SWITCH_TRIMMING", "GLOBAL"
        return "trim-lossless", switch, "BUFFER_PROFILE", profile

    return inject


def _alpha(fabric: Fabric) -> Answer:
    switch = fabric.some()
    name = fabric.rng.choice(("out-lossy", "in-lossy"))
    profile = fabric.tables[switch]["BUFFER_PROFILE"][name]
    profile["dynamic_th"] = fabric.rng.choice(("-9", "8", "100"))
    return "alpha-range", switch, "BUFFER_PROFILE", name


def _dangling(fabric: Fabric) -> Answer:
    switch, port = fabric.a_port()
    tables = fabric.tables[switch]
    table, key, name = fabric.rng.choice((
        ("BUFFER_QUEUE", f"{port}|1", "profile"), ("QUEUE", f"{port}|0", "scheduler"),
        ("BUFFER_PROFILE", "in-lossy", "pool"), ("BUFFER_PG", f"{port}|0", "profile"),
        ("BUFFER_PROFILE", "out-lossless", ""), ("BUFFER_PG", "Ethernet808|3", "profile"),
    ))  # fmt: skip
    tables[table][key] = {**tables[table].get(key, {}), name: "no_such_thing"}
    if not name:
        del tables[table][key]["pool"]
    return "reference-missing", switch, table, key


# --- the watchdog, hashes -------------------------------------------------------------------------


def _watched(**fields: str) -> Inject:
    def inject(fabric: Fabric) -> Answer:
        switch, port = fabric.a_port()
        entry = fabric.tables[switch]["PFC_WD"][port]
        rule = "watchdog-alert"
        entry |= fields
        if "detection_time" in fields:
            rule = "watchdog-late" if int(fields["detection_time"]) > 469 else "watchdog-eager"
            poll = fabric.tables[switch]["PFC_WD"]["GLOBAL"]
            poll["POLL_INTERVAL"] = str(min(int(entry["detection_time"]),
                                            int(poll["POLL_INTERVAL"])))  # fmt: skip
        return rule, switch, "PFC_WD", port

    return inject


def _unwatched(fabric: Fabric) -> Answer:
    switch, port = fabric.a_port()
    if fabric.rng.random() < 0.5:
        del fabric.tables[switch]["PFC_WD"][port]
        return "watchdog-missing", switch, "PFC_WD", port
    fabric.tables[switch]["PORT_QOS_MAP"][port]["pfcwd_sw_enable"] = ""
    return "watchdog-missing", switch, "PORT_QOS_MAP", port


def _slow_poll(fabric: Fabric) -> Answer:
    switch = fabric.some()
    poll = str(fabric.style.detection * fabric.rng.randint(2, 9))
    fabric.tables[switch]["PFC_WD"]["GLOBAL"]["POLL_INTERVAL"] = poll
    return "watchdog-slow", switch, "PFC_WD", "GLOBAL"


def _hash(fabric: Fabric) -> Answer:
    switch = fabric.some()
    fields = fabric.rng.choice((["SRC_IP", "DST_IP"], ["DST_IP", "L4_DST_PORT", "IP_PROTOCOL"]))
    fabric.tables[switch]["SWITCH_HASH"] = {"GLOBAL": {"ecmp_hash": fields}}
    return "hash-fields", switch, "SWITCH_HASH", "GLOBAL"


# --- cables and ways ------------------------------------------------------------------------------


def _port_differs(name: str, *values: str) -> Inject:
    def inject(fabric: Fabric) -> Answer | None:
        wire = fabric.an_end()
        port = fabric.tables[wire.a]["PORT"][wire.a_port]
        value = fabric.rng.choice([one for one in values if one != port[name]])
        port[name] = value
        rule = {"admin_status": "port-down"}.get(name, f"{name}-differs")
        return rule, wire.a, "PORT", wire.a_port

    return inject


def _half_speed(fabric: Fabric) -> Answer | None:
    wire = fabric.an_end()
    if sum(1 for _ in fabric.ends(wire.a)) < 3:
        return None
    port = fabric.tables[wire.a]["PORT"][wire.a_port]
    port["speed"] = str(int(port["speed"]) // 2)
    return "speed-differs", wire.a, "PORT", wire.a_port


def _length(fabric: Fabric) -> Answer:
    wire = fabric.an_end()
    fabric.tables[wire.a]["CABLE_LENGTH"]["AZURE"][wire.a_port] = "1m"
    return "cable-differs", wire.a, "CABLE_LENGTH", f"AZURE|{wire.a_port}"


def _mtu_on_the_way(fabric: Fabric) -> Answer:
    wire = fabric.an_end()
    for end in (wire, wire.turned()):
        fabric.tables[end.a]["PORT"][end.a_port]["mtu"] = "1500"
    first = min((wire.a, wire.a_port), (wire.b, wire.b_port))
    return "mtu-path", first[0], "PORT", first[1]


def _without_length(fabric: Fabric) -> Answer:
    switch, port = fabric.a_port()
    del fabric.tables[switch]["CABLE_LENGTH"]["AZURE"][port]
    return "cable-untold", switch, "CABLE_LENGTH", f"AZURE|{port}"


def _silent(fabric: Fabric) -> Answer:
    wire = fabric.an_end()
    del fabric.tables[wire.a]["DEVICE_NEIGHBOR"][wire.a_port]
    return "neighbour-missing", wire.a, "DEVICE_NEIGHBOR", wire.a_port


def _crossed(fabric: Fabric) -> Answer | None:
    """Two neighbours of a switch are named at one another's port."""
    switch = fabric.some("spine")
    wires = [wire for wire in fabric.ends(switch) if wire.b in fabric.tiers]
    if len({wire.b for wire in wires}) < 2:
        return None
    neighbours = fabric.tables[switch]["DEVICE_NEIGHBOR"]
    one, two = wires[0], next(wire for wire in wires if wire.b != wires[0].b)
    neighbours[one.a_port], neighbours[two.a_port] = neighbours[two.a_port], neighbours[one.a_port]
    return "neighbour-contradicts", switch, "DEVICE_NEIGHBOR", one.a_port


def _no_bgp(fabric: Fabric) -> Answer | None:
    wire = fabric.an_end()
    sessions = fabric.tables[wire.a]["BGP_NEIGHBOR"]
    if len({entry["name"] for entry in sessions.values()}) < 2:
        return None
    for key in [key for key, entry in sessions.items() if entry["name"] == wire.b]:
        del sessions[key]
    return "bgp-missing", wire.a, "BGP_NEIGHBOR", wire.b


def _same_as(fabric: Fabric) -> Answer | None:
    leaves = sorted(name for name, tier in fabric.tiers.items() if tier == "leaf")
    one, two = sorted(fabric.rng.sample(leaves, 2))
    _rename(fabric, {two: fabric.asns[one]})
    return "unreachable", one, "DEVICE_NEIGHBOR", ""


def _rename(fabric: Fabric, asns: dict[str, int]) -> None:
    for tables in fabric.tables.values():
        about = tables["DEVICE_METADATA"]["localhost"]
        about["bgp_asn"] = str(asns.get(about["hostname"], about["bgp_asn"]))
        for entry in tables["BGP_NEIGHBOR"].values():
            entry["asn"] = str(asns.get(entry["name"], entry["asn"]))


def _own_as(fabric: Fabric) -> Answer | None:
    """Of two spines: a leaf that lost one and a leaf that lost the other meet at a third leaf."""
    spines = [name for name, tier in fabric.tiers.items() if tier == "spine"]
    is_flat = "core" not in fabric.tiers.values()
    times = len(fabric.wires) // (len(spines) * (len(fabric.tiers) - len(spines)))
    leaves = len(fabric.tiers) - len(spines)
    if not is_flat or len(spines) != 2 or times != 1 or leaves < 4:
        return None
    _rename(fabric, {name: 64_800 + at for at, name in enumerate(spines)})
    return "deadlock-failure", "", "DEVICE_NEIGHBOR", ""


def _ring(fabric: Fabric) -> Answer | None:
    """Leaves are cabled to one another, round: of four and more the shortest ways lead round."""
    leaves = [name for name, tier in fabric.tiers.items() if tier == "leaf"]
    if "core" in fabric.tiers.values() or len(leaves) < 5:
        return None
    _add_wires(fabric, list(zip(leaves, (*leaves[1:], leaves[0]), strict=True)))
    return "deadlock", "", "DEVICE_NEIGHBOR", ""


def _add_wires(fabric: Fabric, pairs: list[tuple[str, str]]) -> None:
    """Cables more, with all that ports have."""
    like = fabric.wires[0]
    for a, b in pairs:
        wire = Wire(a, _free(fabric, a), b, _free(fabric, b), like.gbps, like.metres)
        fabric.wires.append(wire)
        for end in (wire, wire.turned()):
            tables = fabric.tables[end.a]
            model = next(w.a_port for w in fabric.ends(end.a) if w.gbps == like.gbps
                         and w.b in fabric.tiers and w.a_port in tables["PORT"])  # fmt: skip
            _port_like(tables, model, end)
            tables["BGP_NEIGHBOR"][f"10.9.{end.a_port[8:]}.1"] = {
                "name": end.b,
                "asn": str(fabric.asns[end.b]),
            }


def _free(fabric: Fabric, switch: str) -> str:
    return f"Ethernet{8 * sum(1 for _ in fabric.ends(switch))}"


def _port_like(tables: Tables, model: str, end: Wire) -> None:
    for table in ("PORT", "PORT_QOS_MAP", "PFC_WD"):
        tables[table][end.a_port] = dict(tables[table][model])
    tables["PORT"][end.a_port]["alias"] = f"Extra{end.a_port[8:]}"
    tables["CABLE_LENGTH"]["AZURE"][end.a_port] = tables["CABLE_LENGTH"]["AZURE"][model]
    tables["DEVICE_NEIGHBOR"][end.a_port] = {"name": end.b, "port": end.b_port}
    tables["DEVICE_NEIGHBOR_METADATA"][end.b] = {"type": "ToRRouter"}
    for table in ("QUEUE", "BUFFER_QUEUE", "BUFFER_PG"):
        for key, entry in list(tables[table].items()):
            port, _, number = key.rpartition("|")
            if port == model:
                tables[table][f"{end.a_port}|{number}"] = dict(entry)


def _cut(fabric: Fabric, wires: list[Wire]) -> None:
    """Cables that are not there: neither end names the other."""
    for wire in wires:
        fabric.wires.remove(wire)
        for end in (wire, wire.turned()):
            del fabric.tables[end.a]["DEVICE_NEIGHBOR"][end.a_port]


def _up(fabric: Fabric, leaf: str) -> list[Wire]:
    return [wire for wire in fabric.wires if wire.a == leaf]


def _last_cable(fabric: Fabric) -> Answer | None:
    """All cables of all leaves go to one spine, or to one of their pod's, by one cable each."""
    for leaf in [name for name, tier in fabric.tiers.items() if tier == "leaf"]:
        hosts = sum(wire.gbps for wire in fabric.stubs if wire.b == leaf)
        if hosts > 3 * fabric.wires[0].gbps:
            return None
        _cut(fabric, _up(fabric, leaf)[1:])
    return "single-cable", "", "DEVICE_NEIGHBOR", ""


def _fewer(fabric: Fabric) -> Answer | None:
    leaf = fabric.some("leaf")
    wires = _up(fabric, leaf)
    hosts = sum(wire.gbps for wire in fabric.stubs if wire.b == leaf)
    leaves = sum(tier == "leaf" for tier in fabric.tiers.values())
    if len(wires) < 3 or leaves < 3 or hosts > 3 * wires[0].gbps * (len(wires) - 1):
        return None
    _cut(fabric, wires[-1:])
    return "uplinks-fewer", leaf, "DEVICE_NEIGHBOR", ""


def _slow_uplink(fabric: Fabric) -> Answer | None:
    leaf = fabric.some("leaf")
    wires = _up(fabric, leaf)
    hosts = sum(wire.gbps for wire in fabric.stubs if wire.b == leaf)
    if hosts > 3 * wires[0].gbps * (len(wires) - 1) or wires[0].gbps < 100:
        return None
    for end in (wires[0], wires[0].turned()):
        fabric.tables[end.a]["PORT"][end.a_port]["speed"] = str(500 * end.gbps)
    return "uplinks-unequal", leaf, "PORT", wires[0].a_port


def _crowded(fabric: Fabric) -> Answer | None:
    """A leaf's hosts are four times as quick as what they had."""
    leaf = fabric.some("leaf")
    down = sum(wire.gbps for wire in fabric.stubs if wire.b == leaf)
    up = sum(wire.gbps for wire in _up(fabric, leaf))
    slow = next((s for s in (100, 50, 25, 10) if down > 3.2 * s * len(_up(fabric, leaf))), None)
    if slow is None or 1000 * slow * len(_up(fabric, leaf)) >= 1000 * up:
        return None
    for wire in _up(fabric, leaf):
        for end in (wire, wire.turned()):
            fabric.tables[end.a]["PORT"][end.a_port]["speed"] = str(1000 * slow)
    return "oversubscribed", leaf, "DEVICE_NEIGHBOR", ""


KINDS: dict[str, Inject] = {
    "short headroom": _short, "longer cable": _stretched, "no group": _no_group,
    "a template": _template, "small pool": _pool, "pfc at one end": _pfc,
    "pfc off at a host": _host_pfc, "bare host port": _bare, "pfc nowhere": _nowhere,
    "no xon": _xon, "dscp": _dscp, "forgotten dscp": _forgotten_dscp, "cnp": _cnp,
    "class in another group": _elsewhere("pg-map", "TC_TO_PRIORITY_GROUP_MAP"),
    "class in another queue": _elsewhere("queue-map", "TC_TO_QUEUE_MAP"),
    "pause of another queue": _elsewhere("queue-map", "MAP_PFC_PRIORITY_TO_QUEUE"),
    "shared group": _shared("pg-shared", "TC_TO_PRIORITY_GROUP_MAP"),
    "shared queue": _shared("queue-shared", "TC_TO_QUEUE_MAP"),
    "untrusted": _untrusted, "unmarked": _unmarked,
    "strict": _at_queue("scheduler-strict", lambda entry: entry.update(scheduler="first")),
    "light": _light, "limit": _limit, "drops": _wred("wred-drop", _no_ecn),
    "late": _wred("ecn-late", _late), "flat": _wred("ecn-flat", _flat),
    "trim lossless": _trim("out-lossless", "6"), "trim queue": _trim("out-lossy", "kept"),
    "trim untold": _trim("out-lossy", None), "alpha": _alpha, "dangling": _dangling,
    "eager": _watched(detection_time="20"),
    "patient": _watched(detection_time="900", restoration_time="900"),
    "alert": _watched(action="alert"), "unwatched": _unwatched, "slow poll": _slow_poll,
    "hash": _hash, "mtu": _port_differs("mtu", "9000", "1500"), "half speed": _half_speed,
    "length": _length, "untold cable": _without_length, "partial map": _partial,
    "fec": _port_differs("fec", "none", "fc"),
    "down": _port_differs("admin_status", "down"), "mtu on the way": _mtu_on_the_way,
    "silent neighbour": _silent, "crossed": _crossed, "no bgp": _no_bgp, "same as": _same_as,
    "own as": _own_as, "ring": _ring, "last cable": _last_cable, "fewer": _fewer,
    "slow uplink": _slow_uplink, "crowded": _crowded,
}  # fmt: skip
# By kind what may be told beside it, as it follows.
ALSO: dict[str, set[str]] = {
    "down": {"single-cable", "oversubscribed"},  # of two ways one is left
    "crossed": {"neighbour-contradicts"},  # nobody can say which of the four ends is wrong
}

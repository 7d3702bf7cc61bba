"""What is looked for in a fabric's configurations; docs/production.md has the table.

A rule finds what it says and nothing that follows from another's finding: a port that does not
pause a priority is not also reported for having no watchdog for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import ceil
from typing import Any

from lab.configs import rules_classes, rules_hosts, rules_routes, rules_times
from lab.configs.basis import (
    ALPHA_RANGE,
    Findings,
    Options,
    commonest,
    facts_of,
    listed,
    need,
    xoff_at,
)
from lab.configs.config_db import Port, Profile, Switch
from lab.configs.fabric import Fabric, Place
from lab.configs.findings import Finding, Level, Op, entry, replace
from lab.configs.rules_classes import profile_for

_USUAL_WATCH = {"action": "drop", "detection_time": 200, "restoration_time": 200}
_USUAL_WRED = "CLOSLAB_ECN"


Rule = Callable[[Findings], Iterator[Finding]]


def check(fabric: Fabric, options: Options) -> list[Finding]:
    """Everything that is found, by place."""
    paused = Counter(
        port.pfc
        for switch in fabric.switches.values()
        for port in fabric.in_use(switch)
        if port.pfc
    )
    lossless = commonest(paused) or frozenset()
    odd = set()
    for cable in fabric.cables:
        a, b = fabric.port(cable.a), fabric.port(cable.b)
        if a.is_up and b.is_up and a.pfc != b.pfc:
            odd |= {cable.a, cable.b}
    found = Findings(fabric, options, lossless, frozenset(odd))
    made: dict[tuple[str, str], Finding] = {}
    for rule in RULES.values():
        for finding in rule(found):
            made.setdefault((finding.rule, finding.place), finding)
    return sorted(made.values(), key=lambda f: (f.level is Level.ADVICE, f.switch, f.rule, f.key))


# --- pauses ---------------------------------------------------------------------------------------


def _pfc_one_end(found: Findings) -> Iterator[Finding]:
    for cable, a, b in found.cables():
        if a.pfc == b.pfc:
            continue
        ends = ((cable.a, a, cable.b, b), (cable.b, b, cable.a, a))
        odd = [end for end in ends if end[1].pfc != found.lossless] or ends
        for here, port, there, peer in odd:
            wanted = peer.pfc if peer.pfc == found.lossless else found.lossless
            yield Finding(
                "pfc-one-end", here.switch, "PORT_QOS_MAP", here.port,
                f"pfc_enable is {listed(port.pfc)}, and {listed(peer.pfc)} at the other end, "
                f"{there}",
                f"{here} neither pauses its neighbour for "
                f"{listed(port.pfc ^ peer.pfc)} nor obeys it: packets of that priority are lost",
                f"Set pfc_enable {listed(wanted)} at both ends.",
                patch={here.switch: (replace("PORT_QOS_MAP", here.port, "pfc_enable",
                                             listed(wanted)),)},
            )  # fmt: skip


def _pfc_off(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        if Place(switch.name, port.name) in found.disagreeing:
            continue
        idle = [
            priority
            for priority in sorted(found.lossless - port.pfc)
            if switch.is_lossless(port, switch.group_of(port, priority))
        ]
        if idle:
            wanted = listed(port.pfc | set(idle))
            yield Finding(
                "pfc-off", switch.name, "PORT_QOS_MAP", port.name,
                f"priority group {listed(idle)} has headroom, and pfc_enable is "
                f"{listed(port.pfc)}",
                "nobody is paused: the headroom fills once, and then packets are lost",
                f"Set pfc_enable {wanted}.",
                patch={switch.name: (
                    replace("PORT_QOS_MAP", port.name, "pfc_enable", wanted),
                    replace("PORT_QOS_MAP", port.name, "pfcwd_sw_enable",
                            listed(port.watched | port.pfc | set(idle))),
                )},
            )  # fmt: skip


def _is_mapped(switch: Switch, port: Port, priority: int) -> bool:
    """Whether a priority's packets are counted to the group that its pauses protect."""
    groups = switch.map_of(port, "tc_to_pg_map")
    return groups is None or groups.get(priority) == switch.group_of(port, priority)


def _pg_missing(found: Findings) -> Iterator[Finding]:
    bare = _without_headroom(found)
    for name in sorted(bare):
        yield Finding(
            "pg-not-told", name, "BUFFER_PG", "",
            "priorities are paused, and no priority group of any port has headroom",
            "nobody can say whether it suffices: in running switches buffermgrd makes the groups, "
            "of pg_profile_lookup.ini or by its own formula",
            "Save the running configuration (config save), or write the groups down.",
            level=Level.ADVICE,
        )  # fmt: skip
    for switch, port in found.ports():
        if switch.name in bare:
            continue
        for priority in found.agreed(switch, port):
            group = switch.group_of(port, priority)
            if not _is_mapped(switch, port, priority) or switch.is_lossless(port, group):
                continue
            profile = profile_for(found, switch, port)
            patch: dict[str, tuple[Op, ...]] = {}
            if profile is not None:
                fields = {"profile": profile}
                patch = {switch.name: (entry("BUFFER_PG", f"{port.name}|{group}", fields),)}
            group_has = port.groups.get(group)
            yield Finding(
                "pg-missing", switch.name, "BUFFER_PG", f"{port.name}|{group}",
                f"priority {priority} is paused, and priority group {group} has "
                + (f"profile {group_has}, which has no xoff" if group_has else "no profile"),
                "what arrives between a pause and its being obeyed finds no room, and is lost",
                "Give the group a lossless profile"
                + (f", {profile}." if profile else ", with an xoff for the port's cable."),
                patch=patch, facts=facts_of(found, switch, port),
            )  # fmt: skip


def _without_headroom(found: Findings) -> set[str]:
    """Switches that pause, and configure no port's group with headroom."""
    paused: dict[str, bool] = {}
    for switch, port in found.ports():
        has_any = any(switch.is_lossless(port, group) for group in port.groups)
        if port.pfc:
            paused[switch.name] = paused.get(switch.name, False) or has_any
    return {name for name, has_any in paused.items() if not has_any}


def _headroom(found: Findings) -> Iterator[Finding]:
    short: dict[tuple[str, str], list[tuple[int, Port, Profile]]] = {}
    for switch, port in found.ports():
        for priority in found.agreed(switch, port):
            headroom = switch.headroom(port, switch.group_of(port, priority))
            wanted = need(switch, port, found.options)
            if headroom is None or wanted is None or (headroom[1].xoff or 0) >= wanted.size:
                continue
            short.setdefault((switch.name, headroom[0]), []).append(
                (wanted.size, port, headroom[1])
            )
    for (name, key), all_short in short.items():
        size, port, profile = max(all_short, key=lambda one: (one[0], one[1].name))
        ports = sorted({each.name for _, each, _ in all_short})
        wanted_size = -(-size // 1024) * 1024
        grown = _pool_grown(found.fabric.switches[name], profile.pool, wanted_size)
        yield Finding(
            "headroom-small", name, "BUFFER_PROFILE", key,
            f"xoff is {profile.xoff:,} bytes, and {port.name} needs {size:,}: "
            f"{port.speed_mbps / 1000:g} Gb/s, {port.cable_m:g} m"
            + (f"; so do {len(ports) - 1} more of its ports" if len(ports) > 1 else ""),
            "what arrives between a pause and its being obeyed finds no room, and is lost",
            f"Set xoff to {wanted_size:,} or more.",
            patch={name: (replace("BUFFER_PROFILE", key, "xoff", wanted_size), *grown)},
            facts={**facts_of(found, found.fabric.switches[name], port),
                   "configured": profile.xoff, "ports": ports},
        )  # fmt: skip


def _pool_grown(switch: Switch, key: str, xoff: int) -> tuple[Op, ...]:
    """What makes room in a pool for a group's headroom, if it has less, from what is shared."""
    pool = switch.pools.get(key)
    if pool is None or not pool.xoff or not pool.size or pool.xoff >= xoff:
        return ()
    left = pool.size - (xoff - pool.xoff)
    if left <= 0:
        return ()
    return (replace("BUFFER_POOL", key, "xoff", xoff), replace("BUFFER_POOL", key, "size", left))


def _facts_of(found: Findings, switch: Switch, xoff: int) -> dict[str, Any]:
    """Of a port that has so much headroom."""
    for port in found.fabric.in_use(switch):
        for group in port.groups:
            headroom = switch.headroom(port, group)
            if headroom is not None and headroom[1].xoff == xoff:
                return facts_of(found, switch, port)
    return {}


def _pool(found: Findings) -> Iterator[Finding]:
    for switch in found.fabric.switches.values():
        groups: dict[str, list[Profile]] = {}
        for port in found.fabric.in_use(switch):
            for group in {switch.group_of(port, p) for p in found.agreed(switch, port)}:
                headroom = switch.headroom(port, group)
                if headroom is not None:
                    groups.setdefault(headroom[1].pool, []).append(headroom[1])
        for key, profiles in groups.items():
            pool = switch.pools.get(key)
            if pool is None or pool.size is None:
                continue
            have: int = pool.xoff or pool.size
            largest = max(profile.xoff or 0 for profile in profiles)
            every = sum(profile.xoff or 0 for profile in profiles)
            if pool.xoff:
                ratio = switch.over_subscribe_ratio
                least = max(largest, ceil(every / ratio) if ratio else 0)
                why = f"{len(profiles)} groups' headroom comes to {every:,}"
                if ratio and least > largest:
                    why += f", over_subscribe_ratio is {ratio}"
            else:
                least = sum(
                    p.size if p.size >= (p.xoff or 0) else p.size + (p.xoff or 0) for p in profiles
                )
                why = f"{len(profiles)} groups have that to themselves"
            if have >= least:
                continue
            patch: dict[str, tuple[Op, ...]] = {}
            left = pool.size - (least - have)
            if pool.xoff and left > 0:
                patch = {switch.name: (replace("BUFFER_POOL", key, "xoff", least),
                                       replace("BUFFER_POOL", key, "size", left))}  # fmt: skip
            name = "xoff" if pool.xoff else "size"
            yield Finding(
                "pool-oversubscribed", switch.name, "BUFFER_POOL", key,
                f"{name} is {have:,} bytes, and {least:,} are needed: {why}",
                "ports that are paused at once have headroom that is not there, and lose packets",
                f"Give the pool {name} {least:,}"
                + (", from its size." if patch else ", or fewer lossless priorities."),
                patch=patch,
                facts={**_facts_of(found, switch, largest), "have": have, "largest": largest,
                       "ports": len(profiles)},
            )  # fmt: skip


# --- classes --------------------------------------------------------------------------------------


def _dscp(found: Findings) -> Iterator[Finding]:
    seen: dict[int, Counter[int]] = {}
    for switch, port in found.ports():
        for dscp, leads_to in (switch.map_of(port, "dscp_to_tc_map") or {}).items():
            seen.setdefault(dscp, Counter())[leads_to] += 1
    common = {dscp: commonest(tcs) for dscp, tcs in seen.items()}
    for switch, port in found.ports():
        map_ = switch.map_of(port, "dscp_to_tc_map")
        if map_ is None:
            continue
        for dscp, usual in common.items():
            tc: int | None = map_.get(dscp)
            if tc == usual or not {tc, usual} & found.lossless:
                continue
            if tc is None and switch.kind != "sonic":
                continue  # by a map that the switch has of its own
            name = port.maps["dscp_to_tc_map"]
            is_lost = usual in found.lossless
            yield Finding(
                "dscp-map", switch.name, "DSCP_TO_TC_MAP", f"{name}|{dscp}",
                f"DSCP {dscp} leads to class {'none' if tc is None else tc}, and to {usual} at "
                "most ports of the fabric",
                "what is lossless elsewhere may be lost here" if is_lost else
                "packets that are not lossless elsewhere fill a lossless class here, and pause it",
                f"Map DSCP {dscp} to {usual}.",
                patch={switch.name: (replace("DSCP_TO_TC_MAP", name, str(dscp), usual),)},
                facts={"lost": is_lost},
            )  # fmt: skip


def _maps(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        for priority in found.agreed(switch, port):
            for kind, table, back, wanted, what in (
                ("tc_to_pg_map", "TC_TO_PRIORITY_GROUP_MAP", "pfc_to_pg_map",
                 switch.group_of(port, priority), "priority group"),
                ("tc_to_queue_map", "TC_TO_QUEUE_MAP", "pfc_to_queue_map",
                 switch.queue_of(port, priority), "queue"),
            ):  # fmt: skip
                map_ = switch.map_of(port, kind)
                if map_ is None or map_.get(priority) == wanted:
                    continue
                is_back = wanted != priority and map_.get(priority) == priority
                name, at = port.maps[kind], table
                if is_back:
                    name = port.maps[back]
                    at = {"pfc_to_pg_map": "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"}.get(
                        back, "MAP_PFC_PRIORITY_TO_QUEUE"
                    )
                is_queue = what == "queue"
                yield Finding(
                    "queue-map" if is_queue else "pg-map", switch.name, at, f"{name}|{priority}",
                    f"class {priority} has {what} {map_.get(priority, 'none')}, and a pause of "
                    f"priority {priority} is about {what} {wanted}",
                    "a pause holds another queue than the one that was to stop" if is_queue else
                    "the class is not counted to the group that has headroom: its packets are lost",
                    f"Map {priority} to {map_.get(priority) if is_back else wanted}.",
                    patch={switch.name: (replace(at, name, str(priority),
                                                 priority if is_back else wanted),)},
                )  # fmt: skip


# --- marks ----------------------------------------------------------------------------------------


def _wred(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        for priority in found.agreed(switch, port):
            queue = switch.queue_of(port, priority)
            if (switch.map_of(port, "tc_to_queue_map") or {}).get(priority, queue) != queue:
                continue  # which another finding reports, and has to be mended before
            name = port.wred.get(queue)
            wred = switch.wred.get(name or "")
            key = f"{port.name}|{queue}"
            if name is None or wred is None or not (wred.marks or wred.drops):
                other = next((n for n, w in sorted(switch.wred.items()) if w.marks), None)
                ops = (replace("QUEUE", key, "wred_profile", other or _USUAL_WRED),)
                yield Finding(
                    "ecn-missing", switch.name, "QUEUE", key,
                    f"lossless queue {queue} has "
                    + (f"wred_profile {name}, which marks nothing" if name else "no wred_profile"),
                    "no sender hears of congestion until all are paused",
                    f"Give it a profile that marks{f', {other}' if other else ''}.",
                    patch={switch.name: ops} if other else {},
                )  # fmt: skip
            elif not wred.marks:
                yield Finding(
                    "wred-drop", switch.name, "WRED_PROFILE", name,
                    f"lossless queues have it ({port.name}, queue {queue}, is one), and it drops "
                    "instead of marking: ecn is ecn_none",
                    "packets of a lossless class are dropped while there is room for them",
                    "Set ecn to ecn_all.",
                    patch={switch.name: (replace("WRED_PROFILE", name, "ecn", "ecn_all"),)},
                    facts={"kmin": wred.kmin, "kmax": wred.kmax, "percent": wred.percent},
                )  # fmt: skip


def _ecn_late(found: Findings) -> Iterator[Finding]:
    for switch in found.fabric.switches.values():
        for priority in sorted(found.lossless):
            ports = [
                port
                for port in found.fabric.in_use(switch)
                if priority in found.agreed(switch, port)
            ]
            xoffs = [x for port in ports if (x := xoff_at(switch, port, priority)) is not None]
            if not xoffs:
                continue
            xoff = max(xoffs)
            for port in ports:
                name = port.wred.get(switch.queue_of(port, priority), "")
                wred = switch.wred.get(name)
                if wred is None or not wred.marks or wred.kmin is None or wred.kmin < xoff:
                    continue
                low = xoff // 4
                high = max(low + 1, xoff // 2)
                yield Finding(
                    "ecn-late", switch.name, "WRED_PROFILE", name,
                    f"marks begin at {wred.kmin:,} bytes (queue {priority} of {port.name}), and a "
                    f"sender is paused at {xoff:,}",
                    "a single sender is paused before any packet of it is marked: congestion "
                    "control hears nothing",
                    f"Set green_min_threshold below {xoff:,}, such as {low:,}, and "
                    f"green_max_threshold {high:,}.",
                    patch={switch.name: tuple(
                        replace("WRED_PROFILE", name, f"{prefix}{colour}_{end}_threshold", value)
                        for prefix, colours in (("", ("green", "yellow", "red")),
                                                ("ecn_", ("green",)))
                        for colour in colours
                        for end, value in (("min", low), ("max", high))
                        if not prefix or "ecn_green_min_threshold" in
                        switch.tables["WRED_PROFILE"][name]
                    )},
                    facts={"kmin": wred.kmin, "kmax": wred.kmax, "xoff": xoff, "low": low,
                           "high": high},
                )  # fmt: skip


# --- the watchdog ---------------------------------------------------------------------------------


def _watchdog(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        paused = found.agreed(switch, port)
        bare = [priority for priority in paused if priority not in port.watched]
        if bare:
            yield Finding(
                "watchdog-missing", switch.name, "PORT_QOS_MAP", port.name,
                f"priority {listed(bare)} is paused, and pfcwd_sw_enable is "
                f"{listed(port.watched)}",
                "a neighbour that never stops pausing holds the port, and who waits for it, for "
                "good",
                f"Set pfcwd_sw_enable {listed(port.watched | set(paused))}.",
                patch={switch.name: (replace("PORT_QOS_MAP", port.name, "pfcwd_sw_enable",
                                             listed(port.watched | set(paused))),)},
            )  # fmt: skip
        elif paused and port.name not in switch.watches:
            yield Finding(
                "watchdog-missing", switch.name, "PFC_WD", port.name,
                "the port has no entry",
                "a neighbour that never stops pausing holds the port, and who waits for it, for "
                "good",
                "Give it a detection_time and an action.",
                patch={switch.name: (entry("PFC_WD", port.name, _USUAL_WATCH),)},
            )  # fmt: skip


def _watchdog_slow(found: Findings) -> Iterator[Finding]:
    for switch in found.fabric.switches.values():
        times = [
            (time, name)
            for name, watch in switch.watches.items()
            for time in (watch.detection_ms, watch.restoration_ms)
            if time is not None and name in switch.ports
        ]
        if switch.poll_ms is None or not times or switch.poll_ms <= min(times)[0]:
            continue
        least, name = min(times)
        yield Finding(
            "watchdog-slow", switch.name, "PFC_WD", "GLOBAL",
            f"POLL_INTERVAL is {switch.poll_ms} ms, and {name} is to see what lasts for {least} ms",
            "a storm lasts longer than it is meant to be let, as nobody looks",
            f"Set POLL_INTERVAL to {least} or less.",
            patch={switch.name: (replace("PFC_WD", "GLOBAL", "POLL_INTERVAL", least),)},
            facts={"poll_ms": switch.poll_ms, "detection_ms": least},
        )  # fmt: skip


# --- cables ---------------------------------------------------------------------------------------


def _unequal(found: Findings) -> Iterator[Finding]:
    """What both ends of a cable have to say alike."""
    for what, table, name, consequence in (
        ("mtu", "PORT", "mtu", "frames that one end sends are too long for the other, and are lost "
         "as they arrive"),
        ("speed", "PORT", "speed", "the link does not come up"),
        ("cable", "CABLE_LENGTH", "length", "headroom is computed for a cable that is not there"),
    ):  # fmt: skip
        of: Callable[[Port], Any] = {
            "mtu": lambda port: port.mtu,
            "speed": lambda port: port.speed_mbps,
            "cable": lambda port: port.cable_m,
        }[what]
        usual = commonest(Counter(of(port) for _, *ends in found.cables() for port in ends))
        for cable, a, b in found.cables():
            if of(a) == of(b) or None in (of(a), of(b)):
                continue
            here, port, there, peer = cable.a, a, cable.b, b
            if of(a) == usual or (of(b) != usual and of(a) > of(b)):
                here, port, there, peer = there, peer, here, port
            switch = found.fabric.switches[here.switch]
            key = here.port
            if what == "cable":
                key = next(
                    f"{group}|{key}" for group, all_of in switch.tables[table].items() if key in
                    all_of
                )  # fmt: skip
            value: Any = f"{of(peer):g}m" if what == "cable" else of(peer)
            field = here.port if what == "cable" else name
            yield Finding(
                f"{what}-differs", here.switch, table, key,
                f"{name} is {of(port):g}, and {of(peer):g} at the other end, {there}",
                consequence, "Find out which is right, and set it at both ends.",
                level=Level.ADVICE,
                patch={here.switch: (replace(table, key.split("|")[0], field, value),)},
            )  # fmt: skip


def _neighbours(found: Findings) -> Iterator[Finding]:
    for cable in found.fabric.one_sided:
        here, there = cable.b, cable.a
        yield Finding(
            "neighbour-missing", here.switch, "DEVICE_NEIGHBOR", here.port,
            f"{there} says that it is cabled here, and this end says nothing",
            "what is computed from neighbours (cable lengths, roles) is wrong at this end",
            f"Name {there} here.", level=Level.ADVICE,
            patch={here.switch: (entry("DEVICE_NEIGHBOR", here.port,
                                       {"name": there.switch, "port": there.port}),)},
        )  # fmt: skip
    for here, there in found.fabric.contradicted:
        yield Finding(
            "neighbour-contradicts", here.switch, "DEVICE_NEIGHBOR", here.port,
            f"it names {there}, which names another port",
            "the cable is left out of what is checked and run",
            "Look at the cable, and name its ends at both.", level=Level.ADVICE,
        )  # fmt: skip


def _alpha(found: Findings) -> Iterator[Finding]:
    low, high = ALPHA_RANGE
    for switch in found.fabric.switches.values():
        for key, profile in switch.profiles.items():
            if profile.dynamic_th is None or low <= profile.dynamic_th <= high:
                continue
            usual = commonest(
                Counter(
                    other.dynamic_th
                    for one in found.fabric.switches.values()
                    for name, other in one.profiles.items()
                    if name == key and other.dynamic_th is not None
                    and low <= other.dynamic_th <= high
                )
            )  # fmt: skip
            yield Finding(
                "alpha-range", switch.name, "BUFFER_PROFILE", key,
                f"dynamic_th is {profile.dynamic_th}: alpha is 2^dynamic_th, {low} to {high}",
                "the chip refuses it, or takes another", f"Set it from {low} to {high}"
                + ("." if usual is None else f"; others have {usual}."),
                level=Level.ADVICE,
                patch={switch.name: (replace("BUFFER_PROFILE", key, "dynamic_th",
                                             0 if usual is None else usual),)},
            )  # fmt: skip


def _nowhere(found: Findings) -> Iterator[Finding]:
    if not found.lossless:
        yield Finding(
            "pfc-nowhere", min(found.fabric.switches), "PORT_QOS_MAP", "",
            "no port of any switch has a pfc_enable",
            "nothing is lossless here, and next to nothing is checked",
            "Name the priorities that are to be lossless, or save the running configuration.",
            level=Level.ADVICE,
        )  # fmt: skip


RULES: Mapping[str, Rule] = {
    "pfc-nowhere": _nowhere,
    "pfc-one-end": _pfc_one_end, "pfc-off": _pfc_off, "pg-missing": _pg_missing,
    "headroom-small": _headroom, "pool-oversubscribed": _pool,
    "dscp-map": _dscp, "pg-map": _maps, "ecn-missing": _wred, "ecn-late": _ecn_late,
    "watchdog-missing": _watchdog, "watchdog-slow": _watchdog_slow,
    "mtu-differs": _unequal, "neighbour-missing": _neighbours, "alpha-range": _alpha,
    **rules_classes.RULES, **rules_times.RULES, **rules_routes.RULES,
    **rules_hosts.RULES,
}  # fmt: skip

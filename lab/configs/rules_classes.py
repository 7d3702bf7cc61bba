"""What is looked for in classes, queues and their turns; docs/production.md has the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lab.configs.basis import ALPHA_RANGE, Findings, commonest, facts_of, listed, need, xoff_at
from lab.configs.config_db import MAPS_OF_PORTS, Port, Profile, Switch
from lab.configs.fabric import Place
from lab.configs.findings import Finding, Level, Op, entry, replace

_CNP_DSCP, _CNP_CLASS = 48, 6  # as adapters send congestion notifications, and where they belong
_MIN_SHARE = 0.1  # of a port, for all lossless queues together
_TURNS = "DWRR", "WRR"


def _pfc_path(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        if not port.has_qos or Place(switch.name, port.name) in found.disagreeing:
            continue
        others = {p for other in found.fabric.in_use(switch) for p in other.pfc}
        bare = sorted(
            p
            for p in (found.lossless & others) - port.pfc
            if not switch.is_lossless(port, switch.group_of(port, p))
        )
        if not bare:
            continue
        wanted = listed(port.pfc | set(bare))
        ops: list[Op] = [
            replace("PORT_QOS_MAP", port.name, name, wanted)
            for name in ("pfc_enable", "pfcwd_sw_enable")
        ]
        profile = profile_for(found, switch, port)
        if profile is not None:
            ops += [entry("BUFFER_PG", f"{port.name}|{switch.group_of(port, p)}",
                          {"profile": profile}) for p in bare]  # fmt: skip
        yield Finding(
            "pfc-path", switch.name, "PORT_QOS_MAP", port.name,
            f"pfc_enable is {listed(port.pfc)}, and other ports of {switch.name} pause "
            f"{listed(bare)}; no group of the port has headroom for it",
            "a class that is lossless on the rest of its way is lost where it comes in here",
            f"Set pfc_enable {wanted}, and give the groups a lossless profile.",
            patch={switch.name: tuple(ops)},
        )  # fmt: skip


def profile_for(found: Findings, switch: Switch, port: Port) -> str | None:
    """A lossless profile of the same switch that suffices for a port's cable."""
    wanted = need(switch, port, found.options)
    enough = [
        (profile.xoff, name)
        for name, profile in switch.profiles.items()
        if profile.xoff is not None and (wanted is None or profile.xoff >= wanted.size)
    ]
    return min(enough)[1] if enough else None


def _used_tcs(switch: Switch, port: Port) -> frozenset[int]:
    """The classes that any DSCP leads to."""
    return frozenset((switch.map_of(port, "dscp_to_tc_map") or {}).values())


def _shared(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        agreed = found.agreed(switch, port)
        for kind, what, of in (
            ("tc_to_pg_map", "priority group", switch.group_of),
            ("tc_to_queue_map", "queue", switch.queue_of),
        ):
            map_ = switch.map_of(port, kind)
            if map_ is None:
                continue
            kept = {of(port, p) for p in agreed if map_.get(p) == of(port, p)}
            for tc in sorted(_used_tcs(switch, port) - port.pfc - found.lossless):
                if map_.get(tc) not in kept:
                    continue
                is_queue = what == "queue"
                free = _free(map_, kept)
                name, table = port.maps[kind], MAPS_OF_PORTS[kind]
                yield Finding(
                    "queue-shared" if is_queue else "pg-shared", switch.name, table,
                    f"{name}|{tc}",
                    f"class {tc} is not paused, and its {what} {map_[tc]} is that of a lossless "
                    "class",
                    "pauses of the lossless class hold packets that have nothing to do with it"
                    if is_queue else
                    "nobody pauses that class: it fills the headroom, and packets of both are lost",
                    f"Map {tc} to a {what} of its own, such as {free}.",
                    patch={switch.name: (replace(table, name, str(tc), free),)},
                    facts={"lost": False},
                )  # fmt: skip


def _free(mapping: Mapping[int, int], kept: set[int]) -> int:
    usual = commonest(Counter(value for value in mapping.values() if value not in kept))
    return 0 if usual is None else int(usual)


def _untrusted(found: Findings) -> Iterator[Finding]:
    usual = commonest(
        Counter(
            port.maps["dscp_to_tc_map"]
            for switch, port in found.ports()
            if switch.map_of(port, "dscp_to_tc_map") is not None
        )
    )
    if usual is None:
        return
    for switch, port in found.ports():
        if not port.pfc or switch.map_of(port, "dscp_to_tc_map") is not None:
            continue
        has_it = usual in switch.maps["DSCP_TO_TC_MAP"]
        yield Finding(
            "dscp-untrusted", switch.name, "PORT_QOS_MAP", port.name,
            "priorities are paused, and no DSCP_TO_TC_MAP tells which packets have them",
            "all that comes in here is best effort: lossless classes lose packets",
            f"Set dscp_to_tc_map {usual}.",
            patch={switch.name: (replace("PORT_QOS_MAP", port.name, "dscp_to_tc_map", usual),)}
            if has_it else {},
        )  # fmt: skip


def _cnp(found: Findings) -> Iterator[Finding]:
    """Of the whole fabric: where switches disagree, dscp-map says so."""
    tcs: Counter[int] = Counter()
    at: dict[tuple[str, str], Switch] = {}
    for switch, port in found.ports():
        map_ = switch.map_of(port, "dscp_to_tc_map")
        if map_ is not None and _CNP_DSCP in map_:
            tcs[map_[_CNP_DSCP]] += 1
            at[switch.name, port.maps["dscp_to_tc_map"]] = switch
    usual = commonest(tcs)
    if usual is None or usual not in found.lossless:
        return
    patch: dict[str, tuple[Op, ...]] = {}
    for name, key in sorted(at):
        op = replace("DSCP_TO_TC_MAP", key, str(_CNP_DSCP), _CNP_CLASS)
        patch[name] = (*patch.get(name, ()), op)
    first, key = min(at)
    yield Finding(
        "cnp-class", first, "DSCP_TO_TC_MAP", f"{key}|{_CNP_DSCP}",
        f"DSCP {_CNP_DSCP}, adapters' congestion notifications, leads to class {usual}, which is "
        "lossless",
        "word of congestion waits behind what is congested, and is paused with it",
        f"Map it to {_CNP_CLASS}, a class that goes first, at all switches.", patch=patch,
    )  # fmt: skip


def _turns(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        agreed = found.agreed(switch, port)
        lossless = {switch.queue_of(port, p) for p in agreed}
        turns = {
            queue: switch.turns[name] for queue, name in port.turns.items() if name in switch.turns
        }
        weighted = {q: turn for q, turn in turns.items() if turn.kind in _TURNS}
        usual = commonest(Counter(port.turns[q] for q in weighted))
        for queue in sorted(lossless):
            turn = turns.get(queue)
            if turn is None or turn.kind != "STRICT" or turn.is_shaped or not weighted:
                continue
            others = sorted(set(weighted) - lossless)
            yield Finding(
                "scheduler-strict", switch.name, "QUEUE", f"{port.name}|{queue}",
                f"lossless queue {queue} goes before queues {listed(others)}: its scheduler, "
                f"{port.turns[queue]}, is STRICT and has no limit",
                "while a lossless class keeps the port busy, all others stand still",
                f"Give it turns: {usual}.",
                patch={switch.name: (replace("QUEUE", f"{port.name}|{queue}", "scheduler",
                                             usual),)},
            )  # fmt: skip
        mine = sum(turn.weight or 1 for q, turn in weighted.items() if q in lossless)
        every = sum(turn.weight or 1 for turn in weighted.values())
        if mine and mine < _MIN_SHARE * every:
            queue = min(lossless & weighted.keys())
            name = port.turns[queue]
            least = max(turn.weight or 1 for turn in weighted.values())
            yield Finding(
                "scheduler-weight", switch.name, "SCHEDULER", name,
                f"lossless queues have {mine} of {every} of a port's weight ({port.name}, queues "
                f"{listed(lossless)})",
                "under load of other classes the lossless ones get next to nothing, and pause "
                "their senders",
                f"Set weight to {least} or more.",
                patch={switch.name: (replace("SCHEDULER", name, "weight", least),)},
                facts={"share": mine / every},
            )  # fmt: skip


def _limit(switch: Switch, profile: Profile) -> int | None:
    """What a queue may hold; None: it is not configured."""
    if profile.static_th is not None:
        return profile.size + profile.static_th
    pool = switch.pools.get(profile.pool)
    low, high = ALPHA_RANGE
    if pool is None or pool.size is None or profile.dynamic_th is None:
        return None
    alpha = 2.0 ** min(max(profile.dynamic_th, low), high)
    return int(profile.size + pool.size * alpha / (1 + alpha))


def _queue_limit(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        for priority in found.agreed(switch, port):
            queue = switch.queue_of(port, priority)
            if (switch.map_of(port, "tc_to_queue_map") or {}).get(priority, queue) != queue:
                continue  # `queue-map` tells it
            name = port.queues.get(queue, "")
            profile = switch.profiles.get(name)
            headroom = switch.headroom(port, switch.group_of(port, priority))
            xoff = xoff_at(switch, port, priority)
            limit = None if profile is None else _limit(switch, profile)
            if (
                profile is None
                or headroom is None
                or xoff is None
                or limit is None
                or limit >= xoff
            ):
                continue
            room = xoff + (headroom[1].xoff or 0)
            field = "dynamic_th" if profile.static_th is None else "static_th"
            value = min(ALPHA_RANGE[1], 7) if field == "dynamic_th" else room
            yield Finding(
                "queue-limit", switch.name, "BUFFER_PROFILE", name,
                f"a lossless queue ({port.name}, {priority}) may hold {limit:,} bytes, and a "
                f"single sender is paused at {xoff:,}",
                "the queue is full before anybody is paused, and lossless packets are dropped",
                f"Set {field} to {value:,}{' or more' if field == 'static_th' else ''}: pauses are "
                "to hold senders back, not the queue.",
                patch={switch.name: (replace("BUFFER_PROFILE", name, field, value),)},
                facts={**facts_of(found, switch, port), "limit": limit},
            )  # fmt: skip


def _xon(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        for priority in found.agreed(switch, port):
            headroom = switch.headroom(port, switch.group_of(port, priority))
            if headroom is None or headroom[1].xon or headroom[1].xon_offset:
                continue
            size = 2 * 4096
            yield Finding(
                "xon-missing", switch.name, "BUFFER_PROFILE", headroom[0],
                "neither xon nor xon_offset is configured",
                "a pause ends with the first packet that leaves, and the next one begins it again",
                f"Set xon_offset to two packets, {size:,}.",
                patch={switch.name: (replace("BUFFER_PROFILE", headroom[0], "xon_offset", size),)},
            )  # fmt: skip


def _trimming(found: Findings) -> Iterator[Finding]:
    for switch in found.fabric.switches.values():
        cut = {name for name, profile in switch.profiles.items() if profile.trims}
        used: dict[str, str] = {}
        lossless: dict[int, int] = {}  # priorities by queue
        for port in found.fabric.in_use(switch):
            queues = {switch.queue_of(port, p): p for p in found.agreed(switch, port)}
            lossless |= queues
            for queue, name in port.queues.items():
                if name in cut and queue in queues:
                    used.setdefault(name, f"{port.name}, queue {queue}")
        for name, where in used.items():
            yield Finding(
                "trim-lossless", switch.name, "BUFFER_PROFILE", name,
                f"packet_discard_action is trim, and a lossless queue has the profile ({where})",
                "the queue is paused before it would cut anything: senders that wait for cut "
                "packets hear nothing",
                "Set packet_discard_action drop, or do not pause the class.", level=Level.ADVICE,
                patch={switch.name: (replace("BUFFER_PROFILE", name, "packet_discard_action",
                                             "drop"),)},
            )  # fmt: skip
        if switch.trimming is None:
            for name in sorted(cut - used.keys()):
                yield Finding(
                    "trim-untold", switch.name, "BUFFER_PROFILE", name,
                    "packet_discard_action is trim, and SWITCH_TRIMMING says nothing",
                    "neither a trimmed packet's size nor its class is configured",
                    "Set size, dscp_value and queue_index of SWITCH_TRIMMING|GLOBAL.",
                    level=Level.ADVICE,
                    patch={switch.name: (entry("SWITCH_TRIMMING", "GLOBAL", _USUAL_TRIMMING),)},
                )  # fmt: skip
            continue
        on = switch.trimming.queue
        if cut and on is not None and on in lossless:
            yield Finding(
                "trim-queue", switch.name, "SWITCH_TRIMMING", "GLOBAL",
                f"what was cut goes on in queue {on}, which is lossless",
                "headers that are to be quick wait behind pauses of data",
                f"Set queue_index {_CNP_CLASS}.", level=Level.ADVICE,
                patch={switch.name: (replace("SWITCH_TRIMMING", "GLOBAL", "queue_index",
                                             _CNP_CLASS),)},
            )  # fmt: skip


_USUAL_TRIMMING = {"size": 128, "dscp_value": 48, "queue_index": 6}  # as Configuration.md has it


def _dangling(found: Findings) -> Iterator[Finding]:
    """What names something that is not there, unless another rule has to say what follows."""
    for switch in found.fabric.switches.values():
        for table, key, of, name in switch.dangling:
            port, _, number = key.rpartition("|")
            here = switch.ports.get(port)
            if here is not None and number.isdigit() and table in ("BUFFER_PG", "QUEUE"):
                groups = {switch.group_of(here, p) for p in here.pfc}
                queues = {switch.queue_of(here, p) for p in here.pfc}
                if (table == "BUFFER_PG" and int(number) in groups) or (
                    of == "WRED_PROFILE" and int(number) in queues
                ):
                    continue
            if of == "DSCP_TO_TC_MAP" and key in switch.ports:
                continue
            yield Finding(
                "reference-missing", switch.name, table, key,
                f"it names {name} of {of}, which is not there" if name else f"it names no {of}",
                "the switch waits for it, and what is configured here does not come into force",
                f"{f'Make {name}, or name' if name else 'Name'} one that is there: "
                f"{', '.join(sorted(switch.tables.get(of, {}))[:4]) or 'there is none'}.",
                level=Level.ADVICE,
            )  # fmt: skip


def _map_partial(found: Findings) -> Iterator[Finding]:
    for switch, port in found.ports():
        for kind, table in (("pfc_to_pg_map", "PFC_PRIORITY_TO_PRIORITY_GROUP_MAP"),
                            ("pfc_to_queue_map", "MAP_PFC_PRIORITY_TO_QUEUE")):  # fmt: skip
            map_ = switch.map_of(port, kind)
            for priority in found.agreed(switch, port) if map_ is not None else ():
                if priority in (map_ or {}):
                    continue
                name = port.maps[kind]
                yield Finding(
                    "map-partial", switch.name, table, f"{name}|{priority}",
                    f"priority {priority} is paused, and the map does not say what a pause of it "
                    "is about",
                    "each chip takes what it likes; here it is taken to be what has its number",
                    f"Map {priority} to {priority}.", level=Level.ADVICE,
                    patch={switch.name: (replace(table, name, str(priority), priority),)},
                )  # fmt: skip


def _hash(found: Findings) -> Iterator[Finding]:
    for switch in found.fabric.switches.values():
        hashed = switch.hashed
        if hashed is None or "L4_SRC_PORT" in hashed or "INNER_L4_SRC_PORT" in hashed:
            continue
        fields: list[Any] = sorted(hashed | {"L4_SRC_PORT"})
        op: Op = {"op": "add", "path": "/SWITCH_HASH/GLOBAL/ecmp_hash", "value": fields}
        yield Finding(
            "hash-fields", switch.name, "SWITCH_HASH", "GLOBAL",
            f"ecmp_hash is {', '.join(sorted(hashed)) or 'empty'}, without L4_SRC_PORT, in which "
            "alone RoCEv2's queue pairs differ",
            "all that one host sends another goes one way, however many queue pairs they have",
            "Add L4_SRC_PORT.", patch={switch.name: (op,)},
        )  # fmt: skip


RULES: Mapping[str, Callable[[Findings], Iterator[Finding]]] = {
    "pfc-path": _pfc_path, "pg-shared": _shared, "dscp-untrusted": _untrusted,
    "cnp-class": _cnp, "scheduler-strict": _turns, "queue-limit": _queue_limit,
    "xon-missing": _xon, "trim-lossless": _trimming, "reference-missing": _dangling,
    "hash-fields": _hash, "map-partial": _map_partial,
}  # fmt: skip

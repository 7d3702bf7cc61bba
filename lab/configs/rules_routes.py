"""What is looked for in cables and ways; docs/production.md has the table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from lab.configs.basis import Findings, commonest, roce_mtu
from lab.configs.config_db import Port
from lab.configs.fabric import Cable, Fabric, Place
from lab.configs.failures import Failure, Net, Pair, look, pair_of
from lab.configs.findings import Finding, Level, Op, replace

_MAX_OVER = 3.0  # hosts' rate to that of the cables up


def net_of(found: Findings) -> tuple[Net, dict[Pair, list[Cable]]]:
    """Switches, and the cables between each two."""
    fabric = found.fabric
    joined: dict[Pair, list[Cable]] = {}
    for cable, _, _ in found.cables():
        if cable.a.switch != cable.b.switch:
            joined.setdefault(pair_of(cable.a.switch, cable.b.switch), []).append(cable)
    ends = sorted({place.switch for places in fabric.hosts.values() for place in places})
    ends = ends or [n for n, s in fabric.switches.items() if "tor" in s.role.lower()]
    asns = {n: s.asn for n, s in fabric.switches.items() if s.asn is not None}
    if len(asns) < len(fabric.switches) or not all(
        "BGP_NEIGHBOR" in s.tables or s.sessions for s in fabric.switches.values()
    ):
        asns = {}
    counts = {pair: len(cables) for pair, cables in joined.items()}
    return Net(counts, ends or sorted(fabric.switches), asns, list(fabric.switches)), joined


def _deadlock(found: Findings) -> Iterator[Finding]:
    if not found.lossless:
        return
    net, joined = net_of(found)
    every = net.circles()
    for circle in every:
        pairs = list(zip(circle, (*circle[1:], circle[0]), strict=True))
        cross = [pair for pair in pairs if _is_level(found.fabric, *pair)] or pairs
        a, b = min(pair_of(*pair) for pair in cross)
        here = _end(joined[a, b][0], a)
        level = sorted({pair_of(*pair) for pair in cross}) if cross is not pairs else [(a, b)]
        patch: dict[str, tuple[Op, ...]] = {}
        for end in (end for pair in level for one in joined[pair] for end in (one.a, one.b)):
            op = replace("PORT", end.port, "admin_status", "down")
            patch[end.switch] = (*patch.get(end.switch, ()), op)
        yield Finding(
            "deadlock", here.switch, "DEVICE_NEIGHBOR", here.port,
            f"buffers can wait for one another in a circle: {' > '.join((*circle, circle[0]))}",
            "once all of them are full nobody may send, and only the watchdog's losses end it",
            f"Take the cable between {a} and {b}, which joins switches of one tier"
            + (f", and {len(level) - 1} more like it" if len(level) > 1 else "")
            + ", out of the shortest ways.",
            patch=patch, facts={"circle": circle},
        )  # fmt: skip
    if not every:
        yield from _after_failures(found, net, joined)


def _is_level(fabric: Fabric, a: str, b: str) -> bool:
    """Whether two switches have the same role."""
    return fabric.switches[a].role == fabric.switches[b].role


def _end(cable: Cable, switch: str) -> Place:
    return cable.a if cable.a.switch == switch else cable.b


def _after_failures(
    found: Findings, net: Net, joined: Mapping[Pair, list[Cable]]
) -> Iterator[Finding]:
    looked = look(net)
    skipped = f"{looked.left:,} failures of cables were not looked at: they are too many"
    if looked.left and skipped not in found.fabric.left_out:
        found.fabric.left_out.append(skipped)
    for failure in looked.deadlocks:
        yield _deadlock_after(found, net, joined, failure)
    if found.fabric.outward:
        return  # there may be ways outside
    if looked.single:
        pair = min(looked.single)
        cable = joined[pair][0]
        here, there = cable.ends[0] if cable.a.switch in net.ends else cable.ends[1]
        more = f"; so do {len(looked.single) - 1} more cables" if len(looked.single) > 1 else ""
        yield Finding(
            "single-cable", here.switch, "DEVICE_NEIGHBOR", here.port,
            f"without it, to {there}, some switches with hosts have no way to one another{more}",
            "when it dies, what was to go there is lost, and jobs end", "Give them a second way.",
        )  # fmt: skip


def _deadlock_after(
    found: Findings, net: Net, joined: Mapping[Pair, list[Cable]], failure: Failure
) -> Finding:
    pairs = sorted(failure.cut)
    a, _ = pairs[0]
    here = _end(joined[pairs[0]][0], a)
    circle = failure.circle
    patch, asn = _one_as(found, net, failure)
    dead = " and ".join(f"{a} to {b}" for a, b in pairs)
    return Finding(
        "deadlock-failure", here.switch, "DEVICE_NEIGHBOR", here.port,
        f"when {dead} {'are' if len(pairs) > 1 else 'is'} dead, buffers can wait for one another "
        f"in a circle: {' > '.join((*circle, circle[0]))}",
        "ways then lead down and up again; once all buffers are full nobody may send",
        f"Give switches of that tier one AS, {asn}, so that nobody goes down and up again."
        if patch else "Forbid ways that lead down and up again, by AS or by filters.",
        patch=patch, facts={"circle": circle},
    )  # fmt: skip


def _one_as(
    found: Findings, net: Net, failure: Failure
) -> tuple[dict[str, tuple[Op, ...]], int | None]:
    """One AS for the circle's tier that has no hosts, if that helps."""
    fabric = found.fabric
    roles = {fabric.switches[name].role for name in failure.circle if name not in net.ends}
    tier = [n for n, s in fabric.switches.items() if s.role in roles and n not in net.ends]
    if len(roles) != 1 or not net.asns:
        return {}, None
    asn = min(net.asns[name] for name in tier)
    cured = Net(net.joined, net.ends, {**net.asns, **dict.fromkeys(tier, asn)}, net.names)
    if cured.circles() or look(cured).deadlocks:
        return {}, None
    patch: dict[str, tuple[Op, ...]] = {
        name: (replace("DEVICE_METADATA", "localhost", "bgp_asn", asn),) for name in tier
    }
    for name, switch in fabric.switches.items():
        ops = tuple(
            replace("BGP_NEIGHBOR", key, "asn", asn)
            for key, entry in switch.tables.get("BGP_NEIGHBOR", {}).items()
            if entry.get("name") in tier and "asn" in entry
        )
        if ops:
            patch[name] = (*patch.get(name, ()), *ops)
    return patch, asn


def _unreachable(found: Findings) -> Iterator[Finding]:
    net, _ = net_of(found)
    if found.fabric.outward or not found.fabric.hosts:
        return
    lost = {
        end: far
        for end in sorted(net.ends)
        for hops in (net.hops(end),)
        if (far := [name for name in net.ends if name != end and name not in hops])
    }
    if not lost:
        return
    end = min(lost)
    far = lost[end]
    same = [name for name in far if net.asns and net.asns[name] == net.asns[end]]
    yield Finding(
        "unreachable", end, "DEVICE_NEIGHBOR", "",
        f"no way leads here from {', '.join(far[:3])}"
        + (f" and {len(far) - 3} more" if len(far) > 3 else "")
        + (f"; {', '.join(same[:3])} has its AS, {net.asns[end]}" if same else ""),
        "hosts there and here do not hear one another",
        "Give each switch with hosts an AS of its own." if same else
        "Name the cables that are missing, or bring the configurations in between.",
    )  # fmt: skip


def _rates(found: Findings) -> dict[str, tuple[int, int]]:
    """By switch with hosts: what its hosts can send, and what its cables to switches carry."""
    rates = {}
    for name, switch in found.fabric.switches.items():
        down = sum(
            switch.ports[place.port].speed_mbps
            for places in found.fabric.hosts.values()
            for place in places
            if place.switch == name and switch.ports[place.port].is_up
        )
        up = sum(
            min(a.speed_mbps, b.speed_mbps)
            for cable, a, b in found.cables()
            if name in (cable.a.switch, cable.b.switch)
        )
        if down:
            rates[name] = down, up
    return rates


def _oversubscribed(found: Findings) -> Iterator[Finding]:
    for name, (down, up) in _rates(found).items():
        if not up or down <= _MAX_OVER * up or name in found.fabric.outward:
            continue
        yield Finding(
            "oversubscribed", name, "DEVICE_NEIGHBOR", "",
            f"its hosts can send {down / 1000:g} Gb/s, and its cables to other switches carry "
            f"{up / 1000:g}: {down / up:.3g} to 1",
            "what goes to other switches waits here, and pauses hosts that send elsewhere",
            "Add cables, or keep what talks much below one switch.",
            facts={"ratio": down / up},
        )  # fmt: skip


def _uplinks(found: Findings) -> dict[tuple[str, str], list[tuple[Port, Place]]]:
    """By switch with hosts and its neighbours' role: its ports, and who is at the other end."""
    ends = {place.switch for places in found.fabric.hosts.values() for place in places}
    made: dict[tuple[str, str], list[tuple[Port, Place]]] = {}
    for cable in found.fabric.cables:
        for here, there in cable.ends:
            if here.switch in ends:
                role = found.fabric.switches[there.switch].role
                key = here.switch, role
                made.setdefault(key, []).append((found.fabric.port(here), there))
    return made


def _uplinks_unequal(found: Findings) -> Iterator[Finding]:
    for (name, _), ports in _uplinks(found).items():
        up = [port for port, there in ports if port.is_up and found.fabric.port(there).is_up
              and port.speed_mbps == found.fabric.port(there).speed_mbps]  # fmt: skip
        speeds = Counter(port.speed_mbps for port in up)
        usual = max(speeds, key=lambda speed: (speeds[speed], speed), default=0)
        for port in up:
            if port.speed_mbps >= usual:
                continue
            yield Finding(
                "uplinks-unequal", name, "PORT", port.name,
                f"it has {port.speed_mbps / 1000:g} Gb/s, and other ways to the same tier "
                f"{usual / 1000:g}",
                "ways are taken as often as one another: the slow one fills, and pauses all who "
                "take any",
                "Give all ways one rate, or take the slow one out.",
                facts={"share": port.speed_mbps / usual},
            )  # fmt: skip


def _uplinks_fewer(found: Findings) -> Iterator[Finding]:
    every = _uplinks(found)
    for (name, role), ports in every.items():
        switch = found.fabric.switches[name]
        alike = [
            len(others)
            for (other, at), others in every.items()
            if at == role and found.fabric.switches[other].role == switch.role
        ]
        usual = commonest(Counter(alike))
        if usual is None or len(ports) >= usual or name in found.fabric.outward:
            continue
        yield Finding(
            "uplinks-fewer", name, "DEVICE_NEIGHBOR", "",
            f"{len(ports)} cables lead to {role or 'other switches'}, and {usual} from most "
            f"switches like it",
            "its hosts have less than others, and what others send here crowds on fewer cables",
            "Cable the ports that are missing, or name them.",
            facts={"share": len(ports) / usual, "have": len(ports), "usual": usual},
        )  # fmt: skip


def _fec(found: Findings) -> Iterator[Finding]:
    usual = commonest(Counter(port.fec for _, *ends in found.cables() for port in ends))
    for cable in found.fabric.cables:
        a, b = found.fabric.port(cable.a), found.fabric.port(cable.b)
        if None in (a.fec, b.fec) or a.fec == b.fec or "auto" in (a.fec, b.fec):
            continue
        ends = cable.b, b, cable.a, a
        here, port, there, peer = (*ends[2:], *ends[:2]) if b.fec == usual else ends
        yield Finding(
            "fec-differs", here.switch, "PORT", here.port,
            f"fec is {port.fec}, and {peer.fec} at the other end, {there}",
            "the link does not come up", "Set the same at both ends.", level=Level.ADVICE,
            patch={here.switch: (replace("PORT", here.port, "fec", peer.fec),)},
        )  # fmt: skip


def _down(found: Findings) -> Iterator[Finding]:
    for cable in found.fabric.cables:
        for here, there in cable.ends:
            if not found.fabric.port(here).is_up and found.fabric.port(there).is_up:
                yield Finding(
                    "port-down", here.switch, "PORT", here.port,
                    f"admin_status is down, and the other end, {there}, is up",
                    "a cable is there that nobody uses, and others carry what it would",
                    "Set admin_status up, or take down both ends.", level=Level.ADVICE,
                    patch={here.switch: (replace("PORT", here.port, "admin_status", "up"),)},
                )  # fmt: skip


def _bgp(found: Findings) -> Iterator[Finding]:
    seen: set[Pair] = set()
    for cable, _, _ in found.cables():
        for here, there in cable.ends:
            switch = found.fabric.switches[here.switch]
            if switch.bgp is None or there.switch in switch.bgp:
                continue
            pair = here.switch, there.switch
            if pair not in seen:
                seen.add(pair)
                yield Finding(
                    "bgp-missing", here.switch, "BGP_NEIGHBOR", there.switch,
                    f"a cable leads to {there.switch}, and no BGP_NEIGHBOR has that name",
                    "no route takes the cable, and others carry what it would",
                    "Speak BGP with it.", level=Level.ADVICE,
                )  # fmt: skip


def _mtu_path(found: Findings) -> Iterator[Finding]:
    """Both ends of a cable agree, and hosts may send what does not fit."""
    hosts = [
        roce_mtu(switch, switch.ports[place.port])
        for places in found.fabric.hosts.values()
        for place in places
        for switch in (found.fabric.switches[place.switch],)
    ]
    longest = max(hosts, default=0)
    for cable, a, b in found.cables():
        if a.mtu != b.mtu:
            continue
        least = min(
            roce_mtu(found.fabric.switches[end.switch], port)
            for end, port in ((cable.a, a), (cable.b, b))
        )
        if least < longest:
            usual = commonest(Counter(port.mtu for _, port in found.ports()))
            ops = {end.switch: (replace("PORT", end.port, "mtu", usual),)
                   for end in (cable.a, cable.b)}  # fmt: skip
            yield Finding(
                "mtu-path", cable.a.switch, "PORT", cable.a.port,
                f"mtu is {a.mtu:,}, here and at {cable.b}, and hosts may send RoCEv2 packets of "
                f"{longest:,} bytes of payload",
                "they are lost on the way, at this cable", f"Set mtu {usual} at both ends.",
                level=Level.ADVICE, patch=ops,
            )  # fmt: skip


def _cable_length(found: Findings) -> Iterator[Finding]:
    far = {end: other for cable in found.fabric.cables for end, other in cable.ends}
    for switch, port in found.ports():
        if not port.pfc or port.cable_m is not None or switch.kind != "sonic":
            continue  # others' texts have no place for it, or a length of their own
        there = far.get(Place(switch.name, port.name))
        metres = found.fabric.port(there).cable_m if there else None
        group = next(iter(switch.tables.get("CABLE_LENGTH", {})), "AZURE")
        yield Finding(
            "cable-untold", switch.name, "CABLE_LENGTH", f"{group}|{port.name}",
            "priorities are paused, and the cable's length is not configured"
            + (f"; {there} says {metres:g} m" if metres is not None else ""),
            "no headroom is computed for it, by the switch or here",
            "Name its length.", level=Level.ADVICE,
            patch={switch.name: (replace("CABLE_LENGTH", group, port.name, f"{metres:g}m"),)}
            if metres is not None else {},
        )  # fmt: skip


RULES: Mapping[str, Callable[[Findings], Iterator[Finding]]] = {
    "deadlock": _deadlock, "unreachable": _unreachable, "oversubscribed": _oversubscribed,
    "uplinks-unequal": _uplinks_unequal, "uplinks-fewer": _uplinks_fewer, "fec-differs": _fec,
    "port-down": _down, "bgp-missing": _bgp, "mtu-path": _mtu_path,
    "cable-untold": _cable_length,
}  # fmt: skip

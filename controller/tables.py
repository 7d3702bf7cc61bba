"""The fabric program's tables: the one place in Python that knows their names and numbers.

``switch_plan`` says everything a switch is to be told; each mechanism of p4src/ has its function.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Network, ip_network
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from controller import headroom, segments, tenants, thresholds
from controller.entities import (
    CloneSession,
    Entity,
    Match,
    SwitchPlan,
    TableEntry,
    default,
    entry,
    mac_bits,
    mac_text,
)
from controller.headroom import bytes_in, in_cells, pause_ns, renewal_ns
from controller.inc import inc_entries, tree_of
from controller.routes import (
    MAX_WAYS,
    NextHop,
    Places,
    Route,
    RouteMap,
    numbers_of,
    routes_of,
    ways_to,
)
from controller.settings import USUAL, LinkSpec, Loss, Settings, SettingsError
from params import ioam
from params.access import Rule
from params.buffer import Buffer
from params.classes import CONTROL_PRIORITY, PAUSE_PRIORITY, PRIORITIES, ClassSet
from params.csig import Signal, buckets
from params.data import Data
from params.inc import PORT as INC_PORT
from params.link import Replay
from params.load_balancing import Policy
from params.marking import ClassMarking, gradient
from params.pfc import Remedy
from params.shares import alpha_code, chance_code
from topologies import Fabric, Network, Node, NodeKind


def _names_of(enumeration: str) -> tuple[str, ...]:
    """Of the values of one in p4src/types.p4, from 0 on."""
    text = (Path(__file__).parents[1] / "p4src" / "types.p4").read_text()
    body = text.partition(f" {enumeration} {{")[2].partition("}")[0]
    return tuple(name.lower() for name in re.findall(r"^    (\w+) += \d", body, re.MULTILINE))


DROP_REASONS = _names_of("drop_reason_t")
IN_SUM = "in_sum"  # no drop: a part of a collective that a switch added up

MAX_SLOTS = 256  # of a group, by which its ways have shares
_WAYS_PER_TABLE = 16
SESSION_REPORTS = 1000
UDP_PORT_ROCE = 4791  # what hosts that ask for telemetry ask it for
NOBODY = 0  # the tenant of hosts that have none
_PORT_MASK = 0x1FF
MAX_CONTROLLED = 252  # ports of a switch that has a control plane of its own
CONTROL_PORTS = 256  # behind them: a front port's number and this is its control port's
ROUTING = (  # the tables that routes are in, with all they lead to
    *(
        "ipv4_routes",
        "ipv6_routes",
        "sunh_routes",
        "vtep_routes",
        "neighbours",
        "groups",
        "group_slots",
    ),
    *("tenant_routes", "tenant_macs", "vteps", "floods"),
    *(f"ways_from_{first}" for first in range(0, MAX_WAYS, _WAYS_PER_TABLE)),
)
_PUNTED = 0x0800, 0x0806, 0x86DD  # IPv4 to the switch's own addresses, ARP, IPv6
_PLACES_A_PART = 32  # so many leaves are often told of together, as those of a pod are
_SOME_PLACES = (1 << _PLACES_A_PART) - 1
_ALL = 0xFFFFFFFF  # bytes: no limit
_PAUSE_QUANTA = 0xFFFF  # that a pause frame asks for
_COLLECTOR, _COLLECTOR_PORT = IPv4Address("10.255.255.1"), 32766  # of telemetry reports
_ALL_BUT_PAUSES = 0xFF & ~(1 << PAUSE_PRIORITY)  # classes
_REMEDIES = {Remedy.DROP: 1, Remedy.FORWARD: 2, Remedy.ALERT: 3}  # stuck_t in p4src/types.p4


Groups = dict[tuple[NextHop, ...], int]  # the number of each set of next hops


def queue_index(port: int, priority: int) -> int:
    """A queue's place in the program's arrays."""
    return port * len(PRIORITIES) + priority


def control_port(port: int) -> int:
    """The control port beside a front port (p4src/punt.p4)."""
    return CONTROL_PORTS + port


def session_of(port: int) -> int:
    """The clone session that leads back out of a port."""
    return port + 1


class SwitchSite(Data):
    """A switch in its fabric, with the links at its ports."""

    fabric: Fabric
    switch: Node
    settings: Settings

    def ticks(self, ns: float) -> int:
        """A time as the target counts it; one that is not zero does not become so."""
        return max(1, round(ns / self.settings.tick_ns)) if ns else 0

    @cached_property
    def ports(self) -> dict[int, Node]:
        """What hangs at each port."""
        return self.fabric.ports(self.switch)

    def link(self, port: int) -> LinkSpec:
        """The cable at a port."""
        usual = self._usual_link(port)
        own = self.fabric.link_at(self.switch, port).speed
        if own.rate_bps is own.delay_ns is None:
            return usual
        return LinkSpec(
            rate_bps=usual.rate_bps if own.rate_bps is None else own.rate_bps,
            delay_ns=usual.delay_ns if own.delay_ns is None else own.delay_ns,
            overhead=usual.overhead,
        )

    def share_back(self, port: int) -> float:
        """What what leaves by a port, pauses too, may have of the rate that the other way has."""
        way = self.fabric.link_at(self.switch, port).direction(self.switch)
        return self.settings.one_way.get(way, 1.0)

    def link_now(self, port: int) -> LinkSpec:
        """The cable with what it has of its rate: for paths and loads to go by.

        Headroom and pauses go by all of it: it may have that again sooner than anyone hears of it.
        """
        if not self.settings.slowed:
            return self.link(port)
        way = self.fabric.link_at(self.switch, port).direction(self.switch)
        share = self.settings.slowed.get(way, 1.0)
        return self.link(port).slowed(share)

    def queue_at(self, port: int, size: int) -> int:
        """The queue at which something is done that is done at ``size`` on a usual link."""
        usual, now = self._usual_link(port).rate_bps, self.link_now(port).rate_bps
        if now >= usual or not self.settings.buffer.follow_rate:
            return size
        return -(-size * now // usual)

    def _usual_link(self, port: int) -> LinkSpec:
        joins_switches = self.fabric.link_at(self.switch, port).joins_switches
        return self.settings.fabric_link if joins_switches else self.settings.host_link

    @property
    def host_ports(self) -> dict[int, Node]:
        """The ports at which hosts hang."""
        return {port: peer for port, peer in self.ports.items() if peer.kind is NodeKind.HOST}

    @cached_property
    def far_leaves(self) -> frozenset[Network]:
        """The addresses of leaves to which tunnels lead from here."""
        return frozenset(tenants.far_leaves(self.fabric, self.switch))

    @property
    def lossless(self) -> ClassSet:
        """The priorities whose senders are paused, so that nothing is lost."""
        is_paused = self.settings.pfc.enabled and not self.settings.link.cbfc
        return self.settings.lossless if is_paused else ClassSet()

    @property
    def credited(self) -> ClassSet:
        """The priorities whose senders go by credits instead."""
        return self.settings.lossless if self.settings.link.cbfc else ClassSet()


def switch_plan(
    fabric: Fabric,
    switch: Node,
    routes: tuple[Route, ...],
    settings: Settings = USUAL,
    groups: Groups | None = None,
    dead: Collection[str] = frozenset(),
    far: tenants.Far | None = None,
) -> SwitchPlan:
    """Everything a switch is to be told; ``groups`` that are known keep their numbers.

    What it knows of tenants elsewhere is what the fabric has, or what it was told (``far``).
    """
    known = tenants.far_of(fabric, switch) if far is None else far
    site = SwitchSite(fabric, switch, settings)
    policies = tuple(segments.policies_of(fabric, switch, settings, dead))
    return (
        *_classes(settings),
        *routing(site, routes, groups, policies, dead),
        *tenants.own_entries(fabric, switch),
        *tenants.far_entries(fabric, switch, known),
        *_steering(site, policies),
        *_inc(site, dead),
        *_as_its_like(site),
        *_by_itself(site),
    )


def _as_its_like(site: SwitchSite) -> Iterator[Entity]:
    """What follows from a switch's links alone: see `_likeness`."""
    yield from buffering(site)
    yield from _queue_limits(site)
    yield from _trim(site)
    yield from _pause(site)
    yield from _replay(site)
    yield from marking(site)
    yield from _schedule(site)
    yield from _load(site)
    yield from _watches(site)
    yield from _reports(site)


def _by_itself(site: SwitchSite) -> Iterator[Entity]:
    """What has a switch's own number or address in it, or its neighbours'."""
    yield from _punts(site)
    yield from _policies(site)
    yield from _pause_senders(site)
    yield from _credits(site)
    yield from _telemetry(site)
    yield from _notify(site)
    yield from _csig(site)
    yield from _permissions(site)
    yield from _losses(site)


def _likeness(site: SwitchSite) -> Hashable:
    """What `_as_its_like` says follows from: alike, alike."""
    settings = site.settings
    links = []
    for port, peer in site.ports.items():
        link = site.fabric.link_at(site.switch, port)
        shares: tuple[float | None, ...] = ()
        if settings.slowed or settings.one_way:
            way = link.direction(site.switch)
            shares = settings.slowed.get(way), settings.one_way.get(way)
        links.append((port, peer.kind is NodeKind.HOST, link.speed, shares))
    return tuple(links)


# --- classify.p4, route.p4, path.p4, forward.p4 ------------------------------------------------


def _classes(settings: Settings) -> Iterator[Entity]:
    for table, key, priorities in (
        ("dscp_priorities", "meta.dscp", settings.dscp_priorities),
        ("pcp_priorities", "hdr.vlan.pcp", settings.classes.by_pcp),
    ):
        for value, priority in priorities.items():
            yield entry(table, {key: value}, "set_priority", priority=priority)


def routing(
    site: SwitchSite,
    routes: Iterable[Route],
    known: Groups | None = None,
    policies: Sequence[segments.Policy] = (),
    dead: Collection[str] = frozenset(),
) -> Iterator[Entity]:
    """Routes; equal sets of next hops share a group. What is steered has a policy's instead.

    Groups that are ``known`` keep their numbers, and no new one has that of one known before: while
    one plan gives way to another, a route never leads to what its group is not yet, or no more.
    """
    routes = tuple(routes)
    sid_routes = _sid_routes(site, dead) if site.settings.segments else ()
    before = {} if known is None else known
    everywhere = (*routes, *sid_routes)
    wanted = dict.fromkeys(route.next_hops for route in everywhere if len(route.next_hops) > 1)
    taken = set(before.values())
    free = (number for number in count(1) if number not in taken)
    groups: Groups = {hops: before.get(hops) or next(free) for hops in wanted}
    if known is not None:
        known.clear()
        known.update(groups)
    for next_hops, group in groups.items():
        yield from _group(site, group, next_hops)
    yield from _neighbours(groups)
    steered = dict(_steered_prefixes(site, policies))
    for route in routes:
        if route.prefix not in steered:
            yield from _led(route, groups, site.settings)
            if site.far_leaves and route.prefix in site.far_leaves:
                yield _underlay(route, groups)
    for route in sid_routes:
        match = _prefix_match(route.prefix, "hdr.carrier.dst_addr")
        yield _onward(route, groups, "sid_routes", match)
    for prefix, policy in steered.items():
        yield _steered(prefix, policy, routes, groups)


def _neighbours(groups: Groups) -> Iterator[Entity]:
    neighbours = {hop.port: hop.mac for next_hops in groups for hop in next_hops}
    for port, mac in sorted(neighbours.items()):
        yield entry("neighbours", {"meta.out_port": port}, "neighbour", mac=mac_bits(mac))


def routed(plan: SwitchPlan) -> tuple[tuple[Route, ...], Groups]:
    """The routes that a switch was told by `routing`, and the numbers of their groups."""
    entries: dict[str, dict[Match, TableEntry]] = {}
    for each in plan:
        if isinstance(each, TableEntry) and len(each.match) == 1:
            entries.setdefault(each.table, {})[each.match[0][1]] = each
    macs = {
        port: mac_text(dict(e.params)["mac"]) for port, e in entries.get("neighbours", {}).items()
    }
    ports: dict[Match, list[int]] = {}
    for first in range(0, MAX_WAYS, _WAYS_PER_TABLE):
        for group, each in entries.get(f"ways_from_{first}", {}).items():
            places = dict(each.params)
            found = (places[f"p{at}"] for at in range(_WAYS_PER_TABLE))
            ports.setdefault(group, []).extend(port for port in found if port)
    hops = {
        group: tuple(NextHop(port, macs[port]) for port in ways) for group, ways in ports.items()
    }
    routes = []
    found_routes = (
        (kind, match, each)
        for kind, table in ((IPv4Network, "ipv4_routes"), (IPv6Network, "ipv6_routes"))
        for match, each in entries.get(table, {}).items()
    )
    for kind, match, each in found_routes:
        said = dict(each.params)
        if each.action == "to_port":
            ways: tuple[NextHop, ...] = (NextHop(said["port"], mac_text(said["next_mac"])),)
        elif each.action == "to_group":
            ways = hops[said["group"]]
        else:
            continue
        assert isinstance(match, tuple)
        routes.append(Route(kind(match), ways, said.get("leaf", 0)))
    return tuple(routes), {ways: group for group, ways in hops.items() if isinstance(group, int)}


def _led(route: Route, groups: Groups, settings: Settings) -> Iterator[Entity]:
    """A route, by each of the addresses that packets have."""
    yield _route(route, groups)
    if settings.has_short_addresses:
        yield _short_route(route, groups)


def _prefix_match(prefix: Network, key: str = "") -> dict[str, Match]:
    key = key or f"hdr.ipv{prefix.version}.dst_addr"
    return {key: (int(prefix.network_address), prefix.prefixlen)}


def _route(route: Route, groups: Groups) -> TableEntry:
    table = f"ipv{route.prefix.version}_routes"
    return _onward(route, groups, table, _prefix_match(route.prefix))


def _onward(
    route: Route, groups: Groups, table: str, match: Mapping[str, Match], verb: str = "to"
) -> TableEntry:
    """What matches goes to the route's next hop, or to the group of those it has."""
    if len(route.next_hops) == 1:
        (hop,) = route.next_hops
        return entry(table, match, f"{verb}_port", port=hop.port, next_mac=mac_bits(hop.mac))
    group = groups[route.next_hops]
    return entry(table, match, f"{verb}_group", group=group, leaf=route.leaf)


def _steered(prefix: Network, policy: int, routes: Iterable[Route], groups: Groups) -> TableEntry:
    """To a policy's lists; by the route that there is besides, for whose tenant it is not meant."""
    others = {"group": 0, "leaf": 0, "port": 0, "next_mac": 0}
    covering = (route for route in routes if _is_within(prefix, route.prefix))
    if route := max(covering, key=lambda route: route.prefix.prefixlen, default=None):
        plain = dict(_route(route, groups).params)
        others |= {name: plain.get(name, 0) for name in others}
    table = f"ipv{prefix.version}_routes"
    return entry(table, _prefix_match(prefix), "to_segments", policy=policy, **others)


def _is_within(prefix: Network, other: Network) -> bool:
    return prefix.version == other.version and prefix.subnet_of(other)  # type: ignore[arg-type]


def _underlay(route: Route, groups: Groups) -> TableEntry:
    """The same way, for what goes to a leaf in a tunnel."""
    match = {"meta.vtep": int(route.prefix.network_address)}
    return _onward(route, groups, "vtep_routes", match, "underlay")


def _short_route(route: Route, groups: Groups) -> TableEntry:
    """The same way by the lower half of the address (sunh.p4)."""
    prefix = route.prefix
    short = int(prefix.network_address) & 0xFFFF, max(0, prefix.prefixlen - 16)
    return _onward(route, groups, "sunh_routes", {"hdr.sunh.dst_addr": short}, "sunh")


def _punts(site: SwitchSite) -> Iterator[Entity]:
    """What the switch's own control plane is told, and may say."""
    punt = site.settings.punt
    if punt is None:
        return
    every = site.ticks(punt.every_ns)
    for port in site.ports:
        own = control_port(port)
        for kind in _PUNTED:
            yield entry(
                "punts",
                {"standard_metadata.ingress_port": port, "hdr.ethernet.ether_type": kind},
                "to_control_port",
                port=own,
                every=every,
                burst=(punt.burst - 1) * every,
            )
        match = {"standard_metadata.ingress_port": own}
        yield entry("control_ports", match, "by_front_port", port=port)
    if site.host_ports and site.fabric.ip == 4:
        address = int(site.fabric.gateway(site.switch))
        yield entry("ipv4_routes", {"hdr.ipv4.dst_addr": (address, 32)}, "to_control")


def _sid_routes(site: SwitchSite, dead: Collection[str]) -> tuple[Route, ...]:
    """The ways to every other switch's micro-segments."""
    return tuple(
        Route(IPv6Network((segments.sid(segments.usid_of(other)), 48)), hops)
        for other, hops in ways_to(site.fabric, site.switch, dead, site.settings.drained).items()
    )


def _steered_prefixes(
    site: SwitchSite, policies: Sequence[segments.Policy]
) -> Iterator[tuple[Network, int]]:
    """What is steered, and by which policy: the first told of equal places counts."""
    seen: set[Network] = set()
    for policy in policies:
        target = policy.target
        is_host = target.kind is NodeKind.HOST
        prefixes = (
            (ip_network(site.fabric.address(target, policy.ways[0][0][-1])),)
            if is_host
            else site.fabric.prefixes(target)
        )
        for prefix in prefixes:
            if prefix not in seen:
                seen.add(prefix)
                yield prefix, policy.number


# --- usid.p4 -------------------------------------------------------------------------------------


def _steering(site: SwitchSite, policies: Sequence[segments.Policy]) -> Iterator[Entity]:
    if not site.settings.segments:
        return
    yield from _own_sids(site)
    known: set[tuple[int, int]] = set()  # the first told of a place and a tenant counts
    for policy in policies:
        for number, (path, link) in enumerate(policy.ways, policy.first):
            yield _segment_list(site, number, path, link.port_of(site.switch))
        everybody = {NOBODY, *site.settings.tenants.values()}
        by_tenant = policy.steering.tenant
        for tenant in sorted(everybody if by_tenant is None else {by_tenant}):
            if (policy.number, tenant) not in known:
                known.add((policy.number, tenant))
                match = {"meta.steering": policy.number, "meta.tenant": tenant}
                lists = {"first_list": policy.first, "lists": len(policy.ways)}
                yield entry("segment_policies", match, "choose", **lists)


def _own_sids(site: SwitchSite) -> Iterator[Entity]:
    own = segments.usid_of(site.switch)
    key = "hdr.carrier.dst_addr"
    yield entry("local_sids", {key: (segments.sid(own), 48)}, "node")
    for port, peer in site.ports.items():
        mac = mac_bits(site.fabric.mac(peer))
        usid = segments.usid_of_port(port)
        for begins, length, own_first in (((own, usid), 64, 1), ((usid,), 48, 0)):
            match = {key: (segments.sid(*begins), length)}
            yield entry(
                "local_sids", match, "adjacency", port=port, next_mac=mac, own_first=own_first
            )
    if site.switch.kind is NodeKind.LEAF:
        for begins, length, own_first in (((own, segments.END), 64, 1), ((segments.END,), 48, 0)):
            match = {key: (segments.sid(*begins), length)}
            yield entry("local_sids", match, "decapsulate", own_first=own_first)


def _segment_list(site: SwitchSite, number: int, path: segments.Path, port: int) -> Entity:
    first, *behind = segments.carriers(segments.usids_along(path))
    params = {
        "src_addr": int(segments.source_of(site.switch)),
        "sids": first,
        "port": port,
        "next_mac": mac_bits(site.fabric.mac(path[1])),
    }
    match = {"chosen": number}
    if not behind:
        return entry("segment_lists", match, "carrier", **params)
    # The last to come stands first, and what is not there means nothing.
    order = [*reversed(behind), 0, 0][: segments.MAX_SEGMENTS]
    return entry(
        "segment_lists",
        match,
        "carrier_and_segments",
        **params,
        segments=len(behind),
        **{f"segment{at}": value for at, value in enumerate(order)},
    )


def _group(site: SwitchSite, group: int, next_hops: tuple[NextHop, ...]) -> Iterator[Entity]:
    """A group's ways and slots; what it consists of is told before how much that is."""
    ports = [hop.port for hop in next_hops]
    if len(ports) > MAX_WAYS:
        raise SettingsError(
            f"{site.switch} has {len(ports)} equal ways to one prefix; a group holds {MAX_WAYS}: "
            "build the fabric with fewer spines, or fewer links to each"
        )
    slots = slots_of([site.link_now(port).rate_bps for port in ports])
    for slot, way in enumerate(slots):
        match = {"meta.group": group, "meta.member": slot}
        yield entry("group_slots", match, "way", number=way, port=ports[way])
    for first in range(0, len(ports), _WAYS_PER_TABLE):
        part = ports[first : first + _WAYS_PER_TABLE]
        places = {f"p{at}": part[at] if at < len(part) else 0 for at in range(_WAYS_PER_TABLE)}
        yield entry(f"ways_from_{first}", {"meta.group": group}, "ports", **places)
    yield entry(
        "groups",
        {"meta.group": group},
        "group",
        slot_count=len(slots),
        way_count=len(ports),
        hash_factor=_HASH_FACTORS[site.switch.kind],
    )


def slots_of(rates: Sequence[int]) -> tuple[int, ...]:
    """The ways by slot: each once, in order, and behind them as often as its rate deserves."""
    unit = math.gcd(*rates)
    shares = [rate // unit for rate in rates]
    if sum(shares) > MAX_SLOTS:  # as near as a group allows
        scale = MAX_SLOTS / sum(shares)
        shares = [max(1, math.floor(share * scale)) for share in shares]
        while sum(shares) > MAX_SLOTS:
            shares[shares.index(max(shares))] -= 1
    further = (way for way, share in enumerate(shares) for _ in range(share - 1))
    return (*range(len(rates)), *further)


# What tiers multiply a hash by before they draw by its upper half: the lower half by itself, then
# odd numbers, which spread the flows that drew alike evenly whatever that was.
_HASH_FACTORS = {
    NodeKind.LEAF: 1 << 16,
    NodeKind.SPINE: 0x9E3779B1,
    NodeKind.CORE: 0x85EBCA77,
}


def _policies(site: SwitchSite) -> Iterator[Entity]:
    lb, is_leaf = site.settings.lb, site.switch.kind is NodeKind.LEAF
    policy = lb.policy
    if policy is Policy.CONGA and not is_leaf:
        policy = Policy.ECMP  # only leaves know how busy the ways are
    values: dict[str, Callable[[], int]] = {
        "flowlet_gap": lambda: site.ticks(lb.flowlet_gap_ns),
        "load_window_shift": lambda: _window_shift(site),
        "queue_quantum_shift": lambda: site.settings.max_frame.bit_length() - 1,
        "entropy_shift": lambda: _entropy_shift(site),
        "leaf": lambda: site.switch.number,
        "age": lambda: site.ticks(thresholds.metric_age_ns(lb)),
    }
    params = {name: values[name]() for name in policy.takes}
    for priority in PRIORITIES if policy is not Policy.ECMP else ():
        yield entry("path_policies", {"meta.priority": priority}, f"use_{policy.value}", **params)
    yield default("conga_ends", "learn" if is_leaf else "NoAction")


def _entropy_shift(site: SwitchSite) -> int:
    """Where in a source port the bits begin that choose here: behind those of the tier below."""
    fabric, used = site.fabric, 0
    has_cores = any(switch.kind is NodeKind.CORE for switch in fabric.switches)
    if has_cores and site.switch.kind is NodeKind.SPINE:
        leaves = (leaf for leaf in fabric.switches if fabric.hosts_of(leaf))
        ups = max(len(fabric.ports(leaf)) - len(fabric.hosts_of(leaf)) for leaf in leaves)
        used = ups.bit_length() - 1
    return min(16, 16 - site.settings.entropy_bits + used)


# --- buffer.p4 -----------------------------------------------------------------------------------


def headroom_of(site: SwitchSite, port: int) -> int:
    """The headroom of each lossless priority of a port."""
    chosen = site.settings.pfc.headroom
    return needed_headroom(site, port) if chosen is None else chosen


def needed_headroom(site: SwitchSite, port: int) -> int:
    """What each lossless priority of a port has to have for nothing to be lost."""
    settings = site.settings
    return headroom.headroom(
        site.link(port),
        settings.max_frame,
        settings.pfc.response_ns + _retry_ns(site, port),
        settings.buffer.cell,
        site.share_back(port),
    )


def _retry_ns(site: SwitchSite, port: int) -> int:
    """How much later something may come by a link that had to send it again."""
    if not tries_again(site, port):
        return 0
    return thresholds.replay_timeout_ns(site.link(port), site.settings.max_frame)


def tries_again(site: SwitchSite, port: int) -> bool:
    """Whether both ends of the link at a port send again what it lost."""
    link = site.settings.link
    return link.llr is not Replay.NONE and (link.llr_hosts or port not in site.host_ports)


def pool_of(site: SwitchSite) -> int:
    """What all queues of a switch share."""
    headrooms = [headroom_of(site, port) for port in site.ports for _ in site.lossless]
    own = sum(_lossy_reserved(site, priority) for priority in PRIORITIES) * len(site.ports)
    own += sum(credit_of(site, port) for port in site.ports for _ in site.credited)
    return headroom.pool(site.settings, headrooms, len(headrooms), own)


def _cells(buffer: Buffer) -> dict[str, int]:
    """How memory comes, as p4src/buffer.p4 takes it."""
    return {"cell_size": buffer.cell, "cell_reciprocal": -(-(2**32) // buffer.cell)}


def _lossy_reserved(site: SwitchSite, priority: int) -> int:
    """What a class that may lose has to itself at every port."""
    if priority in site.lossless | site.credited:
        return 0
    trim = site.settings.trim
    is_for_cut = bool(trim.cut) and priority == trim.priority
    return trim.reserved if is_for_cut else site.settings.buffer.lossy_reserved


def _lossy_most(site: SwitchSite, priority: int) -> int:
    """What a class that may lose may take of the pool at a port; 0: alpha's share."""
    buffer, trim = site.settings.buffer, site.settings.trim
    if priority in trim.cut and trim.threshold is not None:
        return trim.threshold
    return (buffer.static if buffer.lossy_static is None else buffer.lossy_static) or 0


def buffering(site: SwitchSite) -> Iterator[Entity]:
    """What a queue may have of the buffer; by itself for the same."""
    buffer = site.settings.buffer
    pool, cells = {"pool_size": pool_of(site)}, _cells(buffer)
    usual = buffer.alpha if buffer.lossy_alpha is None else buffer.lossy_alpha
    lossy = {  # the same at all ports
        priority: {
            **pool,
            "queue_alpha": alpha_code(usual),
            "queue_most": _lossy_most(site, priority),
            **cells,
            "queue_reserved": _lossy_reserved(site, priority),
        }
        for priority in PRIORITIES
    }
    lossless = {
        **pool,
        "queue_alpha": alpha_code(buffer.alpha),
        "queue_most": buffer.static or 0,
        **cells,
        "queue_reserved": buffer.reserved,
        "queue_headroom": 0,  # by the cable
        "headroom_pool": _ALL if buffer.headroom_pool is None else buffer.headroom_pool,
        **xon_of(site),
    }
    own = map(control_port, site.ports) if site.settings.punt else ()
    for port in (*site.ports, *own):
        for priority in PRIORITIES:
            match = {"standard_metadata.ingress_port": port, "meta.priority": priority}
            if priority in site.lossless and port in site.ports:
                params = lossless | {"queue_headroom": headroom_of(site, port)}
                yield entry("buffer_profiles", match, "lossless", **params)
            elif priority in site.credited:
                yield entry(
                    "buffer_profiles",
                    match,
                    "credited",
                    **pool,
                    queue_credit=credit_of(site, port),
                    **cells,
                    grant_least=_grant_least(site, port),
                )
            else:
                yield entry("buffer_profiles", match, "lossy", **lossy[priority])


def _queue_limits(site: SwitchSite) -> Iterator[Entity]:
    """Where a queue is cut at less than elsewhere, as its link takes longer for as much."""
    trim = site.settings.trim
    if trim.threshold is None:
        return
    for port in site.ports:
        most = site.queue_at(port, trim.threshold)
        for priority in trim.cut if most < trim.threshold else ():
            match = {"meta.out_port": port, "meta.priority": priority}
            yield entry("queue_limits", match, "at_most", queue_most=most)


def xon_of(site: SwitchSite) -> dict[str, int]:
    """When a pause ends: at a size, or so far below the threshold, whichever is more."""
    pfc = site.settings.pfc
    usual = 2 * site.settings.max_frame if pfc.xon is None else _ALL
    return {
        "xon": pfc.xon or 0,
        "xon_below_xoff": usual if pfc.xon_gap is None else pfc.xon_gap,
        "xon_follows": pfc.xon_follows,
    }


# --- trim.p4 -------------------------------------------------------------------------------------

ETHERNET_BYTES = 14


def _trim(site: SwitchSite) -> Iterator[Entity]:
    trim, classes = site.settings.trim, site.settings.dscp_priorities
    cut = [dscp for dscp in range(64) if classes.get(dscp, 0) in trim.cut]
    same = {  # at all ports, but for the last hop's
        "size": trim.size - ETHERNET_BYTES,
        "cut_dscp": trim.dscp,
        "cut_priority": trim.priority,
        "queue_reserved": trim.reserved,
        **_cells(site.settings.buffer),
    }
    for port in site.ports if trim.cut else ():
        here = same | ({"cut_dscp": trim.last_hop_dscp} if port in site.host_ports else {})
        for dscp in sorted({*trim.by_dscp, *cut}):
            match = {"meta.out_port": port, "meta.dscp": dscp}
            if dscp in trim.by_dscp:
                yield entry("trims", match, "is_cut")
            else:
                yield entry("trims", match, "cut", **here)


# --- pause.p4 ------------------------------------------------------------------------------------


def _pause(site: SwitchSite) -> Iterator[Entity]:
    pfc = site.settings.pfc
    for port in site.ports:
        yield CloneSession(session_of(port), port, site.settings.control_queue)
    if not site.lossless:
        return
    lossless = site.lossless.mask
    every = site.ticks(pfc.poll_ns) if pfc.watchdog_ns else 0
    for port in site.ports:
        obeys_all = pfc.asymmetric and port in site.host_ports
        yield entry(
            "pause_links",
            {"standard_metadata.ingress_port": port},
            "link",
            pause_quantum=math.ceil(pause_ns(site.link(port), 1) * 65536 / site.settings.tick_ns),
            classes=_ALL_BUT_PAUSES if obeys_all else lossless,
            watched_classes=lossless if every else 0,
            every=every,
        )
    if every:
        yield default(
            "watchdogs",
            "judge",
            every=every,
            detect=site.ticks(pfc.watchdog_ns),
            restore=site.ticks(pfc.restore_ns),
            remedy=_REMEDIES[pfc.watchdog_action],
        )
    else:
        yield default("watchdogs", "NoAction")


def _pause_senders(site: SwitchSite) -> Iterator[Entity]:
    mac = mac_bits(site.fabric.mac(site.switch))
    for port in site.ports if site.lossless else ():
        yield entry(
            "pause_senders",
            {"standard_metadata.egress_port": port},
            "sender",
            mac=mac,
            pause_quanta=_PAUSE_QUANTA,
            renew=site.ticks(renewal_ns(site.link(port), _PAUSE_QUANTA)),
        )


# --- credit.p4, link.p4 --------------------------------------------------------------------------


def credit_of(site: SwitchSite, port: int) -> int:
    """What a class that goes by credits has of the buffer at a port."""
    settings, given = site.settings, site.settings.link.credit
    response_ns = settings.pfc.response_ns + _retry_ns(site, port)
    needed = thresholds.credit(
        site.link(port), settings.max_frame, response_ns, settings.buffer.cell
    )
    if given is None:
        return needed
    least = in_cells(4 * settings.max_frame, settings.buffer.cell)
    if given < least:
        raise SettingsError(
            f"link.credit: with {given:,} bytes a sender may wait for ever for a word; "
            f"{site.switch}'s links take {least:,} at least, and {needed:,} to be busy"
        )
    return in_cells(given, settings.buffer.cell)


def _grant_least(site: SwitchSite, port: int) -> int:
    """What is worth a word to who sends to a port."""
    settings = site.settings
    if settings.link.credit is not None:  # what is not told yet is not there: a word more often
        return min(2 * settings.max_frame, settings.link.credit // 8)
    response_ns = settings.pfc.response_ns
    return thresholds.grant_least(site.link(port), settings.max_frame, response_ns)


def _credits(site: SwitchSite) -> Iterator[Entity]:
    """What a port grants, and, if a switch is at its other end, what it is granted: as much.

    Hosts take in all that their links bring, and grant nothing.
    """
    settings = site.settings
    for port, peer in site.ports.items():
        for priority in sorted(site.credited):
            own = credit_of(site, port)
            is_granted = peer.kind is not NodeKind.HOST
            yield entry(
                "credit_links",
                {"standard_metadata.ingress_port": port, "hdr.credit.priority": priority},
                "far_end",
                far_credit=own if is_granted else 0,
            )
            yield entry(
                "credit_senders",
                {"standard_metadata.egress_port": port, "meta.copy_priority": priority},
                "near_end",
                mac=mac_bits(site.fabric.mac(site.switch)),
                own_credit=own,
            )
            if is_granted:
                yield entry(
                    "queue_credits",
                    {"standard_metadata.egress_port": port, "meta.priority": priority},
                    "by_credit",
                    credit=own,
                    least=in_cells(settings.max_frame, settings.buffer.cell),
                    cell=settings.buffer.cell,
                    ask_after=site.ticks(
                        thresholds.ask_after_ns(
                            site.link(port),
                            settings.max_frame,
                            own,
                            settings.pfc.response_ns + _retry_ns(site, port),
                        )
                    ),
                )


def _replay(site: SwitchSite) -> Iterator[Entity]:
    settings = site.settings
    for port in site.ports:
        if not tries_again(site, port):
            continue
        replay = thresholds.replay(site.link(port), settings.max_frame)
        yield entry(
            "link_replays",
            {"standard_metadata.egress_port": port},
            "replay",
            room=replay.room,
            timeout=site.ticks(replay.timeout_ns),
            ack_every=replay.ack_every,
            selective=settings.link.llr is Replay.SELECTIVE,
        )


# --- mark.p4, load.p4 ----------------------------------------------------------------------------


def marking(site: SwitchSite) -> Iterator[Entity]:
    """When queues mark; by itself for who changes that while packets pass."""
    curves = site.settings.ecn.curves(site.settings.lossless)
    for port in site.ports:
        for priority, curve in curves.items():
            can_drop = isinstance(curve, ClassMarking) and curve.drop
            match = {"standard_metadata.egress_port": port, "meta.priority": priority}
            least, most = site.queue_at(port, curve.kmin), site.queue_at(port, curve.kmax)
            yield entry(
                "ecn_profiles",
                match,
                "between_or_drop" if can_drop else "between",
                queue_min=least,
                queue_max=most,
                gradient=gradient(least, most, curve.pmax),
            )


# --- schedule.p4 ---------------------------------------------------------------------------------


def _schedule(site: SwitchSite) -> Iterator[Entity]:
    schedule = site.settings.schedule
    limits, port_limit = schedule.limits, schedule.port_limit
    burst = 2 * site.settings.max_frame if schedule.burst is None else schedule.burst
    quanta = thresholds.quanta(schedule.shares, site.settings.max_frame)
    for port in site.ports:
        for priority in sorted(quanta.keys() | schedule.shape.keys()):
            yield entry(
                "queue_schedules",
                {"standard_metadata.egress_port": port, "meta.priority": priority},
                "serve",
                quantum=quanta.get(priority, 0),
                rate=limits.get(priority, 0),
                burst=burst,
            )
        if 0 < port_limit < site.link(port).rate_bps:
            yield entry(
                "port_shapers",
                {"standard_metadata.egress_port": port},
                "shape",
                rate=port_limit,
                burst=burst,
                classes=_ALL_BUT_PAUSES,
            )


def _window_shift(site: SwitchSite) -> int:
    """The window of load.p4, as a power of two of ticks; the same for all of a switch's links."""
    links = [site.link_now(port) for port in site.ports]
    window_ns = thresholds.load_window_ns(site.settings.lb, links, site.settings.max_frame)
    return max(0, round(math.log2(window_ns / site.settings.tick_ns)))


def _load(site: SwitchSite) -> Iterator[Entity]:
    settings = site.settings
    telemetry = settings.telemetry
    asks = telemetry.share or telemetry.by_hosts or settings.csig
    if not settings.lb.policy.goes_by_load and not asks:
        return
    shift = _window_shift(site)
    for port in site.ports:
        held = bytes_in(site.link_now(port), settings.tick_ns * 2**shift)
        yield entry(
            "link_loads",
            {"standard_metadata.egress_port": port},
            "measure",
            window_shift=shift,
            per_byte=round(2**48 / held),
        )


# --- telemetry.p4, ioam.p4, report.p4 ------------------------------------------------------------


def node_id(switch: Node) -> int:
    """A switch's number in telemetry: its kind, and its number among those."""
    return int(switch.kind) << 16 | switch.number


def link_number(switch: Node, port: int) -> int:
    """A number by which senders tell ways apart: those of a way's links are added without carry."""
    return zlib.crc32(b"%d %d" % (node_id(switch), port)) & 0xFFFF


def _telemetry(site: SwitchSite) -> Iterator[Entity]:
    telemetry = site.settings.telemetry
    if telemetry.has_ioam:
        yield default("int_hops", "NoAction")
        yield from _ioam(site)
    else:
        yield from _int(site)
    if telemetry.report_port is None:
        yield default("collectors", "NoAction")
        return
    yield default(
        "collectors",
        "to_collector",
        node=node_id(site.switch),
        src_mac=mac_bits(site.fabric.mac(site.switch)),
        dst_mac=0xFFFFFFFFFFFF,
        src_addr=(172 << 24) | (16 << 16) | node_id(site.switch) & 0xFFFFF,
        dst_addr=int(_COLLECTOR),
        dst_port=_COLLECTOR_PORT,
    )


def _int(site: SwitchSite) -> Iterator[Entity]:
    telemetry = site.settings.telemetry
    if telemetry.share or telemetry.by_hosts:
        mtu = telemetry.link_mtu
        yield default("int_hops", "be_hop", node_id=node_id(site.switch), link_mtu=mtu)
    else:
        yield default("int_hops", "NoAction")
    if telemetry.by_hosts:
        for port in site.ports:
            yield entry(
                "int_links",
                {"standard_metadata.egress_port": port},
                "be_link",
                mbps=max(1, round(site.link_now(port).rate_bps / 1e6)),
                number=link_number(site.switch, port),
                tick=round(65536 * site.settings.tick_ns),
            )


def _watches(site: SwitchSite) -> Iterator[Entity]:
    """Which packets hops write into, and where that ends; IOAM's names leaves (`_ioam`)."""
    telemetry = site.settings.telemetry
    if not telemetry.has_ioam:
        yield default("ioam_nodes", "NoAction")
    if not telemetry.share:
        return
    for port in () if telemetry.has_ioam else site.host_ports:
        yield entry(
            "int_flows",
            {"standard_metadata.ingress_port": (port, _PORT_MASK)},
            "watch",
            1,
            share=chance_code(telemetry.share),
            instructions=telemetry.instructions,
            hop_words=telemetry.hop_words,
            hops=telemetry.hops,
            domain=0,
        )
        yield entry("int_sinks", {"standard_metadata.egress_port": port}, "end")
    if site.settings.groups:  # switches look for parts and results where UDP says so
        match = {"meta.dst_port": (INC_PORT, 0xFFFF)}
        yield entry("int_flows", match, "NoAction", 2)


def _ioam(site: SwitchSite) -> Iterator[Entity]:
    """Every switch writes; leaves begin traces and end them (ioam.p4)."""
    telemetry = site.settings.telemetry
    yield default(
        "ioam_nodes",
        "be_ioam_node",
        node_id=node_id(site.switch),
        link_mtu=telemetry.link_mtu,
        tick_length=round(65536 * site.settings.tick_ns),
        address=segments.sid(segments.usid_of(site.switch)),
    )
    for port in site.host_ports:
        yield entry(
            "int_flows",
            {"standard_metadata.ingress_port": (port, _PORT_MASK)},
            "trace",
            1,
            share=chance_code(telemetry.share),
            type=ioam.TRACE_TYPE >> 8,
            node_words=ioam.NODE_WORDS,
            room=(telemetry.nodes - 1) * ioam.NODE_WORDS // 2,
            namespace=ioam.NAMESPACE,
        )
        yield entry("ioam_sinks", {"standard_metadata.egress_port": port}, "end_trace")
    ends: dict[Network, Node] = {}
    for switch in site.fabric.switches if site.host_ports else ():
        if switch.kind is NodeKind.LEAF:
            for prefix in site.fabric.prefixes(switch):
                ends.setdefault(prefix, switch)  # a pair of leaves has one
    table = {4: "ioam_ends", 6: "ipv6_ioam_ends"}[site.fabric.ip]
    for prefix, leaf in ends.items():
        address = segments.sid(segments.usid_of(leaf))
        yield entry(table, _prefix_match(prefix), "ends_at", address=address)


def _reports(site: SwitchSite) -> Iterator[Entity]:
    telemetry = site.settings.telemetry
    if telemetry.report_port is None:
        return
    if telemetry.drop_share:
        for block in ("drop_reports", "late_drop_reports"):
            for reason, name in enumerate(DROP_REASONS):
                if name in ("none", IN_SUM):
                    continue
                yield entry(
                    f"{block}.drop_reports",
                    {"meta.drop_reason": reason},
                    f"{block}.tell",
                    share=chance_code(telemetry.drop_share),
                )
    yield CloneSession(SESSION_REPORTS, telemetry.report_port)


# --- notify.p4 -----------------------------------------------------------------------------------


def _notify(site: SwitchSite) -> Iterator[Entity]:
    ecn = site.settings.ecn
    if not ecn.enabled or not ecn.fast_cnp:
        return
    interval = site.ticks(ecn.fast_cnp_ns)
    for port in site.ports:
        match = {"standard_metadata.egress_port": port}
        yield entry("notifiers", match, "tell_sender", interval=interval)
    yield default(
        "notifier",
        "be_notifier",
        address=int(site.fabric.loopback(site.switch)),
        mac=mac_bits(site.fabric.mac(site.switch)),
        notice_dscp=site.settings.dscp_of(CONTROL_PRIORITY),
    )


# --- csig.p4 -------------------------------------------------------------------------------------


def stage(switch: Node, peer: Node) -> int:
    """Where in the fabric a link is, in a compact tag's 7 bits: tier and next tier, hosts being 0.

    No link has 0, which is what a tag begins with.
    """
    return int(switch.kind) << 4 | int(peer.kind)


def _csig(site: SwitchSite) -> Iterator[Entity]:
    csig = site.settings.csig
    if csig is None:
        return
    for port, peer in site.ports.items():
        match = {"standard_metadata.egress_port": port}
        if peer.name in csig.unaware:
            yield entry("csig_links", match, "csig_strip")
            continue
        rate = site.link_now(port).rate_bps
        yield entry(
            "csig_links",
            match,
            "csig_hop",
            mbps=max(1, round(rate / 1e6)),
            ns_per_byte=round(2**24 * 8e9 / rate),
            tick=round(65536 * site.settings.tick_ns),
            link_stage=stage(site.switch, peer),
            link_number=link_number(site.switch, port) or 1,
        )
    for signal in Signal:
        yield entry("csig_steps", {"type": signal}, "be_steps", shift=signal.shift)
        for bucket in buckets(signal):
            own = {"own": (bucket.least, bucket.length)} if bucket.length else {}
            prefix = {"type": signal.value, **own}
            yield entry("csig_buckets", prefix, "be_bucket", number=bucket.number)


# --- inc.p4 --------------------------------------------------------------------------------------


def _inc(site: SwitchSite, dead: Collection[str]) -> Iterator[Entity]:
    settings = site.settings
    for group in settings.groups:
        tree = tree_of(site.fabric, group, dead, settings.drained) if group.slots else None
        if tree is not None:
            yield from inc_entries(site.fabric, site.switch, group, tree, dead)


# --- permit.p4, lose.p4 --------------------------------------------------------------------------


def _permissions(site: SwitchSite) -> Iterator[Entity]:
    tenants = site.settings.tenants
    ip = site.fabric.ip
    sid_block = segments.BLOCK if site.settings.hosts_steer else 0
    family = "ipv6_" if ip == 6 else ""  # tables and actions without a family are of IPv4
    for port, host in site.host_ports.items():
        if host.name in site.settings.routers:
            continue  # as at a port to a switch
        match = {"standard_metadata.ingress_port": port}
        if ip == 6:
            yield entry("host_ports", match, "NoAction")  # no IPv4 source is right there
        yield entry(
            f"{family}host_ports",
            match,
            f"{family}host",
            address=int(site.fabric.address(host, site.switch)),
            mask=(1 << site.fabric.address(host).max_prefixlen) - 1,
            int_port=UDP_PORT_ROCE if site.settings.telemetry.by_hosts else 0,
            tenants=2 if host in site.fabric.tenants else bool(tenants),
            number=tenants.get(host.name, NOBODY),
            **({"sid_block": sid_block} if ip == 6 else {}),
        )
        if site.settings.has_short_addresses:
            short = int(site.fabric.address(host, site.switch)) & 0xFFFF
            yield entry("sunh_hosts", match, "from_address", address=short)
    if site.host_ports:
        for name, tenant in tenants.items():
            addresses = site.fabric.addresses(site.fabric.node(name))
            for address in dict.fromkeys(addresses):  # of a pair of ports there may be one
                there = {f"hdr.ipv{ip}.dst_addr": int(address)}
                yield entry(f"{family}tenant_hosts", there, "is_of", number=tenant)
    for place, rule in enumerate(site.settings.rules):
        yield entry(
            f"{family}access_list",
            _rule_match(rule, ip),
            "allow" if rule.allow else "deny",
            len(site.settings.rules) - place,
        )


def _rule_match(rule: Rule, ip: int) -> Mapping[str, Match]:
    match = {}
    for key, prefix in (("src_addr", rule.src), ("dst_addr", rule.dst)):
        if prefix is not None:
            network = ip_network(prefix)
            if network.version != ip:
                raise SettingsError(
                    f"access: {prefix} is of IPv{network.version}, and hosts speak IPv{ip} "
                    "(link.ip): name the host, or write a prefix of theirs"
                )
            match[f"hdr.ipv{ip}.{key}"] = (int(network.network_address), int(network.netmask))
    if rule.protocol is not None:
        protocol = "protocol" if ip == 4 else "next_header"
        match[f"hdr.ipv{ip}.{protocol}"] = (rule.protocol, 0xFF)
    for key, port in (("src_port", rule.src_port), ("dst_port", rule.dst_port)):
        if port is not None:
            match[f"meta.{key}"] = (port, 0xFFFF)
    return match


def _losses(site: SwitchSite) -> Iterator[Entity]:
    for loss in site.settings.losses:
        if loss.switch == site.switch.name:
            yield from _loss(loss)


def _loss(loss: Loss) -> Iterator[Entity]:
    port, table, action = (
        ("ingress_port", "receive_losses", "arrival_losses.lose")
        if loss.received
        else ("egress_port", "send_losses", "departure_losses.lose")
    )
    for priority in PRIORITIES if loss.priority is None else (loss.priority,):
        match = {
            f"standard_metadata.{port}": loss.port,
            "meta.priority": priority,
        }
        yield entry(table, match, action, chance=chance_code(loss.share))


def switch_plans(
    fabric: Fabric,
    settings: Settings = USUAL,
    dead: Collection[str] = frozenset(),
    groups: dict[str, Groups] | None = None,
) -> dict[str, SwitchPlan]:
    """Every switch's plan, by its name; links that are called ``dead`` carry nothing.

    ``groups`` remembers switches' numbers of groups from one plan to the next.
    """
    return {
        switch.name: switch_plan(
            fabric,
            switch,
            routes,
            settings,
            None if groups is None else groups.setdefault(switch.name, {}),
            dead=dead,
        )
        for switch, routes in routes_of(fabric, dead, settings.drained).items()
    }


class PlanParts(NamedTuple):
    """A switch's plan: what others are told as well, the same objects in theirs, and its own."""

    alike: tuple[SwitchPlan, ...]
    own: SwitchPlan

    @property
    def plan(self) -> SwitchPlan:
        """All of it."""
        return *chain.from_iterable(self.alike), *self.own


class Plans:
    """The plans of a fabric's switches, all of it being up, in parts.

    What several switches are told alike is one part: routes to so many leaves by a group of the
    same number, or all that follows from their links alone.
    """

    def __init__(self, fabric: Fabric, settings: Settings = USUAL) -> None:
        self._fabric, self._settings = fabric, settings
        self._routes = RouteMap(fabric, drained=settings.drained)
        self._known: dict[Hashable, SwitchPlan] = {}
        self._classes = tuple(_classes(settings))

    def parts(self, switch: Node) -> PlanParts:
        """A switch's plan."""
        site = SwitchSite(self._fabric, switch, self._settings)
        if site.settings.segments or site.settings.steering or site.fabric.tenants:
            routes = tuple(self._routes.of(switch))
            return PlanParts((), switch_plan(site.fabric, switch, routes, site.settings))
        groups: Groups = {}
        routing = tuple(self._routing(site, groups))
        alike = self._shared(_likeness(site), partial(_as_its_like, site))
        own = (
            *self._led(self._routes.own(switch), groups),
            *_neighbours(groups),
            *_inc(site, ()),
            *_by_itself(site),
        )
        return PlanParts((self._classes, *routing, alike), own)

    def _shared(self, key: Hashable, make: Callable[[], Iterable[Entity]]) -> SwitchPlan:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = tuple(make())
        return found

    def _routing(self, site: SwitchSite, groups: Groups) -> Iterator[SwitchPlan]:
        """What leads to others, by groups that are found with it."""
        for hops, places in self._routes.ways(site.switch):
            number = 0
            if len(hops) > 1:
                groups[hops] = number = len(groups) + 1
                links = tuple((hop.port, site.link_now(hop.port).rate_bps) for hop in hops)
                key: Hashable = "group", site.switch.kind, number, links
                yield self._shared(key, partial(_group, site, number, hops))
            for first in range(0, places.bit_length(), _PLACES_A_PART):
                if some := places >> first & _SOME_PLACES:
                    key = "routes", first, some, number or hops
                    yield self._shared(key, partial(self._to, hops, some << first, groups))

    def _to(self, hops: tuple[NextHop, ...], places: Places, groups: Groups) -> Iterator[Entity]:
        """Routes to places."""
        for number in numbers_of(places):
            leaf, prefixes = self._routes.places[number]
            yield from self._led((Route(prefix, hops, leaf) for prefix in prefixes), groups)

    def _led(self, routes: Iterable[Route], groups: Groups) -> Iterator[Entity]:
        for route in routes:
            yield from _led(route, groups, self._settings)

"""From a scenario to what switches and adapters are told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import ip_network
from types import MappingProxyType
from typing import Any, TypeVar

from controller import (
    HopTelemetry,
    LinkSpec,
    Loss,
    Settings,
    SettingsError,
    Steering,
    thresholds,
)
from controller.headroom import headroom, in_cells
from controller.segments import overhead
from controller.tenants import HEADERS_BYTES
from lab.scenario.controls import algorithm_file, values_of
from lab.scenario.model import Fault, Scenario
from lab.scenario.security import CUT_BYTES
from lab.scenario.transport import TransportSettings
from params.access import Rule
from params.classes import CONTROL_PRIORITY, ClassSet
from params.link import Replay
from params.load_balancing import Moves
from params.rates import bps
from topologies import Fabric, Link, Node, NodeKind
from topologies.fabric import MAX_PORT, Speed
from traffic.congestion import Value
from traffic.endpoint import MRC_OPTIONS, EndpointConfig, TransportKind
from traffic.frames import IP_BYTES
from traffic.sue import STORE_BYTES, sue_headers_bytes

REPORT_PORT = MAX_PORT + 1  # by which telemetry reports leave
_ETHERNET_BYTES, _UDP_BYTES = 14, 8
_ROCE_BYTES = 14 + 8 + 12 + 4  # of a data packet, IP aside: Ethernet to BTH, and the ICRC
_METH_BYTES = _TSETH_BYTES = 4
_UET_BYTES = 14 + 8 + 16 + 44 + 4  # Ethernet to SES, credits asked for, and the CRC
RETH_BYTES, IMMEDIATE_BYTES = 16, 4  # of a message's first packet, and of its last
_CONGA_BYTES = 8
_TAG_BYTES = 4
_Number = TypeVar("_Number", int, float)


def controller_settings(scenario: Scenario, fabric: Fabric, tick_ns: float = 1.0) -> Settings:
    """What a controller needs to know besides the graph."""
    _check_classes(scenario)
    link = scenario.link
    host = LinkSpec(bps(link.rate_gbps), link.delay_ns, link.overhead)
    reports = scenario.telemetry.share and scenario.measures.telemetry
    telemetry = HopTelemetry(
        **dict(scenario.telemetry),
        hops=max(1, fabric.longest_way - 1),  # the last takes all of it off
        report_port=REPORT_PORT if reports else None,
        by_hosts=scenario.transport.control.hears_telemetry,
    )
    max_frame = link.mtu + _most_headers_bytes(scenario, telemetry)
    if scenario.classes.trust == "pcp":
        max_frame += _TAG_BYTES
    if scenario.overlay.kind == "vxlan":
        max_frame += HEADERS_BYTES
    if scenario.segments.enabled:
        max_frame += _most_carrier_bytes(scenario, fabric)
    return Settings(
        host_link=host,
        fabric_link=LinkSpec(
            rate_bps=bps(_or(link.fabric_rate_gbps, link.rate_gbps)),
            delay_ns=_or(link.fabric_delay_ns, host.delay_ns),
            overhead=link.overhead,
        ),
        max_frame=max_frame,
        link=link,
        buffer=scenario.buffer,
        trim=scenario.trim,
        pfc=scenario.pfc,
        ecn=scenario.ecn,
        classes=scenario.classes,
        schedule=scenario.schedule,
        lb=scenario.lb,
        entropy_bits=scenario.transport.entropies.bit_length() - 1,
        telemetry=telemetry,
        csig=scenario.csig if _has_csig(scenario) else None,
        losses=losses_of(scenario, fabric),
        routers=frozenset(each.host for each in scenario.topology.outside),
        tenants={
            host: number
            for number, hosts in enumerate(scenario.tenants.values(), 1)
            for host in hosts
            if scenario.overlay.kind == "none"  # or else the fabric knows
        },
        rules=_rules(scenario, fabric),
        segments=scenario.segments.enabled,
        steering=_steering(scenario, fabric),
        hosts_steer=scenario.segments.hosts,
        has_short_addresses=_has_short_addresses(scenario, fabric),
        tick_ns=tick_ns,
        one_way=_one_way(scenario, fabric),
    )


def _has_short_addresses(scenario: Scenario, fabric: Fabric) -> bool:
    """Whether hosts have SUNH in place of IP, by the lower halves of their addresses."""
    if scenario.transport.kind is not TransportKind.SUE:
        return False
    by_short: dict[int, Node] = {}
    for host in fabric.hosts:
        other = by_short.setdefault(int(fabric.address(host)) & 0xFFFF, host)
        if other != host:
            raise SettingsError(
                f"transport.kind sue: {other} and {host} have the same lower half of their "
                f"addresses ({fabric.address(host)}); a domain has fewer than 256 leaves, and no "
                "addresses of others"
            )
    return True


def _one_way(scenario: Scenario, fabric: Fabric) -> dict[str, float]:
    """By direction: what faults leave of its rate that leave the other direction alone."""
    links = {link.name: link for link in fabric.links}
    found: dict[str, float] = {}
    for fault in scenario.faults:
        if fault.action == "slow" and fault.direction and fault.link in links:
            link = links[fault.link]
            way = link.up if fault.direction == "up" else link.down
            found[way] = min(found.get(way, 1.0), fault.share or 1.0)
    return found


def _rules(scenario: Scenario, fabric: Fabric) -> tuple[Rule, ...]:
    """The access list, its hosts by their addresses."""
    if not scenario.access:
        return ()
    by_plane: list[dict[str, str]] = [{} for _ in range(fabric.planes)]
    for host in fabric.hosts:
        for leaf, address in zip(fabric.leaves_of(host), fabric.addresses(host), strict=True):
            by_plane[fabric.plane_of(leaf)][host.name] = str(ip_network(address))
    rules = []
    for rule in scenario.access:
        ends = {end: end_of for end in ("src", "dst") if (end_of := getattr(rule, end)) is not None}
        for addresses in by_plane:
            if all(host in addresses for host in rule.hosts):
                found = {end: addresses.get(end_of, end_of) for end, end_of in ends.items()}
                rules.append(rule.but(**found))
    return tuple(dict.fromkeys(rules))


def _steering(scenario: Scenario, fabric: Fabric) -> tuple[Steering, ...]:
    """What leaves steer, all names being some of this fabric's."""
    tenants = {name: number for number, name in enumerate(scenario.tenants, 1)}
    leaves = [switch.name for switch in fabric.switches if switch.kind is NodeKind.LEAF]
    hosts = [host.name for host in fabric.hosts]
    switches = [switch.name for switch in fabric.switches]
    made = []
    for policy in scenario.segments.policies:
        for key, names, known in (
            ("at", (policy.at,), leaves),
            ("to", (policy.to,), [*leaves, *hosts]),
            ("via", tuple(name for way in policy.via for name in way), switches),
            ("tenant", () if policy.tenant is None else (policy.tenant,), list(tenants)),
        ):
            for name in names:
                if name not in known:
                    raise SettingsError(
                        f"segments.policies: {key}: there is no '{name}'; there are "
                        f"{', '.join(known) or 'none'}"
                    )
        tenant = None if policy.tenant is None else tenants[policy.tenant]
        made.append(Steering(policy.at, policy.to, tenant, policy.via))
    return tuple(made)


def _most_carrier_bytes(scenario: Scenario, fabric: Fabric) -> int:
    """What the longest list adds to a packet."""
    sizes = (len(way) + 2 for policy in scenario.segments.policies for way in policy.via)
    return overhead(max(fabric.longest_way, *sizes, 1))


def lossless_classes(scenario: Scenario) -> ClassSet:
    """The priorities that lose nothing, because their senders are paused or go by credits."""
    return scenario.pfc.priorities if scenario.pfc.enabled or scenario.link.cbfc else ClassSet()


def acks_may_be_lost(scenario: Scenario) -> bool:
    """Whether acknowledgements of a class that loses nothing travel in one that may."""
    lossless = lossless_classes(scenario)
    in_control = scenario.transport.acks == "control"
    return in_control and bool(lossless) and scenario.transport.cnp_priority not in lossless


def _check_classes(scenario: Scenario) -> None:
    """What is cut, or dropped early, may not be lossless, and tells itself from others."""
    _check_cut(scenario)
    trim = scenario.trim
    paused = lossless_classes(scenario)
    for priority in (*trim.cut, trim.priority) if trim.enabled else ():
        if priority in paused:
            raise SettingsError(
                f"trim: class {priority} is paused, or has credits, before it loses anything, and "
                "is never cut; set pfc.enabled=false and link.cbfc=false, or take it out of "
                "pfc.priorities"
            )
    if trim.priority in trim.cut:
        raise SettingsError(
            f"trim.priority: class {trim.priority} is cut itself; what was cut goes on in another"
        )
    taken = scenario.classes.by_dscp
    for key, dscp in (("dscp", trim.dscp), ("last_hop_dscp", trim.last_hop_dscp)):
        if trim.enabled and taken.get(dscp, trim.priority) != trim.priority:
            raise SettingsError(
                f"trim.{key}: DSCP {dscp} is that of class {taken[dscp]}; take one that leads "
                "nowhere yet"
            )
    for priority, curve in scenario.ecn.classes.items():
        if curve.drop and priority in paused:
            raise SettingsError(
                f"ecn.classes.{priority}.drop: class {priority} must not lose anything; leave it "
                "out there, or take the class out of pfc.priorities"
            )


def data_headers_bytes(scenario: Scenario) -> int:
    """What every data packet of RoCEv2 has besides its payload; of SUE a full one."""
    if scenario.transport.kind is TransportKind.SUE:
        return sue_headers_bytes(scenario.link.mtu // STORE_BYTES)
    return IP_BYTES[scenario.link.ip] + _ROCE_BYTES + _csig_bytes(scenario)


def _most_headers_bytes(scenario: Scenario, telemetry: HopTelemetry) -> int:
    """What a frame can have besides its payload, whatever is switched on."""
    if scenario.transport.kind is TransportKind.SUE:
        return data_headers_bytes(scenario) + _CONGA_BYTES
    meth = _METH_BYTES + (_TSETH_BYTES if scenario.transport.timestamps else 0)
    packet = {
        TransportKind.ROCE: _ROCE_BYTES + RETH_BYTES + IMMEDIATE_BYTES,
        TransportKind.MRC: _ROCE_BYTES + meth + RETH_BYTES + IMMEDIATE_BYTES,
        TransportKind.UET: _UET_BYTES + security_bytes(scenario),
    }[scenario.transport.kind]
    around = _CONGA_BYTES + telemetry.most_bytes + _csig_bytes(scenario)
    return IP_BYTES[scenario.link.ip] + packet + around


def security_bytes(scenario: Scenario) -> int:
    """What packets have more because they are encrypted."""
    return scenario.transport.security.more_bytes(scenario.topology.ports)


def _check_cut(scenario: Scenario) -> None:
    """What is left of a cut packet has to tell which it was."""
    trim, security = scenario.trim, scenario.transport.security
    ports = scenario.topology.ports
    least = IP_BYTES[4] + _ETHERNET_BYTES + _UDP_BYTES + security.header_bytes(ports) + CUT_BYTES
    if trim.enabled and security.enabled and trim.size < least:
        raise SettingsError(
            f"trim.size: {trim.size} bytes end within the headers of a packet that is encrypted, "
            f"and nobody could ask for it again; set trim.size={least} at least"
        )


def _has_csig(scenario: Scenario) -> bool:
    return scenario.transport.control.hears_csig


def _csig_bytes(scenario: Scenario) -> int:
    """What data packets have of CSIG."""
    return scenario.csig.tag.bytes if _has_csig(scenario) else 0


def _or(given: _Number | None, usual: _Number) -> _Number:
    return usual if given is None else given


def losses_of(
    scenario: Scenario, fabric: Fabric, rates: Mapping[str, float] = MappingProxyType({})
) -> tuple[Loss, ...]:
    """Where data packets are lost: where they arrive, or, if that is a host, where they leave.

    ``rates`` are those of links that lose more, or less, than they usually do. Where switches speak
    to each other over their links, these lose of every class: a cable knows none.
    """
    loss = scenario.loss
    named = dict.fromkeys(loss.links, loss.rate) | dict(rates)
    made = []
    for link in fabric.links:
        is_last = not link.joins_switches
        usual = loss.rate if is_last and not loss.links else 0.0
        rate = named.get(link.name, 0.0) or usual
        if not rate or is_tried_again(scenario, link):
            continue
        is_bgp = scenario.control.kind == "bgp"
        classes = (None,) if is_bgp else scenario.pfc.priorities
        for priority in classes:
            at_last = Loss(link.b.name, link.b_port, rate, received=False, priority=priority)
            made.append(
                at_last if is_last else Loss(link.a.name, link.a_port, rate, priority=priority)
            )
            if named.get(link.name):
                made.append(Loss(link.b.name, link.b_port, rate, priority=priority))
    return tuple(made)


def is_tried_again(scenario: Scenario, link: Link) -> bool:
    """Whether a link makes good what it loses: then it has to be below that that it loses it."""
    link_level = scenario.link
    return link_level.llr is not Replay.NONE and (link.joins_switches or link_level.llr_hosts)


def adapter_response_ns(scenario: Scenario, cable: LinkSpec, max_frame: int) -> int:
    """How much later than its cable has it something may be heard at a host's link."""
    retry_ns = thresholds.replay_timeout_ns(cable, max_frame) if scenario.link.llr_hosts else 0
    return scenario.pfc.response_ns + retry_ns


def _credits(scenario: Scenario, cable: LinkSpec, max_frame: int) -> dict[str, Any]:
    """What an adapter may send into its leaf's buffer."""
    link, cell = scenario.link, scenario.buffer.cell
    if not link.cbfc:
        return {}
    response_ns = adapter_response_ns(scenario, cable, max_frame)
    size = thresholds.credit(cable, max_frame, response_ns, cell)
    if link.credit is not None:
        size = in_cells(link.credit, cell)
    return {
        "credit_classes": scenario.pfc.priorities.mask,
        "credit_size": size,
        "credit_least": in_cells(max_frame, cell),
        "credit_cell": cell,
        "credit_ask_after": thresholds.ask_after_ns(cable, max_frame, size, response_ns),
    }


def _by_transport(scenario: Scenario, hops: int) -> dict[str, Any]:
    """What RoCEv2 need not be told."""
    kind = scenario.transport.kind
    if not kind.sprays:
        return {} if kind is TransportKind.ROCE else {"transport": kind}
    return {
        "transport": kind,
        "delivery": scenario.transport.delivery,
        "security": int(scenario.transport.security.enabled) or None,
        "headers": scenario.transport.headers,
        "entropy": scenario.transport.entropy,
        "entropies": scenario.transport.entropies,
        **{key: 1 for key in MRC_OPTIONS if getattr(scenario.transport, key)},
        "last_hop_dscp": scenario.trim.last_hop_dscp,
        "has_trimming": int(scenario.trim.enabled),
        "hops": hops,
        "seed": scenario.seed,
    }


def _slows_up(fault: Fault, host: str) -> bool:
    """Whether it slows what a host sends, its pause frames too, and nothing that it receives."""
    is_its = fault.link is not None and fault.link.partition("-")[0] == host
    return is_its and fault.action == "slow" and fault.direction == "up"


def _rx_buffer(scenario: Scenario, host: str, cable: LinkSpec, max_frame: int) -> dict[str, Any]:
    """How an adapter takes what comes, where that is slower than its link."""
    rate_gbps = scenario.transport.receive_gbps
    gbps = rate_gbps.get(host) if isinstance(rate_gbps, dict) else rate_gbps
    if gbps is None:
        return {}
    xoff = scenario.transport.receive_buffer
    pfc = scenario.pfc
    priorities = dict.fromkeys(range(64), 0) | scenario.classes.by_dscp | scenario.trim.by_dscp
    back = min((f.share or 1.0 for f in scenario.faults if _slows_up(f, host)), default=1.0)
    response_ns = adapter_response_ns(scenario, cable, max_frame)
    after = headroom(cable, max_frame, response_ns, 1, back) if pfc.enabled else 0
    return {
        "receive_bps": bps(gbps),
        "receive_room": xoff + max(after, max_frame),
        "receive_xoff": xoff,
        "receive_xon": xoff // 2,
        "pause_classes": pfc.priorities.mask if pfc.enabled else 0,
        "pause_dscps": sum(1 << dscp for dscp in range(64) if priorities[dscp] in pfc.priorities),
    }


def endpoint_config(
    scenario: Scenario,
    host: str,
    cable: LinkSpec,
    round_trip_ns: int,
    max_frame: int,
    hops: int,
    ports: int,
    *,
    is_bonded: bool,
    carries_payload: bool,
) -> EndpointConfig:
    """What a host's adapter is set to."""
    transport = scenario.transport
    is_uet, moves = transport.kind.sprays, scenario.lb.policy.moves
    storms = [
        (fault.at_ns, fault.at_ns + fault.for_ns)
        for fault in scenario.faults
        if fault.action == "storm" and fault.host == host and fault.for_ns
    ]
    return EndpointConfig(
        link_bps=cable.rate_bps,
        ports=ports if ports > 1 else None,
        bonded=int(is_bonded) or None,
        overhead_bytes=cable.overhead,
        mtu=scenario.link.mtu,
        ip=scenario.link.ip,
        payload="pattern" if carries_payload else "none",
        recovery=transport.recovery,
        window=transport.window,
        ack_every=transport.ack_every,
        follow_rate=int(transport.follow_rate) or None,
        by_number=int(transport.by_number) or None,
        control_priority=_unless_usual(transport.cnp_priority),
        reorder=transport.reorder,
        multipath=int(moves is Moves.PACKETS or (is_uet and moves is Moves.FLOWLETS)),
        rto=transport.longest_rto_ns,
        rto_first=transport.first_rto_ns,
        retry_limit=transport.retry_limit,
        acks=transport.acks or ("lossless" if is_uet else "data"),
        lossless=lossless_classes(scenario).mask if is_uet else None,
        **_by_transport(scenario, hops),
        cc=_control_values(transport),
        csig=0 if host in scenario.csig.unaware else _csig_bytes(scenario) or None,
        base_rtt=round_trip_ns,
        **_rx_buffer(scenario, host, cable, max_frame),
        **_credits(scenario, cable, max_frame),
        storm_from=min((begin for begin, _ in storms), default=None),
        storm_until=max((end for _, end in storms), default=None),
    )


def _unless_usual(priority: int) -> int | None:
    return None if priority == CONTROL_PRIORITY else priority


def _control_values(transport: TransportSettings) -> dict[str, Value]:
    """What a congestion control is set to; of what somebody brings, what was made of it."""
    values = values_of(transport, transport.cc)
    if file := algorithm_file(transport):
        from lab.machine.algorithm import built  # which few runs need

        values["pcm_file"] = str(built(file))
    return values


def slowed(fabric: Fabric, settings: Settings, shares: Mapping[str, float]) -> Fabric:
    """The same fabric with some links at a share of their rate."""
    if not shares:
        return fabric

    def speed(link: Link, share: float) -> Speed:
        usual = settings.fabric_link if link.joins_switches else settings.host_link
        rate = link.speed.rate_bps or usual.rate_bps
        return replace(link.speed, rate_bps=max(1, round(rate * share)))

    return fabric.at_speeds(
        {link.name: speed(link, shares[link.name]) for link in fabric.links if link.name in shares}
    )

"""An experiment: a scenario with everything worked out that no engine needs to know better."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from ipaddress import IPv6Address
from typing import NamedTuple

import networkx as nx

from controller import LinkSpec, Settings
from controller.settings import CONTROL_PRIORITY, SettingsError
from controller.tables import PRIORITIES, SwitchSite
from lab.errors import ScenarioError
from lab.scenario.model import Scenario
from lab.scenario.traffic import make_workload
from lab.scenario.translate import (
    controller_settings,
    data_headers_bytes,
    endpoint_config,
    slowed,
)
from lab.scenario.ways import Ends, Helm, Ways
from topologies import Address, Fabric, Link, Node
from traffic.collectives import LocalTransfer, Schedule, TrafficError, local_part
from traffic.endpoint import (
    CongestionControl,
    EndpointPlan,
    QueuePair,
    Transfer,
    TransferKind,
    TransportKind,
)
from traffic.frames import FlowAddress
from traffic.jobs import Workload
from traffic.patterns.flows import udp_source_port

_KINDS = {
    "send": TransferKind.SEND, "receive": TransferKind.RECEIVE, "work": TransferKind.COMPUTE,
}  # fmt: skip
_FIRST_QUEUE_PAIR = 0x100
Path = tuple[int, int, int]  # source, destination and channel: what has a queue pair of its own


class _Place(NamedTuple):
    """Where a rank is."""

    host: Node
    plane: int
    mac: str
    leafs: str  # MAC, where it sends what is not for a neighbour in its own subnet
    address: Address


@dataclass(frozen=True)
class Experiment:
    """A scenario, its fabric, what its switches are told and what its hosts do."""

    scenario: Scenario
    fabric: Fabric
    settings: Settings
    workload: Workload

    @classmethod
    def of(cls, scenario: Scenario) -> Experiment:
        """Work out a scenario."""
        fabric = scenario.fabric()
        try:
            workload = make_workload(scenario.traffic, scenario.site(fabric))
        except TrafficError as error:
            raise ScenarioError(f"scenario '{scenario.name}': traffic: {error}") from None
        for src, dst, _channel in workload.schedule.queue_pairs() if fabric.tenants else ():
            if not fabric.are_joined(fabric.hosts[src], fabric.hosts[dst]):
                raise ScenarioError(
                    f"scenario '{scenario.name}': traffic: {fabric.hosts[src]} has no address that "
                    f"is {fabric.hosts[dst]}'s: they are of different networks",
                    "Let tenants' hosts write to their own, or --set overlay.kind=none.",
                )
        settings = controller_settings(scenario, fabric)
        shares = {
            f"{host}-{fabric.leaf_of(host)}": workload.port_shares[number]
            for number, host in enumerate(fabric.hosts)
            if number in workload.port_shares
        } | scenario.link.slow
        try:
            for activity in workload.schedule.activities:
                settings.classes.dscp_of(activity.priority)
            if _uses_control(scenario):
                settings.classes.dscp_of(CONTROL_PRIORITY)
        except SettingsError as error:
            raise ScenarioError(f"scenario '{scenario.name}': {error}") from None
        return cls(scenario, slowed(fabric, settings, shares), settings, workload)

    @property
    def schedule(self) -> Schedule:
        """All that is sent, and what waits for what."""
        return self.workload.schedule

    def cable(self, link: Link) -> LinkSpec:
        """What a link is made of."""
        return self.port_cable(link.b, link.b_port)

    def port_cable(self, switch: Node, port: int) -> LinkSpec:
        """What hangs at a switch's port."""
        return SwitchSite(self.fabric, switch, self.settings).link(port)

    @cached_property
    def host_links(self) -> dict[Node, Link]:
        """Each host's link, or its first one."""
        return {host: self.fabric.link_at(host, 0) for host in self.fabric.hosts}

    def host_bps(self, host: Node) -> int:
        """What all links of a host bring together."""
        ports = self.fabric.ports(host)
        return sum(self.cable(self.fabric.link_at(host, port)).rate_bps for port in ports)

    def port_rates(self, host: Node) -> dict[int, int]:
        """What each link of a host brings, by its ports, if not all bring the same."""
        return self._port_rates[host]

    @cached_property
    def _port_rates(self) -> dict[Node, dict[int, int]]:
        """The same of all hosts: every queue pair asks."""
        found = {}
        for host in self.fabric.hosts:
            ports = self.fabric.ports(host)
            rates = {port: self.cable(self.fabric.link_at(host, port)).rate_bps for port in ports}
            found[host] = rates if len(set(rates.values())) > 1 else {}
        return found

    @property
    def pausable(self) -> frozenset[int]:
        """The classes that can be told to stand still."""
        return frozenset(PRIORITIES) if self.settings.pfc.asymmetric else self.settings.lossless

    @property
    def packets_per_s(self) -> float:
        """Full ones, in fabric time, when all hosts send at once."""
        bps = sum(self.host_bps(host) for host in self.fabric.hosts)
        return bps / 8 / self.scenario.link.mtu

    @property
    def least_ns(self) -> int:
        """How long it takes at least: whoever sends or receives most has but one link."""
        sent, received = self.schedule.sent_bytes(), self.schedule.received_bytes()
        return max(
            max(sent[rank], received[rank]) * 8 * 10**9 // self.host_bps(host)
            for rank, host in enumerate(self.fabric.hosts)
        )

    def switch_seed(self, switch: Node) -> int:
        """What a switch's random choices follow from: its own, and the same on every engine."""
        return self.scenario.seed << 16 | (self.fabric.switches.index(switch) + 1)

    # --- what hosts are told --------------------------------------------------------------------

    @cached_property
    def _carriers(self) -> dict[Path, Path]:
        """By path: the one whose queue pair it takes."""
        paths = self.schedule.queue_pairs()
        most = self.scenario.transport.queue_pairs
        if most is None:
            return {path: path for path in paths}
        beside: dict[tuple[int, int, int], list[Path]] = {}
        for path in paths:
            beside.setdefault((*path[:2], self._activity_of[path]), []).append(path)
        return {
            path: group[at % most] for group in beside.values() for at, path in enumerate(group)
        }

    @cached_property
    def _numbers(self) -> dict[Path, int]:
        carriers = dict.fromkeys(self._carriers.values())
        return {path: _FIRST_QUEUE_PAIR + 2 * at for at, path in enumerate(carriers)}

    @cached_property
    def _paths_of(self) -> list[list[Path]]:
        """By rank: the paths it sends or receives on."""
        paths: list[list[Path]] = [[] for _ in range(self.schedule.ranks)]
        for path in self._numbers:
            paths[path[0]].append(path)
            paths[path[1]].append(path)
        return paths

    @cached_property
    def _places(self) -> list[list[_Place]]:
        """By rank and port."""
        fabric = self.fabric
        return [
            [
                _Place(
                    host,
                    fabric.plane_of(leaf),
                    fabric.mac(host, leaf),
                    fabric.mac(fabric.leaf_of(host, fabric.plane_of(leaf))),
                    address,
                )
                for leaf, address in zip(fabric.leaves_of(host), addresses, strict=True)
            ]
            for host, addresses in ((host, fabric.addresses(host)) for host in fabric.hosts)
        ]

    @cached_property
    def _activity_of(self) -> dict[Path, int]:
        schedule = self.schedule
        return dict(
            zip(
                zip(schedule.src, schedule.dst, schedule.channel, strict=True),
                schedule.activity,
                strict=True,
            )
        )

    def plan(self, rank: int, *, carries_payload: bool) -> EndpointPlan:
        """What a host has to do."""
        host = self.fabric.hosts[rank]
        cable = self.cable(self.host_links[host])
        return EndpointPlan(
            config=endpoint_config(
                self.scenario,
                host.name,
                replace(cable, rate_bps=max([cable.rate_bps, *self.port_rates(host).values()])),
                self.round_trip_ns,
                self.settings.max_frame,
                self._links_on_the_way,
                len(self.fabric.leaves_of(host)),
                is_bonded=self.fabric.has_pairs,
                carries_payload=carries_payload,
            ),
            queue_pairs=tuple(
                self._queue_pair(path, rank, turn) for turn, path in enumerate(self._paths_of[rank])
            ),
            transfers=tuple(self._transfer(rank, part) for part in local_part(self.schedule, rank)),
        )

    @cached_property
    def _links_on_the_way(self) -> int:
        """On the longest of the shortest ways."""
        return self.fabric.longest_way + 1

    @cached_property
    def round_trip_ns(self) -> int:
        """What a full packet and its answer take over the longest way of an empty fabric."""
        leaves: dict[int, list[Node]] = {}  # by plane
        for leaf in (leaf for host in self.fabric.hosts for leaf in self.fabric.leaves_of(host)):
            leaves.setdefault(self.fabric.plane_of(leaf), []).append(leaf)
        far = (self._far(one)[leaf] for one, *others in leaves.values() for leaf in others)
        return self._round_trip_ns(max(far, default=0))

    @cached_property
    def _known_far(self) -> dict[Node, dict[Node, int]]:
        return {}

    def _far(self, leaf: Node) -> dict[Node, int]:
        """How many links each node is away from a leaf."""
        if leaf not in self._known_far:
            far = nx.single_source_shortest_path_length(self.fabric.graph, leaf)
            self._known_far[leaf] = dict(far)
        return self._known_far[leaf]

    def _round_trip_ns(self, between: int) -> int:
        """With so many links between the hosts' own."""
        frame = self.scenario.link.mtu + data_headers_bytes(self.scenario)
        way = ((2, self.settings.host_link), (between, self.settings.fabric_link))
        return round(
            sum(n * (2 * cable.delay_ns + frame * 8e9 / cable.rate_bps) for n, cable in way)
        )

    @cached_property
    def _path_of(self) -> dict[int, Path]:
        return {number: path for path, number in self._numbers.items()}

    def peer_of(self, queue_pair: int) -> Node:
        """The host at the other end of a queue pair: see `_queue_pair` for its number."""
        src, dst, _ = self._path_of[queue_pair & ~1]
        return self.fabric.hosts[src if queue_pair & 1 else dst]

    def _queue_pair(self, path: Path, rank: int, turn: int) -> QueuePair:
        """A rank's end of a path: an even number where it begins, the next one where it ends.

        At a pair of leaves an adapter's queue pairs take its ports in turn. Planes are chosen by
        what both ends know.
        """
        begins = path[0] == rank
        number = self._numbers[path]
        here, there = path[:2] if begins else path[1::-1]
        activity = self.schedule.activities[self._activity_of[path]]
        ways = {
            port: FlowAddress(
                src_mac=mine.mac,
                dst_mac=self._next_mac(mine, its),
                src=mine.address,
                dst=its.address,
                src_port=self.source_port(path),
                queue_pair=number + 1 if begins else number,
            )
            for port, mine in enumerate(self._places[here])
            for its in self._places[there]
            if mine.plane == its.plane
        }
        if self.scenario.transport.kind is TransportKind.ROCE:
            place = turn if self.fabric.has_pairs else self.source_port(path)
            port, flow = list(ways.items())[place % len(ways) if self.fabric.is_spread else 0]
            planes: tuple[FlowAddress, ...] = ()
        else:
            port, (flow, *others) = 0, ways.values()
            planes = tuple(others)
        return QueuePair(
            number=number if begins else number + 1,
            flow=flow,
            port=port,
            planes=planes,
            rate_bps=self.port_rates(self.fabric.hosts[here]).get(port, 0),
            priority=activity.priority,
            dscp=self.settings.classes.dscp_of(activity.priority),
            control_dscp=self._control_dscp,
            ecn_capable=activity.ecn_capable,
            cc=CongestionControl(self.scenario.transport.cc),
            transport=self.scenario.transport.kind,
            base_rtt_ns=self._base_rtt_ns(path),
            lists=self._lists(here, there),
        )

    @cached_property
    def _ways(self) -> Ways | None:
        """Those that adapters steer by; none if they do not."""
        steers = self.scenario.segments.hosts
        return Ways(self.fabric, self.scenario.transport.entropies) if steers else None

    def _lists(self, here: int, there: int) -> tuple[IPv6Address | None, ...]:
        if self._ways is None:
            return ()
        return self._ways.lists(self.fabric.hosts[here], self.fabric.hosts[there])

    def helm(self) -> Helm:
        """What adapters are told of ways that are drained or dead."""
        hosts = self.fabric.hosts
        pairs: dict[Ends, tuple[Node, Node]] = {}
        for path, number in self._numbers.items():
            src, dst = hosts[path[0]], hosts[path[1]]
            pairs[src, number] = src, dst
            pairs[dst, number + 1] = dst, src
        return Helm(self._ways, pairs)

    def _next_mac(self, here: _Place, there: _Place) -> str:
        """To whom a frame goes first; only tenants' subnets have neighbours."""
        fabric = self.fabric
        return fabric.next_mac(here.host, there.host) if fabric.is_stretched else here.leafs

    def _base_rtt_ns(self, path: Path) -> int:
        """What UET measures delays against; RoCEv2 is not told."""
        if self.scenario.transport.kind is TransportKind.ROCE:
            return 0
        src, dst = (self.fabric.leaf_of(self.fabric.hosts[path[at]]) for at in (0, 1))
        return self._round_trip_ns(self._far(src)[dst])

    @cached_property
    def _control_dscp(self) -> int | None:
        """What takes adapters' own packets to the control class, if any of them is to go there."""
        if not _uses_control(self.scenario):
            return None
        return self.settings.classes.dscp_of(CONTROL_PRIORITY)

    def source_port(self, path: Path) -> int:
        """What makes a path differ from others to a hash."""
        activity = self.schedule.activities[self._activity_of[path]]
        return udp_source_port(path, activity.source_ports, seed=self.scenario.seed)

    def _transfer(self, rank: int, part: LocalTransfer) -> Transfer:
        number = None
        if part.kind == "send":
            number = self._numbers[self._carriers[rank, part.peer, part.channel]]
        elif part.kind == "receive":
            number = self._numbers[self._carriers[part.peer, rank, part.channel]] + 1
        return Transfer(
            id=part.id,
            kind=_KINDS[part.kind],
            queue_pair=number,
            size=part.size,
            delay_ns=part.delay_ns,
            after=part.after,
        )


def _uses_control(scenario: Scenario) -> bool:
    """Whether adapters send packets of their own in the control class."""
    transport = scenario.transport
    return transport.kind.sprays or transport.cc == "dcqcn" or transport.acks == "control"

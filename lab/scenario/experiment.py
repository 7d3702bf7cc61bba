"""An experiment: a scenario with everything worked out that no engine needs to know better."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property
from ipaddress import IPv6Address
from typing import NamedTuple

from pydantic import ValidationError

from controller import LinkSpec, Settings
from controller.segments import Path
from controller.settings import SettingsError
from controller.tables import SwitchSite
from lab.errors import ScenarioError
from lab.scenario.inc import InNetwork
from lab.scenario.model import Scenario, explained
from lab.scenario.security import Keys, Word, domain_of
from lab.scenario.traffic import make_workload
from lab.scenario.translate import (
    controller_settings,
    data_headers_bytes,
    endpoint_config,
    slowed,
)
from lab.scenario.ways import Ends, Helm, Ways
from params.classes import PRIORITIES, ClassSet
from params.data import Data
from params.quantity import summed
from topologies import Fabric, Link, Node
from traffic.collectives import (
    CHUNK_BYTES,
    LocalTransfer,
    Paths,
    Schedule,
    Site,
    TrafficError,
    local_part,
)
from traffic.endpoint import (
    EndpointConfig,
    PairWording,
    TransferKind,
    TransportKind,
    after_lines,
    list_lines,
    transfer_line,
)
from traffic.frames import mac_bytes
from traffic.jobs import Workload
from traffic.patterns.flows import udp_source_port
from traffic.sue import CHANNELS

_KINDS = {
    "send": TransferKind.SEND, "receive": TransferKind.RECEIVE, "work": TransferKind.COMPUTE,
}  # fmt: skip
_FIRST_QUEUE_PAIR = 0x100
# Ports that lead to a peer, and both ends as frames have them there.
_Ports = list[tuple[int, bytes]]


class _Place(NamedTuple):
    """Where a rank is, as it stands in frames."""

    host: Node
    plane: int
    mac: bytes
    leafs: bytes  # MAC, where it sends what is not for a neighbour in its own subnet
    address: bytes


class _Pairs(NamedTuple):
    """Queue pairs, or rather connections: by their turn, which numbers them."""

    path: Sequence[int]  # that it is made for
    source_port: array[int]
    of_path: Sequence[int]  # by path: what it takes
    of_rank: list[array[int]]  # what a rank sends or receives on


class HostPlan(Data):
    """What a host has to do: parts of an experiment, put into words when they are asked for."""

    experiment: Experiment
    rank: int
    config: EndpointConfig

    def lines(self, config: EndpointConfig | None = None) -> Iterator[str]:
        """The plan in the words of `script.h`."""
        return self.experiment.plan_lines(self.rank, config or self.config)


def _workload(scenario: Scenario, site: Site, like: Experiment | None) -> Workload:
    if like is not None:
        known = like.scenario
        if (known.traffic, known.site(like.fabric)) == (scenario.traffic, site):
            return like.workload
    return make_workload(scenario.traffic, site)


class Experiment(Data):
    """A scenario, its fabric, what its switches are told and what its hosts do."""

    scenario: Scenario
    fabric: Fabric
    settings: Settings
    workload: Workload

    @classmethod
    def of(cls, scenario: Scenario, like: Experiment | None = None) -> Experiment:
        """Work out a scenario; one that is known lends its traffic, if that is the same."""
        fabric = scenario.fabric()
        try:
            workload = _workload(scenario, scenario.site(fabric), like)
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
                settings.dscp_of(activity.priority)
            if _uses_control(scenario):
                settings.dscp_of(scenario.transport.cnp_priority)
        except SettingsError as error:
            raise ScenarioError(f"scenario '{scenario.name}': {error}") from None
        in_network = InNetwork.of(workload.schedule, fabric, scenario.inc)
        if in_network.groups:
            _check_in_network(scenario)
        settings = replace(settings, groups=in_network.groups)
        made = cls(scenario, slowed(fabric, settings, shares), settings, workload)
        if scenario.transport.kind is TransportKind.SUE:
            for rank in range(workload.schedule.ranks):
                made._check_channels(rank)
        return made

    @property
    def schedule(self) -> Schedule:
        """All that is sent, and what waits for what."""
        return self.workload.schedule

    @property
    def program_parts(self) -> tuple[str, ...]:
        """What the fabric program has to have that it has not by itself, as its sources call it."""
        return ("INC",) if self.settings.groups else ()

    def cable(self, link: Link) -> LinkSpec:
        """What a link is made of."""
        return self.port_cable(link.b, link.b_port)

    def port_cable(self, switch: Node, port: int) -> LinkSpec:
        """What hangs at a switch's port."""
        return SwitchSite(self.fabric, switch, self.settings).link(port)

    @cached_property
    def in_network(self) -> InNetwork:
        """The collectives that switches carry out."""
        return InNetwork.of(self.schedule, self.fabric, self.scenario.inc)

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
    def pausable(self) -> ClassSet:
        """The classes that can be told to stand still."""
        return ClassSet(PRIORITIES) if self.settings.pfc.asymmetric else self.settings.lossless

    @property
    def packets_per_s(self) -> float:
        """Full ones, in fabric time, when all hosts send at once."""
        bps = sum(self.host_bps(host) for host in self.fabric.hosts)
        return bps / 8 / self.scenario.link.mtu

    @property
    def least_ns(self) -> int:
        """How long it takes at least: whoever sends or receives most has but one link."""
        sent, received = self.schedule.sent_bytes(), self.schedule.received_bytes()
        summed_up = self.in_network.bytes
        return max(
            (max(sent[rank], received[rank]) + summed_up.get(rank, 0))
            * 8
            * 10**9
            // self.host_bps(host)
            for rank, host in enumerate(self.fabric.hosts)
        )

    def switch_seed(self, switch: Node) -> int:
        """What a switch's random choices follow from: its own, and the same on every engine."""
        return self.scenario.seed << 16 | self._switch_numbers[switch]

    @cached_property
    def _switch_numbers(self) -> dict[Node, int]:
        return {switch: number for number, switch in enumerate(self.fabric.switches, 1)}

    # --- what hosts are told --------------------------------------------------------------------

    @cached_property
    def _paths(self) -> Paths:
        return Paths.taken(self.schedule)

    @cached_property
    def _pairs(self) -> _Pairs:
        """A path has one of its own, unless that is more than there may be.

        Of scale-up Ethernet all paths of a class from one to another are one virtual channel.
        """
        paths, activities = self._paths, self.schedule.activities
        is_sue = self.scenario.transport.kind is TransportKind.SUE
        most = 1 if is_sue else self.scenario.transport.queue_pairs
        path: Sequence[int] = range(len(paths))
        of_path: Sequence[int] = path
        if most is not None:
            beside: dict[tuple[int, int, int], list[int]] = {}
            for number, (src, dst, which) in enumerate(
                zip(paths.src, paths.dst, paths.activity, strict=True)
            ):
                of = activities[which].priority if is_sue else which
                beside.setdefault((src, dst, of), []).append(number)
            turns: dict[int, int] = {}  # by the first path of each
            of_path = array("i", path)
            for group in beside.values():
                for at, number in enumerate(group):
                    of_path[number] = turns.setdefault(group[at % most], len(turns))
            path = array("i", turns)
        of_rank = [array("i") for _ in range(self.schedule.ranks)]
        ports = array("H")
        for turn, number in enumerate(path):
            of_rank[paths.src[number]].append(turn)
            of_rank[paths.dst[number]].append(turn)
            activity = self.schedule.activities[paths.activity[number]]
            ports.append(
                udp_source_port(paths[number], activity.source_ports, seed=self.scenario.seed)
            )
        return _Pairs(path, ports, of_path, of_rank)

    @cached_property
    def _places(self) -> list[list[_Place]]:
        """By rank and port."""
        fabric = self.fabric
        return [
            [
                _Place(
                    host,
                    fabric.plane_of(leaf),
                    mac_bytes(fabric.mac(host, leaf)),
                    mac_bytes(fabric.mac(fabric.leaf_of(host, fabric.plane_of(leaf)))),
                    address.packed,
                )
                for leaf, address in zip(fabric.leaves_of(host), addresses, strict=True)
            ]
            for host, addresses in ((host, fabric.addresses(host)) for host in fabric.hosts)
        ]

    def plan(self, rank: int, *, carries_payload: bool) -> HostPlan:
        """What a host has to do."""
        host = self.fabric.hosts[rank]
        cable = self.cable(self.host_links[host])
        if rates := self.port_rates(host):
            cable = replace(cable, rate_bps=max(cable.rate_bps, *rates.values()))
        name = host.name if self._has_unlike_hosts else self.fabric.hosts[0].name
        ports = len(self.fabric.leaves_of(host))
        try:
            config = self._config(name, cable, ports, carries_payload=carries_payload)
        except ValidationError as error:
            raise ScenarioError(f"{host}: {explained(error, EndpointConfig)}") from None
        return HostPlan(self, rank, config)

    @property
    def _has_unlike_hosts(self) -> bool:
        """Whether adapters differ in more than their links."""
        scenario = self.scenario
        by_host = isinstance(scenario.transport.receive_gbps, dict)
        return by_host or bool(scenario.faults or scenario.csig.unaware)

    @cached_property
    def _config(self) -> Callable[..., EndpointConfig]:
        """What adapters are set to that have such links."""

        @cache
        def config(
            name: str, cable: LinkSpec, ports: int, *, carries_payload: bool
        ) -> EndpointConfig:
            return endpoint_config(
                *(self.scenario, name, cable, self.round_trip_ns, self.settings.max_frame),
                *(self._links_on_the_way, ports),
                is_bonded=self.fabric.has_pairs,
                carries_payload=carries_payload,
            )

        return config

    def _check_channels(self, rank: int) -> None:
        """Between two XPUs there are few."""
        pairs, paths = self._pairs, self._paths
        ends = (
            (paths.src[each], paths.dst[each])
            for each in map(pairs.path.__getitem__, pairs.of_rank[rank])
        )
        peers = Counter(dst if src == rank else src for src, dst in ends)
        if any(count > CHANNELS for count in peers.values()):
            raise ScenarioError(
                f"scenario '{self.scenario.name}': traffic is of too many classes: two XPUs have "
                f"{CHANNELS} virtual channels between them, and a class takes one each way",
                f"Let it be of {CHANNELS // 2} classes (priority), or take another transport.kind.",
            )

    def plan_lines(self, rank: int, config: EndpointConfig) -> Iterator[str]:
        """The same in the endpoint's words."""
        parts = list(local_part(self.schedule, rank))
        edges = sum(len(part.after) for part in parts)
        yield config.line(len(self._pairs.of_rank[rank]), len(parts), edges)
        if self._keys is not None:
            yield from self._keys.first_lines(rank)
        yield from self._pair_lines(rank)
        yield from self.in_network.job_lines(rank, self.settings.dscp_of, self.round_trip_ns)
        for part in parts:
            if part.kind == "network":
                yield self.in_network.line(part)
                continue
            yield transfer_line(
                _KINDS[part.kind], part.id, self._end(part), part.size, part.delay_ns
            )
        for part in parts:
            yield from after_lines(part.id, part.after)

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
    def _far(self) -> Callable[[Node], dict[Node, int]]:
        """How many links each node is away from a leaf."""
        return cache(self.fabric.far_from)

    def _round_trip_ns(self, between: int) -> int:
        """With so many links between the hosts' own."""
        frame = self.scenario.link.mtu + data_headers_bytes(self.scenario)
        way = ((2, self.settings.host_link), (between, self.settings.fabric_link))
        return round(
            summed(n * (2 * cable.delay_ns + frame * 8e9 / cable.rate_bps) for n, cable in way)
        )

    def peer_of(self, queue_pair: int) -> Node:
        """The host at the other end of a queue pair: see `_end` for its number."""
        path = self._pairs.path[(queue_pair - _FIRST_QUEUE_PAIR) // 2]
        src, dst, _ = self._paths[path]
        return self.fabric.hosts[src if queue_pair & 1 else dst]

    def _pair_lines(self, rank: int) -> Iterator[str]:
        """A rank's ends of its queue pairs.

        At a pair of leaves an adapter's queue pairs take its ports in turn. Planes are chosen by
        what both ends know.
        """
        pairs, paths, fabric = self._pairs, self._paths, self.fabric
        rates = self.port_rates(fabric.hosts[rank])
        kind_of = self.scenario.transport.kind
        is_roce, paces = not kind_of.sprays, kind_of is TransportKind.ROCE
        ways_to = cache(lambda peer: self._joined(rank, peer))
        wording = cache(self._wording)
        for place, turn in enumerate(pairs.of_rank[rank]):
            path, source_port = pairs.path[turn], pairs.source_port[turn]
            begins = paths.src[path] == rank
            peer = paths.dst[path] if begins else paths.src[path]
            ways: _Ports = ways_to(peer)
            port, planes = 0, b""
            if not is_roce:
                planes = b"".join(ends for _, ends in ways[1:])
            elif fabric.has_pairs:
                port = place % len(ways)
            else:
                port = self._way_of(source_port, len(ways))
            used, ends = ways[port]
            used = used if is_roce else 0
            rtt_ns = 0 if is_roce else self._base_rtt_ns(rank, peer)
            activity = paths.activity[path]
            sharers = self._sharers(activity, paths.src[path], paths.dst[path])
            rate = rates.get(used, 0)
            if paces and sharers > 1:
                link = fabric.link_at(fabric.hosts[rank], used)
                rate = self.cable(link).rate_bps // sharers
            kind = wording(activity, used, rate, rtt_ns, self._sdi(activity, paths.src[path]))
            number = _end(turn, begins)
            yield kind.line(number, _end(turn, not begins), ends, source_port, planes)
            yield from list_lines(number, self._lists(rank, peer))

    def _sharers(self, activity: int, src: int, dst: int) -> int:
        """How many channels of a collective share a port evenly; 1 if none does."""
        collective = self.schedule.activities[activity].collective
        return 1 if collective is None else collective.sharers(src, dst)

    def _way_of(self, source_port: int, ways: int) -> int:
        """Which of the planes that join two hosts a queue pair uses."""
        return source_port % ways if self.fabric.is_spread else 0

    def plane_of(self, number: int) -> int | None:
        """The only plane that a transfer goes by; none if that may be any."""
        fabric, schedule = self.fabric, self.schedule
        if fabric.has_pairs or self.scenario.transport.kind.sprays:
            return None
        src, dst = schedule.src[number], schedule.dst[number]
        source_port = self._pairs.source_port[self._pairs.of_path[self._paths.of[number]]]
        planes = fabric.planes_of(fabric.hosts[src], fabric.hosts[dst])
        return planes[self._way_of(source_port, len(planes))]

    def _joined(self, here: int, there: int) -> _Ports:
        """Between two ranks."""
        ways = {
            port: self._next_mac(mine, its) + mine.mac + mine.address + its.address
            for port, mine in enumerate(self._places[here])
            for its in self._places[there]
            if mine.plane == its.plane
        }
        return list(ways.items())

    def _domain(self, activity: int, src: int) -> str:
        """The secure domain that messages of an activity are of."""
        host = self.fabric.hosts[src].name
        return domain_of(self.schedule.activities[activity], host, self.scenario.tenants)

    @cached_property
    def _keys(self) -> Keys | None:
        """Those of secure domains; none if nothing is encrypted."""
        if not self.scenario.transport.security.enabled:
            return None
        hosts: dict[str, set[int]] = {}
        paths = self._paths
        for path in self._pairs.path:
            src = paths.src[path]
            name = self._domain(paths.activity[path], src)
            hosts.setdefault(name, set()).update((src, paths.dst[path]))
        return Keys(self.scenario.seed, hosts)

    def _sdi(self, activity: int, src: int) -> int:
        """A queue pair's secure domain; 0: nothing is encrypted."""
        return 0 if self._keys is None else self._keys.sdi[self._domain(activity, src)]

    def key_lines(self, word: Word) -> Iterator[tuple[Node, str]]:
        """What hosts are told of keys."""
        for rank, line in self._keys.lines(word) if self._keys is not None else ():
            yield self.fabric.hosts[rank], line

    @property
    def secure_domains(self) -> int:
        """How many there are."""
        return 0 if self._keys is None else len(self._keys.sdi)

    def _wording(self, number: int, port: int, rate_bps: int, rtt_ns: int, sdi: int) -> PairWording:
        """What an activity's queue pairs have in common at a port."""
        activity, transport = self.schedule.activities[number], self.scenario.transport
        return PairWording.of(
            self.scenario.link.ip,
            transport=transport.kind,
            cc=transport.cc,
            priority=activity.priority,
            rate_bps=rate_bps,
            base_rtt_ns=rtt_ns,
            dscp=self.settings.dscp_of(activity.priority),
            control_dscp=self._control_dscp,
            ecn_capable=activity.ecn_capable,
            port=port,
            sdi=sdi,
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

    def path_of(self, here: Node, there: Node, entropy: int) -> Path:
        """The switches that an entropy goes by from host to host, where adapters steer."""
        return () if self._ways is None else self._ways.path(here, there, entropy)

    def helm(self) -> Helm:
        """What adapters are told of ways that are drained or dead."""
        hosts = self.fabric.hosts
        pairs: dict[Ends, tuple[Node, Node]] = {}
        for turn, path in enumerate(self._pairs.path if self._ways else ()):
            src, dst = hosts[self._paths.src[path]], hosts[self._paths.dst[path]]
            pairs[src, _end(turn, begins=True)] = src, dst
            pairs[dst, _end(turn, begins=False)] = dst, src
        return Helm(self._ways, pairs)

    def _next_mac(self, here: _Place, there: _Place) -> bytes:
        """To whom a frame goes first; only tenants' subnets have neighbours."""
        fabric = self.fabric
        if not fabric.is_stretched:
            return here.leafs
        return mac_bytes(fabric.next_mac(here.host, there.host))

    def _base_rtt_ns(self, here: int, there: int) -> int:
        """What UET measures delays against; RoCEv2 is not told."""
        one, other = (self.fabric.leaf_of(self.fabric.hosts[rank]) for rank in (here, there))
        return self._round_trip_ns(self._far(one)[other])

    @cached_property
    def _control_dscp(self) -> int | None:
        """What takes adapters' own packets to the control class, if any of them is to go there."""
        if not _uses_control(self.scenario):
            return None
        return self.settings.dscp_of(self.scenario.transport.cnp_priority)

    def _end(self, part: LocalTransfer) -> int | None:
        """The queue pair's end that a transfer is at."""
        if part.kind == "work":
            return None
        return _end(self._pairs.of_path[self._paths.of[part.id]], part.kind == "send")


def _end(turn: int, begins: bool) -> int:
    """The number of a queue pair where it begins, or of its other end."""
    return _FIRST_QUEUE_PAIR + 2 * turn + (not begins)


def _check_in_network(scenario: Scenario) -> None:
    """What collectives in the network do not go with."""
    vain = {
        f"link.mtu is {scenario.link.mtu}: a packet of theirs carries {CHUNK_BYTES} bytes":
            scenario.link.mtu < CHUNK_BYTES,
        "topology: a tree is of one fabric, to which hosts have one port":
            scenario.topology.ports > 1 or scenario.topology.is_split,
        "link.cbfc: what ends in a sum would give no credit back": scenario.link.cbfc,
        "overlay.kind: switches do not see into tunnels": scenario.overlay.kind == "vxlan",
        "transport.endpoint: the scapy endpoint has none": scenario.transport.endpoint == "scapy",
        "transport.kind: scale-up Ethernet has none": scenario.transport.kind is TransportKind.SUE,
        "transport.security: switches cannot add up what they cannot read":
            scenario.transport.security.enabled,
    }  # fmt: skip
    for what, is_asked in vain.items():
        if is_asked:
            raise ScenarioError(
                f"scenario '{scenario.name}': traffic: algorithm in-network: {what}",
                "Leave that out, or take another algorithm, such as ring.",
            )


def _uses_control(scenario: Scenario) -> bool:
    """Whether adapters send packets of their own in the control class."""
    transport = scenario.transport
    return transport.kind.sprays or transport.control.hears_notices or transport.acks == "control"

"""Scenarios: what to build and what to run on it, as YAML that is checked before anything starts.

An unknown key is refused with the nearest known one; sizes may be written ``16KB`` or ``4MB``
(powers of ten; ``KiB`` and ``MiB`` are powers of two), times ``50us`` or ``3ms``.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    Field,
    SerializeAsAny,
    ValidationError,
    field_validator,
    model_validator,
)

from controller.asics import ASICS
from lab.errors import ScenarioError
from lab.scenario.keys import Key, Kinds, keys_of, nearest, nearest_key
from lab.scenario.questions import Question
from lab.scenario.topology import TOPOLOGIES, DualTor, File, LeafSpine, Rail, Topology
from lab.scenario.traffic import KINDS, AllPairs, read_traffic
from lab.scenario.transport import EACH, ONE, TransportSettings
from params.access import Rule
from params.buffer import Buffer
from params.classes import Classes
from params.csig import Csig
from params.energy import EnergyModel
from params.inc import Inc
from params.link import LinkLevel, Replay
from params.load_balancing import LoadBalancing, Moves, Policy
from params.marking import Ecn
from params.pfc import Pfc
from params.rates import LinkGbps
from params.schedule import Schedule
from params.section import Section
from params.shares import Share
from params.telemetry import Format, Telemetry
from params.trim import Trim
from params.units import DurationNs
from topologies import Fabric, IpVersion, Link, Node
from traffic.collectives import Site, Spec, complaint
from traffic.endpoint import Delivery, Entropy, TransportKind
from traffic.sue import STORE_BYTES, WINDOW_MAX

_MAX_LISTED = 16  # of what is wrong with a scenario
ALL_LINKS = "all"  # in place of links' names


class _Cables(Section):
    """Cables; those between switches are like those to hosts unless they are given."""

    rate_gbps: LinkGbps = 100
    """The rate of a link."""
    delay_ns: DurationNs = Field(default=1000, ge=0, le=10**9)
    """How long a bit takes from one end to the other."""
    fabric_rate_gbps: LinkGbps | None = None
    """The rate of links between switches, if it differs."""
    fabric_delay_ns: DurationNs | None = Field(default=None, ge=0, le=10**9)
    """The delay of links between switches, if it differs."""
    ip: IpVersion = 4
    """Which version of IP hosts speak and switches route, 4 or 6."""
    mtu: int = Field(default=4096, ge=256, le=9000, multiple_of=8)
    """The path MTU: payload bytes in a packet."""
    overhead: int = Field(default=24, ge=0, le=1000)
    """Bytes that the wire takes around each frame: preamble and start, FCS, gap. Other simulators
    leave them out."""
    slow: dict[str, Annotated[float, Field(ge=0.001, le=1)]] = {}
    """Links that have only a share of their rate, such as {leaf1-spine1: 0.25}."""


class LinkSettings(LinkLevel, _Cables):
    """Cables, and what their ends do about losses."""


class LossSettings(Section):
    """Data packets lost at random where they arrive."""

    rate: Share = 0
    """The probability that a packet is lost."""
    links: tuple[str, ...] = ()
    """Where, both ways; without names on the last link to each host: every packet once, or
    both ways where hosts' links try again."""


class MeasureSettings(Section):
    """What a run keeps besides its figures: the less, the lighter it is."""

    flows: bool = True
    """Every message's times: flows.csv, work.csv and what is drawn of them."""
    series: bool = True
    """Queues, pauses, marks and drops over time: timeseries.csv and what is drawn of it."""
    series_ns: DurationNs | None = Field(default=None, ge=1)
    """How often these are noted; without it every microsecond, on Mininet as often as is light."""
    telemetry: bool = True
    """What telemetry reports tell, if int.share makes packets carry any."""
    pcap: tuple[str, ...] = ()
    """Links whose frames are kept, such as [leaf1-spine2]; [all] is every one."""


class ControlSettings(Section):
    """Who tells switches where to send what."""

    kind: Literal["p4runtime", "bgp"] = "p4runtime"
    """One controller that knows the fabric, or BGP between the switches (FRR; on Mininet only)."""
    bfd_ms: int = Field(default=300, ge=0, le=60_000)
    """How often neighbours that speak BGP say that they live, in the machine's time: three times in
    vain and they count as dead (BFD). 0: only silence for nine seconds tells."""


class OverlaySettings(Section):
    """How tenants are kept apart."""

    kind: Literal["none", "vxlan"] = "none"
    """vxlan: each tenant has a network of its own, in VXLAN between leaves, and counts its hosts as
    if there were no others, so that all have the same addresses; none: all share the fabric's, and
    switches look up who may speak to whom."""
    subnets: Literal["leaf", "tenant"] = "leaf"
    """Of VXLAN: whether a tenant's hosts of one leaf are a subnet, and leaves route between these,
    or all of its hosts are one, in which leaves bridge."""


class SegmentPolicy(Section):
    """What a leaf steers, and by which ways."""

    at: str
    """The leaf that puts the lists on, such as leaf1."""
    to: str
    """To where: a host, h5, or a leaf and all its hosts, leaf2."""
    tenant: str | None = None
    """Whose packets; without it everybody's."""
    via: tuple[tuple[str, ...], ...] = ()
    """Ways, each by the switches between the two leaves, such as [[spine1], [spine2]]; flows choose
    by their hash. Without it all of the shortest."""


class SegmentSettings(Section):
    """Steering by SRv6 micro-segments (uSID): leaves write into packets where they are to go."""

    enabled: bool = False
    """Whether switches have micro-segments, and routes to each other's."""
    hosts: bool = False
    """Whether adapters put lists on, too: each entropy of a sprayed connection is one of the
    shortest ways then, named switch by switch; one that is drained or dead is denied to them."""
    policies: tuple[SegmentPolicy, ...] = ()
    """What is steered; of two policies of a leaf for the same place and tenant the first counts."""

    @model_validator(mode="after")
    def _check(self) -> SegmentSettings:
        for key in ("policies", "hosts"):
            if getattr(self, key) and not self.enabled:
                raise ValueError(f"{key} need micro-segments: set enabled to true")
        return self


_LINK, _HOST, _SWITCH, _PART, _PLANE = "link", "host", "switch", "part", "plane"
_CHANCES = "lose", "corrupt", "duplicate", "reorder"
# What faults happen to: one of these.
_SUFFERERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("down", "up"), (_LINK, _SWITCH, _PLANE)),
    **dict.fromkeys(("slow", *_CHANCES), (_LINK,)),
    **dict.fromkeys(("drain", "undrain"), (_LINK, _SWITCH)),
    "storm": (_HOST,),
    "restart": (_SWITCH,),
    "restart-bgp": (_SWITCH,),
    "halt": (_HOST, _PART),
}


class Fault(Section):
    """Something that happens at a time."""

    at_ns: DurationNs = Field(ge=0)
    """When; a cable that dies at 0 was dead before, and routes lead round it from the start."""
    action: Literal[
        "down", "up", "slow", "lose", "corrupt", "duplicate", "reorder", "storm", "restart", "halt",
        "restart-bgp", "drain", "undrain",
    ]  # fmt: skip
    """A link, all links of a switch or of a plane go down, or up; a link is slow, loses, corrupts,
    doubles or reorders; who has another way leaves a link, or all links of a switch, so that
    nothing is lost (drain), or uses them again (undrain); an adapter pauses who sends (storm); a
    switch starts again with empty tables, or its BGP (restart-bgp) with none of what it knew; a
    host or another part stops (halt)."""
    link: str | None = None
    """Which link it happens to, such as leaf1-spine2."""
    share: float | None = Field(default=None, ge=1e-6, le=1)
    """How much of its rate a slow link has left, both ways unless direction says which."""
    direction: Literal["up", "down"] | None = None
    """Which way alone a link is slow: up, away from hosts, or down, towards them."""
    rate: Share | None = None
    """The probability that a packet on the link is lost, corrupted, doubled or late, both ways."""
    late_ns: DurationNs | None = Field(default=None, ge=1, le=10**9)
    """How much later than its turn a reordered packet comes; without it 5 us."""
    host: str | None = None
    """Which host storms or stops."""
    switch: str | None = None
    """Which switch goes down, or starts again: its packets are lost, its tables empty until the
    controller has noticed, which takes reroute_ns."""
    plane: int | None = Field(default=None, ge=1)
    """Which plane goes down, the first being 1: all of its links, those to hosts too."""
    part: Literal["controller", "collector"] | None = None
    """What stops, if it is no host: who tells switches, or who takes telemetry reports."""
    for_ns: DurationNs | None = Field(default=None, ge=1)
    """How long it lasts; without it for good. A storm always ends."""

    @model_validator(mode="after")
    def _check(self) -> Fault:
        sufferers = _LINK, _HOST, _SWITCH, _PART, _PLANE
        given = [name for name in sufferers if getattr(self, name) is not None]
        wanted = _SUFFERERS[self.action]
        if len(given) != 1 or given[0] not in wanted:
            raise ValueError(
                f"{self.action} happens to a {' or a '.join(wanted)}: name that, and nothing else"
            )
        if (self.rate is not None) != (self.action in _CHANCES):
            raise ValueError(
                f"rate is a probability: give it with {', '.join(_CHANCES)}, and only there"
            )
        if self.late_ns is not None and self.action != "reorder":
            raise ValueError(
                "late_ns is how late packets come: give it with reorder, and only there"
            )
        if (self.share is not None) != (self.action == "slow"):
            raise ValueError(
                "share is what a slow link has left: give it with slow, and only there"
            )
        if self.direction is not None and self.action != "slow":
            raise ValueError(
                "direction is which way a link is slow: give it with slow, and only there"
            )
        if self.action == "storm" and self.for_ns is None:
            raise ValueError("say how long the storm lasts: for_ns")
        if self.action in ("up", "restart", "restart-bgp", "undrain") and self.for_ns is not None:
            raise ValueError(f"{self.action} happens at once: leave out for_ns")
        return self


class Scenario(Section):
    """One experiment."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    """What it is called."""
    about: str = ""
    """What it shows and what to watch."""
    question: Question | None = None
    """What its report answers first: who suffers, who waits for whom, what something costs, with
    what speed all goes, whether it is lossless, or whether traffic is in balance; without it
    whatever explains most."""
    topology: Topology = LeafSpine()
    """Which switches and hosts there are, and how they are cabled."""
    link: LinkSettings = LinkSettings()
    """What cables are like."""
    buffer: Buffer = Buffer()
    """What memory switches have."""
    trim: Trim = Trim()
    """Trimming: headers instead of losses."""
    pfc: Pfc = Pfc()
    """Priority flow control: pause frames instead of losses."""
    ecn: Ecn = Ecn()
    """Explicit congestion notification: marks instead of losses."""
    classes: Classes = Classes()
    """Traffic classes: which priority a packet has."""
    schedule: Schedule = Schedule()
    """Scheduling: which class a port serves next, and how fast."""
    lb: LoadBalancing = LoadBalancing()
    """Load balancing: which of several ways a packet takes."""
    transport: TransportSettings = TransportSettings()
    """What adapters do."""
    traffic: SerializeAsAny[Spec] = AllPairs()
    """Who sends what to whom, and when."""
    tenants: dict[str, tuple[str, ...]] = {}
    """Hosts by tenant, such as {blue: [h1, h2]}: packets between tenants are dropped."""
    overlay: OverlaySettings = OverlaySettings()
    """Tenants' networks."""
    segments: SegmentSettings = SegmentSettings()
    """Steering by micro-segments."""
    access: tuple[Rule, ...] = ()
    """The access list of all switches: of its rules the first that matches a packet wins."""
    loss: LossSettings = LossSettings()
    """Packets lost as a bad cable loses them."""
    telemetry: Telemetry = Field(default=Telemetry(), alias="int")
    """In-band network telemetry (INT)."""
    csig: Csig = Csig()
    """Congestion signalling (CSIG)."""
    inc: Inc = Inc()
    """Collectives in the network (INC)."""
    measures: MeasureSettings = MeasureSettings()
    """What is kept of a run: time series, messages, telemetry, captures."""
    energy: EnergyModel = EnergyModel()
    """What joules are worked out by."""
    faults: tuple[Fault, ...] = ()
    """What happens meanwhile."""
    reroute_ns: DurationNs | None = Field(default=None, ge=0, le=10**12)
    """How long the controller takes to lead routes round a dead or slow cable; without it never."""
    control: ControlSettings = ControlSettings()
    """Routing: a controller's, or the switches' own."""
    limit_ns: DurationNs = Field(default=10**10, ge=1)
    """When a run that goes nowhere is ended."""
    seed: int = Field(default=1, ge=0, lt=2**32)
    """All that is random follows from it."""

    @model_validator(mode="before")
    @classmethod
    def _profile(cls, data: Any) -> Any:
        """Fill in what a buffer's profile says, so that a scenario tells all that it is about."""
        buffer = data.get("buffer") if isinstance(data, dict) else None
        profile = buffer.get("profile") if isinstance(buffer, dict) else None
        if not isinstance(buffer, dict) or not isinstance(profile, str) or profile not in ASICS:
            return data
        asic = ASICS[profile]
        memory: dict[str, Any] = {
            "bytes": asic.pool + asic.headroom_pool,
            "alpha": asic.alpha,
            "lossy_alpha": asic.lossy_alpha,
            "reserved": asic.reserved,
            "headroom_pool": asic.headroom_pool,
            "cell": asic.cell,
        }
        ends: dict[str, Any] = {"xon": asic.xon, "xon_gap": asic.xon_offset, "xon_follows": True}
        pauses = data.get("pfc", {})
        if isinstance(pauses, dict):
            pauses = ends | pauses
        return {**data, "buffer": memory | buffer, "pfc": pauses}

    @field_validator("topology", mode="before")
    @classmethod
    def _topology(cls, data: object) -> object:
        """Choose the kind first, so that what is wrong is said of it alone."""
        if isinstance(data, BaseModel):
            return data
        if not isinstance(data, dict):
            raise ScenarioError(
                f"topology: it must be a section, with keys and values (got {data!r})",
                f"Such as {{kind: leaf-spine, leaves: 4}}; the kinds are {', '.join(TOPOLOGIES)}.",
            )
        kind = data.get("kind", "leaf-spine")
        if not isinstance(kind, str) or kind not in TOPOLOGIES:
            known = list(TOPOLOGIES)
            raise ScenarioError(f"topology.kind: there is no '{kind}'" + nearest(str(kind), known))
        try:
            return TOPOLOGIES[kind].model_validate(data)
        except ValidationError as error:
            raise ScenarioError(explained(error, TOPOLOGIES[kind], "topology.")) from None

    @model_validator(mode="after")
    def _check(self) -> Scenario:
        storms = [fault.host for fault in self.faults if fault.action == "storm"]
        if storms and self.transport.endpoint == "scapy":
            raise ValueError(
                f"faults: the scapy endpoint cannot be made to send a storm ({storms[0]}): leave "
                "the storm out, or take transport.endpoint core"
            )
        if self.link.credit is not None and not self.link.cbfc:
            raise ValueError("link.credit is what link.cbfc grants: set that, or leave it out")
        if self.link.cbfc and self.transport.endpoint == "scapy":
            raise ValueError(
                "link.cbfc: the scapy endpoint knows no credits; take transport.endpoint core"
            )
        if self.link.cbfc and self.transport.receive_gbps is not None:
            raise ValueError(
                "link.cbfc: adapters grant no credits, so with transport.receive_gbps they would "
                "lose packets; leave one of them out"
            )
        if self.link.llr is not Replay.NONE and any(f.action == "restart" for f in self.faults):
            raise ValueError(
                "link.llr: a switch that starts again would number its frames anew, which the "
                "other end of a link cannot know; leave out the restart, or set link.llr to none"
            )
        if self.link.llr_hosts:
            self._check_llr_hosts()
        ports = self.topology.ports
        if ports > 1:
            self._check_ports(ports)
        self._check_segments()
        if self.control.kind == "bgp" and self.link.cbfc:
            raise ValueError("control.kind: what BGP says has no credits; leave out link.cbfc")
        if self.overlay.kind == "vxlan":
            self._check_vxlan()
        if self.transport.kind is TransportKind.SUE:
            self._check_sue(ports)
        self._check_outside(ports)
        if self.control.kind != "bgp" and any(f.action == "restart-bgp" for f in self.faults):
            raise ValueError(
                "faults: restart-bgp is for control.kind=bgp: set that, or leave it out"
            )
        return self

    def _check_outside(self, ports: int) -> None:
        """Where routers of others can be, and what stands in their way."""
        refused = (
            (self.control.kind != "bgp", "they speak BGP: set control.kind=bgp"),
            (self.link.ip != 4, "their sessions are IPv4: leave link.ip 4; they tell IPv6 in them"),
            (self.overlay.kind == "vxlan", "tenants' networks end at leaves: leave out overlay"),
            (ports > 1, "a router has one port here: choose a topology whose hosts have one"),
        )
        for is_refused, why in refused:
            if self.topology.outside and is_refused:
                raise ValueError(f"topology.outside: {why}")

    def _check_segments(self) -> None:
        """Who tells switches of them, and adapters that steer."""
        if self.control.kind == "bgp" and self.segments.enabled:
            raise ValueError(
                "control.kind: BGP tells no ways to micro-segments; leave out segments, or BGP"
            )
        if self.segments.enabled and self.telemetry.share and self.telemetry.format is Format.IOAM:
            raise ValueError(
                "int.format: ioam puts packets into an IPv6 header, as segments do; leave one out"
            )
        keeps_states = self.transport.kind.sprays and self.transport.entropy is Entropy.MRC
        if self.segments.hosts and not (self.link.ip == 6 and keeps_states):
            raise ValueError(
                "segments.hosts: adapters steer IPv6, by ways whose states they keep: set "
                "link.ip=6, and transport.kind=mrc, or uet with transport.entropy=mrc"
            )

    def _check_vxlan(self) -> None:
        """What of the rest does not look into a tunnel, or has none."""
        refused = (
            (not self.tenants, "there are no tenants: name their hosts in tenants"),
            (self.link.ip != 4, "tenants speak IPv4: leave link.ip 4"),
            (
                any(rule.src or rule.dst for rule in self.access),
                "access names addresses, which tenants share: leave out src and dst",
            ),
            (self.segments.enabled, "segments steer by addresses; leave one out"),
            (self.lb.policy is Policy.CONGA, "lb.policy conga cannot see into a tunnel"),
            (self.trim.enabled, "trim would cut packets within a tunnel; leave one of them out"),
            (
                bool(self.telemetry.share) or self.transport.control.hears_telemetry,
                "telemetry (int.share, transport.cc) does not see into tunnels; leave one out",
            ),
            (
                self.transport.control.hears_csig,
                "CSIG's tags would stay inside of tunnels: choose another transport.cc",
            ),
            (self.ecn.fast_cnp, "fast CNPs cannot be told from within tunnels: leave it out"),
            (self.classes.trust == "pcp", "tags stay inside of tunnels: leave classes.trust dscp"),
        )
        for is_refused, why in refused:
            if is_refused:
                raise ValueError(f"overlay.kind vxlan: {why}")

    def _check_sue(self, ports: int) -> None:
        """What of the rest looks at IP alone, or is none of scale-up Ethernet's."""
        refused = (
            (self.link.ip != 4, "its header is IPv4's, compressed: leave link.ip 4"),
            (ports > 1, "an XPU has one port here: choose a topology whose hosts have one"),
            (bool(self.tenants), "tenants are told apart by IP: leave out tenants"),
            (bool(self.access), "the access list looks at IP: leave out access"),
            (self.segments.enabled, "segments steer IP: leave them out"),
            (self.trim.enabled, "switches trim IP: set trim.enabled=false"),
            (bool(self.telemetry.share), "telemetry stands behind UDP: leave out int.share"),
            (self.lb.policy is Policy.CONGA, "lb.policy conga stands before IP: take another"),
            (self.lb.policy.moves is Moves.PACKETS, "it takes PDUs in order only, which lb.policy "
             f"{self.lb.policy} scatters: take ecmp"),
            (self.transport.endpoint == "scapy", "the scapy endpoint knows none: take core"),
            (self.control.kind == "bgp", "BGP tells no short addresses: leave out control.kind"),
            (bool(self.topology.outside), "routers know none: leave out topology.outside"),
            (self.link.mtu < STORE_BYTES, f"a store has {STORE_BYTES} bytes: raise link.mtu"),
            (self.transport.window > WINDOW_MAX, f"set transport.window to {WINDOW_MAX} at most"),
        )  # fmt: skip
        for is_refused, why in refused:
            if is_refused:
                raise ValueError(f"transport.kind sue: {why}")

    def _check_llr_hosts(self) -> None:
        if self.link.llr is Replay.NONE:
            raise ValueError(
                "link.llr_hosts says where link.llr is: set that to selective or go-back-n, or "
                "leave link.llr_hosts out"
            )
        halted = [fault.host for fault in self.faults if fault.action == "halt" and fault.host]
        if halted:
            raise ValueError(
                f"link.llr_hosts: {halted[0]} stands still, and no text tells whether its adapter "
                "then answers its link; leave out the halt, or link.llr_hosts"
            )

    def _check_ports(self, ports: int) -> None:
        """What adapters with several ports cannot do."""
        transport = self.transport
        is_pair, is_split = isinstance(self.topology, DualTor), self.topology.is_split
        vain = {
            "link.cbfc: adapters with several ports know no credits": self.link.cbfc,
            "transport.receive_gbps: adapters with several ports take what their links bring":
                transport.receive_gbps is not None,
            "transport.endpoint: the scapy endpoint has one port": transport.endpoint == "scapy",
            "overlay.kind: tenants' networks are of one plane": self.overlay.kind == "vxlan",
            "faults: adapters with several ports send no storm":
                any(fault.action == "storm" for fault in self.faults),
            "transport.kind: a sprayed connection has ways through one fabric, not two":
                is_split and transport.kind.sprays,
            "transport.delivery: what is to arrive in order (rod) takes one way, by one port":
                transport.delivery is Delivery.ROD,
            "control.kind: pairs of leaves speak no BGP":
                is_pair and self.control.kind == "bgp",
            "lb.policy: conga knows the way to one leaf, not to a pair":
                is_pair and self.lb.policy is Policy.CONGA,
            "segments: lists lead to one leaf, of one fabric":
                (is_pair or is_split) and self.segments.enabled,
        }  # fmt: skip
        for what, is_asked in vain.items():
            if is_asked:
                raise ValueError(f"{what}; leave that out, or build a topology of one plane")
        if transport.entropies < ports:
            raise ValueError(
                f"transport.entropies is {transport.entropies}: {ports} ports share them out, so "
                f"there must be {ports} at least"
            )

    @field_validator("traffic", mode="before")
    @classmethod
    def _traffic(cls, data: object) -> Spec:
        return data if isinstance(data, Spec) else read_traffic(data)

    def fabric(self) -> Fabric:
        """The fabric that its topology describes, with addresses of its version of IP."""
        if isinstance(self.topology, File):  # which may be another by now
            return self._built()
        made_of = self.topology, self.link.ip, self.overlay, self.tenants
        for known, fabric in tuple(_latest):
            if known == made_of:
                return fabric
        fabric = self._built()
        _latest[:] = [(made_of, fabric)]  # a large one takes a second, and many ask
        return fabric

    def _built(self) -> Fabric:
        fabric = self.topology.build().speaking(self.link.ip)
        if self.overlay.kind == "none":
            return fabric
        stretched = self.overlay.subnets == "tenant"
        return fabric.with_tenants(self.tenants.values(), stretched=stretched)

    def site(self, fabric: Fabric) -> Site:
        """What traffic has to know of the fabric."""
        numbers = {host: at for at, host in enumerate(fabric.hosts)}
        racks: dict[Node, list[int]] = {}  # by the leaf at a host's first port, or its rail's
        which = -1 if isinstance(self.topology, Rail) else 0
        for host in fabric.hosts:
            racks.setdefault(fabric.leaves_of(host)[which], []).append(numbers[host])
        return Site(
            hosts=len(fabric.hosts),
            rate_gbps=self.link.rate_gbps * fabric.ports_abreast,
            racks=tuple(map(tuple, racks.values())),
            seed=self.seed,
        )


_latest: list[tuple[Any, Fabric]] = []  # the fabric made last, and of what


def remarks(scenario: Scenario) -> list[str]:
    """What one should know before it runs, in sentences: what is in vain, or renamed."""
    said = []
    if renamed := scenario.topology.renamed():
        renames = [f"{theirs} is {ours}" for theirs, ours in renamed.items()]
        more = [f"and {len(renames) - _MAX_LISTED:,} more"] if len(renames) > _MAX_LISTED else []
        names = ", ".join([*renames[:_MAX_LISTED], *more])
        said.append(f"nodes bear the lab's names here: {names}.")
    if scenario.transport.control.hears_marks and not scenario.ecn.enabled:
        said.append(
            f"{scenario.transport.cc.upper()} waits for marks and switches set none (ecn.enabled "
            "is false): nothing slows a sender down but pauses."
        )
    return said


def captured(scenario: Scenario, fabric: Fabric) -> list[Link]:
    """The links whose frames are kept."""
    wanted = scenario.measures.pcap
    return [link for link in fabric.links if ALL_LINKS in wanted or link.name in wanted]


SECTION_KINDS: Kinds = {"topology": TOPOLOGIES, "traffic": KINDS}


@cache
def all_keys() -> tuple[Key, ...]:
    """Every key a scenario may have."""
    return tuple(keys_of(Scenario, SECTION_KINDS))


def explained(error: ValidationError, model: type[BaseModel], section: str = "") -> str:
    """All that is wrong, one thing a line, with the place and the nearest known key."""
    lines = []
    problems = error.errors()
    for problem in problems[:_MAX_LISTED]:
        parts = (str(part) for part in problem["loc"] if part not in (ONE, EACH))
        place = (section + ".".join(parts)).rstrip(".")
        if problem["type"] == "extra_forbidden":
            known = [key.name for key in keys_of(model, {}, section)]
            lines.append(f"unknown key '{place}'" + nearest_key(place, known))
        else:
            lines.append(": ".join(filter(None, (place, complaint(problem)))))
    if len(problems) > _MAX_LISTED:
        lines.append(f"and {len(problems) - _MAX_LISTED:,} more")
    return "\n  ".join(lines)

"""Scenarios: what to build and what to run on it, as YAML that is checked before anything starts.

An unknown key is refused with the nearest known one; sizes may be written ``16KB`` or ``4MB``
(powers of ten; ``KiB`` and ``MiB`` are powers of two), times ``50us`` or ``3ms``.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    Discriminator,
    Field,
    SerializeAsAny,
    Tag,
    ValidationError,
    field_validator,
    model_validator,
)

from controller.asics import ASICS
from lab.errors import ScenarioError
from lab.scenario.controls import CongestionControl, with_controls
from lab.scenario.fabrics import read_fabric
from lab.scenario.keys import Key, Kinds, keys_of, nearest, nearest_key
from lab.scenario.questions import Question
from lab.scenario.traffic import KINDS, AllPairs, read_traffic
from params.access import Rule
from params.buffer import Buffer
from params.classes import Classes
from params.link import LinkLevel, Replay
from params.load_balancing import LoadBalancing, Policy
from params.marking import Ecn
from params.pfc import Pfc
from params.rates import Gbps, LinkGbps, bps
from params.schedule import Schedule
from params.section import Section
from params.shares import Share
from params.telemetry import Telemetry
from params.trim import Trim
from params.units import DurationNs, Size
from topologies import (
    Fabric,
    IpVersion,
    Link,
    Node,
    Speed,
    dragonfly,
    dual_tor,
    fat_tree,
    leaf_spine,
    planes,
    rail,
    two_fabrics,
)
from topologies.fabric import USUAL
from traffic.collectives import Site, Spec, complaint
from traffic.congestion import CONTROLS, Control, about_controls
from traffic.endpoint import Entropies, Entropy, Recovery, RetryLimit, TransportKind, Window

_MOST_TOLD = 16  # of what is wrong with a scenario
ALL_LINKS = "all"  # in place of links' names


class LeafSpine(Section):
    """Leaves, each cabled to every spine."""

    kind: Literal["leaf-spine"] = "leaf-spine"
    leaves: int = 4
    """Switches that hosts hang at."""
    spines: int = 2
    """Switches that join the leaves: as many ways as these lead from leaf to leaf."""
    hosts_per_leaf: int = 2
    """Hosts at each leaf, counted h1, h2 ... leaf by leaf."""
    links: int = 1
    """Cables from each leaf to each spine; the second is called leaf1-spine1.2."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return leaf_spine(self.leaves, self.spines, self.hosts_per_leaf, self.links)


class FatTree(Section):
    """Three tiers of k-port switches: k pods, and k^3/4 hosts unless fewer hang at each leaf."""

    kind: Literal["fat-tree"]
    k: int = 4
    """Ports of a switch, an even number."""
    hosts_per_leaf: int | None = None
    """Hosts at each leaf; without it k/2, which is non-blocking."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return fat_tree(self.k, self.hosts_per_leaf)


class Rail(Section):
    """Servers whose n-th adapters all hang at the leaf of rail n."""

    kind: Literal["rail"]
    servers: int = 4
    """How many, evenly spread over the pods."""
    rails: int = 4
    """GPUs in each, and leaves in a pod: GPU n of every server hangs at leaf n."""
    spines: int = 2
    """Switches that join the rails."""
    pods: int = 1
    """Groups of servers, each with leaves of its own."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return rail(self.servers, self.rails, self.spines, self.pods)


class Dragonfly(Section):
    """Groups of switches, all of a group cabled to each other, and few cables between groups."""

    kind: Literal["dragonfly"]
    groups: int = 5
    """How many groups there are."""
    switches: int = 2
    """Switches of a group, each of them a leaf: leaf1 and leaf2 are the first group's."""
    hosts_per_leaf: int = 2
    """Hosts at each leaf."""
    global_links: int = 2
    """Cables from each switch to other groups, dealt to these in turn."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return dragonfly(self.groups, self.switches, self.hosts_per_leaf, self.global_links)


class Planes(Section):
    """Several independent leaf-spine fabrics, and hosts with a port into each."""

    kind: Literal["planes"]
    planes: int = 2
    """How many, and ports of a host, each at link.rate_gbps; a power of two."""
    leaves: int = 2
    """Switches of a plane that hosts hang at; the second plane's are counted on from there."""
    spines: int = 2
    """Switches of a plane that join its leaves."""
    hosts_per_leaf: int = 2
    """Hosts at each leaf of a plane; a host hangs at the same place in every plane."""

    @field_validator("planes")
    @classmethod
    def _is_power_of_two(cls, told: int) -> int:
        if told < 1 or told & (told - 1):
            raise ValueError("the ways of a connection are shared out evenly: 1, 2, 4 or 8 planes")
        return told

    def build(self) -> Fabric:
        """The fabric this describes."""
        return planes(self.planes, self.leaves, self.spines, self.hosts_per_leaf)


class DualTor(Section):
    """Leaves in pairs: every host of a rack has a port into each of its two leaves."""

    kind: Literal["dual-tor"]
    racks: int = 2
    """How many, of two leaves each: leaf1 and leaf2 are the first rack's."""
    spines: int = 2
    """Switches that join all leaves."""
    hosts_per_rack: int = 4
    """Hosts of each, with one address at two ports; a connection goes on by the other when one
    fails."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return dual_tor(self.racks, self.spines, self.hosts_per_rack)


class TwoFabrics(Section):
    """A back-end fabric for GPUs, and a front-end where they meet servers, such as storage."""

    kind: Literal["two-fabrics"]
    leaves: int = 2
    """Switches of the back-end that hosts hang at."""
    spines: int = 2
    """Switches that join these."""
    hosts_per_leaf: int = 4
    """Hosts at each, which have a second port, into the front-end."""
    servers: int = 4
    """Hosts of the front-end alone, counted on from those: connections with them go there, all
    others through the back-end."""
    front_leaves: int = 2
    """Switches of the front-end that hosts hang at: neighbours together, servers likewise."""
    front_spines: int = 1
    """Switches that join these."""
    front_rate_gbps: LinkGbps | None = None
    """The rate of the front-end's links, if it differs."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        rate = self.front_rate_gbps
        front = USUAL if rate is None else Speed(rate_bps=bps(rate))
        counts = self.leaves, self.spines, self.hosts_per_leaf, self.servers
        return two_fabrics(*counts, self.front_leaves, self.front_spines, front)


class File(Section):
    """A fabric somebody else described."""

    kind: Literal["file"]
    path: str
    """A topology.json of the P4 tutorials, a graph of networkx (JSON or GraphML), a .topo of htsim,
    or an InfraGraph (YAML or JSON); links without a speed get the scenario's."""

    def build(self) -> Fabric:
        """The fabric this describes."""
        return read_fabric(Path(self.path)).fabric

    def renamed(self) -> dict[str, str]:
        """What the file calls otherwise than the lab: its name, ours."""
        aliases = read_fabric(Path(self.path)).aliases
        return {theirs: node.name for theirs, node in aliases.items() if theirs != node.name}


TOPOLOGIES: dict[str, type[Section]] = {
    "leaf-spine": LeafSpine, "fat-tree": FatTree, "rail": Rail,
    "dragonfly": Dragonfly, "planes": Planes, "dual-tor": DualTor, "two-fabrics": TwoFabrics,
    "file": File,
}  # fmt: skip
Topology = LeafSpine | FatTree | Rail | Dragonfly | Planes | DualTor | TwoFabrics | File


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
    slow: dict[str, Annotated[float, Field(ge=0.001, le=1)]] = {}
    """Links that have only a share of their rate, such as {leaf1-spine1: 0.25}."""


class LinkSettings(LinkLevel, _Cables):
    """Cables, and what their ends do about losses."""


# One rate or those of some; what is wrong with it is told of what it looks like alone.
_ONE, _EACH = "of all", "of each"
GbpsOfHosts = Annotated[
    Annotated[Gbps, Tag(_ONE)] | Annotated[dict[str, Gbps], Tag(_EACH)],
    Discriminator(lambda value: _EACH if isinstance(value, dict) else _ONE),
]


@with_controls
class TransportSettings(Section):
    """How adapters recover from loss and what they do about congestion."""

    endpoint: Literal["core", "scapy"] = "core"
    """Who plays adapters on Mininet: core, in C, or scapy, the same to read: slow, with go-back-n,
    without congestion control. In the simulator core alone does."""
    kind: TransportKind = TransportKind.ROCE
    """RoCEv2 (roce), or Ultra Ethernet Transport (uet): every packet takes a way of its own, says
    where its bytes belong and is answered; what is lost, and only that, goes again. MRC (mrc) does
    the same in RoCEv2's headers, and keeps states of ways (entropy: mrc) unless told otherwise."""
    recovery: Recovery = Recovery.GO_BACK_N
    """What a loss costs RoCEv2: go-back-0 (the message again), go-back-n, or selective."""
    cc: CongestionControl = Field(
        default="none",
        description=f"Who holds senders back: none does nothing. {about_controls()}.",
    )
    entropy: Entropy = Entropy.REPS
    """How UET and MRC choose ways: oblivious (all in turn), bitmap (but those congested), reps
    (those that packets came back from unmarked), single (always the same), or mrc (all in turn but
    those that lose packets, which are probed until they are better)."""
    entropies: Entropies = 128
    """From how many values it chooses, a power of two; switches choose ways by their hash."""
    queue_pairs: int | None = Field(default=None, ge=1, le=64)
    """How many queue pairs the channels between two hosts share, in turn; without it each has its
    own."""
    window: Window = 512
    """Packets a queue pair may have in flight."""
    timeout: int = Field(default=20, ge=0, le=31)
    """Without an answer for 4.096 us x 2^timeout a sender sends again what was not acknowledged, as
    ibv_qp_attr.timeout has it; 0: never. 20, 4.3 s, is what NCCL sets since 2.23 (NCCL_IB_TIMEOUT;
    18 since 2.14, 14 before)."""
    rto_ns: DurationNs | None = Field(default=None, ge=1000, le=10**12)
    """The same as a time, of any length, in place of timeout."""
    first_rto_ns: DurationNs | None = Field(default=None, ge=1000, le=10**12)
    """Adaptive retransmission: a silence's first time-out is so long, each further one twice as
    long, up to timeout; after timeout x retry_limit of silence a queue pair gives up."""
    reorder: DurationNs | None = Field(default=None, ge=0, le=10**12)
    """Selective recovery: how long packets may overtake one before it counts as lost. Without it as
    long as round trips of late took, and four times that where lb.policy scatters packets."""
    acks: Literal["data", "control"] | None = None
    """Which class acknowledgements travel in: that of their data, as RoCEv2 adapters have it (a
    queue pair has one DSCP), so that a pause holds them too and nothing takes them; or the control
    class, beside CNPs, which may lose them unless it is one of pfc.priorities. Without it UET's and
    MRC's travel with data of a lossless class, and in the control class where none is paused."""
    retry_limit: RetryLimit = 7
    """Time-outs in a row, no NAK among them, before a queue pair gives up; 7 is NCCL's
    (NCCL_IB_RETRY_CNT)."""

    receive_gbps: GbpsOfHosts | None = None
    """How fast hosts take what comes, all of them or by name, such as {h1: 25}; without it at their
    links' rate. What waits in an adapter's buffer pauses the sender (pfc) before it is full."""
    receive_buffer: Size = Field(default=64_000, ge=1, le=1 << 28)
    """What may wait there before the sender is paused; room for what comes after is computed."""

    @property
    def control(self) -> Control:
        """What is known of its congestion control."""
        return CONTROLS[self.cc]

    @property
    def longest_rto_ns(self) -> int:
        """The time-out as a time; 0: never."""
        if self.rto_ns is not None:
            return self.rto_ns
        return 4096 << self.timeout if self.timeout else 0

    @model_validator(mode="before")
    @classmethod
    def _keep_states(cls, data: object) -> object:
        is_mrc = isinstance(data, dict) and data.get("kind") == TransportKind.MRC
        return {"entropy": Entropy.MRC, **data} if is_mrc else data  # type: ignore[dict-item]

    @model_validator(mode="after")
    def _check(self) -> TransportSettings:
        users = CONTROLS[self.cc].users
        if self.kind not in users:
            told = " or ".join(kind for kind in TransportKind if kind in users)
            raise ValueError(f"{self.cc} is for transport.kind={told}: set that, or none")
        if self.first_rto_ns and 0 < self.longest_rto_ns < self.first_rto_ns:
            raise ValueError(
                f"the first time-out, {self.first_rto_ns:,} ns, is longer than the longest, "
                f"{self.longest_rto_ns:,} ns: lower first_rto_ns, or raise timeout or rto_ns"
            )
        known: dict[str, str | None] = {"kind": "roce", "recovery": "go-back-n", "cc": "none"}
        known |= dict.fromkeys(("first_rto_ns", "receive_gbps"))
        for key, value in known.items() if self.endpoint == "scapy" else ():
            if getattr(self, key) != value:
                raise ValueError(
                    f"the scapy endpoint knows no {key} {getattr(self, key)}: "
                    f"{'leave that out' if value is None else f'make that {value}'}, or take "
                    "endpoint core"
                )
        return self


class LossSettings(Section):
    """Data packets lost at random where they arrive."""

    rate: Share = 0
    """The probability that a packet is lost."""
    links: tuple[str, ...] = ()
    """Where, both ways; without names on the last link to each host: every packet once."""


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
    measures: MeasureSettings = MeasureSettings()
    """What is kept of a run: time series, messages, telemetry, captures."""
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
        ports = _ports_of_hosts(self.topology)
        if ports > 1:
            self._check_ports(ports)
        if self.control.kind == "bgp" and self.link.ip != 4:
            raise ValueError("control.kind: what BGP finds here is IPv4; leave link.ip 4")
        self._check_segments()
        if self.control.kind == "bgp" and self.link.cbfc:
            raise ValueError("control.kind: what BGP says has no credits; leave out link.cbfc")
        if self.overlay.kind == "vxlan":
            self._check_vxlan()
        if self.control.kind == "bgp" and any(
            f.action in ("drain", "undrain") for f in self.faults
        ):
            raise ValueError(
                "faults: drain is a controller's word, and with control.kind=bgp switches find "
                "their routes themselves: leave out the one or the other"
            )
        if self.control.kind != "bgp" and any(f.action == "restart-bgp" for f in self.faults):
            raise ValueError(
                "faults: restart-bgp is for control.kind=bgp: set that, or leave it out"
            )
        return self

    def _check_segments(self) -> None:
        """Who tells switches of them, and adapters that steer."""
        if self.control.kind == "bgp" and self.segments.enabled:
            raise ValueError(
                "control.kind: BGP tells no ways to micro-segments; leave out segments, or BGP"
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
            (self.classes.trust == "pcp", "tags stay inside of tunnels: leave classes.trust dscp"),
        )
        for is_refused, why in refused:
            if is_refused:
                raise ValueError(f"overlay.kind vxlan: {why}")

    def _check_ports(self, ports: int) -> None:
        """What adapters with several ports cannot do."""
        transport = self.transport
        is_pair, is_front = (isinstance(self.topology, kind) for kind in (DualTor, TwoFabrics))
        vain = {
            "link.cbfc: adapters with several ports know no credits": self.link.cbfc,
            "transport.receive_gbps: adapters with several ports take what their links bring":
                transport.receive_gbps is not None,
            "transport.endpoint: the scapy endpoint has one port": transport.endpoint == "scapy",
            "overlay.kind: tenants' networks are of one plane": self.overlay.kind == "vxlan",
            "faults: adapters with several ports send no storm":
                any(fault.action == "storm" for fault in self.faults),
            "transport.kind: a sprayed connection has ways through one fabric, not two":
                is_front and transport.kind.sprays,
            "control.kind: pairs of leaves speak no BGP":
                is_pair and self.control.kind == "bgp",
            "lb.policy: conga knows the way to one leaf, not to a pair":
                is_pair and self.lb.policy is Policy.CONGA,
            "segments: lists lead to one leaf, of one fabric":
                (is_pair or is_front) and self.segments.enabled,
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
        fabric = self.topology.build().speaking(self.link.ip)
        if self.overlay.kind == "none":
            return fabric
        stretched = self.overlay.subnets == "tenant"
        return fabric.with_tenants(self.tenants.values(), stretched=stretched)

    def site(self, fabric: Fabric) -> Site:
        """What traffic has to know of the fabric."""
        numbers = {host: at for at, host in enumerate(fabric.hosts)}
        racks: dict[Node, list[int]] = {}  # by the leaf at a host's first port
        for host in fabric.hosts:
            racks.setdefault(fabric.leaf_of(host), []).append(numbers[host])
        return Site(
            hosts=len(fabric.hosts),
            rate_gbps=self.link.rate_gbps * fabric.ports_abreast,
            racks=tuple(map(tuple, racks.values())),
            seed=self.seed,
        )


def _ports_of_hosts(topology: Topology) -> int:
    """How many an adapter has."""
    if isinstance(topology, Planes):
        return topology.planes
    return 2 if isinstance(topology, DualTor | TwoFabrics) else 1


def remarks(scenario: Scenario) -> list[str]:
    """What one should know before it runs, in sentences: what is in vain, or renamed."""
    said = []
    if isinstance(scenario.topology, File) and (renamed := scenario.topology.renamed()):
        told = [f"{theirs} is {ours}" for theirs, ours in renamed.items()]
        more = [f"and {len(told) - _MOST_TOLD:,} more"] if len(told) > _MOST_TOLD else []
        names = ", ".join([*told[:_MOST_TOLD], *more])
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
    for problem in problems[:_MOST_TOLD]:
        parts = (str(part) for part in problem["loc"] if part not in (_ONE, _EACH))
        place = (section + ".".join(parts)).rstrip(".")
        if problem["type"] == "extra_forbidden":
            known = [key.name for key in keys_of(model, {}, section)]
            lines.append(f"unknown key '{place}'" + nearest_key(place, known))
        else:
            lines.append(": ".join(filter(None, (place, complaint(problem)))))
    if len(problems) > _MOST_TOLD:
        lines.append(f"and {len(problems) - _MOST_TOLD:,} more")
    return "\n  ".join(lines)

"""What a fabric is to be like: links, buffers and mechanisms, in fabric time and plain units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from params.classes import ClassSet
from params.marking import Ecn

LOSSLESS_PRIORITY = 3
CONTROL_PRIORITY = 6
PAUSE_PRIORITY = 7  # the queue that pause frames leave by, before all others
# RoCE's, and the class selectors of RFC 2474; all others are best effort.
DSCP_PRIORITIES = {8: 1, 16: 2, 26: LOSSLESS_PRIORITY, 32: 4, 40: 5, 48: CONTROL_PRIORITY}
PCP_PRIORITIES = {pcp: min(pcp, CONTROL_PRIORITY) for pcp in range(8)}


class SettingsError(ValueError):
    """Settings that contradict each other; the text names the cure."""


class RoomError(SettingsError):
    """Less memory than headroom and what is reserved take."""

    def __init__(self, text: str, enough: int) -> None:
        super().__init__(text)
        self.enough = enough
        """Bytes that would do."""


class Policy(Enum):
    """How a switch chooses among equally good ways; see p4src/path.p4."""

    ECMP = "ecmp"
    FLOWLET = "flowlet"
    DLB = "dlb"
    CONGA = "conga"
    SPRAY = "spray"
    ADAPTIVE = "adaptive"
    DRILL = "drill"
    STRUCTURED = "structured"


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """A cable."""

    rate_bps: int = 100_000_000_000
    delay_ns: int = 1000

    def slowed(self, share: float) -> LinkSpec:
        """The same with a share of its rate."""
        return replace(self, rate_bps=max(1, round(self.rate_bps * share)))


@dataclass(frozen=True, slots=True)
class Classes:
    """What tells a packet's priority."""

    dscp: Mapping[int, int] = field(default_factory=lambda: DSCP_PRIORITIES)
    pcp: Mapping[int, int] = field(default_factory=dict)  # empty: tags are not believed

    def dscp_of(self, priority: int) -> int:
        """The DSCP that hosts give to packets of a priority: the usual one if that leads there."""
        found = [dscp for dscp, leads_to in self.dscp.items() if leads_to == priority]
        usual = [dscp for dscp in found if DSCP_PRIORITIES.get(dscp) == priority]
        if priority == 0:
            found += [dscp for dscp in range(64) if dscp not in self.dscp]
        if not found:
            raise SettingsError(
                f"no DSCP leads to priority {priority}; give it one, such as classes.dscp: "
                f"{{{8 * priority}: {priority}}}"
            )
        return min(usual or found)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a port's queues are served: those without a weight strictly, and before the others."""

    weights: Mapping[int, int] = field(default_factory=dict)  # by priority
    limits: Mapping[int, int] = field(default_factory=dict)  # by priority: bits a second
    port_limit: int | None = None  # bits a second, of faster ports
    burst: int = 0  # bytes that may exceed a limit at once


@dataclass(frozen=True, slots=True)
class Buffer:
    """A switch's memory."""

    size: int = 4_000_000
    alpha: float = 0.125  # share of the free pool one queue may take; a power of two
    lossy_alpha: float | None = None  # the same of lossy queues, if it differs
    most: int | None = None  # bytes of the pool one queue may take, instead of alpha's
    lossy_most: int | None = None
    reserved: int = 0  # bytes every lossless queue has to itself
    lossy_reserved: int = 0
    headroom_pool: int | None = None  # what all headroom of a switch may come to; none: its sum
    cell: int = 1  # memory is taken in so many bytes
    follow_rate: bool = False  # queues are marked and cut at a share, where their link has a share


@dataclass(frozen=True, slots=True)
class Trim:
    """What becomes of packets for which there is no room; see p4src/trim.p4."""

    classes: ClassSet = ClassSet()  # whose packets are cut; only such as may lose
    size: int = 64  # what is left of a frame with neither tags nor telemetry, its headers included
    priority: int = 5  # the class of what was cut
    dscp: int = 41  # what tells it,
    last_hop_dscp: int = 42  # and if it was cut at the port to its receiver
    reserved: int = 20_000  # bytes that what was cut has to itself at every port
    threshold: int | None = None  # bytes in a queue above which it is cut; none: buffer.lossy_*


class Remedy(Enum):
    """What becomes of a stuck queue; see p4src/types.p4."""

    DROP = "drop"
    FORWARD = "forward"
    ALERT = "alert"


@dataclass(frozen=True, slots=True)
class Watchdog:
    """When a paused queue counts as stuck, and for how long; the usual values are SONiC's."""

    detect_ns: int = 200_000_000  # paused and not moving for so long
    restore_ns: int = 200_000_000  # and over when no pause frame came for so long
    poll_ns: int | None = None  # how often it is looked at; without it four times in the shorter
    remedy: Remedy = Remedy.DROP

    @property
    def every_ns(self) -> int:
        """How often it is looked at."""
        usual = max(1, min(self.detect_ns, self.restore_ns) // 4)
        return usual if self.poll_ns is None else self.poll_ns


@dataclass(frozen=True, slots=True)
class Pfc:
    """Priority flow control."""

    enabled: bool = True
    quanta: int = 0xFFFF
    xon: int | None = None  # bytes at which pauses end, or that XON does not fall below
    xon_gap: int | None = None  # bytes XON lies under XOFF; two frames if not given, nor xon
    xon_follows: bool = False  # whether XON moves with the threshold while the pause lasts
    response_ns: int = 0  # that a sender takes to obey
    headroom: int | None = None  # computed if not given
    asymmetric: bool = False  # hosts may pause every class; they are told to pause lossless ones
    watchdog: Watchdog | None = Watchdog()


class Replay(Enum):
    """What a link sends again of what it lost; see switch/rt/llr.h."""

    NONE = "none"
    GO_BACK_N = "go-back-n"
    SELECTIVE = "selective"

    @classmethod
    def _missing_(cls, value: object) -> Replay | None:
        """Yes is the one that costs what is lost, on a link of any length; no is none."""
        if isinstance(value, bool):
            return cls.SELECTIVE if value else cls.NONE
        return None


@dataclass(frozen=True, slots=True)
class Credits:
    """Credits instead of pauses; see p4src/credit.p4."""

    enabled: bool = False
    size: int | None = None  # bytes a class has at each port; computed if not given
    response_ns: int = 0  # that either end takes


@dataclass(frozen=True, slots=True)
class LoadBalancing:
    """Path choice, for every priority or for some."""

    policy: Policy = Policy.ECMP
    by_priority: Mapping[int, Policy] = field(default_factory=dict)
    flowlet_gap_ns: int = 50_000
    metric_age_ns: int | None = None  # how long what was heard of a path counts; computed
    load_window_ns: int | None = None  # over which a link's load is measured; computed
    entropy_bits: int = 7  # of a source port that choose among ways, where senders do


@dataclass(frozen=True, slots=True)
class Telemetry:
    """INT and drop reports."""

    share: float = 0.0  # of the packets that enter at hosts' ports
    instructions: int = 0xFD00  # bits 0 to 5 and 7
    hops: int = 6  # that may add to a packet
    domain: int = 0
    drop_share: float = 0.0  # of the drops
    collector: str = "10.255.255.1"
    collector_port: int = 32766
    report_port: int | None = None  # the port reports leave by; none: they are not made
    mtu: int = 0xFFFF  # bytes after the Ethernet header to which packets may grow
    by_hosts: bool = False  # hosts ask for telemetry in their packets, and get it: no sinks

    @property
    def hop_words(self) -> int:
        """The words each hop adds: bits 4 to 6 ask for two each."""
        return sum(2 if bit in (4, 5, 6) else 1 for bit in range(16) if self.asks(bit))

    @property
    def most_bytes(self) -> int:
        """What a packet can grow by: shim, header and every hop's words."""
        return 4 + 12 + 4 * self.hops * self.hop_words

    def asks(self, bit: int) -> bool:
        """Whether an instruction is given; bit 0 is the first."""
        return bool(self.instructions >> (15 - bit) & 1)


@dataclass(frozen=True, slots=True)
class Loss:
    """Packets to lose at one end of a link."""

    switch: str
    port: int
    share: float
    received: bool = True  # or sent
    priority: int | None = None  # every one


@dataclass(frozen=True, slots=True)
class Steering:
    """What a leaf sends by micro-segments; see controller/segments.py."""

    leaf: str
    to: str  # a host, or a leaf and all its hosts
    tenant: int | None = None  # whose packets; None: everybody's
    via: tuple[tuple[str, ...], ...] = ()  # ways, by switches between the leaves; none: all


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the access list, of which the first that matches wins; None matches anything."""

    allow: bool
    src: str | None = None  # prefixes
    dst: str | None = None
    protocol: int | None = None
    src_port: int | None = None
    dst_port: int | None = None


@dataclass(frozen=True, slots=True)
class Punt:
    """How often a front port may bother the switch's own control plane; see p4src/punt.p4."""

    every_ns: float  # a frame, over time
    burst: int = 256  # frames at once


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a controller needs to know besides the graph."""

    host_link: LinkSpec = LinkSpec()
    fabric_link: LinkSpec = LinkSpec()
    max_frame: int = 4296  # bytes without FCS: path MTU, headers, telemetry
    lossless: ClassSet = ClassSet((LOSSLESS_PRIORITY,))
    buffer: Buffer = Buffer()
    trim: Trim = Trim()
    pfc: Pfc = Pfc()
    credits: Credits = Credits()  # then nobody is paused
    replay: Replay = Replay.NONE  # on links between switches
    ecn: Ecn = Ecn()  # of the lossless priorities,
    ecn_by_class: Mapping[int, Ecn] = field(
        default_factory=dict
    )  # and of those that have their own
    classes: Classes = Classes()
    schedule: Schedule = Schedule()
    lb: LoadBalancing = LoadBalancing()
    telemetry: Telemetry = Telemetry()
    slowed: Mapping[str, float] = field(default_factory=dict)  # shares of rates, by direction
    # The least share of its rate that a direction may come to have while the other has all of it.
    one_way: Mapping[str, float] = field(default_factory=dict)
    drained: frozenset[str] = frozenset()  # cables that nobody takes who has another way
    losses: tuple[Loss, ...] = ()
    tenants: Mapping[str, int] = field(default_factory=dict)  # by host's name
    rules: tuple[Rule, ...] = ()
    punt: Punt | None = None  # none: switches have no control plane of their own
    segments: bool = False  # whether switches have micro-segments of their own,
    steering: tuple[Steering, ...] = ()  # and what is sent by them
    hosts_steer: bool = False  # themselves, too
    tick_ns: float = 1.0  # how long the target's tick lasts, in fabric time
    control_queue: int = 7  # that pause frames leave by; 0 for BMv2, whose clones have no other


USUAL = Settings()

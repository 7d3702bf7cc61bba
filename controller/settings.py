"""What a fabric is to be like: links, buffers and mechanisms, in fabric time and plain units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from params import ioam
from params.access import Rule
from params.buffer import Buffer
from params.classes import DSCP_PRIORITIES, Classes, ClassSet
from params.csig import Csig
from params.data import Data
from params.inc import Group
from params.link import LinkLevel
from params.load_balancing import LoadBalancing
from params.marking import Ecn
from params.pfc import Pfc
from params.schedule import Schedule
from params.shares import Share
from params.telemetry import Format, Telemetry
from params.trim import Trim


class SettingsError(ValueError):
    """Settings that contradict each other; the text names the cure."""


class RoomError(SettingsError):
    """Less memory than headroom and what is reserved take."""

    def __init__(self, text: str, enough: int) -> None:
        super().__init__(text)
        self.enough = enough
        """Bytes that would do."""


class LinkSpec(Data):
    """A cable."""

    rate_bps: int = 100_000_000_000
    delay_ns: int = 1000
    overhead: int = 24  # bytes of the wire around a frame: preamble and start 8, FCS 4, gap 12

    def slowed(self, share: float) -> LinkSpec:
        """The same with a share of its rate."""
        return replace(self, rate_bps=max(1, round(self.rate_bps * share)))


class HopTelemetry(Telemetry):
    """INT and drop reports, as switches make them."""

    instructions: int = 0xFD00  # bits 0 to 5 and 7
    hops: int = 6  # that may add to a packet
    drop_share: Share = 0  # of the drops
    report_port: int | None = None  # the port reports leave by; none: they are not made
    by_hosts: bool = False  # hosts ask for telemetry in their packets, and get it: no sinks

    @property
    def hop_words(self) -> int:
        """The words each hop adds: bits 4 to 6 ask for two each."""
        return sum(2 if bit in (4, 5, 6) else 1 for bit in range(16) if self.asks(bit))

    @property
    def nodes(self) -> int:
        """The hops that a trace has room for."""
        return min(self.hops, ioam.MAX_NODES)

    @property
    def link_mtu(self) -> int:
        """What links carry, as switches are told it."""
        return 0xFFFF if self.mtu is None else self.mtu

    @property
    def has_ioam(self) -> bool:
        """Whether hops write IOAM's trace, and not INT-MD."""
        return bool(self.share) and self.format is Format.IOAM

    @property
    def most_bytes(self) -> int:
        """What a packet can grow by: the headers, and every hop's words."""
        if self.format is Format.IOAM:
            return 40 + 16 + 4 * ioam.NODE_WORDS * self.nodes
        return 4 + 12 + 4 * self.hops * self.hop_words

    def asks(self, bit: int) -> bool:
        """Whether an instruction is given; bit 0 is the first."""
        return bool(self.instructions >> (15 - bit) & 1)


class Loss(Data):
    """Packets to lose at one end of a link."""

    switch: str
    port: int
    share: float
    received: bool = True  # or sent
    priority: int | None = None  # every one


class Steering(Data):
    """What a leaf sends by micro-segments; see controller/segments.py."""

    leaf: str
    to: str  # a host, or a leaf and all its hosts
    tenant: int | None = None  # whose packets; None: everybody's
    via: tuple[tuple[str, ...], ...] = ()  # ways, by switches between the leaves; none: all


class Punt(Data):
    """How often a front port may bother the switch's own control plane; see p4src/punt.p4."""

    every_ns: float  # a frame, over time
    burst: int = 256  # frames at once


class Settings(Data):
    """Everything a controller needs to know besides the graph."""

    host_link: LinkSpec = LinkSpec()
    fabric_link: LinkSpec = LinkSpec()
    max_frame: int = 4296  # bytes without FCS: path MTU, headers, telemetry
    link: LinkLevel = LinkLevel()
    buffer: Buffer = Buffer()
    trim: Trim = Trim()
    pfc: Pfc = Pfc()
    ecn: Ecn = Ecn()
    classes: Classes = Classes()
    schedule: Schedule = Schedule()
    lb: LoadBalancing = LoadBalancing()
    entropy_bits: int = 7  # of a source port that choose among ways, where senders do
    telemetry: HopTelemetry = HopTelemetry()
    csig: Csig | None = None  # None: hosts put no tags in
    groups: tuple[Group, ...] = ()  # whose collectives switches carry out
    slowed: Mapping[str, float] = field(default_factory=dict)  # shares of rates, by direction
    # The least share of its rate that a direction may come to have while the other has all of it.
    one_way: Mapping[str, float] = field(default_factory=dict)
    drained: frozenset[str] = frozenset()  # cables that nobody takes who has another way
    losses: tuple[Loss, ...] = ()
    routers: frozenset[str] = frozenset()  # hosts that send what others say, too
    tenants: Mapping[str, int] = field(default_factory=dict)  # by host's name
    rules: tuple[Rule, ...] = ()
    punt: Punt | None = None  # none: switches have no control plane of their own
    segments: bool = False  # whether switches have micro-segments of their own,
    steering: tuple[Steering, ...] = ()  # and what is sent by them
    hosts_steer: bool = False  # themselves, too
    has_short_addresses: bool = False  # whether hosts have SUNH in place of IP
    tick_ns: float = 1.0  # how long the target's tick lasts, in fabric time
    control_queue: int = 7  # that pause frames leave by; 0 for BMv2, whose clones have no other

    @property
    def lossless(self) -> ClassSet:
        """The priorities that lose nothing, if senders are paused or go by credits."""
        return self.pfc.priorities

    @property
    def dscp_priorities(self) -> dict[int, int]:
        """Priorities by DSCP, what was cut included; what is missing is best effort."""
        return self.classes.by_dscp | self.trim.by_dscp

    def dscp_of(self, priority: int) -> int:
        """The DSCP that hosts give to packets of a priority: the usual one if that leads there."""
        leads = self.dscp_priorities
        found = [dscp for dscp in range(64) if leads.get(dscp, 0) == priority]
        if not found:
            raise SettingsError(
                f"no DSCP leads to priority {priority}; give it one, such as classes.dscp: "
                f"{{{8 * priority}: {priority}}}"
            )
        return min(found, key=lambda dscp: (DSCP_PRIORITIES.get(dscp) != priority, dscp))


USUAL = Settings()

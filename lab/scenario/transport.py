"""Transport: how adapters recover from loss, and what they do about congestion."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag, model_validator

from lab.scenario.controls import CongestionControl, algorithm_file, with_controls
from lab.scenario.security import SecuritySettings
from params.classes import CONTROL_PRIORITY, Priority
from params.rates import Gbps
from params.section import Section
from params.units import DurationNs, Size
from traffic.congestion import CONTROLS, Control, about_controls
from traffic.endpoint import (
    MRC_OPTIONS,
    Delivery,
    Entropies,
    Entropy,
    Headers,
    Recovery,
    RetryLimit,
    TransportKind,
    Window,
)

# One rate or those of some; what is wrong with it is told of what it looks like alone.
ONE, EACH = "of all", "of each"
GbpsOfHosts = Annotated[
    Annotated[Gbps, Tag(ONE)] | Annotated[dict[str, Gbps], Tag(EACH)],
    Discriminator(lambda value: EACH if isinstance(value, dict) else ONE),
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
    the same in RoCEv2's headers, and keeps states of ways (entropy: mrc) unless told otherwise.
    Scale-up Ethernet (sue): stores of 256 bytes, packed by destination, in order, behind headers of
    38 bytes and 12 a store; link.mtu is what a packet stores at most."""
    delivery: Delivery = Delivery.RUD
    """What UET promises: all, in any order (rud); all in order, by one way, from a loss on again
    (rod); all, to a receiver that keeps nothing and may see packets twice (rudi); nothing (uud)."""
    security: SecuritySettings = SecuritySettings()
    """UET's security sublayer: whether packets are encrypted, and when keys change."""
    headers: Headers = Headers.STANDARD
    """UET's semantic header where a message fits a packet: of 44 bytes as elsewhere (standard), 32,
    with a memory key (medium), or 20, with a place in the target's memory alone (small)."""
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
    timestamps: bool = False
    """MRC: packets bear the time they left at, which answers tell, so that what went twice is timed
    too."""
    port_status: bool = False
    """MRC: an adapter tells its peers at once which of its ports have a link."""
    reverse_set: bool = False
    """MRC: answers take ways that are known to lead there; who does not send asks by EV probes."""
    queue_pairs: int | None = Field(default=None, ge=1, le=64)
    """How many queue pairs the channels between two hosts share, in turn; without it each has its
    own."""
    window: Window = 512
    """Packets a queue pair may have in flight."""
    ack_every: int = Field(default=16, ge=1, le=1 << 20)
    """RoCEv2: an acknowledgement is asked for with every so manieth packet, and with a message's
    last; congestion controls that hear by answers may ask more often."""
    follow_rate: bool = False
    """RoCEv2: whether a rate that an answer changes also changes the wait for the next packet that
    has begun, as in HPCC's simulator; without it that is as long as when the last packet left."""
    by_number: bool = False
    """Whose turn it is at a host among queue pairs that may send: the next by number after the one
    that sent last, packet by packet, as in HPCC's simulator. Without it they queue, and one that is
    being sent stands in the queue again from when its packet began."""
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
    cnp_priority: Priority = CONTROL_PRIORITY
    """Which class congestion notifications travel in, as an adapter's cnp_802p_prio has it: 6, the
    control class, before data, or that of data, where they wait at switches, as in HPCC's
    simulator."""
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
        if not isinstance(data, dict):
            return data
        if data.get("kind") == TransportKind.MRC:
            return {"entropy": Entropy.MRC, **data}
        return {"entropy": Entropy.SINGLE, **data} if data.get("delivery") == Delivery.ROD else data

    @model_validator(mode="after")
    def _check(self) -> TransportSettings:
        users = CONTROLS[self.cc].users
        if self.kind not in users:
            kinds = " or ".join(kind for kind in TransportKind if kind in users)
            raise ValueError(f"{self.cc} is for transport.kind={kinds}: set that, or none")
        if self.control.is_brought and not algorithm_file(self):
            raise ValueError("pcm goes by an algorithm of yours: name it by transport.pcm.file")
        if self.first_rto_ns and 0 < self.longest_rto_ns < self.first_rto_ns:
            raise ValueError(
                f"the first time-out, {self.first_rto_ns:,} ns, is longer than the longest, "
                f"{self.longest_rto_ns:,} ns: lower first_rto_ns, or raise timeout or rto_ns"
            )
        self._check_delivery()
        if self.security.enabled and self.kind is not TransportKind.UET:
            raise ValueError("security is UET's: set transport.kind=uet, or leave it out")
        for key in MRC_OPTIONS if self.kind is not TransportKind.MRC else ():
            if getattr(self, key):
                raise ValueError(f"{key} is MRC's: set transport.kind=mrc, or leave it out")
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

    def _check_delivery(self) -> None:
        """What goes together with who promises less, or more, than RUD, and what is UET's alone."""
        if self.headers is not Headers.STANDARD and self.kind is not TransportKind.UET:
            raise ValueError(f"headers {self.headers} are UET's: set transport.kind=uet")
        mode = self.delivery
        has_pdc = mode in (Delivery.RUD, Delivery.ROD)
        refused = (
            (
                mode is not Delivery.RUD and self.kind is not TransportKind.UET,
                "is one of UET's: set transport.kind=uet",
            ),
            (
                mode is Delivery.ROD and self.entropy is not Entropy.SINGLE,
                "takes one way: leave transport.entropy single",
            ),
            (
                not has_pdc and self.entropy is Entropy.MRC,
                "has nobody who answers probes of ways: choose another transport.entropy",
            ),
            (
                not has_pdc and self.control.hears_credit,
                "has no connection that credit could be of: choose another transport.cc",
            ),
            (
                mode is Delivery.UUD and self.cc != "none",
                "has no answers that a congestion control could go by: leave transport.cc none",
            ),
            (
                mode is Delivery.RUDI and self.window > 1 << 14,
                "counts packets in 16 bits: lower transport.window to 16384",
            ),
        )
        for is_refused, why in refused:
            if is_refused:
                raise ValueError(f"delivery {mode} {why}")

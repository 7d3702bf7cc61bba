"""RoCEv2 endpoints from Python: plans as text, the native program as a process, its report.

The endpoint itself is C (`traffic/core`). This module knows which files it is made of, writes the
plan that a host is to carry out in the words of `script.h`, starts the program that carries it
out under the real clock, and reads what it says. Whoever uses it brings the built program: see
`PROGRAM_SOURCES` for what to compile.

    plan = EndpointPlan(config=EndpointConfig(link_bps=100_000_000_000), queue_pairs=..., ...)
    with EndpointProcess(program, HostSettings(interface="h1-eth0"), plan) as host:
        host.wait_ready()
        host.start(time.monotonic_ns() + 100_000_000)
        while not host.poll():
            time.sleep(0.02)
        report = host.stop()
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cached_property
from ipaddress import IPv6Address
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import Annotated, Literal, NamedTuple, Protocol, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from params.classes import Dscp, Queue
from params.data import Data
from traffic.congestion import CONTROLS, FOLDER, NONE, Value
from traffic.frames import (
    DSCP_CONTROL,
    DSCP_ROCE,
    ECN_CAPABLE,
    INT_LINK,
    INT_QUEUE,
    ROCE_PORT,
    UET_PORT,
    FlowAddress,
    Template,
    ends_of,
    template_of,
)

__all__ = [
    "ENTROPY_MAX",
    "MRC_OPTIONS",
    "NIC_SOURCE",
    "PORT_COUNTERS",
    "PROGRAM_SOURCES",
    "SCAPY_PROGRAM",
    "SOURCES",
    "STRETCH_SOURCE",
    "EndpointConfig",
    "EndpointError",
    "EndpointPlan",
    "EndpointProcess",
    "EndpointReport",
    "Entropies",
    "Entropy",
    "HostSettings",
    "PairWording",
    "Plan",
    "QpError",
    "QueuePair",
    "Recovery",
    "RetryLimit",
    "SecureKey",
    "Stand",
    "Transfer",
    "TransferKind",
    "TransferReport",
    "TransferState",
    "TransportKind",
    "WayChange",
    "Window",
    "after_lines",
    "counted_at",
    "list_lines",
    "mask_of",
    "port_counter",
    "read_report",
    "read_stands",
    "transfer_line",
]

CORE = Path(__file__).parent / "core"
_MODULES = (
    *(
        "aead",
        "credit",
        "endpoint",
        "entropy",
        "frame",
        "halves",
        "health",
        "icrc",
        "inc",
        "inc_numbers",
    ),
    *(
        "mrc_frame",
        "mrc_node",
        "plan",
        "qp",
        "requester",
        "responder",
        "rx_buffer",
        "scheduler",
        "script",
        "sue",
    ),
    *("tss", "uet_answer", "uet_frame", "uet_receive", "uet_send"),
)
SOURCES = (*(CORE / f"{name}.c" for name in _MODULES), *sorted(FOLDER.glob("*.c")))
"""What an endpoint is made of; link these into anything that hosts endpoints."""

PROGRAM_SOURCES = (*SOURCES, CORE / "host_main.c")
"""The program that runs one endpoint on a packet socket. Flags: -std=gnu11 -O2."""
NIC_SOURCE = CORE / "nic_main.c"
"""The program that is an adapter to a kernel's stack."""
STRETCH_SOURCE = CORE / "stretch.c"
"""What is loaded into programs that are to compute more slowly."""

SCAPY_PROGRAM = (sys.executable, "-m", "traffic.scapy_host")
"""The same to read: slow, and with less of what adapters can do."""

PORT_COUNTERS = (
    *("tx_packets", "tx_bytes", "rx_packets", "rx_bytes"),
    *(f"paused_{priority}_ns" for priority in range(8)),
)
"""What an adapter with several ports counts by port (`struct ep_port_counters`)."""

ENTROPY_MAX = 256
MRC_OPTIONS = ("timestamps", "port_status", "reverse_set")
"""What MRC leaves to whoever sets its adapters up, each on or off (`core/mrc_node.c`)."""

_ANSWER_S = 30.0
_LOOK_S = 0.2  # between two looks at whether to wait on
_LATENESS_REAL_NS = 5_000_000  # more than that late, a host does not catch up with its own rate


def port_counter(port: int, name: str) -> str:
    """What a counter of one port is called."""
    return f"port{port}_{name}"


def counted_at(counters: Mapping[str, int], port: int, name: str) -> int:
    """What an adapter counted at a port: with only one, that is all that it counted."""
    return counters.get(port_counter(port, name), counters.get(name, 0))


def mask_of(entropies: Iterable[int]) -> int:
    """Entropies as endpoints are told of them: bit i is entropy i."""
    mask = 0
    for entropy in entropies:
        if not 0 <= entropy < ENTROPY_MAX:
            raise ValueError(f"entropy {entropy}: they are 0 to {ENTROPY_MAX - 1}")
        mask |= 1 << entropy
    return mask


class EndpointError(Exception):
    """An endpoint could not be set up, or its program went away; the text says why."""


class Recovery(StrEnum):
    """What a loss costs."""

    GO_BACK_0 = "go-back-0"
    GO_BACK_N = "go-back-n"
    SELECTIVE = "selective"


class TransportKind(StrEnum):
    """What carries messages: RoCEv2, Ultra Ethernet Transport, MRC, or scale-up Ethernet."""

    ROCE = "roce"
    UET = "uet"
    MRC = "mrc"
    SUE = "sue"

    @property
    def sprays(self) -> bool:
        """Whether every packet takes a way of its own and is answered by itself."""
        return self in (TransportKind.UET, TransportKind.MRC)


class Delivery(StrEnum):
    """What UET promises of packets (`core/uet.h`)."""

    RUD = "rud"
    ROD = "rod"
    RUDI = "rudi"
    UUD = "uud"


class Headers(StrEnum):
    """UET's semantic header of a message that fits a packet (`core/uet_wire.h`)."""

    STANDARD = "standard"
    MEDIUM = "medium"
    SMALL = "small"


class Entropy(StrEnum):
    """How UET chooses a packet's way (`core/entropy.h`)."""

    OBLIVIOUS = "oblivious"
    BITMAP = "bitmap"
    REPS = "reps"
    SINGLE = "single"
    MRC = "mrc"


class TransferKind(StrEnum):
    """What a host does in a transfer."""

    SEND = "send"
    RECEIVE = "receive"
    COMPUTE = "compute"
    COLLECTIVE = "collective"


class TransferState(StrEnum):
    """How far a transfer came."""

    WAITING = "waiting"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def _power_of_two(number: int) -> int:
    if number & (number - 1):
        raise ValueError("it must be a power of two")
    return number


_PowerOfTwo = AfterValidator(_power_of_two)
Window = Annotated[int, Field(ge=1, le=1 << 20)]
RetryLimit = Annotated[int, Field(ge=0, le=250)]
Entropies = Annotated[int, Field(ge=1, le=ENTROPY_MAX), _PowerOfTwo]
_Flag = Annotated[int, Field(ge=0, le=1)]
_U8 = Annotated[int, Field(ge=0, lt=1 << 8)]
_U16 = Annotated[int, Field(ge=0, lt=1 << 16)]
_U24 = Annotated[int, Field(ge=0, lt=1 << 24)]
_U32 = Annotated[int, Field(ge=0, lt=1 << 32)]
_Positive = Annotated[int, Field(gt=0, lt=1 << 62)]
_Natural = Annotated[int, Field(ge=0, lt=1 << 62)]


class EndpointConfig(_Record):
    """An adapter's settings; what is None has the core's default (`ep_config_default`).

    A value by itself is good or not as `core/script.c` has it; `ep_config_problem` says what goes
    together.
    """

    link_bps: _Positive  # of each port
    ports: Annotated[int, Field(ge=1, le=8), _PowerOfTwo] | None = None
    bonded: _Flag | None = None
    overhead_bytes: Annotated[int, Field(ge=0, le=1000)] | None = None
    mtu: Annotated[int, Field(ge=64, le=9216, multiple_of=8)] | None = None
    ip: Literal[4, 6] | None = None
    payload: Literal["pattern", "none"] | None = None
    recovery: Recovery | None = None
    window: Window | None = None
    ack_every: Annotated[int, Field(ge=1, lt=1 << 32)] | None = None
    follow_rate: _Flag | None = None
    by_number: _Flag | None = None
    reorder: _Natural | None = None
    multipath: _Flag | None = None
    rto: _Natural | None = None
    rto_first: _Natural | None = None
    retry_limit: RetryLimit | None = None
    catch_up: Annotated[int, Field(ge=1, le=10**10)] | None = None
    int_port: _U16 | None = None
    csig: Annotated[int, Field(ge=0, le=8, multiple_of=4)] | None = None  # bytes of its tag
    control_priority: Queue | None = None
    acks: Literal["data", "control", "lossless"] | None = None
    lossless: _U8 | None = None
    receive_bps: _Natural | None = None
    receive_room: _U32 | None = None
    receive_xoff: _U32 | None = None
    receive_xon: _U32 | None = None
    pause_classes: _U8 | None = None
    pause_dscps: Annotated[int, Field(ge=0, lt=1 << 64)] | None = None
    credit_classes: _U8 | None = None
    credit_size: _U32 | None = None
    credit_least: _U32 | None = None
    credit_cell: _U32 | None = None
    credit_ask_after: _Natural | None = None
    storm_from: _Natural | None = None
    storm_until: _Natural | None = None
    transport: TransportKind | None = None
    delivery: Delivery | None = None
    security: _Flag | None = None
    headers: Headers | None = None
    entropy: Entropy | None = None
    entropies: Entropies | None = None
    timestamps: _Flag | None = None
    port_status: _Flag | None = None
    reverse_set: _Flag | None = None
    last_hop_dscp: Dscp | None = None
    has_trimming: _Flag | None = None
    hops: _U32 | None = None
    seed: _U32 | None = None
    base_rtt: _Positive | None = None
    cc: Mapping[str, Value] = {}  # parameters of congestion controls: {"dcqcn_profile": "mlx5"}

    def words(self) -> str:
        """The settings in the words of an `endpoint` line."""
        return self._words

    @cached_property
    def _words(self) -> str:
        given = self.model_dump(exclude_none=True)
        given |= given.pop("cc")
        return " ".join(f"{name.replace('_', '-')}={_word(value)}" for name, value in given.items())

    def line(self, queue_pairs: int, transfers: int, edges: int) -> str:
        """How a plan begins that has so many of each."""
        return f"endpoint {self.words()} qps={queue_pairs} transfers={transfers} edges={edges}"


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class SecureKey(NamedTuple):
    """A key of a secure domain, one of the two that it has at a time (`core/tss.h`)."""

    sdi: int
    an: int
    key: bytes

    def line(self) -> str:
        """That it is given."""
        return f"key {self.sdi} {self.an} {self.key.hex()}"

    def use_line(self) -> str:
        """That it is used from when on this is said."""
        return f"use {self.sdi} {self.an}"


class QueuePair(_Record):
    """One end of a reliable connection. `flow.queue_pair` is the number at the other end."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True
    )

    number: _U24
    flow: FlowAddress
    priority: Queue = 3
    cc: str = NONE
    rate_bps: _Natural = 0  # 0: the link's
    base_rtt_ns: _Natural = 0  # UET: of an empty fabric
    dscp: Dscp | None = None  # None: that of RoCE
    control_dscp: Dscp | None = None  # of CNPs; None: the usual one
    ecn_capable: bool = True
    transport: TransportKind = TransportKind.ROCE
    psn: _U24 = 0
    remote_psn: _U24 = 0
    port: Annotated[int, Field(ge=0, lt=8)] = 0  # RoCEv2: that it keeps to
    planes: tuple[FlowAddress, ...] = ()  # UET: the same at every further port
    lists: tuple[IPv6Address | None, ...] = ()  # by entropy: micro-segments to be carried along
    sdi: _U24 = 0  # with security: its secure domain

    def line(self) -> str:
        """This queue pair in the words of `script.h`."""
        wording = PairWording.of(
            self.flow.src.version,
            transport=self.transport,
            cc=self.cc,
            priority=self.priority,
            rate_bps=self.rate_bps,
            base_rtt_ns=self.base_rtt_ns,
            dscp=self.dscp,
            control_dscp=self.control_dscp,
            ecn_capable=self.ecn_capable,
            psn=self.psn,
            remote_psn=self.remote_psn,
            port=self.port,
            sdi=self.sdi,
        )
        flow = self.flow
        planes = b"".join(ends_of(flow) for flow in self.planes)
        ends = ends_of(flow)
        return wording.line(self.number, flow.queue_pair, ends, flow.src_port, planes)


class PairWording(Data):
    """The words of queue pairs that differ in who they are and to whom they speak only.

    Of these there may be millions: nothing is checked here, for endpoints check what they are told.
    """

    settings: str
    port: str
    data: Template
    control: Template

    @classmethod
    def of(
        cls,
        version: int,
        *,
        transport: TransportKind,
        cc: str,
        priority: int,
        rate_bps: int = 0,
        base_rtt_ns: int = 0,
        dscp: int | None = None,
        control_dscp: int | None = None,
        ecn_capable: bool = True,
        psn: int = 0,
        remote_psn: int = 0,
        port: int = 0,
        sdi: int = 0,
    ) -> PairWording:
        """Those of such settings, under a version of IP: see `QueuePair`."""
        telemetry = INT_QUEUE if CONTROLS[cc].hears_telemetry else 0
        own = INT_LINK if telemetry else 0
        tos = (DSCP_ROCE if dscp is None else dscp) << 2 | (ECN_CAPABLE if ecn_capable else 0)
        answers = (DSCP_CONTROL if control_dscp is None else control_dscp) << 2 | ECN_CAPABLE
        to = UET_PORT if transport is TransportKind.UET else ROCE_PORT
        rtt = f"base-rtt={base_rtt_ns} " if base_rtt_ns else ""
        domain = f"sdi={sdi} " if sdi else ""
        return cls(
            f"priority={priority} cc={cc} rate={rate_bps} psn={psn} remote-psn={remote_psn} "
            f"{rtt}{domain}",
            f"port={port} " if port else "",
            template_of(version, tos, telemetry, own, to),
            template_of(version, answers),
        )

    def line(
        self, number: int, remote: int, ends: bytes, src_port: int, planes: bytes = b""
    ) -> str:
        """One of them: `ends` as `ends_of` writes them, `planes` those at every further port."""
        return (
            f"qp number={number} remote={remote} {self.settings}{self.port}"
            f"{f'planes={planes.hex()} ' if planes else ''}"
            f"data={self.data.addressed(ends, src_port, remote).hex()} "
            f"control={self.control.addressed(ends, src_port, remote).hex()}"
        )


def list_lines(number: int, lists: Iterable[IPv6Address | None]) -> Iterator[str]:
    """A queue pair's segment lists likewise, by entropy."""
    for entropy, list_ in enumerate(lists):
        if list_ is not None:
            yield f"list {number} {entropy} {list_.packed.hex()}"


class Transfer(_Record):
    """A host's part in a transfer; `after` names those of its transfers that must end before."""

    id: _U32
    kind: TransferKind
    queue_pair: _U24 | None = None  # None only for a computation
    size: Annotated[int, Field(ge=0, le=1 << 31)] = 0
    delay_ns: _Natural = 0
    after: tuple[int, ...] = ()

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.queue_pair is None) != (self.kind is TransferKind.COMPUTE):
            raise ValueError(f"transfer {self.id}: messages have a queue pair, computations none")
        if self.after and self.kind is TransferKind.RECEIVE:
            raise ValueError(f"transfer {self.id}: a receive waits for its peer and nothing else")
        return self

    def line(self) -> str:
        """This transfer in the words of `script.h`."""
        return transfer_line(self.kind, self.id, self.queue_pair, self.size, self.delay_ns)


def transfer_line(kind: str, number: int, pair: int | None, size: int, delay_ns: int) -> str:
    """A transfer in the words of `script.h`."""
    if pair is None:
        return f"{kind} id={number} delay={delay_ns}"
    delay = f" delay={delay_ns}" if delay_ns else ""
    return f"{kind} id={number} qp={pair} size={size}{delay}"


def after_lines(number: int, after: Sequence[int]) -> Iterator[str]:
    """What a transfer waits for; the program reads lines of limited length."""
    for at in range(0, len(after), 64):
        yield f"after {number} {' '.join(map(str, after[at : at + 64]))}"


class Plan(Protocol):
    """All that an endpoint has to do."""

    @property
    def config(self) -> EndpointConfig:
        """What its adapter is set to."""

    def lines(self, config: EndpointConfig | None = None) -> Iterator[str]:
        """The plan in the words of `script.h`, perhaps with another config."""


class EndpointPlan(_Record):
    """A plan part by part."""

    config: EndpointConfig
    queue_pairs: tuple[QueuePair, ...]
    transfers: tuple[Transfer, ...]
    keys: tuple[SecureKey, ...] = ()  # that are in use

    def lines(self, config: EndpointConfig | None = None) -> Iterator[str]:
        """The plan in the words of `script.h`."""
        edges = sum(len(transfer.after) for transfer in self.transfers)
        config = config or self.config
        yield config.line(len(self.queue_pairs), len(self.transfers), edges)
        for key in self.keys:
            yield from (key.line(), key.use_line())
        for queue_pair in self.queue_pairs:
            yield queue_pair.line()
            yield from list_lines(queue_pair.number, queue_pair.lists)
        for transfer in self.transfers:
            yield transfer.line()
        for transfer in self.transfers:
            yield from after_lines(transfer.id, transfer.after)


class HostSettings(_Record):
    """Where and how fast the native program runs."""

    interface: Annotated[str, Field(pattern=r"^[^\s/,]{1,15}(,[^\s/,]{1,15}){0,7}$")]  # or several
    dilation: _Positive = 1  # real ns that a fabric ns lasts
    timeout_ns: _Natural = 0  # fabric time after which to give up; 0: never
    delay_ns: _Natural = 0  # of the cable; 0: there is none, frames go as fast as they may
    notes: Path | None = None  # where it writes down what begins and ends
    # An open file, and where in it each port reads what is due, and notes it
    # (`switch/rt/arrival_times.h`).
    arrival_times: tuple[int, ...] = ()

    def lines(self) -> Iterator[str]:
        """These settings in the words of the program."""
        yield (
            f"host interface={self.interface} dilation={self.dilation} "
            f"timeout={self.timeout_ns} delay={self.delay_ns}"
        )
        if self.arrival_times:
            yield f"arrival_times {' '.join(map(str, self.arrival_times))}"
        if self.notes is not None:
            yield f"notes {self.notes}"


class TransferReport(_Record):
    """What became of a transfer, seen from one host; times in fabric ns, None: it never did."""

    id: int
    kind: TransferKind
    state: TransferState
    start_ns: int | None
    end_ns: int | None


class QpError(_Record):
    """A queue pair that went to error."""

    number: int
    reason: str
    at_ns: int


class WayChange(NamedTuple):
    """That a way was left (bad), is used again (good), or was denied by a controller."""

    at_ns: int
    queue_pair: int
    entropy: int
    state: str


class Stand(NamedTuple):
    """Where a message stands that is not through, and what its queue pair waits for."""

    transfer: int
    error: str  # of the queue pair; "ok" if it has none
    does: str  # the sender sends or waits; the receiver has asked for what is missing, once
    in_flight: int  # packets of the queue pair that were sent and not acknowledged,
    waiting: int  # and that were not sent yet
    timeout_ns: int | None  # when what was sent counts as lost
    failed_ns: int | None

    @property
    def is_senders(self) -> bool:
        """Whether who sends it says so; who receives it says less."""
        return self.does != "asked"


class EndpointReport(_Record):
    """What an endpoint did."""

    transfers: dict[int, TransferReport]
    counters: dict[str, int]
    paused_ns: dict[int, int]  # by priority
    qp_errors: tuple[QpError, ...]
    late: Counter[int]  # how much later than asked the program woke, in fabric ns, and how often
    ways: tuple[WayChange, ...] = ()  # the first of them, where states of ways are kept
    stands: tuple[Stand, ...] = ()  # of messages that are not through


def read_stands(lines: Iterable[str]) -> Iterator[Stand]:
    """What a report's lines say of messages that are not through."""
    for line in lines:
        if line.startswith("stand "):
            _, number, error, does, in_flight, waiting, timeout, failed = line.split()
            counts = int(in_flight), int(waiting)
            yield Stand(int(number), error, does, *counts, _time(timeout), _time(failed))


def read_report(lines: Iterable[str]) -> EndpointReport:
    """Read the lines of a report; those that are not of it are skipped."""
    transfers: dict[int, TransferReport] = {}
    counters: dict[str, int] = {}
    paused: dict[int, int] = {}
    errors: list[QpError] = []
    late: Counter[int] = Counter()
    ways: list[WayChange] = []
    stands: list[Stand] = []
    for line in lines:
        match line.split():
            case ["transfer", number, kind, state, start, end]:
                transfers[int(number)] = TransferReport(
                    id=int(number),
                    kind=TransferKind(kind),
                    state=TransferState(state),
                    start_ns=_time(start),
                    end_ns=_time(end),
                )
            case ["counter", name, value]:
                counters[name] = int(value)
            case ["paused", priority, duration]:
                paused[int(priority)] = int(duration)
            case ["qp-error", number, reason, at]:
                errors.append(QpError(number=int(number), reason=reason, at_ns=int(at)))
            case ["way", at, pair, entropy, state]:
                ways.append(WayChange(int(at), int(pair), int(entropy), state))
            case ["stand", *_]:
                stands += read_stands([line])
            case ["late", late_ns, times]:
                late[int(late_ns)] += int(times)
    return EndpointReport(
        transfers=transfers,
        counters=counters,
        paused_ns=paused,
        qp_errors=tuple(errors),
        late=late,
        ways=tuple(ways),
        stands=tuple(stands),
    )


def _time(word: str) -> int | None:
    return None if word == "-" else int(word)


def _patient(plan: Plan, settings: HostSettings) -> Iterator[str]:
    """The plan with lateness made up for, unless it says how much: no real clock wakes on time."""
    if plan.config.catch_up is not None:
        return plan.lines()
    catch_up = max(1, _LATENESS_REAL_NS // settings.dilation)
    return plan.lines(plan.config.model_copy(update={"catch_up": catch_up}))


GiveUp = Callable[[], bool]  # asked again and again: whether to wait no longer


def after(seconds: float) -> GiveUp:
    """Give up after a time."""
    deadline = time.monotonic() + seconds
    return lambda: time.monotonic() > deadline


class EndpointProcess:
    """An endpoint program at work; `prefix` is a command to run it by, such as `ip netns exec`.

    `patience` tells when to give up waiting for the process of a number to answer.
    """

    def __init__(
        self,
        program: Path | Sequence[str],
        settings: HostSettings,
        plan: Plan,
        *,
        prefix: Sequence[str] = (),
        patience: Callable[[int], GiveUp] = lambda _: after(_ANSWER_S),
    ) -> None:
        self._name = settings.interface
        self._patience = patience
        self._lines: list[str] = []
        self._partial = b""
        self._plan = "\n".join((*settings.lines(), *_patient(plan, settings), "ready\n"))
        try:
            self._process = subprocess.Popen(
                [*prefix, *([str(program)] if isinstance(program, Path) else program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C is for us: we stop it and read its report
                pass_fds=settings.arrival_times[:1],
            )
        except OSError as error:
            raise EndpointError(f"cannot start the endpoint program: {error}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def wait_ready(self) -> None:
        """Hand over the plan; return when the program listens on its interface."""
        self._say(self._plan)
        self._wait_for("ready", self._patience(self._process.pid))

    def start(self, monotonic_ns: int) -> None:
        """Let fabric time 0 be when the monotonic clock shows this."""
        self._say(f"start {monotonic_ns}\n")

    def set_link(self, link_bps: int, port: int = 0) -> None:
        """Let the link at a port have another rate from now on."""
        self._say(f"link {link_bps} {port}\n")

    def set_up(self, port: int, *, is_up: bool) -> None:
        """Tell that a port has lost its link, or has one again."""
        self._say(f"up {is_up:d} {port}\n")

    def deny(self, queue_pair: int, entropies: Collection[int]) -> None:
        """Say which ways of a queue pair not to use, in place of what was said before."""
        self._say(f"deny {queue_pair} {mask_of(entropies):x}\n")

    def tell(self, line: str) -> None:
        """Say a controller's word as it stands in `script.h`."""
        self._say(f"{line}\n")

    def halt(self, *, is_halted: bool, for_good: bool = False) -> None:
        """Let the program stand still or go on; for good: end it."""
        if for_good:
            self._process.kill()
        elif self._process.poll() is None:
            self._process.send_signal(signal.SIGSTOP if is_halted else signal.SIGCONT)

    def stop(self) -> EndpointReport:
        """Stop the endpoint and read its report, or what it said before it died."""
        if self.has_died:
            return read_report(self._lines)
        self.halt(is_halted=False)  # so that it hears us
        self._say("stop\n")
        self._wait_for("end", self._patience(self._process.pid))
        self._process.wait()
        return read_report(self._lines)

    def kill(self) -> None:
        """End the program whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # of what it was told, and did not live to read
                    stream.close()

    @property
    def pid(self) -> int:
        """The program's process, the leader of a session of its own."""
        return self._process.pid

    @property
    def qp_errors(self) -> tuple[QpError, ...]:
        """The queue pairs known to have gone to error so far."""
        return read_report(self._lines).qp_errors

    @property
    def lost(self) -> dict[int, int]:
        """By port, how many frames found no room so far: it had no turn for too long."""
        said = (line.split() for line in self._lines if line.startswith("lost "))
        return {int(port): int(frames) for _, port, frames in said}

    @property
    def wild(self) -> tuple[int, int] | None:
        """What an algorithm that somebody brought did wrong, if it did, and where."""
        said = (line.split() for line in self._lines if line.startswith("wild "))
        return next(((int(end), int(where)) for _, end, where in said), None)

    @property
    def has_died(self) -> bool:
        """Whether it ended without having been told to."""
        return self._process.poll() is not None and "end" not in self._lines

    @property
    def exit_code(self) -> int | None:
        """How it ended, as Python tells of processes; None: it lives."""
        return self._process.poll()

    def poll(self) -> bool:
        """Read what the program has said meanwhile; True once all have ended or time was up."""
        self._read(0)
        return any(line.startswith(("done", "end")) for line in self._lines)

    def _say(self, text: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(text.encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # it has said why, or it will be missed when it is waited for

    def _wait_for(self, word: str, is_over: GiveUp) -> str:
        began = time.monotonic()
        at = 0
        while True:
            for line in self._lines[at:]:
                if line.split()[0] == word:
                    return line
                if line.startswith("refused"):
                    raise EndpointError(f"{self._name}: {line.split(' ', 2)[2]}")
            at = len(self._lines)
            if is_over():
                waited_s = time.monotonic() - began
                raise EndpointError(f"{self._name}: no '{word}' within {waited_s:.0f} s")
            if not self._read(_LOOK_S):
                code = self._process.wait()
                raise EndpointError(f"{self._name}: the endpoint program ended with status {code}")

    def _read(self, timeout_s: float) -> bool:
        """Take in more output; False at its end."""
        stdout = self._process.stdout
        assert stdout is not None
        with DefaultSelector() as selector:
            selector.register(stdout, EVENT_READ)
            if not selector.select(timeout_s):
                return True
        data = stdout.read1(65536)  # type: ignore[attr-defined]
        *whole, self._partial = (self._partial + data).split(b"\n")
        self._lines.extend(line.decode() for line in whole if line)
        return bool(data)

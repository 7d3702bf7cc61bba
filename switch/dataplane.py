"""The data plane from Python: a switch, the loop that hosts it, and what may be asked of them.

A `Dataplane` is one switch. It is passive: without a `Loop` nothing happens between calls, and a
test hands it packets with `inject` and collects what comes out. A `Loop` is one thread that hosts
many switches under the real clock; calls to a hosted switch are then carried out by that thread
between two bursts of packets, while the caller waits with the interpreter lock released.

All calls are thread-safe once a switch is hosted; without a loop, one thread at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from .events import DigestList, Event, IdleTimeout, PacketIn, PortState
from .ops import (
    NO_ACTION,
    CloneWrite,
    Code,
    CounterWrite,
    DefaultWrite,
    DigestAck,
    DigestWrite,
    DirectCounterWrite,
    DirectMeterWrite,
    Entry,
    GroupMember,
    GroupWrite,
    MemberWrite,
    MeterRates,
    MeterWrite,
    MulticastWrite,
    Op,
    OpError,
    RegisterWrite,
    Replica,
    TableWrite,
    ValueSetWrite,
    Verb,
)
from .program import (
    ActionInfo,
    CounterInfo,
    DigestInfo,
    KeyInfo,
    MatchKind,
    MeterInfo,
    ParamInfo,
    ProfileInfo,
    Program,
    RegisterInfo,
    TableInfo,
    ValueSetInfo,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "NO_ACTION",
    "ActionInfo",
    "CloneWrite",
    "Code",
    "CounterInfo",
    "CounterValue",
    "CounterWrite",
    "Dataplane",
    "DataplaneError",
    "DefaultWrite",
    "DigestAck",
    "DigestInfo",
    "DigestList",
    "DigestWrite",
    "DirectCounterWrite",
    "DirectMeterWrite",
    "Entry",
    "EntryState",
    "Event",
    "GroupMember",
    "GroupWrite",
    "IdleTimeout",
    "KeyInfo",
    "Loop",
    "MatchKind",
    "MemberWrite",
    "MeterInfo",
    "MeterRates",
    "MeterWrite",
    "MulticastWrite",
    "Op",
    "OpError",
    "PacketIn",
    "ParamInfo",
    "PortState",
    "PortStats",
    "ProfileInfo",
    "Program",
    "RegisterInfo",
    "RegisterWrite",
    "Replica",
    "Stats",
    "TableInfo",
    "TableWrite",
    "ValueSetInfo",
    "ValueSetWrite",
    "Verb",
]


class DataplaneError(Exception):
    """A request that could not be carried out; the message names the cure."""


@dataclass(slots=True, frozen=True)
class CounterValue:
    """What a counter has seen."""

    packets: int
    bytes: int


@dataclass(slots=True)
class EntryState:
    """An entry as the table holds it, with what it has seen."""

    entry: Entry
    counter: CounterValue | None
    rates: MeterRates | None
    idle_ns: int  # since it was last hit, or inserted
    is_const: bool


@dataclass(slots=True, frozen=True)
class PortStats:
    """A port's traffic and state."""

    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    is_up: bool
    queue_packets: tuple[int, ...]  # one per priority
    queue_bytes: tuple[int, ...]


@dataclass(slots=True, frozen=True)
class Stats:
    """Where every packet went: `received + copies == sent + sum(drops) + held`, always."""

    received: int
    copies: int  # clones and multicast replicas beyond the original
    sent: int
    held: int
    drops: Mapping[str, int]
    ports: Mapping[int, PortStats] = field(default_factory=dict)


class Loop:
    """One worker thread under the real clock, hosting any number of switches."""

    def __init__(self, *, dilation: float = 1.0) -> None:
        """Prepare a loop whose switches see time pass `dilation` times slower."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the thread; harmless when it runs."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop the thread; its switches keep their state and can be asked still."""
        raise NotImplementedError

    def now_ns(self) -> int:
        """Read the clock its switches live by."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Dataplane:
    """One switch."""

    def __init__(
        self,
        name: str,
        program: Program | None = None,
        *,
        loop: Loop | None = None,
        cpu_port: int | None = None,
        drop_port: int = 511,
        queues: int = 8,
        seed: int = 1,
    ) -> None:
        """Make a switch, hosted by `loop` if given; without a program it drops all it receives.

        What leaves on `cpu_port` becomes `PacketIn`; a packet-out enters there. `queues` is the
        number of priorities per port: a packet of a higher one is dropped, as BMv2 does.
        """
        raise NotImplementedError

    @property
    def program(self) -> Program | None:
        """The program that runs."""
        raise NotImplementedError

    def load(self, program: Program) -> None:
        """Swap the program between two packets; tables and all other state start afresh."""
        raise NotImplementedError

    def close(self) -> None:
        """Release the switch and its ports; harmless when repeated."""
        raise NotImplementedError

    # Ports

    def add_port(self, number: int, interface: str | None = None, *, fd: int | None = None) -> None:
        """Attach an interface by name, an open AF_PACKET socket, or (neither) a port in memory."""
        raise NotImplementedError

    def remove_port(self, number: int) -> None:
        """Detach a port; packets for it are dropped and counted from now on."""
        raise NotImplementedError

    def configure_port(
        self, number: int, *, rate_bps: int = 0, delay_ns: int = 0, overhead_bytes: int = 24
    ) -> None:
        """Give a port a link rate (0: unlimited), propagation delay and per-frame wire overhead."""
        raise NotImplementedError

    def set_queue_limits(
        self,
        port: int,
        priority: int | None,
        *,
        packets: int | None = None,
        bytes_: int | None = None,
    ) -> None:
        """Bound one queue of a port, or each of them with `priority` None."""
        raise NotImplementedError

    def set_queue_rate(self, port: int, priority: int | None, packets_per_s: int) -> None:
        """Pace one queue (or each) as BMv2's `set_queue_rate` does; 0 is unlimited."""
        raise NotImplementedError

    def set_queue_gate(self, register: int | None) -> None:
        """Let queues obey a register: [port * 8 + priority] holds a time until which one stands."""
        raise NotImplementedError

    def set_pcap(self, port: int, direction: str, path: Path | None) -> None:
        """Record what a port receives ("in") or sends ("out"); None stops it."""
        raise NotImplementedError

    def set_trace(self, sink: Callable[[str], None] | None) -> None:
        """Hear each packet's story, line by line (needs a program loaded with `trace=True`)."""
        raise NotImplementedError

    # The control plane

    def write(self, ops: Sequence[Op], *, all_or_nothing: bool = False) -> list[OpError | None]:
        """Carry out a batch, in order; a packet sees each entry whole or not at all.

        By default each operation stands alone. With `all_or_nothing` the first refusal undoes those
        before it; they and those after it answer ABORTED, and no packet sees a part of the batch.
        """
        raise NotImplementedError

    def entries(self, table: int) -> list[EntryState]:
        """Every entry of a table, const ones too, the default excepted."""
        raise NotImplementedError

    def entry(self, key: Entry) -> EntryState | None:
        """The entry with this match part (and priority), or None."""
        raise NotImplementedError

    def default_entry(self, table: int) -> EntryState:
        """A table's present default; its action is NO_ACTION where there is none."""
        raise NotImplementedError

    def read_counter(self, counter: int, index: int | None = None) -> list[CounterValue]:
        """One cell of an indirect counter, or all."""
        raise NotImplementedError

    def read_meter(self, meter: int, index: int | None = None) -> list[MeterRates | None]:
        """The rates of one cell of an indirect meter, or all; None where it is not configured."""
        raise NotImplementedError

    def read_register(self, register: int, index: int | None = None) -> list[int]:
        """One cell of a register array, or all."""
        raise NotImplementedError

    def packet_out(self, data: bytes) -> None:
        """Let a packet enter at the CPU port, its controller header (if any) in front."""
        raise NotImplementedError

    def stats(self) -> Stats:
        """Every packet accounted for."""
        raise NotImplementedError

    # What the switch tells

    @property
    def event_fd(self) -> int:
        """A file descriptor that is readable while events wait; for select or asyncio."""
        raise NotImplementedError

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until events wait (True) or the time is over."""
        raise NotImplementedError

    def drain(self) -> list[Event]:
        """Take all events that wait, oldest first."""
        raise NotImplementedError

    # In memory, without a loop: the caller is the clock

    def inject(self, port: int, data: bytes, now_ns: int) -> None:
        """Receive a packet at a port at a time, and send what may leave by then."""
        raise NotImplementedError

    def service(self, now_ns: int) -> int | None:
        """Send what may leave by now; return when to call again, or None if nothing waits."""
        raise NotImplementedError

    def outputs(self) -> list[tuple[int, bytes, int]]:
        """Take what left through ports in memory: (port, frame, time of the last bit's arrival)."""
        raise NotImplementedError

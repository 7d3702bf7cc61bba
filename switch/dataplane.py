"""The data plane from Python: a switch, the loop that hosts it, and what may be asked of them.

A `Dataplane` is one switch. It is passive: without a `Loop` nothing happens between calls, and a
test hands it packets with `inject` and collects what comes out. A `Loop` is one thread that hosts
many switches under the real clock; calls to a hosted switch are then carried out by that thread
between two bursts of packets, while the caller waits with the interpreter lock released.

All calls are thread-safe once a switch is hosted; without a loop, one thread at a time.
"""

from __future__ import annotations

import ctypes
import errno
import math
import os
import select
import struct
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import Enum
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, Self

from params.data import Data

from . import abi, layout, native
from .build import RUNTIME
from .events import DigestList, Event, IdleTimeout, PacketIn, PortState
from .objects import (
    ActionInfo,
    CounterInfo,
    DigestInfo,
    KeyInfo,
    MatchKind,
    MeterInfo,
    ParamInfo,
    ProfileInfo,
    RegisterInfo,
    TableInfo,
    ValueSetInfo,
)
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
from .program import Program
from .records import CTL_COUNTER, CTL_METER, CTL_REGISTER, METER, Records

__all__ = [
    "LARGE_RING",
    "NO_ACTION",
    "ActionInfo",
    "BookLine",
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
    "Order",
    "PacketIn",
    "ParamInfo",
    "PortState",
    "PortStats",
    "ProfileInfo",
    "Program",
    "RegisterInfo",
    "RegisterWrite",
    "Replica",
    "Role",
    "Stats",
    "TableInfo",
    "TableWrite",
    "ValueSetInfo",
    "ValueSetWrite",
    "Verb",
]


# Bytes for 2,200 frames: what comes in a slice of the scheduler, not much more, for a ring goes
# through the caches from end to end.
LARGE_RING = 29 << 17


class Role(Enum):
    """What a register is for that the program shares with the switch (switch/rt/sw.h).

    In P4 the register bears the role's name as an annotation: ``@queue_gate``.
    """

    QUEUE_GATE = 0
    PORT_DOWN = 1
    TIMER = 2
    CLOCK = 3
    QUEUE_LIMIT = 4
    QUEUE_SPENT = 5
    QUEUE_WAITED = 6
    QUEUE_WAITS = 7
    LINK_COUNTS = 8

    @property
    def mark(self) -> str:
        """The annotation."""
        return f"@{self.name.lower()}"

    @property
    def bits(self) -> tuple[int, int]:
        """How wide its cells may be: from four or eight bytes, of which the run-time knows."""
        if self in (Role.QUEUE_LIMIT, Role.QUEUE_SPENT, Role.QUEUE_WAITS):
            return 32, 32
        if self in (Role.QUEUE_WAITED, Role.LINK_COUNTS):
            return 33, 64
        return (1 if self is Role.PORT_DOWN else 17), 64


TIMES = "@times"  # the annotation of registers that hold times
CLOCK_BITS = 48  # of a program's clock

_PORT_BITS, _PRIORITY_BITS = 9, 3


class Order(Enum):
    """A table of the program whose entries are orders to the switch: how it serves its ports.

    In P4 the table bears the order's name as an annotation, ``@queue_schedule``; its key is a port,
    and a priority if it is of queues. Of an entry's action the parameters count that `Dataplane`'s
    methods name, without an entry all of them are 0.
    """

    QUEUE_SCHEDULE = 0
    PORT_SHAPER = 1
    QUEUE_CREDITS = 2
    LINK_REPLAY = 3

    @property
    def mark(self) -> str:
        """The annotation."""
        return f"@{self.name.lower()}"

    @property
    def key_bits(self) -> tuple[int, ...]:
        """The widths of its key's fields."""
        is_of_queues = self in (Order.QUEUE_SCHEDULE, Order.QUEUE_CREDITS)
        return (_PORT_BITS, _PRIORITY_BITS) if is_of_queues else (_PORT_BITS,)


class DataplaneError(Exception):
    """A request that could not be carried out; the message names the cure."""


class CounterValue(Data):
    """What a counter has seen."""

    packets: int
    bytes: int


class EntryState(Data, frozen=False):
    """An entry as the table holds it, with what it has seen."""

    entry: Entry
    counter: CounterValue | None
    rates: MeterRates | None
    idle_ns: int  # since it was last hit, or inserted
    is_const: bool


class PortStats(Data):
    """A port's traffic and state."""

    rx_packets: int
    rx_bytes: int
    tx_packets: int
    tx_bytes: int
    is_up: bool
    queue_packets: tuple[int, ...]  # one per priority
    queue_bytes: tuple[int, ...]
    rx_missed: int = 0  # frames the interface had for us and nobody took in time


class Stats(Data):
    """Where every packet went: `received + copies == sent + sum(drops) + held`, always."""

    received: int
    copies: int  # clones and multicast replicas beyond the original
    sent: int
    held: int
    drops: Mapping[str, int]
    ports: Mapping[int, PortStats] = field(default_factory=dict)


class BookLine(NamedTuple):
    """A line of a switch's books: see switch/rt/books.h."""

    book: str
    class_: int  # 0 to 7, 8: pause frames, 9: others
    made: bool  # a copy, or what a timer made; else it arrived
    of: int | str  # a port, a reason, or the class that it left as
    packets: int
    bytes: int


class Loop:
    """One worker thread under the real clock, hosting any number of switches."""

    def __init__(self, *, dilation: float = 1.0) -> None:
        """Prepare a loop whose switches see time pass `dilation` times slower."""
        if dilation <= 0:
            raise DataplaneError(f"the dilation must be positive, not {dilation}")
        self._native = native.runtime()
        self._handle = self._native.loop_new(dilation)
        if not self._handle:
            raise DataplaneError(f"cannot make a loop: {os.strerror(ctypes.get_errno())}")
        self._is_running = [False]
        free = self._native.loop_free
        weakref.finalize(self, _free, free, self._handle, self._is_running).atexit = False

    @property
    def handle(self) -> int:
        """The run-time's `struct loop`."""
        return int(self._handle)

    def start(self) -> None:
        """Start the thread; harmless when it runs."""
        if not self._native.loop_start(self._handle):
            raise DataplaneError("cannot start the data plane's thread")
        self._is_running[0] = True

    def stop(self) -> None:
        """Stop the thread; its switches keep their state and can be asked still."""
        self._native.loop_stop(self._handle)
        self._is_running[0] = False

    def now_ns(self) -> int:
        """Read the clock its switches live by."""
        return int(self._native.loop_now(self._handle))

    def lateness_ns(self) -> dict[int, int]:
        """How late what was due was served since this was last asked: how often by so much.

        By so much or, since such times are classes, up to an eighth more.
        """
        counts = (ctypes.c_uint64 * native.LATE_CLASSES)()
        self._native.loop_lateness(self._handle, counts)
        floor = self._native.loop_late_floor
        return {int(floor(number)): often for number, often in enumerate(counts) if often}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _free(free: Callable[[int], None], handle: int, is_running: Sequence[bool]) -> None:
    """Release a loop that nobody holds; its thread, should it run still, cannot release itself."""
    if not is_running[0]:
        free(handle)


def text_function(sink: Callable[[str], None] | None) -> object:
    """A function that C can call with a line of text; without a sink, C's NULL.

    A sink that fails (its reader has gone, say) is not called again.
    """
    if sink is None:
        return native.TextFunction()
    sinks = [sink]

    def say(_: int | None, text: bytes) -> None:
        try:
            for listener in sinks:
                listener(text.decode(errors="replace"))
        except Exception:
            sinks.clear()

    return native.TextFunction(say)


EVENT = abi.Declarations(RUNTIME / "event.h").packed("event_head")
EVENT_PACKET_IN, EVENT_DIGEST, EVENT_IDLE, EVENT_PORT = range(1, 5)
FRAME = abi.Declarations(RUNTIME / "port_memory.h").packed("memory_frame")
READ_BYTES = 1 << 20
WHOLE = 4  # most packets never stand further back


_CELLS = {1: "B", 2: "H", 4: "I", 8: "Q"}  # of registers that `struct` reads, by their bytes


@lru_cache(maxsize=8)
def _records_of(program: Program) -> Records:
    """How a program's records are packed: found out once for all switches that run it."""
    return Records(program)


class _Scratch(threading.local):
    """A thread's room for what it reads: one for all switches, which may be hundreds."""

    def __init__(self) -> None:
        self.buffer = ctypes.create_string_buffer(READ_BYTES)


_SCRATCH = _Scratch()


def _release(runtime: ctypes.CDLL, loop: int | None, switch: int, box: int) -> None:
    runtime.hosted_free(loop, switch)
    runtime.memory_box_free(box)


def padded(records: Iterable[bytes]) -> bytes:
    """Records as they are carried out: each from a multiple of 8 bytes on."""
    return b"".join(r if len(r) % 8 == 0 else r + bytes(-len(r) % 8) for r in records)


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
        whole: int = WHOLE,
        seed: int = 1,
    ) -> None:
        """Make a switch, hosted by `loop` if given; without a program it drops all it receives.

        What leaves on `cpu_port` becomes `PacketIn`; a packet-out enters there. `queues` is the
        number of priorities per port: a packet of a higher one is dropped, as BMv2 does. So many
        packets as `whole` says wait in a queue as they are; those behind them are packed, which
        takes time and saves memory.
        """
        self.name = name
        self._native = native.runtime()
        self._loop = loop
        self._l = loop.handle if loop else None
        self._cpu_port = cpu_port
        self._now_ns = 0
        self._program: Program | None = None
        self._loads = 0
        self._records: Records | None = None
        self._box = self._native.memory_box_new()
        self._sinks: Sequence[object] = ()
        self._orders: dict[int, Callable[[tuple[int, ...], dict[str, int]], None]] = {}
        cpu = -1 if cpu_port is None else cpu_port
        arguments = name.encode(), cpu, drop_port, queues, whole, seed
        self._sw = self._native.hosted_new(self._l, *arguments)
        if not self._sw:
            raise DataplaneError(f"{name}: memory is out")
        self._release: Callable[[], object] = partial(
            _release, self._native, self._l, self._sw, self._box
        )
        if loop is None:
            # A hosted switch is its loop's until it is closed. Another, with its memory and its
            # descriptor, goes with whoever held it.
            self._release = finalizer = weakref.finalize(self, self._release)
            finalizer.atexit = False
        if program is not None:
            self.load(program)

    @property
    def handle(self) -> int:
        """The run-time's `struct sw`, for who hosts it in C."""
        return int(self._sw)

    @property
    def program(self) -> Program | None:
        """The program that runs."""
        return self._program

    def load(self, program: Program) -> None:
        """Swap the program between two packets; tables and all other state start afresh."""
        library, address = native.program(program.library)
        records = _records_of(program)
        if not self._native.hosted_load(self._l, self._sw, address, self._now_ns):
            raise DataplaneError(
                f"{self.name}: cannot load the program: memory is out, "
                "or it was built for another run-time"
            )
        self._library = library
        self._loads += 1
        self._program = program
        self._records = records
        self._orders = {}
        consts = records.const_entries()
        for number, reason in enumerate(self._carry_out(consts, whole=False)):
            if reason:
                text = native.reason(reason)[1]
                raise DataplaneError(f"{self.name}: const entry {number}: {text}")

    def exchange(self, program: Program) -> None:
        """Go on with the same program, built differently: tables, state and packets stay."""
        library, address = native.program(program.library)
        if not self._native.hosted_exchange(self._l, self._sw, address):
            raise DataplaneError(f"{self.name}: it is another program that runs; load this one")
        self._library = library
        self._program = program
        self._records = _records_of(program)

    def close(self) -> None:
        """Release the switch and its ports; harmless when repeated."""
        if not self._sw:
            return
        self._release()
        self._sw = self._box = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Ports

    def add_port(
        self,
        number: int,
        interface: str | None = None,
        *,
        fd: int | None = None,
        netns: str | None = None,
        ring_bytes: int = LARGE_RING,
        arrival_times: tuple[int, int] | None = None,
    ) -> None:
        """Attach an interface by name, an open AF_PACKET socket, or (neither) a port in memory.

        `netns` is the path of the network namespace that the interface is in, if it is another.
        A socket belongs to the switch from then on. What comes by it waits in a ring of so many
        bytes while nobody has time for it. `arrival_times` are two addresses, where it reads when
        frames that come are due, and where it notes that of those that go
        (`rt/arrival_times.h`).
        """
        if not 0 <= number < native.PORTS:
            raise DataplaneError(f"{self.name}: port {number} is not 0 to {native.PORTS - 1}")
        if interface is None and fd is None:
            added = self._native.hosted_add_memory_port(self._l, self._sw, number, self._box)
        else:
            port = self._open_interface(interface, fd, netns)
            if arrival_times is not None:
                self._native.socket_tell_arrival_times(port, *arrival_times)
            added = self._native.hosted_add_socket_port(self._l, self._sw, number, port, ring_bytes)
        if not added:
            code = ctypes.get_errno()
            if code == errno.EBUSY:
                raise DataplaneError(f"{self.name}: port {number} is in use: remove it first")
            raise DataplaneError(f"{self.name}: cannot open port {number}: {os.strerror(code)}")

    def _open_interface(self, interface: str | None, fd: int | None, netns: str | None) -> int:
        if self._loop is None:
            raise DataplaneError(f"{self.name}: an interface needs a Loop to listen to it")
        what = ctypes.c_char_p()
        port = self._native.socket_open(
            interface.encode() if interface else None,
            netns.encode() if netns else None,
            -1 if fd is None else fd,
            ctypes.byref(what),
        )
        if not port:
            reason = os.strerror(ctypes.get_errno())
            step = (what.value or b"").decode()
            raise DataplaneError(f"{self.name}: {interface or fd}: cannot {step}: {reason}")
        return int(port)

    def remove_port(self, number: int) -> None:
        """Detach a port; packets for it are dropped and counted from now on."""
        self._native.hosted_remove_port(self._l, self._sw, number)

    def set_port_up(self, number: int, is_up: bool) -> None:
        """Let a port in memory be up or down; a real interface says so itself."""
        self._native.hosted_set_up(self._l, self._sw, number, is_up, self._now_ns)

    def configure_port(
        self, number: int, *, rate_bps: int = 0, delay_ns: int = 0, overhead_bytes: int = 24
    ) -> None:
        """Give a port a link rate (0: unlimited), propagation delay and per-frame wire overhead."""
        link = native.Link(rate_bps, delay_ns, overhead_bytes)
        self._check_port(self._native.hosted_set_link(self._l, self._sw, number, link), number)

    def set_cable(
        self,
        number: int,
        *,
        sends: bool,
        corrupt: float = 0,
        duplicate: float = 0,
        reorder: float = 0,
        late_ns: int = 0,
    ) -> None:
        """Let the cable at a port spoil what the port sends or receives, by chance.

        A corrupted frame is gone, one that is reordered arrives so much later.
        """
        chances = (round(each * 0xFFFFFFFF) for each in (corrupt, duplicate, reorder))
        faults = ctypes.byref(native.CableFaults(*chances, 0, late_ns))
        done = self._native.hosted_set_cable(self._l, self._sw, number, int(sends), faults)
        self._check_port(done, number)

    def set_queue_limits(
        self,
        port: int,
        priority: int | None,
        *,
        packets: int | None = None,
        bytes_: int | None = None,
    ) -> None:
        """Bound one queue of a port, or each of them with `priority` None."""
        self._set_queue(port, priority, packets=packets, bytes_=bytes_)

    def set_queue_rate(self, port: int, priority: int | None, packets_per_s: int) -> None:
        """Pace one queue (or each) as BMv2's `set_queue_rate` does; 0 is unlimited."""
        self._set_queue(port, priority, packets_per_s=packets_per_s)

    def _set_queue(
        self,
        port: int,
        priority: int | None,
        *,
        packets: int | None = None,
        bytes_: int | None = None,
        packets_per_s: int | None = None,
    ) -> None:
        def given(value: int | None) -> int:
            return -1 if value is None else value

        queue = native.Queue(given(priority), given(packets), given(bytes_), given(packets_per_s))
        done = self._native.hosted_set_queue(self._l, self._sw, port, ctypes.byref(queue))
        self._check_port(done, port)

    def _check_port(self, done: bool, number: int) -> None:
        if not done:
            raise DataplaneError(f"{self.name}: port {number} is not 0 to {native.PORTS - 1}")

    def keep_times(self, registers: Sequence[int]) -> None:
        """Let these hold times, and no others: with the program's clock they are set back.

        In P4 such a register has the annotation ``@times``.
        """
        for number in (native.NONE, *registers):
            if not self._native.hosted_keep_times(self._l, self._sw, number):
                raise DataplaneError(
                    f"{self.name}: register {number} cannot hold times: there is none of that "
                    "number, its cells are no bit<48>, or there are too many of them"
                )

    def share_register(self, role: Role, register: int | None) -> None:
        """Share a register with the program; None: share none in that role any more."""
        number = native.NONE if register is None else register
        if not self._native.hosted_share(self._l, self._sw, role.value, number):
            raise DataplaneError(
                f"{self.name}: register {register} cannot be the {role.name.lower()}: "
                "there is none of that number, or its cells do not hold times"
            )

    def schedule_queue(
        self, port: int, priority: int, *, quantum: int = 0, rate_bps: int = 0, burst: int = 0
    ) -> None:
        """Let a queue take turns with others by its quantum (0: it is strict), and shape it."""
        if not 0 <= priority < native.QUEUES:
            most = native.QUEUES - 1
            raise DataplaneError(f"{self.name}: priority {priority} is not 0 to {most}")
        self._set_service(port, native.Service(priority, 0, quantum, rate_bps, burst))

    def shape_port(
        self, port: int, *, rate_bps: int = 0, burst: int = 0, classes: int = 0xFF
    ) -> None:
        """Shape queues of a port together, bit q of `classes` being queue q; rate 0: not at all."""
        self._set_service(port, native.Service(-1, classes, 0, rate_bps, burst))

    def _set_service(self, port: int, service: native.Service) -> None:
        done = self._native.hosted_set_service(self._l, self._sw, port, ctypes.byref(service))
        self._check_port(done, port)

    def hold_queue(
        self,
        port: int,
        priority: int,
        *,
        credit: int = 0,
        least: int = 0,
        cell: int = 1,
        ask_after: int = 0,
    ) -> None:
        """Let a queue send what it has credits for, ``least`` at least; 0: whatever it has."""
        wanted = native.Credit(priority, least, cell, credit, ask_after)
        done = self._native.hosted_set_credit(self._l, self._sw, port, ctypes.byref(wanted))
        self._check_link(done, port)

    def replay_link(
        self, port: int, *, room: int = 0, timeout: int = 0, ack_every: int = 0, selective: int = 0
    ) -> None:
        """Let the link at a port try again what it lost, keeping so many bytes; 0: no more."""
        replay = native.Replay(room, timeout, ack_every, selective)
        done = self._native.hosted_set_replay(self._l, self._sw, port, ctypes.byref(replay))
        self._check_link(done, port)

    def _check_link(self, done: bool, port: int) -> None:
        if not done:
            raise DataplaneError(
                f"{self.name}: port {port} is not 0 to {native.PORTS - 1}, memory is short, or the "
                "program shares no registers for credits (@queue_limit, @queue_spent, "
                "@queue_waited, @queue_waits)"
            )

    def set_order_tables(self, tables: Mapping[Order, int | None]) -> None:
        """Let queues, ports and links be served as the entries of these tables say."""
        orders = {
            Order.QUEUE_SCHEDULE: self._schedule_entry,
            Order.PORT_SHAPER: self._shape_entry,
            Order.QUEUE_CREDITS: self._hold_entry,
            Order.LINK_REPLAY: self._replay_entry,
        }
        self._orders = {
            table: orders[order] for order, table in tables.items() if table is not None
        }
        for table, obey in self._orders.items():
            for state in self.entries(table):
                obey(state.entry.values, self._params(state.entry))

    def _hold_entry(self, key: tuple[int, ...], params: dict[str, int]) -> None:
        settings = {name: params.get(name, 0) for name in ("credit", "least", "cell", "ask_after")}
        self.hold_queue(*key, **settings)

    def _replay_entry(self, key: tuple[int, ...], params: dict[str, int]) -> None:
        settings = {
            name: params.get(name, 0) for name in ("room", "timeout", "ack_every", "selective")
        }
        self.replay_link(*key, **settings)

    def _schedule_entry(self, key: tuple[int, ...], params: dict[str, int]) -> None:
        self.schedule_queue(
            *key,
            quantum=params.get("quantum", 0),
            rate_bps=params.get("rate", 0),
            burst=params.get("burst", 0),
        )

    def _shape_entry(self, key: tuple[int, ...], params: dict[str, int]) -> None:
        self.shape_port(
            *key,
            rate_bps=params.get("rate", 0),
            burst=params.get("burst", 0),
            classes=params.get("classes", 0xFF),
        )

    def _params(self, entry: Entry) -> dict[str, int]:
        if entry.action == NO_ACTION:
            return {}
        names = self._need().program.actions[entry.action].params
        return {info.name: value for info, value in zip(names, entry.params, strict=True)}

    def _obey(self, op: Op) -> None:
        """After a table was written whose entries are orders: carry them out."""
        if isinstance(op, TableWrite) and op.entry.table in self._orders:
            is_gone = op.verb is Verb.DELETE
            params = {} if is_gone else self._params(op.entry)
            self._orders[op.entry.table](op.entry.values, params)

    def set_pcap(self, port: int, direction: str, path: Path | None) -> None:
        """Record what a port receives ("in") or sends ("out"); None stops it."""
        if direction not in ("in", "out"):
            raise DataplaneError(f'a direction is "in" or "out", not {direction!r}')
        name = os.fsencode(path) if path else None
        if not self._native.hosted_set_pcap(self._l, self._sw, port, direction == "out", name):
            reason = os.strerror(ctypes.get_errno())
            raise DataplaneError(f"{self.name}: {path}: cannot record: {reason}")

    def set_trace(
        self, sink: Callable[[str], None] | None, log: Callable[[str], None] | None = None
    ) -> None:
        """Hear each packet's story, line by line (needs a program loaded with `trace=True`).

        `log` (or else `sink`) hears what the program says by log_msg, traced or not. Both are
        called by the data plane's thread and must not call the switch.
        """
        functions = [text_function(sink), text_function(log or sink)]
        self._native.hosted_set_trace(self._l, self._sw, *functions)
        self._sinks = functions  # they must live as long as they may be called

    # The control plane

    def write(self, ops: Sequence[Op], *, all_or_nothing: bool = False) -> list[OpError | None]:
        """Carry out a batch, in order; a packet sees each entry whole or not at all.

        By default each operation stands alone. With `all_or_nothing` the first refusal undoes those
        before it; they and those after it answer ABORTED, and no packet sees a part of the batch.
        """
        if self._records is None:
            text = "the switch runs no program: load one first"
            return [OpError(Code.FAILED_PRECONDITION, text) for _ in ops]
        packed = list(map(self._records.pack, ops))
        return self.write_packed(ops, packed, all_or_nothing=all_or_nothing)

    def pack(self, op: Op) -> bytes | OpError:
        """An operation in the words of whatever switch runs this program, or why it cannot be."""
        return self._need().pack(op)

    def write_packed(
        self,
        ops: Sequence[Op],
        packed: Sequence[bytes | OpError],
        *,
        all_or_nothing: bool = False,
    ) -> list[OpError | None]:
        """The same as `write`, for who has packed them before, for another switch."""
        if all_or_nothing and any(isinstance(p, OpError) for p in packed):
            aborted = OpError(Code.ABORTED, "another operation of the batch failed")
            return [p if isinstance(p, OpError) else aborted for p in packed]
        records = [p for p in packed if isinstance(p, bytes)]
        reasons = iter(self._carry_out(records, whole=all_or_nothing))
        results: list[OpError | None] = []
        for op, item in zip(ops, packed, strict=True):
            if isinstance(item, OpError):
                results.append(item)
                continue
            reason = next(reasons)
            if not reason and self._orders:
                self._obey(op)
            results.append(self._explain(op, reason) if reason else None)
        return results

    @property
    def order_tables(self) -> Collection[int]:
        """The tables whose entries are orders: see `set_order_tables`."""
        return self._orders.keys()

    def write_many(self, packed: bytes, count: int, orders: Iterable[TableWrite]) -> OpError | None:
        """Carry out so many operations, packed as `padded` has them; what was refused first.

        ``orders`` are those of them that write `order_tables`.
        """
        results = self._written(packed, count, whole=False)
        for op in orders:
            self._obey(op)
        if not any(results):
            return None
        reason = next(result for result in results if result) & 0xFFFFFFFF
        code, text = native.reason(reason)
        return OpError(Code(code), text)

    def _explain(self, op: Op, reason: int) -> OpError:
        code, text = native.reason(reason)
        return OpError(Code(code), f"{self._describe(op)}: {text}")

    def _describe(self, op: Op) -> str:
        assert self._program is not None
        match op:
            case TableWrite(entry=e) | DirectCounterWrite(entry=e) | DirectMeterWrite(entry=e):
                return f"table {self._program.tables[e.table].name}"
            case DefaultWrite(table=table):
                return f"default action of table {self._program.tables[table].name}"
            case MemberWrite(profile=profile, member=member):
                return f"member {member} of {self._name_of(self._program.profiles, profile)}"
            case GroupWrite(profile=profile, group=group):
                return f"group {group} of {self._name_of(self._program.profiles, profile)}"
            case MulticastWrite(group=group):
                return f"multicast group {group}"
            case CloneWrite(session=session):
                return f"clone session {session}"
            case CounterWrite(counter=number):
                return f"counter {self._name_of(self._program.counters, number)}"
            case MeterWrite(meter=number):
                return f"meter {self._name_of(self._program.meters, number)}"
            case RegisterWrite(register=number):
                return f"register {self._name_of(self._program.registers, number)}"
        return type(op).__name__

    def _name_of(self, among: Sequence[object], index: int) -> str:
        return str(getattr(among[index], "name", index)) if 0 <= index < len(among) else str(index)

    def _carry_out(self, records: list[bytes], *, whole: bool) -> list[int]:
        """Have records carried out; returns a reason for each, 0 for done."""
        if not records:
            return []
        results = self._written(padded(records), len(records), whole=whole)
        return [r & 0xFFFFFFFF for r in results]

    def _written(self, data: bytes, n: int, *, whole: bool) -> ctypes.Array[ctypes.c_uint64]:
        results = (ctypes.c_uint64 * n)()
        self._native.hosted_write(
            self._l, self._sw, data, len(data), results, n, whole, self._now_ns
        )
        return results

    def _need(self) -> Records:
        if self._records is None:
            raise DataplaneError(f"{self.name}: no program runs: load one first")
        return self._records

    def _state(self, record: bytes) -> EntryState:
        records = self._need()
        entry, rest = records.unpack_entry(record)
        idle, is_const, has_rates, packets, octets, *rates = rest
        info = records.program.tables[entry.table]
        return EntryState(
            entry=entry,
            counter=CounterValue(packets, octets) if info.has_counters else None,
            rates=MeterRates(*rates) if has_rates else None,
            idle_ns=idle,
            is_const=bool(is_const),
        )

    def entries(self, table: int) -> list[EntryState]:
        """Every entry of a table, const ones too, the default excepted."""
        size = self._need().entry_size(table)
        position = ctypes.c_uint32(0)
        found = []
        while position.value != native.NONE:
            used = self._native.hosted_read_entries(
                self._l,
                self._sw,
                table,
                ctypes.byref(position),
                _SCRATCH.buffer,
                READ_BYTES,
                self._now_ns,
            )
            data = ctypes.string_at(_SCRATCH.buffer, used)
            found += [self._state(data[i : i + size]) for i in range(0, used, size)]
        return found

    def entry(self, key: Entry) -> EntryState | None:
        """The entry with this match part (and priority), or None."""
        records = self._need()
        record = records.pack(TableWrite(Verb.DELETE, key))
        if isinstance(record, OpError):
            raise DataplaneError(record.message)
        used = self._native.hosted_read_entry(
            self._l, self._sw, record, _SCRATCH.buffer, self._now_ns
        )
        data = ctypes.string_at(_SCRATCH.buffer, used)
        return self._state(data) if used else None

    def default_entry(self, table: int) -> EntryState:
        """A table's present default; its action is NO_ACTION where there is none."""
        self._need().table(table)
        used = self._native.hosted_read_default(
            self._l, self._sw, table, _SCRATCH.buffer, self._now_ns
        )
        data = ctypes.string_at(_SCRATCH.buffer, used)
        return self._state(data)

    def _cells(
        self, kind: int, number: int, size: int, index: int | range | None, item: int
    ) -> bytes:
        """Cells of an array, `item` bytes each."""
        if isinstance(index, int):
            index = range(index, index + 1)
        wanted = range(size) if index is None else index
        first, count = wanted.start, len(wanted)
        if not 0 <= first <= first + count <= size:
            raise DataplaneError(f"{self.name}: index {index} is beyond the {size} cells there are")
        out = ctypes.create_string_buffer(max(count * item, 1))
        self._native.hosted_read_cells(self._l, self._sw, kind, number, first, count, out)
        return out.raw[: count * item]

    def read_counter(self, counter: int, index: int | range | None = None) -> list[CounterValue]:
        """One cell of an indirect counter, some, or all."""
        info = self._need().program.counters[counter]
        data = self._cells(
            CTL_COUNTER, counter, 0 if info.table is not None else info.size, index, 16
        )
        return [CounterValue(p, b) for p, b in struct.iter_unpack("<QQ", data)]

    def read_meter(self, meter: int, index: int | None = None) -> list[MeterRates | None]:
        """The rates of one cell of an indirect meter, or all; None where it is not configured."""
        info = self._need().program.meters[meter]
        size = 0 if info.table is not None else info.size
        data = self._cells(CTL_METER, meter, size, index, METER.size)
        return [MeterRates(*rates) if on else None for on, *rates in METER.iter_unpack(data)]

    def read_register(self, register: int, index: int | range | None = None) -> list[int]:
        """One cell of a register array, some, or all."""
        info = self._need().program.registers[register]
        size = layout.cell_bytes(info.width)
        data = self._cells(CTL_REGISTER, register, info.size, index, size)
        if code := _CELLS.get(size):
            return [*struct.unpack(f"<{len(data) // size}{code}", data)]
        return [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]

    def packet_out(self, data: bytes) -> None:
        """Let a packet enter at the CPU port, its controller header (if any) in front."""
        if self._cpu_port is None:
            raise DataplaneError(f"{self.name}: it has no CPU port: give it one")
        self._native.hosted_receive(
            self._l, self._sw, self._cpu_port, data, len(data), self._now_ns
        )

    def stats(self) -> Stats:
        """Every packet accounted for."""
        counted = native.Stats()
        self._native.hosted_stats(self._l, self._sw, counted)
        return replace(_stats(counted), ports=self._ports())

    def books(self) -> tuple[list[BookLine], Stats]:
        """What became of every frame and byte, by class, and in plain numbers at the same moment.

        Lines of nothing are left out, and so is what ports tell.
        """
        counted = native.Stats()
        tell = partial(self._native.hosted_books, self._l, self._sw, counted)
        return book_lines(tell, native.drop_names()), _stats(counted)

    def _ports(self) -> dict[int, PortStats]:
        infos = (native.PortInfo * native.PORTS)()
        count = self._native.hosted_ports(self._l, self._sw, infos, native.PORTS)
        return {
            p.number: PortStats(
                rx_packets=p.rx_packets,
                rx_bytes=p.rx_bytes,
                tx_packets=p.tx_packets,
                tx_bytes=p.tx_bytes,
                is_up=bool(p.is_up),
                queue_packets=tuple(p.queue_packets),
                queue_bytes=tuple(p.queue_bytes),
                rx_missed=p.rx_missed,
            )
            for p in infos[:count]
        }

    # What the switch tells

    @property
    def event_fd(self) -> int:
        """A file descriptor that is readable while events wait; for select or asyncio."""
        return int(self._native.hosted_event_fd(self._sw))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Sleep until events wait (True) or the time is over."""
        poll = select.poll()  # select() knows no descriptor above 1023
        poll.register(self.event_fd, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else math.ceil(timeout_s * 1000)))

    def drain(self) -> list[Event]:
        """Take all events that wait, oldest first."""
        events: list[Event] = []
        while used := self._native.hosted_drain(self._sw, _SCRATCH.buffer, READ_BYTES):
            events += self._unpack_events(ctypes.string_at(_SCRATCH.buffer, used))
        return events

    def _unpack_events(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        at = 0
        while at < len(data):
            kind, size, time_ns, a, b, count, loads = EVENT.unpack_from(data, at)
            body = data[at + EVENT.size : at + EVENT.size + size]
            at += EVENT.size + -(-size // 8) * 8
            if kind in (EVENT_DIGEST, EVENT_IDLE) and loads != self._loads:
                continue  # of a program that runs no more
            event = self._event(kind, body, time_ns, a, b, count)
            if event is not None:
                events.append(event)
        return events

    def _event(
        self, kind: int, body: bytes, time_ns: int, a: int, b: int, count: int
    ) -> Event | None:
        if kind == EVENT_PACKET_IN:
            return PacketIn(body, time_ns)
        if kind == EVENT_PORT:
            return PortState(a, bool(b), time_ns)
        records = self._records
        if records is None:
            return None
        if kind == EVENT_IDLE:
            return IdleTimeout(records.unpack_entry(body)[0], time_ns)
        size = records.sample_size(a)
        samples = (body[i * size : (i + 1) * size] for i in range(count))
        return DigestList(a, b, tuple(records.unpack_sample(a, s) for s in samples), time_ns)

    # In memory, without a loop: the caller is the clock

    def inject(self, port: int, data: bytes, now_ns: int) -> None:
        """Receive a packet at a port at a time, and send what may leave by then."""
        self._now_ns = max(self._now_ns, now_ns)
        self._native.hosted_receive(self._l, self._sw, port, data, len(data), now_ns)

    def service(self, now_ns: int) -> int | None:
        """Send what may leave by now; return when to call again, or None if nothing waits."""
        self._now_ns = max(self._now_ns, now_ns)
        wake = int(self._native.sw_service(self._sw, now_ns))
        return None if wake == native.NEVER else wake

    def outputs(self) -> list[tuple[int, bytes, int]]:
        """Take what left through ports in memory: (port, frame, time of the last bit's arrival)."""
        size = ctypes.c_size_t()
        start = self._native.memory_box_take(self._box, ctypes.byref(size))
        if not size.value:
            return []
        data = ctypes.string_at(start, size.value)
        frames = []
        at = 0
        while at < len(data):
            when, port, length = FRAME.unpack_from(data, at)
            at += FRAME.size
            frames.append((port, data[at : at + length], when))
            at += -(-length // 8) * 8
        return frames


def _stats(counted: native.Stats) -> Stats:
    drops = zip(native.drop_names(), counted.drops, strict=True)
    dropped = {name: count for name, count in drops if count}
    return Stats(counted.received, counted.copies, counted.sent, counted.held, dropped)


def book_lines(tell: Callable[[object, int], int], reasons: Sequence[str]) -> list[BookLine]:
    """All lines that C tells, of something that drops for these reasons."""
    room = 256
    while True:
        lines = (native.BookLine * room)()
        count = tell(lines, room)
        if count <= room:
            return [_book_line(line, reasons) for line in lines[:count]]
        room = count


def _book_line(line: native.BookLine, reasons: Sequence[str]) -> BookLine:
    book = native.BOOKS[line.book]
    made, class_ = divmod(line.kind, native.BOOK_MADE)
    of = reasons[line.of] if book == "dropped" else line.of
    size = line.bytes - (line.bytes >> 63 << 64) if book == "changed" else line.bytes
    return BookLine(book, class_, bool(made), of, line.packets, size)

"""A network of switches in memory, in virtual time: what the tests of the fabric program run on.

The caller is the clock. Switches run the real data plane; a cable hands a frame to the other end at
the time its last bit arrives there, which the sending switch says. Hosts are Python objects.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import field
from functools import cache, partial
from pathlib import Path

from compiler import compile_program
from controller.entities import CloneSession, DefaultAction, MulticastGroup, SwitchPlan, TableEntry
from params.data import Data
from switch.dataplane import (
    CloneWrite,
    Dataplane,
    DefaultWrite,
    Entry,
    MatchKind,
    MulticastWrite,
    Op,
    Order,
    Replica,
    Role,
    TableWrite,
    Verb,
)
from switch.program import Program

FABRIC = Path(__file__).parent.parent.parent / "p4src" / "fabric.p4"
OVERHEAD = 24  # bytes a frame takes on the wire besides its own
NS = 1_000_000_000


@cache
def fabric_program() -> Program:
    """The fabric program, ready to run."""
    return Program.load(compile_program(FABRIC).json_text.encode())


@cache
def index_of(program: Program, kind: str, name: str) -> int:
    """The number of one of a program's tables, registers, counters..."""
    named = [i for i in getattr(program, kind) if i.name == name or i.name.endswith("." + name)]
    assert len(named) == 1, f"{name}: {len(named)} of that name"
    return int(named[0].index)


SHARED = {
    Role.QUEUE_GATE: "queue_gate",
    Role.PORT_DOWN: "port_down",
    Role.TIMER: "timers",
    Role.CLOCK: "clock",
    Role.QUEUE_LIMIT: "credit_limit",
    Role.QUEUE_SPENT: "credit_spent",
    Role.QUEUE_WAITED: "credit_waited",
    Role.QUEUE_WAITS: "credit_waits",
    Role.LINK_COUNTS: "link_counts",
}
TIMES = (
    "link_time", "flowlet_seen", "pause_heard", "pause_moved", "pause_stuck_since", "conga_to_time",
    "conga_from_time", "punt_due",
)  # fmt: skip
ORDERS = {
    Order.QUEUE_SCHEDULE: "queue_schedules",
    Order.PORT_SHAPER: "port_shapers",
    Order.QUEUE_CREDITS: "queue_credits",
    Order.LINK_REPLAY: "link_replays",
}


class Switch(Data, frozen=False):
    """A switch that is told what to do by plans, and asked by name."""

    name: str
    plane: Dataplane
    wake: int | None = None

    @classmethod
    def make(
        cls, name: str, seed: int = 1, program: Program | None = None, whole: int = 0
    ) -> Switch:
        """Whatever waits there is packed, lest that is tried in long queues only."""
        program = program or fabric_program()
        plane = Dataplane(name, program, seed=seed, cpu_port=500, whole=whole)
        registers, tables = (
            partial(index_of, program, "registers"),
            partial(index_of, program, "tables"),
        )
        for role, register in SHARED.items():
            plane.share_register(role, registers(register))
        plane.keep_times([registers(register) for register in TIMES])
        plane.set_order_tables({order: tables(table) for order, table in ORDERS.items()})
        return cls(name, plane)

    @property
    def program(self) -> Program:
        assert self.plane.program is not None
        return self.plane.program

    def add_port(self, port: int, rate_bps: int, delay_ns: int) -> None:
        self.plane.add_port(port)
        self.plane.configure_port(port, rate_bps=rate_bps, delay_ns=delay_ns)
        self.plane.set_queue_limits(port, None, packets=1 << 20, bytes_=1 << 30)

    def tell(self, plan: SwitchPlan, verb: Verb = Verb.INSERT) -> None:
        """Carry out a plan, of which nothing may be refused."""
        ops = [self._op(entity, verb) for entity in plan]
        refused = [error for error in self.plane.write(ops) if error]
        assert not refused, refused[0]

    def _op(self, entity: object, verb: Verb) -> Op:
        match entity:
            case TableEntry():
                return TableWrite(verb, self._entry(entity))
            case DefaultAction(table, action, params):
                number = index_of(self.program, "tables", table)
                return DefaultWrite(number, *self._action(number, action, dict(params)))
            case CloneSession(session, port, priority):
                return CloneWrite(verb, session, (Replica(port),), priority=priority)
            case MulticastGroup(group, ports):
                return MulticastWrite(verb, group, tuple(Replica(port) for port in ports))
        raise AssertionError(entity)

    def _entry(self, entity: TableEntry) -> Entry:
        number = index_of(self.program, "tables", entity.table)
        match = dict(entity.match)
        values, masks = [], []
        for key in self.program.tables[number].keys:
            given = match.pop(key.name, 0)
            value, mask = given if isinstance(given, tuple) else (given, 0)
            if isinstance(given, int) and key.kind is MatchKind.EXACT:
                mask = (1 << key.width) - 1
            values.append(value)
            masks.append(mask)
        assert not match, match
        action, params = self._action(number, entity.action, dict(entity.params))
        return Entry(number, tuple(values), tuple(masks), entity.priority, action, params)

    def _action(self, table: int, name: str, params: dict[str, int]) -> tuple[int, tuple[int, ...]]:
        offered = [self.program.actions[a] for a in self.program.tables[table].actions]
        (action,) = (a for a in offered if a.name == name or a.name.endswith("." + name))
        values = tuple(params.pop(p.name) for p in action.params)
        assert not params, params
        return action.index, values

    def register(self, name: str, index: int = 0) -> int:
        return self.plane.read_register(index_of(self.program, "registers", name), index)[0]

    def counters(self, name: str, index: int | None = None) -> list[int]:
        """Packets that one cell of a counter has seen, or each of them."""
        found = self.plane.read_counter(index_of(self.program, "counters", name), index)
        return [value.packets for value in found]

    def counter(self, name: str, index: int) -> int:
        return self.counters(name, index)[0]

    def dropped(self, reason: int) -> int:
        return self.counter("dropped", reason)

    def used(self) -> dict[str, int]:
        """What the shared buffer holds, by its own account: all zero when the switch is empty."""
        names = (
            *("buffer_pool_used", "buffer_in_used", "buffer_in_headroom", "buffer_out_used"),
            *("buffer_shared", "buffer_headroom_used"),
        )
        return {
            name: sum(self.plane.read_register(index_of(self.program, "registers", name)))
            for name in names
        }

    def balance(self) -> int:
        """Packets that went in and are neither out, dropped nor held; must be zero."""
        s = self.plane.stats()
        return s.received + s.copies - s.sent - sum(s.drops.values()) - s.held


class Host(Data, frozen=False):
    """A host: a sender that obeys pause frames, and a memory of what arrived."""

    name: str
    rate_bps: int
    delay_ns: int
    obeys: bool = True
    priority: int = 3  # that it sends, and is paused, in
    arrived: list[tuple[int, bytes]] = field(default_factory=list)
    pauses: list[tuple[int, int]] = field(default_factory=list)  # when, quanta
    held_until: int = 0
    free_at: int = 0
    free_at_ps: int = 0
    queue: list[bytes] = field(default_factory=list)
    source: Callable[[int], bytes | None] | None = None  # endless traffic
    on_frame: Callable[[int, bytes], None] | None = None

    def next_frame(self, now: int) -> bytes | None:
        if self.queue:
            return self.queue.pop(0)
        return self.source(now) if self.source else None


PFC_PREFIX = bytes.fromhex("0180c2000001")


class Network(Data, frozen=False):
    """Switches, hosts and the cables between them."""

    switches: dict[str, Switch] = field(default_factory=dict)
    hosts: dict[str, Host] = field(default_factory=dict)
    now: int = 0
    tap: Callable[[int, str, int, bytes], None] | None = None  # frames out of switches

    def __post_init__(self) -> None:
        self._cables: dict[tuple[str, int], tuple[str, int]] = {}
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._awake: dict[str, int] = {}

    def add_switch(self, name: str, program: Program | None = None, seed: int = 1) -> Switch:
        self.switches[name] = Switch.make(name, seed, program)
        return self.switches[name]

    def add_host(self, name: str, rate_bps: int, delay_ns: int) -> Host:
        self.hosts[name] = Host(name, rate_bps, delay_ns)
        return self.hosts[name]

    def connect(
        self, a: str, a_port: int, b: str, b_port: int, rate_bps: int, delay_ns: int
    ) -> None:
        for one, port, other in ((a, a_port, (b, b_port)), (b, b_port, (a, a_port))):
            self._cables[one, port] = other
            if one in self.switches:
                self.switches[one].add_port(port, rate_bps, delay_ns)

    def at(self, when: int, action: Callable[[], None]) -> None:
        assert when >= self.now, (when, self.now)
        heapq.heappush(self._events, (when, next(self._order), action))

    def run(self, until: int) -> None:
        """Let time pass."""
        while self._events and self._events[0][0] <= until:
            self.now, _, action = heapq.heappop(self._events)
            action()
        self.now = until

    # --- hosts ---

    def start(self, host: Host) -> None:
        """Let a host send what it has, from now on."""
        self.at(max(self.now, host.free_at), lambda: self._host_sends(host))

    def _host_sends(self, host: Host) -> None:
        if host.free_at > self.now:
            return  # busy; it looks again when it is done
        if host.held_until > self.now:
            self.at(host.held_until, lambda: self._host_sends(host))
            return
        frame = host.next_frame(self.now)
        if frame is None:
            return
        # Kept in picoseconds, as the switches do: rounded up, a link would lose rate.
        begin = host.free_at_ps if self.now == host.free_at else self.now * 1000
        host.free_at_ps = begin + (len(frame) + OVERHEAD) * 8 * 1000 * NS // host.rate_bps
        host.free_at = -(-host.free_at_ps // 1000)
        self.at(host.free_at, lambda: self._host_sends(host))
        arrival = host.free_at + host.delay_ns
        self.at(arrival, lambda: self._deliver((host.name, 0), frame))

    def _host_receives(self, host: Host, frame: bytes) -> None:
        if frame[:6] == PFC_PREFIX:
            if not frame[17] >> host.priority & 1:
                return
            at = 18 + 2 * host.priority
            quanta = int.from_bytes(frame[at : at + 2])
            host.pauses.append((self.now, quanta))
            if host.obeys:
                host.held_until = self.now + quanta * 512 * NS // host.rate_bps
                if not quanta:
                    self.start(host)
            return
        host.arrived.append((self.now, frame))
        if host.on_frame:
            host.on_frame(self.now, frame)

    # --- switches ---

    def _deliver(self, sender: tuple[str, int], frame: bytes) -> None:
        name, port = self._cables.get(sender, ("", 0))
        if name in self.hosts:
            self._host_receives(self.hosts[name], frame)
        elif name:
            self.inject(name, port, frame)

    def inject(self, name: str, port: int, frame: bytes) -> None:
        """Let a frame arrive at a switch now."""
        self.switches[name].plane.inject(port, frame, self.now)
        self._service(name)

    def _service(self, name: str) -> None:
        plane = self.switches[name].plane
        wake = plane.service(self.now)
        for port, frame, when in plane.outputs():
            if self.tap:
                self.tap(when, name, port, frame)
            self.at(max(when, self.now), lambda s=(name, port), f=frame: self._deliver(s, f))
        if wake is not None and (name not in self._awake or wake < self._awake[name]):
            self._awake[name] = wake
            self.at(max(wake, self.now), lambda: self._wake(name, wake))

    def _wake(self, name: str, when: int) -> None:
        if self._awake.get(name) == when:
            del self._awake[name]
        self._service(name)

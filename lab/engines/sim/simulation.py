"""A fabric in the simulator: nodes and links from the graph, plans for the hosts, and a clock.

The switches are ordinary `Dataplane`s without a loop: whoever controls them writes tables and reads
counters as ever, between two calls of `run`.
"""

from __future__ import annotations

import ctypes
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, cached_property, partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

from controller import LinkSpec
from controller.thresholds import ReplayBuffer
from lab.engines.sim import native
from lab.engines.sim.partition import by_rank, partition
from lab.machine.memory import give_back
from lab.results.outcome import HOST_LINK, Gist, Note, PauseNote, Stock, Wait
from lab.scenario.faults import Spoil
from params.data import Data
from switch.dataplane import BookLine, Dataplane, book_lines
from switch.native import Replay
from topologies import Fabric, Link, Node, NodeKind
from traffic.collectives import NEVER, Timeline
from traffic.endpoint import (
    ENTROPY_MAX,
    PORT_COUNTERS,
    EndpointReport,
    Plan,
    Stand,
    WayChange,
    mask_of,
    port_counter,
    read_report,
    read_stands,
)

if TYPE_CHECKING:
    from lab.engines.sim.ranks import Ranks

T = TypeVar("T")

WORTH_EVENTS = 100  # in a turn: fewer are sooner done by one thread than handed to others
_LINES_AT_ONCE = 512
_MANY_HOSTS = 256  # whose memory is worth the time of looking for it
_UNLIMITED_PACKETS, _UNLIMITED_BYTES = 1 << 20, 1 << 30  # the program's own limits are the limits


class SimulationError(Exception):
    """The simulation cannot be set up as asked."""


class Account(Data):
    """How much happened."""

    delivered: int  # frames, by channels
    events: int


class ChannelReport(Data):
    """What a channel carried, lost with it when it was cut, and the longest its queue was."""

    packets: int
    bytes: int
    lost: int
    max_queue_bytes: int


class State(Data):
    """How everything is, to be compared (`likeness.h`)."""

    values: ctypes.Array[ctypes.c_uint64]
    kinds: ctypes.Array[ctypes.c_uint8]

    def repeats(self, before: State, earlier: State, period_ns: int) -> bool:
        """Whether it is what it was a period before, and another one before that."""
        if not bytes(self.kinds) == bytes(before.kinds) == bytes(earlier.kinds):
            return False
        states, count = (earlier.values, before.values, self.values), len(self.values)
        alike = native.library().net_alike(*states, self.kinds, count, period_ns)
        return bool(alike == count)


class Simulation:
    """Switches and hosts under one virtual clock; channels are the directions of links.

    Threads share in the parts of the fabric: how many makes no difference but to how long it takes.
    """

    def __init__(
        self,
        fabric: Fabric,
        planes: Mapping[Node, Dataplane],
        cable: Callable[[Link], LinkSpec],
        *,
        seed: int = 1,
        threads: int = 1,
        ranks: Ranks | None = None,
    ) -> None:
        self._native = native.library()
        self._parts = partition(fabric, min(cable(link).delay_ns for link in fabric.links))
        count = 1 + max(self._parts.values())
        self._ranks = ranks
        self._bounds = [0, count]
        if ranks is not None:
            self._parts, self._bounds = by_rank(fabric, self._parts, ranks.size)
        self._net = self._native.net_new(seed, count, threads, WORTH_EVENTS)
        if not self._net:
            raise SimulationError(f"memory is out for {count} parts")
        self._planes = planes
        self._fabric = fabric
        self._lossless = 0  # bit p: priority p
        self._hosts_try_again = False
        self.happened_ns = 0  # of what comes from outside: when the last of it happened
        self._numbers: dict[Node, int] = {}
        self._channels: dict[str, int] = {}
        for node in (*fabric.switches, *fabric.hosts):
            self._add_node(node)
        for link in fabric.links:
            ends = link.a, link.a_port, link.b, link.b_port
            self._add_channel(link.up, *ends, cable(link))
            self._add_channel(link.down, *ends[2:], *ends[:2], cable(link))
        if ranks is not None:
            bounds = (ctypes.c_uint32 * len(self._bounds))(*self._bounds)
            if not self._native.net_join(self._net, ranks.handle, bounds):
                raise MemoryError

    def owns(self, node: Node) -> bool:
        """Whether a node is simulated here, and not by another rank."""
        return self._ranks is None or self._rank_of(node) == self._ranks.number

    def _rank_of(self, node: Node) -> int:
        return bisect_right(self._bounds, self._parts[node]) - 1

    def _from_all(self, mine: list[T]) -> list[T]:
        """What all ranks have, each of its own."""
        return mine if self._ranks is None else [*chain(*self._ranks.everywhere(mine))]

    def _add_node(self, node: Node) -> None:
        if node.kind is NodeKind.HOST:
            number = self._native.net_add_host(self._net)
        else:
            number = self._native.net_add_switch(self._net, self._planes[node].handle)
        self._numbers[node] = number
        self._native.net_place(self._net, number, self._parts[node])

    def _add_channel(
        self, name: str, a: Node, a_port: int, b: Node, b_port: int, cable: LinkSpec
    ) -> None:
        if a.kind is not NodeKind.HOST:
            self._configure_port(a, a_port, cable)
            self._planes[a].set_queue_limits(
                a_port, None, packets=_UNLIMITED_PACKETS, bytes_=_UNLIMITED_BYTES
            )
        number = self._native.net_add_channel(
            self._net,
            *(self._numbers[a], a_port, self._numbers[b], b_port),
            *(cable.rate_bps, cable.overhead, cable.delay_ns),
        )
        if number < 0:
            raise SimulationError(f"{a} port {a_port} is in use, or memory is out")
        self._channels[name] = number

    def _configure_port(self, switch: Node, port: int, cable: LinkSpec) -> None:
        self._planes[switch].configure_port(
            port,
            rate_bps=cable.rate_bps,
            delay_ns=cable.delay_ns,
            overhead_bytes=cable.overhead,
        )

    # --- before it runs --------------------------------------------------------------------------

    def set_plan(self, host: Node, plan: Plan) -> None:
        """Give a host what it has to do."""
        taken, lines = ctypes.c_uint32(), plan.lines()
        while block := list(islice(lines, _LINES_AT_ONCE)):
            problem = self._native.net_host_lines(
                self._net, self._numbers[host], "\n".join(block).encode(), ctypes.byref(taken)
            )
            if problem:
                raise SimulationError(f"{host}: {problem.decode()}: {block[taken.value][:80]}")

    def set_rates(self, host: Node, rates: Mapping[int, int]) -> None:
        """Tell a host that has its plan what each of its links brings."""
        for port, rate_bps in rates.items():
            channel = self._channels[self._fabric.link_at(host, port).up]
            self._native.net_set_rate(self._net, channel, rate_bps)

    def try_again(self, host: Node, port: int, replay: ReplayBuffer, *, selective: bool) -> None:
        """Let a host that has its plan send again what the link at a port lost."""
        config = Replay(*replay, selective)
        if not self._native.net_set_replay(
            self._net, self._numbers[host], port, ctypes.byref(config)
        ):
            raise MemoryError
        self._hosts_try_again = True

    def record(self, channel: str, path: Path) -> None:
        """Record what a channel delivers."""
        if not self._native.net_record(self._net, self._channels[channel], os.fsencode(path)):
            reason = os.strerror(ctypes.get_errno())
            raise SimulationError(f"{path} cannot be written: {reason}")

    def sample(self, watch: native.Watch, interval_ns: int | None, most: int) -> None:
        """Note all channels in use at intervals, which grow if there would be too many notes.

        Without an interval nothing is noted, but may be looked at.
        """
        self._lossless = watch.lossless
        self._native.net_sample(self._net, ctypes.byref(watch), interval_ns or 0, most)

    def note_shares(self, room: int) -> Callable[[], list[native.Record]]:
        """Note how many events each turn has in each part, up to so many; what gives them then."""
        shares = (native.Share * room)()
        self._native.net_note_shares(self._net, shares, room)

        def noted() -> list[native.Record]:
            count = self._native.net_noted_shares(self._net)
            return [*native.records("net_share", shares, count)]

        return noted

    # --- running ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Let the hosts begin, now."""
        self._native.net_start(self._net)

    def run(self, until_ns: int | None = None, most_events: int = 2**63) -> int:
        """Run until a time, some events more than so many, or the end of all transfers and then
        less than a cable's delay beyond it and that time; returns the time."""
        until = native.NEVER if until_ns is None else until_ns
        now_ns = int(self._native.net_run(self._net, until, most_events))
        if self._native.net_has_starved(self._net):
            raise MemoryError
        return now_ns

    def settle(self) -> None:
        """After something was done from outside: have all ranks know what it led to."""
        self._native.net_settle(self._net)

    def arrived(self) -> None:
        """After its memory was brought here from another process."""
        self._native.net_arrived(self._net)

    def give_up(self) -> None:
        """Where nothing will happen any more, let the time be when something last did."""
        self._native.net_give_up(self._net)

    @property
    def now_ns(self) -> int:
        """The time."""
        return self.run(0, 0)

    @property
    def ended_ns(self) -> int:
        """When the last transfer ended; while some are open, the time."""
        return int(self._native.net_ended(self._net))

    def set_up(self, link: Link, *, is_up: bool) -> None:
        """Cut a link, with what is under way in it, or mend it."""
        for channel in (link.up, link.down):
            self._native.net_set_up(self._net, self._channels[channel], is_up)

    def set_cable(self, link: Link, cable: LinkSpec, senders: Iterable[Node]) -> None:
        """Let a link be another cable, of another rate, from their next frames on."""
        for node in senders:
            port = link.port_of(node)
            if node.kind is NodeKind.HOST:
                channel = self._channels[link.up]
                self._native.net_set_rate(self._net, channel, cable.rate_bps)
            else:
                self._configure_port(node, port, cable)
                self.wake(node)

    def spoil(self, news: Spoil) -> None:
        """Let a link spoil frames from now on."""
        for switch, port, sends in news.places:
            chances = {**news.chances}
            if sends and self._hosts_try_again:  # the host's end has to see it
                chance = round(chances.pop("corrupt", 0) * 0xFFFFFFFF)
                link = news.link
                self._native.net_spoil(self._net, self._numbers[link.a], link.a_port, chance)
            self._planes[switch].set_cable(port, sends=sends, late_ns=news.late_ns, **chances)

    def halt(self, host: Node, *, is_halted: bool) -> None:
        """Let a host stand still, or go on."""
        self._native.net_set_halted(self._net, self._numbers[host], is_halted)

    def deny(self, host: Node, queue_pair: int, entropies: Collection[int]) -> None:
        """Tell a host which ways of a queue pair not to use, in place of those told before."""
        mask, words = mask_of(entropies), ENTROPY_MAX // 64
        denied = (ctypes.c_uint64 * words)(*((mask >> 64 * at) % 2**64 for at in range(words)))
        self._native.net_deny(self._net, self._numbers[host], queue_pair, denied)

    def tell(self, host: Node, line: str) -> None:
        """Tell a host's adapter of keys, in the words of `script.h`."""
        self._native.net_tell(self._net, self._numbers[host], line.encode())

    def wake(self, switch: Node) -> None:
        """After something was done to a switch from outside: let it act on it."""
        self._native.net_wake(self._net, self._numbers[switch])

    @property
    def open_transfers(self) -> int:
        """Transfers that have neither ended nor failed."""
        return int(self._native.net_open_transfers(self._net))

    @property
    def is_quiet(self) -> bool:
        """Whether nothing will ever happen again."""
        return bool(self._native.net_is_quiet(self._net))

    def state(self, tallies: bytes, *, lots: bool) -> State | None:
        """How everything is, but for what hosts have still to do; nothing while packets fly.

        Of registers that are ``tallies``, by number, only that they grow; ``lots``: whether it
        matters what switches will draw.
        """
        count = self._native.net_liken(self._net, tallies, lots, None, None)
        if not count:
            return None
        values, kinds = (ctypes.c_uint64 * count)(), (ctypes.c_uint8 * count)()
        self._native.net_liken(self._net, tallies, lots, values, kinds)
        return State(values, kinds)

    def pretend(self, later_ns: int) -> None:
        """Let lots fall from now on as they would so much later."""
        self._native.net_pretend(self._net, later_ns)

    @property
    def next_ns(self) -> int:
        """When something happens next, or is looked for."""
        return int(self._native.net_next(self._net))

    def look(self) -> list[Note]:
        """Every direction as it is now."""
        notes = (native.Sample * len(self._channels))()
        self._native.net_look(self._net, notes)
        return self._noted(notes, len(notes))

    def gist(self) -> Gist:
        """How things are now, in a line."""
        found = native.Snapshot()
        self._native.net_snapshot(self._net, ctypes.byref(found))
        longest = list(self._channels)[found.channel] if found.queue_bytes else None
        return Gist(
            found.into_hosts, longest, found.queue_bytes, found.paused, found.dropped, found.marked
        )

    # --- what happened ---------------------------------------------------------------------------

    def has_failed(self) -> bool:
        """Whether a queue pair has failed since this was last asked: `run` returns soon after."""
        return bool(self._native.net_has_failed(self._net))

    def waits(self) -> tuple[Wait, ...]:
        """What waits in queues now, and which hosts stand still."""
        count = self._native.net_waits(self._net, None, 0)
        found = (native.Wait * count)()
        self._native.net_waits(self._net, found, count)
        names = list(self._channels)
        own = [
            (
                wait.channel,
                self.owns(self._senders[names[wait.channel]]),  # whose receiver tells before it
                Wait(
                    *(names[wait.channel], wait.priority),
                    self._came_by(names[wait.channel], wait.came),
                    *(wait.packets, wait.bytes, wait.since),
                    hold="credits" if wait.until == native.NEVER else "pause" if wait.until else "",
                    until_ns=None if wait.until in (0, native.NEVER) else wait.until,
                ),
            )
            for wait in found
        ]
        return tuple(wait for *_, wait in sorted(self._from_all(own), key=itemgetter(0, 1)))

    def _came_by(self, name: str, port: int) -> str:
        """The direction that leads into a port of who sends into another."""
        if port == native.NOWHERE:
            return ""
        sender = self._senders[name]
        link = self._fabric.link_at(sender, port)
        return link.direction(link.b if link.a == sender else link.a)

    @cached_property
    def _senders(self) -> dict[str, Node]:
        links = self._fabric.links
        return {link.direction(end): end for link in links for end in (link.a, link.b)}

    def stands(self) -> list[Stand]:
        """Where messages stand that are not through, as hosts say."""
        own = [
            (at, [*read_stands(self._reported(host).splitlines())])
            for at, host in enumerate(self._fabric.hosts)
            if self.owns(host)
        ]
        return [*chain(*(its for _, its in sorted(self._from_all(own), key=itemgetter(0))))]

    def account(self) -> Account:
        """How much happened so far."""
        account = native.Account()
        self._native.net_account(self._net, ctypes.byref(account))
        if account.early:
            raise SimulationError("frames came sooner than cables are long: a defect of closlab")
        all_of_them = self._from_all([(account.delivered, account.events, account.looks)])
        delivered, events, looks = zip(*all_of_them, strict=True)
        return Account(sum(delivered), sum(events) + looks[0])

    def books(self, channel: str) -> list[BookLine]:
        """What became of all that was put into a channel."""
        number = self._channels[channel]
        return book_lines(partial(self._native.net_books, self._net, number), native.LOST)

    def channel(self, name: str) -> ChannelReport:
        """What a channel carried."""
        found = native.ChannelReport()
        self._native.net_channel_report(self._net, self._channels[name], ctypes.byref(found))
        return ChannelReport(found.packets, found.bytes, found.lost, found.max_queue_bytes)

    def samples(self) -> list[Note]:
        """All notes, in the order of time."""
        count = ctypes.c_uint64()
        notes = self._native.net_samples(self._net, ctypes.byref(count))
        return self._noted(notes, count.value)

    def _noted(self, notes: Any, count: int) -> list[Note]:
        names = list(self._channels)
        found = native.records("net_sample", notes, count)
        return [Note(at_ns, names[channel], *rest) for at_ns, channel, *rest in found]

    def stocks(self) -> list[Stock]:
        """What was noted of buffers, in the order of time."""
        nodes = {number: node for node, number in self._numbers.items()}
        names = {number: node.name for number, node in nodes.items()}
        queue_of = cache(lambda node, port, priority: self._queue_of(nodes[node], port, priority))
        count = ctypes.c_uint64()
        notes = self._native.net_stocks(self._net, ctypes.byref(count))
        found = native.records("net_stock", notes, count.value)
        return [
            Stock(
                *(at_ns, names[node], priority),
                queue_of(node, port, priority) if most else "",
                *(most, used, headroom, pool),
            )
            for at_ns, node, priority, port, pool, used, most, headroom in found
        ]

    def _queue_of(self, switch: Node, port: int, priority: int) -> str:
        """The direction that a queue of a buffer is of: in, or out if the class may lose."""
        link = self._fabric.link_at(switch, port)
        peer = link.b if link.a == switch else link.a
        return link.direction(peer if self._lossless >> priority & 1 else switch)

    def pauses(self, begin: int = 0) -> list[PauseNote]:
        """The first of all that was told of pauses, by the direction that stands still.

        Those before `begin` are left out: who looked before knows them.
        """
        names = list(self._channels)
        back: dict[str, str] = {}
        for link in self._fabric.links:
            back |= {link.up: link.down, link.down: link.up}
        count = ctypes.c_uint64()
        notes = self._native.net_pauses(self._net, ctypes.byref(count))
        found = []
        records = [*native.records("net_pause", notes, count.value, begin)]
        if self._ranks is not None:
            records = sorted(self._from_all(records), key=_place_of_pause)[: native.MAX_PAUSES]
        for at_ns, channel, priority, kind in records:
            what, name = native.PAUSE_KINDS[kind], names[channel]
            found.append(PauseNote(at_ns, name if what == "stuck" else back[name], priority, what))
        return found

    def ways(self, host: Node) -> tuple[WayChange, ...]:
        """What became of the ways of a host's queue pairs, where states of them are kept."""
        count = ctypes.c_uint32()
        notes = self._native.net_way_notes(self._net, self._numbers[host], ctypes.byref(count))
        name = self._native.way_state_name
        return tuple(
            WayChange(note.at, note.queue_pair, note.entropy, name(note.state).decode())
            for note in (notes[at] for at in range(count.value))
        )

    def timeline(self, hosts: tuple[Node, ...], transfers: int) -> Timeline:
        """When everything of a schedule happened, its ranks being these hosts."""
        starts, ends = (array("q", [NEVER]) * transfers for _ in range(2))
        for host in hosts:
            self._native.net_host_times(
                self._net,
                self._numbers[host],
                *((ctypes.c_int64 * transfers).from_buffer(each) for each in (starts, ends)),
                transfers,
            )
        return Timeline(starts, ends)

    def counters(self, host: Node) -> dict[str, int]:
        """What a host's endpoint counted."""
        names = native.counter_names()
        values = (ctypes.c_uint64 * len(names))()
        self._native.net_host_counters(self._net, self._numbers[host], values, len(names))
        found = dict(zip(names, values, strict=True))
        ports = len(self._fabric.leaves_of(host))
        own = (ctypes.c_uint64 * len(PORT_COUNTERS))()
        for port in range(ports if ports > 1 else 0):
            self._native.net_host_port(self._net, self._numbers[host], port, own)
            found |= {port_counter(port, name): own[at] for at, name in enumerate(PORT_COUNTERS)}
        tries = (ctypes.c_uint64 * len(HOST_LINK))()
        for port in range(ports if self._hosts_try_again else 0):
            self._native.net_host_link(self._net, self._numbers[host], port, tries)
            found |= {port_counter(port, name): tries[at] for at, name in enumerate(HOST_LINK)}
        return found

    def report(self, host: Node) -> EndpointReport:
        """What became of a host's plan, in full."""
        return read_report(self._reported(host).splitlines())

    def _reported(self, host: Node) -> str:
        with _in_memory() as text:
            if not self._native.net_host_report(self._net, self._numbers[host], text.fileno()):
                raise SimulationError(f"{host}: its report could not be written")
            text.seek(0)
            return text.read()

    def close(self) -> None:
        """Release everything but the switches, which lose their ports."""
        if self._net:
            self._native.net_free(self._net)
            self._net = None
            if len(self._fabric.hosts) >= _MANY_HOSTS:
                give_back()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _place_of_pause(record: native.Record) -> tuple[int, bool, int]:
    """As one rank alone notes them: what it looks for itself when a moment is over."""
    at_ns, channel, _priority, kind = record
    return at_ns, native.PAUSE_KINDS[kind] == "stuck", channel


def _in_memory() -> IO[str]:
    """A file that no disk holds, where there are such; in a browser's tab none is on one."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("report"), "w+")
    return TemporaryFile("w+")

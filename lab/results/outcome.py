"""What an engine hands back of a run: when everything happened, and what everybody counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NamedTuple, TypeVar

from controller.tables import IN_SUM
from lab.results.telemetry import Tally
from lab.scenario.live_actions import ByHand
from lab.scenario.model import Scenario
from params.classes import PRIORITIES
from params.data import Data
from params.quantity import number, size
from topologies import Node
from traffic.collectives import Timeline
from traffic.endpoint import Stand


class Traffic(Data):
    """Packets and their bytes."""

    packets: int = 0
    bytes: int = 0

    def since(self, earlier: Traffic) -> Traffic:
        """What was added after an earlier reading."""
        return Traffic(self.packets - earlier.packets, self.bytes - earlier.bytes)

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(self.packets + other.packets, self.bytes + other.bytes)

    def times(self, factor: int) -> Traffic:
        """So many times as much."""
        return Traffic(self.packets * factor, self.bytes * factor)


INTERRUPTION = "interrupted"  # by the user: why a run is not whole
HOST_DISCARDS = "rx_discards"  # frames that found an adapter's receive buffer full
# What adapters that encrypt did not take, by why: the counters of `traffic/core/endpoint.h`.
INSECURE = {
    "rx_tss_unprotected": "unprotected",
    "rx_tss_unknown": "unknown_domain",
    "rx_tss_forged": "forged",
    "rx_tss_replayed": "replayed",
    "rx_tss_late": "too_late",
}
LOSSLESS_DISCARDS = "rx_discards_lossless"  # those of them whose sender it pauses
# What a link that tries again counts at a port, in the order of enum llr_count (switch/rt/llr.h).
TRIES = (
    *("replayed", "answers", "missed", "timeouts"),
    *("unfit", "spoilt", "strange", "full"),
)
# The same of an adapter's end, and what that put into the cable, and took out of it, beyond the
# adapter's own frames: in the order of `net_host_link`.
HOST_LINK = tuple(
    f"link_{name}" for name in (*TRIES, "tx_packets", "tx_bytes", "rx_packets", "rx_bytes")
)
HOST_PAUSED_NS = {priority: f"paused_{priority}_ns" for priority in PRIORITIES}  # of an adapter
NOTHING = Traffic()


class PortCounts(Data):
    """What the fabric program counted at a port."""

    received: Traffic = NOTHING
    sent: Traffic = NOTHING
    marked: int = 0
    xoff: Mapping[int, int] = field(default_factory=dict)  # pause frames sent, by priority
    xon_sent: int = 0
    paused: Mapping[int, int] = field(default_factory=dict)  # by priority: ns a queue was held
    storms: int = 0  # how often the watchdog let a queue go
    # By the class they had: packets cut on their way into it, and the bytes these had.
    cut: Mapping[int, Traffic] = field(default_factory=dict)
    grants: int = 0  # words of credits sent,
    questions: int = 0  # and words of how much was spent
    waits: int = 0  # times at which a queue waited for credits,
    waited_ns: int = 0  # and for how long, all of them together
    tries: Mapping[str, int] = field(default_factory=dict)  # of a link that tries again: TRIES
    xoff_heard: Mapping[int, int] = field(default_factory=dict)  # and obeyed, by priority
    # By priority: what was dropped on its way in, and for want of room in a queue or out of it.
    discarded_in: Mapping[int, int] = field(default_factory=dict)
    discarded_out: Mapping[int, int] = field(default_factory=dict)

    @property
    def control_sent(self) -> int:
        """Frames its switch made: pauses and words of credits."""
        return self.xoff_sent + self.xon_sent + self.grants + self.questions

    @property
    def xoff_sent(self) -> int:
        """Pause frames of all priorities."""
        return sum(self.xoff.values())

    @property
    def paused_ns(self) -> int:
        """How long its queues were held, all of them together."""
        return sum(self.paused.values())

    def plus(self, other: PortCounts) -> PortCounts:
        """Both together."""
        return PortCounts(
            self.received + other.received,
            self.sent + other.sent,
            self.marked + other.marked,
            _plus(self.xoff, other.xoff),
            self.xon_sent + other.xon_sent,
            _plus(self.paused, other.paused),
            self.storms + other.storms,
            _sums(self.cut, other.cut),
            self.grants + other.grants,
            self.questions + other.questions,
            self.waits + other.waits,
            self.waited_ns + other.waited_ns,
            _plus(self.tries, other.tries),
            _plus(self.xoff_heard, other.xoff_heard),
            _plus(self.discarded_in, other.discarded_in),
            _plus(self.discarded_out, other.discarded_out),
        )

    def since(self, earlier: PortCounts) -> PortCounts:
        """What was counted after an earlier reading."""
        return PortCounts(
            self.received.since(earlier.received),
            self.sent.since(earlier.sent),
            self.marked - earlier.marked,
            _since(self.xoff, earlier.xoff),
            self.xon_sent - earlier.xon_sent,
            _since(self.paused, earlier.paused),
            self.storms - earlier.storms,
            {
                priority: traffic.since(earlier.cut.get(priority, NOTHING))
                for priority, traffic in self.cut.items()
            },
            self.grants - earlier.grants,
            self.questions - earlier.questions,
            self.waits - earlier.waits,
            self.waited_ns - earlier.waited_ns,
            _since(self.tries, earlier.tries),
            _since(self.xoff_heard, earlier.xoff_heard),
            _since(self.discarded_in, earlier.discarded_in),
            _since(self.discarded_out, earlier.discarded_out),
        )


def _plus(one: Mapping[Any, int], other: Mapping[Any, int]) -> dict[Any, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


def _sums(one: Mapping[int, Traffic], other: Mapping[int, Traffic]) -> dict[int, Traffic]:
    return {key: one.get(key, NOTHING) + other.get(key, NOTHING) for key in {**one, **other}}


_Key = TypeVar("_Key")


def _since(now: Mapping[_Key, int], earlier: Mapping[_Key, int]) -> dict[_Key, int]:
    return {key: count - earlier.get(key, 0) for key, count in now.items()}


IDLE = PortCounts()


class SwitchCounts(Data):
    """What a switch counted: by port, and packets it dropped by reason."""

    ports: Mapping[int, PortCounts]
    dropped: Mapping[str, int]

    def port(self, number: int) -> PortCounts:
        """A port's counts; one that saw nothing may be missing."""
        return self.ports.get(number, IDLE)

    @property
    def lost(self) -> dict[str, int]:
        """The same without what only seems so: parts of collectives that were added up."""
        return {reason: packets for reason, packets in self.dropped.items() if reason != IN_SUM}

    def plus(self, other: SwitchCounts | None) -> SwitchCounts:
        """Both together."""
        if other is None:
            return self
        ports = {n: self.port(n).plus(other.port(n)) for n in {**self.ports, **other.ports}}
        return SwitchCounts(ports, _plus(self.dropped, other.dropped))

    def since(self, earlier: SwitchCounts) -> SwitchCounts:
        """What was counted after an earlier reading."""
        drops = {
            reason: packets - earlier.dropped.get(reason, 0)
            for reason, packets in self.dropped.items()
        }
        return SwitchCounts(
            {number: counts.since(earlier.port(number)) for number, counts in self.ports.items()},
            {reason: packets for reason, packets in drops.items() if packets},
        )


class Line(NamedTuple):
    """A line of the books of a switch or a link: see switch/rt/books.h."""

    book: str
    class_: int  # 0 to 7, 8: pause frames, 9: others
    made: bool  # a copy, or what a timer made; else it arrived
    of: int | str  # a port, a reason, or the class that it left as
    packets: int
    bytes: int


class SwitchBooks(Data):
    """A switch's books, and its plain account of the same."""

    lines: tuple[Line, ...]
    received: int
    copies: int
    sent: int
    held: int
    drops: Mapping[str, int]

    def since(self, earlier: SwitchBooks) -> SwitchBooks:
        """What happened after an earlier look; of what is held, how much it grew."""
        before = {line[:4]: line for line in earlier.lines}
        grown = [
            line._replace(packets=line.packets - old.packets, bytes=line.bytes - old.bytes)
            for line in self.lines
            for old in (before.pop(line[:4], line._replace(packets=0, bytes=0)),)
        ]
        gone = (line._replace(packets=-line.packets, bytes=-line.bytes) for line in before.values())
        return SwitchBooks(
            (*grown, *gone),
            self.received - earlier.received,
            self.copies - earlier.copies,
            self.sent - earlier.sent,
            self.held - earlier.held,
            {reason: n - earlier.drops.get(reason, 0) for reason, n in self.drops.items()},
        )


class Note(NamedTuple):
    """One direction of a link at a time; all but the queue since the run began."""

    time_ns: int
    link: str
    queue_bytes: int  # of data that waits to be sent into it
    bytes: int  # carried
    paused_ns: int  # how long its sender's queues stood still, all together
    marked: int  # packets, by the switch as it sent them into it
    dropped: int  # packets, by the switch that sends into it, whatever their way


class Stock(NamedTuple):
    """What a class holds of a switch's buffer at a time; nothing is noted where nothing is held."""

    time_ns: int
    switch: str
    priority: int
    link: str  # of the fullest queue: by which it came, or leaves if the class may lose
    queue_bytes: int  # in the fullest queue: what is held against its threshold
    used_bytes: int  # of the class, headroom left out
    headroom_bytes: int  # of the class
    pool_bytes: int  # of the shared pool, all classes together


class PauseNote(NamedTuple):
    """Something about a pause: who is to stand still (xoff), may go on (xon), or was stuck."""

    time_ns: int  # when the frame had come; of what was stuck, when somebody looked
    link: str  # the direction that stands still
    priority: int
    what: str


class WayNote(NamedTuple):
    """What became of a way of a connection."""

    time_ns: int
    host: str  # that sends by it
    peer: str
    queue_pair: int
    entropy: int
    state: str  # bad: not used, but asked about; good again; denied, by a controller
    path: str = ""  # the switches that it goes by, where adapters steer


class Wait(NamedTuple):
    """What waits before a direction of a link, or is under way; or that a host stands still."""

    link: str
    priority: int
    came: str  # the direction by which it came; "": made there, under way, or the host's own
    packets: int
    bytes: int
    since_ns: int  # when the first of them came into the queue, or it began to wait for credits
    hold: Literal["", "pause", "credits"]  # what the queue stands still for, if it does
    until_ns: int | None = None  # of a pause, if it is not renewed


class Look(NamedTuple):
    """All that waited, or was under way, at a moment: when a queue pair failed, or at the end."""

    at_ns: int
    waits: tuple[Wait, ...]


class RouteChange(NamedTuple):
    """That a switch was told other routes, by its own control plane."""

    time_ns: int
    switch: str
    entries: int  # of its tables


class Routed(Data):
    """How switches found their ways by themselves."""

    took_s: float  # of the machine's time, until all of them knew all ways
    routes: int
    changes: tuple[RouteChange, ...]  # since the hosts began
    begun: Mapping[int, int] = field(default_factory=dict)  # faults that took time, by their times


class Gist(Data):
    """How things are at a moment of a run, as a line tells it."""

    into_hosts: int  # bytes, since the run began
    longest: str | None  # the direction of a link before which the longest queue stands
    queue_bytes: int
    paused: int  # switches' ports of which a queue stands still
    dropped: int
    marked: int

    def text(self, before: Gist | None, took_ns: float) -> str:
        """In words, after so much of the fabric's time since an earlier one."""
        parts = []
        if before is not None and took_ns > 0:
            rate = (self.into_hosts - before.into_hosts) * 8 / took_ns
            parts.append(f"{number(rate)} Gb/s into hosts")
        if self.longest:
            parts.append(f"{size(self.queue_bytes)} before {self.longest}")
        for count, what in ((self.paused, "ports paused"), (self.marked, "marked")):
            if count:
                parts.append(f"{count:,} {what}")
        parts.append(f"{self.dropped:,} dropped")
        return ", ".join(parts)


class Cut(Data):
    """Where periods of a run were left out, because they would have been like the one before."""

    at_ns: int  # of the run's own time, in which what is left out takes none
    period_ns: int
    times: int
    steps: Mapping[str, range]  # by job: those of the last period before it, that repeat

    @property
    def left_out_ns(self) -> int:
        """How much time that is."""
        return self.period_ns * self.times

    def left_out_before(self, job: str, step: int) -> int:
        """How many of a job's steps are left out before one of those that are not."""
        repeated = self.steps.get(job, range(0))
        return self.times * len(repeated) if repeated and step >= repeated.stop else 0

    def repeats(self, job: str, step: int) -> bool:
        """Whether a step, as the run counts them, stands for some that were left out."""
        return step in self.steps.get(job, ())


class Sampled(Data):
    """That a run was simulated with one step of each job in so many, of which all are told."""

    times: int
    simulated_ns: int
    bound: float  # by which share of itself any moment may be wrong
    steps: Mapping[str, Sequence[tuple[int, int]]]  # by job: when each of all begins and ends


class Skipping(Data):
    """That what repeats was to be left out of a run."""

    accuracy: str  # that was asked for
    why: str | None  # nothing is left out


class Fidelity(Data):
    """Whether a run can be believed."""

    late_p99_ns: int = 0  # how much later than it should something was done, in fabric time
    ok: bool = True
    note: str | None = None


class MachinesNote(Data):
    """Of a run on several machines, what these add to its figures; times are the fabric's."""

    switches: Mapping[str, tuple[str, ...]]  # by machine; their hosts go with leaves
    crossing: tuple[str, ...]  # the cables between them
    clock_error_ns: float  # by which two moments on different machines may be wrong, at most
    way_ns: float  # the longest between two of them, a part of these cables' delay
    longer: Mapping[str, int]  # by cable: so much longer it is than it should be
    drift_ns: float = 0.0  # by which clocks drifted apart meanwhile, at least


class Outcome(Data):
    """A run, seen from outside."""

    timeline: Timeline
    switches: Mapping[Node, SwitchCounts]
    endpoints: Mapping[Node, Mapping[str, int]]  # what each host's adapter counted, by name
    end_ns: int
    dilation: float = 1.0
    max_queue_bytes: Mapping[str, int] = field(default_factory=dict)  # by direction of a link
    cut_frames: Mapping[str, int] = field(default_factory=dict)  # lost when a link was cut
    books: Mapping[Node, SwitchBooks] = field(default_factory=dict)  # of switches that keep any
    link_books: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)  # by direction
    is_settled: bool = True  # nothing moved any more when the books were read
    notes: tuple[Note, ...] = ()
    stocks: tuple[Stock, ...] = ()
    pauses: tuple[PauseNote, ...] = ()  # the first of them
    ways: tuple[WayNote, ...] = ()  # the first of each host
    telemetry: Tally | None = None
    fidelity: Fidelity = Fidelity()
    by_hand: tuple[ByHand, ...] = ()
    routed: Routed | None = None  # none: a controller told them
    scenario: Scenario | None = None  # what it was in the end, if hands changed it
    ended: str | None = None  # why a run is not whole
    stands: Sequence[Stand] = ()  # of messages that are not through
    cuts: tuple[Cut, ...] = ()  # what is left out there is in all but series, and in times
    sampled: Sampled | None = None  # counts are the whole's, and it has no series
    skipping: Skipping | None = None  # none: it was to be exact
    machines: MachinesNote | None = None  # none: it was on one
    looks: tuple[Look, ...] = ()  # of an engine that sees into switches, if there are any

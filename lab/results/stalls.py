"""Why messages did not arrive: a verdict on each of them, from what stood still and what waited.

deadlock    what it waits for waits, queue by queue, for itself: nothing there ever moves again
no-route    no way leads to the other end: cables on all of them are cut
halted      one of its ends stands still
paused      a host pauses what leads there
credit      what would let it go on is a word of credits that has not come
time-out    no answer has come to what was sent, and nothing of it is on the way: only a time-out
            sends that again
nak         the same, and its receiver has asked for what is missing, which it does but once
lost        the same, and there are no time-outs
retries     its queue pair gave up: so many times in a row nobody answered in time
error       its queue pair failed of something else
moving      the run ended while it was sent, or packets of its class were on its ways
resending   the same, but most of what moves goes again, and again
due         it was to begin later
datagram    it was sent for good (uud), and some of it was lost
untold      who sends it died without a word, or its engine cannot know

A queue stands still for good if all that waits where it leads to, of what came from it, does: what
is left when those are crossed out, one after the other, that may yet go on. So a circle is found in
who waits for whom, however short it has lasted, and nothing that only waits for long is one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from controller.thresholds import ask_after_ns, credit
from lab.results.outcome import INTERRUPTION, Look, Outcome, Wait
from lab.results.part import Part
from lab.scenario.experiment import Experiment
from lab.scenario.faults import cut_links
from lab.scenario.model import Fault, Scenario
from lab.scenario.translate import adapter_response_ns
from params.data import Data
from params.quantity import duration, packets, plural
from topologies import Fabric, Link, Node
from traffic.collectives import NEVER
from traffic.endpoint import Delivery, Recovery, Stand

if TYPE_CHECKING:
    import networkx as nx

Verdict = Literal[
    "deadlock", "no-route", "halted", "paused", "credit", "nak", "time-out", "lost", "retries",
    "error", "moving", "resending", "due", "datagram", "untold",
]  # fmt: skip
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
_MOSTLY = 0.5  # of all packets went again: they get nowhere
_CONTROL = 6  # the class that answers may have to themselves
Queue = tuple[str, int]  # the direction that it leads into, and its class


class Stall(Part):
    """Messages that did not arrive, for one reason."""

    verdict: Verdict
    messages: int
    behind: int = 0  # of these: never begun, for they were to follow others
    first: str  # the first of them, or what that waits for: who to whom, such as h1>h2
    why: str  # in words
    at_ns: int | None = None  # when the first gave up
    until_ns: int | None = None  # when the first of those will be over that only take time
    circle: tuple[str, ...] | None = (
        None  # directions, each waiting for the next; the last for the first
    )
    priority: int | None = None  # the class that they wait in
    host: str | None = None  # who pauses, or stands still


class Cause(NamedTuple):
    """Why one message stands still."""

    verdict: Verdict
    why: str
    until_ns: int | None = None
    at_ns: int | None = None
    circle: tuple[str, ...] = ()
    priority: int | None = None
    host: str | None = None

    @property
    def kind(self) -> tuple[object, ...]:
        """What it shares with others of the same reason."""
        return self.verdict, self.why, self.circle, self.priority, self.host


def stalls(
    experiment: Experiment, outcome: Outcome, messages: Iterable[int], *, resent: float, lost: int
) -> tuple[Stall, ...]:
    """A verdict on each message that did not arrive, those of one reason together.

    `resent` is the share of packets that had gone before, `lost` how many were dropped anywhere.
    """
    timeline = outcome.timeline
    missing = [n for n in messages if NEVER in (timeline.start_ns[n], timeline.end_ns[n])]
    if not missing:
        return ()
    judge = _Judge(experiment, outcome, resent, lost)
    groups: dict[tuple[object, ...], list[tuple[int, int, Cause]]] = {}
    for number in missing:
        root = judge.root(number)
        cause = judge.cause(root)
        groups.setdefault(cause.kind, []).append((number, root, cause))
    found = [_stall(judge, group) for group in groups.values()]
    return tuple(sorted(found, key=lambda stall: (VERDICTS.index(stall.verdict), -stall.messages)))


def _stall(judge: _Judge, group: Sequence[tuple[int, int, Cause]]) -> Stall:
    """Messages of one reason."""
    _, root, cause = group[0]
    return Stall(
        verdict=cause.verdict,
        messages=len(group),
        behind=sum(number != root for number, root, _ in group),
        first=judge.named(root),
        why=cause.why,
        at_ns=min((c.at_ns for *_, c in group if c.at_ns is not None), default=None),
        until_ns=min((c.until_ns for *_, c in group if c.until_ns is not None), default=None),
        circle=cause.circle or None,
        priority=cause.priority,
        host=cause.host,
    )


_CURES: dict[str, str] = {
    "deadlock": "pfc.watchdog_ns lets go what stands still",
    "nak": "transport.first_rto_ns lets the first time-out come soon",
    "time-out": "transport.first_rto_ns lets the first time-out come soon",
    "lost": "give transport.timeout or rto_ns",
    "moving": "raise limit_ns",
    "datagram": "transport.delivery=rudi sends it again",
    "due": "raise limit_ns",
}


def said(stall: Stall) -> str:
    """A verdict as a sentence."""
    many = f"{plural(stall.messages, 'message')} did not arrive"
    behind = f" ({stall.behind:,} of them behind others)" if stall.behind else ""
    when = f", at {duration(stall.at_ns)} the first" if stall.at_ns is not None else ""
    is_time_out = stall.until_ns is not None and stall.verdict != "due"
    until = f"; the next time-out is at {duration(stall.until_ns or 0)}" if is_time_out else ""
    cure = f"; {_CURES[stall.verdict]}" if stall.verdict in _CURES else ""
    return f"{many}{behind}, {stall.first} for one: {stall.why}{when}{until}{cure}."


# --- who waits for whom --------------------------------------------------------------------------


class Standing(Data):
    """What stood still at a moment, and for what."""

    look: Look

    @cached_property
    def held(self) -> dict[Queue, Wait]:
        """Queues that stand still."""
        return {(wait.link, wait.priority): wait for wait in self.look.waits if wait.hold}

    @cached_property
    def beyond(self) -> dict[Queue, set[Queue]]:
        """By a queue: where that waits which came from it."""
        found: dict[Queue, set[Queue]] = {}
        for wait in self.look.waits:
            if wait.packets and wait.came:
                queue = wait.came, wait.priority
                found.setdefault(queue, set()).add((wait.link, wait.priority))
        return found

    @cached_property
    def dead(self) -> set[Queue]:
        """Those that stand still for good."""
        found = set(self.held)
        while freed := {queue for queue in found if not self._is_blocked(queue, found)}:
            found -= freed
        return found

    def _is_blocked(self, queue: Queue, by: Collection[Queue]) -> bool:
        """Whether all that it waits for is among these."""
        beyond = self.beyond.get(queue)
        return bool(beyond) and all(then in by for then in beyond or ())

    def ahead(self, queue: Queue) -> set[Queue]:
        """All that a queue waits for, itself included if it stands still."""
        found: set[Queue] = set()
        todo = [queue]
        while todo:
            each = todo.pop()
            if each in self.held and each not in found:
                found.add(each)
                todo += self.beyond.get(each, ())
        return found

    def circle(self, queue: Queue) -> tuple[str, ...]:
        """Directions that wait for one another, among what a dead queue waits for."""
        import networkx as nx

        waits: nx.DiGraph[Queue] = nx.DiGraph(
            (one, then)
            for one in sorted(self.ahead(queue) & self.dead)
            for then in sorted(self.beyond[one])
        )
        links = [link for (link, _), _ in nx.find_cycle(waits, queue)]
        first = links.index(min(links))
        return (*links[first:], *links[:first])


# --- what became of a message --------------------------------------------------------------------


class _Plain:
    """A plane of a fabric, or all of it, with some cables cut: what is how far away.

    Ways go by switches: hosts pass nothing on, though they may be in several planes.
    """

    def __init__(self, fabric: Fabric, down: frozenset[str], plane: int | None) -> None:
        self._hosts = frozenset(fabric.hosts)
        self._beside: dict[Node, list[tuple[Node, str]]] = {}  # and by which direction
        for link in fabric.links:  # its far end is a switch
            if link.name not in down and plane in (None, fabric.plane_of(link.b)):
                self._beside.setdefault(link.a, []).append((link.b, link.up))
                self._beside.setdefault(link.b, []).append((link.a, link.down))
        self._far: dict[Node, Mapping[Node, int]] = {}
        self._between: dict[tuple[Node, Node], tuple[str, ...]] = {}

    def far_from(self, host: Node) -> Mapping[Node, int]:
        """How many links everything is away."""
        if host not in self._far:
            far, edge = {host: 0}, [host]
            while edge:
                found = dict.fromkeys(
                    there
                    for here in edge
                    for there, _ in self._beside.get(here, ())
                    if there not in far
                )
                far |= dict.fromkeys(found, far[edge[0]] + 1)
                edge = [there for there in found if there not in self._hosts]
            self._far[host] = far
        return self._far[host]

    def between(self, src: Node, dst: Node) -> tuple[str, ...]:
        """Directions on the shortest ways from host to host."""
        if (src, dst) not in self._between:
            left, found, edge = self.far_from(dst), list[str](), [src]
            while edge:
                nearer = [
                    (there, direction)
                    for here in edge
                    for there, direction in self._beside.get(here, ())
                    if left.get(there) == left.get(here, 0) - 1
                    and (there == dst or there not in self._hosts)
                ]
                found += [direction for _, direction in nearer]
                edge = list(dict.fromkeys(there for there, _ in nearer))
            self._between[src, dst] = tuple(found)
        return self._between[src, dst]


class _Judge:
    """Somebody who knows what there is to know of a run."""

    def __init__(self, experiment: Experiment, outcome: Outcome, resent: float, lost: int) -> None:
        self._experiment, self._outcome = experiment, outcome
        self._scenario: Scenario = outcome.scenario or experiment.scenario
        self._resent, self._lost = resent, lost
        self._fabric: Fabric = experiment.fabric
        self._senders = {each.transfer: each for each in outcome.stands if each.is_senders}
        self._receivers = {each.transfer: each for each in outcome.stands if not each.is_senders}
        self._standings = [Standing(look) for look in outcome.looks]
        self._roots: dict[int, int] = {}
        self._causes: dict[int, Cause] = {}
        self._plains: dict[tuple[frozenset[str], int | None], _Plain] = {}

    def named(self, number: int) -> str:
        """Who sends a message to whom."""
        src, dst = self._ends(number)
        return f"{src}>{dst}" if src != dst else str(src)

    def _ends(self, number: int) -> tuple[Node, Node]:
        schedule, hosts = self._experiment.schedule, self._fabric.hosts
        return hosts[schedule.src[number]], hosts[schedule.dst[number]]

    def _is_open(self, number: int) -> bool:
        """Whether it is not through, as its sender sees it too."""
        return self._outcome.timeline.end_ns[number] == NEVER or number in self._senders

    def _earlier(self, number: int) -> Sequence[int]:
        schedule = self._experiment.schedule
        return schedule.wait[schedule.wait_start[number] : schedule.wait_start[number + 1]]

    def root(self, number: int) -> int:
        """What it waits for, of what was begun or could have been."""
        passed: list[int] = []
        while number not in self._roots:
            passed.append(number)
            begun = self._outcome.timeline.start_ns[number] != NEVER
            then = None if begun else next(filter(self._is_open, self._earlier(number)), None)
            if then is None:
                self._roots[number] = number
            else:
                number = then
        root = self._roots[number]
        self._roots |= dict.fromkeys(passed, root)
        return root

    def cause(self, number: int) -> Cause:
        """Why it stands still, of one that waits for no other."""
        if number not in self._causes:
            self._causes[number] = self._cause(number)
        return self._causes[number]

    def _cause(self, number: int) -> Cause:
        outcome = self._outcome
        stand, start_ns = self._senders.get(number), outcome.timeline.start_ns[number]
        src, dst = self._ends(number)
        dead = next((end for end in (src, dst) if self._is_halted(end, outcome.end_ns)), None)
        if stand is not None and stand.error != "ok":
            return self._gave_up(number, stand)
        if dead is not None:
            return Cause("halted", f"{dead} stands still", host=str(dead))
        if stand is None and "tx_packets" not in outcome.endpoints[src]:
            return Cause("untold", f"the endpoint of {src} ended without a word", host=str(src))
        if start_ns == NEVER or src == dst:
            return self._due(number)
        if stand is None and self._scenario.transport.delivery is Delivery.UUD:
            return self._sent(number)
        if stand is None:
            return Cause("untold", f"{src} did not say what became of it")
        return self._waiting(number, stand)

    def _sent(self, number: int) -> Cause:
        """A datagram: all of it has left, and nobody will send it again."""
        if self._has_turns(number):
            found = self._outside(number, self._outcome.end_ns)
            return found or Cause("moving", "the run ended while some of it waited on its way")
        if not self._lost:
            return Cause("untold", "all of it has left, and nothing of the run was lost")
        why = f"uud sends nothing again, and {packets(self._lost)} of the run were lost"
        return Cause("datagram", why)

    def _due(self, number: int) -> Cause:
        """It has not begun, or is work that takes time."""
        timeline, schedule = self._outcome.timeline, self._experiment.schedule
        earlier = (timeline.end_ns[each] for each in self._earlier(number))
        begun_ns = timeline.start_ns[number]
        begun_ns = max(earlier, default=0) if begun_ns == NEVER else begun_ns
        due_ns = begun_ns + schedule.delay_ns[number]
        return Cause("due", f"it was not due before {duration(due_ns)}", due_ns)

    def _gave_up(self, number: int, stand: Stand) -> Cause:
        """Its queue pair is in error: why, by what was so at that time."""
        at_ns = self._outcome.end_ns if stand.failed_ns is None else stand.failed_ns
        if stand.error != "retry-exceeded":
            return Cause("error", f"its queue pair failed: {stand.error}", at_ns=at_ns)
        found = self._outside(number, at_ns)
        if found is not None:
            return found._replace(why=f"{found.why}; its queue pair gave up", at_ns=at_ns)
        lost = f"{packets(self._lost)} of the run were lost"
        vain = f"nothing was lost{self._overtaken or ': answers take longer than time-outs'}"
        why = f"its queue pair gave up, as time was out too often; {lost if self._lost else vain}"
        return Cause("retries", why, at_ns=at_ns)

    def _waiting(self, number: int, stand: Stand) -> Cause:
        """Its queue pair is well."""
        until_ns = stand.timeout_ns
        other = self._receivers.get(number)
        if other is not None and other.error != "ok":
            return Cause("error", f"its receiver failed: {other.error}", until_ns)
        found = self._outside(number, self._outcome.end_ns)
        if found is not None:
            return found._replace(until_ns=until_ns if found.until_ns is None else found.until_ns)
        if self._moves(number, stand):
            if self._resent > _MOSTLY:
                why = f"{self._resent:.0%} of all packets had gone before, and it gets nowhere"
                why += f"; {packets(self._lost)} of the run were lost" if self._lost else ""
                return Cause("resending", why, until_ns)
            how = "was interrupted" if self._outcome.ended == INTERRUPTION else "ended"
            return Cause("moving", f"the run {how} while it was under way", until_ns)
        if not stand.in_flight and stand.waiting:
            return Cause("credit", "its receiver has not granted it any credit", until_ns)
        if until_ns is None:
            return Cause("lost", "no answer has come to what was sent, and there are no time-outs")
        again = f"only a time-out sends it again{self._overtaken}"
        if other is not None:
            why = f"its receiver has asked for what is missing, which it does but once: {again}"
            return Cause("nak", why, until_ns)
        return Cause("time-out", f"no answer has come to what was sent: {again}", until_ns)

    @property
    def _overtaken(self) -> str:
        """What made packets of no use, where none was lost."""
        early = sum(each.get("out_of_sequence", 0) for each in self._outcome.endpoints.values())
        recovery = self._scenario.transport.recovery
        if self._lost or not early or recovery is Recovery.SELECTIVE:
            return ""
        return f", for packets overtook each other, and {recovery} takes them only in their order"

    def _moves(self, number: int, stand: Stand) -> bool:
        """Whether it sends, or what may be of it has its turn somewhere."""
        return stand.does == "sends" or self._has_turns(number)

    def _has_turns(self, number: int) -> bool:
        """Whether what may be of it waits somewhere."""
        ways = self._ways(number, self._outcome.end_ns)
        standing = self._standing(self._outcome.end_ns)
        waits = standing.look.waits if standing else ()
        return any(wait.packets and (wait.link, wait.priority) in ways for wait in waits)

    def _outside(self, number: int, at_ns: int) -> Cause | None:
        """What of the fabric, or of its ends, holds it at a moment."""
        src, dst = self._ends(number)
        for end in (src, dst):
            if self._is_halted(end, at_ns):
                return Cause("halted", f"{end} stands still", host=str(end))
        plane = self._plane_of(number)
        if not self._plain(self._down(at_ns), plane).far_from(src).get(dst):
            where = "" if plane is None or self._fabric.planes == 1 else f" in plane {plane + 1}"
            return Cause("no-route", f"no way is left{where}: {self._cut(at_ns)}")
        standing = self._standing(at_ns)
        return self._held(number, standing) if standing else None

    def _held(self, number: int, standing: Standing) -> Cause | None:
        """What of its queues stands still, and for whom."""
        ways = self._ways(number, standing.look.at_ns)
        mine = sorted(ways & standing.held.keys())
        for queue in mine:
            if queue in standing.dead:
                circle, priority = standing.circle(queue), queue[1]
                around = " waits for ".join((*circle, circle[0]))
                why = f"a deadlock of class {priority}, as {around}"
                return Cause("deadlock", why, circle=circle, priority=priority)
        for queue in mine:
            for link, priority in sorted(standing.ahead(queue)):
                wait = standing.held[link, priority]
                far = self._fabric.node(self._ends_of[link])
                waited_ns = standing.look.at_ns - wait.since_ns
                is_alone = wait.hold == "credits" and not standing.beyond.get((link, priority))
                if is_alone and waited_ns > self._credits_due_ns(link):
                    why = f"{link} has no credits, though nothing that it sent waits beyond"
                    return Cause("credit", why, priority=priority)
                if wait.hold == "pause" and far in self._fabric.hosts and self._storms(far, wait):
                    why = f"{far} pauses all that leads there"
                    return Cause("paused", why, priority=priority, host=str(far))
        return None

    def _credits_due_ns(self, direction: str) -> int:
        """How long a queue may wait for credits that come: it was answered when it asked again."""
        settings, link = self._experiment.settings, self._links[direction]
        cable = self._experiment.cable(link)
        response_ns = adapter_response_ns(self._scenario, cable, settings.max_frame)
        size = self._scenario.link.credit or credit(cable, settings.max_frame, response_ns)
        return 2 * ask_after_ns(cable, settings.max_frame, size, response_ns)

    def _storms(self, host: Node, wait: Wait) -> bool:
        """Whether a host pauses that direction because it is broken, not because it is slow."""
        faults = (each for each in self._scenario.faults if each.action == "storm")
        return any(each.host == str(host) for each in faults) and wait.until_ns is not None

    @cached_property
    def _links(self) -> dict[str, Link]:
        """Links by their directions."""
        return {
            link.direction(end): link for link in self._fabric.links for end in (link.a, link.b)
        }

    @cached_property
    def _ends_of(self) -> dict[str, str]:
        """By a direction of a link: the name of who receives."""
        return {
            link.direction(end): str(link.b if end == link.a else link.a)
            for link in self._fabric.links
            for end in (link.a, link.b)
        }

    def _standing(self, at_ns: int) -> Standing | None:
        """What stood still then, or when somebody looked next."""
        later = (each for each in self._standings if each.look.at_ns >= at_ns)
        return next(later, self._standings[-1] if self._standings else None)

    def _ways(self, number: int, at_ns: int) -> set[Queue]:
        """The queues on the shortest ways that it may take, and its answers."""
        src, dst = self._ends(number)
        schedule = self._experiment.schedule
        own = schedule.activities[schedule.activity[number]].priority
        answers = {own, _CONTROL} if self._scenario.transport.acks == "control" else {own}
        plane = self._plane_of(number)
        # Before faults, and after them.
        plains = [self._plain(down, plane) for down in {frozenset(), self._down(at_ns)}]
        there = {(link, own) for plain in plains for link in plain.between(src, dst)}
        back = {link for plain in plains for link in plain.between(dst, src)}
        return there | {(link, priority) for link in back for priority in answers}

    def _plain(self, down: frozenset[str], plane: int | None) -> _Plain:
        if (down, plane) not in self._plains:
            self._plains[down, plane] = _Plain(self._fabric, down, plane)
        return self._plains[down, plane]

    def _plane_of(self, number: int) -> int | None:
        """The only plane that it goes by, if there is but one."""
        src, dst = self._ends(number)
        return None if src == dst else self._experiment.plane_of(number)

    def _down(self, at_ns: int) -> frozenset[str]:
        """Cables that are cut at a moment."""
        return frozenset(down_at(self._scenario.faults, self._fabric, at_ns))

    def _cut(self, at_ns: int) -> str:
        down = sorted(self._down(at_ns))
        return f"{', '.join(down[:3])}{' and more' if len(down) > 3 else ''} cut"

    def _is_halted(self, host: Node, at_ns: int) -> bool:
        return any(
            fault.action == "halt" and fault.host == str(host) and _lasts(fault, at_ns)
            for fault in self._scenario.faults
        )


def _lasts(fault: Fault, at_ns: int) -> bool:
    over_ns = None if fault.for_ns is None else fault.at_ns + fault.for_ns
    return fault.at_ns <= at_ns and (over_ns is None or at_ns < over_ns)


def down_at(faults: Iterable[Fault], fabric: Fabric, at_ns: int) -> set[str]:
    """The cables that faults have cut at a moment, and not mended."""
    events = []
    for fault in faults:
        links = {link.name for link in cut_links(fault, fabric)}
        events.append((fault.at_ns, fault.action == "down", links))
        if fault.for_ns is not None:
            events.append((fault.at_ns + fault.for_ns, fault.action != "down", links))
    down: set[str] = set()
    for when_ns, is_cut, links in sorted(events, key=lambda event: event[0]):
        if when_ns <= at_ns:
            down = down | links if is_cut else down - links
    return down

"""What happens to cables while a run lasts, in the order in which it happens, for any engine.

A cable that dies takes with it what is under way in it. Switches at its ends notice and use their
other ways; those further off go on sending towards it until the controller, ``reroute_ns`` later,
leads all routes round it. What is dead at 0 was dead before: that is known to everyone at once.
A cable that falls back to a share of its rate does so at once as well, and the controller, once it
hears of it, sends less that way and has load measured by what the cable still carries.
A cable that loses packets does so by a table of the switches at its ends (p4src/lose.p4); one that
corrupts, doubles or reorders them, pause frames too, between their ports (switch/rt/cable.h). Where
the link makes good what it loses (LLR), losing is the same as corrupting.

A cable that is drained goes on carrying: switches are told, at once, to leave it to who has no
other way (controller/routes.py).

A switch that starts again has empty tables until the controller, ``reroute_ns`` later, has noticed.
A controller that stops does nothing of what it should meanwhile, and afterwards all of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import NamedTuple

from controller import Loss, Settings
from lab.scenario.model import Fault, Scenario
from lab.scenario.security import Word, words_of
from lab.scenario.translate import is_tried_again, losses_of
from params.data import Data
from params.quantity import percent
from topologies import Fabric, Link, Node


class Turn(Data):
    """A cable dies, or lives again."""

    at_ns: int
    link: Link
    is_up: bool


class Pace(Data):
    """A cable has a share of its rate from now on, for what some of its ends send; 1 is all."""

    at_ns: int
    link: Link
    share: float
    senders: tuple[Node, ...]


class Spoil(Data):
    """A cable spoils frames from now on, with these chances; or does no more."""

    at_ns: int
    link: Link
    chances: Mapping[str, float]  # of corrupt, duplicate, reorder
    late_ns: int

    @property
    def places(self) -> tuple[tuple[Node, int, bool], ...]:
        """At which ports of switches that is, and whether of what they send: of each way once."""
        link = self.link
        far = (link.a, link.a_port, False) if link.joins_switches else (link.b, link.b_port, True)
        return (link.b, link.b_port, False), far


class Restart(Data):
    """A switch starts again, with empty tables."""

    at_ns: int
    switch: Node


class Forget(Data):
    """What speaks BGP for a switch dies, and starts again with none of what it knew."""

    at_ns: int
    switch: Node


class Halt(Data):
    """A host, or the collector, stops, or goes on; ``for_good``: it is gone."""

    at_ns: int
    host: Node | None  # none: the collector
    is_halted: bool
    for_good: bool = False


class Deny(Data):
    """A host's adapter is told which ways of a queue pair not to use, in place of those before."""

    at_ns: int
    host: Node
    queue_pair: int
    entropies: frozenset[int]


class Replan(Data):
    """Every switch is told what is new: dead cables, slow ones, and what cables lose."""

    at_ns: int
    dead: frozenset[str]
    slowed: Mapping[str, float]  # by direction: leaf1>spine1
    losses: tuple[Loss, ...]
    drained: frozenset[str] = frozenset()

    def applied(self, settings: Settings) -> Settings:
        """What a controller goes by from now on, dead cables aside."""
        return replace(settings, slowed=self.slowed, losses=self.losses, drained=self.drained)


class Rekey(Data):
    """Every host is told of its secure domains' next keys, or to use them."""

    at_ns: int
    word: Word


Event = Turn | Pace | Spoil | Restart | Forget | Halt | Deny | Rekey | Replan


class Agenda:
    """What is still to happen."""

    def __init__(self, scenario: Scenario, fabric: Fabric) -> None:
        self._fabric = fabric
        self._all = events_of(scenario, fabric)
        self._left = deque(self._all)

    def __bool__(self) -> bool:
        return bool(self._left)

    def amend(self, scenario: Scenario, now_ns: int) -> None:
        """Go by another scenario from now on, when all that was due by now has happened."""
        known, self._all = self._all, events_of(scenario, self._fabric)
        self._left = deque(
            event
            for event in self._all
            if event.at_ns > now_ns or (event.at_ns == now_ns and event not in known)
        )

    @property
    def left(self) -> tuple[Event, ...]:
        """All of it, in order."""
        return tuple(self._left)

    @property
    def next_ns(self) -> int | None:
        """When the next of it is due; None if that was all."""
        return self._left[0].at_ns if self._left else None

    def due(self, now_ns: int) -> Iterator[Event]:
        """What is to happen by now, in order."""
        while self._left and self._left[0].at_ns <= now_ns:
            yield self._left.popleft()


class EventNote(NamedTuple):
    """Something that happens by a scenario, in words."""

    at_ns: int
    kind: str
    what: str
    link: str = ""


_HOW = {
    "lose": "losing", "corrupt": "corrupting", "duplicate": "doubling", "reorder": "reordering",
    "storm": "storming", "restart": "restarting", "restart-bgp": "restarting its BGP",
    "halt": "halted", "drain": "drained", "undrain": "used again", "up": "up again",
}  # fmt: skip
_VERBS = {"lose": "loses", "corrupt": "corrupts", "duplicate": "doubles", "reorder": "reorders"}
_TOWARDS = {None: "", "up": " away from hosts", "down": " towards hosts"}


def fault_notes(scenario: Scenario) -> Iterator[EventNote]:
    """The faults of a scenario, as whoever watches them is told."""
    for fault in scenario.faults:
        kind = "storm" if fault.action == "storm" else "fault"
        what = worded(fault)
        yield EventNote(fault.at_ns, kind, what, fault.link or "")
        if fault.for_ns:
            yield EventNote(fault.at_ns + fault.for_ns, kind, f"{what} over", fault.link or "")


def worded(fault: Fault) -> str:
    """To what it happens, and what."""
    what = _VERBS.get(fault.action, fault.action)
    return f"{_sufferer(fault)} {what}{_TOWARDS[fault.direction]}"


def described(fault: Fault) -> str:
    """The same as it stands in a sentence, such as "leaf1-spine3 losing 20 %"."""
    how = _HOW.get(fault.action, fault.action)
    if fault.share:
        how = f"at {percent(fault.share)} of its rate"
    if fault.rate:
        how += f" {percent(fault.rate)}" if fault.rate < 1 else " everything"
    return f"{_sufferer(fault)} {how}{_TOWARDS[fault.direction]}"


def _sufferer(fault: Fault) -> str:
    plane = f"plane {fault.plane}" if fault.plane else ""
    part = f"the {fault.part}" if fault.part else ""
    return fault.link or fault.host or fault.switch or plane or part


def reroutes(scenario: Scenario, fabric: Fabric) -> Iterator[EventNote]:
    """When the controller leads routes by what it has heard of, after the run began."""
    for event in events_of(scenario, fabric):
        if isinstance(event, Replan) and event.at_ns:
            slow = {link.name for link in fabric.links if {link.up, link.down} & {*event.slowed}}
            names = ", ".join(sorted({*event.dead, *slow, *event.drained}))
            yield EventNote(
                event.at_ns, "reroute", f"routes know of {names or 'no fault any more'}"
            )


def dead_at(scenario: Scenario, fabric: Fabric, now_ns: int) -> frozenset[str]:
    """The cables that are cut at a time."""
    dead: set[str] = set()
    for turn in sorted(_turns(scenario, fabric), key=_by_time):
        if turn.at_ns <= now_ns:
            (dead.discard if turn.is_up else dead.add)(turn.link.name)
    return frozenset(dead)


def cut_links(fault: Fault, fabric: Fabric) -> tuple[Link, ...]:
    """The cables that a fault cuts or mends: one, or all of a switch or of a plane."""
    if fault.action not in ("down", "up"):
        return ()
    if fault.link is not None:
        return tuple(link for link in fabric.links if link.name == fault.link)
    if fault.switch is not None:
        switch = fabric.node(fault.switch)
        return tuple(link for link in fabric.links if switch in (link.a, link.b))
    return tuple(link for link in fabric.links if fabric.plane_of(link.b) + 1 == fault.plane)


def drained_links(name: str, fabric: Fabric) -> tuple[Link, ...]:
    """The cables between switches that are drained with what has this name: one, or a switch's."""
    return tuple(
        link
        for link in fabric.links
        if link.joins_switches and name in (link.name, link.a.name, link.b.name)
    )


class _News(NamedTuple):
    """What the controller comes to know, or to want."""

    at_ns: int
    dead: frozenset[str] | None = None  # from now on; None: as before
    slowed: Mapping[str, float] = MappingProxyType({})  # shares of directions that change
    rates: Mapping[str, float] = MappingProxyType({})  # by link, of those that change
    drained: frozenset[str] | None = None  # likewise
    is_emptied: bool = False  # a switch has nothing of what it was told


_LATE_NS = 5000  # of a packet that is reordered, unless told otherwise
_by_time = attrgetter("at_ns")


def events_of(scenario: Scenario, fabric: Fabric) -> list[Event]:
    """All that happens, in order."""
    turns = sorted(_turns(scenario, fabric), key=_by_time)
    paces = sorted(_paces(scenario, fabric), key=_by_time)
    others: list[Event] = [*_spoils(scenario, fabric), *_restarts(scenario, fabric)]
    others += (*_halts(scenario, fabric), *_rekeys(scenario))
    replans = _by_controller(scenario, [*_replans(scenario, fabric, turns, paces)])
    return sorted([*turns, *paces, *others, *replans], key=_by_time)


def _turns(scenario: Scenario, fabric: Fabric) -> Iterator[Turn]:
    for fault in scenario.faults:
        for link in cut_links(fault, fabric):
            yield Turn(fault.at_ns, link, is_up=fault.action == "up")
            if fault.for_ns is not None:
                yield Turn(fault.at_ns + fault.for_ns, link, is_up=True)


def _paces(scenario: Scenario, fabric: Fabric) -> Iterator[Pace]:
    links = {link.name: link for link in fabric.links}
    for fault in scenario.faults:
        if fault.share is not None and fault.link is not None:
            link = links[fault.link]
            senders = {"up": (link.a,), "down": (link.b,)}.get(
                fault.direction or "", (link.a, link.b)
            )
            yield Pace(fault.at_ns, link, fault.share, senders)
            if fault.for_ns is not None:
                yield Pace(fault.at_ns + fault.for_ns, link, 1.0, senders)


def _spoils(scenario: Scenario, fabric: Fabric) -> Iterator[Spoil]:
    """When cables begin and end to spoil frames: each as all faults of its own then say."""
    links = {link.name: link for link in fabric.links}
    ends = [link.name for link in fabric.links if not link.joins_switches]
    lost = {
        name: scenario.loss.rate
        for name in scenario.loss.links or (ends if scenario.loss.rate else ())
        if is_tried_again(scenario, links[name])
    }
    changes = [(0, name, "corrupt", rate, _LATE_NS) for name, rate in lost.items()]
    for fault in scenario.faults:
        if fault.link is None or fault.rate is None:
            continue
        action: str = fault.action
        after = 0.0
        if action == "lose":
            if not is_tried_again(scenario, links[fault.link]):
                continue
            action, after = "corrupt", lost.get(fault.link, 0.0)
        late_ns = fault.late_ns or _LATE_NS
        changes.append((fault.at_ns, fault.link, action, fault.rate, late_ns))
        if fault.for_ns is not None:
            changes.append((fault.at_ns + fault.for_ns, fault.link, action, after, late_ns))
    chances: dict[str, dict[str, float]] = {}
    for at_ns, name, action, rate, late_ns in sorted(changes, key=itemgetter(0)):
        now = chances[name] = chances.get(name, {}) | {action: rate}
        yield Spoil(at_ns, links[name], now, late_ns)


def _restarts(scenario: Scenario, fabric: Fabric) -> Iterator[Restart | Forget]:
    for fault in scenario.faults:
        if fault.switch is not None and fault.action in ("restart", "restart-bgp"):
            kind = Restart if fault.action == "restart" else Forget
            yield kind(fault.at_ns, fabric.node(fault.switch))


def _halts(scenario: Scenario, fabric: Fabric) -> Iterator[Halt]:
    for fault in scenario.faults:
        if fault.action != "halt" or fault.part == "controller":
            continue
        host = fabric.node(fault.host) if fault.host else None
        yield Halt(fault.at_ns, host, is_halted=True, for_good=fault.for_ns is None)
        if fault.for_ns is not None:
            yield Halt(fault.at_ns + fault.for_ns, host, is_halted=False)


def _by_controller(scenario: Scenario, replans: list[Replan]) -> Iterator[Replan]:
    """The same when there is somebody to do it: what comes while nobody is there waits."""
    waiting: dict[int, Replan] = {}  # of several that come together the last says all
    for replan in replans:
        back_ns = _back_ns(scenario, replan.at_ns)
        if back_ns is not None:
            waiting[back_ns] = replace(replan, at_ns=back_ns)
    yield from waiting.values()


def _back_ns(scenario: Scenario, at_ns: int) -> int | None:
    """When the controller does what is due at a time: it may be away, or never come back."""
    away = [
        (fault.at_ns, None if fault.for_ns is None else fault.at_ns + fault.for_ns)
        for fault in scenario.faults
        if fault.part == "controller"
    ]
    back_ns: int | None = at_ns
    for begin_ns, end_ns in sorted(away, key=itemgetter(0)):
        if back_ns is not None and begin_ns <= back_ns and (end_ns is None or back_ns < end_ns):
            back_ns = end_ns
    return back_ns


def _rekeys(scenario: Scenario) -> Iterator[Rekey]:
    """Keys that wait for the controller wait for each other: none is used before all have it."""
    settings = scenario.transport.security
    earliest_ns = 0
    for word in words_of(settings):
        at_ns = _back_ns(scenario, max(word.at_ns, earliest_ns))
        if at_ns is None:
            return
        yield Rekey(at_ns, word)
        earliest_ns = at_ns + settings.rekey_after_ns


def _replans(
    scenario: Scenario, fabric: Fabric, turns: list[Turn], paces: list[Pace]
) -> Iterator[Replan]:
    """One for each time at which there is news."""
    dead: frozenset[str] = frozenset()
    drained: frozenset[str] = frozenset()
    slowed: dict[str, float] = {}
    rates: dict[str, float] = {}
    replans = (
        *(*_repairs(scenario, fabric, turns), *_weighings(scenario, paces)),
        *(*_lossy(scenario), *_emptied(scenario), *_drains(scenario, fabric)),
    )
    for at_ns, news in groupby(sorted(replans, key=_by_time), key=_by_time):
        before = dead, drained, dict(slowed), dict(rates)
        together = list(news)
        for each in together:
            dead = dead if each.dead is None else each.dead
            drained = drained if each.drained is None else each.drained
            slowed |= each.slowed
            rates |= each.rates
        is_emptied = any(each.is_emptied for each in together)
        if is_emptied or (dead, drained, slowed, rates) != before:
            losses = losses_of(scenario, fabric, rates)
            yield Replan(at_ns, dead, dict(slowed), losses, drained)


def _repairs(scenario: Scenario, fabric: Fabric, turns: list[Turn]) -> Iterator[_News]:
    """Which cables are dead; hosts' own, too, where leaves are pairs: a way leads round them."""
    if scenario.reroute_ns is None:
        return
    dead: frozenset[str] = frozenset()
    for at_ns, together in groupby(turns, key=_by_time):
        for turn in together:
            if turn.link.joins_switches or fabric.has_pairs:
                name = {turn.link.name}
                dead = dead - name if turn.is_up else dead | name
        yield _News(_heard_ns(scenario.reroute_ns, at_ns), dead=dead)


def _weighings(scenario: Scenario, paces: list[Pace]) -> Iterator[_News]:
    """Which cables have how much of their rate, as far as the controller knows."""
    if scenario.reroute_ns is None:
        return
    for pace in paces:
        slowed = {pace.link.direction(sender): pace.share for sender in pace.senders}
        yield _News(_heard_ns(scenario.reroute_ns, pace.at_ns), slowed=slowed)


def _drains(scenario: Scenario, fabric: Fabric) -> Iterator[_News]:
    """Which cables are drained."""
    changes = []
    for fault in scenario.faults:
        if fault.action in ("drain", "undrain"):
            names = {link.name for link in drained_links(fault.link or fault.switch or "", fabric)}
            is_drained = fault.action == "drain"
            changes.append((fault.at_ns, names, is_drained))
            if fault.for_ns is not None:
                changes.append((fault.at_ns + fault.for_ns, names, not is_drained))
    drained: frozenset[str] = frozenset()
    for at_ns, names, is_drained in sorted(changes, key=itemgetter(0)):
        drained = drained | names if is_drained else drained - names
        yield _News(at_ns, drained=drained)


def _emptied(scenario: Scenario) -> Iterator[_News]:
    """When the controller notices that a switch has empty tables."""
    for fault in scenario.faults:
        if fault.action == "restart" and scenario.reroute_ns is not None:
            yield _News(_heard_ns(scenario.reroute_ns, fault.at_ns), is_emptied=True)


def _heard_ns(reroute_ns: int, at_ns: int) -> int:
    """When the controller acts on what happened; what was so before was known before."""
    return at_ns + reroute_ns if at_ns else 0


def _lossy(scenario: Scenario) -> Iterator[_News]:
    """Which links begin to lose packets, and no longer do."""
    usual = dict.fromkeys(scenario.loss.links, scenario.loss.rate)
    for fault in scenario.faults:
        if fault.action == "lose" and fault.link is not None and fault.rate is not None:
            yield _News(fault.at_ns, rates={fault.link: fault.rate})
            if fault.for_ns is not None:
                then = usual.get(fault.link, 0.0)
                yield _News(fault.at_ns + fault.for_ns, rates={fault.link: then})

"""What happens to cables while a run lasts, in the order in which it happens, for any engine.

A cable that dies takes with it what is under way in it. Switches at its ends notice and use their
other ways; those further off go on sending towards it until the controller, ``reroute_ns`` later,
leads all routes round it. What is dead at 0 was dead before: that is known to everyone at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from controller.routes import Cable, cable
from lab.scenario import Scenario
from topologies import Fabric, Link


@dataclass(frozen=True, slots=True)
class Turn:
    """A cable dies, or lives again."""

    at_ns: int
    link: Link
    is_up: bool


@dataclass(frozen=True, slots=True)
class Reroute:
    """The controller gives every switch routes that use none of the dead cables."""

    at_ns: int
    dead: frozenset[Cable]


def events_of(scenario: Scenario, fabric: Fabric) -> list[Turn | Reroute]:
    """All that happens, in order."""
    turns = sorted(_turns(scenario, fabric), key=lambda turn: turn.at_ns)
    return sorted([*turns, *_reroutes(scenario, turns)], key=lambda event: event.at_ns)


def _turns(scenario: Scenario, fabric: Fabric) -> Iterator[Turn]:
    links = {link.name: link for link in fabric.links}
    for fault in scenario.faults:
        if fault.link is None:
            continue
        link = links[fault.link]
        yield Turn(fault.at_ns, link, is_up=fault.action == "up")
        if fault.for_ns is not None:
            yield Turn(fault.at_ns + fault.for_ns, link, is_up=True)


def _reroutes(scenario: Scenario, turns: list[Turn]) -> Iterator[Reroute]:
    """One for each time at which cables turn, as they are then; a host has only one cable."""
    if scenario.reroute_ns is None:
        return
    dead: set[Cable] = set()
    for at_ns, together in groupby(turns, key=lambda turn: turn.at_ns):
        before = frozenset(dead)
        for turn in together:
            if turn.link.joins_switches:
                (dead.discard if turn.is_up else dead.add)(cable(turn.link.a, turn.link.b))
        if dead != before:
            yield Reroute(at_ns + scenario.reroute_ns if at_ns else 0, frozenset(dead))

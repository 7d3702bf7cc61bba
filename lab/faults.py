"""What happens to cables while a run lasts, in the order in which it happens, for any engine.

A cable that dies takes with it what is under way in it. Switches at its ends notice and use their
other ways; those further off go on sending towards it until the controller, ``reroute_ns`` later,
leads all routes round it. What is dead at 0 was dead before: that is known to everyone at once.
A cable that loses packets does so by a table of the switches at its ends (p4src/lose.p4).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from controller import Loss
from controller.routes import Cable, cable
from lab.scenario import Scenario
from lab.settings import losses_of
from topologies import Fabric, Link


@dataclass(frozen=True, slots=True)
class Turn:
    """A cable dies, or lives again."""

    at_ns: int
    link: Link
    is_up: bool


@dataclass(frozen=True, slots=True)
class Replan:
    """Every switch is told what is new: ways that use no dead cable, and what cables lose."""

    at_ns: int
    dead: frozenset[Cable]
    losses: tuple[Loss, ...]


class _News(NamedTuple):
    """What the controller comes to know, or to want."""

    at_ns: int
    dead: frozenset[Cable] | None = None  # from now on; None: as before
    rates: Mapping[str, float] = MappingProxyType({})  # by link, of those that change


_by_time = attrgetter("at_ns")


def events_of(scenario: Scenario, fabric: Fabric) -> list[Turn | Replan]:
    """All that happens, in order."""
    turns = sorted(_turns(scenario, fabric), key=_by_time)
    return sorted([*turns, *_replans(scenario, fabric, turns)], key=_by_time)


def _turns(scenario: Scenario, fabric: Fabric) -> Iterator[Turn]:
    links = {link.name: link for link in fabric.links}
    for fault in scenario.faults:
        if fault.link is None or fault.action == "lose":
            continue
        link = links[fault.link]
        yield Turn(fault.at_ns, link, is_up=fault.action == "up")
        if fault.for_ns is not None:
            yield Turn(fault.at_ns + fault.for_ns, link, is_up=True)


def _replans(scenario: Scenario, fabric: Fabric, turns: list[Turn]) -> Iterator[Replan]:
    """One for each time at which there is news."""
    dead: frozenset[Cable] = frozenset()
    rates: dict[str, float] = {}
    news = sorted([*_repairs(scenario, turns), *_lossy(scenario)], key=_by_time)
    for at_ns, together in groupby(news, key=_by_time):
        before = dead, dict(rates)
        for each in together:
            dead = dead if each.dead is None else each.dead
            rates |= each.rates
        if (dead, rates) != before:
            yield Replan(at_ns, dead, losses_of(scenario, fabric, rates))


def _repairs(scenario: Scenario, turns: list[Turn]) -> Iterator[_News]:
    """Which cables are dead; a host has only one, and there is no way round it."""
    if scenario.reroute_ns is None:
        return
    dead: frozenset[Cable] = frozenset()
    for at_ns, together in groupby(turns, key=_by_time):
        for turn in together:
            if turn.link.joins_switches:
                ends = {cable(turn.link.a, turn.link.b)}
                dead = dead - ends if turn.is_up else dead | ends
        yield _News(at_ns + scenario.reroute_ns if at_ns else 0, dead=dead)


def _lossy(scenario: Scenario) -> Iterator[_News]:
    """Which links begin to lose packets, and no longer do."""
    usual = dict.fromkeys(scenario.loss.links, scenario.loss.rate)
    for fault in scenario.faults:
        if fault.action == "lose" and fault.link is not None and fault.rate is not None:
            yield _News(fault.at_ns, rates={fault.link: fault.rate})
            if fault.for_ns is not None:
                then = usual.get(fault.link, 0.0)
                yield _News(fault.at_ns + fault.for_ns, rates={fault.link: then})

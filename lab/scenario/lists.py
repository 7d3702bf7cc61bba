"""The segment lists of a scenario: by which switches each leads, and when packets take it.

A leaf has lists for what its policies name; adapters that steer (``segments.hosts``) have one for
each entropy. Which of them are taken changes with what the controller knows of dead cables and is
told to drain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from controller.segments import Listed, Path, Policy, State, policies_of
from lab.scenario.faults import Replan, events_of
from lab.scenario.model import Scenario
from lab.scenario.translate import controller_settings
from lab.scenario.ways import Ways
from params.quantity import duration
from topologies import Fabric, Node


class SegmentList(NamedTuple):
    """One of them."""

    begins: Node  # the leaf that it is written at, or that adapters who write it hang at
    what: str  # takes it
    way: Listed
    taken: str  # when

    @property
    def written(self) -> str:
        """The addresses that packets have, one after the other."""
        return " then ".join(map(str, self.way.carriers))


class _Moment(NamedTuple):
    """From when on the controller goes by what."""

    at_ns: int
    dead: frozenset[str]
    drained: frozenset[str]


def lists_of(scenario: Scenario, pairs: Iterable[tuple[Node, Node]]) -> Iterator[SegmentList]:
    """All lists of leaves, and of adapters those between these hosts."""
    if not scenario.segments.enabled:
        return
    fabric = scenario.fabric()
    moments = _moments(scenario, fabric)
    yield from _of_leaves(scenario, fabric, moments)
    if scenario.segments.hosts:
        yield from _of_adapters(scenario, fabric, moments, pairs)


def _moments(scenario: Scenario, fabric: Fabric) -> list[_Moment]:
    found = {0: _Moment(0, frozenset(), frozenset())}
    for event in events_of(scenario, fabric):
        if isinstance(event, Replan):
            found[event.at_ns] = _Moment(event.at_ns, event.dead, event.drained)
    return list(found.values())


def _of_leaves(
    scenario: Scenario, fabric: Fabric, moments: Sequence[_Moment]
) -> Iterator[SegmentList]:
    settings = controller_settings(scenario, fabric)
    tenants = dict(enumerate(scenario.tenants, 1))
    for leaf in dict.fromkeys(fabric.node(steering.leaf) for steering in settings.steering):
        then = [
            _first_of_each(
                policies_of(fabric, leaf, replace(settings, drained=now.drained), now.dead)
            )
            for now in moments
        ]
        whole = _first_of_each(policies_of(fabric, leaf, settings))
        for place, paths in whole.items():
            to, tenant = place
            what = f"to {to}" + (f" of {tenants[tenant]}" if tenant is not None else "")
            every = dict.fromkeys((*paths, *(path for now in then for path in now.get(place, ()))))
            for path in every:
                taken = _taken_when(moments, [path in now.get(place, ()) for now in then])
                yield SegmentList(leaf, what, Listed(path, State.FREE), taken)


def _first_of_each(policies: Iterable[Policy]) -> Mapping[tuple[str, int | None], tuple[Path, ...]]:
    """By place and tenant, of which the first policy counts: the ways it leads."""
    found: dict[tuple[str, int | None], tuple[Path, ...]] = {}
    for policy in policies:
        place = policy.target.name, policy.steering.tenant
        found.setdefault(place, tuple(dict.fromkeys(path for path, _ in policy.ways)))
    return found


def _of_adapters(
    scenario: Scenario,
    fabric: Fabric,
    moments: Sequence[_Moment],
    pairs: Iterable[tuple[Node, Node]],
) -> Iterator[SegmentList]:
    ways = Ways(fabric, scenario.transport.entropies)
    alike: dict[tuple[Node, Node], tuple[Node, Node]] = {}  # hosts of the same leaves
    for src, dst in pairs:
        alike.setdefault((fabric.leaf_of(src), fabric.leaf_of(dst)), (src, dst))
    for src, dst in alike.values():
        denied = [ways.denied({(src, 0): (src, dst)}, now.dead, now.drained) for now in moments]
        by_way: dict[Listed, list[int]] = {}
        for entropy, way in enumerate(ways.between(src, dst)):
            if way is not None:
                by_way.setdefault(way, []).append(entropy)
        for way, entropies in by_way.items():
            taken = _taken_when(moments, [entropies[0] not in now[src, 0] for now in denied])
            what = f"entropies {_series(entropies)} to {way.path[-1]}"
            yield SegmentList(way.path[0], what, way, taken)


def _series(numbers: Sequence[int]) -> str:
    """Numbers of equal steps, of many the first, the second and the last."""
    first, *rest = map(str, numbers)
    return ", ".join((first, *rest)) if len(rest) < 3 else f"{first}, {rest[0]} ... {rest[-1]}"


def _taken_when(moments: Sequence[_Moment], taken: Sequence[bool]) -> str:
    """When a list is taken, if it is from each of some moments on or not."""
    turns = [now for now, is_taken in enumerate(taken) if is_taken != (now and taken[now - 1])]
    times = [moments[now].at_ns for now in turns]
    spans = [*zip(times[::2], [*times[1::2], None], strict=False)]
    return ", ".join(_span(*span) for span in spans) or "never"


def _span(begin_ns: int, end_ns: int | None) -> str:
    if end_ns is None:
        return f"from {duration(begin_ns)} on" if begin_ns else "always"
    return (
        f"from {duration(begin_ns)} to {duration(end_ns)}"
        if begin_ns
        else f"until {duration(end_ns)}"
    )

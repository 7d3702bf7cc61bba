"""Which failures of a cable or two change ways, and what comes of each: a circle, or no way at all.

Ways between two switches get longer only if all of the shortest are cut; failures that cut nobody's
leave a part of what there was, in which no new circle can be. So those are enough that cut all ways
from one switch with hosts to another, and after one of them those that do so then. Switches with
the same neighbours can be changed for one another: of failures that differ by that alone one is
looked at. Cables between the same two switches count as many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import field

from lab.configs.routes import circles, next_hops
from params.data import Data

Pair = tuple[str, str]  # switches that are cabled, in order
Cut = frozenset[Pair]
_MAX_LOOKED_AT = 400
_MAX_WORK = 300_000  # cables x switches with hosts, of all that is looked at: some seconds


class Net(Data, frozen=False):
    """Switches and how many cables join them."""

    joined: Mapping[Pair, int]
    ends: Collection[str]  # those with hosts
    asns: Mapping[str, int]
    names: Collection[str]
    neighbours: dict[str, list[str]] = field(init=False)
    twins: dict[str, object] = field(init=False)
    """By switch: what those have alike that can be changed for one another."""

    def __post_init__(self) -> None:
        beside: dict[str, set[str]] = {name: set() for name in self.names}
        for a, b in self.joined:
            beside[a].add(b)
            beside[b].add(a)
        self.neighbours = {name: sorted(others) for name, others in beside.items()}
        self.twins = self._twins()

    def without(self, cut: Cut) -> Net:
        """The same after failures."""
        left = {pair: count for pair, count in self.joined.items() if pair not in cut}
        return Net(left, self.ends, self.asns, self.names)

    def circles(self) -> list[list[str]]:
        """Of buffers that wait for one another."""
        return circles(self.neighbours, self.ends, self.asns)

    def hops(self, end: str) -> dict[str, list[str]]:
        """Ways to a switch."""
        return next_hops(self.neighbours, end, self.asns)

    def _twins(self) -> dict[str, object]:
        shared = Counter(self.asns.values())
        found: dict[str, object] = {}
        for name, others in self.neighbours.items():
            asn = self.asns.get(name)
            around = frozenset((other, self.joined[pair_of(name, other)]) for other in others)
            one_of_many = asn is not None and shared[asn] > 1
            found[name] = around, name in self.ends, asn if one_of_many else asn is None
        return found


class Failure(Data):
    """What fails, and the circle that ways then close."""

    cut: Cut
    circle: list[str]


class Looked(Data, frozen=False):
    """What was found by looking."""

    deadlocks: list[Failure]
    single: set[Pair]  # cables without which somebody hears nothing
    left: int  # failures that were not looked at


def pair_of(a: str, b: str) -> Pair:
    """Two switches, in order."""
    return (a, b) if a < b else (b, a)


def look(net: Net) -> Looked:
    """Every failure of a cable or two that matters; of a circle the least failure."""
    most = min(_MAX_LOOKED_AT, 4 + _MAX_WORK // (1 + len(net.joined) * len(net.ends)))
    known: set[object] = set()
    looked = Looked([], set(), 0)
    ahead = list(_cuts(net))
    alone = [cut for cut in ahead if _cost(net, cut) == 1]
    for cut in alone[:most]:
        (pair,) = cut
        after = net.without(cut)
        looked.single |= _last_ways(net, after, pair)
        ahead += [cut | other for other in _cuts(after) if _cost(net, other) == 1]
    looked.left = len(alone[most:])
    for at, cut in enumerate(sorted(ahead, key=lambda c: (len(c), sorted(c)))):
        form = _form(net, cut)
        if form in known:
            continue
        known.add(form)
        if len(known) > most:
            looked.left += len(ahead) - at
            break
        if found := net.without(cut).circles():
            looked.deadlocks.append(Failure(cut, found[0]))
            break
    return looked


def _cost(net: Net, cut: Cut) -> int:
    return sum(net.joined[pair] for pair in cut)


def _cuts(net: Net) -> Iterator[Cut]:
    """Failures of two cables at most that cut all shortest ways between two switches with hosts."""
    twins = net.twins
    seen: set[object] = set()
    given: set[Cut] = set()
    for end in sorted(net.ends):
        hops = net.hops(end)
        for start in sorted(net.ends):
            kind = twins[start], twins[end]
            if start == end or start not in hops or kind in seen:
                continue
            seen.add(kind)
            for cut in _cuts_between(hops, start, end):
                if cut not in given and _cost(net, cut) <= 2:
                    given.add(cut)
                    yield cut


def _cuts_between(hops: Mapping[str, list[str]], start: str, end: str) -> Iterator[Cut]:
    for first in _way(hops, start, end, frozenset()) or ():
        cut = frozenset((first,))
        other = _way(hops, start, end, cut)
        if other is None:
            yield cut
            continue
        for second in other:
            both = cut | {second}
            if _way(hops, start, end, both) is None:
                yield both


def _way(hops: Mapping[str, list[str]], start: str, end: str, cut: Cut) -> list[Pair] | None:
    """One of the shortest ways that are left; None: none is."""
    came: dict[str, str] = {}
    ahead = [start]
    while ahead:
        at = ahead.pop()
        for near in hops.get(at, ()):
            if near in came or pair_of(at, near) in cut:
                continue
            came[near] = at
            if near == end:
                return _back(came, start, end)
            ahead.append(near)
    return None


def _back(came: Mapping[str, str], start: str, end: str) -> list[Pair]:
    way, at = [], end
    while at != start:
        way.append(pair_of(at, came[at]))
        at = came[at]
    return way


def _last_ways(net: Net, after: Net, pair: Pair) -> set[Pair]:
    """That cable and its likes, if without it somebody hears nothing of somebody else."""
    form = _form(net, frozenset((pair,)))
    for end in net.ends:
        if {name for name in net.ends if name in net.hops(end)} <= after.hops(end).keys():
            continue
        return {
            other
            for other, count in net.joined.items()
            if count == 1 and _form(net, frozenset((other,))) == form
        }
    return set()


def _form(net: Net, cut: Cut) -> object:
    """The same for failures that differ by switches that can be changed for one another."""
    twins = net.twins

    def canonical(pairs: tuple[Pair, ...]) -> object:
        at: dict[str, int] = {}
        return tuple(
            tuple((twins[name], at.setdefault(name, len(at))) for name in pair) for pair in pairs
        )

    pairs = sorted(cut)
    orders = [tuple(pairs), tuple(reversed(pairs))]
    flipped = [tuple((b, a) for a, b in order) for order in orders]
    return frozenset(canonical(order) for order in (*orders, *flipped))

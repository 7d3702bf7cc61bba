"""The ways that adapters steer by: which of them an entropy is, and which are denied.

Where ``segments.hosts`` is set, a sprayed connection's entropies are the shortest ways between its
two leaves, in turn: of a plane's entropies the first takes the first way, and so on round. A way is
a list of micro-segments, switch by switch, and the same switches in both directions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from ipaddress import IPv6Address

from controller.routes import living_switches
from controller.segments import Listed, Path, drained_on, lists_between
from lab.errors import ScenarioError
from topologies import Fabric, Node

Ends = tuple[Node, int]  # a host, and the number of a queue pair there
Denials = dict[Ends, frozenset[int]]


class Ways:
    """Those of all pairs of hosts."""

    def __init__(self, fabric: Fabric, entropies: int) -> None:
        self._fabric = fabric
        self._entropies = entropies
        self._known: dict[tuple[Node, Node], tuple[Listed, ...]] = {}

    def between(self, here: Node, there: Node) -> tuple[Listed | None, ...]:
        """By entropy, from host to host; none where both hang at one leaf."""
        planes = self._planes(here, there)
        return tuple(_way(planes, entropy) for entropy in range(self._entropies))

    def path(self, here: Node, there: Node, entropy: int) -> Path:
        """The switches that one of them goes by; none where both hang at one leaf."""
        way = _way(self._planes(here, there), entropy)
        return () if way is None else way.path

    def lists(self, here: Node, there: Node) -> tuple[IPv6Address | None, ...]:
        """The same as packets have it."""
        ways = self.between(here, there)
        written = {way: self._written(way) for way in {*ways} if way is not None}
        return tuple(None if way is None else written[way] for way in ways)

    def denied(
        self,
        pairs: Mapping[Ends, tuple[Node, Node]],
        dead: Collection[str],
        drained: Collection[str],
    ) -> Denials:
        """By queue pair: the entropies that are not to be used. Some always are left.

        What is drained is used rather than none: that which is least. Where all are dead, all are.
        """
        graph = living_switches(self._fabric, dead, drained)
        known: dict[Path, float] = {}

        def badness(way: Listed | None) -> float:
            if way is None:
                return 0
            if way.path not in known:
                known[way.path] = drained_on(graph, way.path)
            return known[way.path]

        found: Denials = {}
        denied: dict[tuple[Node, Node], frozenset[int]] = {}
        for ends, pair in pairs.items():
            if pair not in denied:
                bad = [badness(way) for way in self.between(*pair)]
                denied[pair] = frozenset(n for n, each in enumerate(bad) if each > min(bad))
            found[ends] = denied[pair]
        return found

    def _planes(self, here: Node, there: Node) -> list[tuple[Listed, ...]]:
        """By port of a host: the ways to another from the leaf there."""
        return [
            self._listed(leaf, self._fabric.leaf_of(there, self._fabric.plane_of(leaf)))
            for leaf in self._fabric.leaves_of(here)
        ]

    def _listed(self, one: Node, other: Node) -> tuple[Listed, ...]:
        if one == other:
            return ()
        if (one, other) not in self._known:
            ways = lists_between(self._fabric, min(one, other), max(one, other))
            if other < one:
                ways = tuple(Listed(way.path[::-1], way.state) for way in ways)
            self._known[one, other] = ways
        return self._known[one, other]

    @staticmethod
    def _written(way: Listed) -> IPv6Address:
        first, *behind = way.carriers
        if behind:
            names = " ".join(map(str, way.path))
            raise ScenarioError(
                f"segments.hosts: adapters write one address, and {names} does not fit it",
                "Take a topology of fewer hops, or let leaves steer: segments.policies.",
            )
        return first


def _way(planes: Sequence[Sequence[Listed]], entropy: int) -> Listed | None:
    turn, port = divmod(entropy, len(planes))
    return planes[port][turn % len(planes[port])] if planes[port] else None


class Helm:
    """What adapters were told last, so that they are told what is new."""

    def __init__(self, ways: Ways | None, pairs: Mapping[Ends, tuple[Node, Node]]) -> None:
        self._ways = ways
        self._pairs = pairs
        self._avoided: tuple[frozenset[str], frozenset[str]] = frozenset(), frozenset()
        self._reported: Denials = {}

    def news(
        self, dead: frozenset[str], drained: frozenset[str]
    ) -> Iterator[tuple[Node, int, frozenset[int]]]:
        """Hosts, queue pairs there, and all entropies that are denied from now on."""
        if self._ways is None or self._avoided == (dead, drained):
            return
        self._avoided = dead, drained
        for (host, number), denied in self._ways.denied(self._pairs, dead, drained).items():
            if denied != self._reported.get((host, number), frozenset()):
                self._reported[host, number] = denied
                yield host, number, denied

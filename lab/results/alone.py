"""How long messages would take alone in an empty fabric: what slowdowns are measured by.

Every switch stores and forwards, and every cable has a rate and a delay of its own. A packet enters
a cable when it has come whole and the one before it has left. The last packet is therefore late by
the longest chain of such waits, and there is one for each pair of cables: the first packet crosses
all up to the one cable, the packets behind it then pass one after the other as fast as the slowest
between the two lets them, and from the other cable on the last is alone. Of several equally short
ways the quickest counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property, reduce
from operator import or_
from typing import NamedTuple

from controller import LinkSpec
from lab.scenario.experiment import Experiment
from lab.scenario.translate import IMMEDIATE_BYTES, RETH_BYTES, data_headers_bytes
from params.quantity import summed
from topologies import Link, Node
from traffic.collectives import Schedule
from traffic.endpoint import Recovery

Way = Sequence[LinkSpec]  # the cables that a packet crosses, in order
_Kinds = tuple[int, ...]  # the same by the numbers of their kinds


class Message(NamedTuple):
    """What a message is on a wire: the sizes of its packets."""

    first: int
    between: int
    n_between: int
    last: int | None  # None: the first is the only one

    @classmethod
    def of(cls, size: int, mtu: int, around: int, *, each_has_reth: bool) -> Message:
        """A message of so many bytes; ``around`` is what a packet has besides its payload."""
        packets = max(1, -(-size // mtu))
        tail = size - (packets - 1) * mtu
        tail += -tail % 4 + around + IMMEDIATE_BYTES
        if packets == 1:
            return cls(tail + RETH_BYTES, 0, 0, None)
        reth = RETH_BYTES if each_has_reth else 0
        return cls(mtu + around + RETH_BYTES, mtu + around + reth, packets - 2, tail + reth)


def crossing_ns(message: Message, way: Way) -> float:
    """When the last bit of the last packet comes out at the end of a way."""
    costs = [8e9 / cable.rate_bps for cable in way]
    delays_ns = sum(cable.delay_ns for cable in way)
    if message.last is None:
        return message.first * summed(costs) + delays_ns
    before = [message.first * summed(costs[: at + 1]) for at in range(len(costs))]
    behind = [message.last * summed(costs[at:]) for at in range(len(costs))]
    if not message.n_between:
        return max(map(summed, zip(before, behind, strict=True))) + delays_ns
    longest = 0.0
    for begin in range(len(costs)):
        for end in range(begin, len(costs)):
            between = costs[begin : end + 1]
            passing = message.between * (summed(between) + (message.n_between - 1) * max(between))
            longest = max(longest, before[begin] + passing + behind[end])
    return longest + delays_ns


class Alone:
    """Times of an experiment's messages, each alone."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._schedule: Schedule = experiment.schedule
        self._hosts = experiment.fabric.hosts
        self._mtu = experiment.scenario.link.mtu
        self._around = data_headers_bytes(experiment.scenario) + experiment.scenario.link.overhead
        self._each_has_reth = experiment.scenario.transport.recovery is Recovery.SELECTIVE
        # A sprayed message has all planes to itself: as if each cable were as many times as fast.
        is_sprayed = experiment.scenario.transport.kind.sprays
        self._abreast = experiment.fabric.ports_abreast
        times = self._abreast if is_sprayed else 1

        def cable(link: Link) -> LinkSpec:
            one = experiment.cable(link)
            return LinkSpec(times * one.rate_bps, one.delay_ns)

        fabric = experiment.fabric
        leaves = {
            (host, plane): fabric.leaf_of(host, plane)
            for host in self._hosts
            for plane in fabric.planes_of(host)
        }
        cables_of = {
            place: cable(fabric.links_between(place[0], leaf)[0]) for place, leaf in leaves.items()
        }
        kinds_of_cables: dict[LinkSpec, int] = {}
        self._cables: dict[Node, dict[Node, set[int]]] = {}
        for link in experiment.fabric.links:
            if link.joins_switches:
                kind = kinds_of_cables.setdefault(cable(link), len(kinds_of_cables))
                for here, there in ((link.a, link.b), (link.b, link.a)):
                    self._cables.setdefault(here, {}).setdefault(there, set()).add(kind)
        self._kinds_of_cables = list(kinds_of_cables)
        # Hosts that hang on a leaf by alike cables differ in nothing else.
        kinds: dict[tuple[Node, LinkSpec], int] = {}
        self._kind_of = {
            place: kinds.setdefault((leaf, cables_of[place]), len(kinds))
            for place, leaf in leaves.items()
        }
        self._kinds = list(kinds)
        self._plane_between = cache(lambda a, b: fabric.planes_of(a, b)[0])
        self._has_planes = fabric.planes > 1 and not fabric.is_spread
        self._takes = cache(self._between)
        self._crossing = cache(self._quickest)

    @property
    def alpha_ns(self) -> float:
        """The first byte's time within a rack."""
        host = self._experiment.settings.host_link
        return 2 * host.delay_ns + (self._mtu + self._around) * 8e9 / host.rate_bps

    @property
    def payload_rate_gbps(self) -> float:
        """What of a host's rate is left for payload."""
        rate_bps = self._experiment.settings.host_link.rate_bps
        return self._abreast * rate_bps / 1e9 * self._mtu / (self._mtu + self._around)

    def takes_ns(self, number: int) -> float:
        """How long a transfer takes."""
        schedule, hosts = self._schedule, self._hosts
        a, b = hosts[schedule.src[number]], hosts[schedule.dst[number]]
        plane = self._plane_between(a, b) if self._has_planes else 0
        return self._takes(schedule.size[number], self._kind_of[a, plane], self._kind_of[b, plane])

    def _between(self, size: int, src: int, dst: int) -> float:
        (leaf, first), (other, last) = self._kinds[src], self._kinds[dst]
        bit = self._leaves[leaf]
        between = frozenset(way for way, leaves in self._ways[other].items() if leaves & bit)
        return self._crossing(size, first, between, last)

    def _quickest(
        self, size: int, first: LinkSpec, between: frozenset[_Kinds], last: LinkSpec
    ) -> float:
        message = Message.of(size, self._mtu, self._around, each_has_reth=self._each_has_reth)
        ways = ([self._kinds_of_cables[kind] for kind in way] for way in between)
        return min(crossing_ns(message, (first, *way, last)) for way in ways)

    @cached_property
    def _leaves(self) -> dict[Node, int]:
        """A bit for each."""
        leaves = dict.fromkeys(leaf for leaf, _ in self._kinds)
        return {leaf: 1 << number for number, leaf in enumerate(leaves)}

    @cached_property
    def _ways(self) -> dict[Node, dict[_Kinds, int]]:
        """By switch: its shortest ways, those of equal cables being one, and from which leaves."""
        edge: dict[Node, dict[_Kinds, int]] = {
            leaf: {(): bit} for leaf, bit in self._leaves.items()
        }
        found, known = dict(edge), Counter(self._leaves)
        while edge:
            reached: dict[Node, dict[_Kinds, int]] = {}
            for here, ways in edge.items():
                for there, cables in self._cables.get(here, {}).items():
                    for way, leaves in ways.items():
                        if new := leaves & ~known[there]:
                            behind = reached.setdefault(there, {})
                            for cable in cables:
                                behind[*way, cable] = behind.get((*way, cable), 0) | new
            for there, ways in reached.items():
                known[there] |= reduce(or_, ways.values())
                found[there] = found.get(there, {}) | ways
            edge = reached
        return found

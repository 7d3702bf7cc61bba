"""How long messages would take alone in an empty fabric: what slowdowns are measured by.

Every switch stores and forwards. A message is serialised once as a whole, at the slowest link of
its way; each other link adds the time of one packet, a full one if there is any (a short one at the
end cannot overtake it), and all add their delay.
"""

from __future__ import annotations

from functools import cache

import networkx as nx

from lab.experiment import Experiment
from lab.settings import DATA_HEADERS_BYTES, IMMEDIATE_BYTES, RETH_BYTES
from topologies import Node
from traffic.collectives import Schedule

_WIRE = 24  # preamble and start 8, FCS 4, gap 12


class Alone:
    """Times of an experiment's messages, each alone."""

    def __init__(self, experiment: Experiment) -> None:
        self._schedule: Schedule = experiment.schedule
        self._hosts = experiment.fabric.hosts
        self._graph = experiment.fabric.graph
        self._mtu = experiment.scenario.link.mtu
        host = experiment.settings.host_link
        fabric = experiment.settings.fabric_link
        self._host_ns_per_byte = 8e9 / host.rate_bps
        self._fabric_ns_per_byte = 8e9 / fabric.rate_bps
        self._host_delay_ns = host.delay_ns
        self._fabric_delay_ns = fabric.delay_ns
        self._leaf = {node: experiment.fabric.leaf_of(node) for node in self._hosts}
        self._links_between = cache(self._count_links)

    @property
    def alpha_ns(self) -> float:
        """The first byte's time within a rack."""
        return (
            2 * self._host_delay_ns
            + (self._mtu + DATA_HEADERS_BYTES + _WIRE) * self._host_ns_per_byte
        )

    @property
    def payload_rate_gbps(self) -> float:
        """What of a host's rate is left for payload."""
        return 8 / self._host_ns_per_byte * self._mtu / (self._mtu + DATA_HEADERS_BYTES + _WIRE)

    def takes_ns(self, number: int) -> float:
        """How long a transfer takes."""
        size = self._schedule.size[number]
        src, dst = (self._hosts[end[number]] for end in (self._schedule.src, self._schedule.dst))
        links = self._links_between(self._leaf[src], self._leaf[dst])
        packets = max(1, -(-size // self._mtu))
        whole = size + packets * (DATA_HEADERS_BYTES + _WIRE) + RETH_BYTES + IMMEDIATE_BYTES
        one = whole if packets == 1 else self._mtu + DATA_HEADERS_BYTES + _WIRE
        slowest = max(self._host_ns_per_byte, self._fabric_ns_per_byte if links else 0)
        hops_ns = one * (2 * self._host_ns_per_byte + links * self._fabric_ns_per_byte)
        delays_ns = 2 * self._host_delay_ns + links * self._fabric_delay_ns
        return whole * slowest + hops_ns - one * slowest + delays_ns

    def _count_links(self, leaf: Node, other: Node) -> int:
        """The links between two leaves on the shortest way."""
        return int(nx.shortest_path_length(self._graph, leaf, other))

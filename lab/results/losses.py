"""Losses that should not be: they make a run one not to be believed.

Frames lost where nothing counts, between a process that sent and one that receives: a machine that
gives processes their turn too late lets their sockets overflow. What left one end of a cable and
did not arrive at the other says so. And lossless packets that found no headroom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lab.results.outcome import LOSSLESS_DISCARDS, SwitchCounts
from lab.scenario.experiment import Experiment
from topologies import Fabric, Node, NodeKind
from traffic.endpoint import counted_at

_UNFORESEEN = "corrupt", "duplicate", "reorder", "restart"
Ends = tuple[Node, int]


def lost_frames(
    fabric: Fabric,
    switches: Mapping[Node, SwitchCounts],
    endpoints: Mapping[Node, Mapping[str, int]],
) -> dict[str, int]:
    """By direction of a link: what left one end and did not come to the other."""

    def sent(node: Node, port: int) -> int:
        if node.kind is NodeKind.HOST:
            return counted_at(endpoints[node], port, "tx_packets")
        counts = switches[node].port(port)
        return counts.sent.packets + counts.control_sent

    def received(node: Node, port: int) -> int:
        if node.kind is NodeKind.HOST:
            return counted_at(endpoints[node], port, "rx_packets")
        return switches[node].port(port).received.packets

    losses = {name: sent(*src) - received(*dst) for name, src, dst in _directions(fabric)}
    return {name: frames for name, frames in losses.items() if frames > 0}


def overrun(
    experiment: Experiment,
    switches: Mapping[Node, SwitchCounts],
    endpoints: Mapping[Node, Mapping[str, int]],
) -> int:
    """Lossless packets that came after the headroom computed for them was full."""
    scenario = experiment.scenario
    lost = 0
    if any(fault.action in _UNFORESEEN for fault in scenario.faults):
        return 0  # pauses that come late or not at all, and more than was sent
    if scenario.pfc.headroom is None and scenario.buffer.headroom_pool is None:
        # Else whoever set the headroom may want to see it overrun.
        lost += sum(counts.dropped.get("headroom_full", 0) for counts in switches.values())
    lost += sum(counts.dropped.get("no_credit", 0) for counts in switches.values())
    if scenario.pfc.enabled:
        lost += sum(counters.get(LOSSLESS_DISCARDS, 0) for counters in endpoints.values())
    return lost


def _directions(fabric: Fabric) -> Iterator[tuple[str, Ends, Ends]]:
    for link in fabric.links:
        a, b = (link.a, link.a_port), (link.b, link.b_port)
        yield link.up, a, b
        yield link.down, b, a

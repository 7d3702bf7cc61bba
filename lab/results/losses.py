"""Losses that should not be: they make a run one not to be believed, or are somebody's choice.

Frames lost where nothing counts, between a process that sent and one that receives: a machine that
gives processes their turn too late lets their sockets overflow. What left one end of a cable and
did not arrive at the other says so. And lossless packets that found no headroom: where as much was
computed as links need closlab is wrong; where the scenario gave less, or made pauses fail, it has
what it asked for, and is told so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controller.tables import SwitchSite, headroom_of, needed_headroom
from lab.results.outcome import LOSSLESS_DISCARDS, SwitchCounts
from lab.scenario.experiment import Experiment
from params.pfc import Remedy
from params.quantity import packets
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
    lost = sum(
        count
        for switch, count in _found_no_headroom(switches)
        if not _choice(experiment, switches, switch)
    )
    if _unforeseen(experiment):
        return lost
    lost += sum(counts.dropped.get("no_credit", 0) for counts in switches.values())
    if not _deaf(experiment, switches):
        lost += _discarded(experiment, endpoints)
    return lost


def price(
    experiment: Experiment,
    switches: Mapping[Node, SwitchCounts],
    endpoints: Mapping[Node, Mapping[str, int]],
) -> str | None:
    """What lossless classes lost by the scenario's own choice, and by which, in a sentence."""
    chosen = {
        switch: (count, why)
        for switch, count in _found_no_headroom(switches)
        if (why := _choice(experiment, switches, switch))
    }
    losses = []
    if chosen:
        lost = sum(count for count, _ in chosen.values())
        _, why = max(chosen.values())
        losses.append(f"{packets(lost)} of lossless classes found no headroom: {why}.")
    deaf, lost = _deaf(experiment, switches), _discarded(experiment, endpoints)
    if deaf and lost:
        losses.append(f"{packets(lost)} of lossless classes found no room in adapters: {deaf}.")
    return " ".join(losses) or None


def _discarded(experiment: Experiment, endpoints: Mapping[Node, Mapping[str, int]]) -> int:
    """Packets that adapters had no room for, though they had their senders paused."""
    if not experiment.scenario.pfc.enabled:
        return 0
    return sum(counters.get(LOSSLESS_DISCARDS, 0) for counters in endpoints.values())


def _deaf(experiment: Experiment, switches: Mapping[Node, SwitchCounts]) -> str:
    """Why switches sent on though they were told to pause; nothing: they did not."""
    storms = sum(port.storms for counts in switches.values() for port in counts.ports.values())
    if storms and experiment.scenario.pfc.watchdog_action is Remedy.FORWARD:
        return "queues that were stuck went on, deaf to pauses (pfc.watchdog_action=forward)"
    return ""


def _found_no_headroom(switches: Mapping[Node, SwitchCounts]) -> Iterator[tuple[Node, int]]:
    for switch, counts in switches.items():
        if lost := counts.dropped.get("headroom_full", 0):
            yield switch, lost


def _unforeseen(experiment: Experiment) -> list[str]:
    """The faults that make pauses come late or not at all, or more arrive than was sent."""
    return sorted({f.action for f in experiment.scenario.faults if f.action in _UNFORESEEN})


def _choice(experiment: Experiment, switches: Mapping[Node, SwitchCounts], switch: Node) -> str:
    """Why a switch's headroom may be overrun, by what the scenario says; nothing: it may not."""
    scenario = experiment.scenario
    site = SwitchSite(experiment.fabric, switch, experiment.settings)
    needed = max(needed_headroom(site, port) for port in site.ports)
    together = sum(headroom_of(site, port) for port in site.ports for _ in site.lossless)
    chosen, pool = scenario.pfc.headroom, scenario.buffer.headroom_pool
    if chosen is not None and chosen < needed:
        return f"pfc.headroom is {chosen:,} bytes, and {switch}'s links need up to {needed:,}"
    if pool is not None and pool < together:
        return (
            f"{switch}'s ports share {pool:,} bytes of it (buffer.headroom_pool), and need "
            f"{together:,} when all are paused at once"
        )
    if faults := _unforeseen(experiment):
        return f"pauses fail where there are faults such as {' and '.join(faults)}"
    return _deaf(experiment, switches)


def _directions(fabric: Fabric) -> Iterator[tuple[str, Ends, Ends]]:
    for link in fabric.links:
        a, b = (link.a, link.a_port), (link.b, link.b_port)
        yield link.up, a, b
        yield link.down, b, a

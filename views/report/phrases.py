"""Parts of a verdict: who suffered and by how much, and what was in the way, as far as a run's
figures prove it. Each is empty where there is nothing of it.
"""

from __future__ import annotations

from statistics import median

from params.quantity import duration, listed, number, packets, percent, plural, size, summed
from traffic.endpoint import Recovery
from views.report.kept import KeptFlow, KeptRun
from views.report.plots import Preferred, preferred, uplinks
from views.report.suspects import (
    HARDLY,
    LATE,
    MANY,
    QUEUED,
    UNEVEN,
    congested,
    ways,
)

_NEARLY = 0.75  # as much as the message slowed most: then it is no exception
_FEW = 2  # messages that had nothing to do with the rest
_HARDLY_SENT = 0.6  # of the time that messages take alone, in which their bytes are sent
_EXPLAINS = 0.6  # of how much slower a message was: so far above its even share was its way


def discarded(run: KeptRun) -> str:
    """What ended a wait that would not have ended."""
    lost = run.result.drops.by_reason.get("watchdog", 0)
    return f"a watchdog discarded {packets(lost)}" if lost else ""


def sentence(said: str) -> str:
    """A clause as a sentence."""
    return f"{said[0].upper()}{said[1:]}."


def goes_back(run: KeptRun) -> bool:
    """Whether all that follows a lost packet is sent again."""
    return run.result.scenario.transport.recovery is Recovery.GO_BACK_N


def trimmed(run: KeptRun) -> str:
    """How much switches cut instead of losing it."""
    found = run.result.trim
    if not found or not found.cut_packets:
        return ""
    lost = run.result.drops.total
    return (
        f" Switches cut {packets(found.cut_packets)} to their headers, and lost {lost or 'none'}."
    )


def bystanders(run: KeptRun, host: str) -> str:
    """How the few messages fared that had nothing to do with whoever wrote to a host."""
    aside = [flow for flow in run.flows if flow.dst != host and flow.slowdown]
    if not 0 < len(aside) <= _FEW:
        return ""
    parts = [f"{f.src} to {f.dst} took {number(f.slowdown or 0)} times as long" for f in aside]
    return f"; {listed(parts)} as alone meanwhile"


def suffering(run: KeptRun) -> str:
    """Who suffers most, as a sentence."""
    worst = sufferer(run)
    if run.result.flows.failed or not worst or not worst.fct_ns or not worst.slowdown:
        return sentence(paid(run))
    whose = f"{worst.src}'s message to {worst.dst} suffers most: it took"
    took = f"{duration(worst.fct_ns)}, {number(worst.slowdown)} times as long as alone"
    return f"{whose} {took}{of_others(run)}."


def sufferer(run: KeptRun) -> KeptFlow | None:
    """The message slowed most."""
    return max(run.flows, key=lambda flow: flow.slowdown or 0.0, default=None)


def uneven_way(run: KeptRun) -> str:
    """The way up that the slowest message's leaf sent more by than its share."""
    slowest = sufferer(run)
    if slowest is None:
        return ""
    ends = (run.fabric.node(slowest.src), run.fabric.node(slowest.dst))
    leaf, to = (str(run.fabric.leaf_of(end)) for end in ends)
    own = {switch: ways for switch, ways in uplinks(run).items() if str(switch) == leaf != to}
    worst = preferred(own)
    if worst is None or worst.excess < max(UNEVEN, _EXPLAINS * (slowest.slowdown or 0)):
        return ""
    if f"{leaf}>{worst.way}" not in ways(run, slowest):
        return ""  # it went by another of its host's ports
    return said_of(worst)


def said_of(worst: Preferred) -> str:
    """Which way a switch preferred, and by how much."""
    return (
        f"{worst.switch} sent {percent(worst.share)} of its upward bytes via {worst.way}, where an "
        f"even share is {percent(1 / worst.ways)}"
    )


def full(run: KeptRun) -> str:
    """The ports that had more to send than they could, of those that the slowest message may have
    passed; of a run of which messages are not known, all."""
    alike, slowest = congested(run), sufferer(run)
    found = alike
    if slowest is not None:
        passed = ways(run, slowest)
        found = [each for each in found if each in passed]
    if not found:
        return ""
    longest = next(use.max_queue_bytes or 0 for use in run.result.links if use.name == found[0])
    ports = "The bottleneck was" if len(found) == 1 else "Bottlenecks were"
    among = f", one of {len(alike)} alike" if len(found) == 1 < len(alike) else ""
    return f"{ports} {listed(found)}{among}, where up to {size(longest)} waited"


def beside(run: KeptRun) -> str:
    """Others, who filled a host's link while the message slowed most went elsewhere."""
    slowest = sufferer(run)
    for direction in congested(run):
        host = direction.partition(">")[2]
        senders = sorted({f.src for f in run.flows if f.dst == host}, key=run.fabric.node)
        if slowest is not None and senders and host not in (slowest.dst, slowest.src):
            few = len(senders) <= MANY
            who = listed(senders) if few else plural(len(senders), "host")
            held = run.result.pfc.xoff_frames
            paused = (
                f", and {plural(held, 'pause frame')} stopped whoever shares a way" if held else ""
            )
            return f"Meanwhile {who} filled the link to {host}{paused}"
    return ""


def small(run: KeptRun) -> str:
    """Messages that take what they take wherever they go: delays, not rates."""
    took = [
        (flow.bytes, flow.fct_ns / flow.slowdown)
        for flow in run.flows
        if flow.slowdown and flow.fct_ns
    ]
    sent_ns = sum(count for count, _ in took) * 8 / run.result.scenario.link.rate_gbps
    slow = run.result.flows.slowdown
    is_late = slow is not None and slow.max > LATE
    if not took or is_late or sent_ns > _HARDLY_SENT * summed(alone for _, alone in took):
        return ""
    usual = median(count for count, _ in took)
    return (
        f"Its messages are small, half of them {size(usual)} or less, so that the delays of cables "
        "and switches count most"
    )


def longest(run: KeptRun) -> str:
    """Where queues were long in more places than one can name."""
    uses = [use for use in run.result.links if use.max_queue_bytes]
    most = max(uses, key=lambda use: use.max_queue_bytes or 0, default=None)
    if most is None or (most.max_queue_bytes or 0) < QUEUED * run.result.scenario.link.mtu:
        return ""
    worst = preferred(uplinks(run))
    if worst and worst.excess >= UNEVEN:
        way = f"{worst.switch}>{worst.way}"
        waited = next((use.max_queue_bytes or 0 for use in uses if use.name == way), 0)
        return f"{said_of(worst)}: up to {size(waited)} waited before {way}"
    longest = size(most.max_queue_bytes or 0)
    return f"Queues were long in many places, up to {longest} before {most.name}"


def busbw(run: KeptRun) -> str:
    """How fast a collective was."""
    what = run.result.collective
    if not what or not what.busbw_gbps:
        return ""
    share = what.busbw_gbps / run.result.scenario.link.rate_gbps
    return (
        f"the {what.op} came to {number(what.busbw_gbps)} Gb/s of bus bandwidth, "
        f"{percent(share)} of a port's rate"
    )


def slowed(run: KeptRun) -> bool:
    """Whether anybody suffered."""
    slow = run.result.flows.slowdown
    return slow is not None and slow.max >= UNEVEN


def utilisation(run: KeptRun) -> str:
    """How busy GPUs were."""
    share = run.result.gpu_utilisation
    return f", and GPUs computed {percent(share)} of the time" if share else ""


def paid(run: KeptRun) -> str:
    """What it cost: what did not arrive, else whoever it took longest."""
    flows = run.result.flows
    if flows.failed:
        return f"{flows.failed:,} of {plural(flows.count, 'message')} did not arrive"
    return slowest(run)


def of_others(run: KeptRun) -> str:
    """Where most fared nearly as badly."""
    slow = run.result.flows.slowdown
    if slow and len(run.flows) >= MANY and slow.p50 >= max(UNEVEN, _NEARLY * slow.max):
        return f"; half of all messages took {number(slow.p50)} times as long or longer"
    return ""


def slowest(run: KeptRun) -> str:
    """The message that was slowed most."""

    def slowness(flow: KeptFlow) -> tuple[float, int]:
        return flow.slowdown or 0.0, flow.fct_ns or 0

    slow = run.result.flows.slowdown
    if slow and slow.max < HARDLY:
        return "no message took longer than it would alone"
    worst = max(run.flows, key=slowness, default=None)
    if worst is not None and worst.slowdown and worst.fct_ns:
        took = f"{duration(worst.fct_ns)}, {number(worst.slowdown)} times as long as alone"
        return f"the message slowed most, {worst.src} to {worst.dst}, took {took}"
    if slow and run.result.flows.fct_ns:
        return (
            f"the longest message took {duration(run.result.flows.fct_ns.max)}, the one slowed "
            f"most {number(slow.max)} times as long as alone"
        )
    return f"all of it took {duration(run.end_ns)}"

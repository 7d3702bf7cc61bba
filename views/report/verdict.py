"""What a run comes to, in one sentence: who suffers, from whom, and by how much.

What the scenario asks is answered first. Where it asks nothing, or nothing of that is there, causes
are looked for from the one that explains most to the one that explains least, and the first that is
there is told. Each is proved by the run's own figures (`suspects.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx

from lab.scenario.faults import worded
from lab.scenario.questions import Question
from params.quantity import duration, listed, number, packets, percent, plural, size
from traffic.endpoint import Recovery
from traffic.jobs import MixSpec, TrainingJob
from views.report.kept import KeptFlow, KeptRun
from views.report.plots import preferred, uplinks
from views.report.reasons import REASONS
from views.report.suspects import (
    QUEUED,
    UNEVEN,
    aggressors,
    circle,
    congested,
    storming,
    straggler,
    victims,
)

HARDLY = 1.1  # times as long as alone, up to which nobody suffers
_WANTED = 0.5  # of the time, from which on a link that is in use is somebody's bottleneck
_WELL = 0.8  # of a port's rate: a collective that comes to less has a reason
_NEARLY = 0.75  # as much as the message slowed most: then it is no exception
_PLACED = {
    "random": "ranks placed at random", "packed": "ranks next to each other",
    "spread": "ranks far apart", "rail-aligned": "ranks aligned to rails",
    "topology-aware": "ranks placed by the topology",
}  # fmt: skip
_MANY = 3  # senders of one receiver; messages; times as many packets


def verdict(run: KeptRun) -> str:
    """The sentence."""
    question = run.result.scenario.question
    asked = _ANSWERS[question] if question else ()
    return next(filter(None, (look(run) for look in (*_FIRST, *asked, *_LOOKS))))


def _unbelieved(run: KeptRun) -> str:
    fidelity = run.result.fidelity
    return "" if fidelity.ok else f"Do not trust this run: {fidelity.note}."


def _not_sent(run: KeptRun) -> str:
    """At a prompt that was left before the hosts were let send."""
    is_idle = not run.result.flows.count
    return "The hosts sent nothing: here is what was done and seen meanwhile." if is_idle else ""


def _not_whole(run: KeptRun) -> str:
    """Where nothing better says why."""
    is_told = not run.result.ended or run.result.stalls
    return "" if is_told else f"The run is not whole: {run.result.ended}."


def _deadlock(run: KeptRun) -> str:
    ring = circle(run)
    if not ring:
        return ""
    lost = run.result.drops.by_reason.get("watchdog", 0)
    price = f", until a watchdog gave up {packets(lost)}" if lost else ""
    return f"A deadlock: {' waited for '.join(ring)}{price}; {_price(run)}."


def _storm(run: KeptRun) -> str:
    hosts, stood = storming(run), run.result.pfc.by_link
    if not hosts or not stood:
        return ""
    longest = max(stood, key=lambda name: stood[name].longest_ns)
    share = percent(stood[longest].longest_ns / run.end_ns)
    return (
        f"A pause storm from {' and '.join(hosts)} stopped {plural(len(stood), 'direction')}, "
        f"{longest} longest, for {share} of the run; {_price(run)}."
    )


def _missing(run: KeptRun) -> str:
    flows, stalls = run.result.flows, run.result.stalls or ()
    if not flows.failed:
        return ""
    why = f", {stalls[0].first} for one: {stalls[0].why}" if stalls else ""
    return f"{flows.failed:,} of {plural(flows.count, 'message')} did not arrive{why}."


def _victim(run: KeptRun) -> str:
    suffering, guilty = victims(run), aggressors(run)
    if not suffering:
        return ""
    worst, more = suffering[0], len(suffering) - 1
    others = f", as {plural(more, 'other')} did," if more else ""
    whom = (
        f"pauses meant for the {len(guilty)} messages to {guilty[0].dst}"
        if guilty
        else "pauses meant for others"
    )
    return (
        f"{worst.src}'s message to {worst.dst} is the victim: on ways with room it took"
        f"{others} {number(worst.slowdown or 0)} times as long as alone, held up by {whom}."
    )


def _straggler(run: KeptRun) -> str:
    late = straggler(run)
    if not late or run.result.inference:  # whose hosts do work of different kinds
        return ""
    return (
        f"All wait for {late[0]}: it computed {number(late[1])} times as long as a typical "
        f"host{_utilisation(run)}."
    )


def _cluster(run: KeptRun) -> str:
    found = run.result.cluster
    if not found or not found.slowdown or not (done := found.slowest):
        return ""
    worst, waited = done[0], found.longest_queued
    queue = (
        f"; {waited.name} waited for hosts longest, {duration(waited.queued_ns)}"
        if waited.queued_ns
        else ""
    )
    return (
        f"Half of {plural(len(done), 'job')} took no more than {number(found.slowdown.p50)} times "
        f"as long as alone on their hosts; {worst.name}, over {plural(worst.racks, 'rack')}, took "
        f"{number(worst.slowdown or 0)} times as long{queue}."
    )


def _alike(run: KeptRun) -> str:
    """Of jobs that are the same but for where their ranks are, the slowest beside the quickest."""
    traffic, jobs = run.result.scenario.traffic, run.result.jobs or {}
    if not isinstance(traffic, MixSpec):
        return ""
    placed: dict[str, dict[str, str]] = {}  # by what they do: by name, how they are placed
    for part in traffic.parts:
        if isinstance(part, TrainingJob) and part.name in jobs:
            what = part.model_copy(update={"name": "", "placement": ""}).model_dump_json()
            placed.setdefault(what, {})[part.name] = part.placement
    for names in placed.values():
        done = sorted((jct, name) for name in names if (jct := jobs[name].jct_ns))
        if len(done) < 2 or done[-1][0] < HARDLY * done[0][0]:
            continue
        (least, quick), (most, slow) = done[0], done[-1]
        busy = [percent(jobs[name].gpu_utilisation or 0) for name in (slow, quick)]
        why = _full(run) or _preferred(run)
        return (
            f"Job {slow} ({_PLACED[names[slow]]}) took {duration(most)}, {number(most / least)} "
            f"times as long as {quick} ({_PLACED[names[quick]]}): its GPUs computed {busy[0]} of "
            f"the time instead of {busy[1]}{f'. {why}' if why else ''}."
        )
    return ""


def _losses(run: KeptRun) -> str:
    drops, roce = run.result.drops, run.result.roce
    lost = {why: n for why, n in drops.by_reason.items() if n}
    if not lost:
        return ""
    main = max(lost, key=lambda why: lost[why])
    again = f", {packets(roce.retransmitted_packets)} went again" if roce.data_packets else ""
    if roce.retransmitted_packets > _MANY * drops.total and _goes_back(run):
        again += ", all that came after a lost one with it"
    waited = f" and {plural(roce.timeouts, 'time-out')} passed" if roce.timeouts else ""
    mostly = "mostly " * (len(lost) > 1)
    was = "was" if drops.total == 1 else "were"
    return (
        f"{packets(drops.total)} {was} lost ({mostly}{REASONS.get(main, main)}{_cuts(run, main)})"
        f"{again}{waited}: {_price(run)}."
    )


def _goes_back(run: KeptRun) -> bool:
    return run.result.scenario.transport.recovery is Recovery.GO_BACK_N


def _cuts(run: KeptRun, reason: str) -> str:
    """What went down, of losses that come of that."""
    if reason not in ("link_cut", "port_down", "no_next_hop"):
        return ""
    downs = [worded(each) for each in run.result.scenario.faults if each.action == "down"]
    return f": {listed(downs)}" if 0 < len(downs) <= _MANY else ""


def _slow_link(run: KeptRun) -> str:
    """A link that has not got its whole rate, and was waited for."""
    scenario, uses = run.result.scenario, {use.name: use for use in run.result.links}
    # What a link is made of counts as its rate, what befalls it does not.
    shares = {name: (share, 1.0) for name, share in scenario.link.slow.items()}
    shares |= {
        f.link: (f.share, f.share)
        for f in scenario.faults
        if f.action == "slow" and f.link and f.share
    }
    found = max(
        (
            (min(1.0, uses[way].utilisation / of), uses[way].max_queue_bytes or 0, way, share)
            for link in run.fabric.links
            if link.name in shares
            for share, of in (shares[link.name],)
            for way in (link.up, link.down)
        ),
        default=None,
    )
    if found is None or not _slowed(run):
        return ""
    busy, queue, way, share = found
    if busy < _WANTED and queue < QUEUED * scenario.link.mtu:
        return ""
    waited = f", where up to {size(queue)} waited" if queue >= QUEUED * scenario.link.mtu else ""
    return (
        f"{way} has {percent(share)} of its rate and was in use {percent(busy)} of the time"
        f"{waited}: {_busbw(run) or _price(run)}."
    )


def _many_to_one(run: KeptRun) -> str:
    """Several senders of one receiver, whose link they share."""
    senders: dict[str, set[str]] = {}
    for flow in run.flows:
        senders.setdefault(flow.dst, set()).add(flow.src)
    most = max(senders, key=lambda host: len(senders[host]), default=None)
    others = sum(len(each) for host, each in senders.items() if host != most)
    if most is None or len(senders[most]) < _MANY or others > len(senders[most]):
        return ""
    link = next(link for link in run.fabric.links if str(link.a) == most)
    busy = next(use.utilisation for use in run.result.links if use.name == link.down)
    if busy < _WANTED or not _slowed(run):
        return ""
    return (
        f"{len(senders[most])} hosts wrote to {most} at once, and its link was in use "
        f"{percent(busy)} of the time: {_price(run)}."
    )


def _uneven(run: KeptRun) -> str:
    said = _preferred(run) if _slowed(run) else ""
    return f"{said}: {_price(run)}." if said else ""


def _sufferer(run: KeptRun) -> KeptFlow | None:
    """The message slowed most."""
    return max(run.flows, key=lambda flow: flow.slowdown or 0.0, default=None)


def _preferred(run: KeptRun) -> str:
    """The way up that the slowest message's leaf sent more by than its share."""
    slowest = _sufferer(run)
    if slowest is None:
        return ""
    ends = (run.fabric.node(slowest.src), run.fabric.node(slowest.dst))
    leaf, to = (str(run.fabric.leaf_of(end)) for end in ends)
    own = {switch: ways for switch, ways in uplinks(run).items() if str(switch) == leaf != to}
    worst = preferred(own)
    if worst is None or worst.excess < UNEVEN:
        return ""
    return (
        f"{leaf} sent {percent(worst.share)} of its upward bytes by {worst.way}, where an even "
        f"share is {percent(1 / worst.ways)}"
    )


def _bottleneck(run: KeptRun) -> str:
    said = _full(run) if _slowed(run) else ""
    return f"{said}: {_price(run)}." if said else ""


def _full(run: KeptRun) -> str:
    """The ports that had more to send than they could, of those that the slowest message may have
    passed; of a run of which messages are not known, all."""
    found, slowest = congested(run), _sufferer(run)
    if slowest is not None:
        ways = _ways(run, slowest)
        found = [each for each in found if each in ways]
    if not found:
        return ""
    longest = next(use.max_queue_bytes or 0 for use in run.result.links if use.name == found[0])
    ports = "The bottleneck was" if len(found) == 1 else "Bottlenecks were"
    return f"{ports} {listed(found)}, where up to {size(longest)} waited"


def _ways(run: KeptRun, flow: KeptFlow) -> set[str]:
    """The directions of links on a message's shortest ways."""
    fabric = run.fabric
    src, dst = fabric.node(flow.src), fabric.node(flow.dst)
    there = nx.single_source_shortest_path_length(fabric.graph, src)
    back = nx.single_source_shortest_path_length(fabric.graph, dst)
    return {
        link.direction(begin)
        for link in fabric.links
        for begin, end in ((link.a, link.b), (link.b, link.a))
        if there[begin] + 1 + back[end] == there[dst]
    }


def _beside(run: KeptRun) -> str:
    """Others, who filled a host's link while the message slowed most went elsewhere."""
    slowest = _sufferer(run)
    for direction in congested(run):
        host = direction.partition(">")[2]
        senders = {flow.src for flow in run.flows if flow.dst == host}
        if slowest is not None and senders and host not in (slowest.dst, slowest.src):
            return f"Meanwhile {plural(len(senders), 'host')} filled the link to {host}"
    return ""


def _collective(run: KeptRun) -> str:
    said, what = _busbw(run), run.result.collective
    if not said or not what or not what.busbw_gbps:
        return ""
    is_slow = what.busbw_gbps < _WELL * run.result.scenario.link.rate_gbps
    if not is_slow or not _slowed(run):
        return f"All went well: {said}{_utilisation(run)}; {_price(run)}."
    why = _full(run) or _beside(run) or _preferred(run)
    return f"T{said[1:]}{_utilisation(run)}{f'. {why}' if why else ''}; {_price(run)}."


def _busbw(run: KeptRun) -> str:
    what = run.result.collective
    if not what or not what.busbw_gbps:
        return ""
    share = what.busbw_gbps / run.result.scenario.link.rate_gbps
    return (
        f"the {what.op} came to {number(what.busbw_gbps)} Gb/s of bus bandwidth, "
        f"{percent(share)} of a port's rate"
    )


def _computing(run: KeptRun) -> str:
    return f"Nothing was lost{_utilisation(run)}." if run.result.gpu_utilisation else ""


def _well(run: KeptRun) -> str:
    begun = "Nothing was lost" if _slowed(run) else "All went well"
    count = plural(run.result.flows.count, "message")
    return f"{begun}: {count} in {duration(run.end_ns)}, {_slowest(run)}."


def _nothing_lost(run: KeptRun) -> str:
    if run.result.drops.total:
        return ""
    held = run.result.pfc.xoff_frames
    how = f"; {plural(held, 'pause frame')} held senders back" if held else ""
    count = plural(run.result.flows.count, "message")
    return f"Nothing was lost: {count} in {duration(run.end_ns)}{how}; {_price(run)}."


def _even(run: KeptRun) -> str:
    """How far ways were from being used alike, where they nearly were."""
    worst = preferred(uplinks(run))
    if worst is None or worst.excess >= UNEVEN:
        return ""
    return (
        f"Ways up were used alike: of what {worst.switch} sent up {worst.way} took most, "
        f"{percent(worst.share)} (an even share is {percent(1 / worst.ways)}); {_price(run)}."
    )


Looks = tuple[Callable[[KeptRun], str], ...]

_FIRST: Looks = _unbelieved, _not_sent, _not_whole  # whatever is asked
_ANSWERS: dict[Question, Looks] = {
    Question.SUFFERS: (_deadlock, _storm, _missing, _victim, _many_to_one, _uneven, _bottleneck),
    Question.WAITS: (_deadlock, _storm, _missing, _straggler, _cluster),
    Question.COSTS: (_missing, _alike, _losses, _slow_link, _storm, _straggler),
    Question.SPEED: (_missing, _collective),
    Question.LOSSLESS: (_missing, _losses, _nothing_lost),
    Question.BALANCE: (_missing, _uneven, _even),
}
_LOOKS: Looks = (
    *(_deadlock, _storm, _missing, _victim, _straggler),
    *(_cluster, _alike, _losses, _many_to_one, _slow_link, _collective, _uneven, _bottleneck),
    *(_computing, _well),
)


def _slowed(run: KeptRun) -> bool:
    """Whether anybody suffered."""
    slow = run.result.flows.slowdown
    return slow is not None and slow.max >= UNEVEN


def _utilisation(run: KeptRun) -> str:
    share = run.result.gpu_utilisation
    return f", and GPUs computed {percent(share)} of the time" if share else ""


def _price(run: KeptRun) -> str:
    """What it cost: what did not arrive, else whoever it took longest."""
    flows = run.result.flows
    if flows.failed:
        return f"{flows.failed:,} of {plural(flows.count, 'message')} did not arrive"
    return _slowest(run)


def _slowest(run: KeptRun) -> str:
    def slowness(flow: KeptFlow) -> tuple[float, int]:
        return flow.slowdown or 0.0, flow.fct_ns or 0

    slow = run.result.flows.slowdown
    if slow and slow.max < HARDLY:
        return "none took longer than it would alone"
    worst = max(run.flows, key=slowness, default=None)
    if worst is not None and worst.slowdown and worst.fct_ns:
        took = f"{duration(worst.fct_ns)}, {number(worst.slowdown)} times as long as alone"
        who = f"from {worst.src} to {worst.dst}"
        if slow and len(run.flows) >= _MANY and slow.p50 >= max(UNEVEN, _NEARLY * slow.max):
            half = f"half of all messages took {number(slow.p50)} times as long as alone or more"
            return f"{half}, the one {who} {took}"
        return f"the message slowed most, {who}, took {took}"
    if slow and run.result.flows.fct_ns:
        return (
            f"the longest message took {duration(run.result.flows.fct_ns.max)}, the one slowed "
            f"most {number(slow.max)} times as long as alone"
        )
    return f"all of it took {duration(run.end_ns)}"

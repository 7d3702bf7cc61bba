"""What a run comes to, in one sentence: who suffers, from whom, and by how much.

What the scenario asks is answered first. Where it asks nothing, or nothing of that is there, causes
are looked for from the one that explains most to the one that explains least, and the first that is
there is told. Each is proved by the run's own figures (`suspects.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from lab.results.cluster import JobOfCluster
from lab.results.result import Cost
from lab.scenario.faults import described
from lab.scenario.questions import Question
from params.quantity import duration, listed, number, packets, percent, plural, size, summed
from traffic.endpoint import Recovery
from traffic.jobs import MixSpec, TrainingJob
from views.report.kept import KeptFlow, KeptRun
from views.report.plots import Preferred, preferred, uplinks
from views.report.reasons import REASONS
from views.report.suspects import (
    HARDLY,
    QUEUED,
    UNEVEN,
    aggressors,
    circle,
    congested,
    storming,
    stragglers,
    victims,
    ways,
)

_WANTED = 0.5  # of the time, from which on a link that is in use is somebody's bottleneck
_WELL = 0.8  # of a port's rate: a collective that comes to less has a reason
_NEARLY = 0.75  # as much as the message slowed most: then it is no exception
_PLACED = {
    "random": "ranks placed at random", "packed": "ranks next to each other",
    "spread": "ranks far apart", "rail-aligned": "ranks aligned to rails",
    "topology-aware": "ranks placed by the topology",
}  # fmt: skip
_MANY = 3  # senders of one receiver; messages; times as many packets
_FEW = 2  # messages that had nothing to do with the rest
_LATE = 2.0  # times as long as alone, which no delay of a cable explains
_HARDLY_SENT = 0.6  # of the time that messages take alone, in which their bytes are sent
_MOSTLY = 0.6  # of the packets lost
_EXPLAINS = 0.6  # of how much slower a message was: so far above its even share was its way
_NO_PRICE = 0.01  # of the time without: less is none
_AS_LONG = "as long as"
_OF_MEMORY = "buffer_full", "headroom_full"
_TAKES_AWAY = "down", "restart", "restart-bgp", "halt", "drain"  # faults that may cost packets


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
    waits = f"{' → '.join(ring)}, each waiting for the next"
    return f"A deadlock: {waits}{_discarded(run)}; {_price(run)}."


def _storm(run: KeptRun) -> str:
    hosts, stood = storming(run), run.result.pfc.by_link
    if not hosts or not stood:
        return ""
    longest = max(stood, key=lambda name: stood[name].longest_ns)
    share = percent(stood[longest].longest_ns / run.end_ns)
    return (
        f"A pause storm from {' and '.join(hosts)} stopped {plural(len(stood), 'link direction')}, "
        f"{longest} longest, for {share} of the run{_discarded(run)}; {_price(run)}."
    )


def _discarded(run: KeptRun) -> str:
    lost = run.result.drops.by_reason.get("watchdog", 0)
    return f", until a watchdog discarded {packets(lost)}" if lost else ""


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
        f"{worst.src}'s message to {worst.dst} is the victim: its own path had room, and it took"
        f"{others} {number(worst.slowdown or 0)} times as long as alone, held up by {whom}."
    )


def _straggler(run: KeptRun) -> str:
    late = stragglers(run)[:_MANY]
    if not late:
        return ""
    hosts, times = listed([host for host, _ in late]), listed([number(each) for _, each in late])
    said = (
        f"All wait for {hosts}: {'it' if len(late) == 1 else 'they'} computed {times} times as "
        "long as a typical host"
    )
    cost = run.result.cost
    if not cost or not (longer := _longer(cost)):
        return f"{said}{_utilisation(run)}."
    took, without = duration(cost.took_ns or 0), duration(cost.without_ns or 0)
    whole = f"{_all_of(run)} took {took}, {longer}"
    return f"{said}. {_sentence(f'{whole} if all were as quick as the typical host ({without})')}"


def _cluster(run: KeptRun) -> str:
    found = run.result.cluster
    if not found or not found.slowdown or not (done := found.slowest):
        return ""
    worst, waited = done[0], found.longest_queued
    queue = ""
    if waited.queued_ns:
        before = _waited_for(waited, found.jobs)
        until = f", until {before} freed its own" if before else ""
        queue = f"{waited.name} waited longest for hosts, {duration(waited.queued_ns)}{until}. "
    return (
        f"{queue}Half of {plural(len(done), 'job')} then took no more than "
        f"{number(found.slowdown.p50)} times as long as alone; {worst.name}, spread over "
        f"{plural(worst.racks, 'rack')}, took {number(worst.slowdown or 0)} times as long."
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
            f"Job '{slow}' ({_PLACED[names[slow]]}) took {duration(most)}, {number(most / least)} "
            f"times as long as '{quick}' ({_PLACED[names[quick]]}): its GPUs computed {busy[0]} of "
            f"the time instead of {busy[1]}{f'. {why}' if why else ''}."
        )
    return ""


def _waited_for(job: JobOfCluster, jobs: Sequence[JobOfCluster]) -> str:
    """Who had hosts that a job got, last of all before it began."""
    own = {host for hosts, _, _ in job.pieces[:1] for host in hosts}
    gave = [
        (end, other.name)
        for other in jobs
        for hosts, _, end in other.pieces
        if other is not job and own & {*hosts} and end <= (job.started_ns or 0)
    ]
    return max(gave)[1] if gave else ""


def _lost(run: KeptRun, *, is_named: bool = False) -> str:
    """What was lost and why; is_named: by a fault that is named before."""
    drops, roce = run.result.drops, run.result.roce
    if not drops.total:
        return ""
    again = f", {roce.retransmitted_packets:,} sent again" if roce.data_packets else ""
    if roce.retransmitted_packets > _MANY * drops.total and _goes_back(run):
        again = f", and go-back-N sent {roce.retransmitted_packets:,} again"
    waited = f", {plural(roce.timeouts, 'time-out')} expired" if roce.timeouts else ""
    was = "was" if drops.total == 1 else "were"
    why = _reasons(run, is_named=is_named)
    return f"{packets(drops.total)} {was} lost ({why}){again}{waited}."


def _losses(run: KeptRun) -> str:
    said = _lost(run)
    return said and f"{said} {_sentence(_price(run))}"


def _cost(run: KeptRun) -> str:
    """How long it took with something, and how long without; and what that did on the way."""
    found = run.result.cost
    if not found or not (longer := _longer(found)):
        return ""
    looks = (partial(_lost, is_named=True), _busy, _nothing_lost_by, _beside_or_full)
    why = next(filter(None, (look(run) for look in looks)), "")
    is_free = longer == _AS_LONG
    if is_free and why == _beside_or_full(run):
        why = ""  # who waits there waits without it, too
    took = f"{found.whom or _all_of(run)} took {duration(found.took_ns or 0)}, {longer}"
    than = f"({duration(found.without_ns or 0)})."
    if found.whom:
        said = f"{'beside' if is_free else 'Beside'} {found.of} {took} alone {than}"
    else:
        said = f"{'with' if is_free else 'With'} {found.of} {took} without {than}"
    if found.whom and run.result.drops.total:
        why += _beside_paid(run)
    return f"{'Nothing: ' if is_free else ''}{said}{why and f' {why}'}"


def _beside_paid(run: KeptRun) -> str:
    """What it cost those that it is beside of, where that is more."""
    parts, worst = run.result.parts or {}, _sufferer(run)
    own = next((part.slowdown for part in parts.values()), None)
    if worst is None or own is None or own.max >= (worst.slowdown or 0):
        return ""
    return f" Of what goes on beside it {_price(run)}."


def _longer(cost: Cost) -> str:
    """How much longer something took than without what it cost; nothing where one did not end."""
    if not cost.took_ns or not cost.without_ns:
        return ""
    times = cost.took_ns / cost.without_ns
    if abs(times - 1) < _NO_PRICE:
        return _AS_LONG
    if times < 1:
        return "less than"
    return (
        f"{percent(times - 1)} longer than"
        if times < _LATE
        else f"{number(times)} times as long as"
    )


def _all_of(run: KeptRun) -> str:
    """What a run as a whole is of."""
    if run.result.jct_ns:
        return "the job"
    what = run.result.collective
    return f"the {what.op}" if what else "all messages together"


def _busy(run: KeptRun) -> str:
    found = _slow_direction(run)
    return f"{found[0]} was {found[2]}." if found else ""


def _beside_or_full(run: KeptRun) -> str:
    """Where it was held up, by what goes on beside it."""
    why = _full(run) or _beside(run) or _preferred(run) or _longest(run)
    return why and f"{why}."


def _reasons(run: KeptRun, *, is_named: bool) -> str:
    """The reason of most losses, or the two that most are for."""
    lost = {why: n for why, n in run.result.drops.by_reason.items() if n}
    main, *others = sorted(lost, key=lambda why: -lost[why])
    if not others or lost[main] > _MOSTLY * sum(lost.values()):
        return f"{'mostly ' * bool(others)}{_reason(run, main, is_named=is_named)}"
    said = [f"{lost[why]:,} {_reason(run, why, is_named=is_named)}" for why in (main, others[0])]
    rest = sum(lost[why] for why in others[1:])
    return "; ".join([*said, f"{rest:,} for other reasons"] if rest else said)


def _reason(run: KeptRun, why: str, *, is_named: bool) -> str:
    """A reason in words, with what the scenario has to do with it."""
    faults = run.result.scenario.faults
    if why == "injected_loss" and (bad := [f for f in faults if f.action == "lose" and f.link]):
        lose = "lose" if len(bad) > 1 else "loses"
        names = listed(sorted({str(each.link) for each in bad}))
        least = min(each.rate or 0 for each in bad)
        return f"on {names}, which {lose} {percent(least) if least < 1 else 'everything'}"
    downs = [described(each) for each in faults if each.action == "down"]
    if why in _OF_MEMORY and run.result.drops.by_switch:
        at = run.result.drops.by_switch
        switch = max(at, key=lambda name: at[name])
        return f"{REASONS[why]}, {'mostly ' * (sum(n > 0 for n in at.values()) > 1)}of {switch}"
    is_of_these = why in ("link_cut", "port_down", "no_next_hop") and 0 < len(downs) <= _MANY
    is_of_these = is_of_these and not is_named
    return f"{REASONS.get(why, why)}{f': {listed(downs)}' if is_of_these else ''}"


def _nothing_lost_by(run: KeptRun) -> str:
    """Faults that may cost packets, and did not."""
    named = [described(each) for each in run.result.scenario.faults if each.action in _TAKES_AWAY]
    if not named or run.result.drops.total or len(named) > _MANY:
        return ""
    why = _preferred(run) or _full(run)
    return f"No packet was lost by {listed(named)}.{f' {why}.' if why and _slowed(run) else ''}"


def _harmless(run: KeptRun) -> str:
    said = _nothing_lost_by(run)
    return said and f"{said} {_sentence(_price(run))}"


def _sentence(said: str) -> str:
    return f"{said[0].upper()}{said[1:]}."


def _goes_back(run: KeptRun) -> bool:
    return run.result.scenario.transport.recovery is Recovery.GO_BACK_N


def _slow_link(run: KeptRun) -> str:
    found = _slow_direction(run)
    if found is None:
        return ""
    way, share, busy = found
    return (
        f"{way} has {percent(share)} of its rate and was {busy}. "
        f"{_sentence(_busbw(run) or _price(run))}"
    )


def _slow_direction(run: KeptRun) -> tuple[str, float, str] | None:
    """The way on which a link that has not got its whole rate was waited for, the share of its
    rate, and how busy it was in words."""
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
        return None
    busy, queue, way, share = found
    if busy < _WANTED and queue < QUEUED * scenario.link.mtu:
        return None
    waited = f"; up to {size(queue)} waited for it" if queue >= QUEUED * scenario.link.mtu else ""
    return way, share, f"in use {percent(busy)} of the time{waited}"


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
        f"{_suffering(run)} {len(senders[most])} hosts wrote to {most} at once, and its link was "
        f"in use {percent(busy)} of the time{_bystanders(run, most)}.{_trimmed(run)}"
    )


def _trimmed(run: KeptRun) -> str:
    found = run.result.trim
    if not found or not found.cut_packets:
        return ""
    lost = run.result.drops.total
    return (
        f" Switches cut {packets(found.cut_packets)} to their headers, and lost {lost or 'none'}."
    )


def _bystanders(run: KeptRun, host: str) -> str:
    """How the few messages fared that had nothing to do with whoever wrote to a host."""
    aside = [flow for flow in run.flows if flow.dst != host and flow.slowdown]
    if not 0 < len(aside) <= _FEW:
        return ""
    told = [f"{f.src} to {f.dst} took {number(f.slowdown or 0)} times as long" for f in aside]
    return f"; {listed(told)} as alone meanwhile"


def _uneven(run: KeptRun) -> str:
    said = _preferred(run) if _slowed(run) else ""
    return said and f"{_suffering(run)} {said}."


def _suffering(run: KeptRun) -> str:
    """Who suffers most, as a sentence."""
    worst = _sufferer(run)
    if run.result.flows.failed or not worst or not worst.fct_ns or not worst.slowdown:
        return _sentence(_price(run))
    whose = f"{worst.src}'s message to {worst.dst} suffers most: it took"
    took = f"{duration(worst.fct_ns)}, {number(worst.slowdown)} times as long as alone"
    return f"{whose} {took}{_of_others(run)}."


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
    if worst is None or worst.excess < max(UNEVEN, _EXPLAINS * (slowest.slowdown or 0)):
        return ""
    if f"{leaf}>{worst.way}" not in ways(run, slowest):
        return ""  # it went by another of its host's ports
    return _said_of(worst)


def _said_of(worst: Preferred) -> str:
    return (
        f"{worst.switch} sent {percent(worst.share)} of its upward bytes via {worst.way}, where an "
        f"even share is {percent(1 / worst.ways)}"
    )


def _bottleneck(run: KeptRun) -> str:
    said = _full(run) if _slowed(run) else ""
    return said and f"{_suffering(run)} {said}."


def _full(run: KeptRun) -> str:
    """The ports that had more to send than they could, of those that the slowest message may have
    passed; of a run of which messages are not known, all."""
    alike, slowest = congested(run), _sufferer(run)
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


def _beside(run: KeptRun) -> str:
    """Others, who filled a host's link while the message slowed most went elsewhere."""
    slowest = _sufferer(run)
    for direction in congested(run):
        host = direction.partition(">")[2]
        senders = sorted({f.src for f in run.flows if f.dst == host}, key=run.fabric.node)
        if slowest is not None and senders and host not in (slowest.dst, slowest.src):
            few = len(senders) <= _MANY
            who = listed(senders) if few else plural(len(senders), "host")
            held = run.result.pfc.xoff_frames
            paused = (
                f", and {plural(held, 'pause frame')} stopped whoever shares a way" if held else ""
            )
            return f"Meanwhile {who} filled the link to {host}{paused}"
    return ""


def _collective(run: KeptRun) -> str:
    said, what = _busbw(run), run.result.collective
    if not said or not what or not what.busbw_gbps:
        return ""
    is_slow = what.busbw_gbps < _WELL * run.result.scenario.link.rate_gbps
    if not is_slow or not _slowed(run):
        return f"All went well: {said}{_utilisation(run)}; {_price(run)}."
    said = f"T{said[1:]}{_utilisation(run)}"
    why = _full(run) or _beside(run) or _preferred(run) or _small(run)
    if why or not (elsewhere := _longest(run)):
        return f"{said}{f'. {why}' if why else ''}; {_price(run)}."
    return f"{said}. {elsewhere}."  # which the message slowed most need not have passed


def _served(run: KeptRun) -> str:
    """How long requests waited for their answers."""
    found = run.result.inference
    if not found or not found.ttft_ns or not found.answered_ns:
        return ""
    why = _full(run) if _slowed(run) else ""
    return (
        f"Half of {plural(found.completed, 'request')} had the first token within "
        f"{duration(found.ttft_ns.p50)}, the slowest after {duration(found.ttft_ns.max)}; half "
        f"of all answers were there within {duration(found.answered_ns.p50)}."
        f"{f' {why}.' if why else ''}"
    )


def _small(run: KeptRun) -> str:
    """Messages that take what they take wherever they go: delays, not rates."""
    took = [
        (flow.bytes, flow.fct_ns / flow.slowdown)
        for flow in run.flows
        if flow.slowdown and flow.fct_ns
    ]
    sent_ns = sum(count for count, _ in took) * 8 / run.result.scenario.link.rate_gbps
    slow = run.result.flows.slowdown
    is_late = slow is not None and slow.max > _LATE
    if not took or is_late or sent_ns > _HARDLY_SENT * summed(alone for _, alone in took):
        return ""
    usual = median(count for count, _ in took)
    return (
        f"Its messages are small, half of them {size(usual)} or less, so that the delays of cables "
        "and switches count most"
    )


def _longest(run: KeptRun) -> str:
    """Where queues were long in more places than one can name."""
    uses = [use for use in run.result.links if use.max_queue_bytes]
    most = max(uses, key=lambda use: use.max_queue_bytes or 0, default=None)
    if most is None or (most.max_queue_bytes or 0) < QUEUED * run.result.scenario.link.mtu:
        return ""
    worst = preferred(uplinks(run))
    if worst and worst.excess >= UNEVEN:
        way = f"{worst.switch}>{worst.way}"
        waited = next((use.max_queue_bytes or 0 for use in uses if use.name == way), 0)
        return f"{_said_of(worst)}: up to {size(waited)} waited before {way}"
    longest = size(most.max_queue_bytes or 0)
    return f"Queues were long in many places, up to {longest} before {most.name}"


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
    named = [described(each) for each in run.result.scenario.faults]
    by = f" by {listed(named)}" if named and len(named) <= _MANY else ""
    count = plural(run.result.flows.count, "message")
    return f"Nothing was lost{by}: {count} in {duration(run.end_ns)}{how}."


def _balance(run: KeptRun) -> str:
    """Whether ways were used alike, and what it cost if not."""
    worst = preferred(uplinks(run))
    if worst is None:
        return ""
    if worst.excess < UNEVEN:
        even = percent(1 / worst.ways)
        if percent(worst.share) == even:
            return f"Yes: every switch sent {even} of what went up by each way; {_price(run)}."
        most = f"Yes: no switch sent more than {percent(worst.share)} of what went up by one way"
        return f"{most}, where an even share is {even}; {_price(run)}."
    if not _slowed(run):
        return f"Not quite, and nobody suffered: {_said_of(worst)}; {_price(run)}."
    return f"No: {_preferred(run) or _said_of(worst)}; {_price(run)}."


Looks = tuple[Callable[[KeptRun], str], ...]

_FIRST: Looks = _unbelieved, _not_sent, _not_whole  # whatever is asked
_ANSWERS: dict[Question, Looks] = {
    Question.SUFFERS: (
        *(_deadlock, _storm, _missing, _victim, _cost, _many_to_one, _uneven, _bottleneck),
    ),
    Question.WAITS: (_deadlock, _storm, _missing, _straggler, _cluster),
    Question.COSTS: (_missing, _cost, _alike, _losses, _slow_link, _storm, _straggler, _harmless),
    Question.SPEED: (_missing, _served, _collective),
    Question.LOSSLESS: (_missing, _losses, _nothing_lost),
    Question.BALANCE: (_missing, _balance),
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


def _of_others(run: KeptRun) -> str:
    """Where most fared nearly as badly."""
    slow = run.result.flows.slowdown
    if slow and len(run.flows) >= _MANY and slow.p50 >= max(UNEVEN, _NEARLY * slow.max):
        return f"; half of all messages took {number(slow.p50)} times as long or longer"
    return ""


def _slowest(run: KeptRun) -> str:
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

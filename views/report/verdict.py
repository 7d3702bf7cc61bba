"""What a run comes to, in one sentence: who suffers, from whom, and by how much.

What the scenario asks is answered first. Where it asks nothing, or nothing of that is there, causes
are looked for from the one that explains most to the one that explains least, and the first that is
there is told. Each is proved by the run's own figures (`suspects.py`).
"""

from __future__ import annotations

from collections.abc import Callable

from lab.scenario.faults import described
from lab.scenario.questions import Question
from params.quantity import duration, listed, number, percent, plural
from views.report import costs, phrases
from views.report.kept import KeptRun
from views.report.plots import preferred, uplinks
from views.report.suspects import (
    MANY,
    UNEVEN,
    aggressors,
    circle,
    storming,
    victims,
)

_WANTED = 0.5  # of the time, from which on a link that is in use is somebody's bottleneck
_WELL = 0.8  # of a port's rate: a collective that comes to less has a reason


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
    is_idle = not run.result.flows.count and run.result.inc is None
    return "The hosts sent nothing: here is what was done and seen meanwhile." if is_idle else ""


def _not_whole(run: KeptRun) -> str:
    """Where nothing better says why."""
    is_explained = not run.result.ended or run.result.stalls
    return "" if is_explained else f"The run is not whole: {run.result.ended}."


def _deadlock(run: KeptRun) -> str:
    ring = circle(run)
    if not ring:
        return ""
    waits = f"{' → '.join(ring)}, each waiting for the next"
    until = f", until {ended}" if (ended := phrases.discarded(run)) else ""
    return f"A deadlock: {waits}{until}; {phrases.paid(run)}."


def _storm(run: KeptRun) -> str:
    hosts, stood = storming(run), run.result.pfc.by_link
    if not hosts or not stood:
        return ""
    longest = max(stood, key=lambda name: stood[name].longest_ns)
    share = percent(stood[longest].longest_ns / run.end_ns)
    ways = f"{len(stood)} of {plural(2 * len(run.fabric.links), 'link direction')}"
    aside = [f for f in run.flows if not {f.src, f.dst} & {*hosts} and f.slowdown]
    worst = max(aside, key=lambda flow: flow.slowdown or 0.0, default=None)
    bystander = ""
    if worst and (worst.slowdown or 0.0) >= UNEVEN:
        whose = f"{worst.src}'s message to {worst.dst}, which has nothing to do with {hosts[0]},"
        bystander = f"{whose} took {number(worst.slowdown or 0)} times as long as alone, and "
    watchdog = f"; {ended}" if (ended := phrases.discarded(run)) else ""
    return (
        f"A pause storm from {' and '.join(hosts)}: {bystander}{phrases.paid(run)}. {ways} stood "
        f"still, {longest} longest, for {share} of the run{watchdog}."
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
        f"{worst.src}'s message to {worst.dst} is the victim: its own path had room, and it took"
        f"{others} {number(worst.slowdown or 0)} times as long as alone, held up by {whom}."
    )


def _many_to_one(run: KeptRun) -> str:
    """Several senders of one receiver, whose link they share."""
    senders: dict[str, set[str]] = {}
    for flow in run.flows:
        senders.setdefault(flow.dst, set()).add(flow.src)
    most = max(senders, key=lambda host: len(senders[host]), default=None)
    others = sum(len(each) for host, each in senders.items() if host != most)
    if most is None or len(senders[most]) < MANY or others > len(senders[most]):
        return ""
    link = next(link for link in run.fabric.links if str(link.a) == most)
    used = {use.name: use.utilisation for use in run.result.links}
    into = [each.down for each in run.fabric.links if each.a == link.b]  # their leaf
    if used[link.down] < _WANTED or not phrases.slowed(run):
        return ""
    busiest = max([link.down, *into], key=lambda way: used[way])  # where they meet others, perhaps
    where = "its link" if busiest == link.down else f"{busiest}, on the way there,"
    return (
        f"{phrases.suffering(run)} {len(senders[most])} hosts wrote to {most} at once, and {where} "
        f"was in use {percent(used[busiest])} of the time{phrases.bystanders(run, most)}."
        f"{phrases.trimmed(run)}"
    )


def _uneven(run: KeptRun) -> str:
    said = phrases.uneven_way(run) if phrases.slowed(run) else ""
    return said and f"{phrases.suffering(run)} {said}."


def _bottleneck(run: KeptRun) -> str:
    said = phrases.full(run) if phrases.slowed(run) else ""
    return said and f"{phrases.suffering(run)} {said}."


def _collective(run: KeptRun) -> str:
    said, what = phrases.busbw(run), run.result.collective
    if not said or not what or not what.busbw_gbps:
        return ""
    is_slow = what.busbw_gbps < _WELL * run.result.scenario.link.rate_gbps
    if not is_slow or not phrases.slowed(run):
        return f"All went well: {said}{phrases.utilisation(run)}; {phrases.paid(run)}."
    said = f"T{said[1:]}{phrases.utilisation(run)}"
    why = phrases.full(run) or phrases.beside(run) or phrases.uneven_way(run) or phrases.small(run)
    if why or not (elsewhere := phrases.longest(run)):
        return f"{said}{f'. {why}' if why else ''}; {phrases.paid(run)}."
    return f"{said}. {elsewhere}."  # which the message slowed most need not have passed


def _served(run: KeptRun) -> str:
    """How long requests waited for their answers."""
    found = run.result.inference
    if not found or not found.ttft_ns or not found.answered_ns:
        return ""
    why = phrases.full(run) if phrases.slowed(run) else ""
    return (
        f"Half of {plural(found.completed, 'request')} had the first token within "
        f"{duration(found.ttft_ns.p50)}, the slowest after {duration(found.ttft_ns.max)}; half "
        f"of all answers were there within {duration(found.answered_ns.p50)}."
        f"{f' {why}.' if why else ''}"
    )


def _computing(run: KeptRun) -> str:
    return f"Nothing was lost{phrases.utilisation(run)}." if run.result.gpu_utilisation else ""


def _well(run: KeptRun) -> str:
    begun = "Nothing was lost" if phrases.slowed(run) else "All went well"
    count = plural(run.result.flows.count, "message")
    return f"{begun}: {count} in {duration(run.end_ns)}, {phrases.slowest(run)}."


def _nothing_lost(run: KeptRun) -> str:
    if run.result.drops.total:
        return ""
    held = run.result.pfc.xoff_frames
    how = f"; {plural(held, 'pause frame')} held senders back" if held else ""
    named = [described(each) for each in run.result.scenario.faults]
    by = f" by {listed(named)}" if named and len(named) <= MANY else ""
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
            return (
                f"Yes: every switch sent {even} of what went up by each way; {phrases.paid(run)}."
            )
        most = f"Yes: no switch sent more than {percent(worst.share)} of what went up by one way"
        return f"{most}, where an even share is {even}; {phrases.paid(run)}."
    if not phrases.slowed(run):
        return f"Not quite, and nobody suffered: {phrases.said_of(worst)}; {phrases.paid(run)}."
    return f"No: {phrases.uneven_way(run) or phrases.said_of(worst)}; {phrases.paid(run)}."


Looks = tuple[Callable[[KeptRun], str], ...]

_FIRST: Looks = _unbelieved, _not_sent, _not_whole  # whatever is asked
_ANSWERS: dict[Question, Looks] = {
    Question.SUFFERS: (
        *(_deadlock, _storm, _missing, _victim, costs.price, _many_to_one, _uneven, _bottleneck),
    ),
    Question.WAITS: (_deadlock, _storm, _missing, costs.straggler, costs.cluster),
    Question.COSTS: (
        *(_missing, costs.price, costs.alike, costs.losses, costs.slow_link, _storm),
        *(costs.straggler, costs.harmless),
    ),
    Question.SPEED: (_missing, _served, _collective),
    Question.LOSSLESS: (_missing, costs.losses, _nothing_lost),
    Question.BALANCE: (_missing, _balance),
}
_LOOKS: Looks = (
    *(_deadlock, _storm, _missing, _victim, costs.straggler),
    *(costs.cluster, costs.alike, costs.losses, _many_to_one, costs.slow_link),
    *(_collective, _uneven, _bottleneck, _computing, _well),
)

"""What a verdict says of losses, faults, slow links and waiting: what it was, and what it cost.

Each is empty where there is nothing of it.
"""

from __future__ import annotations

from functools import partial

from lab.results.result import Cost
from lab.scenario.faults import described
from params.quantity import duration, listed, number, packets, percent, plural, size
from traffic.jobs import MixSpec, TrainingJob
from views.report import phrases
from views.report.kept import KeptRun
from views.report.reasons import REASONS
from views.report.suspects import (
    HARDLY,
    LATE,
    MANY,
    QUEUED,
    stragglers,
)

_WANTED = 0.5  # of the time, from which on a link that is in use is somebody's bottleneck
_PLACED = {
    "random": "ranks placed at random", "packed": "ranks next to each other",
    "spread": "ranks far apart", "rail-aligned": "ranks aligned to rails",
    "topology-aware": "ranks placed by the topology",
}  # fmt: skip
_MOSTLY = 0.6  # of the packets lost
_NO_PRICE = 0.01  # of the time without: less is none
_AS_LONG = "as long as"
_OF_MEMORY = "buffer_full", "headroom_full"
_TAKES_AWAY = "down", "restart", "restart-bgp", "halt", "drain"  # faults that may cost packets


def straggler(run: KeptRun) -> str:
    """Whose work all wait for, and what that costs."""
    late = stragglers(run)[:MANY]
    if not late:
        return ""
    hosts, times = listed([host for host, _ in late]), listed([number(each) for _, each in late])
    said = (
        f"All wait for {hosts}: {'it' if len(late) == 1 else 'they'} computed {times} times as "
        "long as a typical host"
    )
    cost = run.result.cost
    if not cost or not (longer := _longer(cost)):
        return f"{said}{phrases.utilisation(run)}."
    took, without = duration(cost.took_ns or 0), duration(cost.without_ns or 0)
    whole = f"{_all_of(run)} took {took}, {longer}"
    whole += f" if all were as quick as the typical host ({without})"
    return f"{said}. {phrases.sentence(whole)}"


def cluster(run: KeptRun) -> str:
    """Who waited for whose hosts, and who was slowed most once he had them."""
    found = run.result.cluster
    if not found or not found.slowdown or not (done := found.slowest):
        return ""
    worst, waited = done[0], found.longest_queued
    queue = ""
    if waited.queued_ns:
        before = found.freed_for(waited)
        until = f", until {before} freed its hosts" if before else ""
        queue = f"{waited.name} waited longest for hosts, {duration(waited.queued_ns)}{until}. "
    return (
        f"{queue}Half of {plural(len(done), 'job')} then took no more than "
        f"{number(found.slowdown.p50)} times as long as alone; {worst.name}, spread over "
        f"{plural(worst.racks, 'rack')}, took {number(worst.slowdown or 0)} times as long."
    )


def alike(run: KeptRun) -> str:
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
        why = phrases.full(run) or phrases.uneven_way(run)
        return (
            f"Job '{slow}' ({_PLACED[names[slow]]}) took {duration(most)}, {number(most / least)} "
            f"times as long as '{quick}' ({_PLACED[names[quick]]}): its GPUs computed {busy[0]} of "
            f"the time instead of {busy[1]}{f'. {why}' if why else ''}."
        )
    return ""


def _lost(run: KeptRun, *, is_named: bool = False) -> str:
    """What was lost and why; is_named: by a fault that is named before."""
    drops, roce = run.result.drops, run.result.roce
    if not drops.total:
        return ""
    again = f", {roce.retransmitted_packets:,} sent again" if roce.data_packets else ""
    if roce.retransmitted_packets > MANY * drops.total and phrases.goes_back(run):
        again = f", and go-back-N sent {roce.retransmitted_packets:,} again"
    waited = f", {plural(roce.timeouts, 'time-out')} expired" if roce.timeouts else ""
    was = "was" if drops.total == 1 else "were"
    why = _reasons(run, is_named=is_named)
    return f"{packets(drops.total)} {was} lost ({why}){again}{waited}."


def losses(run: KeptRun) -> str:
    """What was lost and why, and what came of it."""
    said = _lost(run)
    return said and f"{said} {phrases.sentence(phrases.paid(run))}"


def price(run: KeptRun) -> str:
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
    parts, worst = run.result.parts or {}, phrases.sufferer(run)
    own = next((part.slowdown for part in parts.values()), None)
    if worst is None or own is None or own.max >= (worst.slowdown or 0):
        return ""
    took = f"{duration(worst.fct_ns or 0)}, {number(worst.slowdown or 0)} times as long as alone"
    return f" The worst of what goes on beside it was {worst.src}'s message to {worst.dst}: {took}."


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
        f"{percent(times - 1)} longer than" if times < LATE else f"{number(times)} times as long as"
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
    why = (
        phrases.full(run) or phrases.beside(run) or phrases.uneven_way(run) or phrases.longest(run)
    )
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
    is_of_these = why in ("link_cut", "port_down", "no_next_hop") and 0 < len(downs) <= MANY
    is_of_these = is_of_these and not is_named
    return f"{REASONS.get(why, why)}{f': {listed(downs)}' if is_of_these else ''}"


def _nothing_lost_by(run: KeptRun) -> str:
    """Faults that may cost packets, and did not."""
    named = [described(each) for each in run.result.scenario.faults if each.action in _TAKES_AWAY]
    if not named or run.result.drops.total or len(named) > MANY:
        return ""
    why = phrases.uneven_way(run) or phrases.full(run)
    return (
        f"No packet was lost by {listed(named)}.{f' {why}.' if why and phrases.slowed(run) else ''}"
    )


def harmless(run: KeptRun) -> str:
    """What befell a switch or a link, where nothing was lost by it."""
    said = _nothing_lost_by(run)
    return said and f"{said} {phrases.sentence(phrases.paid(run))}"


def slow_link(run: KeptRun) -> str:
    """What was waited for at a link that has not got its whole rate."""
    found = _slow_direction(run)
    if found is None:
        return ""
    way, share, busy = found
    return (
        f"{way} has {percent(share)} of its rate and was {busy}. "
        f"{phrases.sentence(phrases.busbw(run) or phrases.paid(run))}"
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
    if found is None or not phrases.slowed(run):
        return None
    busy, queue, way, share = found
    if busy < _WANTED and queue < QUEUED * scenario.link.mtu:
        return None
    waited = f"; up to {size(queue)} waited for it" if queue >= QUEUED * scenario.link.mtu else ""
    return way, share, f"in use {percent(busy)} of the time{waited}"

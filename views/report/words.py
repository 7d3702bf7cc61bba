"""What happened, in plain words: every sentence follows from the figures of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from lab.results.cautions import cautions
from lab.results.result import Drops, Result
from lab.scenario.model import remarks
from params.quantity import duration, number, packets, percent, plural, size
from views.report.kept import KeptRun
from views.report.plots import lone_uplinks, preferred, uplinks
from views.report.reasons import REASONS
from views.report.suspects import (
    HARDLY,
    UNEVEN,
    circle,
    congested,
    dead_cables,
    storming,
    straggler,
    victims,
)

_NOTABLE = 0.05  # of a run, from which on a pause is worth a sentence
_LONG = 0.1  # of a run, from which on a silence is told
_MAX_NAMED = 4
_EQUAL = 1.02  # times as much, below which it is the same


def story(run: KeptRun) -> str:
    """A paragraph about a run."""
    return " ".join(sentences(run))


def sentences(run: KeptRun) -> Iterator[str]:
    """All that is to be said of a run, what weighs most first."""
    result = run.result
    if not result.fidelity.ok:
        yield f"Do not trust these figures: {result.fidelity.note}."
    if result.ended:
        yield f"The run is not whole: {result.ended}; what follows is what was measured till then."
    yield from cautions(result)
    if result.skipped:
        yield result.skipped.text
    yield from _suspects(run)
    yield from _cluster(result)
    yield from _job(result)
    yield from _completion(run)
    yield from _losses(result)
    yield from _silence(run)
    yield from _cables(run)
    yield from _pauses(run)
    yield from _balance(run)
    yield from _queues(result)
    yield from _marks(result)
    yield from _telemetry(result)
    yield from _idle(result)
    yield from remarks(result.scenario)


def _cluster(result: Result) -> Iterator[str]:
    """What its placement cost the jobs, and who waited for hosts."""
    found = result.cluster
    if not found or not found.slowdown or not (done := found.slowest):
        return
    worst, waited = done[0], found.longest_queued
    where = f"over {plural(worst.racks, 'rack')}"
    yield (
        f"Once they had their hosts, half of {plural(len(done), 'job')} took no more than "
        f"{number(found.slowdown.p50)} times as long as alone, and {worst.name}, {where}, "
        f"{number(worst.slowdown or 0)} times."
    )
    if waited.queued_ns and found.queued_ns:
        yield (
            f"For hosts half of them waited no longer than {duration(found.queued_ns.p50)}, and "
            f"{waited.name} longest, {duration(waited.queued_ns)}."
        )


def _completion(run: KeptRun) -> Iterator[str]:
    flows = run.result.flows
    carried = f"{size(flows.bytes)} in {duration(run.end_ns)}"
    if flows.failed:
        yield (
            f"Of {plural(flows.count, 'message')} {flows.completed:,} arrived whole ({carried}); "
            f"{flows.failed:,} did not."
        )
    else:
        yield f"All {plural(flows.count, 'message')} arrived whole, {carried}."
    busiest = max(run.result.links, key=lambda use: use.utilisation, default=None)
    if busiest is not None and busiest.utilisation:
        yield f"The busiest link, {busiest.name}, was in use {percent(busiest.utilisation)} of it."
    if flows.slowdown and flows.slowdown.max < HARDLY:
        yield "Each took hardly longer than it would have taken alone in an empty fabric."
    elif flows.fct_ns and flows.completed > 1:
        yield (
            f"Half of the messages took no more than {duration(flows.fct_ns.p50)}, the slowest "
            f"{duration(flows.fct_ns.max)}."
        )
        if flows.slowdown:
            yield (
                "Alone in an empty fabric the median would have been "
                + (
                    f"{number(flows.slowdown.p50)} times as fast"
                    if flows.slowdown.p50 >= HARDLY
                    else "hardly faster"
                )
                + f", the worst {number(flows.slowdown.max)} times as fast."
            )
    slowed = [
        (part.slowdown.p50, name)
        for name, part in (run.result.parts or {}).items()
        if part.slowdown and part.completed
    ]
    if slowed:
        (most, worst), (least, best) = max(slowed), min(slowed)
        slow = f"{number(least)} times" if least >= HARDLY else "hardly at all"
        yield (
            f"Of its parts {worst} was slowed down most, {number(most)} times in the middle, and "
            f"{best} least, {slow}."
            if most >= HARDLY
            else "None of its parts was slowed down to speak of."
        )


def _losses(result: Result) -> Iterator[str]:
    drops, roce = result.drops, result.roce
    if drops.total:
        yield _why_dropped(drops)
    else:
        yield "No packet was dropped."
    if roce.retransmitted_packets:
        needed = max(1, roce.data_packets - roce.retransmitted_packets)
        share = roce.retransmitted_packets / needed
        yield (
            f"Adapters sent {packets(roce.retransmitted_packets)} again, "
            + (f"{number(share)} times" if share > 1 else percent(share) + " of")
            + " what there was to send"
            + (f", and waited for {plural(roce.timeouts, 'timeout')}." if roce.timeouts else ".")
        )


def _silence(run: KeptRun) -> Iterator[str]:
    """The longest time in which no link carried anything, if that was for want of a time-out."""
    moved = sorted({
        note.time_ns
        for notes in run.notes_of.values()
        for before, note in pairwise(notes)
        if note.bytes > before.bytes
    })  # fmt: skip
    longest = max(pairwise(moved), key=lambda pair: pair[1] - pair[0], default=None)
    if longest and run.result.roce.timeouts and longest[1] - longest[0] > _LONG * run.end_ns:
        yield (
            f"From {duration(longest[0])} to {duration(longest[1])} nothing was under way: "
            "adapters waited for time-outs."
        )


def _why_dropped(drops: Drops) -> str:
    main = max(drops.by_reason, key=lambda reason: drops.by_reason[reason])
    share = drops.by_reason[main] / drops.total
    how_many = "all" if share == 1 else "nearly all" if share > 0.99 else percent(share)
    said = (
        f"{packets(drops.total)} {'was' if drops.total == 1 else 'were'} dropped, "
        f"{how_many} for one reason: {REASONS.get(main, main)}"
    )
    if drops.by_switch:
        most = max(drops.by_switch, key=lambda name: drops.by_switch[name])
        said += f"; most of them at {most}" if len(drops.by_switch) > 1 else f"; at {most}"
    return said + "."


def _pauses(run: KeptRun) -> Iterator[str]:
    pfc = run.result.pfc
    if not pfc.by_link:
        if run.result.scenario.pfc.enabled:
            yield "No switch had to pause anyone."
        return
    longest = max(pfc.by_link, key=lambda name: pfc.by_link[name].longest_ns)
    share = pfc.by_link[longest].longest_ns / run.end_ns
    notable = sum(pause.longest_ns / run.end_ns >= _NOTABLE for pause in pfc.by_link.values())
    sender, _, to = longest.partition(">")
    sent = plural(pfc.xoff_frames, "pause frame") if pfc.xoff_frames else "none, but hosts did"
    others = f", and {plural(notable, 'direction')} for more than {percent(_NOTABLE)} of it"
    yield (
        f"Switches sent {sent}; {sender} stood still longest, {percent(share)} of the time "
        f"towards {to}{others if notable > 1 else ''}."
    )


def _marks(result: Result) -> Iterator[str]:
    if result.ecn.marked_packets:
        said = f"{packets(result.ecn.marked_packets)} were marked by ECN"
        transport = result.scenario.transport
        if transport.cc == "none":
            yield said + ", which adapters without congestion control ignored."
        elif transport.kind.sprays or transport.control.hears == "ECHOES":
            yield said + ", of which answers told the senders."
        elif not transport.control.hears_marks:
            yield said + f", of which {transport.cc} takes no notice."
        else:
            yield (
                f"{said}, answered by {plural(result.roce.cnps, 'notification')}, upon which "
                "senders slowed down."
            )


def _queues(result: Result) -> Iterator[str]:
    deepest = max(result.links, key=lambda use: use.max_queue_bytes or 0, default=None)
    if deepest is not None and deepest.max_queue_bytes:
        sender, _, to = deepest.name.partition(">")
        yield f"The longest queue, {size(deepest.max_queue_bytes)}, stood in {sender} before {to}."


def _telemetry(result: Result) -> Iterator[str]:
    """Where packets stayed longest, by what those that carried telemetry tell."""
    telemetry = result.telemetry
    if telemetry is None or telemetry.hop_latency_ns is None:
        return
    stays = {
        name: hop.latency_ns.p99 for name, hop in telemetry.by_switch.items() if hop.latency_ns
    }
    slowest = max(stays, key=lambda name: stays[name])
    yield (
        f"Packets that carried telemetry stayed {duration(telemetry.hop_latency_ns.p50)} in a "
        f"switch, in the middle; one in a hundred stayed {duration(stays[slowest])} or longer in "
        f"{slowest}."
    )


def _cables(run: KeptRun) -> Iterator[str]:
    """Which cables were dead."""
    found = dead_cables(run)
    throughout = [name for name, span in found.items() if span == (0, None)]
    if throughout:
        what = "The cable" if len(throughout) == 1 else "The cables"
        was = "was" if len(throughout) == 1 else "were"
        yield f"{what} {' and '.join(throughout)} {was} dead throughout, as the scenario asks."
    for name, (since, until) in found.items():
        if name not in throughout:
            yield (
                f"The cable {name} was cut at {duration(since)}"
                + (f" and was back at {duration(until)}." if until else ", as the scenario asks.")
            )


def _suspects(run: KeptRun) -> Iterator[str]:
    """Who suffered, and from whom."""
    ring = circle(run)
    if ring:
        yield (
            f"It was a deadlock: {' waited for '.join(ring)}, so none of them could send until "
            "something was given up."
        )
    suffering = victims(run)
    if suffering:
        worst = suffering[0]
        more = len(suffering) - 1
        yield (
            f"The message from {worst.src} to {worst.dst} was a victim: nobody else sent from "
            f"there or to there and its ways had room, yet pauses meant for others (head-of-line "
            f"blocking) made it take {number(worst.slowdown or 0)} times as long as alone"
            + (f", and {plural(more, 'other message')} fared alike." if more else ".")
        )
    for host in storming(run):
        yield (
            f"{host} is where it began: it sent pause frames without need (a pause storm), as the "
            "scenario asks."
        )
    yield from _congestion(run)
    late = straggler(run)
    if late:
        host, factor = late
        yield (
            f"{host} was the straggler: it computed {number(factor)} times as long as half of the "
            "others, who waited for it."
        )


def _congestion(run: KeptRun) -> Iterator[str]:
    """Which ports had more to send than they could."""
    found = congested(run)
    if not found:
        return
    peaks = {use.name: use.max_queue_bytes or 0 for use in run.result.links}
    parts = [
        f"{name.partition('>')[0]}'s to {name.partition('>')[2]}, up to {size(peaks[name])}"
        for name in found
    ]
    if len(parts) == 1:
        yield f"The congested port was {parts[0]}: it sent all it could, and yet so much waited."
        return
    some = f"{'; '.join(parts[:-1])}; and {parts[-1]}"
    yield f"Congested ports were {some}: they sent all they could, and yet so much waited."


def _balance(run: KeptRun) -> Iterator[str]:
    """The most overloaded way, if any is."""
    worst = preferred(uplinks(run))
    if worst is None:
        return
    lone = lone_uplinks(run)
    if worst.excess >= UNEVEN:
        yield (
            f"Load was uneven: {worst.switch} sent {percent(worst.share)} of its upward bytes by "
            f"{worst.way}, where an even share is {percent(1 / worst.ways)}."
        )
    elif lone:
        few = len(lone) <= _MAX_NAMED
        these = " and ".join(map(str, lone)) if few else f"{len(lone)} switches"
        yield (
            f"Every switch with a choice shared its upward traffic evenly; {these} had one way up."
        )
    else:
        yield "Every switch shared its upward traffic evenly."


def _job(result: Result) -> Iterator[str]:
    if result.collective and result.collective.busbw_gbps:
        what = result.collective
        rate = result.scenario.link.rate_gbps
        yield (
            f"The {what.op} ({what.algorithm}) came to {number(what.busbw_gbps or 0)} Gb/s of bus "
            f"bandwidth, {percent((what.busbw_gbps or 0) / rate)} of a port's rate."
        )
    if result.gpu_utilisation:
        yield f"GPUs computed {percent(result.gpu_utilisation)} of the time."


def _idle(result: Result) -> Iterator[str]:
    """What was switched on and never had to do anything: without it the figures are the same."""
    scenario = result.scenario
    waits_for_marks = scenario.transport.control.hears_marks and scenario.ecn.enabled
    idle = {
        f"transport.cc={scenario.transport.cc} (no packet was marked, from ecn.kmin, "
        f"{size(scenario.ecn.kmin)}, on)": waits_for_marks and not result.ecn.marked_packets,
        "trim (every packet found room)": result.trim and not result.trim.cut_packets,
        "link.llr (no link lost a frame)": result.llr and not result.llr.replayed_frames,
        "loss (chance took no packet)": scenario.loss.rate
        and not result.drops.by_reason.get("injected_loss"),
        "int (no packet was chosen)": scenario.telemetry.share
        and not (result.telemetry and result.telemetry.reports),
    }
    unused = [what for what, is_idle in idle.items() if is_idle]
    if unused:
        yield f"Switched on, and without effect: {'; '.join(unused)}."


def comparison(names: Sequence[str], runs: Sequence[KeptRun]) -> str:
    """A paragraph about several runs of a scenario; of several scenarios nothing."""
    return " ".join(_verdict(names, runs))


def changed(before: KeptRun, now: KeptRun) -> str:
    """A run in the measures of one before it, in a sentence."""
    return f"It {_beside(now.result, before.result)}."


def _verdict(names: Sequence[str], runs: Sequence[KeptRun]) -> Iterator[str]:
    """How each run fared beside the one that was soonest done with everything."""
    results = [(name, run.result) for name, run in zip(names, runs, strict=True)]
    if len({run.result.scenario.name for run in runs}) > 1:
        return
    whole = [(run.duration_ns, at) for at, (_, run) in enumerate(results) if not run.flows.failed]
    if not whole:
        yield "Verdict: no run delivered everything."
        return
    best, base = results[min(whole)[1]]
    yield f"Verdict: {best} was done soonest, {_cost(base)}."
    for name, run in results:
        if name != best:
            yield f"{name} {_beside(run, base)}."
    if all(run.seed == base.seed for _, run in results):
        yield f"All of it with one seed, {base.seed}: closlab sweep --vary seed=1..8 tells chance."


def _cost(result: Result) -> str:
    lost = f"with {packets(result.drops.total)} dropped" if result.drops.total else "without loss"
    return f"in {duration(result.duration_ns)} {lost}"


def _beside(result: Result, base: Result) -> str:
    """One run in the measures of another: time first, then what it paid or saved."""
    if result.flows.failed:
        return f"left {plural(result.flows.failed, 'message')} incomplete"
    ratio = result.duration_ns / base.duration_ns
    said = (
        f"took {percent(ratio)} of the time"
        if ratio < 1 / _EQUAL
        else "took as long"
        if ratio < _EQUAL
        else f"took {percent(ratio - 1)} longer"
        if ratio < 2
        else f"took {number(ratio)} times as long"
    )
    parts = []
    for noun, mine, its in (
        ("packets dropped", result.drops.total, base.drops.total),
        ("pause frames", result.pfc.xoff_frames, base.pfc.xoff_frames),
        ("time paused", result.pfc.paused_ns, base.pfc.paused_ns),
    ):
        if noun == "time paused" and not (mine and its):
            continue  # its frames have said it
        if mine == its or (its and abs(mine / its - 1) < _EQUAL - 1):
            continue
        if not mine:
            parts.append(f"no {noun}")
        elif not its:
            parts.append(f"{mine:,} {noun}")
        elif mine < 2 * its:
            more = "more" if mine > its else "less" if noun == "time paused" else "fewer"
            parts.append(f"{percent(abs(mine / its - 1))} {more} {noun}")
        else:
            parts.append(f"{number(mine / its)} times the {noun}")
    return said + (f", with {' and '.join(parts)}" if parts else "")

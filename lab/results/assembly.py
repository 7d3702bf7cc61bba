"""From what an engine hands back to a run's figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from controller.tables import IN_SUM
from lab.results import conservation
from lab.results import outcome as seen
from lab.results import result as res
from lab.results.alone import Alone
from lab.results.cluster import cluster_result
from lab.results.energy import weighed
from lab.results.inference import inference_result
from lab.results.losses import price
from lab.results.outcome import Outcome, PortCounts
from lab.results.percentiles import percentiles
from lab.results.skipped import skipped, weights, with_skipped
from lab.results.stalls import Stall, stalls
from lab.scenario.experiment import Experiment
from lab.scenario.faults import EventNote, Rekey, events_of, fault_notes
from lab.scenario.model import Scenario
from lab.scenario.translate import acks_may_be_lost, security_bytes
from params.link import Replay
from topologies import Link, Node, NodeKind
from traffic.collectives import NEVER, Mode
from traffic.endpoint import Delivery, counted_at
from traffic.measures import JobMeasure, Measures


def _part_of(experiment: Experiment, number: int) -> str:
    """What a message belongs to: a job, or flows by their name."""
    activity = experiment.schedule.activities[experiment.schedule.activity[number]]
    return activity.job or activity.name


def assemble(
    experiment: Experiment,
    outcome: Outcome,
    *,
    engine: str,
    switch: str,
    provenance: dict[str, str],
) -> res.Result:
    """Put a run's result together from what was seen of it."""
    alone = Alone(experiment)
    parts: dict[str, list[int]] = {}
    for number in experiment.schedule.messages():
        parts.setdefault(_part_of(experiment, number), []).append(number)
    measures = Measures(
        experiment.schedule, outcome.timeline, alone.alpha_ns, alone.payload_rate_gbps
    )
    jobs = [with_skipped(job, outcome) for job in measures.jobs]
    job = max(jobs, key=lambda job: job.jct_ns or 0, default=None)
    served = inference_result(experiment, outcome.timeline)
    result = res.Result(
        scenario=outcome.scenario or experiment.scenario,
        engine=engine,
        switch=switch,
        seed=experiment.scenario.seed,
        dilation=outcome.dilation,
        provenance=provenance,
        ended=outcome.ended,
        skipped=skipped(outcome),
        duration_ns=outcome.end_ns,
        jct_ns=job.jct_ns if job else None,
        steps=_steps(job),
        # GPUs that write several answers at once are not busy by a share of their time.
        gpu_utilisation=job.gpu_utilisation or None if job and not served else None,
        collective=_collective(measures),
        cluster=cluster_result(experiment, outcome.timeline),
        jobs=_jobs(jobs) if experiment.workload.cluster is None else None,
        inference=served,
        flows=_flows(experiment.schedule.messages(), experiment, outcome, alone),
        stalls=_stalls(experiment, outcome),
        parts={name: _flows(each, experiment, outcome, alone) for name, each in parts.items()}
        if len(parts) > 1
        else None,
        drops=_drops(experiment, outcome),
        ecn=res.Ecn(marked_packets=sum(port.marked for _, _, port in _ports(outcome))),
        pfc=_pfc(experiment, outcome),
        credits=_credits(experiment, outcome) if experiment.settings.link.cbfc else None,
        llr=_llr(experiment, outcome) if experiment.settings.link.llr is not Replay.NONE else None,
        trim=_trim(experiment, outcome) if experiment.scenario.trim.enabled else None,
        roce=_roce(outcome, experiment.scenario),
        inc=_inc(experiment, outcome) if experiment.settings.groups else None,
        security=_security(experiment, outcome),
        telemetry=_telemetry(outcome),
        links=tuple(
            use for link in experiment.fabric.links for use in _link_use(link, experiment, outcome)
        ),
        machines=_machines(outcome),
        by_hand=tuple(res.Hand(**hand._asdict()) for hand in outcome.by_hand) or None,
        control=_control(outcome, experiment.scenario),
        conservation=_conservation(outcome),
        fidelity=res.Fidelity(
            late_p99_ns=outcome.fidelity.late_p99_ns,
            ok=outcome.fidelity.ok,
            note=outcome.fidelity.note,
        ),
    )
    return weighed(result)


def _machines(outcome: Outcome) -> res.Machines | None:
    note = outcome.machines
    if note is None:
        return None
    return res.Machines(
        switches=dict(note.switches),
        cables=note.crossing,
        clock_error_ns=round(note.clock_error_ns, 1),
        way_ns=round(note.way_ns, 1),
        longer_ns=dict(note.longer),
    )


def _control(outcome: Outcome, scenario: Scenario) -> res.Control | None:
    """What became of routes, by fault."""
    routed = outcome.routed
    if routed is None:
        return None
    faults = [event for event in fault_notes(scenario) if event.at_ns <= outcome.end_ns]
    ends = [event.at_ns for event in faults[1:]] + [outcome.end_ns + 1]

    def rerouting(fault: EventNote, end_ns: int) -> res.Rerouting:
        begun_ns = routed.begun.get(fault.at_ns, fault.at_ns)
        after = [change for change in routed.changes if begun_ns <= change.time_ns < end_ns]
        seconds = [(change.time_ns - begun_ns) * outcome.dilation / 1e9 for change in after]
        return res.Rerouting(
            at_ns=fault.at_ns,
            what=fault.what,
            first_s=round(min(seconds), 4) if after else None,
            last_s=round(max(seconds), 4) if after else None,
            switches=len({change.switch for change in after}),
            entries=sum(change.entries for change in after),
        )

    return res.Control(
        kind=scenario.control.kind,
        routed_s=round(routed.took_s, 3),
        routes=routed.routes,
        faults=tuple(map(rerouting, faults, ends)),
    )


def _conservation(outcome: Outcome) -> res.Conservation | None:
    if not outcome.books:
        return None
    return res.Conservation(
        switches=_class_books(line for kept in outcome.books.values() for line in kept.lines),
        links=_class_books(line for kept in outcome.link_books.values() for line in kept)
        if outcome.link_books
        else None,
    )


def _class_books(lines: Iterable[seen.Line]) -> dict[str, res.ClassBooks]:
    books = conservation.Books(lines)

    def amount(of: seen.Traffic) -> res.Amount:
        return res.Amount(frames=of.packets, bytes=of.bytes)

    def here(book: str, class_: int, *, made: bool | None = None) -> seen.Traffic:
        return conservation.total(
            each
            for key, each in books.by_key(book).items()
            if key.class_ == class_ and made in (None, key.made)
        )

    def some(of: seen.Traffic) -> res.Amount | None:
        return amount(of) if of != seen.NOTHING else None

    reasons = sorted(map(str, books.of("dropped")))
    dropped = {reason: books.at("dropped", reason) for reason in reasons}
    return {
        conservation.CLASS_NAMES[class_]: res.ClassBooks(
            received=amount(here("in", class_, made=False)),
            made=some(here("in", class_, made=True)),
            changed_bytes=here("changed", class_).bytes or None,
            left=amount(here("left", class_)),
            dropped={
                reason: amount(lost)
                for reason, sums in dropped.items()
                if (
                    lost := conservation.total(n for key, n in sums.items() if key.class_ == class_)
                )
                != seen.NOTHING
            },
            held=some(here("held", class_)),
        )
        for class_ in sorted({key.class_ for key in books.by_key("in")})
    }


def _telemetry(outcome: Outcome) -> res.Telemetry | None:
    tally = outcome.telemetry
    if tally is None:
        return None
    hops = {name: tally.hops[name] for name in sorted(tally.hops)}
    return res.Telemetry(
        reports=tally.reports,
        mtu_exceeded=tally.mtu_exceeded or None,
        hop_latency_ns=percentiles([ns for hop in hops.values() for ns in hop.latency_ns]),
        queue_bytes=percentiles([size for hop in hops.values() for size in hop.queue_bytes]),
        by_switch={
            name: res.HopTelemetry(
                count=len(hop.latency_ns),
                latency_ns=percentiles(hop.latency_ns),
                queue_bytes=percentiles(hop.queue_bytes),
            )
            for name, hop in hops.items()
        },
    )


def _jobs(jobs: Iterable[JobMeasure]) -> dict[str, res.JobResult] | None:
    found = {
        job.job: res.JobResult(jct_ns=job.jct_ns, gpu_utilisation=job.gpu_utilisation or None)
        for job in jobs
    }
    return found if len(found) > 1 else None


def _steps(job: JobMeasure | None) -> tuple[res.Step, ...] | None:
    if job is None:
        return None
    return tuple(
        res.Step(
            start_ns=step.start_ns,
            end_ns=step.end_ns,
            compute_ns=round(step.compute_ns),
            comm_ns=step.comm_ns,
        )
        for step in job.steps
    )


def _collective(measures: Measures) -> res.CollectiveResult | None:
    found = [c for c in measures.collectives if c.op != "barrier" and c.end_ns is not None]
    if not found:
        return None
    longest = max(found, key=lambda c: (c.end_ns or 0) - c.start_ns)
    return res.CollectiveResult(
        op=longest.op,
        algorithm=longest.algorithm,
        bytes=longest.bytes,
        algbw_gbps=longest.algbw_gbps,
        busbw_gbps=longest.busbw_gbps,
    )


def _flows(
    messages: Iterable[int], experiment: Experiment, outcome: Outcome, alone: Alone
) -> res.Flows:
    times, slowdowns, count, size = [], [], 0, 0
    schedule = experiment.schedule
    weight = weights(schedule, outcome)
    stand_for = None if weight is None else list[int]()
    for number in messages:
        stands_for = 1 if weight is None else weight[schedule.activity[number]]
        count += stands_for
        start, end = outcome.timeline.start_ns[number], outcome.timeline.end_ns[number]
        if NEVER not in (start, end):
            size += schedule.size[number] * stands_for
            times.append(end - start)
            slowdowns.append((end - start) / alone.takes_ns(number))
            if stand_for is not None:
                stand_for.append(stands_for)
    completed = len(times) if stand_for is None else sum(stand_for)
    return res.Flows(
        count=count,
        completed=completed,
        failed=count - completed,
        bytes=size,
        fct_ns=percentiles(times, stand_for),
        slowdown=percentiles(slowdowns, stand_for),
    )


def _drops(experiment: Experiment, outcome: Outcome) -> res.Drops:
    by_reason: dict[str, int] = {}
    for counts in outcome.switches.values():
        for reason, packets in counts.lost.items():
            by_reason[reason] = by_reason.get(reason, 0) + packets
    by_switch = {
        switch.name: sum(counts.lost.values()) for switch, counts in outcome.switches.items()
    }
    discards = sum(counters.get(seen.HOST_DISCARDS, 0) for counters in outcome.endpoints.values())
    if discards:
        by_reason[res.RECEIVER] = discards
    for name, reason in seen.INSECURE.items():
        if refused := _total(outcome, name):
            by_reason[reason] = refused
    lines = [line for kept in outcome.link_books.values() for line in kept]
    halted = sum(line.packets for line in lines if line.of == res.HALTED)
    if halted:
        by_reason[res.HALTED] = halted
    if cut := sum(outcome.cut_frames.values()) - halted:
        by_reason[res.CUT] = cut
    spoilt = (line for kept in outcome.books.values() for line in kept.lines)
    corrupted = sum(line.packets for line in spoilt if line.book in conservation.CORRUPTED)
    if corrupted:
        by_reason[res.CORRUPTED] = corrupted
    return res.Drops(
        total=sum(by_reason.values()),
        by_reason=by_reason,
        by_switch={name: packets for name, packets in by_switch.items() if packets},
        price=price(experiment, outcome.switches, outcome.endpoints),
    )


def _ports(outcome: Outcome) -> Iterator[tuple[Node, int, PortCounts]]:
    for switch, counts in outcome.switches.items():
        for number, port in counts.ports.items():
            yield switch, number, port


def _pfc(experiment: Experiment, outcome: Outcome) -> res.Pfc:
    """Who was paused, and for how long: by the direction whose sender had to stop."""
    by_link: dict[str, res.Pause] = {}
    storms: dict[str, int] = {}
    lossless = experiment.settings.lossless

    def note(
        direction: str, frames: int, xoff: Mapping[int, int], paused: Mapping[int, int]
    ) -> None:
        if frames or any(paused.values()):
            classes = {
                each: res.PauseOfClass(xoff_frames=xoff.get(each, 0), paused_ns=paused.get(each, 0))
                for each in sorted(lossless)
            }
            by_link[direction] = res.Pause(
                xoff_frames=frames,
                paused_ns=sum(paused.values()),
                by_class=classes if len(classes) > 1 else None,
            )

    for switch, number, port in _ports(outcome):
        link = experiment.fabric.link_at(switch, number)
        peer = link.b if link.a == switch else link.a
        note(link.direction(peer), port.xoff_sent, port.xoff, _paused(outcome, link, peer))
        if peer.kind is NodeKind.HOST:
            # One frame of an adapter names all classes that it pauses; nothing of others waits.
            sent = outcome.endpoints[peer].get("tx_xoff_frames", 0)
            paused = {each: port.paused.get(each, 0) for each in lossless}
            note(link.direction(switch), sent, dict.fromkeys(lossless, sent), paused)
        if port.storms:
            storms[link.direction(switch)] = port.storms
    return res.Pfc(
        xoff_frames=sum(port.xoff_sent for _, _, port in _ports(outcome)),
        xon_frames=sum(port.xon_sent for _, _, port in _ports(outcome)),
        stray_xoff_frames=sum(
            frames
            for _, _, port in _ports(outcome)
            for priority, frames in port.xoff.items()
            if priority not in lossless
        ),
        paused_ns=sum(pause.paused_ns for pause in by_link.values()),
        by_link=by_link,
        storms=storms,
    )


def _paused(outcome: Outcome, link: Link, sender: Node) -> Mapping[int, int]:
    """How long the classes of the sender at one end of a link stood still there."""
    if sender.kind is NodeKind.HOST:
        counted = outcome.endpoints[sender]
        port = link.port_of(sender)
        names = seen.HOST_PAUSED_NS.items()
        return {each: counted_at(counted, port, name) for each, name in names}
    return outcome.switches[sender].port(link.port_of(sender)).paused


def _credits(experiment: Experiment, outcome: Outcome) -> res.Credits:
    """Who granted what, and who waited for it."""
    by_link = {}
    for switch, number, port in _ports(outcome):
        link = experiment.fabric.link_at(switch, number)
        by_link[link.direction(switch)] = port.waited_ns
        if link.a.kind is NodeKind.HOST:
            by_link[link.direction(link.a)] = outcome.endpoints[link.a].get("credit_waited_ns", 0)
    ports = [port for _, _, port in _ports(outcome)]
    dropped = [counts.dropped for counts in outcome.switches.values()]
    return res.Credits(
        grants=sum(port.grants for port in ports),
        questions=sum(port.questions for port in ports) + _total(outcome, "tx_credit_questions"),
        waits=sum(port.waits for port in ports) + _total(outcome, "credit_waits"),
        waited_ns=sum(by_link.values()),
        by_link={name: waited_ns for name, waited_ns in by_link.items() if waited_ns},
        strange=sum(each.get("foreign_credit", 0) for each in dropped)
        + _total(outcome, "rx_foreign_credits"),
        uncovered=sum(each.get("no_credit", 0) for each in dropped),
    )


def _llr(experiment: Experiment, outcome: Outcome) -> res.Llr:
    """What links sent again, and why."""
    total = dict.fromkeys(seen.TRIES, 0)
    by_link = {}
    for name, tries in _tries(experiment, outcome):
        for what, count in tries.items():
            total[what] += count
        again, late = (tries.get(what, 0) for what in ("replayed", "timeouts"))
        if again or late:
            by_link[name] = res.Replayed(replayed_frames=again, timeouts=late)
    return res.Llr(
        spoilt_frames=total["spoilt"],
        replayed_frames=total["replayed"],
        answers=total["answers"],
        gaps=total["missed"],
        timeouts=total["timeouts"],
        unfit_frames=total["unfit"],
        strange_frames=total["strange"],
        full=total["full"],
        by_link=by_link,
    )


def _tries(experiment: Experiment, outcome: Outcome) -> Iterator[tuple[str, Mapping[str, int]]]:
    """What each end of a link that tries again counted, by the direction that it sends."""
    for switch, number, port in _ports(outcome):
        yield experiment.fabric.link_at(switch, number).direction(switch), port.tries
    for link in experiment.fabric.links if experiment.settings.link.llr_hosts else ():
        if not link.joins_switches:
            counted = outcome.endpoints[link.a]
            counts = (counted_at(counted, link.a_port, f"link_{what}") for what in seen.TRIES)
            yield link.up, dict(zip(seen.TRIES, counts, strict=True))


def _trim(experiment: Experiment, outcome: Outcome) -> res.Trim:
    """What was cut, and what became of it."""
    size = experiment.scenario.trim.size
    by_class: dict[int, int] = {}
    by_link: dict[str, int] = {}
    cut_bytes = 0
    for switch, number, port in _ports(outcome):
        for priority, traffic in port.cut.items():
            by_class[priority] = by_class.get(priority, 0) + traffic.packets
            name = experiment.fabric.link_at(switch, number).direction(switch)
            by_link[name] = by_link.get(name, 0) + traffic.packets
            cut_bytes += traffic.bytes - size * traffic.packets
    return res.Trim(
        cut_packets=sum(by_class.values()),
        cut_bytes=cut_bytes,
        by_class=dict(sorted(by_class.items())),
        by_link=by_link,
        arrived_packets=_total(outcome, "rx_cut_packets"),
        known_packets=_total(outcome, "cut_packets_known"),
        lost_packets=sum(each.dropped.get("cut_lost", 0) for each in outcome.switches.values()),
    )


def _total(outcome: Outcome, name: str) -> int:
    """What all hosts counted of something."""
    return sum(counters.get(name, 0) for counters in outcome.endpoints.values())


def _roce(outcome: Outcome, scenario: Scenario) -> res.Roce:
    total = partial(_total, outcome)
    dropped = sum(sum(counts.lost.values()) for counts in outcome.switches.values())
    # Some may still be under way at the end; those were not dropped.
    lost_acks = min(dropped, total("tx_acks") - total("rx_acks") - total("rx_refused"))
    return res.Roce(
        data_packets=total("tx_data_packets"),
        data_bytes=total("tx_data_bytes"),
        retransmitted_packets=total("retransmitted_packets"),
        naks=total("tx_naks"),
        cnps=total("np_cnp_sent"),
        fast_cnps=total("rp_fast_cnps") if scenario.ecn.fast_cnp else None,
        timeouts=total("local_ack_timeout_err"),
        out_of_order_packets=total("out_of_sequence"),
        qp_errors=total("qp_errors"),
        lost_acks=max(0, lost_acks) if acks_may_be_lost(scenario) else None,
    )


def _security(experiment: Experiment, outcome: Outcome) -> res.Security | None:
    more = security_bytes(experiment.scenario)
    if not more:
        return None
    events = events_of(experiment.scenario, experiment.fabric)
    changes = (each for each in events if isinstance(each, Rekey) and each.word.is_used)
    return res.Security(
        domains=experiment.secure_domains,
        rekeyed=sum(event.at_ns <= outcome.end_ns for event in changes),
        header_bytes=more,
        sent_bytes=more * _total(outcome, "tx_packets"),
        refused_packets=sum(_total(outcome, name) for name in seen.INSECURE),
    )


def _inc(experiment: Experiment, outcome: Outcome) -> res.InNetwork:
    total, ends = partial(_total, outcome), outcome.timeline.end_ns
    modes = experiment.schedule.mode
    return res.InNetwork(
        without_result=sum(
            mode == Mode.NETWORK and end == NEVER for mode, end in zip(modes, ends, strict=True)
        ),
        parts=total("tx_parts"),
        parts_again=total("tx_parts_again"),
        results=total("rx_results"),
        results_twice=total("rx_results_twice"),
        wrong_results=total("rx_wrong_results"),
        refused_parts=total("rx_parts_refused"),
        added_by_hosts=total("rx_parts"),
        added_by_switches=sum(
            counts.dropped.get(IN_SUM, 0) for counts in outcome.switches.values()
        ),
    )


def _stalls(experiment: Experiment, outcome: Outcome) -> tuple[Stall, ...] | None:
    """Why messages did not arrive, if some did not."""
    resent = _total(outcome, "retransmitted_packets") / max(1, _total(outcome, "tx_data_packets"))
    is_final = experiment.scenario.transport.delivery is Delivery.UUD  # what was cut is lost
    cut = _total(outcome, "rx_cut_packets") if is_final else 0
    lost = _drops(experiment, outcome).total + cut
    return (
        stalls(experiment, outcome, experiment.schedule.messages(), resent=resent, lost=lost)
        or None
    )


def _link_use(
    link: Link, experiment: Experiment, outcome: Outcome
) -> tuple[res.LinkUse, res.LinkUse]:
    """A link's two directions, upwards (away from the hosts) first."""
    port = outcome.switches[link.b].port(link.b_port)
    rate_bps = experiment.cable(link).rate_bps
    # Switches count what a packet was when it came; what is cut leaves as less.
    cut = sum(
        each.bytes - experiment.scenario.trim.size * each.packets for each in port.cut.values()
    )
    sent = seen.Traffic(port.sent.packets, port.sent.bytes - cut)

    def use(name: str, carried: seen.Traffic) -> res.LinkUse:
        span_ns = max(1, outcome.end_ns)
        return res.LinkUse(
            name=name,
            packets=carried.packets,
            bytes=carried.bytes,
            utilisation=round(carried.bytes * 8 * 1e9 / rate_bps / span_ns, 6),
            max_queue_bytes=outcome.max_queue_bytes.get(name),
        )

    return use(link.up, port.received), use(link.down, sent)

"""What a run found out, and the files it is kept in.

``result.json`` holds the figures (times in fabric nanoseconds; what does not apply is absent),
``flows.csv`` one line a message, ``work.csv`` what hosts computed and when, ``timeseries.csv`` what
links carried, how long their queues were and what held them up over time, ``buffers.csv`` what
switches held, ``pauses.csv`` the first pauses one by one, and ``ways.csv`` when connections left
ways and came back to them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from lab.results import conservation
from lab.results import outcome as seen
from lab.results.alone import Alone
from lab.results.cluster import ClusterResult, cluster_result
from lab.results.inference import InferenceResult, inference_result
from lab.results.losses import price
from lab.results.outcome import Note, Outcome, PauseNote, PortCounts, Stock, WayNote
from lab.results.part import Part, Percentiles, percentiles
from lab.results.stalls import Stall, stalls
from lab.scenario.experiment import Experiment
from lab.scenario.faults import Told, told
from lab.scenario.model import Scenario
from lab.scenario.translate import acks_may_be_lost
from params.link import Replay
from topologies import Link, Node, NodeKind
from traffic.collectives import NEVER
from traffic.endpoint import counted_at
from traffic.measures import JobMeasure, Measures

SCHEMA = "closlab.result/1"
RESULT = "result.json"  # what it is kept in
REPORT = "report.html"  # what `views/report` shows it in
CAUSES = "causes.json"  # what was found out when somebody asked why: `causes.py`
RECEIVER = "receive_buffer_full"  # of a host that is slower than its link
CUT = "link_cut"  # frames that were under way in a link when it was cut
CORRUPTED = "corrupted"  # on a bad cable: who received them saw a wrong FCS
HALTED = "host_halted"  # what came to a host that stood still


class Step(Part):
    """One step of a job."""

    start_ns: int
    end_ns: int | None = None
    compute_ns: int  # averaged over the ranks
    comm_ns: int


class CollectiveResult(Part):
    """A collective; of several the one that took longest."""

    op: str
    algorithm: str
    bytes: int
    algbw_gbps: float | None = None
    busbw_gbps: float | None = None


class Flows(Part):
    """All messages together."""

    count: int
    completed: int
    failed: int
    bytes: int  # of those that completed
    fct_ns: Percentiles | None = None
    slowdown: Percentiles | None = None  # how much longer than alone in an empty fabric


class Drops(Part):
    """Packets lost in the fabric, and why."""

    total: int
    by_reason: dict[str, int]
    by_switch: dict[str, int]
    price: str | None = None  # what lossless classes lost by the scenario's choice, in words


class Ecn(Part):
    """Marks."""

    marked_packets: int


class PauseOfClass(Part):
    """What paused one class of one direction of a link."""

    xoff_frames: int
    paused_ns: int


class Pause(Part):
    """What paused one direction of a link."""

    xoff_frames: int
    paused_ns: int  # of its classes together
    by_class: dict[int, PauseOfClass] | None = None  # where several classes are lossless

    @property
    def longest_ns(self) -> int:
        """How long the class stood still that did so longest: of a run it is at most all."""
        return max(
            (each.paused_ns for each in (self.by_class or {}).values()), default=self.paused_ns
        )


class Pfc(Part):
    """Pause frames that switches sent, and what these and those of hosts did."""

    xoff_frames: int
    xon_frames: int
    stray_xoff_frames: int = 0  # of those, for a priority that may lose: there should be none
    paused_ns: int
    by_link: dict[str, Pause]
    storms: dict[str, int] = {}  # how often the watchdog let go a queue, by where it leads


class Credits(Part):
    """What went by credits."""

    grants: int  # words of credits sent by switches
    questions: int  # words of how much was spent, by switches and hosts: none where nothing is lost
    waits: int  # times at which a class had something to send and no credits
    waited_ns: int  # and for how long, all together
    by_link: dict[str, int]  # of that, by the direction of a link
    strange: int  # words that nobody can have said, at switches and hosts
    uncovered: int  # packets that came without credit


class Replayed(Part):
    """What one end of a link that tries again did."""

    replayed_frames: int
    timeouts: int


class Llr(Part):
    """What links between switches sent again."""

    spoilt_frames: int  # that came with a wrong FCS
    replayed_frames: int
    answers: int  # sent, those included
    gaps: int  # that named something missing
    timeouts: int
    unfit_frames: int  # that came again, or out of turn
    strange_frames: int  # that make no sense on such a link
    full: int  # times at which a port stood still, because no more could be kept
    by_link: dict[str, Replayed]


class Trim(Part):
    """Packets cut to their headers; all of these arrived, or found no room further on."""

    cut_packets: int
    cut_bytes: int  # that were cut off
    by_class: dict[int, int]  # by the class they had
    by_link: dict[str, int]  # by the direction of the link they were to be sent into
    arrived_packets: int  # at hosts, which answer UET's by a NACK
    known_packets: int  # but those whose whole had come before
    lost_packets: int


class Roce(Part):
    """What the endpoints counted."""

    data_packets: int
    data_bytes: int
    retransmitted_packets: int
    naks: int
    cnps: int
    timeouts: int
    out_of_order_packets: int
    qp_errors: int
    lost_acks: int | None = None  # in a class that may lose what its data's class may not


class LinkUse(Part):
    """One direction of a link: what the far end's switch received, or a host was sent."""

    name: str
    packets: int
    bytes: int
    utilisation: float
    max_queue_bytes: int | None = None  # at the port that feeds it


class HopTelemetry(Part):
    """What one switch said of the packets that carried telemetry."""

    count: int
    latency_ns: Percentiles | None = None
    queue_bytes: Percentiles | None = None


class Telemetry(Part):
    """What telemetry reports told, of all hops together and of each switch."""

    reports: int
    mtu_exceeded: int | None = None  # of these, packets without room for every hop's words
    hop_latency_ns: Percentiles | None = None
    queue_bytes: Percentiles | None = None
    by_switch: dict[str, HopTelemetry]


class Amount(Part):
    """Frames and their bytes."""

    frames: int
    bytes: int


class ClassBooks(Part):
    """What became of one class: ``received + made`` is all the rest, as was checked."""

    received: Amount
    made: Amount | None = None  # by switches: pause frames, reports
    changed_bytes: int | None = None  # by headers that switches added or took away
    left: Amount
    dropped: dict[str, Amount] = {}
    held: Amount | None = None  # when the run ended


class Conservation(Part):
    """Where every frame went, by class: in all switches together, and in all links."""

    switches: dict[str, ClassBooks]
    links: dict[str, ClassBooks] | None = None  # of an engine that sees into them


class Rerouting(Part):
    """What became of routes after a fault, in the machine's time: that is what daemons go by."""

    at_ns: int
    what: str
    # From when it had begun: what switches are told to lose they lose once they are told.
    first_s: float | None = None  # until the first switch was told other routes
    last_s: float | None = None  # and until the last of them was, before the next fault
    switches: int = 0
    entries: int = 0  # of their tables


class Control(Part):
    """How switches found their ways by themselves."""

    kind: str
    routed_s: float  # of the machine's time, until all of them knew all ways
    routes: int
    faults: tuple[Rerouting, ...] = ()

    def told(self) -> Iterator[str]:
        """The same, in sentences."""
        yield (
            f"{self.kind.upper()} had found all {self.routes:,} routes after "
            f"{self.routed_s:.2f} s of this machine's time"
        )
        for fault in self.faults:
            if fault.last_s is None:
                yield f"{fault.what}: no route changed"
            else:
                which = f"{fault.switches} switch{'es' if fault.switches > 1 else ''}"
                yield f"{fault.what}: {which} went another way, the last after {fault.last_s:.2f} s"


class Fidelity(Part):
    """Whether the run can be believed."""

    late_p99_ns: int
    ok: bool
    note: str | None = None


class Hand(Part):
    """What somebody did who watched."""

    at_ns: int
    what: str


class Cost(Part):
    """What something costs, by the same run without it; without a time, that does not end."""

    of: str  # in words
    whom: str = ""  # a part of what goes on; nothing: the whole run
    took_ns: int | None = None
    without_ns: int | None = None


class JobResult(Part):
    """One job of several; without times if it did not come to its end."""

    jct_ns: int | None = None
    gpu_utilisation: float | None = None


class Result(Part):
    """A run's result."""

    schema_: str = SCHEMA
    scenario: Scenario
    engine: str
    switch: str
    seed: int
    dilation: float
    clock: Literal["fabric"] = "fabric"  # whose time it is
    provenance: dict[str, str]
    ended: str | None = None  # why the run is not whole
    duration_ns: int
    jct_ns: int | None = None
    steps: tuple[Step, ...] | None = None
    gpu_utilisation: float | None = None
    collective: CollectiveResult | None = None
    cluster: ClusterResult | None = None  # of jobs that arrive and wait
    jobs: dict[str, JobResult] | None = None  # of each, if there are several and none waits
    inference: InferenceResult | None = None  # of requests that are served
    flows: Flows
    stalls: tuple[Stall, ...] | None = None  # why messages did not arrive, if some did not
    cost: Cost | None = None  # in the simulator, where the scenario asks what something costs
    parts: dict[str, Flows] | None = None  # the same of each part of the traffic, if it has several
    drops: Drops
    ecn: Ecn
    pfc: Pfc
    credits: Credits | None = None  # where classes go by them
    llr: Llr | None = None  # where links try again
    trim: Trim | None = None  # where switches were to trim
    roce: Roce
    telemetry: Telemetry | None = None
    links: tuple[LinkUse, ...]
    by_hand: tuple[Hand, ...] | None = None  # what somebody did to it who watched
    control: Control | None = None  # none: a controller tells switches their routes
    conservation: Conservation | None = None  # none: of switches that keep no books
    fidelity: Fidelity

    def figure(self, key: str) -> float | None:
        """What stands at a place such as ``flows.fct_ns.p50``; None where it does not apply."""
        found: Any = self
        for name in key.split("."):
            found = None if found is None else getattr(found, name)
        return None if found is None else cast("float", found)

    def content(self) -> dict[str, Any]:
        """What ``result.json`` holds."""
        content = self.model_dump(mode="json", exclude_none=True)
        return {"schema": content.pop("schema_"), **content}


def save(result: Result, experiment: Experiment, outcome: Outcome, out: Path) -> None:
    """Write the files of a run."""
    (out / RESULT).write_text(json.dumps(result.content(), indent=2) + "\n")
    is_kept = experiment.scenario.measures.flows
    _write_csv(
        out / "flows.csv",
        ("src", "dst", "bytes", "complete", "start_ns", "fct_ns", "slowdown", "step", "what"),
        map(_with_completeness, flow_rows(experiment, outcome)) if is_kept else None,
    )
    _write_csv(
        out / "work.csv",
        ("host", "start_ns", "end_ns", "step", "what"),
        tuple(work_rows(experiment, outcome)) or None if is_kept else None,
    )
    _write_csv(out / "timeseries.csv", Note._fields, outcome.notes or None)
    _write_csv(out / "buffers.csv", Stock._fields, outcome.stocks or None)
    _write_csv(out / "pauses.csv", PauseNote._fields, outcome.pauses or None)
    _write_csv(out / "ways.csv", WayNote._fields, outcome.ways or None)


def _write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]] | None) -> None:
    """Write a table; without rows see to it that there is none, of an earlier run either."""
    if rows is None:
        path.unlink(missing_ok=True)
        return
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)


def flow_rows(
    experiment: Experiment, outcome: Outcome
) -> Iterator[tuple[str, str, int, int | None, int | None, float | None, int, str]]:
    """Of every message: from, to, bytes, when it began, how long it took and how many times as long
    as alone, if it did and was whole; step and activity."""
    schedule, timeline = experiment.schedule, outcome.timeline
    hosts = experiment.fabric.hosts
    alone = Alone(experiment)
    for number in _messages(experiment):
        src, dst = hosts[schedule.src[number]], hosts[schedule.dst[number]]
        start, end = timeline.start_ns[number], timeline.end_ns[number]
        is_whole = NEVER not in (start, end)
        slowdown = (end - start) / alone.takes_ns(number) if is_whole else None
        yield (
            src.name,
            dst.name,
            schedule.size[number],
            start if start != NEVER else None,
            end - start if is_whole else None,
            None if slowdown is None else round(slowdown, 3),
            *_purpose(experiment, number),
        )


def _with_completeness(row: Sequence[object]) -> Sequence[object]:
    src, dst, size, start_ns, fct_ns, *rest = row
    return src, dst, size, int(fct_ns is not None), start_ns, fct_ns, *rest


def work_rows(experiment: Experiment, outcome: Outcome) -> Iterator[tuple[str, int, int, int, str]]:
    """What hosts did for themselves, where it took time."""
    schedule, timeline = experiment.schedule, outcome.timeline
    for number, (src, dst) in enumerate(zip(schedule.src, schedule.dst, strict=True)):
        start, end = timeline.start_ns[number], timeline.end_ns[number]
        is_wait = schedule.activities[schedule.activity[number]].kind == "wait"
        if src == dst and schedule.delay_ns[number] and not is_wait and NEVER not in (start, end):
            yield experiment.fabric.hosts[src].name, start, end, *_purpose(experiment, number)


def _purpose(experiment: Experiment, number: int) -> tuple[int, str]:
    """The step and the activity a transfer belongs to."""
    schedule = experiment.schedule
    activity = schedule.activities[schedule.activity[number]]
    return activity.step, activity.name


def _messages(experiment: Experiment) -> Iterator[int]:
    """The ids of transfers that cross the fabric."""
    schedule = experiment.schedule
    ends = zip(schedule.src, schedule.dst, strict=True)
    return (number for number, (src, dst) in enumerate(ends) if src != dst)


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
) -> Result:
    """Put a run's result together from what was seen of it."""
    alone = Alone(experiment)
    parts: dict[str, list[int]] = {}
    for number in _messages(experiment):
        parts.setdefault(_part_of(experiment, number), []).append(number)
    measures = Measures(
        experiment.schedule, outcome.timeline, alone.alpha_ns, alone.payload_rate_gbps
    )
    job = max(measures.jobs, key=lambda job: job.jct_ns or 0, default=None)
    served = inference_result(experiment, outcome.timeline)
    return Result(
        scenario=outcome.scenario or experiment.scenario,
        engine=engine,
        switch=switch,
        seed=experiment.scenario.seed,
        dilation=outcome.dilation,
        provenance=provenance,
        ended=outcome.ended,
        duration_ns=outcome.end_ns,
        jct_ns=job.jct_ns if job else None,
        steps=_steps(job),
        # GPUs that write several answers at once are not busy by a share of their time.
        gpu_utilisation=job.gpu_utilisation or None if job and not served else None,
        collective=_collective(measures),
        cluster=cluster_result(experiment, outcome.timeline),
        jobs=_jobs(measures) if experiment.workload.cluster is None else None,
        inference=served,
        flows=_flows(_messages(experiment), experiment, outcome, alone),
        stalls=_stalls(experiment, outcome),
        parts={name: _flows(each, experiment, outcome, alone) for name, each in parts.items()}
        if len(parts) > 1
        else None,
        drops=_drops(experiment, outcome),
        ecn=Ecn(marked_packets=sum(port.marked for _, _, port in _ports(outcome))),
        pfc=_pfc(experiment, outcome),
        credits=_credits(experiment, outcome) if experiment.settings.link.cbfc else None,
        llr=_llr(experiment, outcome) if experiment.settings.link.llr is not Replay.NONE else None,
        trim=_trim(experiment, outcome) if experiment.scenario.trim.enabled else None,
        roce=_roce(outcome, experiment.scenario),
        telemetry=_telemetry(outcome),
        links=tuple(
            use for link in experiment.fabric.links for use in _link_use(link, experiment, outcome)
        ),
        by_hand=tuple(Hand(**hand._asdict()) for hand in outcome.by_hand) or None,
        control=_control(outcome, experiment.scenario),
        conservation=_conservation(outcome),
        fidelity=Fidelity(
            late_p99_ns=outcome.fidelity.late_p99_ns,
            ok=outcome.fidelity.ok,
            note=outcome.fidelity.note,
        ),
    )


def _control(outcome: Outcome, scenario: Scenario) -> Control | None:
    """What became of routes, by fault."""
    routed = outcome.routed
    if routed is None:
        return None
    faults = [event for event in told(scenario) if event.at_ns <= outcome.end_ns]
    ends = [event.at_ns for event in faults[1:]] + [outcome.end_ns + 1]

    def rerouting(fault: Told, end_ns: int) -> Rerouting:
        begun_ns = routed.begun.get(fault.at_ns, fault.at_ns)
        after = [change for change in routed.changes if begun_ns <= change.time_ns < end_ns]
        seconds = [(change.time_ns - begun_ns) * outcome.dilation / 1e9 for change in after]
        return Rerouting(
            at_ns=fault.at_ns,
            what=fault.what,
            first_s=round(min(seconds), 4) if after else None,
            last_s=round(max(seconds), 4) if after else None,
            switches=len({change.switch for change in after}),
            entries=sum(change.entries for change in after),
        )

    return Control(
        kind=scenario.control.kind,
        routed_s=round(routed.took_s, 3),
        routes=routed.routes,
        faults=tuple(map(rerouting, faults, ends)),
    )


def _conservation(outcome: Outcome) -> Conservation | None:
    if not outcome.books:
        return None
    return Conservation(
        switches=_class_books(line for kept in outcome.books.values() for line in kept.lines),
        links=_class_books(line for kept in outcome.link_books.values() for line in kept)
        if outcome.link_books
        else None,
    )


def _class_books(lines: Iterable[seen.Line]) -> dict[str, ClassBooks]:
    books = conservation.Books(lines)

    def amount(of: seen.Traffic) -> Amount:
        return Amount(frames=of.packets, bytes=of.bytes)

    def here(book: str, class_: int, *, made: bool | None = None) -> seen.Traffic:
        return conservation.total(
            each
            for key, each in books.by_key(book).items()
            if key.class_ == class_ and made in (None, key.made)
        )

    def some(of: seen.Traffic) -> Amount | None:
        return amount(of) if of != seen.NOTHING else None

    reasons = sorted(map(str, books.of("dropped")))
    dropped = {reason: books.at("dropped", reason) for reason in reasons}
    return {
        conservation.CLASS_NAMES[class_]: ClassBooks(
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


def _telemetry(outcome: Outcome) -> Telemetry | None:
    tally = outcome.telemetry
    if tally is None:
        return None
    hops = {name: tally.hops[name] for name in sorted(tally.hops)}
    return Telemetry(
        reports=tally.reports,
        mtu_exceeded=tally.mtu_exceeded or None,
        hop_latency_ns=percentiles([ns for hop in hops.values() for ns in hop.latency_ns]),
        queue_bytes=percentiles([size for hop in hops.values() for size in hop.queue_bytes]),
        by_switch={
            name: HopTelemetry(
                count=len(hop.latency_ns),
                latency_ns=percentiles(hop.latency_ns),
                queue_bytes=percentiles(hop.queue_bytes),
            )
            for name, hop in hops.items()
        },
    )


def _jobs(measures: Measures) -> dict[str, JobResult] | None:
    found = {
        job.job: JobResult(jct_ns=job.jct_ns, gpu_utilisation=job.gpu_utilisation or None)
        for job in measures.jobs
    }
    return found if len(found) > 1 else None


def _steps(job: JobMeasure | None) -> tuple[Step, ...] | None:
    if job is None:
        return None
    return tuple(
        Step(
            start_ns=step.start_ns,
            end_ns=step.end_ns,
            compute_ns=round(step.compute_ns),
            comm_ns=step.comm_ns,
        )
        for step in job.steps
    )


def _collective(measures: Measures) -> CollectiveResult | None:
    found = [c for c in measures.collectives if c.op != "barrier" and c.end_ns is not None]
    if not found:
        return None
    longest = max(found, key=lambda c: (c.end_ns or 0) - c.start_ns)
    return CollectiveResult(
        op=longest.op,
        algorithm=longest.algorithm,
        bytes=longest.bytes,
        algbw_gbps=longest.algbw_gbps,
        busbw_gbps=longest.busbw_gbps,
    )


def _flows(
    messages: Iterable[int], experiment: Experiment, outcome: Outcome, alone: Alone
) -> Flows:
    times, slowdowns, count, size = [], [], 0, 0
    for number in messages:
        count += 1
        start, end = outcome.timeline.start_ns[number], outcome.timeline.end_ns[number]
        if NEVER not in (start, end):
            size += experiment.schedule.size[number]
            times.append(end - start)
            slowdowns.append((end - start) / alone.takes_ns(number))
    return Flows(
        count=count,
        completed=len(times),
        failed=count - len(times),
        bytes=size,
        fct_ns=percentiles(times),
        slowdown=percentiles(slowdowns),
    )


def _drops(experiment: Experiment, outcome: Outcome) -> Drops:
    by_reason: dict[str, int] = {}
    for counts in outcome.switches.values():
        for reason, packets in counts.dropped.items():
            by_reason[reason] = by_reason.get(reason, 0) + packets
    by_switch = {
        switch.name: sum(counts.dropped.values()) for switch, counts in outcome.switches.items()
    }
    discards = sum(counters.get(seen.HOST_DISCARDS, 0) for counters in outcome.endpoints.values())
    if discards:
        by_reason[RECEIVER] = discards
    lines = [line for kept in outcome.link_books.values() for line in kept]
    halted = sum(line.packets for line in lines if line.of == HALTED)
    if halted:
        by_reason[HALTED] = halted
    if cut := sum(outcome.cut_frames.values()) - halted:
        by_reason[CUT] = cut
    spoilt = (line for kept in outcome.books.values() for line in kept.lines)
    corrupted = sum(line.packets for line in spoilt if line.book in conservation.CORRUPTED)
    if corrupted:
        by_reason[CORRUPTED] = corrupted
    return Drops(
        total=sum(by_reason.values()),
        by_reason=by_reason,
        by_switch={name: packets for name, packets in by_switch.items() if packets},
        price=price(experiment, outcome.switches, outcome.endpoints),
    )


def _ports(outcome: Outcome) -> Iterator[tuple[Node, int, PortCounts]]:
    for switch, counts in outcome.switches.items():
        for number, port in counts.ports.items():
            yield switch, number, port


def _pfc(experiment: Experiment, outcome: Outcome) -> Pfc:
    """Who was paused, and for how long: by the direction whose sender had to stop."""
    by_link: dict[str, Pause] = {}
    storms: dict[str, int] = {}
    lossless = experiment.settings.lossless

    def note(
        direction: str, frames: int, xoff: Mapping[int, int], paused: Mapping[int, int]
    ) -> None:
        if frames or any(paused.values()):
            classes = {
                each: PauseOfClass(xoff_frames=xoff.get(each, 0), paused_ns=paused.get(each, 0))
                for each in sorted(lossless)
            }
            by_link[direction] = Pause(
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
    return Pfc(
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


def _credits(experiment: Experiment, outcome: Outcome) -> Credits:
    """Who granted what, and who waited for it."""
    by_link = {}
    for switch, number, port in _ports(outcome):
        link = experiment.fabric.link_at(switch, number)
        by_link[link.direction(switch)] = port.waited_ns
        if link.a.kind is NodeKind.HOST:
            by_link[link.direction(link.a)] = outcome.endpoints[link.a].get("credit_waited_ns", 0)
    ports = [port for _, _, port in _ports(outcome)]
    dropped = [counts.dropped for counts in outcome.switches.values()]
    return Credits(
        grants=sum(port.grants for port in ports),
        questions=sum(port.questions for port in ports) + _total(outcome, "tx_credit_questions"),
        waits=sum(port.waits for port in ports) + _total(outcome, "credit_waits"),
        waited_ns=sum(by_link.values()),
        by_link={name: waited_ns for name, waited_ns in by_link.items() if waited_ns},
        strange=sum(each.get("foreign_credit", 0) for each in dropped)
        + _total(outcome, "rx_foreign_credits"),
        uncovered=sum(each.get("no_credit", 0) for each in dropped),
    )


def _llr(experiment: Experiment, outcome: Outcome) -> Llr:
    """What links sent again, and why."""
    total = dict.fromkeys(seen.TRIES, 0)
    by_link = {}
    for switch, number, port in _ports(outcome):
        for name, count in port.tries.items():
            total[name] += count
        again, late = (port.tries.get(name, 0) for name in ("replayed", "timeouts"))
        if again or late:
            name = experiment.fabric.link_at(switch, number).direction(switch)
            by_link[name] = Replayed(replayed_frames=again, timeouts=late)
    return Llr(
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


def _trim(experiment: Experiment, outcome: Outcome) -> Trim:
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
    return Trim(
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


def _roce(outcome: Outcome, scenario: Scenario) -> Roce:
    total = partial(_total, outcome)
    dropped = sum(sum(counts.dropped.values()) for counts in outcome.switches.values())
    # Some may still be under way at the end; those were not dropped.
    lost_acks = min(dropped, total("tx_acks") - total("rx_acks") - total("rx_refused"))
    return Roce(
        data_packets=total("tx_data_packets"),
        data_bytes=total("tx_data_bytes"),
        retransmitted_packets=total("retransmitted_packets"),
        naks=total("tx_naks"),
        cnps=total("np_cnp_sent"),
        timeouts=total("local_ack_timeout_err"),
        out_of_order_packets=total("out_of_sequence"),
        qp_errors=total("qp_errors"),
        lost_acks=max(0, lost_acks) if acks_may_be_lost(scenario) else None,
    )


def _stalls(experiment: Experiment, outcome: Outcome) -> tuple[Stall, ...] | None:
    """Why messages did not arrive, if some did not."""
    resent = _total(outcome, "retransmitted_packets") / max(1, _total(outcome, "tx_data_packets"))
    lost = _drops(experiment, outcome).total
    return stalls(experiment, outcome, _messages(experiment), resent=resent, lost=lost) or None


def _link_use(link: Link, experiment: Experiment, outcome: Outcome) -> tuple[LinkUse, LinkUse]:
    """A link's two directions, upwards (away from the hosts) first."""
    port = outcome.switches[link.b].port(link.b_port)
    rate_bps = experiment.cable(link).rate_bps
    # Switches count what a packet was when it came; what is cut leaves as less.
    cut = sum(
        each.bytes - experiment.scenario.trim.size * each.packets for each in port.cut.values()
    )
    sent = seen.Traffic(port.sent.packets, port.sent.bytes - cut)

    def use(name: str, carried: seen.Traffic) -> LinkUse:
        span_ns = max(1, outcome.end_ns)
        return LinkUse(
            name=name,
            packets=carried.packets,
            bytes=carried.bytes,
            utilisation=round(carried.bytes * 8 * 1e9 / rate_bps / span_ns, 6),
            max_queue_bytes=outcome.max_queue_bytes.get(name),
        )

    return use(link.up, port.received), use(link.down, sent)

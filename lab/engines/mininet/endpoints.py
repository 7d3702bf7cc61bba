"""Endpoints on the emulator's hosts: started together, watched, and asked what happened."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

from lab.engines.mininet.emulation import Emulation
from lab.engines.mininet.machines import Machines
from lab.engines.mininet.report_cables import Collector
from lab.errors import RunError
from lab.machine.patience import Patience
from lab.machine.sched_priority import lend_sched_priority
from lab.machine.speed import slowness
from lab.machine.supervisor import how_ended, supervisor
from lab.progress import Stage, Stages
from lab.results.losses import lost_frames, overrun
from lab.results.outcome import (
    HOST_PAUSED_NS,
    INTERRUPTION,
    Fidelity,
    Gist,
    Outcome,
    SwitchCounts,
)
from lab.results.watch import but_for, longest_queues
from lab.results.ways import way_notes
from lab.scenario.controls import algorithm_file
from lab.scenario.experiment import Experiment
from lab.scenario.faults import (
    Agenda,
    Deny,
    Event,
    Forget,
    Halt,
    Pace,
    Rekey,
    Replan,
    Restart,
    Spoil,
    Turn,
    cut_links,
)
from lab.scenario.live_actions import as_it_was
from params.data import Data
from params.quantity import duration
from topologies import Node
from traffic.collectives import Timeline
from traffic.endpoint import (
    Delivery,
    EndpointError,
    EndpointProcess,
    EndpointReport,
    GiveUp,
    HostSettings,
    TransferKind,
    TransferState,
)

HEAD_START_NS = 300_000_000  # until all of them have read when to begin
_MAX_REAL_S = 600.0  # that a run may last, on a machine that is not slow
_AFTER_ERROR_S = 2.0  # until what else is to come has come, once a queue pair gave up
_SELDOM = 0.01  # of the times when something was due
_BEHIND = 0.25  # of a run: what happens so late makes another run of it
_POLL_S = 0.02
_UNDER_WAY = 3  # frames in a link that neighbours say to each other at once, at most
_SHOW_S = 0.25
_DOUBT_S = 0.5  # between two looks at whether frames were lost
_QUIET_S = 10.0  # in which nothing came to a host: then it is told
_SILENT_S = 2.0  # the same, where datagrams alone were sent: then it is over


def run(
    experiment: Experiment,
    emulation: Emulation,
    program: Path | Sequence[str],
    stages: Stages,
    collector: Collector | None = None,
    enough: threading.Event | None = None,
    *,
    hurries: bool = False,
    machines: Machines | None = None,
) -> Measured:
    """Let every host carry out its plan, or begin to, until somebody has enough of it.

    In a hurry only until it is certain that what comes of it is not to be believed. On
    several machines all hosts begin and end together.
    """
    dilation = emulation.switches.setting.dilation
    try:
        with ExitStack() as stack:
            hosts = _start(experiment, emulation, program, dilation, stages, stack)
            emulation.switches.forget()
            before = emulation.switches.counts()
            books_before, _ = emulation.switches.settled_books()
            with stages("Sending") as stage:
                course = _Course(
                    experiment, emulation, hosts, dilation, stage, collector, enough,
                    hurries=hurries, warn=stages.caution, machines=machines,
                )  # fmt: skip
                ended = course.run()
            if machines is not None:
                ended = machines.have_ended(ended)
            emulation.to_happen = course.to_happen
            after = emulation.switches.last_counts()
            reports = {host: process.stop() for host, process in hosts.items()}
            if machines is not None:
                machines.meet()
            books, is_settled = emulation.switches.settled_books()
    except EndpointError as error:
        emulation.switches.check()
        raise RunError(f"an endpoint failed: {error}") from None
    timeline = _timeline(experiment, reports)
    is_noted = experiment.scenario.measures.series
    watch, since = emulation.switches.watch, (course.epoch_ns, dilation)
    notes = watch.notes(*since) if is_noted else ()
    switches = {switch: counts.since(before[switch]) for switch, counts in after.items()}
    endpoints = {
        host: report.counters
        | {name: report.paused_ns.get(each, 0) for each, name in HOST_PAUSED_NS.items()}
        for host, report in reports.items()
    }
    settled = None
    if ended is not None:  # what was under way came to adapters that had gone: kernels answered it
        is_settled = False
        settled = settled_before_the_end(emulation, before, endpoints, ended)
    if emulation.control is not None:  # whose frames were under way while both ends were counted
        is_settled = False
    end_ns = finish_ns(reports.values()) if ended is None else course.now_ns
    by_hand = tuple(emulation.journal.by_hand(course.epoch_ns, dilation))
    outcome = Outcome(
        timeline=timeline,
        switches=switches,
        endpoints=endpoints,
        end_ns=end_ns,
        dilation=dilation,
        max_queue_bytes=longest_queues(notes),
        books={switch: kept.since(books_before[switch]) for switch, kept in books.items()},
        is_settled=is_settled,
        notes=notes,
        stocks=watch.stocks(*since, experiment.settings.lossless) if is_noted else (),
        pauses=watch.pauses(*since) if is_noted else (),
        ways=way_notes(experiment, {host: report.ways for host, report in reports.items()}),
        routed=emulation.control.outcome(course.epoch_ns, dilation) if emulation.control else None,
        by_hand=by_hand,
        scenario=as_it_was(experiment.scenario, experiment.fabric, by_hand) if by_hand else None,
        ended=ended,
        stands=[stand for report in reports.values() for stand in report.stands],
    )
    return Measured(
        outcome,
        settled,
        Doubts(
            but_for(_SELDOM, sum((report.late for report in reports.values()), Counter())),
            but_for(_SELDOM, emulation.switches.late(course.epoch_ns)),
            course.lost,
            behind_ns=course.behind_ns if course.behind_ns > _BEHIND * end_ns else 0,
            because=_befallen(course.died, supervisor.stood),
        ),
    )


class Measured(Data):
    """A run, or a machine's part of one, before all ends of cables have been asked."""

    outcome: Outcome
    settled: Mapping[Node, SwitchCounts] | None  # counters, of one that ended early
    doubts: Doubts

    def judged(
        self, experiment: Experiment, names: Mapping[str, str] = MappingProxyType({})
    ) -> Outcome:
        """The outcome, with whether to believe it; what directions of links are to be called."""
        outcome, doubts = self.outcome, self.doubts
        missing = (
            lost_frames(experiment.fabric, outcome.switches, outcome.endpoints)
            if outcome.ended is None
            else lost_before_the_end(experiment, self.settled, outcome.endpoints)
        )
        if experiment.scenario.control.kind == "bgp":  # whose frames were under way meanwhile
            missing = {way: lost for way, lost in missing.items() if lost > _UNDER_WAY}
        doubts = replace(
            doubts,
            lost={}
            if experiment.scenario.faults
            else {names.get(way, way): n for way, n in {**doubts.lost, **missing}.items()},
            overrun=overrun(experiment, outcome.switches, outcome.endpoints),
        )
        return replace(
            outcome,
            cut_frames=_cut_frames(experiment, missing),
            fidelity=doubts.fidelity(most_late_ns(experiment), int(outcome.dilation)),
        )


def by_hand(experiment: Experiment, emulation: Emulation, since_ns: int) -> Outcome:
    """What programs and hands did to a fabric while the hosts sent nothing, since a moment of the
    machine's monotonic clock."""
    dilation = emulation.switches.setting.dilation
    watch, since = emulation.switches.watch, (since_ns, dilation)
    watch.skim()
    is_noted = experiment.scenario.measures.series
    notes = watch.notes(*since) if is_noted else ()
    done = tuple(emulation.journal.by_hand(since_ns, dilation))
    return Outcome(
        timeline=Timeline((), ()),
        switches=emulation.switches.last_counts(),
        endpoints={host: {} for host in experiment.fabric.hosts},
        end_ns=round((time.monotonic_ns() - since_ns) / dilation),
        dilation=dilation,
        max_queue_bytes=longest_queues(notes),
        notes=notes,
        stocks=watch.stocks(*since, experiment.settings.lossless) if is_noted else (),
        pauses=watch.pauses(*since) if is_noted else (),
        by_hand=done,
        scenario=as_it_was(experiment.scenario, experiment.fabric, done) if done else None,
    )


def _start(
    experiment: Experiment,
    emulation: Emulation,
    program: Path | Sequence[str],
    dilation: int,
    stages: Stages,
    stack: ExitStack,
) -> dict[Node, EndpointProcess]:
    pids = emulation.host_pids()
    hosts: dict[Node, EndpointProcess] = {}
    with stages("Starting endpoints", len(emulation.here.hosts)) as stage:
        for rank, host in enumerate(experiment.fabric.hosts):
            if host.name not in pids:
                continue
            hosts[host] = stack.enter_context(
                EndpointProcess(
                    program,
                    HostSettings(
                        interface=",".join(map(host.interface, experiment.fabric.ports(host))),
                        dilation=dilation,
                        delay_ns=max(1, experiment.settings.host_link.delay_ns),
                        notes=emulation.journal.notes_of(host.name),
                        arrival_times=_arrival_times(experiment, emulation, host),
                    ),
                    experiment.plan(rank, carries_payload=True),
                    prefix=("mnexec", "-a", str(pids[host.name])),
                    patience=_patience(host, stages),
                )
            )
        for host, process in hosts.items():
            lend_sched_priority(process.pid)
            supervisor.know(process.pid, f"the endpoint of {host}")
            process.wait_ready()
            for port, rate_bps in experiment.port_rates(host).items():
                process.set_link(rate_bps, port)
            stage.advance()
        stage.note = f"time passes {dilation:,} times slower"
    return hosts


def _arrival_times(experiment: Experiment, emulation: Emulation, host: Node) -> tuple[int, ...]:
    """What a host's program is told of the memory in which it tells what is due."""
    arrival_times = emulation.switches.setting.arrival_times
    if arrival_times is None or experiment.scenario.transport.endpoint == "scapy":
        return ()
    ports = experiment.fabric.ports(host)
    return (
        arrival_times.file,
        *(place for port in ports for place in arrival_times.of(host, port)),
    )


def _patience(host: Node, stages: Stages) -> Callable[[int], GiveUp]:
    """Wait for a host's program for as long as it gets on."""
    still = partial(stages.still_waiting, f"the endpoint of {host}")
    return lambda pid: Patience([pid], tell=still).is_over


class _Course:
    """A run under way."""

    def __init__(
        self,
        experiment: Experiment,
        emulation: Emulation,
        hosts: dict[Node, EndpointProcess],
        dilation: int,
        stage: Stage,
        collector: Collector | None,
        enough: threading.Event | None = None,
        *,
        hurries: bool = False,
        warn: Callable[[str], object] = lambda _text: None,
        machines: Machines | None = None,
    ) -> None:
        self._experiment = experiment
        self._hurries = hurries
        self._machines = machines
        self._warn = warn
        self._doubt_at = 0.0
        self._missed_before: Counter[str] = Counter()
        self.lost: dict[str, int] = {}  # by direction of a link, frames known to be, by now
        self._enough = enough or threading.Event()
        self._collector = collector
        self._emulation = emulation
        self._hosts = hosts
        self._dilation = dilation
        self._stage = stage
        self._limit_ns = experiment.scenario.limit_ns
        self._slowness = slowness()
        self._agenda = Agenda(experiment.scenario, experiment.fabric)
        self._helm = experiment.helm()
        self._show_at = 0.0
        self._seen: tuple[int, Gist | None] = 0, None
        self._look_at = 0.0
        self._moved = 0, -1  # when something came to a host last, and how much had by then
        self.epoch_ns = 0  # when the hosts begin
        self.died: str | None = None  # who, of those that it relied on
        self.behind_ns = 0  # how late had happened what was to

    def run(self) -> str | None:
        """Start all, and wait for all; why that was not the end, if it was not."""
        self._let_happen(0)
        self._missed_before = self._emulation.switches.watch.missed()
        self.epoch_ns = (
            time.monotonic_ns() + round(HEAD_START_NS * self._slowness)
            if self._machines is None
            else self._machines.begin()
        )
        for process in self._hosts.values():
            process.start(self.epoch_ns)
        gave_up_at: float | None = None
        try:
            while not self._is_done():
                if self._enough.wait(self._nap_s()):
                    return INTERRUPTION
                now_ns = self.now_ns
                self._show(now_ns)
                if silence := self._silence():
                    return silence
                self._let_happen(now_ns)
                if late := self._limit_reached(now_ns):
                    return late
                if died := self._failure():
                    self.died = died
                    return died
                if wild := next((p.wild for p in self._hosts.values() if p.wild), None):
                    from lab.machine.algorithm import ending  # which few runs need

                    return ending(algorithm_file(self._experiment.scenario.transport) or "", *wild)
                if doubt := self._doubt():
                    return doubt
                if self._machines is not None and self._machines.ended:
                    return self._machines.ended
                if gave_up_at is None and any(p.qp_errors for p in self._hosts.values()):
                    gave_up_at = time.monotonic()
                if gave_up_at and time.monotonic() - gave_up_at > _AFTER_ERROR_S:
                    return "queue pairs went to error"
        except KeyboardInterrupt:
            return INTERRUPTION
        return None

    def _is_done(self) -> bool:
        """Whether all hosts are, those of other machines too."""
        is_done = all(process.poll() for process in self._hosts.values())
        return self._machines.are_done(is_done=is_done) if self._machines else is_done

    @property
    def to_happen(self) -> tuple[Event, ...]:
        """What has not happened yet."""
        return self._agenda.left

    @property
    def now_ns(self) -> int:
        """The fabric's time."""
        return max(0, time.monotonic_ns() - self.epoch_ns) // self._dilation

    def _limit_reached(self, now_ns: int) -> str | None:
        """Which limit is reached, if any is: the scenario's, or how long an emulator may take."""
        if now_ns > self._limit_ns:
            return f"the limit of {self._limit_ns:,} ns was reached"
        if now_ns * self._dilation > _MAX_REAL_S * self._slowness * 1e9:
            return (
                f"an emulated run lasts at most {_MAX_REAL_S * self._slowness:g} s, and after "
                f"these only {duration(now_ns)} of the fabric's time had passed; "
                "--engine sim has no such limit"
            )
        return None

    def _nap_s(self) -> float:
        """Until the next event, or the next look."""
        next_ns = self._agenda.next_ns
        if next_ns is None:
            return _POLL_S
        due_ns = self.epoch_ns + next_ns * self._dilation
        return min(_POLL_S, max(0, (due_ns - time.monotonic_ns()) / 1e9))

    def _failure(self) -> str | None:
        """What has died, if anything has."""
        for host, process in self._hosts.items():
            if process.has_died:
                return f"the endpoint of {host} died{how_ended(process.exit_code)}"
        control = self._emulation.control
        return (
            self._emulation.switches.failure
            or supervisor.failure
            or (control.failure if control else None)
        )

    def _doubt(self) -> str | None:
        """Why a run that hurries is to be made again, once that is certain; who does not is told.

        Who waits for what was lost waits for very long: as NCCL does, 4.3 s of the fabric's time.
        """
        if self.lost or self._experiment.scenario.faults or time.monotonic() < self._doubt_at:
            return None
        self._doubt_at = time.monotonic() + _DOUBT_S
        self.lost = self._lost_by_now()
        if not self.lost:
            return None
        what = _describe_lost(self.lost)
        if self._hurries:
            return what
        self._warn(
            f"[yellow]{what[0].upper()}{what[1:]}[/]: this run is not to be believed any more, and "
            "who waits for what was lost may wait for long. It goes on; Ctrl-C ends it."
        )
        return None

    def _lost_by_now(self) -> dict[str, int]:
        """By direction of a link, the frames for which processes had no room when they came."""
        fabric = self._experiment.fabric
        lost = self._emulation.switches.watch.missed() - self._missed_before
        for host, process in self._hosts.items():
            ports = [*fabric.ports(host)]
            for number, frames in process.lost.items():
                link = fabric.link_at(host, ports[number])
                lost[link.direction(link.b if link.a == host else link.a)] += frames
        return dict(lost)

    def _show(self, now_ns: int) -> None:
        """Tell how things are, now and then, where somebody watches."""
        if self._stage.is_watched and time.monotonic() >= self._show_at:
            self._show_at = time.monotonic() + _SHOW_S
            seen = self._emulation.switches.watch.gist()
            if seen is not None:
                (at_ns, snapshot), (before_ns, before) = seen, self._seen
                took_ns = (at_ns - before_ns) / self._dilation
                self._stage.tell(f"{duration(now_ns)}  {snapshot.text(before, took_ns)}")
                self._seen = seen

    def _silence(self) -> str | None:
        """Why it is over, if nothing comes to any host and nothing will; else say once, after long,
        what may be waited for."""
        if time.monotonic() < self._look_at:
            return None
        self._look_at = time.monotonic() + _DOUBT_S
        if (seen := self._emulation.switches.watch.gist()) is None:
            return None
        (at_ns, snapshot), (since_ns, before) = seen, self._moved
        quiet_ns = at_ns - since_ns
        if snapshot.into_hosts != before:
            self._moved, quiet_ns = (at_ns, snapshot.into_hosts), 0
        is_uud = self._experiment.scenario.transport.delivery is Delivery.UUD
        most_ns = self._longest_ns() if is_uud else _QUIET_S * self._slowness * 1e9
        is_silent = quiet_ns > most_ns and not (is_uud and self.to_happen)
        if self._machines is not None:
            is_silent = self._machines.are_silent(is_silent=is_silent)
        if is_silent and is_uud:
            return "what was lost will never come: datagrams (uud) are sent once"
        if is_silent:
            self._look_at = math.inf
            self._warn(f"[yellow]{self._quiet(quiet_ns)}[/] It goes on; Ctrl-C ends it.")
        return None

    def _longest_ns(self) -> float:
        """How long hosts may be silent here and yet go on: as long as the longest they compute."""
        computes_ns = max(self._experiment.schedule.delay_ns, default=0) * self._dilation
        return computes_ns + _SILENT_S * self._slowness * 1e9

    def _quiet(self, quiet_ns: int) -> str:
        rto_ns = self._experiment.scenario.transport.longest_rto_ns
        here = duration(rto_ns * self._dilation)
        until = f"until their time-out, {duration(rto_ns)} of the fabric's time and {here} here"
        return (
            f"Nothing has come to any host for {duration(quiet_ns)}: hosts compute, or wait for "
            f"what was lost {until if rto_ns else 'for ever: transport.timeout is 0'}."
        )

    def _let_happen(self, now_ns: int) -> None:
        for event in self._agenda.due(now_ns):
            let_happen(event, self._experiment, self._emulation, self._hosts, self._collector)
            if self.epoch_ns:
                self.behind_ns = max(self.behind_ns, self.now_ns - event.at_ns)
        # By the scenario, or by somebody at the prompt.
        for host, number, denied in self._helm.news(*self._emulation.avoided):
            if host in self._hosts:
                self._hosts[host].deny(number, denied)


def let_happen(
    event: Event,
    experiment: Experiment,
    emulation: Emulation,
    hosts: Mapping[Node, EndpointProcess],
    collector: Collector | None = None,
) -> None:
    """Do to the fabric, and to the endpoints on it, what a scenario has happen."""
    match event:
        case Turn(link=link, is_up=is_up):
            emulation.set_up(link, is_up=is_up)
            if link.a in hosts:
                hosts[link.a].set_up(link.a_port, is_up=is_up)
        case Pace(link=link, share=share, senders=senders):
            cable = experiment.cable(link).slowed(share)
            emulation.switches.set_cable(link, cable, senders)
            for sender in hosts.keys() & set(senders):
                hosts[sender].set_link(cable.rate_bps, link.port_of(sender))
        case Spoil() as news:
            emulation.switches.spoil(news)
        case Restart(switch=switch):
            emulation.restart(switch)
        case Forget(switch=switch):
            assert emulation.control is not None
            emulation.control.restart(switch, "bgpd")
        case Halt(host=None, is_halted=is_halted):
            if collector is not None:
                collector.halt(is_halted=is_halted)
        case Halt(host=Node() as host, is_halted=is_halted, for_good=for_good):
            supervisor.halt(hosts[host].pid, is_halted=is_halted)
            hosts[host].halt(is_halted=is_halted, for_good=for_good)
        case Deny() | Rekey() as word:
            _tell(word, experiment, hosts)
        case Replan() as news:
            emulation.change(news.applied, dead=news.dead, at_ns=news.at_ns)


def _tell(
    word: Deny | Rekey, experiment: Experiment, hosts: Mapping[Node, EndpointProcess]
) -> None:
    """What a controller has to say to hosts, as far as they are there."""
    if isinstance(word, Rekey):
        for host, line in experiment.key_lines(word.word):
            if host in hosts:
                hosts[host].tell(line)
    elif word.host in hosts:
        hosts[word.host].deny(word.queue_pair, word.entropies)


def let_rest_happen(experiment: Experiment, emulation: Emulation) -> None:
    """At once, what was still to happen to cables and switches when the hosts had ended."""
    left, emulation.to_happen = emulation.to_happen, ()
    for event in left:
        if not isinstance(event, Halt):
            let_happen(event, experiment, emulation, {})


def settled_before_the_end(
    emulation: Emulation,
    before: Mapping[Node, SwitchCounts],
    endpoints: Mapping[Node, Mapping[str, int]],
    ended: str,
) -> dict[Node, SwitchCounts] | None:
    """Counters of a run that ended early, once all on its way has arrived, if it comes to that.

    A host that died does not say what it sent.
    """
    are_alive = all("tx_packets" in counted for counted in endpoints.values())
    waits = are_alive and ended != INTERRUPTION
    settled = emulation.switches.settled_counts() if waits else None
    if settled is None:
        return None
    return {switch: counts.since(before[switch]) for switch, counts in settled.items()}


def lost_before_the_end(
    experiment: Experiment,
    settled: Mapping[Node, SwitchCounts] | None,
    endpoints: Mapping[Node, Mapping[str, int]],
) -> dict[str, int]:
    """Frames lost between processes in a run that ended early.

    Hosts have stopped and take in nothing more: what went to them is not asked for.
    """
    if settled is None:
        return {}
    into_hosts = {link.down for link in experiment.fabric.links if not link.joins_switches}
    lost = lost_frames(experiment.fabric, settled, endpoints)
    return {name: frames for name, frames in lost.items() if name not in into_hosts}


def _cut_frames(experiment: Experiment, missing: Mapping[str, int]) -> dict[str, int]:
    """Of frames that are missing those of links that faults cut, by direction."""
    fabric, faults = experiment.fabric, experiment.scenario.faults
    cut = {link.name for fault in faults for link in cut_links(fault, fabric)}
    ways = [way for link in fabric.links if link.name in cut for way in link.directions]
    return {way: missing[way] for way in ways if way in missing}


def finish_ns(reports: Iterable[EndpointReport]) -> int:
    """When the last transfer ended at both of its ends: its sender hears of it a trip later."""
    ends = (each.end_ns for report in reports for each in report.transfers.values())
    return max((end for end in ends if end is not None), default=0)


def _timeline(experiment: Experiment, reports: dict[Node, EndpointReport]) -> Timeline:
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for report in reports.values():
        for number, transfer in report.transfers.items():
            if transfer.kind is not TransferKind.RECEIVE and transfer.start_ns is not None:
                starts[number] = transfer.start_ns
            is_done = transfer.state is TransferState.DONE
            if transfer.kind is not TransferKind.SEND and is_done and transfer.end_ns is not None:
                ends[number] = transfer.end_ns
    return Timeline.gather(len(experiment.schedule), starts, ends)


class Doubts(Data):
    """What speaks against a run."""

    hosts_late_ns: int
    switches_late_ns: int
    lost: Mapping[str, int]  # frames, between processes, by direction of a link
    overrun: int = 0
    behind_ns: int = 0  # so late what was to happen did, if that is much
    because: str | None = None  # what befell processes, where it is not the machine
    # What is amiss between machines, and how many times slower time would have to pass.
    apart: Mapping[str, int] = field(default_factory=dict)

    def fidelity(self, most_ns: int, dilation: int) -> Fidelity:
        """A run is believed if nobody was often later than a packet takes to cross a link.

        And if nothing was lost but what the fabric program dropped, which drops nothing for want
        of headroom as long as everybody stops when told to.
        """
        late = {"hosts were": self.hosts_late_ns, "switches were": self.switches_late_ns}
        late_ns = max(late.values())
        is_short = self.lost or self.overrun or self.behind_ns
        slower = max(2 if is_short else 1, -(-late_ns // most_ns), *self.apart.values())
        if slower == 1:
            return Fidelity(late_p99_ns=late_ns)
        what = [f"{who} {late_ns:,} ns late" for who, late_ns in late.items() if late_ns > most_ns]
        if self.lost:
            what.append(_describe_lost(self.lost))
        if self.overrun:
            what.append(f"{self.overrun:,} packets came after the pause that should have kept them")
        if self.behind_ns:
            what.append(f"a fault, or its end, came {self.behind_ns:,} ns late")
        what += self.apart
        if self.because is not None:
            return Fidelity(late_ns, ok=False, note=f"{self.because}: {' and '.join(what)}")
        return Fidelity(
            late_ns,
            ok=False,
            note=f"the machine could not keep up: {' and '.join(what)}. "
            f"Let others finish, or slow time down further: --dilation {dilation * slower}",
        )


def _befallen(died: str | None, stood: Iterable[str]) -> str | None:
    """What somebody did to processes of the run, of which all else follows."""
    befallen = [*([died] if died else []), *(f"{each} was stopped for a while" for each in stood)]
    return ", ".join(befallen) or None


def _describe_lost(lost: Mapping[str, int]) -> str:
    where = ", ".join(sorted(lost))
    return f"{sum(lost.values()):,} frames were lost between processes ({where})"


def most_late_ns(experiment: Experiment) -> int:
    """What a packet takes to cross a host's link."""
    link = experiment.settings.host_link
    return link.delay_ns + experiment.scenario.link.mtu * 8 // max(1, link.rate_bps // 10**9)

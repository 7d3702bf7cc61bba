"""The simulator as an engine: everything in this process, under a virtual clock.

It runs in slices, between which it shows how far it is, does what is to happen to links, and may be
interrupted: what was measured until then is kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from controller import switch_plans, thresholds
from controller.tables import Plans
from lab.engines import Audience, RunOptions
from lab.engines.convergence import strays
from lab.engines.sim.checkpoint import Checkpoints, Moment
from lab.engines.sim.control import SimulatedSwitches, lines_of
from lab.engines.sim.improvement import Improvement
from lab.engines.sim.simulation import Simulation, SimulationError
from lab.engines.sim.skipping import Counted, Cuts
from lab.errors import RunError
from lab.machine import program
from lab.machine.memory import without_collections
from lab.machine.paths import FABRIC_PROGRAM
from lab.progress import Stage, Stages
from lab.results.losses import overrun
from lab.results.outcome import INTERRUPTION, Cut, Fidelity, Gist, Look, Outcome
from lab.results.telemetry import Tally
from lab.results.ways import way_notes
from lab.scenario.controls import algorithm_file
from lab.scenario.experiment import Experiment
from lab.scenario.faults import Agenda, Deny, Halt, Pace, Rekey, Replan, Restart, Spoil, Turn
from lab.scenario.live_actions import ByHand
from lab.scenario.model import captured
from lab.scenario.translate import REPORT_PORT
from params.data import Data
from params.link import Replay
from switch.dataplane import Program
from topologies import Node

if TYPE_CHECKING:
    from lab.engines.sim.observer import Observer
    from lab.engines.sim.ranks import Ranks
    from lab.machine.algorithm import Wildness

_SLICE_EVENTS = 50_000  # some thirty milliseconds' work
_REPORTS_COST = 20  # by how much slices are shorter if every packet is reported
SIMULATING = "Simulating"  # the stage
_NOTES_INTERVAL_NS = 1000
_MAX_NOTES = 100_000
_MAX_LOOKS = 64  # at what waits as queue pairs fail


@contextmanager
def bring_up(
    experiment: Experiment, options: RunOptions, stages: Stages
) -> Iterator[SimulatedFabric]:
    """Build it; it is released with the context."""
    if experiment.scenario.transport.endpoint != "core":
        raise RunError(
            f"transport.endpoint: the simulator has no {experiment.scenario.transport.endpoint} "
            "endpoint, for that one runs in real time",
            "Leave it out or make it core; --engine mininet runs either.",
        )
    if experiment.scenario.control.kind != "p4runtime":
        raise RunError(
            "control.kind: BGP goes by the machine's clock, and the simulator has its own",
            "Say --engine mininet, or --set control.kind=p4runtime.",
        )
    if options.ranks is not None:
        _refuse_ranks(experiment, options)
    with ExitStack() as stack:
        try:
            checkpoints = None
            if options.checkpoint_s is not None:
                checkpoints = Checkpoints(experiment, options, stages)
            source = program.source_in(options.p4)
            switches, simulation = build(
                *(experiment, options.out, stages, stack, source, options.threads),
                soon=checkpoints is None,
                checkpoints=checkpoints,
                ranks=options.ranks,
            )
            _record(simulation, experiment, options)
            keeps = options.reports is not None
            if options.ranks is not None:
                options.ranks.agree()
            yield SimulatedFabric(
                *(experiment, switches, simulation, stages, keeps, checkpoints, options.ranks)
            )
        except SimulationError as error:
            raise RunError(str(error)) from None


def _refuse_ranks(experiment: Experiment, options: RunOptions) -> None:
    """What several processes cannot do together."""
    if options.checkpoint_s is not None:
        raise RunError(
            "--checkpoint keeps one process' memory, and this run has several ranks",
            "Leave it out, or run without mpirun.",
        )
    if captured(experiment.scenario, experiment.fabric):
        raise RunError(
            "one process keeps packets (--pcap, measures.pcap), and this run has several ranks",
            "Leave that out, or run without mpirun.",
        )


class SimulatedFabric(Data):
    """Everything in place; to be measured once, for what happened does not unhappen."""

    experiment: Experiment
    switches: SimulatedSwitches
    simulation: Simulation
    stages: Stages
    keeps_reports: bool = False
    checkpoints: Checkpoints | None = None
    ranks: Ranks | None = None

    def measure(
        self, audience: Audience | None = None, cuts: Sequence[Cut] = (), *, lots: bool = True
    ) -> Outcome:
        """Simulate it to its end; where cuts are, periods are left out, if they do repeat.

        ``lots``: whether it would matter what switches draw meanwhile.
        """
        tally = None
        if self.experiment.settings.telemetry.report_port:
            tally = Tally.of(self.experiment.fabric, keeps=self.keeps_reports)
        fabric = self.experiment, self.switches, self.simulation
        crossed = Cuts(cuts, self.switches, self.simulation, lots=lots)
        outcome = _run(
            *(*fabric, self.stages, tally, audience, self.checkpoints, crossed, self.ranks)
        )
        return crossed.whole(outcome, self.experiment)

    def strays(self, end_ns: int) -> list[str]:
        """What switches have and should not, or lack, once it was measured."""
        last_ns = max(end_ns, self.simulation.happened_ns)  # which nobody's end may have waited for
        read = self.switches.read_plan
        return [*strays(self.experiment, last_ns, self.switches.schema, read)]


def _run(
    experiment: Experiment,
    switches: SimulatedSwitches,
    simulation: Simulation,
    stages: Stages,
    tally: Tally | None,
    audience: Audience | None,
    checkpoints: Checkpoints | None,
    cuts: Cuts,
    ranks: Ranks | None,
) -> Outcome:
    measures = experiment.scenario.measures
    interval_ns = (measures.series_ns or _NOTES_INTERVAL_NS) if measures.series else None
    settings = experiment.settings
    watch = switches.watch(experiment.pausable, settings.lossless, has_credits=settings.link.cbfc)
    simulation.sample(watch, interval_ns, _MAX_NOTES)
    with stages(SIMULATING) as stage, Improvement(switches) as improvement:
        course = _Course(
            *(experiment, switches, simulation, stage, tally),
            *(audience, improvement, checkpoints, cuts, ranks),
        )
        ended = course.run()
        if ranks is not None:
            ranks.tell_traffic(course.took_s)
            stage.note += f"; {ranks.size} ranks, {ranks.traffic}"
    stands = tuple(simulation.stands()) if course.has_stalled else ()
    with without_collections():
        outcome = _outcome(experiment, switches, simulation, ended, ranks)
    return replace(
        outcome,
        stands=stands,
        looks=tuple(course.looks),
        telemetry=course.tally,
        by_hand=tuple(course.by_hand),
        scenario=course.scenario if course.by_hand else None,
    )


def build(
    experiment: Experiment,
    out: Path,
    stages: Stages,
    stack: ExitStack,
    source: Path = FABRIC_PROGRAM,
    threads: int = 1,
    *,
    soon: bool = False,
    checkpoints: Checkpoints | None = None,
    ranks: Ranks | None = None,
) -> tuple[SimulatedSwitches, Simulation]:
    """Everything in place, and nothing begun; what is built is released with the stack.

    If it is wanted ``soon``, a program that is new is built quickly: see `Improvement`.
    """
    with without_collections():
        return _build(experiment, out, stages, stack, source, threads, soon, checkpoints, ranks)


def _build(
    experiment: Experiment,
    out: Path,
    stages: Stages,
    stack: ExitStack,
    source: Path,
    threads: int,
    soon: bool,
    checkpoints: Checkpoints | None,
    ranks: Ranks | None,
) -> tuple[SimulatedSwitches, Simulation]:
    fabric = experiment.fabric
    with stages("Compiling the fabric program"):
        built = program.build(out, source, experiment.program_parts, soon=soon)
        if checkpoints is not None:
            checkpoints.place(Program.load(built.json.read_bytes()).library)
    with stages("Building switches", len(fabric.switches)) as stage:
        switches = stack.enter_context(
            SimulatedSwitches(
                *(fabric.switches, built, experiment.switch_seed),
                cpu_port=REPORT_PORT,
                soon=soon,
            )
        )
        plans = Plans(fabric, experiment.settings)
        for switch in fabric.switches:
            switches.tell(switch, plans.parts(switch))
            stage.advance()
        stage.note = f"{len(fabric.switches)} switches, {len(fabric.hosts)} hosts"
    simulation = stack.enter_context(
        Simulation(
            *(fabric, switches.planes, experiment.cable),
            seed=experiment.scenario.seed,
            threads=threads,
            ranks=ranks,
        )
    )
    with stages("Giving hosts their plans", len(fabric.hosts)) as stage:
        for rank, host in enumerate(fabric.hosts):
            simulation.set_plan(host, experiment.plan(rank, carries_payload=False))
            simulation.set_rates(host, experiment.port_rates(host))
            stage.advance()
        _let_hosts_try_again(simulation, experiment)
        stage.note = f"{len(experiment.schedule):,} transfers"
    return switches, simulation


def _let_hosts_try_again(simulation: Simulation, experiment: Experiment) -> None:
    settings = experiment.settings
    for link in experiment.fabric.links if settings.link.llr_hosts else ():
        if not link.joins_switches:
            replay = thresholds.replay(experiment.cable(link), settings.max_frame)
            is_selective = settings.link.llr is Replay.SELECTIVE
            simulation.try_again(link.a, link.a_port, replay, selective=is_selective)


def _record(simulation: Simulation, experiment: Experiment, options: RunOptions) -> None:
    """Record the links asked for, both directions."""
    folder = options.out / "pcaps"
    for link in captured(experiment.scenario, experiment.fabric):
        folder.mkdir(exist_ok=True)
        for name in (link.up, link.down):
            simulation.record(name, folder / f"{name.replace('>', '-')}.pcap")


class _Course:
    """A run under way."""

    def __init__(
        self,
        experiment: Experiment,
        switches: SimulatedSwitches,
        simulation: Simulation,
        stage: Stage,
        tally: Tally | None,
        audience: Audience | None,
        improvement: Improvement,
        checkpoints: Checkpoints | None,
        cuts: Cuts,
        ranks: Ranks | None,
    ) -> None:
        self._checkpoints = checkpoints
        self._cuts = cuts
        self._ranks = ranks
        self._improvement = improvement
        self._experiment = experiment
        self._settings = experiment.settings
        self._known = Replan(0, frozenset(), {}, experiment.settings.losses)
        self._switches = switches
        self._simulation = simulation
        self._stage = stage
        self._limit_ns = experiment.scenario.limit_ns
        self._wildness: Wildness | None = None
        if (file := algorithm_file(experiment.scenario.transport)) is not None:
            from lab.machine.algorithm import Wildness  # which few runs need

            self._wildness = Wildness(file)
        self._agenda = Agenda(experiment.scenario, experiment.fabric)
        self._helm = experiment.helm()
        self._seen: tuple[int, Gist | None] = 0, None
        self._began = time.perf_counter()
        self._transfers = 1
        self._done_before, self._delivered_before = 0.0, 0  # by whom this goes on from
        self._is_collected = True
        telemetry = experiment.settings.telemetry
        self.tally = tally
        share = telemetry.share if telemetry.report_port else 0
        self._slice_events = round(_SLICE_EVENTS / (1 + _REPORTS_COST * share))
        self.scenario = experiment.scenario
        self.by_hand: list[ByHand] = []
        self.looks: list[Look] = []
        self.has_stalled = False
        self._audience: Observer | None = None
        if audience:
            from lab.engines.sim.observer import Observer  # which few runs have

            self._audience = Observer(audience, experiment, simulation, switches)

    def run(self) -> str | None:
        """Run to the end; why it is not the end of all transfers, if it is not."""
        ended = self._run()
        ended = self._wild or ended
        self.has_stalled = bool(ended or self.looks)
        if ended:
            self._see_waits()
        return ended

    @property
    def _wild(self) -> str | None:
        """What an algorithm that somebody brought did for which the run ends."""
        if self._wildness is None:
            return None
        said = self._wildness.said
        return (
            said if self._ranks is None else next(filter(None, self._ranks.everywhere(said)), None)
        )

    def _see_waits(self) -> None:
        """Keep what waits: of who gives up, or has to, it tells why."""
        self.looks.append(Look(self._simulation.now_ns, self._simulation.waits()))

    def _run(self) -> str | None:
        now_ns = self._begin()
        try:
            while self._simulation.open_transfers and now_ns < self._limit_ns:
                now_ns = self._slice()
                if self._wild:
                    return None  # it is said in the end
                is_waiting = self._simulation.open_transfers > 0
                if is_waiting and self._simulation.is_quiet and not self._agenda:
                    self._simulation.give_up()
                    self._look(now_ns, is_last=True)
                    return f"{self._simulation.open_transfers} transfers will never end"
            self._look(now_ns, is_last=True)
        except KeyboardInterrupt:
            if self._ranks is not None:
                raise  # others may be elsewhere
            return INTERRUPTION
        if self._simulation.open_transfers:
            return f"the limit of {self._limit_ns:,} ns was reached"
        return None

    def _begin(self) -> int:
        """Begin, or go on from where an earlier run of the same was; the time."""
        kept = self._checkpoints.begin() if self._checkpoints else None
        if self._checkpoints is None or kept is None:
            self._let_happen(0)
            self._simulation.start()
            self._transfers = max(1, self._simulation.open_transfers)
            return 0
        self._let_happen(kept.now_ns)  # as far as Python is concerned: what it comes to is kept
        self._checkpoints.bring(kept)
        self._simulation.arrived()
        self._switches.before = kept.before
        self.tally, self.looks, self._transfers = kept.tally, kept.looks, kept.transfers
        self._done_before = self._done
        self._delivered_before = self._simulation.account().delivered
        self._began = time.perf_counter()
        return kept.now_ns

    def _keep(self, now_ns: int) -> None:
        """Keep how far it is, if it is time to."""
        if self._checkpoints is not None and self._checkpoints.is_due:
            before = self._switches.before
            self._checkpoints.keep(Moment(now_ns, self._transfers, before, self.tally, self.looks))

    def _slice(self) -> int:
        next_ns = self._agenda.next_ns
        until_ns = self._limit_ns if next_ns is None else min(self._limit_ns, next_ns)
        if self._audience is not None:
            until_ns = min(until_ns, self._audience.next_ns)
        if (cut_ns := self._cuts.next_ns) is not None:
            until_ns = min(until_ns, cut_ns)
        self._simulation.run(until_ns, self._slice_events)
        now_ns = self._simulation.ended_ns
        if self._simulation.has_failed() and len(self.looks) < _MAX_LOOKS:
            self._see_waits()
        if self.tally is not None and self._is_collected:
            self._collect(self.tally)
        self._improvement.look()
        self._let_happen(now_ns)
        if now_ns == cut_ns:
            self._cuts.look(lambda: _counted(self._experiment, self._switches, self._simulation))
        self._show(now_ns)
        is_over = not self._simulation.open_transfers  # it will be looked at for the last time
        if self._audience is not None and now_ns >= self._audience.next_ns and not is_over:
            self._look(now_ns)
        self._keep(now_ns)
        return now_ns

    def _collect(self, tally: Tally) -> None:
        """Take the telemetry reports that wait, in the order of switches."""
        reports = [*self._switches.reports()]
        if self._ranks is not None:
            reports = sorted(chain(*self._ranks.at_first(reports)), key=itemgetter(0))
        for _, report in reports:
            tally.add(report)

    def _look(self, now_ns: int, *, is_last: bool = False) -> None:
        """Let the audience look, and do what it wishes."""
        if self._audience is None:
            return
        for wish in self._audience.look(self.scenario, now_ns, is_last=is_last):
            self.by_hand.append(ByHand(now_ns, str(wish)))
            self.scenario = wish.granted(self.scenario, now_ns)
            self._agenda.amend(self.scenario, now_ns)
            if wish.policy is not None:
                lb = self._settings.lb.but(policy=wish.policy)
                self._settings = replace(self._settings, lb=lb)
                self._replan(self._known)
        self._let_happen(now_ns)

    def _let_happen(self, now_ns: int) -> None:
        for event in self._agenda.due(now_ns):
            self._simulation.happened_ns = event.at_ns
            match event:
                case Turn(link=link, is_up=is_up):
                    self._simulation.set_up(link, is_up=is_up)
                case Pace(link=link, share=share, senders=senders):
                    cable = self._experiment.cable(link).slowed(share)
                    self._simulation.set_cable(link, cable, senders)
                case Spoil() as news:
                    self._simulation.spoil(news)
                case Restart(switch=switch):
                    self._switches.restart(switch, self._experiment.fabric.ports(switch), now_ns)
                    self._simulation.wake(switch)
                case Halt(host=None, is_halted=is_halted):
                    self._is_collected = not is_halted
                case Halt(host=Node() as host, is_halted=is_halted):
                    self._simulation.halt(host, is_halted=is_halted)
                case Deny(host=host, queue_pair=number, entropies=denied):
                    self._simulation.deny(host, number, denied)
                case Rekey(word=word):
                    for host, line in self._experiment.key_lines(word):
                        self._simulation.tell(host, line)
                case Replan() as news:
                    self._replan(news)
        if self._ranks is not None:
            self._simulation.settle()

    def _replan(self, news: Replan) -> None:
        self._known = news
        settings = news.applied(self._settings)
        plans = switch_plans(self._experiment.fabric, settings, news.dead)
        for switch in self._experiment.fabric.switches:
            self._switches.install(switch, plans[switch.name])
        for host, number, denied in self._helm.news(news.dead, news.drained):
            self._simulation.deny(host, number, denied)

    @property
    def _done(self) -> float:
        """Which share of all transfers is over."""
        return 1 - self._simulation.open_transfers / self._transfers

    @property
    def took_s(self) -> float:
        """How long it has been at it."""
        return max(1e-6, time.perf_counter() - self._began)

    def _show(self, now_ns: int) -> None:
        took_s = self.took_s
        delivered = self._simulation.account().delivered
        done, own = self._done, self._done - self._done_before
        left = f", {took_s * (1 - done) / own:.0f} s to go" if own > 0.02 and done < 1 else ""
        pace = (delivered - self._delivered_before) / took_s / 1e6
        self._stage.note = f"{now_ns / 1e6:.3f} ms, {delivered:,} packet-hops, {pace:.2f} M/s"
        if self._ranks is not None:
            self._stage.tell(f"{done:.0%}  {self._stage.note}{left}")
        elif self._stage.is_watched:
            (before_ns, before), snapshot = self._seen, self._simulation.gist()
            said = snapshot.text(before, now_ns - before_ns)
            self._stage.tell(f"{done:.0%}  {self._stage.note}{left}\n  {said}")
            self._seen = now_ns, snapshot


def _outcome(
    experiment: Experiment,
    switches: SimulatedSwitches,
    simulation: Simulation,
    ended: str | None,
    ranks: Ranks | None,
) -> Outcome:
    """Gather what happened."""
    fabric = experiment.fabric
    hosts = tuple(filter(simulation.owns, fabric.hosts))
    channels = {
        name: simulation.channel(name) for link in fabric.links for name in (link.up, link.down)
    }
    outcome = Outcome(
        timeline=simulation.timeline(hosts, len(experiment.schedule)),
        **_counted(experiment, switches, simulation),
        end_ns=simulation.ended_ns,
        max_queue_bytes={
            name: report.max_queue_bytes
            for name, report in channels.items()
            if report.max_queue_bytes
        },
        cut_frames={name: report.lost for name, report in channels.items() if report.lost},
        notes=tuple(simulation.samples()),
        stocks=tuple(simulation.stocks()),
        pauses=tuple(simulation.pauses()),
        ways=way_notes(experiment, {host: simulation.ways(host) for host in hosts}),
        ended=ended,
    )
    if ranks is not None:
        from lab.engines.sim.gather import gathered  # which few runs need

        outcome = gathered(outcome, fabric, ranks)
    lost = overrun(experiment, outcome.switches, outcome.endpoints)
    return replace(outcome, fidelity=_fidelity(lost))


def _counted(
    experiment: Experiment, switches: SimulatedSwitches, simulation: Simulation
) -> Counted:
    """What of an outcome only ever grows, of nodes that are simulated here."""
    fabric, now_ns, owns = experiment.fabric, simulation.now_ns, simulation.owns
    own = tuple(filter(owns, fabric.switches))
    names = (name for link in fabric.links for name in (link.up, link.down))
    return {
        "switches": {
            switch: switches.counts(switch, fabric.ports(switch), now_ns) for switch in own
        },
        "endpoints": {host: simulation.counters(host) for host in fabric.hosts if owns(host)},
        "books": {switch: switches.books(switch) for switch in own},
        "link_books": {name: lines_of(simulation.books(name)) for name in names},
    }


def _fidelity(lost: int) -> Fidelity:
    """In virtual time nobody is late, so what was computed to be lossless has to be."""
    if not lost:
        return Fidelity()
    return Fidelity(
        ok=False,
        note=f"{lost:,} packets of a lossless class found no headroom, though as much was computed "
        "as their links need: closlab's thresholds are wrong for this fabric",
    )

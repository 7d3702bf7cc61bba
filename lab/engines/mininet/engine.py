"""Mininet as an engine: namespaces, veths, switches and hosts under the real clock.

This module pulls in Mininet: it is imported only once that is known to be there, and runs inside a
sandbox.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import finsy as fy

from controller import Punt
from lab.engines import RunOptions
from lab.engines.convergence import astray, strays
from lab.engines.mininet import endpoints
from lab.engines.mininet.arrival_times import ArrivalTimes
from lab.engines.mininet.control import PUNTS_PER_S, ControlPlane, control_interfaces
from lab.engines.mininet.emulation import Emulation, PingResult
from lab.engines.mininet.hands import Hands
from lab.engines.mininet.machines import Machines
from lab.engines.mininet.nics import Nics
from lab.engines.mininet.report_cables import Collector, report_cables
from lab.engines.mininet.switches import KINDS, Setting, Switches
from lab.errors import RunError
from lab.machine.certificates import made
from lab.machine.memory import free_at_once
from lab.machine.native_host import endpoint_program
from lab.machine.program import BuiltProgram, source_in
from lab.machine.sched_priority import take_sched_priority
from lab.machine.speed import PROCESSORS, slowness
from lab.progress import Stages
from lab.results.outcome import Outcome
from lab.results.telemetry import Tally
from lab.scenario.experiment import Experiment
from lab.scenario.faults import dead_at, events_of
from lab.scenario.model import ALL_LINKS, captured
from lab.scenario.traffic import AllPairs
from lab.scenario.translate import REPORT_PORT, data_headers_bytes
from params.data import Data
from params.quantity import duration
from topologies import Fabric, Node
from traffic.collectives import ScheduleBuilder
from traffic.endpoint import SCAPY_PROGRAM
from traffic.jobs import Workload

_MAX_PATIENCE_S = 3600.0  # that sending may take on a slow machine, unless asked for
_SCAPY_PACKETS_PER_S = 500  # that all hosts together may send, where scapy builds and takes apart
_PROGRESS_S = 0.25  # between two looks, if only who watches wants to know


@contextmanager
def bring_up(
    experiment: Experiment, options: RunOptions, stages: Stages
) -> Iterator[EmulatedFabric]:
    """Emulate it, for as long as the context lasts."""
    take_sched_priority()
    free_at_once()
    fabric = experiment.fabric
    is_bgp = experiment.scenario.control.kind == "bgp"
    kind = KINDS[options.switch]
    dilation, hurries = _chosen_dilation(experiment, kind, stages, options)
    with stages("Compiling the fabric program"):
        built = kind.build_program(
            *(options.out, source_in(options.p4), stages.still_waiting, experiment.program_parts)
        )
        is_scapy = experiment.scenario.transport.endpoint == "scapy"
        hosts_program = SCAPY_PROGRAM if is_scapy else endpoint_program()
    with ExitStack() as stack:
        control, certificates = None, stack.enter_context(made()) if options.tls else None
        if is_bgp:
            control = _control_plane(experiment, options, stages)
            stack.callback(control.stop)
        needs_arrivals = kind.HURRIED_PACKETS_PER_S is not None and dilation > 1
        machines = options.machines
        here = fabric if machines is None else fabric.part(machines.nodes)
        arrival_times = stack.enter_context(ArrivalTimes(here)) if needs_arrivals else None
        setting = _setting(experiment, options, stages, built, dilation, here)
        switches = kind(replace(setting, certificates=certificates, arrival_times=arrival_times))
        settings = kind.configured(experiment.settings, dilation)
        if is_bgp:
            settings = replace(settings, punt=Punt(1e9 / PUNTS_PER_S / dilation))
        emulation = Emulation(fabric, switches, settings, control)
        stack.callback(emulation.take_down)
        with stages("Laying cables") as stage:
            stage.note = f"{len(here.hosts)} hosts, {len(here.links)} links"
            if machines is not None:
                machines.lay_cables(settings.max_frame)
            emulation.lay_cables()
            if switches.setting.reports:
                stack.enter_context(report_cables(here.switches))
        with stages("Starting switches") as stage:
            stage.note = switches.start()
        if control is not None:
            control.follow(switches.targets, settings)
        with stages("Installing routes", len(here.switches)) as stage:
            emulation.install_routes(stage.advance)
        if control is not None:
            _find_ways(control, stages)
        is_all_pairs = isinstance(experiment.scenario.traffic, AllPairs)
        if is_all_pairs and not options.prompt:  # there one pings by hand
            _ping(emulation, stages)
        nics = Nics(experiment, emulation, dilation)
        stack.callback(nics.unplug)
        hands, keeps = Hands(emulation, nics), options.reports is not None
        fabric_up = experiment, emulation, hosts_program, stages, hands, keeps
        yield EmulatedFabric(*fabric_up, hurries=hurries, machines=machines)


def _control_plane(experiment: Experiment, options: RunOptions, stages: Stages) -> ControlPlane:
    """Of switches that find their routes themselves."""
    return ControlPlane(
        experiment.fabric,
        experiment.scenario.control,
        options.out / "logs" / "frr",
        stages.still_waiting,
        experiment.scenario.topology.outside,
    )


def _find_ways(control: ControlPlane, stages: Stages) -> None:
    with stages("Finding ways by BGP", len(control.fabric.switches)) as stage:
        control.start()
        found = control.await_routes(stage.advance)
        stage.note = f"{found.routes} of them in {found.took_s:.1f} s"


def _setting(
    experiment: Experiment,
    options: RunOptions,
    stages: Stages,
    built: BuiltProgram,
    dilation: int,
    here: Fabric,
) -> Setting:
    """What switches are to know of it all."""
    scenario, settings, fabric = experiment.scenario, experiment.settings, experiment.fabric
    machines, cable = options.machines, experiment.port_cable
    measures = scenario.measures
    has_rooms = scenario.control.kind == "bgp"
    return Setting(
        here,
        built,
        logs=options.out / "logs",
        pcaps=options.out / "pcaps" if measures.pcap else None,
        captured=_captured_ports(experiment),
        cable=cable if machines is None else machines.shortened(cable),
        data_frame=scenario.link.mtu + data_headers_bytes(scenario),
        max_frame=settings.max_frame,
        dilation=dilation,
        notes_every_s=(measures.series_ns or 0) * dilation / 1e9
        if measures.series
        else _PROGRESS_S,
        reports=options.prompt or settings.telemetry.report_port is not None,
        seed_of=experiment.switch_seed,
        controls=partial(control_interfaces, fabric) if has_rooms else lambda _: {},
        still=stages.still_waiting,
    )


class EmulatedFabric(Data):
    """A fabric that is up; it may be measured as often as one likes, and used meanwhile."""

    experiment: Experiment
    emulation: Emulation
    hosts_program: Path | Sequence[str]
    stages: Stages
    hands: Hands
    keeps_reports: bool = False
    hurries: bool = False
    machines: Machines | None = None

    def measure(self, enough: threading.Event | None = None) -> Outcome:
        """Let the hosts carry out their plans, in real time, or until somebody has enough of it."""
        return self.measured(enough).judged(self.experiment)

    def measured(self, enough: threading.Event | None = None) -> endpoints.Measured:
        """The same; of several machines each has its part."""
        experiment, emulation = self.experiment, self.emulation
        emulation.journal.note("traffic", f"{experiment.scenario.name}: the hosts are let send")
        keeps = self.keeps_reports
        with _telemetry(emulation, keeps=keeps) as (tally, collector):
            measured = endpoints.run(
                experiment, emulation, self.hosts_program, self.stages, collector, enough,
                hurries=self.hurries, machines=self.machines,
            )  # fmt: skip
        emulation.journal.note("traffic", f"{experiment.scenario.name}: the hosts have sent")
        return replace(measured, outcome=replace(measured.outcome, telemetry=tally))

    def by_hand(self, since_ns: int) -> tuple[Experiment, Outcome]:
        """What was done to it since then while the hosts sent nothing: an experiment without
        messages."""
        nothing = Workload(ScheduleBuilder(len(self.experiment.fabric.hosts)).build(), {}, {})
        idle = replace(self.experiment, workload=nothing)
        return idle, endpoints.by_hand(idle, self.emulation, since_ns)

    def let_go(self, end_ns: int) -> int:
        """Let happen to cables and switches what was still to; when the last of it was due."""
        experiment = self.experiment
        endpoints.let_rest_happen(experiment, self.emulation)
        events = events_of(experiment.scenario, experiment.fabric)
        return max((end_ns, *(event.at_ns for event in events)))

    def strays(self, end_ns: int) -> list[str]:
        """What switches have and should not, or lack, once all faults have let go that do.

        Switches that find their ways themselves are given the time they need.
        """
        experiment, switches = self.experiment, self.emulation.switches
        end_ns = self.let_go(end_ns)
        schema = fy.P4Schema(switches.setting.program.p4info)
        control = self.emulation.control
        if control is None:
            return [*strays(experiment, end_ns, schema, switches.read_plan, self.emulation.groups)]
        try:
            control.await_routes_without(dead_at(experiment.scenario, experiment.fabric, end_ns))
        except RunError as error:
            return [error.message]
        plans = control.plans()
        wanted = {switch: plans[switch.name] for switch in experiment.fabric.switches}
        return [*astray(wanted, schema, switches.read_plan)]


def _captured_ports(experiment: Experiment) -> frozenset[tuple[Node, int]]:
    """Where links whose frames are kept end; with all of them, reports are kept too."""
    scenario, fabric = experiment.scenario, experiment.fabric
    ends = {
        end
        for link in captured(scenario, fabric)
        for end in ((link.a, link.a_port), (link.b, link.b_port))
    }
    if ALL_LINKS in scenario.measures.pcap:
        ends |= {(switch, REPORT_PORT) for switch in fabric.switches}
    return frozenset(ends)


@contextmanager
def _telemetry(
    emulation: Emulation, *, keeps: bool
) -> Iterator[tuple[Tally | None, Collector | None]]:
    """Count what reports tell meanwhile, if any are to be sent."""
    if emulation.settings.telemetry.report_port is None:
        yield None, None
        return
    tally = Tally.of(emulation.fabric, emulation.tick_ns, keeps=keeps)
    collector = Collector(emulation.here, tally.add)
    try:
        yield tally, collector
    finally:
        collector.close()


def _chosen_dilation(
    experiment: Experiment, kind: type[Switches], stages: Stages, options: RunOptions
) -> tuple[int, bool]:
    """How much slower than the fabric's time passes, and whether that is in a hurry."""
    if options.dilation:
        return options.dilation, False
    if not options.hurry:
        return fitting_dilation(experiment, kind, stages, options.leisure), False
    hurried, why_not = hurried_dilation(experiment, kind), hindrance(experiment, kind)
    if why_not is None:
        return hurried, True
    dilation = fitting_dilation(experiment, kind, stages, options.leisure)
    if slowness() == 1 and hurried < dilation:  # else it was told
        stages.console.print(
            f"Time passes {dilation:,} times slower than the fabric's, not {hurried:,}: {why_not}.",
            highlight=False,
            soft_wrap=True,
        )
    return dilation, False


def usual_dilation(experiment: Experiment, kind: type[Switches]) -> int:
    """How much slower than the fabric's the emulator's time has to pass.

    So much that all hosts sending at once are no more than the switches and their neighbours can
    carry on two processors; a packet's report is one more.
    """
    is_scapy = experiment.scenario.transport.endpoint == "scapy"
    return _dilation(experiment, _SCAPY_PACKETS_PER_S if is_scapy else kind.PACKETS_PER_S)


def hurried_dilation(experiment: Experiment, kind: type[Switches]) -> int:
    """The same if it is enough that whoever takes part has its turn before something is due."""
    return _dilation(experiment, kind.HURRIED_PACKETS_PER_S or kind.PACKETS_PER_S)


def _dilation(experiment: Experiment, packets_per_s: int) -> int:
    telemetry = experiment.settings.telemetry
    reports = telemetry.share if telemetry.report_port is not None else 0
    return max(1, math.ceil(experiment.packets_per_s * (1 + reports) / packets_per_s))


def hindrance(experiment: Experiment, kind: type[Switches]) -> str | None:
    """Why a run may not hurry, if it may not.

    It may where all that takes part knows when what is due, and need not be on time to the instant:
    the hosts' program and our switches do. What the lab does meanwhile, faults and what follows
    from them, takes its real time, and so do a control plane of the switches' own and scapy: the
    quicker the fabric's time passes, the longer that is. And the pace is one for two processors of
    a machine that is not slow.
    """
    scenario = experiment.scenario
    hindrances = {
        "these switches are not told what is due": kind.HURRIED_PACKETS_PER_S is None,
        "faults, and what follows from them, take real time": bool(scenario.faults),
        "BGP takes real time": scenario.control.kind == "bgp",
        "scapy takes real time": scenario.transport.endpoint == "scapy",
        "one processor is not enough": len(os.sched_getaffinity(0)) < PROCESSORS,
        "this machine is slow": slowness() > 1,
    }
    return next((why for why, is_so in hindrances.items() if is_so), None)


def fitting_dilation(
    experiment: Experiment, kind: type[Switches], stages: Stages, leisure: int = 1
) -> int:
    """So many times the usual; more on a slow machine, which is told; fails if that takes hours."""
    usual, times = leisure * usual_dilation(experiment, kind), slowness()
    if times == 1:
        return usual
    dilation = math.ceil(usual * times)
    least_s = experiment.least_ns * dilation / 1e9
    what = f"this machine is some {times:.0f} times slower than Mininet's usual pace supposes"
    cure = "--engine sim simulates it instead, on any machine"
    if least_s > _MAX_PATIENCE_S:
        raise RunError(
            f"{what}: sending alone would take {least_s / 60:,.0f} minutes here",
            f"{cure}; --dilation {usual} tries all the same, and is hardly to be trusted.",
        )
    stages.console.print(
        f"[yellow]T{what[1:]}[/]: time passes {dilation:,} times slower than the fabric's, and "
        f"sending takes {duration(least_s * 1e9)} at least. {cure}.",
        highlight=False,
        soft_wrap=True,
    )
    return dilation


def _ping(emulation: Emulation, stages: Stages) -> PingResult:
    with stages("Every host pings every other") as stage:
        pings = emulation.ping_all()
        pairs = len(pings.answered) + len(pings.silent)
        stage.note = f"{len(pings.answered)} of {pairs} answered"
    if pings.silent:
        silent = ", ".join(f"{src} to {dst}" for src, dst in sorted(pings.silent))
        stages.console.print(f"[red]No answer to a ping[/] from {silent}")
    return pings

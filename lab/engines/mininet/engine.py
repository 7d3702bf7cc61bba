"""Mininet as an engine: namespaces, veths, switches and hosts under the real clock.

This module pulls in Mininet: it is imported only once that is known to be there, and runs inside a
capsule.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from controller import Settings
from lab.engines import RunOptions
from lab.engines.mininet import endpoints
from lab.engines.mininet.emulation import Emulation, PingResult
from lab.engines.mininet.report_cables import Collector, lay_report_cables
from lab.engines.mininet.scapy_hosts import began_ns, counters_of, host_plans, timeline_of
from lab.engines.mininet.switches import KINDS, Setting, Switches
from lab.engines.mininet.switches.soft import SoftSwitches
from lab.errors import RunError
from lab.machine.native_host import endpoint_program
from lab.machine.precedence import take_precedence
from lab.machine.program import source_in
from lab.machine.speed import slowness
from lab.progress import Stages
from lab.results.outcome import Outcome
from lab.results.telemetry import Tally
from lab.scenario.experiment import Experiment
from lab.scenario.model import ALL_LINKS, captured
from lab.scenario.traffic import AllPairs
from lab.scenario.translate import DATA_HEADERS_BYTES, REPORT_PORT
from topologies import Fabric, Node

_MOST_PATIENCE_S = 3600.0  # that sending may take on a slow machine, unless asked for
_PROGRESS_S = 0.25  # between two looks, if only who watches wants to know


@contextmanager
def bring_up(
    experiment: Experiment, options: RunOptions, stages: Stages
) -> Iterator[EmulatedFabric]:
    """Emulate it, for as long as the context lasts."""
    take_precedence()
    fabric, measures = experiment.fabric, experiment.scenario.measures
    kind = KINDS[options.switch]
    # Unless told otherwise, all pairs is an exchange among scapy hosts, as fast as they can.
    is_timed = (
        not _is_all_pairs(experiment) or options.dilation is not None or kind is not SoftSwitches
    )
    dilation = options.dilation or fitting_dilation(experiment, kind, stages) if is_timed else 1
    with stages("Compiling the fabric program"):
        built = kind.build_program(options.out, source_in(options.p4))
        hosts_program = endpoint_program() if is_timed else None
    switches = kind(
        Setting(
            fabric,
            built,
            logs=options.out / "logs",
            pcaps=options.out / "pcaps" if measures.pcap else None,
            captured=_captured_ports(experiment),
            cable=experiment.port_cable if is_timed else None,
            data_frame=experiment.scenario.link.mtu + DATA_HEADERS_BYTES,
            dilation=dilation,
            notes_every_s=(measures.series_ns or 0) * dilation / 1e9
            if measures.series
            else _PROGRESS_S,
            reports=options.prompt or experiment.settings.telemetry.report_port is not None,
            seed_of=experiment.switch_seed,
            still=stages.still_waiting,
        )
    )
    settings = kind.told(experiment.settings, dilation)
    emulation = Emulation(fabric, switches, options.out, settings)
    with ExitStack() as stack:
        stack.callback(emulation.take_down)
        with stages("Laying cables") as stage:
            emulation.lay_cables()
            if switches.setting.reports:
                lay_report_cables(fabric.switches)
            stage.note = f"{len(fabric.hosts)} hosts, {len(fabric.links)} links"
        with stages("Starting switches") as stage:
            stage.note = switches.start()
        with stages("Installing routes", len(fabric.switches)) as stage:
            emulation.install_routes(stage.advance)
        if _is_all_pairs(experiment) and not options.prompt:  # there one pings by hand
            _ping(emulation, stages)
        yield EmulatedFabric(experiment, emulation, hosts_program, stages)


@dataclass(frozen=True)
class EmulatedFabric:
    """A fabric that is up; it may be measured as often as one likes, and used meanwhile."""

    experiment: Experiment
    emulation: Emulation
    hosts_program: Path | None  # none: scapy hosts
    stages: Stages

    def measure(self) -> Outcome:
        """Let the hosts carry out their plans, in real time."""
        experiment, emulation = self.experiment, self.emulation
        with _telemetry(emulation.fabric, emulation.settings) as (tally, collector):
            if self.hosts_program is None:
                outcome = _exchange(experiment, emulation, self.stages)
            else:
                outcome = endpoints.run(
                    experiment, emulation, self.hosts_program, self.stages, collector
                )
        return replace(outcome, telemetry=tally)


def _is_all_pairs(experiment: Experiment) -> bool:
    return isinstance(experiment.scenario.traffic, AllPairs)


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
    fabric: Fabric, settings: Settings
) -> Iterator[tuple[Tally | None, Collector | None]]:
    """Count what reports tell meanwhile, if any are to be sent."""
    if settings.telemetry.report_port is None:
        yield None, None
        return
    tally = Tally.of(fabric, settings.tick_ns)
    collector = Collector(fabric, tally.add)
    try:
        yield tally, collector
    finally:
        collector.close()


def usual_dilation(experiment: Experiment, kind: type[Switches]) -> int:
    """How much slower than the fabric's the emulator's time has to pass.

    So much that all hosts sending at once are no more than the switches and their neighbours can
    carry on two processors.
    """
    return max(1, math.ceil(experiment.packets_per_s / kind.PACKETS_PER_S))


def fitting_dilation(experiment: Experiment, kind: type[Switches], stages: Stages) -> int:
    """The usual one, or more on a slow machine, which is told; fails if that takes too long."""
    usual, times = usual_dilation(experiment, kind), slowness()
    if times == 1:
        return usual
    dilation = math.ceil(usual * times)
    least_s = experiment.least_ns * dilation / 1e9
    what = f"this machine is some {times:.0f} times slower than Mininet's usual pace supposes"
    cure = "--engine sim simulates it instead, on any machine"
    if least_s > _MOST_PATIENCE_S:
        raise RunError(
            f"{what}: sending alone would take {least_s / 60:,.0f} minutes here",
            f"{cure}; --dilation {usual} tries all the same, and is hardly to be trusted.",
        )
    stages.console.print(
        f"[yellow]T{what[1:]}[/]: time passes {dilation:,} times slower than the fabric's, and "
        f"sending takes {least_s / 60:,.1f} minutes at least. {cure}.",
        highlight=False,
        soft_wrap=True,
    )
    return dilation


def _ping(emulation: Emulation, stages: Stages) -> PingResult:
    pairs = len(emulation.fabric.hosts) * (len(emulation.fabric.hosts) - 1)
    with stages("Every host pings every other") as stage:
        pings = emulation.ping_all()
        stage.note = f"{len(pings.answered)} of {pairs} answered"
    if pings.silent:
        silent = ", ".join(f"{src} to {dst}" for src, dst in sorted(pings.silent))
        stages.console.print(f"[red]No answer to a ping[/] from {silent}")
    return pings


def _exchange(experiment: Experiment, emulation: Emulation, stages: Stages) -> Outcome:
    """Exchange the messages of all pairs, and compare what switches counted before and after."""
    messages = len(experiment.schedule)
    with stages("One RoCEv2 message for every pair of hosts") as stage:
        before = emulation.switches.counts()
        reports, ended = emulation.exchange(host_plans(experiment), stages.still_waiting)
        after = emulation.switches.last_counts()
        stage.note = f"{messages} messages of {experiment.schedule.size[0]:,} bytes"
    timeline = timeline_of(experiment, reports)
    return Outcome(
        timeline=timeline,
        switches={switch: counts.since(before[switch]) for switch, counts in after.items()},
        endpoints=counters_of(experiment, reports),
        end_ns=timeline.finish_ns,
        notes=emulation.switches.watch.notes(began_ns(reports), 1)
        if experiment.scenario.measures.series
        else (),
        is_fabric_time=False,
        ended=ended,
    )

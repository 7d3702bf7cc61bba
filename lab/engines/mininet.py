"""Mininet as an engine: namespaces, veths, switches and hosts under the real clock.

This module pulls in Mininet: it is imported only once that is known to be there, and runs inside a
capsule.
"""

from __future__ import annotations

from contextlib import ExitStack

from lab import program
from lab.emulation import Emulation, PingResult
from lab.engines import RunOptions
from lab.errors import RunError
from lab.experiment import Experiment
from lab.outcome import Outcome
from lab.prompt import prompt
from lab.running import Registration
from lab.show import Stages
from lab.traffic import AllPairs
from lab.workload import counters_of, host_plans, timeline_of


def run(
    experiment: Experiment, options: RunOptions, stages: Stages, registration: Registration
) -> Outcome | None:
    """Emulate an experiment; with a prompt instead of a measurement there is no outcome."""
    fabric = experiment.fabric
    with stages("Compiling the fabric program"):
        built = program.build(options.out)
    with ExitStack() as stack:
        emulation = Emulation(fabric, built, options.out, experiment.settings)
        stack.callback(emulation.take_down)
        with stages("Laying cables") as stage:
            emulation.lay_cables(experiment.scenario.link.mtu)
            stage.note = f"{len(fabric.hosts)} hosts, {len(fabric.links)} links"
        with stages("Starting switches") as stage:
            emulation.start_switches(options.out / "pcaps" if options.pcap else None)
            stage.note = f"{len(fabric.switches)} in one process"
        with stages("Installing routes", len(fabric.switches)) as stage:
            emulation.install_routes(stage.advance)
        registration.furnish(
            emulation.host_pids(),
            {target.name: (target.address, target.device_id) for target in emulation.targets},
        )
        if options.prompt:
            prompt(emulation.network, stages.console)
            return None
        _ping(emulation, stages)
        if not isinstance(experiment.scenario.traffic, AllPairs):
            raise RunError(
                "Mininet runs no other traffic than all pairs yet",
                "Add --engine sim.",
            )
        return _exchange(experiment, emulation, stages)


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
        before = emulation.counts()
        reports = emulation.exchange(host_plans(experiment))
        after = emulation.counts()
        stage.note = f"{messages} messages of {experiment.schedule.size[0]:,} bytes"
    timeline = timeline_of(experiment, reports)
    return Outcome(
        timeline=timeline,
        switches={switch: counts.since(before[switch]) for switch, counts in after.items()},
        endpoints=counters_of(experiment, reports),
        end_ns=timeline.finish_ns,
    )

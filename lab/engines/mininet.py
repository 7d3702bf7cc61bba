"""Mininet as an engine: namespaces, veths, switches and hosts under the real clock.

This module pulls in Mininet: it is imported only once that is known to be there, and runs inside a
capsule.
"""

from __future__ import annotations

import math
from contextlib import ExitStack

from lab import endpoints, program
from lab.emulation import Emulation, PingResult
from lab.engines import RunOptions
from lab.experiment import Experiment
from lab.native_host import endpoint_program
from lab.outcome import Outcome
from lab.prompt import prompt
from lab.running import Registration
from lab.show import Stages
from lab.traffic import AllPairs
from lab.workload import counters_of, host_plans, timeline_of

_PACKETS_PER_S = 12_000  # that all hosts together may send, each of which crosses four links


def run(
    experiment: Experiment, options: RunOptions, stages: Stages, registration: Registration
) -> Outcome | None:
    """Emulate an experiment; with a prompt instead of a measurement there is no outcome."""
    fabric = experiment.fabric
    # All pairs is an exchange among scapy hosts, as fast as the machine lets them.
    is_timed = not isinstance(experiment.scenario.traffic, AllPairs)
    dilation = options.dilation or usual_dilation(experiment) if is_timed else 1
    with stages("Compiling the fabric program"):
        built = program.build(options.out)
        hosts_program = endpoint_program() if is_timed else None
    with ExitStack() as stack:
        emulation = Emulation(fabric, built, options.out, experiment.settings)
        stack.callback(emulation.take_down)
        with stages("Laying cables") as stage:
            emulation.lay_cables(experiment.scenario.link.mtu)
            stage.note = f"{len(fabric.hosts)} hosts, {len(fabric.links)} links"
        with stages("Starting switches") as stage:
            emulation.start_switches(
                options.out / "pcaps" if options.pcap else None,
                cable=experiment.port_cable if is_timed else None,
                dilation=dilation,
            )
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
        if hosts_program is not None:
            return endpoints.run(experiment, emulation, hosts_program, dilation, stages)
        _ping(emulation, stages)
        return _exchange(experiment, emulation, stages)


def usual_dilation(experiment: Experiment) -> int:
    """How much slower than the fabric's the emulator's time has to pass.

    So much that all hosts sending at once are no more than a switch process and its neighbours can
    carry on two processors.
    """
    bps = sum(experiment.cable(link).rate_bps for link in experiment.host_links.values())
    packets_per_s = bps / 8 / experiment.scenario.link.mtu
    return max(1, math.ceil(packets_per_s / _PACKETS_PER_S))


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

"""One run of a scenario, from source to result.

This module pulls in Mininet: the command line imports it only once that is known to be there.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from lab import program
from lab.emulation import Emulation
from lab.errors import LabError
from lab.prompt import prompt
from lab.result import assemble
from lab.running import Registration
from lab.scenario import Scenario
from lab.show import Stages, result_tables
from lab.workload import host_plans


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a scenario is to be run."""

    out: Path
    pcap: bool = False
    prompt: bool = False


def run_emulated(scenario: Scenario, options: RunOptions, registration: Registration) -> int:
    """Run a scenario on Mininet; called inside a capsule, returns the exit code."""
    console = Console(stderr=True)
    try:
        return _run(scenario, options, registration, console)
    except LabError as error:
        error.show()
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; everything is taken down.")
        return 130


def _run(
    scenario: Scenario, options: RunOptions, registration: Registration, console: Console
) -> int:
    stages = Stages(console)
    fabric = scenario.topology.build()

    with stages("Compiling the fabric program"):
        built = program.build(options.out)

    with ExitStack() as stack:
        emulation = Emulation(fabric, built, options.out)
        stack.callback(emulation.take_down)
        with stages("Laying cables") as stage:
            emulation.lay_cables(scenario.link.mtu)
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
            prompt(emulation.network, console)
            return 0
        return _measure(scenario, options, emulation, stages)


def _measure(scenario: Scenario, options: RunOptions, emulation: Emulation, stages: Stages) -> int:
    """Ping, exchange the scenario's messages, and say what came of it."""
    fabric = emulation.fabric
    pairs = len(fabric.hosts) * (len(fabric.hosts) - 1)
    with stages("Every host pings every other") as stage:
        pings = emulation.ping_all()
        stage.note = f"{len(pings.answered)} of {pairs} answered"
    with stages("One RoCEv2 message for every pair of hosts") as stage:
        before = emulation.counts()
        reports = emulation.exchange(host_plans(scenario, fabric))
        after = emulation.counts()
        stage.note = f"{pairs} messages of {scenario.traffic.bytes:,} bytes"
    counts = {name: count.since(before[name]) for name, count in after.items()}
    result = assemble(scenario, fabric, options.out / "fabric.json", reports, counts)
    result.save(options.out, reports)
    result_tables(stages.console, fabric, result, pings)
    stages.console.print(f"Kept in {options.out}/: result.json, flows.csv", highlight=False)
    return 0 if not pings.silent and not result.flows.failed else 1

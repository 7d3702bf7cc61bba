"""A run on Mininet: in a sandbox, whose first process does all of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from lab.engines import RunOptions
from lab.engines.mininet.running import Registration
from lab.engines.mininet.sandbox import name_addresses, run_in_sandbox
from lab.errors import LabError, RunError
from lab.machine import tools
from lab.machine.paths import writing_to
from lab.machine.scratch import gone_at_our_end
from lab.machine.supervisor import supervisor
from lab.progress import Stages
from lab.results.outcome import INTERRUPTION, Outcome
from lab.runs.run import INTERRUPTED, Conclude, proved, with_messages
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from topologies import TopologyError

if TYPE_CHECKING:
    from lab.engines.mininet.engine import EmulatedFabric


def emulate(
    scenario: Scenario,
    options: RunOptions,
    stages: Stages,
    conclude: Conclude,
    fail: Callable[[LabError], object],
    attend: Callable[[EmulatedFabric, Experiment, str], int | None] | None = None,
    beside: Callable[[str], AbstractContextManager[object]] = nullcontext,
) -> int:
    """Run a scenario on Mininet, or let somebody attend to the fabric instead; the exit code.

    All of it happens in another process, the first of a sandbox, so what goes wrong there is told,
    not raised; to attend may end with a code of its own. The process that calls this stays without
    the network and mounts it had. What is to happen ``beside`` it, outside of the sandbox, is given
    the lab's name. A run that hurried and is not to be believed is done again.
    """
    if scenario.control.kind == "bgp":
        tools.require_frr()
        if options.switch != "soft":
            raise RunError(
                "BMv2 has no ports for a control plane of its own here",
                "Use --switch soft, or --set control.kind=p4runtime.",
            )
        kinds = {each.speaks for each in scenario.topology.outside}
        tools.require_routers({kind.program: kind.package for kind in kinds})
    registration = Registration(scenario.name)
    try:
        with gone_at_our_end(registration.folder), beside(registration.name):
            return run_in_sandbox(
                lambda: _inside(scenario, options, stages, conclude, fail, attend, registration),
                registration.announce,
            )
    finally:
        registration.withdraw()


def _inside(
    scenario: Scenario,
    options: RunOptions,
    stages: Stages,
    conclude: Conclude,
    fail: Callable[[LabError], object],
    attend: Callable[[EmulatedFabric, Experiment, str], int | None] | None,
    registration: Registration,
) -> int:
    """What a sandbox's first process does, where Mininet is known to be."""
    # With the sandbox goes who would tidy up in it: this folder is seen to from outside.
    tempfile.tempdir = str(registration.folder)
    try:
        with writing_to(options.out):
            experiment = Experiment.of(scenario)
            if attend is None:
                experiment = with_messages(experiment)
            fabric = experiment.fabric
            # Before there are hosts: they see what is mounted when they begin, and nothing later.
            addresses = {host.name: str(fabric.address(host)) for host in fabric.hosts}
            name_addresses(addresses, registration.names)
            if attend is not None:
                with fabric_up(experiment, options, stages, registration) as up:
                    control = up.emulation.control
                    code = attend(up, experiment, registration.name) or 0
                    if control is not None:
                        control.check()
                    if died := supervisor.befallen:
                        raise RunError(died)
                    return code
            with fabric_up(experiment, options, stages, registration) as up:
                outcome = up.measure()
            if up.hurries and not outcome.fidelity.ok and outcome.ended != INTERRUPTION:
                why = (outcome.fidelity.note or "").partition(". ")[0]
                stages.console.print(
                    f"[yellow]T{why[1:]}[/]. Once more, in slower motion.",
                    highlight=False,
                    soft_wrap=True,
                )
                slower = replace(options, hurry=False)
                with fabric_up(experiment, slower, stages, registration) as up:
                    outcome = _made_again(up.measure(), why)
            return conclude(experiment, proved(experiment, outcome))
    except LabError as error:
        fail(error)
        return 1
    except TopologyError as error:
        fail(RunError(f"the fabric could not be laid out: {error}"))
        return 1
    except KeyboardInterrupt:
        stages.console.print("Everything is taken down.")
        return INTERRUPTED


def _made_again(outcome: Outcome, why: str) -> Outcome:
    """A run that is believed tells why it was not the first."""
    fidelity = outcome.fidelity
    if not fidelity.ok:
        return outcome
    note = f"made again in slower motion, for in a hurry {why}"
    return replace(outcome, fidelity=replace(fidelity, note=note))


@contextmanager
def fabric_up(
    experiment: Experiment, options: RunOptions, stages: Stages, registration: Registration
) -> Iterator[EmulatedFabric]:
    """Bring the fabric up, for who is inside as well as for others."""
    from lab.engines.mininet.engine import bring_up
    from lab.engines.mininet.hands import reachable

    with supervisor.watching(stages.warn), bring_up(experiment, options, stages) as up:
        control = up.emulation.control
        registration.furnish(
            *up.emulation.whereabouts(),
            _to_be_watched(up, experiment.scenario),
            up.emulation.switches.setting.certificates,
            control.pids if control else {},
        )
        up.emulation.journal.keep_in(registration.journal)
        with reachable(up.hands, registration.folder):
            try:
                yield up
            except RunError as error:
                raise supervisor.explained(error) or error from None


def _to_be_watched(up: EmulatedFabric, scenario: Scenario) -> dict[str, object]:
    """Where somebody who watches finds what."""
    switches = up.emulation.switches
    return {
        "scenario": scenario.model_dump(mode="json", exclude_unset=True),
        "record": str(switches.watch.path.absolute()),
        "dilation": switches.setting.dilation,
        "since_ns": time.monotonic_ns(),
    }

"""A run from what is asked to what is kept, on whichever engine."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from lab.engines import ENGINES, SWITCHES, Audience, Engine, RunOptions
from lab.engines.mininet.capsule import name_addresses, run_in_capsule
from lab.engines.mininet.running import Registration
from lab.engines.sim import engine as sim
from lab.errors import LabError, RunError
from lab.machine import tools
from lab.machine.certificates import require_openssl
from lab.machine.lookout import lookout
from lab.machine.paths import writing_to
from lab.machine.program import source_in
from lab.machine.scratch import gone_at_our_end
from lab.progress import Stages
from lab.results import conservation
from lab.results.causes import CAUSES
from lab.results.outcome import INTERRUPTION, Outcome
from lab.results.result import REPORT, RESULT, Result, assemble, save
from lab.runs.provenance import provenance
from lab.scenario.experiment import Experiment
from lab.scenario.model import MeasureSettings, Scenario
from topologies import TopologyError

if TYPE_CHECKING:
    from lab.engines.mininet.engine import EmulatedFabric

Conclude = Callable[[Experiment, Outcome], int]

# Exit codes of a run, besides 0; the README tells them.
NOT_WHOLE = 1  # a message did not arrive, or the run ended early
UNBELIEVED = 3  # it came to its end, and says of itself not to be trusted
LOSSY = 4  # it is to be trusted, but classes that are to lose nothing lost by the scenario's choice
INTERRUPTED = 130
KEPT = RESULT, REPORT  # by which one knows a run that came to a result
_PROGRAM = "fabric.json", "fabric.p4info.txtpb"  # compiled


# --- before it starts -----------------------------------------------------------------------------


def check_engine(engine: str) -> None:
    """Find out before anything starts whether runs can be made on this engine."""
    _check_known("engine", engine, ENGINES)
    tools.require_compiler()
    if engine == "mininet":
        tools.require_emulation()


def _check_known(what: str, chosen: str, known: Collection[str]) -> None:
    if chosen not in known:
        raise RunError(f"there is no {what} '{chosen}'", f"Choose one of {', '.join(known)}.")


def check(options: RunOptions) -> None:
    """Find out before anything starts what is asked for or needed and is not there."""
    _check_known("engine", options.engine, ENGINES)
    _check_known("switch", options.switch, SWITCHES)
    if options.engine == "sim":
        if options.switch != "soft":
            raise RunError(
                "the simulator's switches are our own", "Leave --switch out, or --engine sim."
            )
        if options.prompt:
            raise RunError("the simulator has no prompt", "Leave --cli out, or the engine.")
        if options.tls:
            raise RunError(
                "in the simulator the controller and its switches are one process",
                "Leave --tls out, or --engine sim.",
            )
    source_in(options.p4)
    check_engine(options.engine)
    if options.engine == "mininet":
        if options.switch == "bmv2":
            tools.require_bmv2()
            if options.tls:
                raise RunError(
                    "BMv2 is not given certificates here", "Use --switch soft, or leave --tls out."
                )
        if options.tls:
            require_openssl()


def clear(folder: Path) -> None:
    """What an earlier run left there is no result of this one, and no link leads out of it."""
    links = [entry.name for entry in os.scandir(folder) if entry.is_symlink()]
    for file in (*KEPT, CAUSES, *links):
        (folder / file).unlink(missing_ok=True)
    shutil.rmtree(folder / "pcaps", ignore_errors=True)


# --- measured -------------------------------------------------------------------------------------


def outcome_of(
    experiment: Experiment, options: RunOptions, stages: Stages, audience: Audience | None = None
) -> Outcome:
    """What happens when an experiment is run on its engine; Mininet's wants to be in a capsule.

    Who watches an emulated run does so from outside of it.
    """
    if audience is not None:
        with sim.bring_up(experiment, options, stages) as simulated:
            return proved(experiment, simulated.measure(audience))
    with _engine(options.engine)(experiment, options, stages) as up:
        return proved(experiment, up.measure())


def proved(experiment: Experiment, outcome: Outcome) -> Outcome:
    """The same, once it is proved that nothing of it is missing."""
    conservation.check(experiment.fabric, outcome)
    return outcome


def _engine(name: str) -> Engine:
    if name == "sim":
        return sim.bring_up
    from lab.engines.mininet import engine as mininet  # which pulls in Mininet

    return mininet.bring_up


def run_quietly(scenario: Scenario, options: RunOptions, console: Console) -> Result:
    """Run a scenario and keep its result, without showing it."""
    experiment = Experiment.of(scenario)
    return keep(experiment, outcome_of(experiment, options, Stages(console)), options)


def measure(scenario: Scenario, options: RunOptions, console: Console) -> Result:
    """Run a scenario and keep nothing but what is returned."""
    lightest = MeasureSettings(flows=False, series=False)
    experiment = Experiment.of(scenario.model_copy(update={"measures": lightest}))
    return assembled(experiment, outcome_of(experiment, options, Stages(console)), options)


def keep(experiment: Experiment, outcome: Outcome, options: RunOptions) -> Result:
    """Put the result together and write it."""
    result = assembled(experiment, outcome, options)
    _leave_out_what_ships(options)
    save(result, experiment, outcome, options.out)
    return result


def assembled(experiment: Experiment, outcome: Outcome, options: RunOptions) -> Result:
    """Put the result together."""
    return assemble(
        experiment,
        outcome,
        engine=options.engine,
        switch=options.switch,
        provenance=provenance(options, options.out / _PROGRAM[0]),
    )


def _leave_out_what_ships(options: RunOptions) -> None:
    """Of a program that ships, a run need not keep megabytes: its provenance says which it was."""
    if options.p4 is None and options.switch == "soft" and not options.prompt:
        for name in _PROGRAM:
            (options.out / name).unlink(missing_ok=True)


def _with_messages(experiment: Experiment) -> Experiment:
    """The same; a run of nothing would only seem to have gone well."""
    schedule = experiment.schedule
    if all(src == dst for src, dst in zip(schedule.src, schedule.dst, strict=True)):
        raise RunError(
            f"the traffic of '{experiment.scenario.name}' comes to 0 messages: there is no run",
            "Look at its traffic section, and at the file that it names.",
        )
    return experiment


def simulate(
    scenario: Scenario,
    options: RunOptions,
    stages: Stages,
    conclude: Conclude,
    audience: Callable[[Experiment], Audience] | None = None,
) -> int:
    """Run a scenario in the simulator; the exit code."""
    try:
        with writing_to(options.out):
            experiment = _with_messages(Experiment.of(scenario))
            watching = audience and audience(experiment)
            return conclude(experiment, outcome_of(experiment, options, stages, watching))
    except KeyboardInterrupt:
        return INTERRUPTED


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

    All of it happens in another process, the first of a capsule, so what goes wrong there is told,
    not raised; to attend may end with a code of its own. The process that calls this stays without
    the network and mounts it had. What is to happen ``beside`` it, outside of the capsule, is given
    the lab's name. A run that hurried and is not to be believed is done again.
    """
    if scenario.control.kind == "bgp":
        tools.require_frr()
        if options.switch != "soft":
            raise RunError(
                "BMv2 has no ports for a control plane of its own here",
                "Use --switch soft, or --set control.kind=p4runtime.",
            )
    registration = Registration(scenario.name)
    try:
        with gone_at_our_end(registration.folder), beside(registration.name):
            return run_in_capsule(
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
    """What a capsule's first process does, where Mininet is known to be."""
    # With the capsule goes who would tidy up in it: this folder is seen to from outside.
    tempfile.tempdir = str(registration.folder)
    try:
        with writing_to(options.out):
            experiment = Experiment.of(scenario)
            if attend is None:
                experiment = _with_messages(experiment)
            fabric = experiment.fabric
            # Before there are hosts: they see what is mounted when they begin, and nothing later.
            addresses = {host.name: str(fabric.address(host)) for host in fabric.hosts}
            name_addresses(addresses, registration.names)
            if attend is not None:
                with _up(experiment, options, stages, registration) as up:
                    control = up.emulation.control
                    code = attend(up, experiment, registration.name) or 0
                    if control is not None:
                        control.check()
                    if died := lookout.befallen:
                        raise RunError(died)
                    return code
            with _up(experiment, options, stages, registration) as up:
                outcome = up.measure()
            if up.hurries and not outcome.fidelity.ok and outcome.ended != INTERRUPTION:
                why = (outcome.fidelity.note or "").partition(". ")[0]
                stages.console.print(
                    f"[yellow]T{why[1:]}[/]. Once more, in slower motion.",
                    highlight=False,
                    soft_wrap=True,
                )
                slower = replace(options, hurry=False)
                with _up(experiment, slower, stages, registration) as up:
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
def _up(
    experiment: Experiment, options: RunOptions, stages: Stages, registration: Registration
) -> Iterator[EmulatedFabric]:
    """Bring the fabric up, for who is inside as well as for others."""
    from lab.engines.mininet.engine import bring_up
    from lab.engines.mininet.hands import reachable

    with lookout.watching(stages.warn), bring_up(experiment, options, stages) as up:
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
                raise lookout.explained(error) or error from None


def _to_be_watched(up: EmulatedFabric, scenario: Scenario) -> dict[str, object]:
    """Where somebody who watches finds what."""
    switches = up.emulation.switches
    return {
        "scenario": scenario.model_dump(mode="json", exclude_unset=True),
        "record": str(switches.watch.path.absolute()),
        "dilation": switches.setting.dilation,
        "since_ns": time.monotonic_ns(),
    }


def save_making_room(
    result: Result, experiment: Experiment, outcome: Outcome, options: RunOptions, stages: Stages
) -> None:
    """Write a result; on a full disk the program gives way to it."""
    _leave_out_what_ships(options)
    try:
        save(result, experiment, outcome, options.out)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # The program can be compiled again, what was measured cannot be measured again.
        (options.out / _PROGRAM[0]).unlink(missing_ok=True)
        save(result, experiment, outcome, options.out)
        stages.console.print(f"[yellow]The disk is full[/]: {_PROGRAM[0]} gave way to the results.")


def keeping(options: RunOptions, stages: Stages) -> Conclude:
    """A conclusion that is kept, and not shown."""

    def conclude(experiment: Experiment, outcome: Outcome) -> int:
        result = assembled(experiment, outcome, options)
        save_making_room(result, experiment, outcome, options, stages)
        return code_of(result)

    return conclude


def code_of(result: Result) -> int:
    """The exit code: whether all of it arrived, whether to believe it, what it cost."""
    if result.ended == INTERRUPTION:
        return INTERRUPTED
    if result.ended or result.flows.failed:
        return NOT_WHOLE
    if not result.fidelity.ok:
        return UNBELIEVED
    return LOSSY if result.drops.price else 0

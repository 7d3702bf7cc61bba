"""A run from what is asked to what is kept, on whichever engine."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from rich.console import Console

from lab.engines import ACCURACIES, ENGINES, EXACT, SWITCHES, Audience, Engine, RunOptions
from lab.engines.sim import engine as sim
from lab.errors import RunError, refuse, refuse_beside
from lab.machine import tools
from lab.machine.paths import writing_to
from lab.machine.program import source_in
from lab.progress import Stages
from lab.results import conservation
from lab.results.assembly import assemble
from lab.results.outcome import INTERRUPTION, Outcome
from lab.results.result import CAUSES, REPORT, RESULT, Result
from lab.results.run_folder import save
from lab.runs.ablation import cost
from lab.runs.provenance import ask_ahead, provenance
from lab.scenario.experiment import Experiment
from lab.scenario.model import MeasureSettings, Scenario

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
    if engine == "mininet":
        tools.require_emulation()
        tools.require_compiler()
    else:
        tools.require_native()


def _check_known(what: str, chosen: str, known: Collection[str]) -> None:
    if chosen not in known:
        raise RunError(f"there is no {what} '{chosen}'", f"Choose one of {', '.join(known)}.")


def check(options: RunOptions) -> None:
    """Find out before anything starts what is asked for or needed and is not there."""
    _check_known("engine", options.engine, ENGINES)
    _check_known("switch", options.switch, SWITCHES)
    is_sim = options.engine == "sim"
    refuse(
        (is_sim and options.switch != "soft", "the simulator's switches are our own",
         "Leave --switch out, or --engine sim."),
        (is_sim and options.prompt, "the simulator has no prompt",
         "Leave --cli out, or the engine."),
        (is_sim and options.tls, "in the simulator the controller and its switches are one process",
         "Leave --tls out, or --engine sim."),
        (not is_sim and options.checkpoint_s is not None,
         "--checkpoint is for the simulator: what is emulated cannot be held and let go again",
         "Leave it out, or say --engine sim."),
    )  # fmt: skip
    _check_known("accuracy", options.accuracy, ACCURACIES)
    if options.accuracy != EXACT:
        refuse_beside(
            f"with --accuracy {options.accuracy} a run leaves out what repeats, which does not go "
            "with {}",
            (not is_sim, "--engine mininet"),
            (options.checkpoint_s is not None, "--checkpoint"),
            (options.reports is not None, "--reports"),
            (options.ranks is not None, "several ranks"),
        )
    source_in(options.p4)
    check_engine(options.engine)
    if options.p4 is not None:
        tools.require_compiler()
    if options.engine == "mininet":
        if options.switch == "bmv2":
            tools.require_bmv2()
            refuse((options.tls, "BMv2 is not given certificates here",
                    "Use --switch soft, or leave --tls out."))  # fmt: skip
        if options.tls:
            from lab.machine.certificates import require_openssl

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
    """What happens when an experiment is run on its engine; Mininet's wants to be in a sandbox.

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
    experiment, stages = Experiment.of(scenario), Stages(console)
    outcome = outcome_of(experiment, options, stages)
    return _kept(concluded(experiment, outcome, options, stages), experiment, outcome, options)


def measure(scenario: Scenario, options: RunOptions, console: Console) -> Result:
    """Run a scenario and keep nothing but what is returned."""
    lightest = MeasureSettings(flows=False, series=False)
    experiment = Experiment.of(scenario.model_copy(update={"measures": lightest}))
    return assembled(experiment, outcome_of(experiment, options, Stages(console)), options)


def keep(experiment: Experiment, outcome: Outcome, options: RunOptions) -> Result:
    """Put the result together and write it."""
    return _kept(assembled(experiment, outcome, options), experiment, outcome, options)


def _kept(result: Result, experiment: Experiment, outcome: Outcome, options: RunOptions) -> Result:
    """The same, once it is written."""
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


def concluded(
    experiment: Experiment, outcome: Outcome, options: RunOptions, stages: Stages
) -> Result:
    """The same for who is to be told of it: with what it cost, where the scenario asks that."""
    result = assembled(experiment, outcome, options)
    return result.model_copy(update={"cost": cost(experiment, outcome, options, stages)})


def _leave_out_what_ships(options: RunOptions) -> None:
    """Of a program that ships, a run need not keep megabytes: its provenance says which it was."""
    if options.p4 is None and options.switch == "soft" and not options.prompt:
        for name in _PROGRAM:
            (options.out / name).unlink(missing_ok=True)


def with_messages(experiment: Experiment) -> Experiment:
    """The same; a run of nothing would only seem to have gone well."""
    schedule = experiment.schedule
    is_idle = all(src == dst for src, dst in zip(schedule.src, schedule.dst, strict=True))
    if is_idle and not experiment.settings.groups:
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
    like: Experiment | None = None,
) -> int:
    """Run a scenario in the simulator; the exit code. It may be like one that is worked out."""
    try:
        with writing_to(options.out):
            ask_ahead()
            if options.accuracy != EXACT:
                from lab.runs.skip import simulated  # which few runs need

                shorter, outcome = simulated(scenario, options, stages)
                return conclude(with_messages(shorter), proved(shorter, outcome))
            experiment = with_messages(Experiment.of(scenario, like))
            watching = audience and audience(experiment)
            return conclude(experiment, outcome_of(experiment, options, stages, watching))
    except KeyboardInterrupt:
        return INTERRUPTED


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
        result = concluded(experiment, outcome, options, stages)
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

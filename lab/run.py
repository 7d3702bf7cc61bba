"""One run of a scenario, from source to result, on whichever engine."""

from __future__ import annotations

import json

from rich.console import Console

from lab.engines import RunOptions
from lab.errors import LabError
from lab.experiment import Experiment
from lab.outcome import Outcome
from lab.report import write_report
from lab.result import Result, assemble, save
from lab.running import Registration
from lab.scenario import Scenario
from lab.show import Stages, result_tables

INTERRUPTED = 130


def run_emulated(scenario: Scenario, options: RunOptions, registration: Registration) -> int:
    """Run a scenario on Mininet; called inside a capsule, returns the exit code."""
    from lab.engines import mininet

    console = Console(stderr=True)
    try:
        stages = Stages(console)
        experiment = Experiment.of(scenario)
        outcome = mininet.run(experiment, options, stages, registration)
        return 0 if outcome is None else conclude(experiment, outcome, options, stages)
    except LabError as error:
        error.show()
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; everything is taken down.")
        return INTERRUPTED


def run_simulated(scenario: Scenario, options: RunOptions, console: Console) -> int:
    """Run a scenario in the simulator; returns the exit code."""
    from lab.engines import sim

    stages = Stages(console)
    experiment = Experiment.of(scenario)
    return conclude(experiment, sim.run(experiment, options, stages), options, stages)


def run_quietly(scenario: Scenario, options: RunOptions, console: Console) -> Result:
    """Run a scenario in the simulator and keep its result, without showing it."""
    from lab.engines import sim

    experiment = Experiment.of(scenario)
    return keep(experiment, sim.run(experiment, options, Stages(console)), options)


def conclude(experiment: Experiment, outcome: Outcome, options: RunOptions, stages: Stages) -> int:
    """Keep and show what was found out; the exit code says whether all of it arrived."""
    result = keep(experiment, outcome, options)
    result_tables(stages.console, experiment.fabric, result)
    report = write_report(options.out)
    stages.console.print(f"All of it, with pictures: {report}", highlight=False, soft_wrap=True)
    if options.is_json:
        print(json.dumps(result.content(), indent=2))
    if result.ended == "interrupted":
        return INTERRUPTED
    return 0 if not result.flows.failed else 1


def keep(experiment: Experiment, outcome: Outcome, options: RunOptions) -> Result:
    """Put the result together and write it."""
    result = assemble(
        experiment,
        outcome,
        engine=options.engine,
        switch=options.switch,
        program=options.out / "fabric.json",
    )
    save(result, experiment, outcome, options.out)
    return result

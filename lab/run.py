"""One run of a scenario, from source to result, on whichever engine."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from controller import Policy
from lab.engines import RunOptions
from lab.errors import LabError, RunError
from lab.experiment import Experiment
from lab.outcome import INTERRUPTION, Outcome
from lab.provenance import provenance
from lab.report import REPORT, write_report
from lab.result import Result, assemble, save
from lab.running import Registration
from lab.scenario import MeasureSettings, Scenario
from lab.show import Stages, result_tables
from lab.tap import conga_hint

# Exit codes of a run, besides 0; the README tells them.
NOT_WHOLE = 1  # a message did not arrive, or the run ended early
UNBELIEVED = 3  # it came to its end, and says of itself not to be trusted
INTERRUPTED = 130
KEPT = "result.json", REPORT  # by which one knows a run that came to a result
_CANNOT_WRITE = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.EIO,
    errno.ENOENT,
)  # what a folder that is full, forbidden or gone answers


def run_emulated(scenario: Scenario, options: RunOptions, registration: Registration) -> int:
    """Run a scenario on Mininet; called inside a capsule, returns the exit code."""
    from lab.engines import mininet

    console = Console(stderr=True)
    try:
        with writing_to(options.out):
            stages = Stages(console)
            experiment = Experiment.of(scenario)
            return mininet.run(
                experiment,
                options,
                stages,
                registration,
                lambda outcome: conclude(experiment, outcome, options, stages),
            )
    except LabError as error:
        error.show()
        return 1
    except KeyboardInterrupt:
        console.print("Everything is taken down.")
        return INTERRUPTED


def run_simulated(scenario: Scenario, options: RunOptions, console: Console) -> int:
    """Run a scenario in the simulator; returns the exit code."""
    from lab.engines import sim

    with writing_to(options.out):
        stages = Stages(console)
        experiment = Experiment.of(scenario)
        return conclude(experiment, sim.run(experiment, options, stages), options, stages)


@contextmanager
def writing_to(out: Path) -> Iterator[None]:
    """Say in one message when a folder takes no more."""
    try:
        yield
    except OSError as error:
        if error.errno not in _CANNOT_WRITE:
            raise
        raise RunError(
            f"{error.filename or out} cannot be written: {error.strerror}",
            "Make room, or give another folder with --out DIR; what is kept there may not be "
            "whole, what is shown above is.",
        ) from None


def run_quietly(scenario: Scenario, options: RunOptions, console: Console) -> Result:
    """Run a scenario in the simulator and keep its result, without showing it."""
    from lab.engines import sim

    experiment = Experiment.of(scenario)
    return keep(experiment, sim.run(experiment, options, Stages(console)), options)


def measure(scenario: Scenario, options: RunOptions, console: Console) -> Result:
    """Run a scenario in the simulator and keep nothing but what is returned."""
    from lab.engines import sim

    lightest = MeasureSettings(flows=False, series=False)
    experiment = Experiment.of(scenario.model_copy(update={"measures": lightest}))
    return assembled(experiment, sim.run(experiment, options, Stages(console)), options)


def conclude(experiment: Experiment, outcome: Outcome, options: RunOptions, stages: Stages) -> int:
    """Keep and show what was found out; the exit code says whether all of it arrived
    and whether to believe it."""
    result = assembled(experiment, outcome, options)
    result_tables(stages.console, experiment.fabric, result)
    try:
        save(result, experiment, outcome, options.out)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # The program can be compiled again, what was measured cannot be measured again.
        (options.out / "fabric.json").unlink(missing_ok=True)
        save(result, experiment, outcome, options.out)
        stages.console.print("[yellow]The disk is full[/]: fabric.json gave way to the results.")
    report = write_report(options.out)
    stages.console.print(f"All of it, with pictures: {report}", highlight=False, soft_wrap=True)
    if experiment.scenario.measures.pcap and experiment.settings.lb.policy is Policy.CONGA:
        captures = f"{options.out}/pcaps/FILE.pcap"
        stages.console.print(conga_hint(captures), highlight=False, soft_wrap=True)
    if options.is_json:
        print(json.dumps(result.content(), indent=2))
    if result.ended == INTERRUPTION:
        stages.console.print(
            f"Interrupted: what was measured until then is kept in {options.out}/",
            highlight=False,
            soft_wrap=True,
        )
        return INTERRUPTED
    if result.ended or result.flows.failed:
        return NOT_WHOLE
    return 0 if result.fidelity.ok else UNBELIEVED


def keep(experiment: Experiment, outcome: Outcome, options: RunOptions) -> Result:
    """Put the result together and write it."""
    result = assembled(experiment, outcome, options)
    save(result, experiment, outcome, options.out)
    return result


def assembled(experiment: Experiment, outcome: Outcome, options: RunOptions) -> Result:
    """Put the result together."""
    return assemble(
        experiment,
        outcome,
        engine=options.engine,
        switch=options.switch,
        provenance=provenance(options, options.out / "fabric.json"),
    )

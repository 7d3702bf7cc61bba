"""One run of a scenario, from source to result, on whichever engine."""

from __future__ import annotations

from rich.console import Console

from lab.engines import Audience, Engine, RunOptions
from lab.engines.sim import engine as sim
from lab.progress import Stages
from lab.results import conservation
from lab.results.outcome import Outcome
from lab.results.result import REPORT, RESULT, Result, assemble, save
from lab.runs.provenance import provenance
from lab.scenario.experiment import Experiment
from lab.scenario.model import MeasureSettings, Scenario

# Exit codes of a run, besides 0; the README tells them.
NOT_WHOLE = 1  # a message did not arrive, or the run ended early
UNBELIEVED = 3  # it came to its end, and says of itself not to be trusted
LOSSY = 4  # it is to be trusted, but classes that are to lose nothing lost by the scenario's choice
INTERRUPTED = 130
KEPT = RESULT, REPORT  # by which one knows a run that came to a result


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

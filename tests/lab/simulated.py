"""Running scenarios in the simulator, in this process."""

import io
from pathlib import Path

from rich.console import Console

from lab.engines import RunOptions
from lab.engines.sim.ranks import Ranks
from lab.progress import Stages
from lab.results.outcome import Outcome
from lab.results.result import Result
from lab.runs.run import keep, outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.data import Data
from traffic.collectives import Schedule
from traffic.jobs import Workload


class Run(Data):
    """A run and what came of it."""

    experiment: Experiment
    outcome: Outcome
    result: Result
    out: Path

    def links(self, *starts: str) -> dict[str, int]:
        """Bytes by direction of a link, of those whose names start so."""
        return {u.name: u.bytes for u in self.result.links if u.name.startswith(starts)}


def simulate(
    name: str,
    *changes: str,
    out: Path,
    schedule: Schedule | None = None,
    p4: Path | None = None,
    threads: int = 1,
    ranks: Ranks | None = None,
) -> Run:
    """Run a scenario, its traffic replaced by a schedule if one is given."""
    experiment = Experiment.of(catalogue.load(name, changes))
    if schedule is not None:
        experiment = Experiment(
            experiment.scenario,
            experiment.fabric,
            experiment.settings,
            Workload(schedule, {}, {}),
        )
    return run_of(experiment, out, p4=p4, threads=threads, ranks=ranks)


def run_of(
    experiment: Experiment,
    out: Path,
    p4: Path | None = None,
    threads: int = 1,
    ranks: Ranks | None = None,
) -> Run:
    """Run an experiment."""
    out.mkdir(parents=True, exist_ok=True)
    options = RunOptions(out=out, engine="sim", p4=p4, threads=threads, ranks=ranks)
    outcome = outcome_of(experiment, options, Stages(Console(file=io.StringIO())))
    return Run(experiment, outcome, keep(experiment, outcome, options), out)


def simulate_sparely(
    name: str, *changes: str, out: Path, schedule: Schedule | None = None, p4: Path | None = None
) -> Run:
    """The same for who looks at no series over time, to keep which is a fifth of a run."""
    return simulate(name, "measures.series=false", *changes, out=out, schedule=schedule, p4=p4)

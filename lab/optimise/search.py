"""The search: Optuna proposes, the simulator runs each proposal under several seeds.

Trials come in batches of the same size however many processors there are, and a batch's sampler is
seeded by what was found before it: so a search that was interrupted and goes on finds what one does
that was not. All that is known is in Optuna's own journal, `study.log`.

A proposal is first run with one seed. If packets are lost (unless that is allowed), messages fail,
or some trial is better by half in all that is asked for, its other seeds are not run; Optuna is
told, and the trial is never the answer.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lab.errors import LabError, MissingTool, RunError
from lab.machine.dask_cluster import on_dask
from lab.machine.parallel import in_parallel
from lab.machine.scratch import scratch
from lab.optimise.levers import Lever, said
from lab.optimise.published import PUBLISHED
from lab.progress import Stages
from lab.runs.sweep import Variant, run_one
from lab.scenario import catalogue
from params.data import Data
from views.report.numbers import BY_KEY

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

JOURNAL, SPEC = "study.log", "optimise.json"
BATCH = 8
_FIRST = 16  # trials by lot before any model is made
_BETTER = 1.5  # times: then a trial's other seeds are not run
OBJECTIVES = {
    "p99": "flows.fct_ns.p99", "p50": "flows.fct_ns.p50", "longest": "flows.fct_ns.max",
    "job": "jct_ns", "pause": "pfc.paused_ns", "loss": "drops.total", "queue":
    "links.max_queue_bytes", "run": "duration_ns",
}  # fmt: skip
MORE_IS_BETTER = {"collective.busbw_gbps", "gpu_utilisation", "cluster.utilisation"}
_LOST, _FAILED = "drops.total", "flows.failed"
_FIGURES, _BREACH, _STOPPED = "figures", "breach", "stopped"


class Asked(Data):
    """What is searched for."""

    scenarios: tuple[str, ...]  # workloads, the first of which gives the answer its other keys
    changes: tuple[str, ...]
    levers: tuple[Lever, ...]
    objectives: tuple[str, ...]  # figures' keys
    seeds: int
    trials: int
    patience: int
    seed: int
    allows_losses: bool = False

    def content(self) -> dict[str, Any]:
        """What must be the same for a search to go on."""
        return {
            "scenarios": list(self.scenarios), "changes": list(self.changes),
            "levers": [repr(lever) for lever in self.levers],
            "objectives": list(self.objectives), "seeds": self.seeds, "seed": self.seed,
            "allows_losses": self.allows_losses,
        }  # fmt: skip


class Tried(Data):
    """A trial that was run with all seeds."""

    number: int
    changes: tuple[str, ...]
    values: tuple[float, ...]  # of objectives, means
    figures: tuple[Mapping[str, float], ...]  # by seed
    is_allowed: bool


class Found(Data, frozen=False):
    """What came of a search."""

    asked: Asked
    tried: list[Tried] = field(default_factory=list)
    stopped: int = 0
    failed: int = 0
    why_over: str = ""
    starts: int = 0  # the first trials, which are as it is and what is published
    importance: dict[str, dict[str, float]] = field(default_factory=dict)  # by objective and lever

    @property
    def front(self) -> list[Tried]:
        """Those that none other is better than in all that is asked for."""
        fine = [one for one in self.tried if one.is_allowed]
        return [one for one in fine if not any(_beats(self.asked, other, one) for other in fine)]


def require_optuna() -> None:
    """Fail with what to install, if Optuna is not there."""
    from importlib.util import find_spec

    if find_spec("optuna") is None:
        raise MissingTool(
            "Optuna is not installed",
            "The launcher brings it (./closlab optimise); in an environment of your own:  "
            "pip install 'closlab[optimise]'",
        )


def objective(word: str) -> str:
    """A figure's key by its short name or its own."""
    key = OBJECTIVES.get(word, word)
    if key not in BY_KEY:
        raise RunError(
            f"--for {word}: there is no such figure",
            f"There are {', '.join(OBJECTIVES)}; or a figure's own name, such as {_LOST}.",
        )
    return key


def search(asked: Asked, out: Path, jobs: Runs) -> Found:
    """Search until there are as many trials as asked for, or nothing better came of many."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", module="optuna")  # of what is new, and of few trials
    study = _study(asked, out)
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)  # its process is no more
    starts = _starts(asked)
    found = collected(asked, study)
    while not (why := _is_over(asked, study)):
        done = len(_over(study))
        study.sampler = optuna.samplers.TPESampler(
            seed=asked.seed * 100_003 + done, n_startup_trials=_FIRST, multivariate=True
        )
        for start in starts[done : done + BATCH]:
            study.enqueue_trial(start)
        _batch(asked, study, jobs, found)
        found = collected(asked, study)
    found.why_over, found.starts = why, len(starts)
    found.importance = _importance(asked, study)
    return found


def _study(asked: Asked, out: Path) -> Study:
    import optuna
    from optuna.storages.journal import JournalFileBackend

    spec, path = out / SPEC, out / JOURNAL
    content = json.dumps(asked.content(), indent=1) + "\n"
    if path.exists() and spec.exists() and spec.read_text() != content:
        raise RunError(
            f"{out} has a search for something else: {SPEC} says what",
            "Ask for the same to go on with it, or name another folder.",
        )
    spec.write_text(content)
    return optuna.create_study(
        storage=optuna.storages.JournalStorage(JournalFileBackend(str(path))),
        study_name="closlab", load_if_exists=True,
        directions=["maximize" if key in MORE_IS_BETTER else "minimize"
                    for key in asked.objectives],
    )  # fmt: skip


def _starts(asked: Asked) -> list[dict[str, float | str]]:
    """The scenario as it is, and what vendors publish, as far as they are within bounds."""
    made = []
    for changes in ((), *(profile.changes() for profile in PUBLISHED)):
        scenario = catalogue.load(asked.scenarios[0], (*asked.changes, *changes))
        values = {lever.key: lever.found(scenario) for lever in asked.levers}
        known = {key: value for key, value in values.items() if value is not None}
        if known and known not in made:
            made.append(known)
    return made


def _over(study: Study) -> list[FrozenTrial]:
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def _is_over(asked: Asked, study: Study) -> str:
    """Why the search is over; nothing: it is not."""
    done = len(_over(study))
    if done >= asked.trials:
        return f"{done} trials were asked for"
    found = collected(asked, study)
    last = max((one.number for one in found.front), default=None)
    trials = [trial.number for trial in _over(study)]
    if last is not None and sum(number > last for number in trials) >= asked.patience:
        return f"nothing better came of {asked.patience} trials"
    if last is None and done >= max(asked.patience, 2 * BATCH):
        return f"none of {done} trials is without loss"
    return ""


# --- trials ---------------------------------------------------------------------------------------


def _batch(asked: Asked, study: Study, jobs: Runs, found: Found) -> None:
    """Some trials at once: with one seed, then with the others those that are worth it."""
    trials = [study.ask() for _ in range(min(BATCH, asked.trials - len(_over(study))))]
    for trial in trials:
        for lever in asked.levers:
            _suggest(trial, lever)
    settings = {trial.number: said(asked.levers, trial.params) for trial in trials}
    first = jobs.run([(changes, 1) for changes in settings.values()])
    figures: dict[int, list[dict[str, float] | str]] = {
        number: [outcome] for number, outcome in zip(settings, first, strict=True)
    }
    stopped = {number: why for number, (outcome,) in figures.items()
               if (why := _why_stop(asked, outcome, found))}  # fmt: skip
    rest = [(number, seed) for number in settings if number not in stopped
            for seed in range(2, asked.seeds + 1)]  # fmt: skip
    for (number, _), outcome in zip(
        rest, jobs.run([(settings[number], seed) for number, seed in rest]), strict=True
    ):
        figures[number].append(outcome)
    for trial in trials:
        _tell(asked, study, trial, figures[trial.number], stopped.get(trial.number))


def _suggest(trial: Any, lever: Lever) -> None:
    if lever.words:
        trial.suggest_categorical(lever.key, lever.words)
    elif lever.is_whole:
        trial.suggest_int(lever.key, int(lever.low), int(lever.high), log=lever.is_log)
    else:
        trial.suggest_float(lever.key, lever.low, lever.high, log=lever.is_log)


def _why_stop(asked: Asked, outcome: dict[str, float] | str, found: Found) -> str:
    if isinstance(outcome, str):
        return outcome
    if breach(asked, [outcome]) > 0:
        return "packets are lost" if outcome.get(_LOST, 0) > 0 else "messages fail"
    values = [outcome.get(key) for key in asked.objectives]
    if any(value is None for value in values):
        return "a figure that is asked for does not apply"
    for one in found.front:
        if all(_worse(key, value or 0.0, best) > _BETTER for key, value, best in
               zip(asked.objectives, values, one.values, strict=True)):  # fmt: skip
            return f"trial {one.number} is better by half"
    return ""


def _worse(key: str, value: float, best: float) -> float:
    """How many times as bad as another."""
    if key in MORE_IS_BETTER:
        value, best = best, value
    return value / best if best else (1.0 if value == best else 1e9)


def breach(asked: Asked, figures: Sequence[Mapping[str, float]]) -> float:
    """By how much it is not allowed; 0: it is."""
    lost = 0.0 if asked.allows_losses else sum(each.get(_LOST, 0.0) for each in figures)
    return lost + 1000 * sum(each.get(_FAILED, 0.0) for each in figures)


def _tell(
    asked: Asked, study: Study, trial: Any, outcomes: list[dict[str, float] | str], why: str | None
) -> None:
    """Tell Optuna what came of a trial."""
    from optuna.trial import TrialState

    figures = [each for each in outcomes if isinstance(each, dict)]
    words = [each for each in outcomes if isinstance(each, str)]
    by_objective = [[each[key] for each in figures if key in each] for key in asked.objectives]
    if words or any(len(values) < len(figures) for values in by_objective):
        trial.set_user_attr(_STOPPED, words[0] if words else why)
        study.tell(trial, state=TrialState.FAIL)
        return
    trial.set_user_attr(_FIGURES, figures)
    trial.set_constraint(_BREACH, breach(asked, figures))
    if why:
        trial.set_user_attr(_STOPPED, why)
    study.tell(trial, [fmean(values) for values in by_objective])


def collected(asked: Asked, study: Study) -> Found:
    """All that is known of a search."""
    from optuna.trial import TrialState

    found = Found(asked)
    for trial in study.get_trials(deepcopy=False):
        if trial.state is TrialState.FAIL:
            found.failed += _STOPPED in trial.user_attrs
        elif trial.state is TrialState.COMPLETE:
            if _STOPPED in trial.user_attrs:
                found.stopped += 1
                continue
            found.tried.append(
                Tried(
                    trial.number, said(asked.levers, trial.params), tuple(trial.values),
                    tuple(trial.user_attrs[_FIGURES]),
                    all(breach <= 0 for breach in trial.constraints.values()),
                )
            )  # fmt: skip
    return found


def _beats(asked: Asked, one: Tried, other: Tried) -> bool:
    """Whether one is nowhere worse and somewhere better; of equals the first one stays."""
    values = zip(asked.objectives, one.values, other.values, strict=True)
    pairs = [(-a, -b) if key in MORE_IS_BETTER else (a, b) for key, a, b in values]
    if all(a == b for a, b in pairs):
        return one.number < other.number
    return all(a <= b for a, b in pairs)


def _importance(asked: Asked, study: Study) -> dict[str, dict[str, float]]:
    """How much each lever matters for what is best, by PED-ANOVA; nothing where too few are."""
    import optuna

    made: dict[str, dict[str, float]] = {}
    for at, key in enumerate(asked.objectives):
        try:
            shares = optuna.importance.get_param_importances(
                study, evaluator=optuna.importance.PedAnovaImportanceEvaluator(),
                target=partial(_badness, key, at),
            )  # fmt: skip
        except (RuntimeError, ValueError):  # all values are the same, or there are too few
            continue
        ordered = sorted(shares.items(), key=lambda one: (-one[1], one[0]))  # equals, too
        made[key] = {name: float(share) for name, share in ordered}
    return made


def _badness(key: str, at: int, trial: FrozenTrial) -> float:
    """An objective's value, less of which is better."""
    value = float(trial.values[at])
    return -value if key in MORE_IS_BETTER else value


class Runs:
    """Runs of all workloads, here or on a Dask cluster, taken together.

    Of one workload figures are what they are. Of several each counts as its ratio to the workload
    as it is, or, where one has none of it (pauses), as the ratio of all workloads' sums.
    """

    def __init__(
        self, asked: Asked, processes: int | None, cluster: str | None, stages: Stages
    ) -> None:
        self._asked, self._processes = asked, processes
        self._cluster, self._stages = cluster, stages
        self._usual: list[dict[str, float]] = []
        if len(asked.scenarios) > 1:
            self._usual = self._as_they_are()

    def _as_they_are(self) -> list[dict[str, float]]:
        """By workload what is asked for, as means of seeds."""
        seeds = range(1, self._asked.seeds + 1)
        outcomes = self._each([((), seed) for seed in seeds])
        made = []
        for at, name in enumerate(self._asked.scenarios):
            mine = [one[at] for one in outcomes]
            for each in mine:
                if isinstance(each, str):
                    raise RunError(f"{name} cannot be run as it is: {each}")
            results = [each for each in mine if isinstance(each, dict)]
            for key in self._asked.objectives:
                if any(key not in each for each in results):
                    raise RunError(f"{name} has no '{key}'", "Ask for another figure (--for).")
            made.append(
                {key: fmean(each[key] for each in results) for key in self._asked.objectives}
            )
        return made

    def _each(
        self, jobs: Sequence[tuple[tuple[str, ...], int]]
    ) -> list[list[dict[str, float] | str]]:
        """By job and by workload what came of it."""
        asked = self._asked
        outcomes = run_all(
            [(name, (*asked.changes, *changes), seed) for changes, seed in jobs
             for name in asked.scenarios],
            self._processes, self._cluster, self._stages,
        )  # fmt: skip
        width = len(asked.scenarios)
        return [outcomes[at : at + width] for at in range(0, len(outcomes), width)]

    def run(self, jobs: Sequence[tuple[tuple[str, ...], int]]) -> list[dict[str, float] | str]:
        """What came of each, in their order."""
        return [self._together(outcomes) for outcomes in self._each(jobs)]

    def _together(self, outcomes: list[dict[str, float] | str]) -> dict[str, float] | str:
        for each in outcomes:
            if isinstance(each, str):
                return each
        results = [each for each in outcomes if isinstance(each, dict)]
        keys = self._asked.objectives
        made = {key: sum(each.get(key, 0.0) for each in results) for key in (_LOST, _FAILED)}
        for key in keys:
            values = [each[key] for each in results if key in each]
            usual = [each[key] for each in self._usual]
            if len(values) < len(results):
                continue
            if not usual:
                made[key] = values[0]
            elif all(usual):
                made[key] = fmean(v / u for v, u in zip(values, usual, strict=True))
            else:
                made[key] = sum(values) / (sum(usual) or 1.0)
        return made


def run_all(
    jobs: Sequence[tuple[str, tuple[str, ...], int]], processes: int | None, cluster: str | None,
    stages: Stages,
) -> list[dict[str, float] | str]:  # fmt: skip
    """Figures of scenarios with changes and a seed, or what went wrong, in their order."""
    outcomes: dict[int, dict[str, float] | str] = {}
    variants = []
    for number, (name, changes, seed) in enumerate(jobs):
        try:
            scenario = catalogue.load(name, (*changes, f"seed={seed}"))
        except LabError as error:
            outcomes[number] = error.message
            continue
        variants.append(Variant(number, scenario, changes, Path(os.devnull)))
    if processes == 1 and cluster is None:
        with stages("Running, one by one", len(variants)) as stage:
            for variant in variants:
                outcomes[variant.number] = figures_of(variant)
                stage.advance()
    elif variants:
        done = (
            in_parallel(figures_of, variants, processes, stages)
            if cluster is None
            else on_dask(figures_of, variants, cluster, processes, stages)
        )
        outcomes |= {variant.number: outcome for variant, outcome in done}
    return [outcomes[number] for number in range(len(jobs))]


def figures_of(variant: Variant) -> dict[str, float] | str:
    """Run a variant where nothing is kept."""
    with scratch() as space:
        return run_one(replace(variant, out=space))

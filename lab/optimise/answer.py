"""The answer of a search: one trial of the front, run again with seeds that nobody searched with.

What is best with a few seeds may be so by luck. So the best trials, and the settings that a search
begins with, are run with more seeds; the answer is what is best in what was asked for first, and
of those that are within 2 % of it what is best in what was asked for next. Losing nothing with any
seed comes before all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from lab.configs.findings import Op, grounded
from lab.configs.findings import replace as put
from lab.errors import LabError, RunError
from lab.machine.paths import writing_to
from lab.optimise.published import PUBLISHED
from lab.optimise.search import MORE_IS_BETTER, Asked, Found, Runs, Tried, breach, run_all
from lab.progress import Stages
from lab.scenario import catalogue
from params.data import Data
from views.report.charts import Spread

AS_IT_IS, ANSWER = "as it is", "found"
_SECOND_SEED = 1_001  # of what the answer is chosen by
_FIRST_SEED = 10_001  # of what it is compared by
_LOOKED_AT = 8  # trials, beside those a search begins with
_ALIKE = 0.02
_WRED, _DEFAULT = "AZURE_LOSSLESS", "AZURE"  # as SONiC's own templates name them
_COLOURS = "green", "yellow", "red"


class Compared(Data):
    """A setting on a workload, by figure: its mean, and its difference to the answer."""

    workload: str
    setting: str
    figures: Mapping[str, Spread]
    above: Mapping[str, Spread]  # this less the answer, seed by seed
    lost: float
    failed: str = ""


def chosen(found: Found, jobs: Runs, seeds: int) -> Tried:
    """The answer, with its figures of all seeds."""
    asked = found.asked
    fine = [one for one in found.tried if one.is_allowed]
    if not fine:
        raise RunError(
            f"of {len(found.tried) + found.stopped + found.failed} trials none loses nothing",
            "Widen the ranges, change what is fixed (--set), or allow losses (--losses).",
        )
    ordered = [*sorted(found.front, key=_goodness(asked)), *sorted(fine, key=_goodness(asked))]
    starts = [one for one in fine if one.number < found.starts]
    ahead = {one.number: one for one in (*ordered[:_LOOKED_AT], *starts)}
    wanted = [(one, _SECOND_SEED + seed) for one in ahead.values() for seed in range(seeds)]
    outcomes = jobs.run([(one.changes, seed) for one, seed in wanted])
    more: dict[int, list[dict[str, float]]] = {number: [] for number in ahead}
    for (one, _), outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, dict):
            more[one.number].append(outcome)
    looked = [
        replace(one, figures=(*one.figures, *more[one.number]))
        for one in ahead.values()
        if len(more[one.number]) == seeds
    ]
    looked = [one for one in looked if breach(asked, one.figures) == 0] or looked
    if not looked:
        raise RunError("not one of the best trials can be run with other seeds")
    left = [replace(one, values=tuple(fmean(each[key] for each in one.figures)
                                      for key in asked.objectives)) for one in looked]  # fmt: skip
    for at, key in enumerate(asked.objectives):
        sign = -1 if key in MORE_IS_BETTER else 1
        best = min(sign * one.values[at] for one in left)
        left = [one for one in left if sign * one.values[at] <= best + _ALIKE * abs(best)]
    return min(left, key=_goodness(asked))


def _goodness(asked: Asked) -> Callable[[Tried], tuple[float, ...]]:
    """In the order in which it was asked for."""
    signs = [-1 if key in MORE_IS_BETTER else 1 for key in asked.objectives]

    def of(one: Tried) -> tuple[float, ...]:
        return (*(s * value for s, value in zip(signs, one.values, strict=True)), one.number)

    return of


def compare(
    asked: Asked, answer: Tried, workloads: Sequence[str], seeds: int, processes: int | None,
    cluster: str | None, stages: Stages,
) -> list[Compared]:  # fmt: skip
    """The answer beside the scenario as it is and what is published, with seeds of their own."""
    settings: dict[str, tuple[str, ...]] = {ANSWER: answer.changes, AS_IT_IS: ()}
    settings |= {profile.name: profile.changes() for profile in PUBLISHED}
    made = []
    for name in dict.fromkeys((*asked.scenarios, *workloads)):
        catalogue.load(name, (*asked.changes, *answer.changes))  # or it is told what is wrong
        jobs = [(name, (*asked.changes, *changes), _FIRST_SEED + seed)
                for changes in settings.values() for seed in range(seeds)]  # fmt: skip
        outcomes = run_all(jobs, processes, cluster, stages)
        by_setting = {
            setting: outcomes[at * seeds : (at + 1) * seeds] for at, setting in enumerate(settings)
        }
        made += [_compared(asked, name, setting, figures, by_setting[ANSWER])
                 for setting, figures in by_setting.items()]  # fmt: skip
    return made


def _compared(
    asked: Asked, name: str, setting: str, outcomes: Sequence[dict[str, float] | str],
    of_answer: Sequence[dict[str, float] | str],
) -> Compared:  # fmt: skip
    words = [each for each in outcomes if isinstance(each, str)]
    if words:
        return Compared(name, setting, {}, {}, 0, words[0])
    results = [each for each in outcomes if isinstance(each, dict)]
    best = [each for each in of_answer if isinstance(each, dict)]
    figures, above = {}, {}
    for key in asked.objectives:
        if all(key in each for each in results):
            figures[key] = Spread.of([each[key] for each in results])
            if len(best) == len(results) and all(key in each for each in best):
                both = zip(results, best, strict=True)
                above[key] = Spread.of([one[key] - other[key] for one, other in both])
    return Compared(name, setting, figures, above, fmean(e.get("drops.total", 0) for e in results))


# --- as configuration -----------------------------------------------------------------------------


def sonic_patch(changes: Sequence[str]) -> tuple[list[Op], list[str]]:
    """What SONiC's tables have of it, as a JSON patch; and the keys that they do not have."""
    ops: list[Op] = []
    others = []
    for change in changes:
        key, _, said = change.partition("=")
        value = yaml.safe_load(said)
        if key in ("ecn.kmin", "ecn.kmax"):
            end = "min" if key == "ecn.kmin" else "max"
            ops += [put("WRED_PROFILE", _WRED, f"{colour}_{end}_threshold", _bytes(value))
                    for colour in _COLOURS]  # fmt: skip
        elif key == "ecn.pmax":
            ops += [put("WRED_PROFILE", _WRED, f"{colour}_drop_probability",
                            max(1, round(100 * float(value)))) for colour in _COLOURS]  # fmt: skip
        elif key == "buffer.alpha":
            ops.append(put("DEFAULT_LOSSLESS_BUFFER_PARAMETER", _DEFAULT, "default_dynamic_th",
                               round(math.log2(float(value)))))  # fmt: skip
        elif change == "ecn.enabled=true":
            ops.append(put("WRED_PROFILE", _WRED, "ecn", "ecn_all"))
        else:
            others.append(change)
    has: dict[str, dict[str, Any]] = {
        "WRED_PROFILE": {_WRED: {}},
        "DEFAULT_LOSSLESS_BUFFER_PARAMETER": {_DEFAULT: {}},
    }
    return grounded(has, ops)[0], others


def _bytes(value: Any) -> int:
    scenario = catalogue.made({"name": "bytes", "ecn": {"kmin": 0, "kmax": value}})
    return int(scenario.ecn.kmax)


def write_answer(asked: Asked, answer: Tried, out: Path) -> list[str]:
    """`answer.yaml` (keys), `answer.config_db.json` (a JSON patch); the keys SONiC has not."""
    scenario = catalogue.load(asked.scenarios[0], (*asked.changes, *answer.changes))
    ops, others = sonic_patch((*asked.changes, *answer.changes))
    with writing_to(out):
        (out / "answer.yaml").write_text(
            yaml.safe_dump(scenario.model_dump(mode="json", exclude_unset=True), sort_keys=False)
        )
        (out / "answer.config_db.json").write_text(json.dumps(ops, indent=1) + "\n")
    try:
        catalogue.load(str(out / "answer.yaml"))
    except LabError as error:
        raise RunError(f"answer.yaml cannot be read again: {error.message}") from None
    return others

"""What something costs is the same run without it: the very run that one gets by leaving it out."""

from pathlib import Path

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.runs.ablation import priced
from lab.runs.lots import drawn
from lab.runs.run import run_quietly
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import MeasureSettings, Scenario
from lab.scenario.questions import Question
from views.report import read_run
from views.report.kept import KeptRun

# By scenario: what leaves out what costs something, and of whose messages the time counts.
LEFT_OUT = {
    "link-failure": ("faults=[]",),
    "lossy-link": ("loss.rate=0",),
    "degraded-spray": ("faults=[]",),
    "dual-tor": ("faults=[]",),
}
LARGE = ("lossy-link", "dual-tor")


def _run(scenario: Scenario, out: Path) -> KeptRun:
    out.mkdir()
    run_quietly(scenario, RunOptions(out, "sim"), Console(quiet=True))
    return read_run(out)


def _lasted_ns(run: KeptRun, what: str = "") -> int:
    """From the first of what hosts did to the end of the last, by the tables that are kept."""
    flows = [each for each in run.flows if what in each.what]
    begins = [each.start_ns for each in flows] + [each.start_ns for each in run.work]
    ends = [(each.start_ns or 0) + (each.fct_ns or 0) for each in flows]
    ends += [each.end_ns for each in run.work]
    return max(ends) - min(begin for begin in begins if begin is not None)


@pytest.mark.by_day(1)
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[pytest.mark.slow] * (each in LARGE)) for each in LEFT_OUT],
)
def test_it_is_the_run_that_leaves_it_out(name: str, tmp_path: Path) -> None:
    run = _run(catalogue.load(name), tmp_path / "with")
    without = _run(catalogue.load(name, LEFT_OUT[name]), tmp_path / "without")
    cost = run.result.cost
    assert cost is not None
    assert cost.took_ns == _lasted_ns(run)
    assert cost.without_ns == _lasted_ns(without)
    assert without.result.cost is None


def test_of_a_mix_the_first_part_pays_for_the_others(tmp_path: Path) -> None:
    name = "noisy-neighbour"
    mix = catalogue.load(name)
    alone = mix.traffic.model_dump(mode="json", exclude_none=True)["parts"][0]
    run = _run(mix, tmp_path / "with")
    without = _run(catalogue.load(name, (f"traffic={alone}",)), tmp_path / "without")
    cost = run.result.cost
    assert cost is not None
    assert (cost.of, cost.whom) == ("red (h4, h6 and h8 to h2)", "the all-reduce")
    assert cost.took_ns == _lasted_ns(run, "all-reduce") > cost.without_ns == _lasted_ns(without)


def test_a_straggler_costs_what_all_wait_for_it(tmp_path: Path) -> None:
    run = _run(catalogue.load("straggler"), tmp_path / "with")
    without = _run(catalogue.load("straggler", ("traffic.stragglers=[]",)), tmp_path / "without")
    cost = run.result.cost
    assert cost is not None
    assert cost.took_ns == _lasted_ns(run) > cost.without_ns == _lasted_ns(without)


BY_NIGHT = (pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 3, *range(5, 60)))


@pytest.mark.parametrize("seed", [1, 2, 4, *BY_NIGHT])
def test_of_any_run_that_asks(seed: int, tmp_path: Path) -> None:
    """Faults, losses and slow links by lot: without them it is what the same scenario gives."""
    scenario = drawn(9_300_000 + seed, tmp_path).scenario
    changes = {"question": Question.COSTS, "measures": MeasureSettings()}
    asking = scenario.model_copy(update=changes)
    found = priced(Experiment.of(asking))
    cost = _run(asking, tmp_path / "with").result.cost
    if found is None or cost is None:
        assert found is None or _ended_early(tmp_path / "with")
        return
    without = _run(
        found.without.scenario.model_copy(update={"measures": MeasureSettings()}),
        tmp_path / "without",
    )
    if without.result.flows.failed:
        assert cost.without_ns is None
    elif not found.whom:
        # A host that waits until what it sent is acknowledged does nothing that is kept.
        assert cost.without_ns is not None
        assert _lasted_ns(without) <= cost.without_ns <= without.result.duration_ns


def _ended_early(folder: Path) -> bool:
    return read_run(folder).result.ended is not None

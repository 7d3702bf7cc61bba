"""A run that was not kept is as it would be read from its folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lab.engines import RunOptions
from lab.runs import lots
from lab.runs.chaos import quiet
from lab.runs.run import assembled, outcome_of, save_making_room
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from views.report import read_run
from views.report.kept import unkept

_CHOSEN = ("incast", "pfc-storm", "lossy-link", "training-gpt3")


@pytest.mark.parametrize(
    "asked",
    [*_CHOSEN, 0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))],
)
def test_nothing_is_lost_or_changed_on_the_way_by_a_folder(
    asked: str | int, tmp_path: Path
) -> None:
    drawn = (
        asked if isinstance(asked, str) else dict(lots.drawn(asked, None, eventful=True).content)
    )
    scenario = catalogue.load(drawn) if isinstance(drawn, str) else catalogue.made(drawn)
    experiment = Experiment.of(scenario)
    options = RunOptions(tmp_path, "sim")
    outcome = outcome_of(experiment, options, quiet())
    result = assembled(experiment, outcome, options)
    save_making_room(result, experiment, outcome, options, quiet())
    found, read = unkept(experiment, result, outcome), read_run(tmp_path)
    assert found.result.content() == read.result.content()
    assert replace(found, result=read.result, folder=tmp_path) == read

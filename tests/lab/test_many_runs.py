"""Thousands of runs in one process: memory and descriptors stay as they are.

python -m tests.lab.test_many_runs RUNS
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.progress import Stages
from lab.runs.chaos import Belongings
from lab.runs.run import keep, outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment

TINY = (
    "topology={kind: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: 2}",
    "traffic={kind: incast, senders: 1, bytes: 10KB}",
)
WARM = 20  # runs, or
WARM_SHARE = 0.05  # of them, until a process has all that it goes on using
MAX_GROWTH_BYTES = 8 << 20
MAX_GROWTH_OBJECTS = 100_000


def many(runs: int) -> tuple[Belongings, Belongings]:
    """Make them, the same scenario under one seed after the other; before and after."""
    before = Belongings.now()
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(out=Path(folder), engine="sim")
        for seed in range(1, runs + 1):
            experiment = Experiment.of(catalogue.load("incast", (*TINY, f"seed={seed}")))
            quiet = Stages(Console(file=io.StringIO()))
            result = keep(experiment, outcome_of(experiment, options, quiet), options)
            assert result.flows.failed == 0
            if seed == max(WARM, int(WARM_SHARE * runs)):
                before = Belongings.now()
    return before, Belongings.now()


def check(before: Belongings, after: Belongings) -> None:
    assert (after.descriptors, after.children) == (before.descriptors, before.children)
    assert after.memory_bytes - before.memory_bytes < MAX_GROWTH_BYTES
    assert after.objects - before.objects < MAX_GROWTH_OBJECTS


@pytest.mark.slow
def test_forty_runs_leave_nothing() -> None:
    check(*many(40))


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_ten_thousand_runs_leave_nothing() -> None:
    check(*many(10_000))


if __name__ == "__main__":
    earlier, later = many(int(sys.argv[1]))
    print(earlier, later)
    check(earlier, later)

"""What a run ends with, from worst to best: the shell should not have to read the tables."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from lab.commands.execution import conclude
from lab.engines import RunOptions
from lab.machine.paths import FABRIC_PROGRAM
from lab.progress import Stages
from lab.results.outcome import INTERRUPTION, Fidelity, Outcome
from lab.runs.run import INTERRUPTED, NOT_WHOLE, UNBELIEVED
from tests.lab.simulated import Run, simulate

UNTRUE = Fidelity(late_p99_ns=10**6, ok=False, note="the machine could not keep up")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of a program that is given, which stays there for each conclusion."""
    return simulate("hello", out=tmp_path_factory.mktemp("hello"), p4=FABRIC_PROGRAM.parent)


def concluded(run: Run, outcome: Outcome) -> tuple[int, str]:
    """The exit code and what is said."""
    text = io.StringIO()
    stages = Stages(Console(file=text, width=400))
    options = RunOptions(out=run.out, p4=FABRIC_PROGRAM.parent)
    return conclude(run.experiment, outcome, options, stages), text.getvalue()


def test_exit_codes_tell_what_to_make_of_a_run(run: Run) -> None:
    assert concluded(run, run.outcome)[0] == 0
    code, said = concluded(run, replace(run.outcome, fidelity=UNTRUE))
    assert code == UNBELIEVED == 3
    assert "Do not trust this run: the machine could not keep up" in said
    # What did not even arrive, or was broken off, says so first.
    short = replace(run.outcome, ended="the limit of 5 ns was reached", fidelity=UNTRUE)
    assert concluded(run, short)[0] == NOT_WHOLE == 1
    broken_off = replace(run.outcome, ended=INTERRUPTION, fidelity=UNTRUE)
    assert concluded(run, broken_off)[0] == INTERRUPTED == 130

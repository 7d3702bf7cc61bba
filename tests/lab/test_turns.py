"""`closlab test` without words: both turns come, either may fail, and an interrupt ends both."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.machine.paths import ROOT
from tests.lab.conftest import CLOSLAB, closlab

TESTS = """
import os, pathlib, pytest, time

def turn(name):
    with pathlib.Path(os.environ["SEEN"]).open("a") as seen:
        print(name, file=seen)
    if os.environ["BAD"] == "slow":
        time.sleep(60)
    assert name != os.environ["BAD"]

def test_that_computes():
    turn("computes")

@pytest.mark.clock
def test_that_a_clock_judges():
    turn("clock")
"""


def environment(folder: Path, bad: str) -> dict[str, str]:
    """One in which the tests are these two."""
    file = folder / "test_two.py"
    file.write_text(TESTS)
    options = f"-c {ROOT}/pyproject.toml --rootdir {folder} -p no:cacheprovider"
    return {"PYTEST_ADDOPTS": f"{options} {file}", "SEEN": str(folder / "seen"), "BAD": bad}


@pytest.mark.parametrize(
    "bad", [pytest.param("nothing", marks=pytest.mark.slow), "computes", "clock"]
)
def test_both_turns_come_and_either_may_fail(tmp_path: Path, bad: str) -> None:
    done = closlab("test", **environment(tmp_path, bad))
    assert done.returncode == (bad != "nothing"), done.stdout
    assert (tmp_path / "seen").read_text().split() == ["computes", "clock"]
    assert done.stdout.count("1 failed") == (bad != "nothing")


@pytest.mark.parametrize("tell", [os.kill, os.killpg])
def test_an_interrupt_ends_both_turns(tmp_path: Path, tell: Callable[[int, int], None]) -> None:
    """Whether somebody tells the command alone, or a terminal all its processes."""
    with subprocess.Popen(
        [*CLOSLAB, "test"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment(tmp_path, "slow")},
        start_new_session=True,
    ) as tests:
        while not (tmp_path / "seen").exists():
            assert tests.poll() is None
            time.sleep(0.1)
        tell(tests.pid, signal.SIGINT)
        tests.communicate(timeout=30)  # its pipe has an end: nobody has it open
    assert tests.returncode == 130
    assert (tmp_path / "seen").read_text().split() == ["computes"]

"""A machine busy with something else: runs end, and agree with the simulator or say why not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.runs import agree

LOOPS = 8


@pytest.fixture
def busy() -> Iterator[None]:
    """Eight programs that each want a processor to themselves."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "title",
    ["incast, PFC", "all-reduce ring", "link failure", "incast, credits", "loss, selective",
     "incast, trimming, NSCC"],
)  # fmt: skip
def test_beside_eight_busy_loops_a_run_is_right_or_says_that_it_is_not(
    title: str, seed: int, tmp_path: Path
) -> None:
    (case,) = (each for each in agree.CASES if each.title == title)
    both = agree.on_both(case, tmp_path, "run", None, seed)
    said = f"{title}, seed {seed}: {both.verdict}, believed: {both.is_believed}"
    print(said)
    assert not both.verdict.complaints or not both.is_believed, said

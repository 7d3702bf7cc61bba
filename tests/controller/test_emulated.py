"""A controller on a fabric of real interfaces; see emulated.py."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.mininet
@pytest.mark.ordinary  # its PATH lacks what Mininet wants
def test_a_controller_may_be_killed_and_repairs_what_breaks(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.controller.emulated", str(tmp_path)],
        capture_output=True, text=True, timeout=200, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr

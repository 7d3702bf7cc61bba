"""`closlab bench switch` measures what it says: every rival forwards, and the numbers are rates."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.switch.test_interfaces import unshare

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.mininet


def test_bench_measures_bridge_and_switch() -> None:
    unshare()  # or a skip that says why not
    done = subprocess.run(
        [sys.executable, "-m", "bench.switch", "--seconds", "0.2", "--rounds", "1"],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rates = re.findall(r"^ +(\d+) bytes  (\w+) +([\d,]+) packets/s +([\d.]+)$", done.stdout, re.M)
    for size in ("64", "1088"):
        found = {name: int(pps.replace(",", "")) for s, name, pps, _ in rates if s == size}
        assert found["bridge"] > 1000, done.stdout
        assert found["closlab"] > 1000, done.stdout


def test_bench_refuses_nonsense() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.switch", "--rounds", "0"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 2
    assert "must be positive" in done.stderr

"""A slow interface builds a queue where the program can see it, and marks and records tell of it.

Each case runs in namespaces of its own, see slow.py.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.switch.slow import cases
from tests.switch.test_interfaces import ROOT, unshare

pytestmark = [pytest.mark.mininet, pytest.mark.clock]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.reference if case.startswith("bmv2") else ())
        for case in cases
    ],
)
def test_slow(case: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [*unshare(), sys.executable, "-m", "tests.switch.slow", case, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=ROOT,
        check=False,
    )
    if done.stderr.startswith("SKIP "):
        pytest.skip(done.stderr.removeprefix("SKIP ").strip())
    assert done.returncode == 0, done.stdout + done.stderr

"""Switches on real interfaces, in a network namespace of their own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LONG_S

from .rig import ROOT, Built

TOUR = Path(__file__).with_name("veth_tour.py")

pytestmark = pytest.mark.mininet


def test_frames_cross_two_switches_and_are_recorded(built: Built, tmp_path: Path) -> None:
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("unshare (util-linux) or ip (iproute2) is not installed")
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make network namespaces")
    words = [sys.executable, str(TOUR), str(built.p4info), str(built.json), str(tmp_path)]
    done = subprocess.run(
        [*unshare, *words],
        capture_output=True,
        text=True,
        timeout=LONG_S,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith("tour ended")

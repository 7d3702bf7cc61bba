"""Real interfaces: what enters a switch by one veth leaves it by another, whatever happens to them.

Each case runs in namespaces of its own, see interfaces.py.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.switch.interfaces import cases
from tests.veths import unshare
from tests.waiting import LONG_S

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.mininet
# Whose sockets hold little, and who may not do all that root may.
ORDINARY = (
    "bursts_keep_their_order",
    "every_frame_is_accounted_for_under_overload",
    "frames_between_switches_go_by_memory_while_nobody_looks",
    "ports_in_other_namespaces",
    "quiet_ports_are_heard_where_a_container_denies_calls",
)


def run_in_namespaces(module: str, *words: str) -> None:
    """A test's module as a program in private namespaces, which must do well."""
    done = subprocess.run(
        [*unshare("--mount"), sys.executable, "-m", module, *words],
        capture_output=True,
        text=True,
        timeout=LONG_S,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.by_day(4)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.ordinary] * (case in ORDINARY)) for case in cases],
)
def test_interfaces(case: str, tmp_path: Path) -> None:
    run_in_namespaces("tests.switch.interfaces", case, str(tmp_path))

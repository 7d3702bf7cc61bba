"""Whoever does something is waited for, however long it takes; whoever does nothing is not."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lab.machine.patience import Patience
from lab.machine.processes import line_of
from tests.waiting import LONG_S

pytestmark = pytest.mark.clock

QUIET_S = 0.6
BUSY = "while True: pass"
IDLE = "import time; time.sleep(60)"
# A timer is no work. On a starved machine it is often seen waiting for its turn, which is: so its
# ticks are rare enough for a while without.
TICKING = f"import time\nwhile True: time.sleep({QUIET_S / 2})"
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
STARVED = f"import os; os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\n{BUSY}"


@contextmanager
def python(*words: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", *words], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        time.sleep(0.4)  # starting is work too
        yield process
    finally:
        subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)
        process.wait()


def gave_up_after(pid: int, most_s: float) -> float | None:
    """When patience was over, if it was in that time."""
    began = time.monotonic()
    patience = Patience([pid], quiet_s=QUIET_S)
    while time.monotonic() - began < most_s:
        if patience.is_over():
            return time.monotonic() - began
        time.sleep(0.02)
    return None


@pytest.mark.parametrize("words", [(BUSY,), (PARENT, BUSY), (STARVED,)])
def test_whoever_works_is_waited_for(words: tuple[str, ...]) -> None:
    with python(*words) as process:
        assert gave_up_after(process.pid, 2.5 * QUIET_S) is None


@pytest.mark.parametrize("words", [(IDLE,), (PARENT, IDLE), (TICKING,)])
def test_whoever_does_nothing_is_given_up(words: tuple[str, ...]) -> None:
    with python(*words) as process:
        waited = gave_up_after(process.pid, LONG_S)
        assert waited is not None
        assert waited >= QUIET_S


def test_whoever_has_ended_is_given_up() -> None:
    assert gave_up_after(2**22 - 1, 3 * QUIET_S) is not None


def test_a_line_that_takes_long_to_work_out_comes() -> None:
    said: list[float] = []
    work = f"import time\nend = time.process_time() + {2 * QUIET_S}\n"
    work += "while time.process_time() < end: pass\nprint('ready', flush=True)"
    with python(work) as process:
        assert process.stdout is not None
        patience = Patience([process.pid], quiet_s=QUIET_S, tell=said.append)
        assert line_of(process.stdout, patience) == "ready"
    with python(IDLE) as process:
        assert process.stdout is not None
        assert line_of(process.stdout, Patience([process.pid], quiet_s=QUIET_S)) == ""

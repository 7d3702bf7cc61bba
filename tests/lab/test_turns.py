"""`closlab test` without words: all turns come, any may fail, and an interrupt ends them."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.commands.test import _REASON, KNOWN, _without_reason
from lab.machine.paths import ROOT
from lab.machine.processes import Job, side_by_side
from tests.lab.conftest import CLOSLAB, closlab
from tests.waiting import LONG_S

TESTS = """
import os, pathlib, pytest

def turn(name):
    idle = os.sched_getscheduler(0) == os.SCHED_IDLE
    told = pathlib.Path(os.environ["SEEN"])
    again = told.exists() and f"{name} g" in told.read_text()
    with told.open("a") as seen:
        print(name, "gives way" if idle else "goes first", file=seen)
    assert name not in os.environ["BAD"].split()
    assert again or name not in os.environ["ONCE"].split()

def test_that_computes():
    turn("computes")

@pytest.mark.clock
def test_that_a_clock_judges():
    turn("clock")

@pytest.mark.mininet
def test_that_brings_up_a_network():
    turn("network")

@pytest.mark.slow
def test_that_is_long():
    turn("slow")
"""


def test_what_is_known_to_fail_is_there_with_its_issue() -> None:
    known = _REASON.findall((ROOT / KNOWN).read_text())
    for test, reason in known:
        file, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text()
        assert re.search(r"issue \d+", reason), test


def test_who_passes_at_the_second_try_only_needs_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / KNOWN).write_text("# Known\n\n- `a.py::test_a`: it is slow (issue 7)\n")
    monkeypatch.setattr("lab.commands.test.ROOT", tmp_path)
    assert _without_reason({"a.py::test_a[1]", "b.py::test_b"}) == ["b.py::test_b"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("a.py::test_a[1]: it is slow (issue 7)")
    assert lines[1].endswith("b.py::test_b: nobody knows why") and KNOWN in lines[2]
    assert _without_reason(set()) == []


def environment(folder: Path, bad: str = "", once: str = "") -> dict[str, str]:
    """One in which the tests are these, of which some fail, and some the first time only."""
    file = folder / "test_four.py"
    file.write_text(TESTS)
    options = f"-c {ROOT}/pyproject.toml --rootdir {folder} -p xdist.plugin -p pytest_timeout"
    return {
        "PYTEST_ADDOPTS": f"{options} {file}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # others are for other tests
        "SEEN": str(folder / "seen"),
        "BAD": bad,
        "ONCE": once,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bad", "once"),
    [
        ("clock", "computes"),
        *(
            pytest.param(bad, once, marks=pytest.mark.slow)
            for bad, once in (
                ("", ""), ("", "clock"), ("computes", ""), ("network", ""), ("", "network"),
                ("", "computes clock network"), ("computes clock network", ""),
            )
        ),
    ],
)  # fmt: skip
def test_all_turns_come_and_any_may_fail(tmp_path: Path, bad: str, once: str) -> None:
    """What fails beside others is asked again alone; nobody knows why it would pass then."""
    done = closlab("test", **environment(tmp_path, bad, once))
    assert done.returncode == bool(bad or once), done.stdout
    # Who gives way already, as these tests do beside those of a clock, makes nobody go first.
    goes = "gives way" if os.sched_getscheduler(0) == os.SCHED_IDLE else "goes first"
    seen = (tmp_path / "seen").read_text().splitlines()
    seen.remove("computes gives way")
    again = [name for name in ("computes", "clock", "network") if name in f"{bad} {once}".split()]
    assert seen == [f"{name} {goes}" for name in ("clock", "network", *again)]
    assert done.stdout.count("1 failed") == len(again) + len(bad.split())
    named = done.stdout.count("failed beside others, passed alone: test_four.py::test_that_")
    assert named == len(once.split())


def says(text: str, code: int = 0, wait_s: float = 0) -> Job:
    return Job(["sh", "-c", f"sleep {wait_s}; echo {text}; exit {code}"])


def test_what_is_beside_is_shown_afterwards(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    front, beside = says("front", 0, wait_s=0.2), says("beside", 3)
    codes = side_by_side([front], [beside, says("then", 5, wait_s=0.4)], [says("too", 4)])
    assert codes == [[0], [3, 5], [4]]
    assert capfdbinary.readouterr().out.split() == [b"front", b"beside", b"then", b"too"]


INTERRUPTED = """
from lab.machine.processes import Job, side_by_side
stay = Job(["sh", "-c", "echo here >&2; exec sleep 60"])
side_by_side([stay, stay], [stay])
print("more")
"""


@pytest.mark.parametrize("tell", [os.kill, os.killpg])
def test_an_interrupt_ends_all(tmp_path: Path, tell: Callable[[int, int], None]) -> None:
    """Whether somebody tells the command alone, or a terminal all its processes."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=ROOT,
    ) as turns:
        assert turns.stderr is not None
        assert turns.stderr.readline() == "here\n"
        time.sleep(0.2)
        tell(turns.pid, signal.SIGINT)
        out, err = turns.communicate(timeout=LONG_S)  # its pipes have an end: nobody has them open
    assert turns.returncode == -signal.SIGINT
    assert "more" not in out
    assert "KeyboardInterrupt" in err


def test_the_command_tells_of_an_interrupt_by_its_exit_code(tmp_path: Path) -> None:
    slow = environment(tmp_path)
    with subprocess.Popen(
        [*CLOSLAB, "test"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **slow},
        start_new_session=True,
    ) as tests:
        assert tests.stdout is not None
        tests.stdout.read(1)  # the first turn has begun
        os.killpg(tests.pid, signal.SIGINT)
        tests.communicate(timeout=LONG_S)
    assert tests.returncode == 130

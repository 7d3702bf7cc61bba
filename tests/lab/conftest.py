"""Helpers for tests that run closlab as a user does: as a command, in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

CLOSLAB = [sys.executable, "-c", "from lab.cli import main; main()"]


def closlab(
    *words: str, timeout_s: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*CLOSLAB, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=timeout_s,
    )


def session_of(leader: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.parent.name))
    return found


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Word of running labs goes to a folder of the test's own; compiled code stays shared."""
    monkeypatch.setenv("CLOSLAB_RUNNING", str(tmp_path / "running"))
    return tmp_path / "running"


@pytest.fixture
def prompt(tmp_path: Path, own_cache: Path) -> Iterator[subprocess.Popen[str]]:
    """A lab that is up, at its mininet> prompt."""
    lab = subprocess.Popen(
        [*CLOSLAB, "run", "hello", "--cli", "--out", str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert lab.stdout is not None and lab.stdin is not None
    for line in lab.stdout:
        if "Starting CLI" in line:
            break
    yield lab
    if lab.poll() is None:
        lab.communicate("exit\n", timeout=30)

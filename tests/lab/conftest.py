"""Helpers for tests that run closlab as a user does: as a command, in a process of its own."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from lab.errors import MissingTool
from lab.machine.tools import require_frr
from tests.lab.ready import ready
from tests.waiting import LONG_S

CLOSLAB = [sys.executable, "-c", "from lab.cli import main; main()"]


def closlab(
    *words: str, timeout_s: float = LONG_S, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, in a process that does not have to read the code first."""
    return ready().run(words, {**os.environ, **environment}, cwd or Path.cwd(), timeout_s)


def started(*words: str | Path, **settings: Any) -> subprocess.Popen[Any]:
    """A command in a process that does not have to read the code first, as `Popen` gives it."""
    return ready().start([*map(str, words)], **settings)


def needs_frr() -> None:
    """Skip what cannot be without FRR."""
    try:
        require_frr()
    except MissingTool as missing:
        pytest.skip(f"{missing.message}. {missing.cure}")


def session_of(leader: int) -> list[int]:
    """The living processes of a session."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = entry.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                found.append(int(entry.parent.name))
    return found


def has_traffic(record: Path) -> bool:
    """Whether switches have written down that they send."""
    if not record.exists():
        return False
    last = record.read_text().rpartition("\n")[0].rpartition("\n")[2]
    return bool(last) and any(port[2] > 20 for port in json.loads(last)["ports"].values())


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Word of running labs goes to a folder of the test's own; compiled code stays shared."""
    monkeypatch.setenv("CLOSLAB_RUNNING", str(tmp_path / "running"))
    return tmp_path / "running"


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH with everything but what a test leaves out."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for directory in ("/usr/sbin", "/sbin", "/usr/bin", "/bin"):
        for program in Path(directory).iterdir():
            link = folder / program.name
            if not link.is_symlink():
                link.symlink_to(program)
    return folder

"""The launcher's first call: who is killed over it is named, and leaves nothing in /tmp."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from lab.machine.paths import ROOT
from tests.waiting import LONG_S

# Stands for a Python that makes an environment: how it ends then is the test's choice.
_PYTHON = """\
#!/bin/sh
case "$*" in
    *sys.exit*|*ensurepip*) exit 0 ;;
    -V) echo Python 3.12 ;;
    *venv*) touch begun; {does} ;;
    *) exit 1 ;;
esac
"""


def started(folder: Path, does: str) -> subprocess.Popen[str]:
    """A launcher in a tree of its own, which installs nothing."""
    for file in (ROOT / "closlab", *ROOT.glob("requirements*.lock")):
        shutil.copy(file, folder)
    tools = folder / "tools"
    tools.mkdir()
    for name, text in (
        ("python", _PYTHON.format(does=does)),
        ("apt-get", "#!/bin/sh\nexit 1\n"),
        ("sudo", "#!/bin/sh\nexit 1\n"),
    ):
        (tools / name).write_text(text)
        (tools / name).chmod(0o700)
    (folder / "tmp").mkdir()
    changes = {"CLOSLAB_PYTHON": str(tools / "python"), "TMPDIR": str(folder / "tmp")}
    return subprocess.Popen(
        # Who runs the tests may have been started so as not to hear of its terminal's end.
        ["env", "--default-signal=HUP", folder / "closlab", "list"],
        cwd=folder,
        env=os.environ | changes | {"PATH": f"{tools}:{os.environ['PATH']}"},
        stderr=subprocess.PIPE,
        text=True,
    )


def test_who_was_killed_over_the_first_call_is_named(tmp_path: Path) -> None:
    launcher = started(tmp_path, "kill -9 $$")
    _, said = launcher.communicate(timeout=LONG_S)
    assert launcher.returncode == 1
    assert "making .venv with Python 3.12 was ended by signal 9" in said
    assert "The next call tries again." in said
    assert not any((tmp_path / "tmp").iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_launcher_that_is_killed_leaves_nothing(tmp_path: Path, number: signal.Signals) -> None:
    launcher = started(tmp_path, "echo $$ >pid; exec sleep 600")
    until = time.monotonic() + LONG_S
    told = tmp_path / "pid"
    while not (told.exists() and told.read_text()) and time.monotonic() < until:
        time.sleep(0.02)
    launcher.send_signal(number)
    launcher.communicate(timeout=LONG_S)
    maker = Path("/proc", told.read_text().strip())
    while maker.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not maker.exists()
    assert not any((tmp_path / "tmp").iterdir())

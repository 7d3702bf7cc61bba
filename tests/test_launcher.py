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


# Stands for the Python of an environment that is there already: what it is asked is written down.
_ASKED = """\
#!/bin/sh
echo "$*" >>"${0%/*}/asked"
"""


def test_what_an_environment_lacks_is_brought_at_once(tmp_path: Path) -> None:
    """And compiled once; what wants to be alone is. Who has it all is asked nothing more."""
    for file in (ROOT / "closlab", *ROOT.glob("requirements*.lock")):
        shutil.copy(file, tmp_path)
    tools = tmp_path / ".venv" / "bin"
    tools.mkdir(parents=True)
    for name in ("python", "closlab"):
        (tools / name).write_text(_ASKED)
        (tools / name).chmod(0o700)
    base = [tmp_path / f"requirements{name}.lock" for name in ("", "-live")]
    stamp = "".join(f"\n{file.read_text().strip()}" for file in (*base, tmp_path / "closlab"))
    for name in (".stamp", ".ready"):
        (tmp_path / ".venv" / name).write_text(f"{stamp}\n")
    (tmp_path / ".venv-shell").mkdir()
    shell = (tmp_path / "requirements-shell.lock").read_text().strip()
    (tmp_path / ".venv-shell" / ".stamp").write_text(f"\n{shell}\n")
    for _ in range(2):
        launcher = [tmp_path / "closlab", "test", "-q"]
        subprocess.run(launcher, check=True, capture_output=True, timeout=LONG_S)
    asked = (tools / "asked").read_text().splitlines()
    together, alone, compiled = (line for line in asked if not line.startswith("test"))
    locks = ["dev", "dask", "browser", "mcp", "gym", "lsp", "optimise", "sonic"]
    assert [word for word in together.split() if word.startswith("-r")] == [
        f"-r{tmp_path}/requirements-{name}.lock" for name in locks
    ]
    assert alone.endswith(f"--no-deps -r{tmp_path}/requirements-otg.lock")
    assert "compileall" in compiled
    assert [line for line in asked if line.startswith("test")] == ["test -q"] * 2

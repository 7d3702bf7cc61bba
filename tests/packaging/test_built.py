"""An installation that brought what it needs asks for no compiler, and uses one that is there.

By night, for all C is compiled anew, by ziglang. By day a wheel simulates (`tests/test_wheel.py`).
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from lab.machine.paths import ROOT

pytestmark = pytest.mark.slow

_WITHOUT_ZIG = "import sys; sys.modules['ziglang'] = None\n"
_CLOSLAB = "from lab.cli import main; main()"
_TABLES = "flows.csv", "timeseries.csv"


class Installation:
    """One, and a user of it with an empty home."""

    def __init__(self, site: Path, home: Path) -> None:
        self.site, self.home = site, home
        (home / "bin").mkdir()

    def run(
        self, *words: str, code: str = _CLOSLAB, zig: bool = False, env: Mapping[str, str] = {}
    ) -> subprocess.CompletedProcess[str]:
        """By a machine without compilers, unless it is told otherwise."""
        home = {"HOME": str(self.home), "PATH": str(self.home / "bin")}
        # Its own cache, for who has none of his own is to see what is made; zig's is anybody's.
        zigs = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        site = {"PYTHONPATH": str(self.site), "ZIG_GLOBAL_CACHE_DIR": f"{zigs}/zig"}
        return subprocess.run(
            [sys.executable, "-B", "-c", ("" if zig else _WITHOUT_ZIG) + code, *words],
            cwd=self.home, env={**home, **site, **env},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def made(self) -> set[str]:
        """What it has compiled, by kind."""
        cache = self.home / ".cache" / "closlab"
        return {path.name.partition("-")[0] for path in cache.glob("*.so")}


@pytest.fixture
def user(installed: Path, tmp_path: Path) -> Installation:
    return Installation(installed, tmp_path)


def test_it_simulates_without_a_compiler_what_is_simulated_here(
    user: Installation, tmp_path: Path
) -> None:
    done = user.run("run", "hello", "--engine", "sim", "--out", "there")
    assert done.returncode == 0, done.stderr
    assert user.made() == set()
    words = [sys.executable, "-c", _CLOSLAB, "run", "hello", "--engine", "sim", "--out", "here"]
    subprocess.run(
        words, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True,
        capture_output=True,
    )  # fmt: skip
    for name in _TABLES:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_the_demo_shows_what_it_can_and_says_what_it_left_out(user: Installation) -> None:
    done = user.run("demo", "--out", "demo")
    assert done.returncode == 0, done.stderr
    for words in ("packets dropped", "Left out", "Mininet is not installed", "no C compiler"):
        assert words in done.stderr
    assert (user.home / "demo" / "report.html").exists()
    assert not (user.home / "demo" / "hello").exists()


def test_doctor_finds_no_fault_with_what_only_the_emulator_needs(user: Installation) -> None:
    done = user.run("doctor")
    assert done.returncode == 0, done.stdout
    assert "pip install 'closlab[compile]'" in done.stdout
    assert "Mininet is not installed" in done.stdout


def test_an_emulated_run_is_refused_with_the_way_out(user: Installation) -> None:
    done = user.run("run", "hello")
    assert done.returncode == 1
    assert "--engine sim" in done.stderr
    assert "Traceback" not in done.stderr


def changed(folder: Path) -> Path:
    """The stock program, with a control by another name: what it compiles to is named otherwise."""
    copy = shutil.copytree(ROOT / "p4src", folder / "p4src")
    text = (copy / "fabric.p4").read_text()
    assert "departure_losses" in text
    (copy / "fabric.p4").write_text(text.replace("departure_losses", "other_losses"))
    return copy


def test_a_changed_program_without_a_compiler_is_told_both_cures(user: Installation) -> None:
    folder = changed(user.home)
    done = user.run("run", "hello", "--engine", "sim", "--p4", str(folder), "--out", "mine")
    assert done.returncode == 1
    assert "apt-get install gcc libc6-dev" in done.stderr
    assert "pip install 'closlab[compile]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (user.home / "mine").exists()


@pytest.mark.parametrize("by", ["this machine's", "ziglang"])
def test_a_changed_program_is_linked_to_the_run_time_that_came(user: Installation, by: str) -> None:
    words = ("run", "hello", "--engine", "sim", "--p4", str(changed(user.home)), "--out", "mine")
    env = {"PATH": os.environ["PATH"]} if by != "ziglang" else {}
    done = user.run(*words, zig=by == "ziglang", env=env)
    assert done.returncode == 0, done.stderr
    assert user.made() == {"p4"}  # and neither a run-time nor a simulator
    assert user.run("run", "hello", "--engine", "sim", "--out", "stock").returncode == 0
    for name in _TABLES:
        mine, stock = (user.home / run / name for run in ("mine", "stock"))
        assert mine.read_bytes() == stock.read_bytes()


def test_who_names_a_compiler_or_flags_gets_what_they_make(user: Installation) -> None:
    code = "from switch.build import is_brought; print(is_brought())"

    def said(**env: str) -> str:
        return user.run(code=code, env=env).stdout.strip()

    assert said() == "True"
    assert said(CC="tcc") == "False"
    assert said(CLOSLAB_CFLAGS="-O0") == "False"

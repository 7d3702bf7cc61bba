"""Where Linux is not: what a simulated run asks of its system, macOS has as well."""

import subprocess
import sys
from pathlib import Path

import pytest

from lab.machine.paths import ROOT


@pytest.mark.slow
def test_a_simulated_run_asks_for_nothing_that_linux_alone_has(zig: None, tmp_path: Path) -> None:
    words = ("run", "hello", "--engine", "sim", "--out")
    for module, out in (("tests.packaging.darwin", "there"), ("", "here")):
        start = ["-m", module] if out == "there" else ["-c", "from lab.cli import main; main()"]
        done = subprocess.run(
            [sys.executable, *start, *words, str(tmp_path / out)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    for name in ("flows.csv", "timeseries.csv"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_what_it_cannot_do_is_told_in_one_message(zig: None) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.packaging.darwin", "run", "hello"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Linux' namespaces" in done.stderr and "--engine sim" in done.stderr
    assert "Traceback" not in done.stderr

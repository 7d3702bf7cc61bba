"""The virtual machine's recipe: what can be told of it without making one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.veths import alone

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "provision").glob("*.sh"))


@pytest.mark.skipif(shutil.which("vagrant") is None, reason="vagrant is not on PATH")
def test_vagrant_finds_the_recipe_valid(tmp_path: Path) -> None:
    done = subprocess.run(
        ["vagrant", "validate", "--ignore-provider"],
        cwd=ROOT,
        env={**os.environ, "VAGRANT_HOME": str(tmp_path), "VAGRANT_DOTFILE_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_shell(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.skipif(shutil.which("simple_switch_grpc") is not None, reason="BMv2 is installed")
def test_a_machine_that_cannot_have_bmv2_is_told_and_goes_on() -> None:
    done = subprocess.run(
        [*alone(), "bash", ROOT / "provision" / "p4lang.sh"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert "the lab uses its own compiler and switch" in done.stderr

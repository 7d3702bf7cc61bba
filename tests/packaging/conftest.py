"""An installation with what came compiled for this machine, as in a wheel."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from switch import target
from tests.test_wheel import INSTALLED

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def zig() -> None:
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("ziglang is not here: .venv/bin/pip install -r requirements-browser.lock")


@pytest.fixture(scope="session")
def installed(zig: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    aim = target.of_this_machine()
    if aim is None:
        pytest.skip("nothing is built ahead for such a machine")
    site = tmp_path_factory.mktemp("site")
    for name in INSTALLED:
        shutil.copytree(ROOT / name, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    (site / "switch" / "built").mkdir()
    words = [sys.executable, "-m", "lab.engines.cross"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), target.VARIABLE: aim.name}
    made = subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout
    for path in made.split():
        shutil.copyfile(path, site / "switch" / "built" / Path(path).name)
    return site

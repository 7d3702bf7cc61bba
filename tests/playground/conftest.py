"""The playground, made once for all tests of it."""

import importlib.util
import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from lab.progress import Stages
from views.playground.build import build

_NEEDED = {
    "node": (shutil.which("node"), "apt-get install nodejs"),
    "npm": (shutil.which("npm"), "apt-get install npm"),
    "ziglang": (
        importlib.util.find_spec("ziglang"),
        ".venv/bin/pip install -r requirements-browser.lock",
    ),
}


@pytest.fixture(scope="session")
def playground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name, (found, cure) in _NEEDED.items():
        if not found:
            pytest.skip(f"{name} is not installed: {cure}")
    folder = tmp_path_factory.mktemp("playground")
    build(folder, Stages(Console(file=io.StringIO())))
    return folder

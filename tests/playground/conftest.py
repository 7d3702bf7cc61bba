"""The playground, made once for all tests of it, whichever processes they run in."""

import fcntl
import functools
import http.server
import importlib.util
import io
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lab.errors import LabError
from lab.progress import Stages
from tests.lab.browser import Browser, browser
from views.playground.build import FETCHES, build

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
    here = tmp_path_factory.getbasetemp()
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    folder = here.parent / f"playground-{run}" if run else here / "playground"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "index.html").exists():
            try:
                build(folder, Stages(Console(file=io.StringIO())))
            except LabError as error:
                if error.cure != FETCHES:
                    raise
                pytest.skip(f"{error.message} {error.cure}")
    return folder


class _Files(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def __init__(self, *words: Any, prefix: str, **named: Any) -> None:
        self._prefix = prefix
        super().__init__(*words, **named)

    def translate_path(self, path: str) -> str:
        return super().translate_path(path.removeprefix(self._prefix))

    def log_message(self, *_: Any) -> None:
        """Nobody is told."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Its files given out, below a folder of the server's; the page's address."""
    at = f"/some/where/{folder.name}"
    files = functools.partial(_Files, directory=str(folder), prefix=at)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}{at}/index.html"
        server.shutdown()


@pytest.fixture(scope="module")
def address(playground: Path) -> Iterator[str]:
    with serving(playground) as found:
        yield found


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found

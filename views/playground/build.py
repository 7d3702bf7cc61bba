"""A folder of files that any web server gives out, in which the simulator runs in a tab."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution
from pathlib import Path

from lab.errors import LabError, MissingTool
from lab.machine.paths import ROOT
from lab.machine.scratch import scratch
from lab.progress import Stages
from switch import wasm
from switch.build import RUNTIME, digest
from switch.cache import kept
from switch.target import VARIABLE, zig_folder
from views.live import alone
from views.playground import lessons
from views.report.moments import SCRIPT
from views.report.palette import sheet
from views.report.traces import SCRIPT as TRACES

_CLANG = "@yowasp/clang@22.0.0-git20542-10"
_PYODIDE = "pyodide@314.0.7"  # of the Python, and the interface of its libraries, that follow
_EDITOR = "codemirror@5.65.21"
_PYTHON = "3.14"
_PLATFORM = "pyemscripten_2026_0_wasm32"
FETCHES = "It takes the network, once: for Pyodide, clang, an editor and pydantic-core."
_HERE = Path(__file__).parent
_PYODIDE_FILES = (
    "pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip",
)  # fmt: skip
_EDITOR_FILES = (
    "lib/codemirror.js", "lib/codemirror.css", "mode/clike/clike.js", "mode/python/python.js",
    "mode/yaml/yaml.js", "LICENSE",
)  # fmt: skip
# What a simulated run imports of other people's.
_PACKAGES = (
    "annotated-doc", "annotated-types", "finsy", "markdown-it-py", "mdurl", "networkx", "parsy",
    "protobuf", "pydantic", "pyee", "PyYAML", "rich", "typing-extensions", "typing-inspection",
    "typer", "shellingham",
)  # fmt: skip
_COMPILED = "pydantic-core"  # has a wheel for tabs
_OURS = (
    "compiler", "controller", "course", "exercises", "files", "lab", "params", "p4src",
    "scenarios", "switch", "topologies", "traffic", "views",
)  # fmt: skip
_US = "closlab"
_LEFT_OUT = ("__pycache__", "tests", "test", "solution")


def build(out: Path, stages: Stages) -> Path:
    """Make it; what is needed and not here is told with its cure."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise MissingTool(f"there is no {tool}", "apt-get install nodejs npm")
    zig_folder()
    out.mkdir(parents=True, exist_ok=True)
    with scratch() as folder:
        with stages("Fetching Pyodide, clang and an editor"):
            pyodide, clang, editor = (
                _fetched(package, folder) for package in (_PYODIDE, _CLANG, _EDITOR)
            )
        stage = folder / "stage"
        with stages("Compiling C for WebAssembly"):
            _lay_out(stage)
        with stages("Reading all of it once in node"):
            words = ["node", str(_HERE / "stage.mjs"), str(pyodide), str(stage)]
            _run([*words, str(out / "lab.zip")])
        _copied(pyodide, _PYODIDE_FILES, out / "pyodide")
        _copied(editor, _EDITOR_FILES, out / "editor")
        shutil.copytree(clang / "gen", out / "clang", dirs_exist_ok=True)
    (out / "course.json").write_text(json.dumps(lessons.course()))
    for page in (_HERE / "page").iterdir():
        shutil.copy(page, out / page.name)
    _copied(alone.PAGE, ("levers.js", "levers.css"), out)
    (out / "colours.css").write_text(sheet())
    index = out / "index.html"
    _fill_in(index, "REPORT_SCRIPTS", " ".join(_of_reports()))
    _fill_in(out / "offline.js", '["FILES"]', json.dumps(["./", *_needed(out)]))
    return index


def _fill_in(page: Path, place: str, text: str) -> None:
    page.write_text(page.read_text().replace(place, text))


def _needed(out: Path) -> Iterator[str]:
    """All files but the compiler's, which is loaded by who changes P4."""
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out)
        if path.is_file() and name.parts[0] != "clang":
            yield name.as_posix()


def _copied(of: Path, files: Iterable[str], to: Path) -> None:
    to.mkdir(exist_ok=True)
    for name in files:
        shutil.copy(of / name, to)


def _of_reports() -> Iterator[str]:
    """The scripts of reports and replays, which are shown in the page: no other runs there."""
    for script in (SCRIPT, TRACES, *alone.scripts()):
        hash_ = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        yield f"'sha256-{hash_}'"


def _lay_out(stage: Path) -> None:
    """All files as they lie in a tab, but for what Pyodide brings."""
    for name in _OURS:
        shutil.copytree(
            ROOT / name, stage / "lab" / name, ignore=shutil.ignore_patterns(*_LEFT_OUT)
        )
    shutil.rmtree(stage / "lab" / "views" / "playground" / "page")  # lies beside it
    packages = stage / "packages"
    shutil.copytree(_HERE / "absent", packages)
    for name in (*_PACKAGES, _US):
        for file, path in _files(importlib.metadata.distribution(name), is_ours=name == _US):
            (packages / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, packages / file)
    _unpack_compiled(packages)
    _copy_headers(stage / "headers")
    cached = stage / "home" / "pyodide" / ".cache" / "closlab"
    cached.mkdir(parents=True)
    words = [sys.executable, "-m", "lab.engines.cross"]
    for built in _run(words, {VARIABLE: wasm.TAB.name, "PYTHONPATH": str(ROOT)}).split():
        shutil.copy(built, cached)


def _copy_headers(folder: Path) -> None:
    """Those of C's own headers that programs need, for the compiler in the tab."""
    ours = RUNTIME / "ops.h"
    words = wasm.TAB.compiling([f"-I{RUNTIME}", "-DWIDE_WORDS=1", "-M", str(ours)])
    known = wasm.headers()
    for word in _run(words).split():
        path = Path(word)
        if path.is_relative_to(known):
            there = folder / path.relative_to(known)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, there)


def _files(package: Distribution, *, is_ours: bool) -> Iterator[tuple[Path, Path]]:
    """What an installed package says of itself, and its files of Python; ours lie there already."""
    for file in package.files or ():
        is_code = file.suffix in (".py", ".json") and not is_ours
        is_read = is_code or file.name == "METADATA"
        if is_read and not {*file.parts} & {*_LEFT_OUT, ".."} and file.parts[0] != "bin":
            path = Path(str(file.locate()))
            if path.is_file():
                yield Path(file), path


def _unpack_compiled(packages: Path) -> None:
    """A package with code of its own, from the wheel that its authors built for tabs."""
    wanted = f"{_COMPILED}=={importlib.metadata.version(_COMPILED)}"

    def fetch(path: Path) -> None:
        words = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
            *("--only-binary=:all:", "--platform", _PLATFORM, "--python-version", _PYTHON),
            *("--dest", str(path.parent), wanted),
        ]
        _run(words, cure=FETCHES)
        next(path.parent.glob("*.whl")).rename(path)

    wheel = kept(f"{_COMPILED}-{digest(wanted, _PLATFORM)}.zip", fetch)
    shutil.unpack_archive(wheel, packages, "zip")


def _fetched(package: str, space: Path) -> Path:
    """A package of npm's, unpacked; fetched once."""

    def fetch(path: Path) -> None:
        words = ["npm", "pack", "--silent", f"--pack-destination={path.parent}", package]
        (path.parent / _run(words, cure=FETCHES).strip()).rename(path)

    name = re.sub(r"\W+", "-", package).strip("-")
    shutil.unpack_archive(kept(f"{name}-{digest(package)}.tgz", fetch), space / name, "gztar")
    return space / name / "package"


def _run(
    words: list[str], environment: dict[str, str] | None = None, cure: str | None = None
) -> str:
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=os.environ | (environment or {})
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip()
        raise LabError(f"{' '.join(words[:3])} failed:\n{said[-2000:]}", cure)
    return done.stdout

"""What a page asks of the lab, told as JSON: runs of scenarios, and grades."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from lab.engines import RunOptions
from lab.errors import LabError
from lab.machine.paths import FABRIC_PROGRAM
from lab.progress import Stages
from lab.runs.run import check, keeping, simulate
from lab.scenario import catalogue, shipped
from lab.scenario.levers import levers as levers_of
from lab.scenario.model import Scenario, all_keys
from switch.wasm import NotBuilt, in_a_tab
from views.live import alone
from views.playground import lessons
from views.playground.lessons import Tell
from views.report import read_run, write_and_tell
from views.report.compare import Comparison, write_comparison

_NOW, _BEFORE, _BOTH = (Path("/results") / name for name in ("now", "before", "both"))
_CHANGED = Path("/p4src")
_BRIEF = "hello"
_STOCK = FABRIC_PROGRAM.parent
_BUILT = Path("/home/pyodide/.cache/closlab")


class _Lines(io.StringIO):
    """An output whose lines are handed on."""

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell

    def write(self, text: str, /) -> int:
        """Hand on what is not empty."""
        if text.strip():
            self._tell(text.rstrip())
        return len(text)


def unpacked() -> None:
    """What was built for this tab is its own, as what it builds itself: others write to neither."""
    for file in _BUILT.iterdir():
        file.chmod(0o700)


def warm_up() -> None:
    """Run something while nobody asks for anything: a browser compiles what is used often better,
    beside it, and a first run would be over before that."""
    with TemporaryDirectory() as folder:
        _made(catalogue.load(_BRIEF), Path(folder), None, lambda _: None)


def offered() -> str:
    """The scenarios that can be simulated, with what each shows, their keys, and the P4."""
    names = [name for name in shipped.names() if "sim" in shipped.engines(name)]
    return json.dumps(
        {
            "scenarios": {name: shipped.about(name) for name in names},
            "keys": {key.name: " ".join(key.about.split()) for key in all_keys()},
            "p4": {path.name: path.read_text() for path in sorted(_STOCK.glob("*.p4"))},
        }
    )


def run(asked: str, tell: Tell) -> str:
    """Simulate a scenario under changed settings, and with changed files of P4 if there are any:
    its verdict, report and files; or the C that is to be compiled before."""
    wanted = json.loads(asked)

    def act() -> dict[str, Any]:
        scenario = _scenario(wanted["scenario"], tuple(wanted["changes"]))
        return _run(scenario, _changed(wanted.get("p4", {})), tell)

    return _answered(act)


def compare(_asked: str, _tell: Tell) -> str:
    """The last run beside the one before it."""

    def act() -> dict[str, Any]:
        shutil.rmtree(_BOTH, ignore_errors=True)
        _BOTH.mkdir()
        page = write_comparison(Comparison.of((_BEFORE, _NOW)), _BOTH)
        return {"page": page.read_text()}

    return _answered(act)


def levers(asked: str, _tell: Tell) -> str:
    """What one would turn of a scenario as it ships."""
    name = json.loads(asked)["scenario"]
    return _answered(lambda: {"levers": [asdict(each) for each in levers_of(catalogue.load(name))]})


def replay(_asked: str, _tell: Tell) -> str:
    """The last run, to be played back."""
    return _answered(lambda: {"page": alone.page(read_run(_NOW))})


def grade(asked: str, so_far: Tell) -> str:
    """Judge what was made of a lesson's files; or the C that is to be compiled before."""
    wanted = json.loads(asked)
    return _answered(lambda: lessons.judged(wanted["lesson"], wanted["files"], so_far))


def _answered(act: Callable[[], dict[str, Any]]) -> str:
    try:
        return json.dumps(act())
    except NotBuilt as wants:
        compiling, linking = in_a_tab()
        to_do = {"source": wants.source, "path": str(wants.path)}
        return json.dumps({"compile": {**to_do, "compiling": compiling, "linking": linking}})
    except LabError as error:
        return json.dumps({"error": error.message, "cure": error.cure or ""})


def _changed(files: dict[str, str]) -> Path | None:
    """A copy of the program with other files in it; none if there are none."""
    if not files:
        return None
    shutil.rmtree(_CHANGED, ignore_errors=True)
    shutil.copytree(_STOCK, _CHANGED)
    for name, text in files.items():
        (_CHANGED / Path(name).name).write_text(text)
    return _CHANGED


def _scenario(asked: str | dict[str, Any], changes: tuple[str, ...]) -> Scenario:
    """One that ships, by its name, or all of another."""
    if isinstance(asked, str):
        return catalogue.load(asked, changes)
    return catalogue.made(asked, changes)


def _run(scenario: Scenario, p4: Path | None, tell: Tell) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        code, report, verdict = _made(scenario, Path(folder), p4, tell)
        _take(Path(folder))
    files = [path for path in sorted(_NOW.iterdir()) if path.is_file() and path.name != report]
    return {
        "verdict": verdict,
        "code": code,
        "report": (_NOW / report).read_text(),
        "files": {path.name: path.read_text() for path in files},
    }


def _made(scenario: Scenario, out: Path, p4: Path | None, tell: Tell) -> tuple[int, str, str]:
    """A run in a folder: how it ended, its report's name, and what that begins with."""
    options = RunOptions(out=out, engine="sim", p4=p4)
    check(options)
    stages = Stages(Console(file=_Lines(tell), width=200))
    code = simulate(scenario, options, stages, keeping(options, stages))
    tell("Writing the report")
    report, verdict = write_and_tell(out)
    return code, report.name, verdict


def _take(made: Path) -> None:
    """A run that was kept is the last one, and the last one that before it."""
    shutil.rmtree(_BEFORE, ignore_errors=True)
    if _NOW.exists():
        _NOW.rename(_BEFORE)
    shutil.copytree(made, _NOW)

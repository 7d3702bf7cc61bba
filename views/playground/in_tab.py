"""What a page asks of the lab: the scenarios there are, and a run of one, told as JSON."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.engines import RunOptions
from lab.errors import LabError
from lab.machine.paths import FABRIC_PROGRAM
from lab.progress import Stages
from lab.runs.run import check, keeping, simulate
from lab.scenario import catalogue, shipped
from lab.scenario.model import Scenario, all_keys
from switch.wasm import NotBuilt, in_a_tab
from views.report import write_and_tell

_OUT, _CHANGED = Path("/results"), Path("/p4src")
_STOCK = FABRIC_PROGRAM.parent
Tell = Callable[[str], object]


class _Told(io.StringIO):
    """An output whose lines are handed on."""

    def __init__(self, tell: Tell) -> None:
        super().__init__()
        self._tell = tell

    def write(self, text: str, /) -> int:
        """Hand on what is not empty."""
        if text.strip():
            self._tell(text.rstrip())
        return len(text)


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
    shutil.rmtree(_OUT, ignore_errors=True)
    _OUT.mkdir(parents=True)
    try:
        scenario = _scenario(wanted["scenario"], tuple(wanted["changes"]))
        return json.dumps(_run(scenario, _changed(wanted.get("p4", {})), tell))
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
    options = RunOptions(out=_OUT, engine="sim", p4=p4)
    check(options)
    stages = Stages(Console(file=_Told(tell), width=200))
    code = simulate(scenario, options, stages, keeping(options, stages))
    tell("Writing the report")
    report, verdict = write_and_tell(_OUT)
    files = [path for path in sorted(_OUT.iterdir()) if path.is_file() and path != report]
    return {
        "verdict": verdict,
        "code": code,
        "report": report.read_text(),
        "files": {path.name: path.read_text() for path in files},
    }

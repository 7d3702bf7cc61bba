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
from lab.progress import Stages
from lab.runs.run import check, keeping, simulate
from lab.scenario import catalogue, shipped
from lab.scenario.model import all_keys
from views.report import write_and_tell

_OUT = Path("/results")
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
    """The scenarios that can be simulated, with what each shows, and the keys of all."""
    names = [name for name in shipped.names() if "sim" in shipped.engines(name)]
    return json.dumps(
        {
            "scenarios": {name: shipped.about(name) for name in names},
            "keys": {key.name: " ".join(key.about.split()) for key in all_keys()},
        }
    )


def run(asked: str, tell: Tell) -> str:
    """Simulate a scenario under changed settings; its verdict, report and files."""
    wanted = json.loads(asked)
    shutil.rmtree(_OUT, ignore_errors=True)
    _OUT.mkdir(parents=True)
    try:
        return json.dumps(_run(wanted["scenario"], tuple(wanted["changes"]), tell))
    except LabError as error:
        return json.dumps({"error": error.message, "cure": error.cure or ""})


def _run(name: str, changes: tuple[str, ...], tell: Tell) -> dict[str, Any]:
    scenario = catalogue.load(name, changes)
    options = RunOptions(out=_OUT, engine="sim")
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

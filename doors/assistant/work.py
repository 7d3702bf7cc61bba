"""What tools do: in the process of a cell, whose bounds hold."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from course import formats
from course.grade import grade
from course.lesson import find
from doors.assistant.bounds import Bounds, is_within
from files import shown
from lab import api
from lab.engines.sim import engine as _engine  # noqa: F401  (there before it is forked)
from lab.errors import LabError, RunError, ScenarioError
from lab.progress import HeardStages
from lab.runs.why import why
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.quantity import duration
from views.report import figures, read_run, verdict
from views.report.compare import Comparison
from views.report.kept import KeptFlow, KeptRun
from views.report.numbers import FIGURES

_CODES = {
    0: "all arrived, and it is to be believed",
    1: "not all messages arrived",
    3: "it says of itself not to be believed",
    4: "classes that are to lose nothing lost packets, by the scenario's choice",
}
# By which a scenario names files of somebody's: those at hand lie in the session's folder.
_OF_FILES = frozenset({"file", "files", "groups", "path", "sizes"})


def run(
    bounds: Bounds,
    scenario: str | dict[str, Any],
    changes: dict[str, Any],
    seed: int | None,
    folder: Path | None,
    out: Path,
) -> dict[str, Any]:
    """Run a scenario in the simulator, and keep what came of it."""
    chosen = _scenario(scenario, changes, seed, folder)
    _refuse_much(chosen, bounds)
    made = api.run(chosen, out=out)
    return {
        **_gist(read_run(made.folder)),
        "ends": _CODES[made.code],
        "cautions": made.cautions,
        "command": _command(scenario, changes, seed),
    }


def gist_of(bounds: Bounds, folder: Path) -> dict[str, Any]:
    """What a run that is there already comes to."""
    return _gist(read_run(folder))


def slowest(bounds: Bounds, folder: Path, host: str | None, most: int) -> dict[str, Any]:
    """The messages of a run that took longest beside what they take alone."""
    kept = read_run(folder)
    _refuse_stranger(kept, host)
    own = [flow for flow in kept.flows if host in (None, flow.src, flow.dst)]
    own.sort(key=_slowness, reverse=True)
    return {
        "messages": len(own),
        "slowest": [{k: v for k, v in flow._asdict().items() if v is not None}
                    for flow in own[:most]],
    }  # fmt: skip


def reason(bounds: Bounds, folder: Path, what: str | None) -> dict[str, Any]:
    """What held a message, a host, a job or the run up; nothing is kept of it."""
    found = why(folder, what, HeardStages(lambda _: None))
    facts = found.model_dump(mode="json", exclude_none=True)
    return {"told": list(found.sentences()), "found": facts}


def compared(bounds: Bounds, folders: Sequence[Path]) -> dict[str, Any]:
    """Runs side by side, a figure a row."""
    found = Comparison.of(folders)
    return {
        "runs": [
            {"name": name, "settings": settings}
            for name, settings in zip(found.names, found.differences, strict=True)
        ],
        "table": [dict(zip(("figure", *found.names), row, strict=True)) for row in found.rows()],
    }


def drawn(bounds: Bounds, folder: Path, name: str | None) -> dict[str, Any]:
    """A figure of a run as SVG; without a name, which there are."""
    every = figures.figures_of(read_run(folder))
    if name is None:
        return {"figures": {known: what for known, (what, _) in every.items()}}
    svg = figures.figure(every, name).to_svg()
    if len(svg) > bounds.answer_bytes:
        raise LabError(
            f"the figure '{name}' takes {len(svg):,} bytes, and an answer may take "
            f"{bounds.answer_bytes:,}",
            "closlab figure writes it into a file.",
        )
    return {"svg": svg}


def graded(
    bounds: Bounds, lesson: str, files: dict[str, str], folder: Path | None
) -> dict[str, Any]:
    """What is right and wrong about a lesson's solution, which is judged shut in."""
    if folder is not None:
        return _judged(lesson, folder)
    with tempfile.TemporaryDirectory() as made:
        for name, text in files.items():
            if Path(name).name != name or name.startswith(".") or "\0" in name:
                raise LabError(f"'{shown(name)}' is no file's name", "Hand in files, not paths.")
            (Path(made) / name).write_text(text, errors="replace")
        return _judged(lesson, Path(made))


def _judged(lesson: str, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(formats.as_json(grade(find(lesson), folder)))
    return found


def _gist(kept: KeptRun) -> dict[str, Any]:
    result = kept.result
    values = {figure.key: figure.of(result) for figure in FIGURES}
    return {
        "scenario": result.scenario.name,
        "about": result.scenario.about.strip(),
        "seed": result.seed,
        "lasted": duration(result.duration_ns),
        "verdict": verdict(kept),
        "figures": {key: value for key, value in values.items() if value is not None},
    }


def _slowness(flow: KeptFlow) -> tuple[bool, float]:
    """Those that never arrived first."""
    return flow.fct_ns is None, flow.slowdown or 0.0


def _refuse_stranger(kept: KeptRun, host: str | None) -> None:
    hosts = [node.name for node in kept.result.scenario.fabric().hosts]
    if host is not None and host not in hosts:
        raise RunError(
            f"there is no host '{shown(host)}' in this run", f"{hosts[0]} to {hosts[-1]} are."
        )


def _scenario(
    given: str | dict[str, Any], changes: dict[str, Any], seed: int | None, folder: Path | None
) -> Scenario:
    """The scenario that is asked for, once it is sure that it reads nobody else's files."""
    for value in _files_of(given if isinstance(given, dict) else {}):
        _refuse_outside(value, folder)
    for key, value in changes.items():
        for inside in _files_of({key.rpartition(".")[2]: value}):
            _refuse_outside(inside, folder)
    if isinstance(given, str) and given.endswith((".yaml", ".yml")):
        return api.scenario(_own_file(given, folder), set=_with(changes, seed))
    if isinstance(given, str) and Path(given).name != given:
        raise ScenarioError(
            f"there is no scenario '{shown(given)}'", "list_scenarios tells the names of all."
        )
    return api.scenario(given, set=_with(changes, seed))


def _with(changes: dict[str, Any], seed: int | None) -> dict[str, Any]:
    return changes if seed is None else {**changes, "seed": seed}


def _own_file(given: str, folder: Path | None) -> str:
    """A scenario file of the session's folder."""
    if folder is None:
        raise ScenarioError(
            f"{shown(given)}: this session has no folder to read files from",
            "Give the scenario's keys instead, or start it as: closlab mcp --folder DIR",
        )
    path = folder / given
    if "\0" in given or not is_within(path, folder):
        raise ScenarioError(f"{shown(given)} lies outside the folder of this session")
    for value in _files_of(catalogue.read(str(path)).model_dump(mode="json", exclude_unset=True)):
        _refuse_outside(value, folder)
    return str(path)


def _files_of(content: Any) -> Iterator[str]:
    """What a scenario may take for a file's name, wherever in it."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            if key in _OF_FILES and isinstance(value, str):
                yield value
            elif key in _OF_FILES and isinstance(value, list):
                yield from (each for each in value if isinstance(each, str))
            yield from _files_of(value)
    elif isinstance(content, list):
        for each in content:
            yield from _files_of(each)


def _refuse_outside(value: str, folder: Path | None) -> None:
    if not any(sign in value for sign in "/\\\0~"):
        return  # a name that ships, or a file where the process stands: its own empty folder
    if folder is None or "\0" in value or not is_within(folder / value, folder):
        raise ScenarioError(f"{shown(value)!r} lies outside the folder of this session")


def _refuse_much(scenario: Scenario, bounds: Bounds) -> None:
    hosts = len(scenario.fabric().hosts)
    messages = 0 if hosts > bounds.hosts else len(Experiment.of(scenario).schedule)
    for what, count, most in (
        ("hosts", hosts, bounds.hosts),
        ("messages", messages, bounds.messages),
    ):
        if count > most:
            raise LabError(f"{count:,} {what} are more than the {most:,} of this session")


def _command(scenario: str | dict[str, Any], changes: dict[str, Any], seed: int | None) -> str:
    """What gives the same at a terminal."""
    if not isinstance(scenario, str):
        return "closlab run FILE.yaml --engine sim, of these keys: " + json.dumps(scenario)
    sets = "".join(f" --set '{api.change_of(*change)}'" for change in changes.items())
    tail = "" if seed is None else f" --seed {seed}"
    return f"closlab run {scenario} --engine sim{sets}{tail}"

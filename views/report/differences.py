"""In what runs differ: from one another, and from the scenario as it ships.

What ran (the program, its compiler, the engine, the switches, closlab itself) is told before what
was asked for: where it differs, nothing else explains a figure with certainty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import yaml

from lab.scenario import catalogue
from lab.scenario.model import Scenario
from lab.scenario.shipped import names
from views.report.kept import KeptRun

_NO_SETTINGS = ("name", "about", "question")
_BESIDE_THE_POINT = ("seed", "measures.")  # of what a scenario says of itself


def distinctions(runs: Sequence[KeptRun]) -> list[str]:
    """For each run in what it differs: what ran from all others, its settings from those of its
    scenario; empty: in nothing."""
    machines = [_machine(run) for run in runs]
    machine_keys = _differing(machines)
    settings = [flat(run.result.scenario) for run in runs]
    names = [run.result.scenario.name for run in runs]
    differing = {
        name: _differing([own for own, its in zip(settings, names, strict=True) if its == name])
        for name in dict.fromkeys(names)
    }
    return [
        ", ".join(
            [
                *(_provenance(run, key, machine[key]) for key in machine_keys if key in machine),
                *(
                    setting(key, written(own[key]), differing[name])
                    for key in differing[name]
                    if key in own
                ),
            ]
        )
        for run, machine, own, name in zip(runs, machines, settings, names, strict=True)
    ]


def setting(key: str, written: str, among: Sequence[str]) -> str:
    """One setting in few words, told among those of other keys."""
    section, _, end = key.rpartition(".")
    if end == "enabled" and written in ("true", "false"):
        return f"{section.upper()} {'on' if written == 'true' else 'off'}"
    return f"{short_key(key, among)}={written}"


def short_key(key: str, among: Sequence[str]) -> str:
    """The key without its section, where that still tells it apart."""
    end = key.rpartition(".")[2]
    is_alone = sum(other.rpartition(".")[2] == end for other in among) == 1
    return end if is_alone and end != "enabled" else key


def _differing(alike: Sequence[dict[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for each in alike for key in each)
    return [key for key in keys if len({repr(each.get(key)) for each in alike}) > 1]


def since_shipped(run: KeptRun) -> str:
    """What a run has other than the scenario of its name as it ships; empty: nothing that matters.

    A run of a scenario of somebody's own is compared with nothing.
    """
    own = run.result.scenario
    if own.name not in names():
        return ""
    shipped = catalogue.load(own.name)
    if shipped.about != own.about:
        return ""
    now = flat(own)
    keys = [key for key in changed_keys(shipped, own) if not key.startswith(_BESIDE_THE_POINT)]
    return ", ".join(f"{key}={written(now.get(key))}" for key in keys)


def changed_keys(shipped: Scenario, own: Scenario) -> list[str]:
    """The keys in which two scenarios differ."""
    before, now = flat(shipped), flat(own)
    return [key for key in dict.fromkeys((*before, *now)) if before.get(key) != now.get(key)]


def _machine(run: KeptRun) -> dict[str, str]:
    """What ran."""
    result, provenance = run.result, run.result.provenance
    closlab = [provenance.get("version", ""), provenance.get("commit", "")]
    found = {
        "P4": provenance.get("p4_sha256", ""),
        "compiler": provenance.get("compiler", ""),
        "engine": result.engine,
        "switch": result.switch,
        "closlab": " ".join(filter(None, closlab)),
    }
    return {key: value for key, value in found.items() if value}


def _provenance(run: KeptRun, key: str, what: str) -> str:
    """One part of what ran; a program by its hash, and by its folder if it is not ours."""
    if key != "P4":
        return f"{key}={what}"
    folder = run.result.provenance.get("p4")
    return f"P4={folder} ({what[:8]})" if folder else f"P4={what[:8]}"


def flat(of: Scenario) -> dict[str, Any]:
    """A scenario's settings by their keys."""
    found: dict[str, Any] = {}
    _flatten(of.model_dump(mode="json", exclude_none=True), "", found)
    return {key: value for key, value in found.items() if key not in _NO_SETTINGS}


def _flatten(content: dict[str, Any], prefix: str, found: dict[str, Any]) -> None:
    for key, value in content.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{key}.", found)
        else:
            found[prefix + key] = value


def written(value: object) -> str:
    """A value as one would give it to --set."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=math.inf)
    return text.removesuffix("...\n").strip()

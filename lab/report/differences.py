"""In which settings runs differ: from one another, and from the scenario as it ships."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import yaml

from lab import catalogue
from lab.report.kept import KeptRun
from lab.scenario import Scenario

_NO_SETTINGS = ("name", "about")
_BESIDE_THE_POINT = ("seed", "measures.")  # of what a scenario says of itself


def told_apart(runs: Sequence[KeptRun]) -> list[str]:
    """For each run the settings in which it differs from others of its scenario; empty: in none."""
    return [_told_apart(run, runs) for run in runs]


def _told_apart(run: KeptRun, runs: Sequence[KeptRun]) -> str:
    name = run.result.scenario.name
    alike = [_settings(other) for other in runs if other.result.scenario.name == name]
    own = _settings(run)
    keys = dict.fromkeys(key for each in alike for key in each)
    differing = [key for key in keys if len({repr(each.get(key)) for each in alike}) > 1]
    return ", ".join(_setting(key, own[key], differing) for key in differing if key in own)


def since_shipped(run: KeptRun) -> str:
    """What a run has other than the scenario of its name as it ships; empty: nothing that matters.

    A run of a scenario of somebody's own is compared with nothing.
    """
    own = run.result.scenario
    if own.name not in catalogue.names():
        return ""
    shipped = catalogue.load(own.name)
    if shipped.about != own.about:
        return ""
    before, now = _flat(shipped), _flat(own)
    keys = [key for key in dict.fromkeys((*before, *now)) if before.get(key) != now.get(key)]
    told = [key for key in keys if not key.startswith(_BESIDE_THE_POINT)]
    return ", ".join(f"{key}={_written(now.get(key))}" for key in told)


def _settings(run: KeptRun) -> dict[str, Any]:
    """A run's scenario and engine as flat keys."""
    how = {"engine": run.result.engine, "switch": run.result.switch}
    return _flat(run.result.scenario) | how


def _flat(of: Scenario) -> dict[str, Any]:
    found: dict[str, Any] = {}
    _flatten(of.model_dump(mode="json", exclude_none=True), "", found)
    return {key: value for key, value in found.items() if key not in _NO_SETTINGS}


def _flatten(content: dict[str, Any], prefix: str, found: dict[str, Any]) -> None:
    for key, value in content.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{key}.", found)
        else:
            found[prefix + key] = value


def _setting(key: str, value: object, differing: Sequence[str]) -> str:
    """One setting in few words: without its section where that is not needed to tell it apart."""
    section, _, last = key.rpartition(".")
    if last == "enabled":
        return f"{section.upper()} {'on' if value else 'off'}"
    is_alone = sum(other.rpartition(".")[2] == last for other in differing) == 1
    return f"{last if is_alone else key}={_written(value)}"


def _written(value: object) -> str:
    """A value as one would give it to --set."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=math.inf)
    return text.removesuffix("...\n").strip()

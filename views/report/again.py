"""How to make a run again: its command, and from what it was made."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from lab.errors import LabError
from lab.scenario import catalogue
from lab.scenario.model import Scenario
from lab.scenario.shipped import names
from traffic.collectives import TrafficError
from views.report.differences import changed_keys, flat, written
from views.report.kept import KeptRun

KEPT_AS = "scenario.yaml"  # what to call a scenario that no command's words tell


def command(run: KeptRun) -> str:
    """What makes a run again; one of a scenario of somebody's own needs that in a file."""
    result, provenance = run.result, run.result.provenance
    changes = _changes(result.scenario)
    words = ["closlab", "run", KEPT_AS if changes is None else result.scenario.name]
    words += ["--engine", result.engine]
    if result.engine == "mininet":
        words += ["--switch", result.switch, "--dilation", f"{result.dilation:.0f}"]
    if "p4" in provenance:
        words += ["--p4", provenance["p4"]]
    for change in changes or ():
        words += ["--set", change]
    return shlex.join(words)


def needs_file(run: KeptRun) -> bool:
    """Whether the command needs the scenario in a file."""
    return _changes(run.result.scenario) is None


def made_from(run: KeptRun) -> str:
    """Which closlab and which program, and when."""
    result, provenance = run.result, run.result.provenance
    parts = ["the simulator" if result.engine == "sim" else "Mininet"]
    if result.switch != "soft":
        parts.append(f"switches {result.switch}")
    parts.append(f"seed {result.seed}")
    parts.append(f"P4 program {provenance.get('p4_sha256', '')[:12]}")
    if provenance.get("compiler", "closlab") != "closlab":
        parts.append(f"compiled by {provenance['compiler']}")
    return f"{closlab_of(provenance)}: {', '.join(parts)}"


def closlab_of(provenance: Mapping[str, str]) -> str:
    """Which closlab, and when."""
    parts = [f"closlab {provenance.get('version', '')}".strip()]
    if provenance.get("commit"):
        parts.append(f"commit {provenance['commit']}")
    if "date" in provenance:
        parts.append(provenance["date"].replace("T", " ").replace("Z", " UTC"))
    return ", ".join(parts)


def _changes(own: Scenario) -> list[str] | None:
    """What to change in the scenario that ships to come to this one; None: no words do that."""
    if own.name not in names():
        return None
    shipped = catalogue.read(own.name)
    now = flat(own)
    keys = changed_keys(shipped, own)
    by_key = [f"{key}={written(now.get(key))}" for key in keys]
    for changes in (by_key, list(_by_section(own, keys))):
        try:
            if catalogue.read(own.name, tuple(changes)) == own:
                return changes
        except (LabError, TrafficError):  # keys of another kind than the one that ships
            continue
    return None


def _by_section(own: Scenario, keys: list[str]) -> Iterator[str]:
    """The same as whole sections, where keys do not go together with those that are there."""
    content: dict[str, Any] = own.model_dump(mode="json", exclude_none=True)
    for section in dict.fromkeys(key.partition(".")[0] for key in keys):
        yield f"{section}={written(content.get(section))}"

"""Runs that an earlier version kept can still be opened, in every way that today's can.

`tests/kept/VERSION/` has what that version wrote, less what it can be made without (its program and
its page). One is added when a version is released.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import closlab as api
from tests.lab.conftest import closlab

KEPT = sorted((Path(__file__).parent.parent / "kept").glob("*/*/"))


def test_there_is_one_of_each_released_version() -> None:
    changelog = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
    released = [
        line.split()[1]
        for line in changelog.splitlines()
        if line.startswith("## ") and "unreleased" not in line
    ]
    assert released and {kept.parent.name for kept in KEPT} == set(released)


@pytest.mark.parametrize("kept", KEPT, ids=lambda kept: f"{kept.parent.name}-{kept.name}")
def test_it_is_opened_as_todays_are(kept: Path, tmp_path: Path) -> None:
    here = tmp_path / kept.name
    shutil.copytree(kept, here)
    kept_result = json.loads((kept / "result.json").read_text())
    assert kept_result["provenance"]["version"] == kept.parent.name
    run = api.read(here)
    assert run.result.flows.count == kept_result["flows"]["count"] == len(api.records(run.flows))
    assert run.result.drops.total == kept_result["drops"]["total"]
    snapshots = list(api.watch(run))
    assert snapshots and snapshots[-1].messages.done == kept_result["flows"]["completed"]
    assert "<svg" in run.report().read_text()
    for words in (
        ("report", "."), ("compare", ".", ".", "--out", "beside"), ("runs", ".."),
        ("figure", "."), ("export", ".", "--as", "flows"),
    ):  # fmt: skip
        done = closlab(*words, cwd=here)
        assert done.returncode == 0, (words, done.stderr)
    # What it was run with is a scenario still, and one that means the same.
    again = api.scenario(kept_result["scenario"])
    assert again.model_dump(mode="json", exclude_unset=True) == kept_result["scenario"]

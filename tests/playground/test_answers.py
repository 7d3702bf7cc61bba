"""What a page is answered, asked of the same Python outside of a tab: files, errors, grades, pages.

That a tab says the same is asked by night (`test_same_bytes.py`, `test_page.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from course.grade import grade
from course.lesson import find
from lab.scenario import catalogue
from lab.scenario.levers import levers
from tests.playground.test_same_bytes import SIMULATED, here, placeless, there
from views.playground import in_tab

Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask a function of the tab's for something."""
    for name in ("_NOW", "_BEFORE", "_BOTH", "_CHANGED"):
        monkeypatch.setattr(in_tab, name, tmp_path / name)

    def ask(what: str, **asked: Any) -> dict[str, Any]:
        return dict(json.loads(getattr(in_tab, what)(json.dumps(asked), lambda _: None)))

    return ask


def test_runs_are_answered_with_what_they_come_to(ask: Ask) -> None:
    assert list(json.loads(in_tab.offered())["scenarios"]) == SIMULATED
    changes = ["traffic.bytes=64KB"]
    first = ask("run", scenario="hello", changes=changes)
    assert placeless(there(first)) == placeless(here("hello", changes))
    second = ask("run", scenario="hello", changes=["traffic.bytes=32KB"])
    assert second["files"]["flows.csv"] != first["files"]["flows.csv"]
    assert "before" in ask("compare")["page"]
    assert 'id="held"' in ask("replay")["page"]


def test_what_is_wrong_is_told_by_name(ask: Ask) -> None:
    assert (
        "traffic.senders"
        in ask("run", scenario="incast", changes=["traffic.senders=many"])["error"]
    )
    mark = json.loads(in_tab.offered())["p4"]["mark.p4"].replace("out_used > kmin", "out_used > no")
    assert "mark.p4" in ask("run", scenario="hello", changes=[], p4={"mark.p4": mark})["error"]


def test_sliders_are_those_of_the_scenario(ask: Ask) -> None:
    shown = [(each["key"], each["now"]) for each in ask("levers", scenario="incast")["levers"]]
    assert shown == [(each.key, each.now) for each in levers(catalogue.load("incast"))]


@pytest.mark.slow
def test_a_lesson_has_its_grade(ask: Ask) -> None:
    lesson = find("7")
    folder = lesson.folder / "solution"
    files = {path.name: path.read_text() for path in folder.iterdir()}
    theirs, mine = (
        ask("grade", lesson=lesson.name, files=files),
        grade(lesson, folder, is_trusted=True),
    )
    assert theirs["score"] == mine.score > 0
    assert [check["state"] for check in theirs["checks"]] == [v.state.value for v in mine.verdicts]

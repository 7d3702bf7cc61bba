"""Lessons are graded in a tab as they are on a command line: by night, as `test_page.py`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from course.grade import grade
from course.lesson import Lesson, find, lessons
from tests.changes import change
from tests.course.test_lessons import MISTAKES
from tests.lab.browser import Browser, Tab, needs_chromium
from tests.waiting import LONG_S

pytestmark = [needs_chromium, pytest.mark.slow]
_LOADS_S = 3 * LONG_S
_BEGIN = """
if (!window.mine) {
  mine = new Worker("worker.js", { type: "module" });
  mine.onmessage = ({ data: { kind, what } }) => {
    if (kind === "done") answered = what;
    if (kind === "brokeOff" || kind === "failed") answered = { error: what };
  };
}
answered = null;
mine.postMessage({ at: 1, what: "grade", words: %s });
1"""
_READY = "document.querySelector('#judge')?.disabled === false"
# What Python says of an error differs from version to version.
_IN_ITS_WORDS = re.compile(r"(raised \w+): [^']*")


@pytest.fixture(scope="module")
def tab(chromium: Browser, address: str) -> Iterator[Tab]:
    found = chromium.open(f"{address}#lesson=1")
    found.until(_READY, _LOADS_S)
    yield found
    found.close()


def in_tab(tab: Tab, lesson: Lesson, folder: Path) -> Any:
    handed_in = {path.name: path.read_text() for path in folder.iterdir()}
    tab.js(_BEGIN % json.dumps({"lesson": lesson.name, "files": handed_in}))
    return tab.until("answered", 4 * _LOADS_S)


def here(lesson: Lesson, folder: Path) -> dict[str, Any]:
    found = grade(lesson, folder, is_trusted=True)
    return {
        "score": found.score,
        "checks": [(v.says, v.state.value, v.earned, v.what, v.where) for v in found.verdicts],
    }


def same(tab: Tab, lesson: Lesson, folder: Path) -> bool:
    there, mine = in_tab(tab, lesson, folder), here(lesson, folder)
    assert "error" not in there, there
    keys = ("check", "state", "score", "what", "where")
    checks = [tuple(check[key] for key in keys) for check in there["checks"]]
    assert _IN_ITS_WORDS.sub(r"\1", repr(checks)) == _IN_ITS_WORDS.sub(r"\1", repr(mine["checks"]))
    assert there["score"] == mine["score"]
    return bool(there["passed"])


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: lesson.name)
def test_solution_and_skeleton_have_the_same_grades(tab: Tab, lesson: Lesson) -> None:
    assert same(tab, lesson, lesson.folder / "solution")
    assert not same(tab, lesson, lesson.folder / "skeleton")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_what_is_wrong_has_the_same_grade(tab: Tab, mistake: Any, tmp_path: Path) -> None:
    for path in (mistake.lesson.folder / "solution").iterdir():
        shutil.copy(path, tmp_path)
    change(tmp_path, mistake.diff)
    assert not same(tab, mistake.lesson, tmp_path)


def test_a_lesson_is_worked_at(chromium: Browser, address: str) -> None:
    """What is typed is graded, and kept; what one begins with comes back; endless is ended."""
    lesson = find("7")
    solution = (lesson.folder / "solution" / "rates.py").read_text()
    tab = chromium.open(f"{address}#lesson=7")
    tab.until(_READY, _LOADS_S)
    assert lesson.title in tab.js("document.querySelector('#text').textContent")
    assert "answers.yaml" in tab.js("document.querySelector('#handed-in').textContent")
    type_in(tab, "rates.py", solution)
    tab.click("#judge")
    tab.until("document.documentElement.dataset.graded === '1'", _LOADS_S)
    points = here_with(lesson, {"rates.py": solution})
    assert f"{points} of" in tab.js("document.querySelector('#progress').textContent")
    assert f"({points} of" in tab.js("document.querySelector('#lesson').selectedOptions[0].text")
    tab.js("location.reload(); 1")
    tab.until(
        "performance.getEntriesByType('navigation')[0].type === 'reload' && " + _READY, _LOADS_S
    )
    choose(tab, "rates.py")
    assert tab.js(f"{_EDITOR}.getValue()") == solution
    type_in(tab, "rates.py", solution.replace("def cut(", "while True: pass\ndef cut("))
    tab.js(
        "const usual = setTimeout; setTimeout = (act, ms) => usual(act, ms > 9e4 ? 4000 : ms); 1"
    )
    tab.click("#judge")
    tab.until("!!document.querySelector('#grade .wrong')", _LOADS_S)
    assert "did not come to an end" in tab.js("document.querySelector('#grade').textContent")
    tab.until(_READY, _LOADS_S)
    tab.click("#given")
    given = (lesson.folder / "skeleton" / "rates.py").read_text()
    assert tab.js(f"{_EDITOR}.getValue()") == given
    tab.close()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("import os; os._exit(3)", "broke off"),
        ("import sys; sys.setrecursionlimit(10**8); f = lambda: f() + 1; f()", "broke off"),
        ("held = []\nwhile True: held.append(bytearray(1 << 26))", "MemoryError"),
    ],
)
def test_what_ends_the_lab_is_told_and_it_is_loaded_anew(
    chromium: Browser, address: str, line: str, expected: str
) -> None:
    """What was typed stays, and the next thing is judged."""
    lesson = find("7")
    solution = (lesson.folder / "solution" / "rates.py").read_text()
    tab = chromium.open(f"{address}#lesson=7")
    tab.until(_READY, _LOADS_S)
    hostile = f"{line}\n{solution}"
    type_in(tab, "rates.py", hostile)
    tab.click("#judge")
    tab.until("document.documentElement.dataset.graded === '1'", _LOADS_S)
    said = "document.querySelector('#progress').textContent"
    assert expected in tab.js(f"{said} + document.querySelector('#grade').textContent")
    tab.until(_READY, _LOADS_S)
    assert tab.js(f"{_EDITOR}.getValue()") == hostile
    type_in(tab, "rates.py", solution)
    tab.click("#judge")
    tab.until("document.documentElement.dataset.graded === '2'", _LOADS_S)
    assert f"{here_with(lesson, {'rates.py': solution})} of" in tab.js(said)
    tab.close()


_EDITOR = "document.querySelector('#work .CodeMirror').CodeMirror"


def choose(tab: Tab, name: str) -> None:
    tab.js(
        "{ const chosen = document.querySelector('#handed-in');"
        f"chosen.value = {json.dumps(name)}; chosen.dispatchEvent(new Event('change')); }} 1"
    )


def type_in(tab: Tab, name: str, text: str) -> None:
    choose(tab, name)
    tab.js(f"{_EDITOR}.execCommand('selectAll'); {_EDITOR}.replaceSelection({json.dumps(text)}); 1")


def here_with(lesson: Lesson, files: dict[str, str]) -> int:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as space:
        folder = Path(space)
        for path in (lesson.folder / "skeleton").iterdir():
            (folder / path.name).write_text(files.get(path.name, path.read_text()))
        return grade(lesson, folder, is_trusted=True).score

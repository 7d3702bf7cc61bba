"""Every lesson: its solution passes, its skeleton and what people get wrong are told apart.

`broken/` has for each lesson some solutions that are wrong, each a change of the one that ships and
what has to be said of it. The default run judges some.
"""

import re
import shutil
from pathlib import Path

import pytest

from course.inside import verdicts
from course.lesson import Lesson, lessons
from course.submission import files_in
from course.verdict import Judged, State
from params.data import Data
from tests.changes import change

BROKEN = Path(__file__).parent / "broken"
LESSONS = lessons()


class Mistake(Data):
    """A solution that is wrong, and what has to be said of it."""

    lesson: Lesson
    name: str
    expected: str
    diff: str

    def __str__(self) -> str:
        return f"{self.lesson.number}-{self.name.replace(' ', '-')}"


def mistakes() -> list[Mistake]:
    found = []
    for lesson in LESSONS:
        for part in (BROKEN / f"{lesson.name}.txt").read_text().split("=== ")[1:]:
            head, _, diff = part.partition("\n")
            name, _, expected = head.partition(" | ")
            found.append(Mistake(lesson, name, expected, diff))
    return found


MISTAKES = mistakes()


def judged(lesson: Lesson, folder: Path) -> list[Judged]:
    return list(verdicts(lesson, files_in(folder)))


def complaints(found: list[Judged]) -> list[str]:
    """What is said of all that is wrong."""
    return [f"{v.what}\n{v.where}" for v in found if v.state is State.WRONG]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_the_solution_passes(lesson: Lesson) -> None:
    found = judged(lesson, lesson.folder / "solution")
    assert [v for v in found if v.state is not State.PASSED] == []
    assert len(found) >= 3


@pytest.mark.by_day(6)
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_the_skeleton_fails_and_hears_what_is_missing(lesson: Lesson) -> None:
    """Every step of it is named, and none of its points is given away."""
    folder = lesson.folder / "skeleton"
    found = judged(lesson, folder)
    assert not any(v.earned for v in found)
    assert all(v.where for v in found if v.state is State.WRONG)
    said = " ".join(complaints(found))
    steps = {step for _, _, what in lesson.todos(folder) if (step := _step(what))}
    assert steps
    first = min(steps)
    assert f"TODO {first}" in said
    for file in {name for name, _, _ in lesson.todos(folder)}:
        assert file in said


def _step(what: str) -> int | None:
    found = re.match(r"(\d+):?", what)
    return int(found[1]) if found else None


QUICK = {m.lesson: m for m in reversed(MISTAKES) if m.lesson.number in (1, 5, 10, 13)}.values()


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    "mistake",
    [pytest.param(m, id=str(m), marks=[] if m in QUICK else [pytest.mark.slow]) for m in MISTAKES],
)
def test_a_mistake_is_told(mistake: Mistake, tmp_path: Path) -> None:
    for path in (mistake.lesson.folder / "solution").iterdir():
        shutil.copy(path, tmp_path)
    change(tmp_path, mistake.diff)
    found = judged(mistake.lesson, tmp_path)
    said = complaints(found)
    assert any(mistake.expected in each for each in said), said


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_there_are_five_mistakes_that_hear_different_things(lesson: Lesson) -> None:
    words = [mistake.expected for mistake in MISTAKES if mistake.lesson == lesson]
    assert len(words) == len(set(words)) >= 5


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_a_lesson_is_whole(lesson: Lesson) -> None:
    readme = (lesson.folder / "README.md").read_text()
    assert readme.startswith(f"# {lesson.number}. ")
    for heading in ("**The question.**", "\n## Steps\n", "\n## Hand in\n", "\n## And then\n"):
        assert heading in readme, heading
    assert f"closlab grade {lesson.number}\n" in readme
    solution = {path.name for path in (lesson.folder / "solution").iterdir()}
    assert solution == set(lesson.files)
    assert all(f"`{name}`" in readme for name in lesson.files)
    assert not list(Lesson.todos(lesson, lesson.folder / "solution"))


def test_lessons_have_numbers_of_their_own() -> None:
    numbers = [lesson.number for lesson in LESSONS]
    assert numbers == list(range(1, 14))

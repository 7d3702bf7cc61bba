"""Lessons: what lies in `exercises/`, and a student's copy of one.

exercises/05-headroom/README.md     the question, a picture, the steps, what to hand in
                      picture.svg   what of it the fabric shows
                      skeleton/     what a student begins with
                      solution/     what it may become
exercises/net.p4                    what the P4 of all lessons includes
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from lab.errors import LabError
from lab.machine.paths import EXERCISES
from lab.scenario.keys import nearest
from params.data import Data

README = "README.md"
SHARED = ("net.p4",)
_TODO = re.compile(r"\bTODO\b:?\s*(.*)")


class Lesson(Data):
    """One of them."""

    folder: Path

    @property
    def number(self) -> int:
        """By which it is called."""
        return int(self.folder.name.partition("-")[0])

    @property
    def name(self) -> str:
        """Its folder's, number and all."""
        return self.folder.name

    @cached_property
    def title(self) -> str:
        """What its README begins with."""
        return (self.folder / README).read_text().partition("\n")[0].lstrip("# ")

    @cached_property
    def files(self) -> tuple[str, ...]:
        """What is handed in."""
        return tuple(sorted(path.name for path in (self.folder / "skeleton").iterdir()))

    @property
    def pictures(self) -> list[Path]:
        """What its README shows."""
        return sorted(self.folder.glob("*.svg"))

    def copied_to(self, folder: Path) -> list[str]:
        """Copy what a student begins with; what is there already stays. The new files' names."""
        given = sorted((self.folder / "skeleton").iterdir())
        wanted = [self.folder / README, *self.pictures, *given]
        if any(name.endswith(".p4") for name in self.files):
            wanted += [EXERCISES / name for name in SHARED]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            new = [path for path in wanted if not (folder / path.name).exists()]
            for path in new:
                shutil.copyfile(path, folder / path.name)
        except OSError as error:
            raise LabError(
                f"the lesson cannot be copied to {folder}: {error.strerror}",
                f"Give a folder you may write to:  closlab lesson {self.number} DIR",
            ) from None
        return [path.name for path in new]

    def todos(self, folder: Path) -> Iterator[tuple[str, int, str]]:
        """What is left to be done in a copy: file, line, and what it says there."""
        for name in self.files:
            path = folder / name
            lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
            for number, line in enumerate(lines, 1):
                if found := _TODO.search(line):
                    yield name, number, found[1]


def lessons() -> list[Lesson]:
    """All of them, by number."""
    return [Lesson(path.parent) for path in sorted(EXERCISES.glob(f"[0-9][0-9]-*/{README}"))]


def find(word: str) -> Lesson:
    """A lesson by its number, its name, or what its name has after the number."""
    known = lessons()
    for lesson in known:
        called = (lesson.name, lesson.name.partition("-")[2])
        if word in called or (word.isdecimal() and int(word) == lesson.number):
            return lesson
    names = [lesson.name.partition("-")[2] for lesson in known]
    raise LabError(
        f"there is no lesson '{word}'" + nearest(word, names),
        f"There are lessons 1 to {known[-1].number}; closlab lesson lists them.",
    )

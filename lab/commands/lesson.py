"""``closlab lesson``: the course, and a copy of one lesson to work in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from course.lesson import Lesson, find, lessons


def command(
    word: Annotated[str | None, typer.Argument(help="Its number; without it: all.")] = None,
    folder: Annotated[Path | None, typer.Argument(help="Where to work; else ./NN-NAME.")] = None,
) -> None:
    """Open a lesson of the course: copy what one begins with, say what is next."""
    if word is None:
        for lesson in lessons():
            print(lesson.title)
        print("\ncloslab lesson N opens one; closlab grade N judges what became of it.")
        return
    lesson = find(word)
    place = folder or Path(lesson.name)
    new = lesson.copied_to(place)
    print(f"Lesson {lesson.title}")
    print(f"New in {place}/: {', '.join(new)}" if new else f"All of it is in {place}/ already.")
    _tell_next(lesson, place)


def _tell_next(lesson: Lesson, place: Path) -> None:
    """Read, edit, or let it be judged."""
    todos = list(lesson.todos(place))
    if todos:
        print(f"Read {place}/README.md. Left to be done:")
        for name, line, what in todos:
            print(f"  {place}/{name}:{line}: {what}")
    judge = f"closlab grade {lesson.number} {place}"
    print(f"Then, and as often as you like:  {judge}" if todos else f"Next:  {judge}")

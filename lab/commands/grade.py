"""``closlab grade``: what is right and wrong about a lesson's solution."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from course.formats import FORMATS
from course.grade import grade
from course.lesson import find
from lab.errors import LabError


def command(
    word: Annotated[str, typer.Argument(metavar="LESSON", help="Its number or name.")],
    folder: Annotated[Path | None, typer.Argument(help="Else ./NN-NAME, or this one.")] = None,
    form: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "text",
    file: Annotated[Path | None, typer.Option("-o", "--out", help="Else it is printed.")] = None,
    is_trusted: Annotated[
        bool, typer.Option("--trusted", help="Judge it even where it cannot be shut in.")
    ] = False,
) -> None:
    """Judge a lesson's solution. Ends with 0: all is right; 1: something is wrong; 2: no grade."""
    try:
        if form not in FORMATS:
            raise LabError(f"there is no format '{form}'", f"Choose one of {', '.join(FORMATS)}.")
        lesson = find(word)
        usual = Path(lesson.name) if Path(lesson.name).is_dir() else Path()
        found = grade(lesson, folder or usual, is_trusted=is_trusted)
        text = FORMATS[form](found)
        if file is None:
            print(text)
        else:
            file.write_text(text + "\n")
    except LabError as error:
        error.show()
        raise typer.Exit(2) from None
    except OSError as error:
        LabError(f"{error.filename or file} cannot be written: {error.strerror}").show()
        raise typer.Exit(2) from None
    raise typer.Exit(0 if found.passed else 1)

"""The course, as a page shows it: what a lesson says, what one begins with, and its grade."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

from markdown_it import MarkdownIt

from course import judge
from course.formats import as_json
from course.in_process import InProcess
from course.lesson import README, Lesson, find, lessons
from course.submission import Files
from course.verdict import Grade, Judged
from lab.scenario import shipped

# As many seconds a page waits for the next thing that a judge finds, before it ends him.
PATIENCE_S = 120
ENDLESS = (
    f"it did not come to an end in {PATIENCE_S} s",
    "is there a loop, or a packet that goes round for ever?",
)
_IMAGE = re.compile(r'<img src="([\w.-]+\.svg)"')
_LESSON = re.compile(r'<a href="\.\./([\w-]+)/README\.md">')
_CODE = re.compile(r"(<code[^>]*>)(.*?)(?=</code>)", re.DOTALL)

Tell = Callable[[str], object]


def course() -> dict[str, Any]:
    """What a page has of the course before the lab is loaded."""
    return {
        "lessons": {lesson.name: _opened(lesson) for lesson in lessons()},
        "patience_s": PATIENCE_S,
        "endless": ENDLESS,
    }


def _opened(lesson: Lesson) -> dict[str, Any]:
    """A lesson's text, and the files that one begins with."""
    given = lesson.folder / "skeleton"
    return {
        "name": lesson.name,
        "title": lesson.title,
        "text": _page(lesson),
        "files": {file: (given / file).read_text() for file in lesson.files},
    }


def _page(lesson: Lesson) -> str:
    """Its text, with pictures in it; what it would have run on a command line can be run here."""
    text = MarkdownIt().render((lesson.folder / README).read_text())
    text = _IMAGE.sub(lambda found: f'<img src="{_picture(lesson, found[1])}"', text)
    text = _LESSON.sub(r'<a href="#lesson=\1">', text)
    return _CODE.sub(lambda found: found[1] + "\n".join(map(_command, found[2].split("\n"))), text)


def _picture(lesson: Lesson, name: str) -> str:
    drawn = base64.b64encode((lesson.folder / name).read_bytes()).decode()
    return f"data:image/svg+xml;base64,{drawn}"


def _command(line: str) -> str:
    """A line of code; one that runs a scenario which ships leads to it."""
    if not line.startswith("closlab run "):
        return line
    words = shlex.split(html.unescape(line))
    if words[2] not in shipped.names():
        return line
    changes = [word for before, word in pairwise(words) if before == "--set"]
    asked = urlencode({"scenario": words[2], "set": changes}, doseq=True)
    return f'<a href="#{html.escape(asked)}">{line}</a>'


def judged(name: str, files: Mapping[str, str], so_far: Tell) -> dict[str, Any]:
    """The grade, which is told as far as it is known, check by check."""
    lesson = find(name)
    handed_in: Files = {file: text.encode() for file, text in files.items()}
    found: list[Judged] = []
    for verdict in judge.verdicts(lesson, handed_in, InProcess):
        found.append(verdict)
        so_far(as_json(Grade(lesson.name, lesson.title, tuple(found))))
    return dict(json.loads(as_json(Grade(lesson.name, lesson.title, tuple(found)))))

"""The documentation as a site: the pages that are there, and those that the code writes itself."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel

from course.lesson import README, lessons
from lab.errors import LabError
from lab.machine.paths import ROOT
from lab.results.result import Result
from lab.scenario.model import Scenario, all_keys
from params.data import Data

LECTURE = "lecture.md"
REPORTS = "reports"
PLAYGROUND = "playground"
_TRY = "try.md"
_PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "LICENSE")
_FROM_ELSEWHERE = re.compile(
    r"<script[^>]+src=[\"']?(?:https?:)?//|<link[^>]+stylesheet[^>]+href=[\"']?(?:https?:)?//"
    r"|<link[^>]+href=[\"']?(?:https?:)?//[^>]+stylesheet|@import\s+[\"']?https?:"
    r"|url\([\"']?https?://|<img[^>]+src=[\"']?(?:https?:)?//"
)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    columns = tuple(head)
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(_cell(c) for c in line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def keys_page() -> str:
    """All that a scenario may say."""
    rows = (
        (
            f"`{key.name}`",
            key.kind or "",
            key.takes,
            f"`{key.default}`" if key.default else "",
            key.about,
        )
        for key in all_keys()
    )
    head = ("key", "of kind", "takes", "default", "what it means")
    return f"# A scenario's keys\n\n`closlab explain KEY` says the same.\n\n{table(head, rows)}"


def results_page() -> str:
    """All figures of a result."""
    rows = ((f"`{name}`", type_, about) for name, type_, about in _fields(Result, ""))
    return (
        "# A result's figures\n\nWhat stands in `result.json`; times are in nanoseconds of the "
        "fabric, what does not apply is not there. [Results](../docs/results.md) says what they "
        "mean.\n\n" + table(("figure", "is", "part of"), rows)
    )


def _fields(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    for name, info in model.model_fields.items():
        inside = _model_in(info.annotation)
        whole = prefix + name.rstrip("_")
        if inside is None or inside is Scenario:
            type_ = getattr(info.annotation, "__name__", str(info.annotation))
            yield whole, type_ if "[" not in str(info.annotation) else str(info.annotation), ""
        else:
            about = (inside.__doc__ or "").partition("\n")[0]
            is_many = "dict[" in str(info.annotation) or "tuple[" in str(info.annotation)
            yield whole, "of each" if is_many else "a section", about
            yield from _fields(inside, f"{whole}[]." if is_many else f"{whole}.")


def _model_in(kind: Any) -> type[BaseModel] | None:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next((found for arg in get_args(kind) if (found := _model_in(arg))), None)


def all_pages() -> list[Path]:
    """All that people wrote."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return [*(ROOT / name for name in _PAGES if name.endswith(".md")), *docs,
            *(lesson.folder / README for lesson in lessons())]  # fmt: skip


class ShownRun(Data):
    """A run whose report is part of the site."""

    name: str  # of its scenario
    page: Path
    summary: str  # what it begins with


def reports_page(runs: Sequence[ShownRun]) -> str:
    """Which there are, and what each says."""
    lines = (f"- [{run.name}]({run.name}.html): {run.summary}" for run in runs)
    return (
        "# Reports\n\nWhat a run ends in: `closlab run NAME --engine sim` makes each of these. "
        "Step through *The fabric* by its buttons.\n\n" + "\n".join(lines) + "\n"
    )


def try_page() -> str:
    """How to come to the playground, which is no page of these."""
    return (
        "# In this browser\n\nThe simulator, the switches' P4 and the course, with nothing to "
        f'install:\n\n<p><a href="{PLAYGROUND}/index.html">Open the playground</a></p>\n\n'
        "[What it has, and what it has not](docs/playground.md).\n"
    )


def assemble(
    folder: Path,
    written: Mapping[str, str],
    runs: Sequence[ShownRun] = (),
    *,
    has_playground: bool = False,
) -> Path:
    """All pages in one tree, laid out as they are here; the configuration that builds a site of it.

    ``written`` are pages that other parts of the code write, by name.
    """
    pages = folder / "pages"
    pages.mkdir(parents=True)
    for name in _PAGES:
        shutil.copy(ROOT / name, pages / name)
    shutil.copytree(ROOT / "docs", pages / "docs")
    (pages / "docs" / LECTURE).unlink()  # of which there are slides
    for lesson in lessons():
        place = pages / "exercises" / lesson.name
        place.mkdir(parents=True)
        for path in (lesson.folder / README, *lesson.pictures):
            shutil.copy(path, place)
    reference = pages / "reference"
    reference.mkdir()
    for name, text in {"keys": keys_page(), "results": results_page(), **written}.items():
        (reference / f"{name}.md").write_text(text)
    reports = pages / REPORTS
    reports.mkdir()
    (reports / "index.md").write_text(reports_page(runs))
    for run in runs:
        shutil.copy(run.page, reports / f"{run.name}.html")
    content = _config(tuple(written))
    if has_playground:
        (pages / _TRY).write_text(try_page())
        content["nav"].insert(1, {"In this browser": _TRY})
    config = folder / "mkdocs.yml"
    config.write_text(yaml.safe_dump(content, sort_keys=False))
    return config


def _config(written: tuple[str, ...]) -> dict[str, Any]:
    docs = ROOT / "docs"
    decisions = sorted(path.name for path in (docs / "decisions").glob("*.md"))
    pages = sorted(path.name for path in docs.glob("*.md") if path.name != LECTURE)
    first = ("howto.md", "comparison.md")
    return {
        "site_name": "closlab",
        "docs_dir": "pages",
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "features": ["navigation.sections", "navigation.footer", "content.code.copy"],
            "palette": [{"scheme": "default", "primary": "blue grey"}],
        },
        "plugins": ["search"],
        "markdown_extensions": ["tables", "fenced_code", "toc"],
        "validation": {
            "links": {"not_found": "warn", "anchors": "warn", "absolute_links": "warn"},
            "nav": {"omitted_files": "warn", "not_found": "warn"},
        },
        "nav": [
            {"Tour": "README.md"},
            {"Reports": f"{REPORTS}/index.md"},
            {"Course": [f"exercises/{lesson.name}/{README}" for lesson in lessons()]},
            {"How to": [f"docs/{first[0]}", "CONTRIBUTING.md"]},
            {"Reference": [f"reference/{name}.md" for name in ("keys", "results", *written)]},
            {"Mechanisms and insides": [f"docs/{name}" for name in pages if name not in first]},
            {"Decisions": [f"docs/decisions/{name}" for name in decisions]},
            {"Beside others": f"docs/{first[1]}"},
            {"Changes": ["CHANGELOG.md", "SECURITY.md"]},
        ],
    }


def check_is_whole(site: Path) -> None:
    """Refuse a site that would ask somebody else for scripts, styles, fonts or pictures."""
    for path in sorted((*site.rglob("*.html"), *site.rglob("*.css"))):
        if found := _FROM_ELSEWHERE.search(path.read_text(errors="replace")):
            raise LabError(f"{path.relative_to(site)} is not whole: it asks for {found[0]}...")

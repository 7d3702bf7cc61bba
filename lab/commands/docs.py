"""``closlab docs``: the documentation as a site that asks nobody for anything."""

from __future__ import annotations

import ast
import inspect
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from lab.engines import RunOptions
from lab.errors import LabError, MissingTool
from lab.machine.paths import DOCS_ENVIRONMENT, ROOT
from lab.machine.scratch import scratch
from lab.progress import Stages
from lab.runs.run import run_quietly
from lab.scenario import catalogue
from switch.cache import Unbuildable
from views.drawings import moving, pictures
from views.playground.build import build as build_playground
from views.report import write_and_tell
from views.site import LECTURE, PLAYGROUND, ShownRun, all_pages, assemble, check_is_whole, table
from views.slides import lecture

_HERE = Path(__file__).parent
# Whose reports are part of the site: a run of each takes a second or two.
_SHOWN = ("incast", "victim-flow", "pfc-storm", "deadlock", "hash-collision", "straggler")
_NO_COMMANDS = ("__init__", "execution", "options", "prompt", "ranks")


def command(
    out: Annotated[Path, typer.Option(help="Folder for the pages.")] = Path("site"),
    is_for_pictures: Annotated[
        bool, typer.Option("--pictures", help="Draw the pages' pictures anew instead.")
    ] = False,
) -> None:
    """Make a site of the documentation, and slides: all links checked, nothing fetched later."""
    if is_for_pictures:
        draw_pictures()
        return
    python = DOCS_ENVIRONMENT / "bin" / "python"
    if not python.exists():
        raise MissingTool(
            "mkdocs is not installed",
            "./closlab docs installs it; the console script inside the environment does not.",
        )
    with scratch() as folder:
        playground = _playground(folder)
        written = {"commands": commands_page(), "prompt": prompt_page()}
        config = assemble(folder, written, [*_shown(folder)], has_playground=bool(playground))
        words = [
            str(python),
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--config-file",
            str(config),
        ]
        done = subprocess.run(
            [*words, "--site-dir", str(out.resolve())],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        )
        if done.returncode != 0:
            raise LabError(f"the site cannot be made:\n{(done.stdout + done.stderr).strip()}")
        if playground:
            shutil.copytree(playground, out / PLAYGROUND)
    (out / "lecture.html").write_text(lecture((ROOT / "docs" / LECTURE).read_text(), moving))
    check_is_whole(out)
    print(f"{out}/index.html, and the slides of a lecture: {out}/lecture.html")
    if playground:
        print(f"The lab in a tab: {out / PLAYGROUND}/index.html")


def _playground(folder: Path) -> Path | None:
    """The lab in a tab, if what makes it is here."""
    try:
        return build_playground(folder / PLAYGROUND, Stages(Console(stderr=True))).parent
    except (LabError, Unbuildable) as error:
        print(f"closlab: the lab in a tab is left out: {error}", file=sys.stderr)
        return None


def _shown(folder: Path) -> Iterator[ShownRun]:
    """Runs that are made for the site."""
    for name in _SHOWN:
        place = folder / name
        place.mkdir()
        run_quietly(catalogue.load(name), RunOptions(place, "sim"), Console(quiet=True))
        yield ShownRun(name, *write_and_tell(place))


def draw_pictures() -> None:
    """Draw what pages show anew, by the commands that stand below it."""
    for path in all_pages():
        for picture in pictures(path):
            picture.path.write_text(picture.drawn())
            print(f"{picture.path.relative_to(ROOT)}  {picture.path.stat().st_size:,} bytes")


def commands_page() -> str:
    """What every command says of itself."""
    parts = ["# Commands\n\n`closlab COMMAND --help` says the same.\n"]
    for path in sorted(_HERE.glob("*.py")):
        if path.stem in _NO_COMMANDS:
            continue
        module = import_module(f"lab.commands.{path.stem}")
        if hasattr(module, "command"):
            name = path.stem.replace("_", "-")
            parts.append(f"## closlab {name}\n\n```\n{_help(name, module.command)}\n```\n")
        else:
            about = inspect.cleandoc(module.main.__doc__ or "")
            parts.append(f"## closlab {path.stem}\n\n{about}\n")
    return "\n".join(parts)


def _help(name: str, command: Any) -> str:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name)(command)
    made = typer.main.get_command(app)
    context = made.context_class(made, info_name=f"closlab {name}", max_content_width=98)
    return str(made.get_help(context))


def prompt_page() -> str:
    """What the prompt knows besides Mininet's own words."""
    rows = ((f"`{word}`", about) for word, about in _words())
    return (
        "# Words of the prompt\n\n`closlab run SCENARIO --cli` leaves you at `mininet>`; besides "
        f"Mininet's own words it knows these.\n\n{table(('word', 'what it does'), rows)}"
    )


def _words() -> Iterator[tuple[str, str]]:
    # Read, not imported, as that would take Mininet.
    for node in ast.walk(ast.parse((_HERE / "prompt.py").read_text())):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("do_"):
            yield node.name.removeprefix("do_"), ast.get_docstring(node) or ""

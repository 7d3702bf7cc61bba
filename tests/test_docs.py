"""Every command that the documentation gives: what it says exists, and what can be run is run.

The default run reads each as the command line would, with the scenarios, keys, figures, lessons and
words that it names. The long run carries out page by page, in the order in which they stand there,
those that neither need somebody at a prompt nor files of the reader's own. What carries out the
others is in ELSEWHERE.
"""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from course.lesson import find
from lab.claims.court import CLAIMS
from lab.cli import _TAKE_THEIR_WORDS, COMMANDS
from lab.errors import LabError
from lab.runs.agree import CASES
from lab.scenario import catalogue, shipped
from lab.scenario.explain import explain
from params.data import Data
from tests.lab.conftest import closlab
from views.drawings import Picture, pictures
from views.report.figures import PICTURES
from views.report.numbers import BY_KEY
from views.site import all_pages

ROOT = Path(__file__).resolve().parent.parent
PAGES = all_pages()

# What is not carried out here, and who does: at a prompt, with a network, with files of one's own.
ELSEWHERE = {
    "demo": "tests/lab/test_demo.py",
    "part": "tests/lab/test_machines.py",
    "playground": "tests/playground/conftest.py",
    "watch": "tests/lab/test_live.py",
    "replay": "tests/lab/test_live.py",
    "tune": "tests/lab/test_tune.py",
    "optimise": "tests/lab/test_optimise.py",
    "mcp": "tests/doors/test_assistant.py",
    "gym": "tests/doors/test_learning.py",
    "lsp": "tests/doors/test_editor.py",
    "otg": "tests/doors/test_tester.py",
    "why": "tests/lab/test_why.py",
    "enter": "tests/lab/test_prompt.py",
    "exec": "tests/lab/test_programs.py",
    "mpirun": "tests/lab/test_programs.py",
    "nccl-tests": "tests/verbs/test_nccl_tests.py",
    "pcap": "tests/lab/test_prompt.py",
    "shell": "tests/lab/test_prompt.py",
    "agree": "tests/lab/test_agree.py",
    "chaos": "tests/lab/test_chaos.py",
    "claims": "tests/lab/test_claims.py",
    "reproduce": "tests/lab/test_reproduce.py",
    "bmwg": "tests/lab/test_bmwg.py",
    "check": "tests/lab/test_configs.py",
    "import": "tests/lab/test_import.py",
    "export": "tests/lab/test_export.py",
    "grade": "tests/course/test_grade.py",
    "lesson": "tests/course/test_grade.py",
    "docs": "tests/test_site.py",
    "p4c": "tests/compiler/test_cli.py",
    "stf": "tests/test_packets.py",
    "switch": "tests/test_wheel.py",
    "bench": "tests/switch/test_bench.py",
    "frames": "tests/lab/test_frames.py",
    "shims": "tests/lab/test_bmv2.py",
    "draw": "tests/lab/test_topologies.py",
    "report": "tests/lab/test_report.py",
    "doctor": "tests/lab/test_words.py",
    "test": "tests/lab/test_turns.py",
}
# Pages whose commands belong to recipes, which tests/test_recipes.py carries out.
OF_RECIPES = ("CONTRIBUTING.md", "howto.md")
# What speaks of a folder of the reader's.
OF_READERS = ("figure runs/sweep pfc.xoff_frames -o f.pdf",)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`((?:\./)?closlab\s+[^`]+)`")
_TEMPLATE = re.compile(r"\.\.\.|(?<![\w.-])[A-Z][A-Z_]*(?![\w.:])|[{]?KEY=")


class Command(Data):
    """One of them, as it stands on a page."""

    page: Path
    words: tuple[str, ...]
    is_in_prose: bool = False  # where it may be named without all it takes

    @property
    def name(self) -> str:
        return self.words[0]

    @property
    def is_template(self) -> bool:
        """Whether a word stands for something else."""
        return any(_TEMPLATE.search(word) for word in self.words)

    @property
    def options(self) -> set[str]:
        return {word.partition("=")[0] for word in self.words if re.match(r"--?[a-z]", word)}

    def values(self, option: str) -> list[str]:
        return [after for word, after in zip(self.words, self.words[1:], strict=False)
                if word == option]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}: closlab {shlex.join(self.words)}"


def commands(page: Path) -> Iterator[Command]:
    """In the order in which they stand there."""
    text, at = page.read_text(), 0
    for fence in _FENCE.finditer(text):
        yield from _in_prose(page, text[at : fence.start()])
        at = fence.end()
        if fence[1] in ("", "sh", "figure"):
            for line in re.sub(r"\\\n\s*", "", fence[2]).splitlines():
                yield from _of_line(page, line)
    yield from _in_prose(page, text[at:])


def _in_prose(page: Path, text: str) -> Iterator[Command]:
    for inline in _INLINE.findall(text):
        yield from _of_line(page, " ".join(inline.split()), is_in_prose=True)


def _of_line(page: Path, line: str, *, is_in_prose: bool = False) -> Iterator[Command]:
    for part in re.split(r" && | \| ", line):
        found = re.match(r"\s*(?:\./)?closlab\s+(.*)", part)
        if found and found[1][0].islower():
            yield Command(page, tuple(shlex.split(found[1], comments=True)), is_in_prose)


ALL = [command for page in PAGES for command in commands(page)]


def test_there_are_commands_on_many_pages() -> None:
    assert len(ALL) > 100
    assert len({command.page for command in ALL}) > 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_page_is_one(page: Path) -> None:
    for command in commands(page):
        assert command.name in COMMANDS, command
        if command.name not in _TAKE_THEIR_WORDS:
            _check_words(command)
        if not command.is_template and page.name not in OF_RECIPES:
            _check_names(command)


@cache
def _as_click(name: str) -> Any:
    module = import_module(f"lab.commands.{name.replace('-', '_')}")
    app = typer.Typer(add_completion=False)
    others = getattr(module, "HAS_WORDS_OF_OTHERS", False)
    app.command(name, context_settings={"ignore_unknown_options": others})(module.command)
    return typer.main.get_command(app)


def _is_only_named(command: Command) -> bool:
    """Whether prose names it without all that it takes."""
    try:
        _as_click(command.name).make_context(command.name, list(command.words[1:]))
    except Exception as error:
        if type(error).__name__ == "MissingParameter":  # of typer's own click, which has no name
            return command.is_in_prose
        raise
    return False


def _check_words(command: Command) -> None:
    made = _as_click(command.name)
    known = {option for param in made.params for option in (*param.opts, *param.secondary_opts)}
    has_others = made.context_settings.get("ignore_unknown_options", False)
    assert has_others or command.options <= known, command
    if not command.is_template and not _is_only_named(command):  # which raises what is wrong
        made.make_context(command.name, list(command.words[1:]))


def _check_names(command: Command) -> None:
    """What it names is there."""
    name, *rest = command.words
    first = rest[0] if rest and not rest[0].startswith("-") else ""
    if name in ("run", "list", "sweep") and first in shipped.names():
        catalogue.load(first, tuple(command.values("--set")))
    elif name in ("run", "list", "sweep"):
        assert not first or first.endswith(".yaml") or first in _WRITTEN, command
    elif name == "explain":
        assert explain(first or None)
    elif name in ("lesson", "grade"):
        assert not first or find(first)
    elif name == "figure" and len(rest) > 1:
        assert rest[1] in PICTURES or rest[1] in BY_KEY, command
    elif name == "agree":
        assert all(any(word in case.title for case in CASES) for word in rest), command
    elif name == "claims":
        assert all(any(word == claim.key for claim in CLAIMS) for word in rest), command
    elif name == "bench":
        assert not first or (ROOT / "bench" / f"{first}.py").is_file(), command
    elif name == "test":
        assert all((ROOT / word).exists() for word in rest if word.startswith("tests/")), command


# Scenarios that a page has its reader write first.
_WRITTEN = {
    scenario
    for page in PAGES
    for scenario in re.findall(r"^# scenarios/(\S+)\.yaml$", page.read_text(), re.MULTILINE)
}


# --- carried out ---------------------------------------------------------------------------------


def is_carried_out(command: Command) -> bool:
    """Whether the long run does: neither a network, nor somebody who looks, nor one's own files."""
    if command.is_template or command.name in ELSEWHERE or command.page.name in OF_RECIPES:
        return False
    if _is_only_named(command) or shlex.join(command.words) in OF_READERS:
        return False
    if command.name in ("run", "sweep"):
        is_for_eyes = command.options & {"--cli", "--live", "--p4", "--tls", "--pcap"}
        is_simulated = command.name == "sweep" or "sim" in command.values("--engine")
        return is_simulated and not is_for_eyes and command.words[1] in shipped.names()
    return True


def test_what_is_not_carried_out_here_is_so_elsewhere() -> None:
    for name, path in ELSEWHERE.items():
        assert name in COMMANDS
        text = (ROOT / path).read_text()
        assert re.search(rf"\b{name}\b", text), (name, path)
    here = {command.name for command in ALL if is_carried_out(command)}
    assert here | ELSEWHERE.keys() == set(COMMANDS)


CARRIED_OUT = [page for page in PAGES if any(map(is_carried_out, commands(page)))]


@pytest.mark.slow
@pytest.mark.parametrize("page", CARRIED_OUT, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_pages_commands_are_carried_out(page: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()  # where somebody has worked before
    done: set[tuple[str, ...]] = set()
    for command in filter(is_carried_out, commands(page)):
        if command.words in done:
            continue
        done.add(command.words)
        found = closlab(*command.words, cwd=tmp_path, timeout_s=600)
        # A run whose losses the page is about ends with 1: not everything arrived.
        assert found.returncode in ((0, 1) if command.name == "run" else (0,)), (
            f"{command}\n{found.stdout}{found.stderr}"
        )
        assert "Traceback" not in found.stderr


# --- pictures ------------------------------------------------------------------------------------

SHOWN = [picture for page in PAGES for picture in pictures(page)]
_MAX_BYTES = 64 << 10


def test_every_lesson_has_a_picture_that_is_small() -> None:
    folders = {path.parent for path in PAGES if path.parent.parent.name == "exercises"}
    assert {picture.path.parent for picture in SHOWN} >= folders
    for picture in SHOWN:
        assert picture.path.stat().st_size < _MAX_BYTES, picture.path
    for page in PAGES:
        shown = re.findall(r"!\[[^\]]{20,}\]\((\S+)\)", page.read_text())
        assert len(shown) == page.read_text().count("!["), page  # each says what it shows
        assert all((page.parent / name).is_file() for name in shown), page


@pytest.mark.slow
@pytest.mark.parametrize("picture", SHOWN, ids=lambda shown: str(shown.path.relative_to(ROOT)))
def test_a_picture_is_what_its_commands_draw(picture: Picture) -> None:
    """Where not, `closlab docs --pictures` draws all anew; the page's words may have to follow."""
    assert picture.path.read_text() == picture.drawn()


def test_a_picture_that_is_made_by_something_else_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "![A picture](a.svg)\n\n*Made by `closlab run incast --engine sim` and `gimp`.*\n"
    )
    (picture,) = pictures(page)
    with pytest.raises(LabError, match="not made by a figure"):
        picture.drawn()

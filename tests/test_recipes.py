"""CONTRIBUTING.md's recipes, and the how-to's: carried out as they stand, in a copy of the tree."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler import compile_program
from params.data import Data
from tests.changes import change
from tests.imports import TOPS

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
HOWTO = (ROOT / "docs" / "howto.md").read_text()
COPIED = (
    *({*TOPS} - {"bench", "closlab"}),
    *("p4src", "scenarios", "tests"),
)
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAMED = re.compile(r"(?:#|//|/\*) (\S+?)(?: \*/)?\n")  # a first line that says which file this is


class Recipe(Data):
    """A section of the text."""

    title: str
    blocks: tuple[tuple[str, str], ...]  # language, content


def recipes() -> list[Recipe]:
    _, _, text = TEXT.partition("\n## Recipes\n")
    return _sections(re.split(r"^### ", text, flags=re.MULTILINE)[1:])


def _sections(sections: list[str]) -> list[Recipe]:
    return [
        Recipe(section.partition("\n")[0], tuple(_BLOCK.findall(section))) for section in sections
    ]


def run(tree: Path, commands: str) -> None:
    """As one who stands in the tree and has everything installed."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", commands],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}{done.stderr}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "closlab"
    folder.mkdir()
    for name in COPIED:
        unwanted = shutil.ignore_patterns("__pycache__", "p4", "rules", "goldens")
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    shutil.copy(ROOT / "pyproject.toml", folder)
    launcher = folder / "closlab"  # one that has nothing to install
    main = "from lab.cli import main; main()"
    launcher.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{main}' \"$@\"\n")
    launcher.chmod(0o755)
    return folder


def carry_out(recipe: Recipe, tree: Path, run: Callable[[Path, str], None]) -> None:
    for language, content in recipe.blocks:
        if language == "diff":
            change(tree, content)
        elif language == "sh":
            run(tree, content)
        else:
            named = _NAMED.match(content)
            assert named is not None, f"which file is this?\n{content}"
            place = tree / named[1]
            assert not place.exists()
            place.write_text(content)
    assert recipe.blocks[-1][0] == "sh"


# The default run carries this one out; of the others it tries the changes.
QUICK = "A mechanism in P4"

RECIPES = [
    pytest.param(
        recipe,
        marks=[] if recipe.title == QUICK else [pytest.mark.slow],
        id=recipe.title.replace(" ", "-"),
    )
    for recipe in recipes()
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_works_as_it_stands(recipe: Recipe, tree: Path) -> None:
    carry_out(recipe, tree, run)


def test_the_changes_of_all_recipes_fit(tree: Path) -> None:
    for recipe in recipes():
        if recipe.title != QUICK:
            carry_out(recipe, tree, lambda _tree, _commands: None)


def test_there_is_a_recipe_for_each_thing_people_add() -> None:
    assert [recipe.title for recipe in recipes()] == [
        "A scenario",
        "A topology",
        "A collective",
        "A congestion control",
        "A congestion control without touching the lab",
        "A load balancer",
        "A mechanism in P4",
    ]


def load_balancer() -> Recipe:
    found = _sections(re.split(r"^## ", HOWTO, flags=re.MULTILINE)[1:])
    (recipe,) = (each for each in found if each.title == "Your own load balancer")
    return recipe


def test_a_load_balancer_of_ones_own_takes_less_than_fifty_lines(tree: Path) -> None:
    recipe = load_balancer()
    blocks = {language: content for language, content in recipe.blocks if language != "sh"}
    added = [line for line in blocks["diff"].splitlines() if line.startswith("+")]
    assert 0 < len(blocks["p4"].splitlines()) + len(added) < 50

    def copy_only(tree: Path, commands: str) -> None:
        if commands.startswith("cp "):
            run(tree, commands)

    carry_out(recipe, tree, copy_only)
    assert compile_program(tree / "mine" / "fabric.p4").json_text


@pytest.mark.slow
def test_a_load_balancer_of_ones_own_does_what_is_said(tree: Path) -> None:
    carry_out(load_balancer(), tree, run)
    hashed, taken = (
        json.loads((tree / "runs" / name / "result.json").read_text()) for name in ("hash", "turns")
    )
    said = " ".join(HOWTO.split())
    less = re.search(r"are done in (\d+) % less time, and every spine carries a quarter", said)
    assert less is not None
    saved = 1 - taken["duration_ns"] / hashed["duration_ns"]
    assert round(100 * saved) == int(less[1])
    for leaf in range(1, 5):
        sent = [u["bytes"] for u in taken["links"] if u["name"].startswith(f"leaf{leaf}>spine")]
        assert len(sent) == 4 and max(sent) < 1.05 * min(sent)
    late = [result["roce"]["out_of_order_packets"] for result in (hashed, taken)]
    assert late[0] == 0 < late[1]
    assert (tree / "runs" / "both" / "report.html").is_file()

"""The code's own rules: formatted, linted, typed, and its folders import only downwards."""

import re
import subprocess
import sys

import networkx as nx
import pytest

from switch.cache import cache_dir
from tests import imports
from tests.imports import ROOT, modules, room_of, uses

FOLDERS = ("compiler", "switch", "topologies", "traffic", "controller")
GROUND = {"files": set(), "params": {"files"}}  # what everybody may stand on, and they
# Rooms from the ground up: of the folders each may know these, of rooms those before it.
ROOMS = {
    "lab.errors": set(),
    "lab.progress": set(),
    "lab.machine": {"compiler", "switch", "traffic"},
    "lab.scenario": {"controller", "topologies", "traffic"},
    "lab.results": {"controller", "topologies", "traffic"},
    "lab.engines": set(FOLDERS),
    "views.report": {"topologies", "traffic"},
    "lab.runs": {"controller", "topologies", "traffic"},
    "lab.configs": {"controller", "topologies", "traffic"},
    "lab.optimise": set(),
    "lab.claims": {"traffic"},
    "lab.reproduce": {"traffic"},
    "lab.bmwg": {"topologies", "traffic"},
    "course": {"compiler", "switch", "traffic"},
    "views.live": {"controller", "topologies", "traffic"},
    "views.playground": {"switch"},
    "views.site": set(),
    "lab.api": set(),
    "doors": {"compiler", "switch", "controller", "topologies", "traffic"},
    "views.drawings": set(),
    "views.slides": set(),
    "lab.commands": set(FOLDERS),
    "lab.cli": set(),
    "lab.start": set(),
}
MAY_IMPORT: dict[str, set[str]] = {
    **GROUND,
    **{folder: set() for folder in FOLDERS},
    "controller": {"topologies"},
    **{room: {*known, *list(ROOMS)[:at]} for at, (room, known) in enumerate(ROOMS.items())},
    "bench": {*FOLDERS, *ROOMS} - {"lab.start", "lab.cli", "lab.commands"},
    "closlab": {"lab.api", "lab.errors", "lab.progress", "lab.results", "lab.scenario"},
}


@pytest.mark.parametrize(
    "command",
    [
        ("ruff", "check", "--no-cache", "."),
        ("ruff", "format", "--no-cache", "--check", "."),
        pytest.param(  # which takes a minute where nothing is kept; who commits has it beforehand
            ("mypy", "--cache-dir", str(cache_dir() / "mypy")), marks=pytest.mark.slow
        ),
    ],
    ids=["lint", "format", "types"],
)
def test_tools_find_nothing(command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_follow_the_arrows(room: str) -> None:
    inside = [module for module in modules() if room_of(module) == room]
    assert inside, f"nothing is in {room}"
    for module in inside:
        for used in uses(module):
            known = {room, *MAY_IMPORT[room], *(() if room in GROUND else GROUND)}
            assert room_of(used) in known, f"{module} imports {used}"


def test_every_module_is_in_a_room() -> None:
    assert {room_of(module) for module in modules()} <= {*MAY_IMPORT, "lab", "views"}
    assert (ROOT / "lab" / "__init__.py").read_text().count("\n") == 1  # it holds nothing


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count, and of types: to hide a circle there is not to mend it."""
    graph = nx.DiGraph((module, used) for module in modules() for used in uses(module))
    circles = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    assert not circles


_DEFINED = re.compile(
    r"^(?!static|typedef)[a-z][\w *]*?\b(\w+)\([^;{]*?\)\s*\{|^const struct \w+ (\w+) = ",
    re.MULTILINE,
)


@pytest.mark.parametrize("folder", ["switch/rt", "traffic/core", "lab/engines/sim"])
def test_no_files_of_c_use_each_other_in_a_circle(folder: str) -> None:
    """Programs are on top of all; `no_kernel.c` is linked in place of others."""
    files = [
        each for each in (ROOT / folder).rglob("*.c") if not re.search("_main|no_kernel", str(each))
    ]
    texts = {
        path: re.sub(r"/\*.*?\*/|//.*", "", path.read_text(), flags=re.DOTALL) for path in files
    }
    owner = {a or b: path for path, text in texts.items() for a, b in _DEFINED.findall(text)}
    assert len(owner) > len(files)
    graph = nx.DiGraph(
        (path.name, owner[word].name)
        for path, text in texts.items()
        for word in set(re.findall(r"\w+", text)) & owner.keys()
        if owner[word] != path
    )
    circles = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    assert not circles


def test_ten_questions_are_answered_where_the_internals_say() -> None:
    text = (ROOT / "docs" / "internals.md").read_text()
    paths = re.findall(r"^\| .+\? \| `([\w/.]+)` \|$", text, re.MULTILINE)
    assert len(paths) == len(set(paths)) == 10
    assert [path for path in paths if not (ROOT / path).is_file()] == []


def test_the_picture_of_imports_is_of_today() -> None:
    """Each folder and room is in it, and `python -m tests.imports` draws it anew."""
    drawn = imports.picture()
    named = {shape.text for shape in drawn.shapes if shape.name == "text"}
    assert named == {room.rpartition(".")[2] for room in MAY_IMPORT}
    assert imports.PICTURE.read_text() == drawn.to_svg(has_ground=True)


def test_no_merge_was_left_undone() -> None:
    found = subprocess.run(
        ["git", "grep", "-nE", "^(<{7}|>{7}) "],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode != 0, found.stdout

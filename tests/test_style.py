"""The code's own rules: formatted, linted, typed, and its folders import only downwards."""

import ast
import re
import subprocess
import sys
from functools import cache
from importlib.util import resolve_name
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parent.parent

FOLDERS = ("compiler", "switch", "topologies", "traffic", "controller")
# Rooms from the ground up: of the folders each may know these, of the lab's rooms those before it.
ROOMS = {
    "lab.errors": set(),
    "lab.quantity": set(),
    "lab.progress": set(),
    "lab.machine": {"compiler", "switch", "traffic"},
    "lab.scenario": {"controller", "topologies", "traffic"},
    "lab.results": {"controller", "topologies", "traffic"},
    "lab.engines": set(FOLDERS),
    "lab.report": {"topologies", "traffic"},
    "lab.runs": {"traffic"},
    "lab.claims": {"traffic"},
    "lab.course": {"compiler", "switch", "traffic"},
    "lab.live": {"controller", "topologies", "traffic"},
    "lab.site": set(),
    "lab.api": set(),
    "lab.drawings": set(),
    "lab.slides": set(),
    "lab.commands": set(FOLDERS),
    "lab.cli": set(),
    "lab.start": set(),
}
MAY_IMPORT: dict[str, set[str]] = {
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
        ("mypy", "--no-incremental"),
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
    modules = [module for module in _modules() if _room(module) == room]
    assert modules, f"nothing is in {room}"
    for module in modules:
        for used in _uses(module):
            assert _room(used) in {room, *MAY_IMPORT[room]}, f"{module} imports {used}"


def test_every_module_is_in_a_room() -> None:
    assert {_room(module) for module in _modules()} <= {*MAY_IMPORT, "lab"}
    assert (ROOT / "lab" / "__init__.py").read_text().count("\n") == 1  # it holds nothing


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count, and of types: to hide a circle there is not to mend it."""
    graph = nx.DiGraph((module, used) for module in _modules() for used in _uses(module))
    circles = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    assert not circles


@cache
def _modules() -> dict[str, Path]:
    """Ours, by name; a package's `__init__.py` is named as the package."""
    modules = {}
    for top in {room.partition(".")[0] for room in MAY_IMPORT}:
        for path in (ROOT / f"{top}.py", *(ROOT / top).rglob("*.py")):
            if not path.exists():
                continue
            parts = path.relative_to(ROOT).with_suffix("").parts
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return modules


def _room(module: str) -> str:
    """Where a module lives: a folder, or one of the lab's rooms."""
    parts = module.split(".")
    return ".".join(parts[: 2 if parts[0] == "lab" else 1])


@cache
def _uses(module: str) -> frozenset[str]:
    """The modules of ours that one imports, wherever in it."""
    path = _modules()[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            whole = {f"{origin}.{alias.name}" for alias in node.names}
            found |= {name if name in _modules() else origin for name in whole}
    return frozenset(name for name in found if name in _modules() and name != module)


def test_ten_questions_are_answered_where_the_internals_say() -> None:
    text = (ROOT / "docs" / "internals.md").read_text()
    told = re.findall(r"^\| .+\? \| `([\w/.]+)` \|$", text, re.MULTILINE)
    assert len(told) == len(set(told)) == 10
    assert [path for path in told if not (ROOT / path).is_file()] == []


def test_no_merge_was_left_undone() -> None:
    found = subprocess.run(
        ["git", "grep", "-nE", "^(<{7}|>{7}) "],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode != 0, found.stdout

"""The code's own rules: formatted, linted, typed, and its folders import only downwards."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

MAY_IMPORT = {
    "compiler": set(),
    "switch": set(),
    "topologies": set(),
    "traffic": set(),
    "controller": {"topologies"},
    "lab": {"compiler", "switch", "topologies", "traffic", "controller"},
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


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_follow_the_arrows(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        for imported in _imports(path):
            if imported in MAY_IMPORT and imported != package:
                assert imported in MAY_IMPORT[package], f"{path} imports {imported}"


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found

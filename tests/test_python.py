"""docs/python.md, run from top to bottom; and the public module, which has what it names."""

import re
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import closlab
from tests.test_style import FOLDERS

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "python.md").read_text()
HERE, ON_MININET = TEXT.split("\n## On Mininet\n")


def run_blocks(text: str, known: dict[str, Any]) -> int:
    """Run the blocks of a text one after the other, as in one notebook."""
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), known)
    return len(blocks)


def test_what_is_documented_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before, known = threading.active_count(), dict[str, Any]()
    assert run_blocks(HERE, known) == HERE.count("```python")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]  # where it was asked for
    assert threading.active_count() <= before  # of other tests in this process some may end


def test_what_is_documented_of_mininet_is_so_of_any_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By day in the simulator; tests/lab/test_watch.py runs and watches networks so."""
    monkeypatch.chdir(tmp_path)
    text = ON_MININET.replace('"mininet"', '"sim"')
    assert run_blocks(text, {"closlab": closlab}) == ON_MININET.count("```python")


@pytest.mark.slow
@pytest.mark.mininet
def test_what_is_documented_of_mininet_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOSLAB_RUNNING", str(tmp_path))
    assert run_blocks(ON_MININET, {"closlab": closlab}) == ON_MININET.count("```python")
    assert not list(tmp_path.glob("*"))  # no lab is left to be found


def test_all_that_is_public_is_documented() -> None:
    for name in closlab.__all__:
        assert re.search(rf"\b{name}\b", TEXT), name
        assert getattr(closlab, name).__doc__


@pytest.mark.parametrize("package", [*FOLDERS, "lab", "views", "course", "params", "bench"])
def test_everything_else_says_that_it_is_private(package: str) -> None:
    assert "rivate, as all but `closlab.py` is" in (import_module(package).__doc__ or "")


def test_type_checkers_are_told_of_the_same() -> None:
    """By a link, as a module cannot bear the py.typed that a package has (PEP 561)."""
    stub = ROOT / "closlab-stubs" / "__init__.pyi"
    assert stub.read_text() == (ROOT / "closlab.py").read_text()
    assert closlab.__all__ == sorted(closlab.__all__)

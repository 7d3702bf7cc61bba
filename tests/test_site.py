"""The documentation as a site: what the code writes of itself is whole, and nothing is fetched."""

import re
import subprocess
from pathlib import Path

import pytest

from lab.cli import COMMANDS
from lab.commands.docs import commands_page, prompt_page
from lab.errors import LabError
from lab.results.result import Result
from lab.scenario.model import all_keys
from views.site import ShownRun, assemble, check_is_whole, keys_page, results_page

ROOT = Path(__file__).resolve().parent.parent


def test_every_key_command_and_word_has_its_place() -> None:
    keys = keys_page()
    assert all(f"| `{key.name}` |" in keys for key in all_keys())
    commands = commands_page()
    assert all(f"## closlab {name}\n" in commands for name in COMMANDS)
    assert "--set KEY=VALUE" in commands
    prompt = prompt_page()
    words = re.findall(r"def do_(\w+)", (ROOT / "lab" / "commands" / "prompt.py").read_text())
    assert words and all(f"| `{word}` |" in prompt for word in words)


def test_every_figure_has_its_place() -> None:
    page = results_page()
    named = re.findall(r"^\| `([\w.\[\]]+)` \|", page, re.MULTILINE)
    assert len(named) == len(set(named))
    tops = {name.rstrip("_") for name in Result.model_fields}
    assert {name.partition(".")[0].removesuffix("[]") for name in named} == tops
    assert {"flows.fct_ns.p50", "drops.by_reason", "links[].max_queue_bytes"} <= set(named)


def test_pages_are_laid_out_as_here(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("<p>Seven hosts")
    shown = ShownRun("incast", tmp_path / "report.html", "7 hosts wrote to h1.")
    config = assemble(tmp_path, {"commands": "# C\n"}, [shown])
    pages = config.parent / "pages"
    assert (pages / "exercises" / "05-headroom" / "README.md").is_file()
    assert "[incast](incast.html): 7 hosts wrote" in (pages / "reports" / "index.md").read_text()
    assert (pages / "reports" / "incast.html").read_text() == "<p>Seven hosts"
    named = re.findall(r"[\w./-]+\.md", config.read_text())
    there = {str(path.relative_to(pages)) for path in pages.rglob("*.md")}
    assert set(named) == there and len(named) == len(there)


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://a.example/x.js"></script>',
        '<link rel="stylesheet" href="//a.example/x.css">',
        "<style>@import 'https://a.example/x.css';</style>",
        "<style>a { background: url(https://a.example/x.png) }</style>",
        '<img alt="" src="http://a.example/x.png">',
    ],
)
def test_what_comes_from_elsewhere_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://a.example/">a</a> <img src="b.png">')
    check_is_whole(tmp_path)
    (tmp_path / "a.html").write_text(text)
    with pytest.raises(LabError, match="not whole"):
        check_is_whole(tmp_path)


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """By mkdocs, strictly: what links nowhere is an error."""
    words = [str(ROOT / "closlab"), "docs", "--out", str(tmp_path / "site")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    if (tmp_path / "site" / "playground" / "index.html").exists():  # it is told if it is left out
        assert 'href="playground/index.html"' in (tmp_path / "site" / "try.html").read_text()
    assert (
        "13. The sum in the network"
        in (tmp_path / "site" / "exercises" / "13-sum" / "index.html").read_text()
    )
    assert "A pause storm from h1" in (tmp_path / "site" / "reports" / "pfc-storm.html").read_text()

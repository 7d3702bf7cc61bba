import shutil
import subprocess
from pathlib import Path

import pytest

from topologies import TopologyError, dot, draw, fat_tree, leaf_spine


def test_dot_has_every_node_and_cable_with_its_ports() -> None:
    text = dot(leaf_spine(1, 1, 1))
    assert text == (
        "graph fabric {\n"
        "  rankdir=BT; nodesep=0.2; ranksep=1.2;\n"
        '  node [fontname="sans-serif"]; edge [fontname="sans-serif", fontsize=8];\n'
        "  { rank=same; h1 [shape=ellipse]; }\n"
        "  { rank=same; leaf1 [shape=box]; }\n"
        "  { rank=same; spine1 [shape=box]; }\n"
        "  h1 -- leaf1 [taillabel=0, headlabel=1];\n"
        "  leaf1 -- spine1 [taillabel=2, headlabel=1];\n"
        "}\n"
    )


def test_pictures_by_their_suffix(tmp_path: Path) -> None:
    draw(fat_tree(4), tmp_path / "a.dot")
    assert (tmp_path / "a.dot").read_text() == dot(fat_tree(4))
    with pytest.raises(TopologyError, match=r"\.dot, \.png, \.svg, \.pdf"):
        draw(fat_tree(4), tmp_path / "a.gif")


def test_png_says_what_it_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(TopologyError, match="apt-get install graphviz"):
        draw(leaf_spine(1, 1, 1), tmp_path / "a.png")


def test_png_comes_from_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphviz may not be installed here: what it is asked, and what its answer becomes."""
    asked: list[tuple[list[str], str]] = []

    def run(argv: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        asked.append((argv, str(options["input"])))
        return subprocess.CompletedProcess(argv, len(asked) - 1, "", "syntax error")

    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/dot")
    monkeypatch.setattr(subprocess, "run", run)
    fabric = leaf_spine(1, 1, 1)
    draw(fabric, tmp_path / "a.png")
    assert asked == [(["/usr/bin/dot", "-Tpng", "-o", str(tmp_path / "a.png")], dot(fabric))]
    with pytest.raises(TopologyError, match="syntax error"):
        draw(fabric, tmp_path / "a.png")

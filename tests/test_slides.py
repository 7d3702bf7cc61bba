"""The lecture: one page from one source, with figures of runs made for it."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.errors import LabError
from tests.lab.browser import browser, needs_chromium
from views.drawings import drawn, moving
from views.site import check_is_whole
from views.slides import lecture

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "lecture.md").read_text()


def test_slides_figures_and_words() -> None:
    text = (
        "# A & b\n\n- `x` is **y**\n- z\n\n---\n\n```figure\nrun me\nqueues\n```\n\n```\n<b>\n```\n"
        "\n```figure\nrun a\nrun b\nbalance\n```\n"
    )
    asked: list[tuple[Sequence[str], str]] = []

    def draw(commands: Sequence[str], name: str) -> str:
        asked.append((commands, name))
        return "<svg/>"

    page = lecture(text, draw)
    assert asked == [(["run me"], "queues"), (["run a", "run b"], "balance")]
    assert page.count("<section>") == 2
    assert "<title>A &amp; b</title>" in page
    assert "<li><code>x</code> is <b>y</b></li><li>z</li>" in page
    assert "<svg/><figcaption>run me; closlab figure DIR queues</figcaption>" in page
    assert "run a; run b; closlab compare DIR DIR; closlab figure DIR balance<" in page
    assert "<pre>&lt;b&gt;\n</pre>" in page


def test_a_figure_is_drawn_of_a_run() -> None:
    assert drawn(["closlab run hello --engine sim"], "queues").shapes
    with pytest.raises(LabError, match="not one of the simulator"):
        drawn(["closlab run hello"], "queues")


def test_the_lecture_fits_its_time_and_tells_of_each_figure(tmp_path: Path) -> None:
    """Slides of three minutes or so."""
    page = lecture(TEXT, lambda _commands, _name: "<svg/>")
    (tmp_path / "lecture.html").write_text(page)
    check_is_whole(tmp_path)
    assert 12 <= page.count("<section>") <= 18
    assert page.count("<figcaption>") == TEXT.count("```figure") >= 8


@pytest.mark.slow
def test_the_lecture_is_made() -> None:
    page = lecture(TEXT, moving)
    assert len(re.findall("<svg", page)) == TEXT.count("```figure")
    assert page.count('<div class="moments"') == TEXT.count("\nfabric\n```") >= 2


@pytest.mark.slow
@needs_chromium
def test_a_fabric_on_a_slide_is_moved_through(tmp_path: Path) -> None:
    """By keys too, which lead through the slides otherwise."""
    text = "# One\n\n```figure\ncloslab run incast --engine sim\nfabric\n```\n\n---\n\n# Two\n"
    path = tmp_path / "lecture.html"
    path.write_text(lecture(text, moving))
    with browser() as found:
        tab = found.open(path.as_uri())
        step = "document.querySelector('.steps p')?.textContent"
        tab.until(f"({step} ?? '').startsWith('What happened')")
        tab.js("document.querySelectorAll('.steps button')[1].focus(); 1")
        tab.key("ArrowRight")
        tab.until(f"{step}.startsWith('1 of ')")
        assert tab.js("scrollY") == 0
        tab.js("document.activeElement.blur(); 1")
        tab.key("ArrowRight")
        tab.until("scrollY > 0")
        assert not tab.complaints()
        tab.picture(tmp_path / "slide.png")

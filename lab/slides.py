"""A lecture from one Markdown file: one page of HTML that asks nobody for anything.

Slides are parted by `---`. Of Markdown they have headings, paragraphs, lists, code, `code`,
**bold** and *emphasis*; a block of the kind `figure` names a run and one of its figures, which is
drawn anew:

    ```figure
    closlab run incast --engine sim --set ecn.enabled=true
    pauses
    ```
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from html import escape

from lab.api import read, run
from lab.errors import LabError
from lab.report.figures import figure, figures_of
from lab.report.kept import read_run

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
_STYLE = """
body { margin: 0; font: 22px/1.4 system-ui, sans-serif; color: #1c2430; background: #d9dee5; }
section { box-sizing: border-box; min-height: 96vh; max-width: 62rem; margin: 2vh auto;
          padding: 2.5rem 4rem; background: #fff; }
h1 { font-size: 1.9em; margin: 0 0 .6em; }
pre { background: #f1f4f7; padding: .7em 1em; overflow: auto; }
pre, code { font: .85em/1.4 ui-monospace, monospace; }
svg { width: 100%; height: auto; max-height: 62vh; }
figcaption { color: #5a6675; font-size: .7em; } li { margin: .35em 0; } figure { margin: 0; }
@media print { section { break-after: page; margin: 0; } body { background: #fff; } }
"""
_KEYS = """
addEventListener("keydown", event => {
  const step = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1}[event.key];
  if (!step) return;
  event.preventDefault();
  const slides = [...document.querySelectorAll("section")];
  const at = slides.findIndex(slide => slide.getBoundingClientRect().bottom > innerHeight / 2);
  slides[Math.max(0, Math.min(slides.length - 1, at + step))].scrollIntoView();
});
"""


def lecture(text: str, draw: Callable[[str, str], str]) -> str:
    """The page; ``draw`` makes SVG of a command and a figure's name."""
    slides = re.split(r"^---$\n?", text, flags=re.MULTILINE)
    title = escape(slides[0].strip().partition("\n")[0].lstrip("# "))
    sections = "\n".join(
        f"<section>\n{''.join(_blocks(slide, draw))}</section>" for slide in slides
    )
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{sections}\n'
        f"<script>{_KEYS}</script></body></html>\n"
    )


def drawn(command: str, name: str) -> str:
    """A figure of a run that is made for it."""
    words = shlex.split(command)
    changes = [words[at + 1] for at, word in enumerate(words) if word == "--set"]
    if words[:2] != ["closlab", "run"] or words[3:5] != ["--engine", "sim"]:
        raise LabError(f"a figure's run is not one of the simulator: {command}")
    made = run(words[2], set=dict(change.split("=", 1) for change in changes))
    return figure(figures_of(read_run(read(made.folder).folder)), name).to_svg()


def _blocks(slide: str, draw: Callable[[str, str], str]) -> Iterator[str]:
    at = 0
    for fence in _FENCE.finditer(slide):
        yield from _paragraphs(slide[at : fence.start()])
        at = fence.end()
        if fence[1] == "figure":
            command, name = fence[2].strip().splitlines()
            caption = escape(f"{command}; closlab figure DIR {name}")
            yield f"<figure>{draw(command, name)}<figcaption>{caption}</figcaption></figure>\n"
        else:
            yield f"<pre>{escape(fence[2])}</pre>\n"
    yield from _paragraphs(slide[at:])


def _paragraphs(text: str) -> Iterator[str]:
    for block in filter(None, (part.strip() for part in text.split("\n\n"))):
        if block.startswith("#"):
            yield f"<h1>{_inline(block.lstrip('# '))}</h1>\n"
        elif block.startswith("- "):
            items = re.split(r"^- ", block, flags=re.MULTILINE)[1:]
            yield "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>\n"
        else:
            yield f"<p>{_inline(block)}</p>\n"


def _inline(text: str) -> str:
    told = escape(" ".join(text.split()), quote=False)
    told = re.sub(r"`([^`]+)`", r"<code>\1</code>", told)
    told = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", told)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", told)

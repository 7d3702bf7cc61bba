"""A lecture from one Markdown file: one page of HTML that asks nobody for anything.

Slides are parted by `---`. Of Markdown they have headings, paragraphs, lists, code, `code`,
**bold** and *emphasis*; a block of the kind `figure` names a run (or several, to be put beside each
other) and a figure, which is drawn anew; in a `fabric` one moves through the run:

    ```figure
    closlab run incast --engine sim --set ecn.enabled=true
    pauses
    ```
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape

from views.report.moments import SCRIPT
from views.report.page import MOVED
from views.report.palette import DAY, variables

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
_STYLE = (
    f"""
:root {{ {variables(DAY)} }}
{MOVED}
.moments .steps button:last-child {{ display: none; }}  /* a slide is large already */
"""
    + """
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
)
_KEYS = """
addEventListener("keydown", event => {
  const own = event.key === " " ? "input, select, button" : "input, select";
  if (event.defaultPrevented || event.target.closest(own)) return;
  const step = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1}[event.key];
  if (!step) return;
  event.preventDefault();
  const slides = [...document.querySelectorAll("section")];
  const at = slides.findIndex(slide => slide.getBoundingClientRect().bottom > innerHeight / 2);
  slides[Math.max(0, Math.min(slides.length - 1, at + step))].scrollIntoView();
});
"""


Draw = Callable[[Sequence[str], str], str]  # SVG of the commands of runs and a figure's name


def lecture(text: str, draw: Draw) -> str:
    """The page."""
    slides = re.split(r"^---$\n?", text, flags=re.MULTILINE)
    title = escape(slides[0].strip().partition("\n")[0].lstrip("# "))
    sections = "\n".join(
        f"<section>\n{''.join(_blocks(slide, draw))}</section>" for slide in slides
    )
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{sections}\n'
        f"<script>{SCRIPT}\n{_KEYS}</script></body></html>\n"
    )


def _blocks(slide: str, draw: Draw) -> Iterator[str]:
    at = 0
    for fence in _FENCE.finditer(slide):
        yield from _paragraphs(slide[at : fence.start()])
        at = fence.end()
        if fence[1] == "figure":
            *commands, name = fence[2].strip().splitlines()
            beside = ["closlab compare DIR DIR"] if len(commands) > 1 else []
            caption = escape("; ".join([*commands, *beside, f"closlab figure DIR {name}"]))
            yield f"<figure>{draw(commands, name)}<figcaption>{caption}</figcaption></figure>\n"
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
    inner = escape(" ".join(text.split()), quote=False)
    inner = re.sub(r"`([^`]+)`", r"<code>\1</code>", inner)
    inner = re.sub(r"\*\*([^*]+)\*\*", r"<b>\1</b>", inner)
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", inner)

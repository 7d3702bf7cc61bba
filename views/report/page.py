"""The page: one HTML file with everything in it, for screens of any width and for paper."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from params.data import Data
from views.report.moments import SCRIPT
from views.report.palette import DAY, NIGHT, variables
from views.report.paper import PORTRAIT, Paper
from views.report.paper import order as best_order
from views.report.parts import Unfolded
from views.report.svg import Drawing
from views.report.traces import SCRIPT as TRACES

_NIGHT = variables(NIGHT)
# Of a drawing that one moves through.
MOVED = """.moments{margin-top:10px}.moments[hidden]{display:none}
.moments div{display:flex;gap:8px;align-items:center}
.moments label{position:relative;flex:1;display:block;padding-top:10px}
.moments input{width:100%;margin:0;accent-color:var(--accent)}
.moments button{font:inherit;font-size:.85rem;min-width:5.2em;padding:.25rem .5rem;color:var(--ink);
background:var(--wash);border:1px solid var(--faint);border-radius:4px;cursor:pointer}
.marks{position:absolute;left:8px;right:8px;top:0;height:10px}
.marks span{position:absolute;width:2px;height:10px;background:var(--drop)}
.moments .steps{margin-top:8px;align-items:flex-start}.moments .steps[hidden]{display:none}
.steps p{flex:1;margin:.2rem 0 0;min-height:3em}
.moments .steps button{min-width:2.4em}
.follow select{font:inherit;font-size:.9rem;max-width:14em}.follow[hidden]{display:none}
.follow span{display:block;min-height:3em}
.reach{stroke:transparent;stroke-width:12px;cursor:help;pointer-events:stroke}
.lit{stroke:var(--drop)!important;stroke-width:6!important}"""
_STYLE = (
    f"""
:root{{color-scheme:light dark;{variables(DAY)}}}
@media screen and (prefers-color-scheme:dark){{:root{{{_NIGHT}}}}}
"""
    + """
*{box-sizing:border-box}
body{margin:0;background:var(--wash);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1040px;margin:0 auto;padding:28px 16px 48px}
main.wide{max-width:1480px;padding:28px clamp(16px,2.5vw,72px) 48px}
.grid>figure:only-child{max-width:620px}
h1{font-size:1.75rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.1rem;margin:2rem 0 .6rem}
h3,figure h2{font-size:1rem;margin:0}
"""
    + MOVED
    + """
.present{position:fixed;margin:0;height:100vh;inset:0;z-index:9;overflow:auto;
border:0;border-radius:0;
display:flex;flex-direction:column;padding:2vw 4vw}
.present>h2,.present>h3,.present>.caption,.present .moments>output{display:none}
.present svg{flex:1;min-height:0;max-height:70vh}
.present .steps p{font-size:clamp(1.1rem,2.6vw,2.4rem);line-height:1.25}
.moments output{display:block;font-size:.85rem;color:var(--faint);min-height:2.6em}
p{margin:.4rem 0}
.about,.caption,footer{color:var(--faint)}
.traces .bar{display:flex;gap:6px;margin:.4rem 0}
.traces input{flex:1;max-width:24em;font:inherit;font-size:.9rem;padding:.2rem .5rem;
color:var(--ink);background:var(--wash);border:1px solid var(--faint);border-radius:4px}
.traces button{font:inherit;font-size:.9rem;min-width:2.4em;color:var(--ink);background:var(--wash);
border:1px solid var(--faint);border-radius:4px;cursor:pointer}
.traces output{display:block;font-size:.85rem;color:var(--faint);min-height:1.4em}
.traces .view{height:420px;overflow-y:auto;border:1px solid var(--rule);background:var(--paper)}
.traces .canvas{position:sticky;top:0;display:block;cursor:grab;touch-action:pan-y}
.question{margin:.8rem 0 -.3rem;font-size:1.06rem;color:var(--accent)}
.story{font-size:1.06rem;background:var(--paper);border-left:4px solid var(--accent);
padding:.8rem 1rem;border-radius:0 6px 6px 0;margin:1.1rem 0}
.verdict{font-size:1.2rem;font-weight:700}
.tiles{display:grid;gap:10px;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));margin:1rem 0}
.tiles div{background:var(--paper);border:1px solid var(--rule);border-radius:6px;
padding:.5rem .75rem}
.tiles b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums;white-space:nowrap}
.tiles span{color:var(--faint);font-size:.85rem}
@media(max-width:600px){.verdict{font-size:1.05rem}.tiles{gap:6px;
grid-template-columns:repeat(3,1fr)}.tiles div{padding:.3rem .4rem}.tiles b{font-size:1rem}
.tiles span{font-size:.75rem}.tiles div:nth-child(n+4){display:none}}
.grid{display:grid;gap:14px;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));
align-items:start}
.two{max-width:1040px}
.columns{columns:2 400px;column-gap:14px}
.grid>*{min-width:0}
.columns figure{break-inside:avoid;margin-bottom:14px}
figure{margin:0;background:var(--paper);border:1px solid var(--rule);border-radius:6px;padding:14px}
figure svg{display:block;width:100%;height:auto;margin-top:8px;overflow:visible}
figure svg{fill:var(--ink)}
svg text{font-size:12px;font-family:inherit}
svg .tick{font-size:11px}
.wide svg .tick{font-size:12px}
svg .strong{font-weight:600}
svg .halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px}
.caption{font-size:.87rem;line-height:1.4;margin:.15rem 0 0}
.scroll{overflow-x:auto;border:1px solid var(--rule);border-radius:6px;background:
linear-gradient(to right,var(--paper) 24px,transparent) left/48px 100% local,
linear-gradient(to left,var(--paper) 24px,transparent) right/48px 100% local,
linear-gradient(to right,var(--shade),transparent) left/14px 100%,
linear-gradient(to left,var(--shade),transparent) right/14px 100%,var(--paper);
background-repeat:no-repeat}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:.92rem}
th,td{text-align:right;padding:.28rem .7rem;border-bottom:1px solid var(--rule);white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal}
.texts th,.texts td{text-align:left;white-space:normal}
.texts{margin:.8rem 0}
tbody th{font-weight:400}
thead th{vertical-align:bottom;white-space:normal;min-width:8rem}
tbody tr:last-child>*{border-bottom:0}
code{font-size:.9em;background:var(--code);padding:.05em .35em;border-radius:3px;
overflow-wrap:anywhere}
.warning{background:var(--warn);border-left-color:var(--drop)}
pre{padding:.7rem 1rem;font-size:.85rem;line-height:1.4}
summary{cursor:pointer;margin:1.2rem 0 .6rem;font-weight:700;font-size:1.1rem}
details+details summary{margin-top:.6rem}
.parts{display:flex;flex-wrap:wrap;gap:4px;margin-top:8px}
.parts summary{margin:0;padding:.1rem .5rem;font-size:.85rem;font-weight:400;background:var(--wash);
border:1px solid var(--faint);border-radius:4px;list-style:none}
.parts details[open]{order:1;flex-basis:100%}
.parts details[open] summary{font-weight:700;width:max-content}
svg [data-part]{cursor:pointer}
.about+.grid,.scroll+.grid,h3+.scroll{margin-top:.8rem}
footer{font-size:.85rem;margin-top:2.2rem}
.again{color:var(--faint);font-size:.85rem}
@media(max-width:600px){.moments .steps{flex-wrap:wrap}
.steps p{order:-1;flex-basis:100%;min-height:2em}main,main.wide{padding:18px 10px}
h1{font-size:1.4rem}figure{padding:10px}
svg text{font-size:13px}
svg .tick,.wide svg .tick{font-size:13px}
table{font-size:.8rem}th,td{padding:.25rem .35rem}thead th{min-width:0}}
@media print{.moments,.traces{display:none}html{font-size:10.5px}
.tiles{grid-template-columns:repeat(auto-fit,minmax(90px,1fr))}
h2{margin-top:1.2rem}footer{margin-top:1rem}
body{background:var(--paper);font-size:1rem;print-color-adjust:exact;
-webkit-print-color-adjust:exact}main,main.wide{max-width:none;padding:0}
.grid{grid-template-columns:repeat(auto-fit,minmax(300px,1fr));gap:8px}.columns{columns:2;column-gap:8px}
figure,.tiles div,tr{break-inside:avoid}
.scroll{overflow:visible}table{font-size:.85rem}thead th{min-width:0}
details:not([open]){display:none}section{break-inside:avoid}
.grid.two{grid-template-columns:1fr 1fr}.grid>figure:only-child{max-width:340px}
td,th{padding:.14rem .5rem}
h2,h2+.about{break-after:avoid}@page{size:A4;margin:14mm}}
"""
)


class Panel(Data):
    """A drawing with what it shows; one without a drawing says why in its caption."""

    title: str
    drawing: Drawing | None
    caption: str = ""
    colour: str = ""  # of the run it belongs to
    instead: str = "Nothing to show."  # where there is no drawing, beside runs that have one
    moments: str = ""  # what it was like over time, for the script
    parts: Sequence[Unfolded] = ()  # instead of a drawing: one is unfolded at a time,
    first: int = 0  # this one before anybody asks
    more: Unfolded | None = None  # what there is beside the drawing, for who asks

    @property
    def scripted(self) -> bool:
        """Whether there is more to it where scripts run."""
        return bool(self.moments or self.parts)

    def high(self, paper: Paper) -> float:
        """How high it is on paper."""
        shown = self.parts[self.first].drawing if self.parts else self.drawing
        return paper.drawn(self.title, self.caption, shown) if shown else 0.0


def document(title: str, body: Iterable[str], *, is_wide: bool = False) -> str:
    """A whole page; a wide one is printed across the paper."""
    kind = ' class="wide"' if is_wide else ""
    across = "<style>@page{size:A4 landscape}</style>" if is_wide else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>{across}</head>\n"
        f"<body><main{kind}>\n" + "\n".join(body) + "\n</main></body></html>\n"
    )


_BEFORE_UNITS = re.compile(r"(?<=\d) (?=%|(?:ns|µs|ms|s|B|KB|MB|GB|TB|Gb/s)\b)")


def heading(level: int, text: str) -> str:
    """A heading."""
    return f"<h{level}>{escape(text)}</h{level}>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def undivided(text: str) -> str:
    """A text in large letters, no number of which is parted from its unit."""
    return _BEFORE_UNITS.sub("\N{NO-BREAK SPACE}", text)


def listing(said: Iterable[str]) -> str:
    """Sentences, one below the other."""
    return f"<ul>{''.join(f'<li>{escape(each)}</li>' for each in said)}</ul>"


def tiles(figures: Iterable[tuple[str, str]]) -> str:
    """The few figures one looks at first: what, and how much."""
    cells = (
        f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in figures
    )
    return f'<div class="tiles">{"".join(cells)}</div>'


def columns(panels: Sequence[Panel], above: float) -> str:
    """Drawings of different heights, in two columns where there is room; on paper what stands
    above them takes so much of the first page."""
    heights = [panel.high(PORTRAIT) for panel in panels]
    order = best_order(heights, PORTRAIT, above, PORTRAIT.columns)
    figures = "".join(figure(panels[at], 2) for at in order)
    return f'<div class="columns">{figures}</div>'


def script(panels: Iterable[Panel]) -> str:
    """What moves panels, to stand below them all."""
    return f"<script>{SCRIPT}</script>" if any(panel.scripted for panel in panels) else ""


def grid(panels: Iterable[Panel], level: int = 3, kind: str = "") -> str:
    """Drawings to be compared, side by side where there is room; of kind "two" two by two."""
    name = f"grid {kind}".strip()
    return f'<div class="{name}">{"".join(figure(panel, level) for panel in panels)}</div>'


_MOMENTS = (
    '<div class="moments" hidden><div><button type="button">play</button><label>'
    '<span class="marks"></span><input type="range" min="0" value="0" '
    'aria-label="Moment of the run"/></label></div><output aria-live="off"></output>'
    '<div class="steps" hidden><button type="button" aria-label="Step before">\u25c0</button>'
    '<p aria-live="polite"></p><button type="button" aria-label="Next step">\u25b6</button>'
    '<button type="button" aria-pressed="false">ask first</button>'
    '<button type="button" aria-pressed="false">present</button></div>'
    '<p class="follow" hidden><label>What held up <select></select>?</label>'
    '<span aria-live="polite"></span></p></div>'
)


def moved(drawing: str, caption: str) -> str:
    """A drawing, with what moves it through the moments of its run if there is something."""
    if not caption:
        return drawing
    inside = caption.replace("</", "<\\/")
    return f'{drawing}{_MOMENTS}<script type="application/json">{inside}</script>'


def figure(panel: Panel, level: int) -> str:
    """A drawing with its title and what it shows."""
    drawing = panel.drawing.render() if panel.drawing else ""
    colour = f' style="border-top:4px solid var(--{panel.colour})"' if panel.colour else ""
    return (
        f"<figure{colour}>{heading(level, panel.title)}"
        + (paragraph(panel.caption, "caption") if panel.caption else "")
        + f"{moved(drawing, panel.moments)}{_parts(panel)}"
        + (folded(panel.more.name, panel.more.drawing.render()) if panel.more else "")
        + "</figure>"
    )


def _parts(panel: Panel) -> str:
    """Parts of a drawing, folded but for one; whoever clicks on its name, or goes there by keys and
    presses Enter, unfolds another. It takes no script."""
    if not panel.parts:
        return ""
    each = "".join(
        f'<details name="parts"{" open" if at == panel.first else ""}>'
        f"<summary>{escape(part.name)}</summary>{part.drawing.render()}</details>"
        for at, part in enumerate(panel.parts)
    )
    return f'<div class="parts">{each}</div>'


class Link(NamedTuple):
    """A cell of a table that leads to another page."""

    text: str
    to: str


class Decisive(str):
    """A cell of a table that decides between runs."""

    __slots__ = ()


def _cell(content: str | Link) -> str:
    if isinstance(content, Decisive):
        return f"<strong>{escape(content)}</strong>"
    if isinstance(content, Link):
        return f'<a href="{escape(content.to)}">{escape(content.text)}</a>'
    return escape(content)


def table(head: Sequence[str], rows: Iterable[Sequence[str | Link]], kind: str = "") -> str:
    """A table whose first column names the rows; of kind "texts" one of words, not numbers."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join(
        f'<tr><th scope="row">{_cell(row[0])}</th>'
        + "".join(f"<td>{_cell(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    content = f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="{f"scroll {kind}".strip()}" tabindex="0"><table>{content}</table></div>'


def folded(title: str, content: str) -> str:
    """What only some want to see."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>"


_TRACES = (
    '<div class="traces" hidden><div class="bar"><input type="search" placeholder="h3, to h5, '
    'all-reduce…" aria-label="Search rows and bars"/><button type="button" aria-label="Closer">+'
    '</button><button type="button" aria-label="Further">\u2212</button>'
    '<button type="button">all</button></div><output aria-live="polite"></output>'
    '<div class="view" tabindex="0" role="group" aria-label="Rows of bars over time">'
    '<div class="room"><canvas class="canvas"></canvas></div></div>'
    '<p class="caption">W and S, + and \u2212, Ctrl with the wheel, or a double click zoom; A and '
    "D, the arrow keys, or dragging move; rest on a bar to read it.</p>"
)


def traces(caption: str) -> str:
    """Rows of bars that one can zoom into; what they hold, as `traces.py` tells it."""
    inside = caption.replace("</", "<\\/")
    data = f'<script type="application/json">{inside}</script></div>'
    return f"{_TRACES}{data}<script>{TRACES}</script>"


def halves(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A long narrow table as two beside each other where there is room."""
    middle = (len(rows) + 1) // 2
    return f'<div class="grid">{table(head, rows[:middle])}{table(head, rows[middle:])}</div>'


def section(parts: Iterable[str]) -> str:
    """What stays together on paper."""
    return f"<section>{''.join(parts)}</section>"


def beside(parts: Iterable[str]) -> str:
    """Anything, side by side where there is room."""
    return f'<div class="grid">{"".join(parts)}</div>'


def again(command: str, note: str = "") -> str:
    """The command that makes a page's figures again."""
    said = f"To make it again{', ' + note if note else ''}:"
    return f'<p class="again">{escape(said)} <code>{escape(command)}</code></p>'


def foot(made: str, command: str) -> str:
    """Where the figures of a page come from."""
    parts = [paragraph(made)] if made else []
    return f"<footer>{''.join([*parts, *([again(command)] if command else [])])}</footer>"


def preformatted(text: str) -> str:
    """Text as it stands."""
    return f'<pre class="scroll" tabindex="0">{escape(text)}</pre>'

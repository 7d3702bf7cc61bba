"""A kept run as one file that plays it back: the live page with all that a server would tell it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from views.live.kept import film
from views.report.kept import KeptRun
from views.report.moments import LOOKS
from views.report.palette import sheet

PAGE = Path(__file__).parent / "page"
# What the page is made of besides its own files, by the names under which it asks for them.
MADE = {"/colours.css": sheet(), "/looks.js": LOOKS}
_MAX = 800  # snapshots: as many as a screen has columns
_STYLE = re.compile(r'<link rel="stylesheet" href="([^"]+)">\n')
_SCRIPT = re.compile(r'<script src="([^"]+)" defer></script>\n')
_INDEX = "index.html"


def page(run: KeptRun) -> str:
    """The file."""
    shown = film(run, _MAX)
    shown["scene"]["id"] = ""  # which tells one run that is served from the next
    inside = json.dumps(shown, separators=(",", ":")).replace("</", "<\\/")
    held = f'<script type="application/json" id="held">{inside}</script>\n'
    theirs = "".join(path.read_text() for path in PAGE.rglob("LICENSE"))
    own = f"<!--\n{theirs}-->\n" + "".join(f"<script>{script}</script>\n" for script in scripts())
    text = _STYLE.sub(lambda found: f"<style>{_text(found[1])}</style>\n", _index())
    return _SCRIPT.sub("", text).replace("</body>", f"{held}{own}</body>")


def scripts() -> Iterator[str]:
    """Those that the file runs, in their order."""
    return (_text(found[1]) for found in _SCRIPT.finditer(_index()))


def _index() -> str:
    return (PAGE / _INDEX).read_text()


def _text(name: str) -> str:
    return MADE.get(name) or (PAGE / name.lstrip("/")).read_text()

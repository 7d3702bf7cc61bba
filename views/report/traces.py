"""Every message, all work and every pause as rows that a reader zooms into and searches.

The rows are those of a trace for Perfetto (`perfetto.py`); a small script in the page draws them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from params.quantity import number, size
from views.report.kept import KeptRun
from views.report.perfetto import HOSTS, Event, hosts, pauses

_MAX = 10_000  # bars that a page can hold; of more those that lasted longest
_WORK, _MESSAGE, _LOST, _PAUSE = range(4)  # what a bar is: traces.js gives each its colour


def traces(run: KeptRun) -> str:
    """What the page's script is to know, as JSON; nothing where nothing was noted."""
    events = [*hosts(run), *pauses(run)]
    bars = [event for event in events if event["ph"] == "X"]
    if not bars:
        return ""
    kept = sorted(bars, key=lambda event: -event["dur"])[:_MAX]
    words: dict[str, int] = {}
    rows: dict[tuple[int, int], list[int]] = {}
    for event in kept:
        said = words.setdefault(_said(event), len(words))
        row = rows.setdefault((event["pid"], event["tid"]), [])
        row += (round(1e3 * event["ts"]), round(1e3 * event["dur"]), said, _kind(event))
    names = {(each["pid"], each["tid"]): each["args"]["name"] for each in _tracks(events)}
    content: dict[str, Any] = {
        "end": run.end_ns,
        "bars": len(bars),
        "words": list(words),
        "rows": [[names[place], rows[place]] for place in sorted(rows)],
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _tracks(events: Iterable[Event]) -> Iterable[Event]:
    return (event for event in events if event["ph"] == "M")


def _kind(event: Event) -> int:
    if event["pid"] != HOSTS:
        return _PAUSE
    if "arrived" not in event["args"]:
        return _WORK
    return _MESSAGE if event["args"]["arrived"] else _LOST


def _said(event: Event) -> str:
    """A bar in words, but for its times."""
    args = event["args"]
    if event["pid"] != HOSTS:
        cause = f", led to by {args['led_by']}" if "led_by" in args else ""
        held = f", held on by {args['held_on_by']}" if "held_on_by" in args else ""
        return f"{event['name']}{cause}{held}"
    parts = [event["name"], size(args["bytes"]) if "bytes" in args else "", args.get("what", "")]
    if args.get("slowdown"):
        parts.append(f"{number(args['slowdown'])} times as long as alone")
    if args.get("arrived") is False:
        parts.append("did not arrive")
    return ", ".join(filter(None, parts))


SCRIPT = Path(__file__).with_suffix(".js").read_text()

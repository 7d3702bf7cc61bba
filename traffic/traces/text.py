"""Text files read with bounds, line by line, so that whatever is wrong has a place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from files import FileError, read_text
from traffic.traces.graph import TraceError

MAX_BYTES = 512_000_000
_MAX = 1 << 62


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """A file's lines that say something, with their numbers; what follows a # is not read."""
    for number, line in enumerate(text_of(path).splitlines(), 1):
        said = line.partition("#")[0].strip()
        if said:
            yield number, said


def text_of(path: Path) -> str:
    """A file's text."""
    try:
        return read_text(path, MAX_BYTES)
    except FileError as error:
        raise TraceError(str(error)) from None


def whole(text: str, what: str, least: int = 0, most: int = _MAX) -> int:
    """A whole number; ``4.000`` is one too."""
    try:
        number = int(text) if len(text) <= 20 else None
    except ValueError:
        try:
            number = int(float(text)) if math.isfinite(float(text)) and "." in text else None
        except ValueError:
            number = None
    if number is None or not least <= number <= most:
        raise TraceError(f"{what}: {text[:40]!r} is no whole number from {least:,} to {most:,}")
    return number

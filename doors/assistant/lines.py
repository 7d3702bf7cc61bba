"""What comes in by stdin, a line a request, of which none is longer than it may be.

A line beyond that becomes one that is no request, which the protocol passes over; so does one whose
brackets nest deeper than anything that is asked for. Nothing of it is kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import anyio

MOST_BYTES = 1 << 20
_MOST_DEPTH = 64
_PIECE = 1 << 16
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"?|[^\[\]{}"]+')
_REFUSED = "null\n"


class Bounded:
    """As a file that is read line by line."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._rest = b""
        self._is_too_long = False

    async def __aiter__(self) -> AsyncIterator[str]:
        """Lines, until the other end is closed."""
        while piece := await self._piece():
            *whole, self._rest = (self._rest + piece).split(b"\n")
            for line in whole:
                yield _REFUSED if self._is_too_long or not _is_fit(line) else _text(line)
                self._is_too_long = False
            if len(self._rest) > MOST_BYTES:
                self._is_too_long, self._rest = True, b""

    async def _piece(self) -> bytes:
        try:
            await anyio.wait_readable(self._number)  # no thread waits, so none outlasts an interrupt
        except PermissionError:  # a file on a disk, which is always ready
            await anyio.lowlevel.checkpoint()
        return os.read(self._number, _PIECE)


def _is_fit(line: bytes) -> bool:
    if len(line) > MOST_BYTES:
        return False
    deepest = now = 0
    for sign in _BRACKETS.sub(b"", line):
        now += 1 if sign in b"[{" else -1
        deepest = max(deepest, now)
    return deepest <= _MOST_DEPTH


def _text(line: bytes) -> str:
    return line.decode(errors="replace") + "\n"


@contextmanager
def bounded() -> Iterator[Any]:
    """Stdin's lines; meanwhile nobody else reads from it."""
    number, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        yield cast("Any", Bounded(number))
    finally:
        os.dup2(number, 0)
        os.close(number)

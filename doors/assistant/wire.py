"""Stdin and stdout as the protocol uses them: a message a line, either way.

A line that is no message is answered here by the protocol's own error, with its number where it has
one; so are lines that are too long, or whose brackets nest deeper than anything that is asked for.
Nothing of them is kept. No thread waits for either end, so that none outlasts an interrupt.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import anyio
import anyio.lowlevel
import mcp_types as t

from doors.nesting import is_deeper

MAX_BYTES = 1 << 20
_MAX_DEPTH = 64
_PIECE = 1 << 16
_SURE = 4096  # bytes, which a pipe takes that takes any


class Wire:
    """Both of them, each as the asynchronous file that the protocol's server asks for."""

    def __init__(self, stdin: int, stdout: int) -> None:
        self._stdin, self._stdout = stdin, stdout
        self._rest = b""
        self._is_too_long = False
        self._turn = anyio.Lock()

    async def __aiter__(self) -> AsyncIterator[str]:
        """Messages, until the other end is closed."""
        while piece := await self._piece():
            *whole, self._rest = (self._rest + piece).split(b"\n")
            for line in whole:
                problem = _TOO_LONG if self._is_too_long else _problem(line)
                self._is_too_long = False
                if problem is None:
                    yield line.decode(errors="replace") + "\n"
                elif line.strip() or problem is _TOO_LONG:
                    await self.write(json.dumps({"jsonrpc": "2.0", **problem}) + "\n")
            if len(self._rest) > MAX_BYTES:
                self._is_too_long, self._rest = True, b""

    async def _piece(self) -> bytes:
        await _ready(anyio.wait_readable, self._stdin)
        return os.read(self._stdin, _PIECE)

    async def write(self, text: str) -> None:
        """A whole message, however slowly the other end takes it."""
        left = text.encode(errors="replace")
        async with self._turn:
            while left:
                await _ready(anyio.wait_writable, self._stdout)
                left = left[os.write(self._stdout, left[:_SURE]) :]

    async def flush(self) -> None:
        """Nothing is held back."""


async def _ready(wait: Callable[[int], Awaitable[None]], number: int) -> None:
    try:
        await wait(number)
    except PermissionError:  # a file on a disk, which always is
        await anyio.lowlevel.checkpoint()


def _error(code: int, message: str, number: object = None) -> dict[str, Any]:
    return {"id": number, "error": {"code": code, "message": message}}


_TOO_LONG = _error(t.INVALID_REQUEST, f"a request may have {MAX_BYTES:,} bytes")
_TOO_DEEP = _error(t.INVALID_REQUEST, f"a request may nest {_MAX_DEPTH} brackets")


def _problem(line: bytes) -> dict[str, Any] | None:
    """What is wrong with a line, if it is no message."""
    if len(line) > MAX_BYTES:
        return _TOO_LONG
    if is_deeper(line, _MAX_DEPTH):
        return _TOO_DEEP
    try:
        t.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        try:
            given = json.loads(line)
        except ValueError:
            return _error(t.PARSE_ERROR, "this is not JSON")
        number = given.get("id") if isinstance(given, dict) else None
        known = number if isinstance(number, str | int) and not isinstance(number, bool) else None
        return _error(t.INVALID_REQUEST, "this is no message of JSON-RPC 2.0", known)
    return None


@contextmanager
def wire() -> Iterator[Any]:
    """Ours alone: meanwhile others read nothing from stdin, and stdout's words go to stderr."""
    ours = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield cast("Any", Wire(*ours))
    finally:
        for number, own in enumerate(ours):
            os.dup2(own, number)
            os.close(own)

"""Messages as the protocol frames them: a header that says how long, and JSON.

What is no message is answered here by the protocol's own error, with its number where it has one;
so is what is too long, nests deeper than anything that is asked for, or comes before `initialize`
or after `shutdown`. A header that cannot be read is skipped, as far as the next that can.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from doors.nesting import is_deeper

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602
NOT_INITIALIZED, REQUEST_FAILED = -32002, -32803
MAX_BYTES = 32 << 20
_MAX_DEPTH = 64
_MAX_HEADER = 8192
_LENGTH = re.compile(rb"content-length[ \t]*:[ \t]*(\d{1,18})[ \t]*", re.IGNORECASE)


class Wire:
    """Takes messages from one end, and says at the other what was none."""

    def __init__(self, reads: asyncio.StreamReader, says: Callable[[bytes], None]) -> None:
        self._reads = reads
        self._says = says
        self.began = self.is_over = False

    async def next(self) -> dict[str, Any] | None:
        """The next message; None when the other end is gone."""
        while True:
            size = await self._header()
            if size is None:
                return None
            if size > MAX_BYTES:
                await self._skip(size)
                self.refuse(INVALID_REQUEST, f"a message may have {MAX_BYTES:,} bytes")
                continue
            try:
                body = await self._reads.readexactly(size)
            except asyncio.IncompleteReadError:
                return None
            message = self._read(body)
            if message is not None:
                return message

    async def _header(self) -> int | None:
        """How long the message is that follows."""
        size: int | None = None
        while True:
            try:
                line = await self._reads.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return None
            except asyncio.LimitOverrunError as error:
                await self._reads.readexactly(error.consumed)
                continue
            found = _LENGTH.fullmatch(line.strip())
            if found:
                size = int(found[1])
            elif not line.strip() and size is not None:
                return size

    async def _skip(self, size: int) -> None:
        while size > 0:
            piece = await self._reads.read(min(size, 1 << 20))
            if not piece:
                return
            size -= len(piece)

    def _read(self, body: bytes) -> dict[str, Any] | None:
        if is_deeper(body, _MAX_DEPTH):
            self.refuse(INVALID_REQUEST, f"a message may nest {_MAX_DEPTH} brackets")
            return None
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            self.refuse(PARSE_ERROR, "this is not JSON")
            return None
        if not isinstance(given, dict):
            self.refuse(INVALID_REQUEST, "this is no message of JSON-RPC 2.0")
            return None
        number = given.get("id")
        known = number if isinstance(number, str | int) and not isinstance(number, bool) else None
        method = given.get("method")
        is_answer = method is None and ("result" in given or "error" in given)
        if given.get("jsonrpc") != "2.0" or not (isinstance(method, str) or is_answer):
            self.refuse(INVALID_REQUEST, "this is no message of JSON-RPC 2.0", known)
            return None
        if "id" in given and known is None and method is not None:
            self.refuse(INVALID_REQUEST, "a request's id is a number or a string")
            return None
        params = given.get("params")
        if params is not None and not isinstance(params, dict | list):
            self.refuse(INVALID_PARAMS, "params are an object or a list", known)
            return None
        return given if is_answer or self._is_in_order(method, known) else None

    def _is_in_order(self, method: str | None, number: int | str | None) -> bool:
        """Whether a message may come now; a notification that may not is dropped."""
        if method == "exit":
            return True
        if self.is_over:
            why, code = "the session is shut down", INVALID_REQUEST
        elif method == "initialize":
            if not self.began:
                return True
            why, code = "the session is initialized already", INVALID_REQUEST
        elif not self.began:
            why, code = "the session is not initialized", NOT_INITIALIZED
        else:
            return True
        if number is not None:
            self.refuse(code, why, number)
        return False

    def refuse(self, code: int, why: str, number: int | str | None = None) -> None:
        """Say what is wrong with a message."""
        error = {"code": code, "message": why}
        self._says(framed({"jsonrpc": "2.0", "id": number, "error": error}))


def framed(message: dict[str, Any]) -> bytes:
    """A message as it goes over the wire."""
    body = json.dumps(message, ensure_ascii=True).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

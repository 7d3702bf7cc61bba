"""A scenario that is tuned from its page: what of that is asked of the server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from lab.errors import LabError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

Said = Callable[["Request", int], Awaitable["bytes | Response"]]
"""What somebody who may says, in so many bytes at most; or what to answer instead."""

_BYTES = 16 << 10
_GONE_S = 0.5  # how soon it is noticed that who asked has gone


class Tuner(Protocol):
    """What a scenario is tuned by."""

    def offer(self) -> dict[str, Any]:
        """Its levers, and all there are."""

    def lever(self, key: str) -> dict[str, Any]:
        """Any of these. Raises a LabError."""

    def tried(self, settings: dict[str, str], *, whole: bool = False) -> dict[str, Any]:
        """What becomes of it with these, or how far it came soon; its verdict may not be known yet.
        Raises a LabError."""

    def price(self, settings: dict[str, str]) -> dict[str, Any]:
        """The verdict of what was tried last, which was with these. Raises a LabError."""

    def stop(self) -> None:
        """End what is being tried."""


def routes(tuner: Tuner, said: Said) -> list[Route]:
    """What answers."""
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def levers(request: Request) -> Response:
        key = request.query_params.get("key")
        try:
            return JSONResponse(tuner.offer() if key is None else tuner.lever(key))
        except LabError as error:
            return JSONResponse({"error": error_text(error)}, 400)

    async def tune(request: Request) -> Response:
        heard = await said(request, _BYTES)
        if isinstance(heard, Response):
            return heard
        wanted = _wanted(heard)
        if wanted is None:
            tuner.stop()
            return JSONResponse({})
        what, settings = wanted
        answers: dict[str, Callable[[dict[str, str]], dict[str, Any]]] = {
            "set": tuner.tried,
            "whole": partial(tuner.tried, whole=True),
            "price": tuner.price,
        }
        trying = asyncio.create_task(asyncio.to_thread(answers[what], settings))
        while not (await asyncio.wait([trying], timeout=_GONE_S))[0]:
            if await request.is_disconnected():
                tuner.stop()
        try:
            return JSONResponse(trying.result())
        except LabError as error:
            return JSONResponse({"error": error_text(error)}, 400)

    return [Route("/tune", levers), Route("/tune", tune, methods=["POST"])]


def error_text(error: LabError) -> str:
    """What is wrong, and what to do."""
    return " ".join(filter(None, (error.message, error.cure)))


def _wanted(said: bytes) -> tuple[str, dict[str, str]] | None:
    """What a page wants to know of some settings; nothing: it wants what is tried to end."""
    try:
        settings = json.loads(said)
    except (ValueError, RecursionError):
        return None
    for what in ("set", "whole", "price"):
        wanted = settings.get(what) if isinstance(settings, dict) else None
        if isinstance(wanted, dict):
            return what, {str(key): str(value) for key, value in wanted.items()}
    return None

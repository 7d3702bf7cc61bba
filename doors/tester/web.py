"""OTG by HTTP: its paths, JSON either way, and its own Error for whatever is wrong.

    POST  /config              PATCH /config/append    GET  /capabilities/version
    GET   /config              PATCH /config/delete    POST /monitor/metrics, states, capture
    PATCH /config              POST  /control/state

Who is led here by a page elsewhere is refused: a browser says where the page is from.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import anyio.to_thread
from google.protobuf.message import Message
from snappi import otg_pb2 as otg
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from doors.tester.dispatcher import Desk
from doors.tester.models import MAX_BYTES, Refused, as_json, missing, read

_Do = Callable[[Any], Message | bytes]
_AT_ONCE = 16


def application(desk: Desk) -> Starlette:
    """What answers, of one tester."""
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    def route(path: str, **by_method: tuple[type[Message] | None, _Do]) -> Route:
        async def answer(request: Request) -> Response:
            kind, do = by_method[request.method]
            body = await _body(request)

            def carried_out() -> Response:
                outcome = do(read(kind, body) if kind else None)
                if isinstance(outcome, bytes):
                    return Response(outcome, media_type="application/octet-stream")
                return JSONResponse(as_json(outcome))

            try:
                return await anyio.to_thread.run_sync(carried_out, limiter=limiter)
            except Refused as error:
                return _error(error)

        return Route(path, answer, methods=[*by_method])

    def refuse_action(_: otg.ControlAction) -> Message:
        raise missing("control/action: actions are not there in closlab")

    return Starlette(
        routes=[
            route(
                "/config",
                POST=(otg.Config, desk.set_config),
                GET=(None, lambda _: desk.get_config()),
                PATCH=(otg.ConfigUpdate, desk.update_config),
            ),
            route("/config/append", PATCH=(otg.ConfigAppend, desk.append_config)),
            route("/config/delete", PATCH=(otg.ConfigDelete, desk.delete_config)),
            route("/control/state", POST=(otg.ControlState, desk.set_control_state)),
            route("/control/action", POST=(otg.ControlAction, refuse_action)),
            route("/monitor/metrics", POST=(otg.MetricsRequest, desk.get_metrics)),
            route("/monitor/states", POST=(otg.StatesRequest, desk.get_states)),
            route("/monitor/capture", POST=(otg.CaptureRequest, desk.get_capture)),
            route("/capabilities/version", GET=(None, lambda _: desk.get_version())),
        ],
        exception_handlers={
            HTTPException: _no_route,
            Refused: lambda _, error: _error(error),
            Exception: _defect,
        },
    )


async def _body(request: Request) -> bytes:
    """What was sent, up to what may be sent."""
    if request.headers.get("origin") not in (None, ""):
        raise Refused(403, "this is not answered to pages: the request says an origin")
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > MAX_BYTES:
                raise Refused(413, f"a request may have {MAX_BYTES:,} bytes")
            parts.append(part)
    except ClientDisconnect:
        raise Refused(400, "the request broke off") from None
    return b"".join(parts)


def _error(error: Refused) -> JSONResponse:
    close = {"connection": "close"} if error.code in (403, 413) else None
    return JSONResponse(error.as_json(), status_code=error.code, headers=close)


def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = "".join(sign if sign.isprintable() else "?" for sign in request.url.path[:80])
    what = f"{request.method[:20]} {path}: {error.detail}"
    return _error(Refused(error.status_code, what))


def _defect(_request: Request, error: Exception) -> Response:
    traceback.print_exception(error)
    return _error(Refused(500, f"a defect of closlab: {type(error).__name__}", kind="internal"))

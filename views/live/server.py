"""The page and its data, on this machine's loopback only.

    GET  /               the page, and what belongs to it
    GET  /scene          what does not change: the drawing, names, what can be done
    GET  /frames         what changes, as server-sent events: a frame each, only what is new in it
    GET  /metrics        the latest for Prometheus; /prometheus/ has rules and a dashboard
    POST /do             words such as "fail leaf1-spine1"; wants the token that was printed
    GET  /tune           the levers of a scenario that is tuned; with ?key=, any other of them
    POST /tune           what becomes of it with other settings; {} stops that; wants the token

A page elsewhere can reach a server here through its reader's browser. So what names another host
than this one is refused (it was led here by its own name service), and so is what another page
sent; to change anything takes a token, which only who started the server was told.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lab.errors import LabError, MissingTool
from params.data import Data
from views.live import gnmi, metrics, tune_routes
from views.live.alone import MADE, PAGE
from views.live.hub import Frame, Hub
from views.live.tune_routes import Tuner, error_text

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

LOOPBACK = "127.0.0.1"
YANG = Path(__file__).parent / "yang"
PROMETHEUS = Path(__file__).parent / "prometheus"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
_INTERVAL_S = 0.1  # between two messages to a page: ten a second are as many as one sees
_WORD_BYTES = 200
_UNREAD_BYTES = 128 << 10
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Address(Data):
    """Where a page is, and the token by which one may change what it shows."""

    port: int
    token: str
    gnmi: int | None = None  # the port at which collectors are answered

    def __str__(self) -> str:
        """As it is told."""
        return self.url + (f"  (gNMI at {LOOPBACK}:{self.gnmi})" if self.gnmi else "")

    @property
    def url(self) -> str:
        """To be opened; the part behind # stays in the browser."""
        return f"http://{LOOPBACK}:{self.port}/#{self.token}"


def require() -> None:
    """Fail with what to install, if what serves pages is not there."""
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingTool(
            "the live page needs starlette and uvicorn, which are not installed",
            "The launcher brings them (./closlab watch, replay or run --live); in an environment "
            "of your own:  pip install 'closlab[live]'",
        ) from None


@contextmanager
def serving(
    hub: Hub, port: int = 0, gnmi_port: int | None = None, tuner: Tuner | None = None
) -> Iterator[Address]:
    """Serve a hub for as long as the context lasts, to collectors too if they are asked for."""
    with ExitStack() as stack:
        address = stack.enter_context(_page(hub, port, tuner))
        if gnmi_port is not None:
            address = replace(address, gnmi=stack.enter_context(gnmi.serving(hub, gnmi_port)))
        yield address


@contextmanager
def _page(hub: Hub, port: int, tuner: Tuner | None) -> Iterator[Address]:
    require()
    import uvicorn

    from views.live.guests import Guest

    address, listener = _listen(port)
    config = uvicorn.Config(
        application(hub, address, tuner),
        log_level="critical",
        lifespan="off",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=2,
        http=Guest,
        h11_max_incomplete_event_size=16_384,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(
        target=server.run, args=([listener],), name="closlab-page", daemon=True
    )
    thread.start()
    try:
        yield address
    finally:
        server.should_exit = True
        thread.join(timeout=5)
        listener.close()


def wait() -> None:
    """Until Ctrl-C, or until somebody ends this process in order."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        threading.Event().wait()


def _listen(port: int) -> tuple[Address, socket.socket]:
    # By its protocol's name asyncio knows that it may send at once what is little; else the second
    # of two small pieces waits for the first one's receipt, which the other end holds back 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD_BYTES)  # of each guest
        listener.bind((LOOPBACK, port))
        listener.listen()  # who comes before the server is awake waits
    except OSError as error:
        listener.close()
        raise LabError(
            f"port {port} cannot be listened on: {error.strerror}",
            "Choose another with --port, or none: then a free one is found.",
        ) from None
    return Address(listener.getsockname()[1], secrets.token_urlsafe(16)), listener


def application(hub: Hub, address: Address, tuner: Tuner | None = None) -> Starlette:
    """What answers."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route

    shown = hub.scene.content(hub.hands, hub.room) | {"tuned": tuner is not None}
    scene = json.dumps(shown, separators=(",", ":"))
    files = _files()

    async def file(request: Request) -> Response:
        content, kind = files[request.url.path]
        return Response(content, media_type=kind)

    async def get_scene(_: Request) -> Response:
        return Response(scene, media_type="application/json")

    async def frames(request: Request) -> Response:
        kind = "text/event-stream"
        if request.method == "HEAD":  # which has an end
            return Response(media_type=kind)
        return StreamingResponse(_stream(hub), media_type=kind)

    async def measured(request: Request) -> Response:
        is_open = metrics.wants_open(request.headers.get("accept", ""))
        kind = metrics.OPEN_KIND if is_open else metrics.KIND
        return Response(metrics.exposition(hub, is_open=is_open), headers={"Content-Type": kind})

    async def said(request: Request, most: int) -> bytes | Response:
        """What somebody who may says, or what to answer instead."""
        given = request.headers.get("x-closlab-token", "")
        if not secrets.compare_digest(given.encode(), address.token.encode()):
            return JSONResponse({"error": "this needs the token of the printed address"}, 403)
        heard = b""
        async for piece in request.stream():
            heard += piece
            if len(heard) > most:
                return JSONResponse({"error": f"it is longer than {most} bytes"}, 413)
        return heard

    async def do(request: Request) -> Response:
        heard = await said(request, _WORD_BYTES)
        if isinstance(heard, Response):
            return heard
        words = heard.decode(errors="replace").strip()
        if words.partition(" ")[0] not in hub.hands.words:
            return JSONResponse({"error": f"'{words}' cannot be done here"}, 400)
        try:
            done = await asyncio.to_thread(hub.hands.do, words)
        except LabError as error:
            return JSONResponse({"error": error_text(error)}, 400)
        return JSONResponse({"said": done})

    return Starlette(
        routes=[
            *(Route(path, file) for path in files),
            Route("/scene", get_scene),
            Route("/frames", frames),
            Route("/metrics", measured),
            Route("/do", do, methods=["POST"]),
            *(tune_routes.routes(tuner, said) if tuner else []),
        ],
        middleware=[Middleware(_Door, port=address.port)],
    )


class _Door:
    """Refuses what was meant for another host, or comes from another page."""

    def __init__(self, app: object, port: int) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in (LOOPBACK, "localhost")}

    async def __call__(self, scope: object, receive: object, send: object) -> None:
        from starlette.datastructures import Headers, MutableHeaders
        from starlette.responses import PlainTextResponse

        assert isinstance(scope, dict) and callable(self._app) and callable(send)
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        origins = {f"http://{host}" for host in self._hosts}
        if headers.get("host") not in self._hosts or origin not in {None, *origins}:
            refusal = PlainTextResponse("closlab: this page is for its own host only\n", 403)
            await refusal(scope, receive, send)  # type: ignore[arg-type]
            return

        async def send_guarded(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._app(scope, receive, send_guarded)


def _files() -> dict[str, tuple[bytes, str]]:
    """The page and what belongs to it, by path: nothing else is ever read from the disk."""
    found = {name: (text.encode(), _KINDS[Path(name).suffix]) for name, text in MADE.items()}
    for path in sorted(PAGE.rglob("*")):
        if path.suffix in _KINDS:
            name = path.relative_to(PAGE).as_posix()
            found["/" + name.replace("index.html", "")] = path.read_bytes(), _KINDS[path.suffix]
    for path in YANG.glob("*.yang"):
        found[f"/yang/{path.name}"] = path.read_bytes(), "application/yang"
    for path in PROMETHEUS.iterdir():
        found[f"/prometheus/{path.name}"] = path.read_bytes(), "text/plain"
    return found


async def _stream(hub: Hub) -> AsyncIterator[str]:
    """What is new, as often as a page is told; all that is remembered to begin with."""
    loop, news = asyncio.get_running_loop(), asyncio.Event()

    def ring() -> None:
        with suppress(RuntimeError):  # the server has just gone
            loop.call_soon_threadsafe(news.set)

    detach = hub.attach(ring)
    sent: Frame | None = None
    try:
        while True:
            news.clear()
            frames = hub.since(sent.number + 1 if sent else 0)
            if frames:
                # A frame that nobody has time for is left out, its events are not.
                chosen = frames if sent is None else _merged(frames)
                text = []
                for frame in chosen:
                    text.append(json.dumps(frame.since(sent), separators=(",", ":")))
                    sent = frame
                yield "".join(f"data: {each}\n\n" for each in text)
                if sent is not None and sent.snapshot.is_last:
                    yield "event: over\ndata: {}\n\n"
                    return
            await asyncio.sleep(_INTERVAL_S)
            try:
                await asyncio.wait_for(news.wait(), timeout=15)
            except TimeoutError:
                yield ": still here\n\n"  # by which one notices who is gone
    finally:
        detach()


def _merged(frames: list[Frame]) -> list[Frame]:
    """The last of them, with the events of all."""
    events = tuple(event for frame in frames for event in frame.snapshot.events)
    last = frames[-1]
    return [replace(last, snapshot=replace(last.snapshot, events=events))]

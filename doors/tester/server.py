"""A tester that is up: its ground, its desk, and both ways to speak to it."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

import uvicorn

from doors.tester import rpc
from doors.tester.dispatcher import Desk
from doors.tester.models import Refused
from doors.tester.testbed import Ground
from doors.tester.web import application
from lab.errors import LabError, RunError
from lab.machine.certificates import Certificates, made
from lab.machine.native_host import tester_program
from lab.machine.sched_priority import take_sched_priority
from params.data import Data
from views.live.guests import Guest

_LOOK_S = 0.5
_HEAD_BYTES = 16_384


class Doors(Data):
    """Where it is spoken to."""

    address: str
    http: int
    grpc: int
    has_tls: bool
    forgotten_s: float  # after which flows nobody asks about end; 0: never


def serve(ground: AbstractContextManager[Ground], doors: Doors) -> None:
    """Bring a tester up, and have it answer until it is interrupted."""
    tester_program()
    with socket_at(doors.address, doors.http) as listener:  # before anything takes long
        take_sched_priority()
        with ground as up, made() if doors.has_tls else nullcontext() as certificates:
            desk = Desk(up.places)
            try:
                with (
                    _web(desk, listener, certificates),
                    rpc.serving(desk, doors.address, doors.grpc) as grpc,
                    suppress(KeyboardInterrupt),
                ):
                    _tell(up, doors, listener, grpc)
                    _attend(up, desk, doors.forgotten_s)
            finally:
                desk.close()


@contextmanager
def socket_at(address: str, port: int) -> Iterator[socket.socket]:
    """What is listened at."""
    # Of which protocol it is, asyncio has to be told, or answers wait for each other (Nagle).
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    with listener:
        try:
            listener.bind((address, port))
            listener.listen()
        except OSError as error:
            raise LabError(
                f"port {port} of {address} cannot be listened on: {error.strerror}",
                "Choose another with --http, or 0 for any that is free.",
            ) from None
        yield listener


@contextmanager
def _web(desk: Desk, listener: socket.socket, certificates: Certificates | None) -> Iterator[None]:
    proof = {}
    if certificates is not None:
        whose = "operator"
        proof = {
            "ssl_certfile": str(certificates.certificate(whose)),
            "ssl_keyfile": str(certificates.key(whose)),
        }
    server = uvicorn.Server(
        uvicorn.Config(
            application(desk),
            log_level="critical",
            lifespan="off",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=5,
            http=Guest,
            h11_max_incomplete_event_size=_HEAD_BYTES,
            **proof,  # type: ignore[arg-type]
        )
    )
    thread = threading.Thread(target=server.run, args=([listener],), name="otg-http", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=5)


def _tell(up: Ground, doors: Doors, listener: socket.socket, grpc: int) -> None:
    names, some = [*up.places], next(iter(up.places.values()))
    kind = "https" if doors.has_tls else "http"
    port = listener.getsockname()[1]
    print(f"OTG at {kind}://{doors.address}:{port}, gRPC at {doors.address}:{grpc}")
    print(f"Ports are at {', '.join(names[:8])}{f' to {names[-1]}' if len(names) > 8 else ''}: "
          f"{some.bps / 1e9:g} Gb/s, frames of at most {some.most_frame + 4:,} bytes")  # fmt: skip
    if some.dilation > 1:
        print(f"Time passes {some.dilation:,} times slower: rates and times are the fabric's")
    sys.stdout.flush()


def _attend(up: Ground, desk: Desk, forgotten_s: float) -> None:
    """Until the ground is gone; what nobody asks about any more ends."""
    while not up.is_over:
        time.sleep(_LOOK_S)
        try:
            warnings = [f"{late}: let others finish, or slow time down" for late in desk.lateness()]
            if forgotten_s and desk.stop_if_forgotten(forgotten_s):
                warnings.append(f"nobody has asked for {forgotten_s:g} s: flows are stopped")
        except Refused:  # of a port that is gone, as the ground will be
            continue
        for text in warnings:
            print(f"closlab: {text}", file=sys.stderr, flush=True)
    raise RunError("the fabric has ended", "What befell it is told above.")

"""The P4Runtime service on gRPC: requests in, statuses out, and nothing else.

Every method parses its own request, so that a malformed message is answered as such, and a fault
in the switch itself ends the request it met and no other.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import grpc
from finsy.proto import p4r, rpc_code
from google.protobuf.message import DecodeError, Message

from files import FileError, read_bytes
from params.data import Data
from switch.p4runtime.arbitration import Stream
from switch.p4runtime.device import Device
from switch.p4runtime.errors import STATUS_DETAILS, RequestError, batch_status, exhausted

log = logging.getLogger(__name__)

_PEM_BYTES = 1 << 20
API_VERSION = "1.4.1"
"""The version simple_switch_grpc reports; a later one would tell finsy to name ports as bytes."""

MAX_MESSAGE_BYTES = 256 << 20
ENTITIES_PER_RESPONSE = 1_000
MAX_STREAMS = 256
CALLS_AT_ONCE = 1_024
"""Of one connection; further ones wait at the client."""
UNHEARD_S = 3_600
"""How long a call may wait for the switch, at something else meanwhile; gRPC itself waits 30 s."""
STREAM_BACKLOG = 8_192
"""Notifications a slow controller may lag behind before some are dropped."""

_STATUS = {code.value[0]: code for code in grpc.StatusCode}

Request = TypeVar("Request", bound="Message")


class ServeError(Exception):
    """The server cannot listen; the text names the address and the cure."""


class Tls(Data):
    """PEM files; with a client CA, clients must present a certificate it signed."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def credentials(self) -> Any:
        """Return gRPC's server credentials."""
        pair = (_read(self.key), _read(self.certificate))
        ca = None if self.client_ca is None else _read(self.client_ca)
        return grpc.ssl_server_credentials(
            [pair], root_certificates=ca, require_client_auth=ca is not None
        )


class Server:
    """One device's P4Runtime server, listening on its own address."""

    def __init__(self, device: Device, address: str, *, name: str, tls: Tls | None = None) -> None:
        self._device = device
        self._address = address
        self._name = name
        self._tls = tls
        self._server: Any = None
        self.port = 0

    async def start(self) -> None:
        """Listen."""
        options = [
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_metadata_size", 64 << 10),
            ("grpc.max_concurrent_streams", CALLS_AT_ONCE),
            ("grpc.server_max_unrequested_time_in_server", UNHEARD_S),
        ]
        server = grpc.aio.server(options=options)
        server.add_generic_rpc_handlers((_Methods(self._device).handler(),))
        _try_address(self._name, self._address)
        try:
            if self._tls is None:
                self.port = server.add_insecure_port(self._address)
            else:
                self.port = server.add_secure_port(self._address, self._tls.credentials())
        except RuntimeError:
            self.port = 0
        if not self.port:
            raise ServeError(f"switch {self._name} cannot listen on {self._address}")
        await server.start()
        self._server = server
        self._device.watch_events()

    async def stop(self, grace_s: float = 0.2) -> None:
        """Stop listening and end all streams."""
        if self._server is not None:
            self._device.unwatch_events()
            await self._server.stop(grace_s)
            self._server = None


class _Methods:
    """The RPC methods of one device."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._streams = 0

    def handler(self) -> Any:
        """Return what gRPC dispatches requests by."""
        unary = grpc.unary_unary_rpc_method_handler
        methods = {
            "Write": unary(self._unary(p4r.WriteRequest, self._write)),
            "SetForwardingPipelineConfig": unary(
                self._unary(p4r.SetForwardingPipelineConfigRequest, self._set_pipeline)
            ),
            "GetForwardingPipelineConfig": unary(
                self._unary(p4r.GetForwardingPipelineConfigRequest, self._get_pipeline)
            ),
            "Capabilities": unary(self._unary(p4r.CapabilitiesRequest, self._capabilities)),
            "Read": grpc.unary_stream_rpc_method_handler(self._read),
            "StreamChannel": grpc.stream_stream_rpc_method_handler(self._stream),
        }
        return grpc.method_handlers_generic_handler("p4.v1.P4Runtime", methods)

    def _unary(
        self, kind: type[Request], method: Callable[[Request, Any], Awaitable[Message]]
    ) -> Callable[[bytes, Any], Awaitable[bytes]]:
        async def serve(data: bytes, context: Any) -> bytes:
            try:
                return (await method(_parse(kind, data), context)).SerializeToString()
            except RequestError as error:
                await _abort(context, error)
            except Exception as error:
                await _abort_fault(context, error)
            raise AssertionError("abort returns")

        return serve

    async def _write(self, request: p4r.WriteRequest, context: Any) -> Message:
        errors = self._device.write(request)
        if any(errors):
            await _abort_batch(context, errors, "update")
        return p4r.WriteResponse()

    async def _set_pipeline(
        self, request: p4r.SetForwardingPipelineConfigRequest, _: Any
    ) -> Message:
        await self._device.set_pipeline(request)
        return p4r.SetForwardingPipelineConfigResponse()

    async def _get_pipeline(
        self, request: p4r.GetForwardingPipelineConfigRequest, _: Any
    ) -> Message:
        return self._device.get_pipeline(request)

    async def _capabilities(self, request: p4r.CapabilitiesRequest, _: Any) -> Message:
        if request.device_id:
            self._device.require_id(request.device_id)
        return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)

    async def _read(self, data: bytes, context: Any) -> None:
        try:
            found, errors = self._device.read(_parse(p4r.ReadRequest, data))
            while chunk := list(islice(found, ENTITIES_PER_RESPONSE)):
                await context.write(p4r.ReadResponse(entities=chunk).SerializeToString())
            if any(errors):
                await _abort_batch(context, errors, "query")
        except RequestError as error:
            await _abort(context, error)
        except Exception as error:
            await _abort_fault(context, error)

    async def _stream(self, requests: Any, context: Any) -> None:
        """Serve a controller's stream until either side ends it."""
        if self._streams >= MAX_STREAMS:
            await _abort(context, exhausted(f"{MAX_STREAMS} streams are open here; close some"))
        self._streams += 1
        try:
            await self._serve_stream(requests, context)
        finally:
            self._streams -= 1

    async def _serve_stream(self, requests: Any, context: Any) -> None:
        outbox: asyncio.Queue[p4r.StreamMessageResponse | None] = asyncio.Queue()

        def send(message: p4r.StreamMessageResponse) -> None:
            if outbox.qsize() < STREAM_BACKLOG or message.HasField("arbitration"):
                outbox.put_nowait(message)
            else:
                log.warning("a controller reads too slowly: a notification is dropped")

        async def write() -> None:
            while message := await outbox.get():
                await context.write(message.SerializeToString())

        stream = Stream(send)
        writer = asyncio.create_task(write())
        try:
            wrong = await self._converse(stream, requests)
            self._device.arbiter.leave(stream)
            # A status that overtakes a message on its way never gets to the client.
            outbox.put_nowait(None)
            await writer
            if isinstance(wrong, RequestError):
                await _abort(context, wrong)
            elif wrong:
                await _abort_fault(context, wrong)
        finally:
            self._device.arbiter.leave(stream)
            writer.cancel()

    async def _converse(self, stream: Stream, requests: Any) -> Exception | None:
        """Take what a controller says until it ends, or until something is wrong with it."""
        try:
            async for data in requests:
                self._device.receive(stream, _parse(p4r.StreamMessageRequest, data))
        except Exception as error:
            return error
        return None


def _try_address(name: str, address: str) -> None:
    """Bind the address and let go of it, because gRPC does not say why it could not."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or not 0 <= int(port) < 1 << 16:
        raise ServeError(f"switch {name} cannot listen on {address!r}: expected HOST:PORT")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        family, kind, protocol, _, where = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except OSError as error:
        raise ServeError(
            f"switch {name} cannot listen on {address}: {error.strerror}; choose another"
        ) from None


def _parse(kind: type[Request], data: bytes) -> Request:
    try:
        return kind.FromString(data)
    except DecodeError:
        raise RequestError(
            rpc_code.INVALID_ARGUMENT, f"the request is not a well-formed {kind.__name__}"
        ) from None


async def _abort(context: Any, error: RequestError) -> None:
    await context.abort(_STATUS[error.code], error.message)


async def _abort_batch(context: Any, errors: list[RequestError | None], noun: str) -> None:
    status = batch_status(errors, noun)
    trailer = ((STATUS_DETAILS, status.SerializeToString()),) if status.details else ()
    await context.abort(_STATUS[status.code], status.message, trailer)


async def _abort_fault(context: Any, error: Exception) -> None:
    """End a request the switch failed at; the log has the traceback, the client one line."""
    if isinstance(error, grpc.aio.AbortError):
        raise error
    log.exception("a request failed")
    await context.abort(
        grpc.StatusCode.INTERNAL, f"the switch failed: {type(error).__name__}: {error}"
    )


def _read(path: Path) -> bytes:
    try:
        return read_bytes(path, _PEM_BYTES)
    except FileError as error:
        raise ServeError(str(error)) from None

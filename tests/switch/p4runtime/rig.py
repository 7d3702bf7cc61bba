"""A P4Runtime server on loopback before a data plane whose ports are in memory."""

import asyncio
import functools
import inspect
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from finsy import p4client
from finsy.proto import p4i, p4r, p4r_grpc, rpc_status

from params.data import Data
from switch import dataplane as dp
from switch.p4runtime.device import Device
from switch.p4runtime.pipeline import parse_p4info
from switch.p4runtime.service import Server
from tests.waiting import LONG_S

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SHELL_PYTHON = ROOT / ".venv-shell" / "bin" / "python"

CPU_PORT = 510
PORTS = (1, 2, 3)
DEVICE_ID = 7


def wait_for_answers() -> None:
    """Have finsy wait as long as a test does, or longer; it gives a call ten seconds by itself."""
    p4client._DEFAULT_RPC_TIMEOUT = max(LONG_S, p4client._DEFAULT_RPC_TIMEOUT)


class Built(Data):
    """A compiled program and where its files are."""

    json: Path
    p4info: Path

    @property
    def info(self) -> p4i.P4Info:
        return parse_p4info(self.p4info.read_bytes(), str(self.p4info))

    @property
    def config(self) -> p4r.ForwardingPipelineConfig:
        return p4r.ForwardingPipelineConfig(
            p4info=self.info, p4_device_config=self.json.read_bytes()
        )


def compile_p4(source: Path, folder: Path) -> Built:
    """Compile with our compiler, or where it is not there yet with p4c."""
    built = Built(folder / f"{source.stem}.json", folder / f"{source.stem}.p4info.txt")
    words = [str(source), "-o", str(built.json), "--p4runtime-files", str(built.p4info)]
    try:
        from compiler.cli import main
    except ImportError:
        p4c = shutil.which("p4c-bm2-ss")
        if p4c is None:
            pytest.skip("neither compiler.cli nor p4c-bm2-ss is there to compile the program")
        subprocess.run([p4c, "--std", "p4-16", *words], check=True, capture_output=True)
    else:
        assert main(words) == 0
    return built


class Rig(Data, frozen=False):
    """A running switch: the server's address and the data plane behind it."""

    address: str
    plane: dp.Dataplane
    device: Device

    def send(self, port: int, frame: bytes, now_ns: int = 1_000) -> list[tuple[int, bytes]]:
        """Let a frame in and return what comes out."""
        self.plane.inject(port, frame, now_ns)
        return [(out, data) for out, data, _ in self.plane.outputs()]


@asynccontextmanager
async def running() -> AsyncIterator[Rig]:
    """A switch without a program."""
    plane = dp.Dataplane("s1", cpu_port=CPU_PORT)
    for port in PORTS:
        plane.add_port(port)
    device = Device(DEVICE_ID, plane)
    server = Server(device, "127.0.0.1:0", name="s1")
    await server.start()
    try:
        yield Rig(f"127.0.0.1:{server.port}", plane, device)
    finally:
        await server.stop()
        plane.close()


class Client:
    """A controller that speaks bare protobuf, so that it can be as wrong as a test wants."""

    def __init__(
        self, address: str, election_id: int | None = 1, role: str = "", *, reads: bool = True
    ) -> None:
        self.election_id = election_id
        self.role = role
        self._channel = grpc.aio.insecure_channel(address)
        self.stub: Any = p4r_grpc.P4RuntimeStub(self._channel)
        self.stream: Any = self.stub.StreamChannel()
        self.inbox: asyncio.Queue[p4r.StreamMessageResponse] = asyncio.Queue()
        self._reader = asyncio.create_task(self._read_stream()) if reads else None

    async def _read_stream(self) -> None:
        try:
            async for message in self.stream:
                self.inbox.put_nowait(message)
        except grpc.aio.AioRpcError:
            pass  # `stream.code()` tells

    async def bid(self, election_id: int | None = None) -> p4r.MasterArbitrationUpdate:
        """Bid and return the answer."""
        if election_id is not None:
            self.election_id = election_id
        await self.stream.write(p4r.StreamMessageRequest(arbitration=self.arbitration()))
        return (await self.next("arbitration")).arbitration

    async def bid_or_end(self) -> grpc.StatusCode | None:
        """Bid; how the stream ended if it did."""
        answer = asyncio.create_task(self.bid())
        ended = asyncio.create_task(self.stream.code())
        await asyncio.wait((answer, ended), timeout=LONG_S, return_when=asyncio.FIRST_COMPLETED)
        if answer.done() and not answer.exception():
            ended.cancel()
            return None
        answer.cancel()
        return await asyncio.wait_for(ended, LONG_S)

    def arbitration(self) -> p4r.MasterArbitrationUpdate:
        update = p4r.MasterArbitrationUpdate(device_id=DEVICE_ID)
        if self.election_id is not None:
            update.election_id.low = self.election_id
        if self.role:
            update.role.name = self.role
        return update

    async def next(self, kind: str, timeout: float = LONG_S) -> p4r.StreamMessageResponse:
        """The next message of a kind; others before it are skipped."""
        while True:
            message = await asyncio.wait_for(self.inbox.get(), timeout)
            if message.WhichOneof("update") == kind:
                return message

    def request(self, kind: type[Any], **fields: Any) -> Any:
        request = kind(device_id=DEVICE_ID, role=self.role, **fields)
        request.election_id.low = self.election_id or 0
        return request

    async def set_pipeline(
        self,
        config: p4r.ForwardingPipelineConfig | None,
        action: str = "VERIFY_AND_COMMIT",
    ) -> None:
        kind = p4r.SetForwardingPipelineConfigRequest
        request = self.request(kind, action=kind.Action.Value(action), config=config)
        await self.stub.SetForwardingPipelineConfig(request)

    async def get_pipeline(self, kind: str = "ALL") -> p4r.ForwardingPipelineConfig:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=DEVICE_ID,
            response_type=p4r.GetForwardingPipelineConfigRequest.ResponseType.Value(kind),
        )
        answer: p4r.GetForwardingPipelineConfigResponse
        answer = await self.stub.GetForwardingPipelineConfig(request)
        return answer.config

    async def write(self, *updates: p4r.Update, atomicity: int = 0) -> None:
        await self.stub.Write(self.request(p4r.WriteRequest, updates=updates, atomicity=atomicity))

    async def read(self, *entities: p4r.Entity) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=DEVICE_ID, entities=entities)
        return [e async for response in self.stub.Read(request) for e in response.entities]

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
        self.stream.cancel()
        await self._channel.close()


@asynccontextmanager
async def controlled(built: Built) -> AsyncIterator[tuple[Rig, Client]]:
    """A switch that runs the program, and its primary controller."""
    async with running() as rig:
        client = Client(rig.address)
        await client.bid()
        await client.set_pipeline(built.config)
        try:
            yield rig, client
        finally:
            await client.close()


def asynchronous(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test to its end."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), LONG_S))

    run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
    return run


def errors_of(error: grpc.aio.AioRpcError) -> list[p4r.Error]:
    """The per-update errors of a failed write."""
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            status = rpc_status.Status.FromString(value)
            assert status.code == error.code().value[0]
            assert status.message == error.details()
            found = []
            for detail in status.details:
                item = p4r.Error()
                assert detail.Unpack(item)
                found.append(item)
            return found
    return []


class Names:
    """Builds messages from names, by a program's P4Info."""

    def __init__(self, info: p4i.P4Info) -> None:
        self._info = info

    def id(self, alias: str) -> int:
        for field in self._info.DESCRIPTOR.fields:
            if field.name in ("pkg_info", "type_info", "externs"):
                continue
            for item in getattr(self._info, field.name):
                if item.preamble.alias == alias:
                    return int(item.preamble.id)
        raise KeyError(alias)

    def action(self, alias: str, **params: int) -> p4r.Action:
        action = next(a for a in self._info.actions if a.preamble.alias == alias)
        ids = {param.name: param.id for param in action.params}
        return p4r.Action(
            action_id=action.preamble.id,
            params=[
                p4r.Action.Param(param_id=ids[name], value=octets(value))
                for name, value in params.items()
            ],
        )

    def entry(
        self, table: str, *match: p4r.FieldMatch, action: p4r.Action | None = None, **fields: Any
    ) -> p4r.TableEntry:
        entry = p4r.TableEntry(table_id=self.id(table), match=match, **fields)
        if action is not None:
            entry.action.action.CopyFrom(action)
        return entry


def octets(number: int) -> bytes:
    """The canonical byte string of a number."""
    return number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")


def exact(field: int, value: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, exact=p4r.FieldMatch.Exact(value=octets(value)))


def lpm(field: int, value: int, length: int) -> p4r.FieldMatch:
    match = p4r.FieldMatch.LPM(value=octets(value), prefix_len=length)
    return p4r.FieldMatch(field_id=field, lpm=match)


def ternary(field: int, value: int, mask: int) -> p4r.FieldMatch:
    match = p4r.FieldMatch.Ternary(value=octets(value), mask=octets(mask))
    return p4r.FieldMatch(field_id=field, ternary=match)


def between(field: int, low: int, high: int) -> p4r.FieldMatch:
    match = p4r.FieldMatch.Range(low=octets(low), high=octets(high))
    return p4r.FieldMatch(field_id=field, range=match)


def optional(field: int, value: int) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, optional=p4r.FieldMatch.Optional(value=octets(value)))


def update(verb: str, entity: Any) -> p4r.Update:
    """An update of any entity message."""
    return p4r.Update(type=p4r.Update.Type.Value(verb), entity=entity_of(entity))


def entity_of(message: Any) -> p4r.Entity:
    """An entity of any entity message."""
    kinds = {
        p4r.TableEntry: "table_entry",
        p4r.ActionProfileMember: "action_profile_member",
        p4r.ActionProfileGroup: "action_profile_group",
        p4r.MeterEntry: "meter_entry",
        p4r.DirectMeterEntry: "direct_meter_entry",
        p4r.CounterEntry: "counter_entry",
        p4r.DirectCounterEntry: "direct_counter_entry",
        p4r.PacketReplicationEngineEntry: "packet_replication_engine_entry",
        p4r.ValueSetEntry: "value_set_entry",
        p4r.RegisterEntry: "register_entry",
        p4r.DigestEntry: "digest_entry",
    }
    if isinstance(message, p4r.MulticastGroupEntry):
        message = p4r.PacketReplicationEngineEntry(multicast_group_entry=message)
    elif isinstance(message, p4r.CloneSessionEntry):
        message = p4r.PacketReplicationEngineEntry(clone_session_entry=message)
    return p4r.Entity(**{kinds[type(message)]: message})


async def ended(call: Any) -> tuple[grpc.StatusCode, str | None]:
    """How a call ends, its answers read, and what is said of that."""
    try:
        if isinstance(call, grpc.aio.UnaryStreamCall):
            async for _ in call:
                pass
        else:
            await call
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details()
    return grpc.StatusCode.OK, None


async def fails(call: Awaitable[Any]) -> grpc.aio.AioRpcError:
    """The error a call must end with."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return caught.value


async def refused(client: Client, *updates: p4r.Update, atomicity: int = 0) -> list[p4r.Error]:
    """The errors a batch must end with, one per update."""
    error = await fails(client.write(*updates, atomicity=atomicity))
    assert error.code() == grpc.StatusCode.UNKNOWN, error.details()
    found = errors_of(error)
    assert len(found) == len(updates)
    return found

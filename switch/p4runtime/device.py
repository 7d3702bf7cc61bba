"""One switch as P4Runtime sees it: its pipeline, its state, its controllers.

A device holds the committed pipeline with its entities, and at times a saved one beside it. While a
pipeline is saved and not committed, clients read and write the saved one: updates are checked
against it and kept, and the commit replays them on the data plane.

Everything here runs on one asyncio loop and, pipelines' compilation aside, never waits: a request
is served whole before the next one begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby

from finsy.proto import p4i, p4r, rpc_code

from switch import dataplane as dp
from switch.build import BuildError
from switch.cache import Unbuildable
from switch.p4runtime import idle, reconcile
from switch.p4runtime.arbitration import Arbiter, Stream
from switch.p4runtime.entities import Entities, Rehearsal
from switch.p4runtime.errors import (
    SPACE,
    RequestError,
    denied,
    internal,
    invalid,
    no_pipeline,
    not_found,
    precondition,
)
from switch.p4runtime.names import Names
from switch.p4runtime.pipeline import Pipeline, read_device_config
from switch.p4runtime.programs import Programs
from switch.p4runtime.roles import Scope
from switch.place import JsonError

log = logging.getLogger(__name__)

SetRequest = p4r.SetForwardingPipelineConfigRequest
GetRequest = p4r.GetForwardingPipelineConfigRequest


@contextmanager
def _refusals() -> Iterator[None]:
    """What is wrong with a program that is built, as a request is told of it."""
    try:
        yield
    except JsonError as error:
        raise invalid(f"p4_device_config: {error}") from None
    except Unbuildable as error:
        raise precondition(str(error)) from None
    except (BuildError, dp.DataplaneError) as error:
        raise internal(f"the program could not be built: {error}") from None


class _Saved:
    """A pipeline that waits for its commit, and the updates written to it."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.entities = Entities(pipeline, Rehearsal(pipeline.program))
        self.updates: list[p4r.Update] = []

    def write(
        self, updates: Iterable[p4r.Update], *, atomic: bool, scope: Scope | None
    ) -> list[RequestError | None]:
        """Check a batch and keep what passes."""
        updates = list(updates)
        errors = self.entities.write(updates, atomic=atomic, scope=scope)
        self.updates += [u for u, error in zip(updates, errors, strict=True) if error is None]
        return errors


class Device:
    """A data plane and the controllers that share it."""

    def __init__(
        self,
        device_id: int,
        plane: dp.Dataplane,
        *,
        programs: Programs | None = None,
        trace: bool = False,
    ) -> None:
        self.device_id = device_id
        self.plane = plane
        self.arbiter = Arbiter(device_id)
        self._programs = programs or Programs()
        self._trace = trace
        self._committed: Entities | None = None
        self._saved: _Saved | None = None
        self._pipeline_lock = asyncio.Lock()
        self._names: dict[str, Names] = {}

    @property
    def entities(self) -> Entities:
        """The state clients read and write now."""
        if self._saved is not None:
            return self._saved.entities
        if self._committed is None:
            raise no_pipeline()
        return self._committed

    def require_id(self, device_id: int) -> None:
        """Refuse a request for another device."""
        if device_id != self.device_id:
            raise not_found(f"no device {device_id} here; this is device {self.device_id}")

    # Pipelines

    async def set_pipeline(self, request: SetRequest) -> None:
        """Do what a SetForwardingPipelineConfig asks."""
        self.require_id(request.device_id)
        self.arbiter.require_primary(request.role, request.election_id)
        limits = self.arbiter.limits(request.role)
        if limits is not None and not limits.sets_pipeline:
            raise denied(f"role {request.role!r} may not set the pipeline: its config says so")
        async with self._pipeline_lock:
            if request.action == SetRequest.COMMIT:
                self._commit_saved(request)
                return
            if request.action not in SetRequest.Action.values() or not request.action:
                raise invalid("the action is not one of those P4Runtime defines")
            if not request.HasField("config"):
                raise invalid("the config is missing")
            if not request.config.HasField("p4info"):
                raise invalid("the config has no P4Info")
            pipeline = await self.build(request.config)
            # Compilation takes a while; somebody else may be primary by now.
            self.arbiter.require_primary(request.role, request.election_id)
            self._take(request.action, pipeline)

    async def build(self, config: p4r.ForwardingPipelineConfig) -> Pipeline:
        """Check a config and compile its program."""
        source = read_device_config(config.p4_device_config)
        with _refusals():
            program = await self._programs.load(source, trace=self._trace)
        return Pipeline(config, program, self._names)

    def build_now(
        self,
        p4info: p4i.P4Info,
        text: bytes,
        before: Pipeline | None = None,
        *,
        soon: bool,
    ) -> Pipeline:
        """The same for who does nothing else meanwhile; ``soon`` is as `Program.load` has it.

        What was built ``before`` of this P4Info will do if it is of the same program.
        """
        with _refusals():
            program = dp.Program.load(text, trace=self._trace, soon=soon)
        if before is not None and before.program is program and not before.symbols.gives_names:
            return before
        bytearray(2 * len(text))  # or no memory is told here: protobuf does not look what it got
        config = p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=text)
        return Pipeline(config, program, self._names)

    def commit(self, pipeline: Pipeline) -> None:
        """Run a pipeline from a clean state."""
        self._saved = self._committed = None
        try:
            self.plane.load(pipeline.program)
            self._share_registers(pipeline)
        except dp.DataplaneError as error:
            raise internal(f"the program could not be loaded: {error}") from None
        self.plane.drain()  # the old program's packets and digests would be misread
        self._committed = Entities(pipeline, self.plane)
        log.info("device %d: pipeline committed", self.device_id)

    def restart(self) -> None:
        """Be as if just started with the program it has: nothing of what it was told is left."""
        if self._committed is not None:
            self.commit(self._committed.pipeline)

    def _share_registers(self, pipeline: Pipeline) -> None:
        """Give the switch the registers and tables it shares with the program."""
        for role, register in pipeline.shared_registers.items():
            self.plane.share_register(role, register)
        self.plane.keep_times(pipeline.time_registers)
        self.plane.set_order_tables(pipeline.order_tables)

    def get_pipeline(self, request: GetRequest) -> p4r.GetForwardingPipelineConfigResponse:
        """Return the parts of the config that are asked for."""
        self.require_id(request.device_id)
        pipeline = self.entities.pipeline
        config = pipeline.config
        response = p4r.GetForwardingPipelineConfigResponse()
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        kind = request.response_type
        if kind in (GetRequest.ALL, GetRequest.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(config.p4info)
        if kind in (GetRequest.ALL, GetRequest.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = pipeline.device_config
        response.config.SetInParent()
        return response

    def _take(self, action: int, pipeline: Pipeline) -> None:
        match action:
            case SetRequest.VERIFY:
                pass
            case SetRequest.VERIFY_AND_SAVE:
                self._saved = _Saved(pipeline)
            case SetRequest.VERIFY_AND_COMMIT:
                self.commit(pipeline)
            case SetRequest.RECONCILE_AND_COMMIT:
                self._reconcile(pipeline)

    def _commit_saved(self, request: SetRequest) -> None:
        if request.HasField("config"):
            raise invalid("COMMIT realizes the saved config; leave the config out")
        saved = self._saved
        if saved is None:
            raise not_found("no config is saved; send VERIFY_AND_SAVE first")
        self.commit(saved.entities.pipeline)
        self._replay(saved.updates)

    def _reconcile(self, pipeline: Pipeline) -> None:
        """Take another config and keep the state; an equal program goes on undisturbed."""
        old = self._committed
        if old is None:
            self.commit(pipeline)
            return
        same = pipeline.same_program(old.pipeline)
        updates = []
        if not same or pipeline.config.p4info != old.pipeline.config.p4info:
            updates = reconcile.export(old, with_counters=not same)
            reconcile.rehearse(pipeline, updates)
        self._saved = None
        if same:
            self._share_registers(pipeline)
            old.rebind(pipeline)
            return
        cells = reconcile.save_cells(old.pipeline.program, self.plane)
        self.commit(pipeline)
        self._replay(reconcile.clearing(self.entities) + updates)
        self.plane.write(reconcile.restore_cells(pipeline.program, cells))

    def _replay(self, updates: list[p4r.Update]) -> None:
        assert self._committed is not None
        errors = self._committed.write(updates, atomic=False)
        failed = [error for error in errors if error is not None]
        if failed:
            raise internal(f"{len(failed)} entities could not be replayed: {failed[0].message}")

    # Entities

    def write(self, request: p4r.WriteRequest) -> list[RequestError | None]:
        """Carry out a batch; return an error or None per update."""
        self.require_id(request.device_id)
        self.arbiter.require_primary(request.role, request.election_id)
        if request.atomicity not in p4r.WriteRequest.Atomicity.values():
            raise invalid(f"atomicity {request.atomicity} is not one of those P4Runtime defines")
        atomic = request.atomicity != p4r.WriteRequest.CONTINUE_ON_ERROR
        one_step = request.atomicity == p4r.WriteRequest.DATAPLANE_ATOMIC
        scope = self._scope(request.role, self.entities)
        limit = None if scope.is_everything else scope
        if self._saved is not None:
            return self._saved.write(request.updates, atomic=atomic, scope=limit)
        return self.entities.write(request.updates, atomic=atomic, one_step=one_step, scope=limit)

    def read(
        self, request: p4r.ReadRequest
    ) -> tuple[Iterator[p4r.Entity], list[RequestError | None]]:
        """Select entities; return them and an error or None per query."""
        self.require_id(request.device_id)
        found, errors = self.entities.read(request.entities)
        scope = self._scope(request.role, self.entities)
        return found if scope.is_everything else filter(scope.reads, found), errors

    def _scope(self, role: str, entities: Entities) -> Scope:
        """What a role has of a pipeline."""
        claimed = self.arbiter.claimed_by_others(role)
        return Scope(role, entities.pipeline.owners, self.arbiter.limits(role), claimed)

    # Streams

    def receive(self, stream: Stream, message: p4r.StreamMessageRequest) -> None:
        """Take a message from a controller; raise if it must end the stream."""
        kind = message.WhichOneof("update")
        if kind == "arbitration":
            self.arbiter.bid(stream, message.arbitration)
            return
        try:
            if kind == "packet":
                self._require_primary(stream, "send packets")
                running = self._running()
                header = running.pipeline.symbols.packet_out_id
                if not self._scope(stream.role, running).may_use_packets(header):
                    raise denied(f"role {stream.role!r} may not send packets")
                self.plane.packet_out(running.packets.packet_out(message.packet))
            elif kind == "digest_ack":
                self._require_primary(stream, "acknowledge digests")
                self._acknowledge(stream.role, message.digest_ack)
            else:
                raise invalid(f"stream messages of kind {kind or 'nothing'} are not supported")
        except (RequestError, dp.DataplaneError) as error:
            stream.send(_stream_error(message, error))

    def watch_events(self) -> None:
        """Pass on what the data plane tells, from now on."""
        asyncio.get_running_loop().add_reader(self.plane.event_fd, self.handle_events)

    def unwatch_events(self) -> None:
        """Leave what the data plane tells unread."""
        asyncio.get_running_loop().remove_reader(self.plane.event_fd)

    def handle_events(self) -> None:
        """Pass on what the data plane tells; called when its descriptor is readable."""
        events = self.plane.drain()
        running = self._committed
        if running is None:
            return
        primaries = [(s, self._scope(s.role, running)) for s in self.arbiter.primaries()]
        header = running.pipeline.symbols.packet_in_id
        for kind, group in groupby(events, type):
            for message in self._messages(kind, list(group)):
                for stream, scope in primaries:
                    part = scope.part_of(message, header)
                    if part is not None:
                        stream.send(part)

    def _messages(
        self, kind: type[dp.Event], events: list[dp.Event]
    ) -> Iterator[p4r.StreamMessageResponse]:
        assert self._committed is not None
        if kind is dp.IdleTimeout:
            idles = [event for event in events if isinstance(event, dp.IdleTimeout)]
            message = idle.notification(idles, self._committed.tables)
            if message is not None:
                yield message
            return
        for event in events:
            if isinstance(event, dp.PacketIn):
                yield self._committed.packets.packet_in(event.data)
            elif isinstance(event, dp.DigestList):
                message = self._committed.digests.message(event)
                if message is not None:
                    yield message
            elif isinstance(event, dp.PortState):
                state = "up" if event.is_up else "down"
                log.info("device %d: port %d is %s", self.device_id, event.port, state)

    def _acknowledge(self, role: str, message: p4r.DigestListAck) -> None:
        running = self._running()
        try:
            ack = running.digests.acknowledgement(message)
        except RequestError as error:
            raise invalid(error.message) from None
        if not self._scope(role, running).has(message.digest_id):
            raise denied(f"role {role!r} has no digest {message.digest_id:#010x}")
        self.plane.write([ack])

    def _running(self) -> Entities:
        """The state packets meet, whatever is saved beside it."""
        if self._committed is None:
            raise no_pipeline()
        return self._committed

    def _require_primary(self, stream: Stream, what: str) -> None:
        if not self.arbiter.is_primary(stream):
            raise denied(f"only the primary may {what}")


def _stream_error(message: p4r.StreamMessageRequest, error: Exception) -> p4r.StreamMessageResponse:
    code = error.code if isinstance(error, RequestError) else rpc_code.INTERNAL
    report = p4r.StreamError(canonical_code=code, message=str(error), space=SPACE, code=code)
    match message.WhichOneof("update"):
        case "packet":
            report.packet_out.packet_out.CopyFrom(message.packet)
        case "digest_ack":
            report.digest_list_ack.digest_list_ack.CopyFrom(message.digest_ack)
        case _:
            report.other.SetInParent()
    return p4r.StreamMessageResponse(error=report)

"""P4Runtime messages in every order, from several clients at once: each is answered, and no more.

    python -m tests.switch.p4runtime.orders COUNT [SEED]

Clients open streams, bid for whatever roles, send packets, acknowledge digests, say what makes no
sense, end in order and vanish; meanwhile they write, read, ask, and commit programs. Each call has
to end with a status that is no fault of the switch, each stream with one when it ends, each bid
with an answer or the stream's end. What the process keeps must not grow with what was said.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import p4r, p4r_grpc

from params.data import Data
from tests.switch.p4runtime.rig import DEVICE_ID, HERE, Built, Rig, compile_p4, ended, running
from tests.switch.p4runtime.test_fuzz import Monkey
from tests.waiting import SLOWNESS

CLIENTS = 8
ANSWER_S = 60.0 * SLOWNESS
STREAMS = 40  # that may be open at a time
# What gRPC raises where a stream has ended already.
OVER = (grpc.aio.AioRpcError, grpc.aio.InternalError, asyncio.InvalidStateError)
# How gRPC's client tells that a stream had ended when something was said, in place of the status.
CLIENTS_OWN = "Internal error from Core"
FAULTS = {grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE}


class Outcome(Data, frozen=False):
    """What came of it."""

    said: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest_s: float = 0.0
    highest: int = 8  # bid so far
    memory: list[int] = field(default_factory=list)  # bytes, a quarter of the way and at the end

    def __str__(self) -> str:
        said = ", ".join(f"{count} {what}" for what, count in sorted(self.said.items()))
        ended = ", ".join(f"{count} {how}" for how, count in self.ended.most_common())
        grown = (self.memory[-1] - self.memory[0]) / 1e6
        return (
            f"{sum(self.said.values())} messages: {said}\nended: {ended}\nslowest answer "
            f"{self.slowest_s:.2f} s; memory {self.memory[-1] / 1e6:.0f} MB, {grown:+.1f} MB since "
            f"a quarter of the way; {len(self.faults)} faults"
        )


class Conversation:
    """A stream, and who reads what it answers."""

    def __init__(self, stub: Any) -> None:
        self._stream = stub.StreamChannel()
        self._answers = 0
        self._reader = asyncio.create_task(self._read())
        self.bids = 0

    async def _read(self) -> None:
        with suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
            async for message in self._stream:
                self._answers += message.HasField("arbitration")

    async def say(self, message: p4r.StreamMessageRequest) -> bool:
        """Whether it could be said: a stream that ended takes no more."""
        try:
            await self._stream.write(message)
        except OVER:
            return False
        self.bids += message.HasField("arbitration")
        return True

    async def ended(self) -> str:
        """End it in order; how it did."""
        with suppress(*OVER):
            await self._stream.done_writing()
        code = await asyncio.wait_for(self._stream.code(), ANSWER_S)
        await self._reader
        if code is grpc.StatusCode.OK and self._answers < self.bids:
            return "OK without an answer to each bid"
        details = await self._stream.details()
        if details == CLIENTS_OWN:
            return "while it spoke"
        return f"{code.name}: {details}" if code in FAULTS else str(code.name)

    def vanish(self) -> None:
        """No word more."""
        self._stream.cancel()
        self._reader.cancel()


class Client:
    """Says things, in whatever order."""

    def __init__(self, rig: Rig, built: Built, seed: str, outcome: Outcome) -> None:
        self._draw = random.Random(seed)
        self._monkey = Monkey(self._draw.getrandbits(32), built.info)
        self._built, self._outcome = built, outcome
        self._channel = grpc.aio.insecure_channel(rig.address)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._open: list[Conversation] = []
        self._bid, self._role = 1, ""

    async def go_on(self, count: int) -> None:
        """Say so many."""
        kinds: tuple[tuple[int, Callable[[], Awaitable[None]]], ...] = (
            (5, self._stream), (4, self._write), (2, self._read), (1, self._ask), (1, self._commit),
        )  # fmt: skip
        weights, deeds = zip(*kinds, strict=True)
        for _ in range(count):
            (deed,) = self._draw.choices(deeds, weights)
            try:
                await deed()
            except TimeoutError:
                self._outcome.faults.append(f"{deed.__name__} was not answered")
        for each in self._open:
            await self._end(each)
        await self._channel.close()

    async def _call(self, what: str, call: Any) -> None:
        """Await a call's end, whatever it is."""
        self._outcome.said[what] += 1
        began = time.monotonic()
        code, details = await ended(call)
        if code in FAULTS:
            self._outcome.faults.append(f"{what}: {details}")
        self._outcome.slowest_s = max(self._outcome.slowest_s, time.monotonic() - began)
        self._outcome.ended[f"{what} {code.name}"] += 1

    def _name(self, request: Any) -> Any:
        """Who asks: as a rule as whoever it last bid; else nobody, or for another device."""
        draw = self._draw
        request.device_id = DEVICE_ID if draw.random() < 0.97 else draw.choice((0, 8, 2**63))
        is_bid = isinstance(request, p4r.MasterArbitrationUpdate)
        if is_bid and draw.random() < 0.7:
            self._outcome.highest += 1
            self._bid = draw.randrange(8) if draw.random() < 0.2 else self._outcome.highest
            self._role = draw.choice(("reader", "x" * 300)) if draw.random() < 0.1 else ""
        if "election_id" in request.DESCRIPTOR.fields_by_name and draw.random() < 0.97:
            request.election_id.low = self._bid
            request.election_id.high = 2**63 if draw.random() < 0.01 else 0
        if is_bid:
            request.role.name = self._role
        elif "role" in request.DESCRIPTOR.fields_by_name:
            request.role = self._role
        return request

    # --- what it says -----------------------------------------------------------------------------

    async def _stream(self) -> None:
        draw = self._draw
        if len(self._open) < STREAMS // CLIENTS and (not self._open or draw.random() < 0.3):
            self._open.append(Conversation(self._stub))
        chosen = draw.choice(self._open)
        roll = draw.random()
        if roll < 0.1:
            self._open.remove(chosen)
            self._outcome.said["ends"] += 1
            await self._end(chosen)
        elif roll < 0.15:
            self._open.remove(chosen)
            self._outcome.said["vanishings"] += 1
            chosen.vanish()
        else:
            message = self._message()
            self._outcome.said[message.WhichOneof("update") or "nothing"] += 1
            if not await chosen.say(message):
                self._open.remove(chosen)
                await self._end(chosen)

    async def _end(self, conversation: Conversation) -> None:
        try:
            how = await conversation.ended()
        except TimeoutError:
            how = "without a status"
        self._outcome.ended[f"stream {how}"] += 1
        if how.partition(":")[0] in {code.name for code in FAULTS} or "without" in how:
            self._outcome.faults.append(f"a stream ended {how}")

    def _message(self) -> p4r.StreamMessageRequest:
        draw, message = self._draw, p4r.StreamMessageRequest()
        match draw.choices(range(5), (4, 3, 1, 0.3, 0.1))[0]:
            case 0:
                self._name(message.arbitration)
                if draw.random() < 0.05:
                    message.arbitration.role.config.value = draw.randbytes(9)
            case 1:
                message.packet.payload = draw.randbytes(draw.choice((0, 14, 60, 1500, 9000)))
                for number in range(draw.randrange(3)):
                    message.packet.metadata.add(metadata_id=number, value=draw.randbytes(2))
            case 2:
                message.digest_ack.digest_id = draw.getrandbits(32)
                message.digest_ack.list_id = draw.getrandbits(8)
            case 3:
                message.other.type_url, message.other.value = "x", draw.randbytes(20)
            case _:
                pass  # nothing at all
        return message

    async def _write(self) -> None:
        request = self._name(p4r.WriteRequest())
        request.updates.extend(self._monkey.update() for _ in range(self._draw.randrange(4)))
        request.atomicity = self._draw.choice((0, 0, 1, 2))
        await self._call("writes", self._stub.Write(request, timeout=ANSWER_S))

    async def _read(self) -> None:
        request = self._name(p4r.ReadRequest())
        entities = [self._monkey.update().entity for _ in range(self._draw.randrange(3))]
        request.entities.extend(entities)
        await self._call("reads", self._stub.Read(request, timeout=ANSWER_S))

    async def _ask(self) -> None:
        if self._draw.random() < 0.5:
            request = self._name(p4r.GetForwardingPipelineConfigRequest())
            request.response_type = self._draw.randrange(5)
            call = self._stub.GetForwardingPipelineConfig(request, timeout=ANSWER_S)
        else:
            call = self._stub.Capabilities(p4r.CapabilitiesRequest(), timeout=ANSWER_S)
        await self._call("questions", call)

    async def _commit(self) -> None:
        request = self._name(p4r.SetForwardingPipelineConfigRequest())
        request.action = 3 if self._draw.random() < 0.5 else self._draw.randrange(7)
        if self._draw.random() < 0.8:
            request.config.CopyFrom(self._built.config)
            if self._draw.random() < 0.3:
                request.config.p4_device_config = self._draw.choice((b"", b"{}", b"\0\xff"))
            if self._draw.random() < 0.1:
                del request.config.p4info.tables[:1]
        call = self._stub.SetForwardingPipelineConfig(request, timeout=ANSWER_S)
        await self._call("programs", call)


def _memory() -> int:
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def play(built: Built, count: int, seed: int) -> Outcome:
    """So many messages, a quarter of them before memory is looked at first."""
    came = Outcome()
    async with running() as rig:
        for part, share in enumerate((0.25, 0.75)):
            each = max(1, round(count * share / CLIENTS))
            clients = [Client(rig, built, f"{seed} {part} {n}", came) for n in range(CLIENTS)]
            await asyncio.gather(*(client.go_on(each) for client in clients))
            came.memory.append(_memory())
    return came


def main(argv: list[str]) -> int:
    """What the command line asks for."""
    count, seed = int(argv[0]), int(argv[1]) if len(argv) > 1 else 1
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        built = compile_p4(HERE / "everything.p4", Path(folder))
        came = asyncio.run(play(built, count, seed))
    took_s = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    print(f"seed {seed}: {came}\n{time.monotonic() - began:.0f} s, {took_s:.0f} of a processor's")
    for fault in came.faults[:20]:
        print(fault)
    return 1 if came.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

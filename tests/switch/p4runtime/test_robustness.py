"""Whatever a client sends, the switch answers clearly and goes on."""

import asyncio
import random
import time
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc, rpc_code

from switch.p4runtime.service import API_VERSION, MAX_STREAMS
from tests.waiting import LONG_S

from . import orders
from .rig import (
    DEVICE_ID,
    Built,
    Client,
    Names,
    asynchronous,
    controlled,
    ended,
    entity_of,
    exact,
    fails,
    running,
    update,
)

METHODS = {
    "Write": p4r.WriteRequest,
    "SetForwardingPipelineConfig": p4r.SetForwardingPipelineConfigRequest,
    "GetForwardingPipelineConfig": p4r.GetForwardingPipelineConfigRequest,
    "Capabilities": p4r.CapabilitiesRequest,
}


async def alive(client: Client, names: Names) -> None:
    """Write, read and delete an entry."""
    entry = names.entry("mac", exact(1, 0xFEED), action=names.action("drop"))
    await client.write(update("INSERT", entry))
    assert await client.read(entity_of(names.entry("mac", exact(1, 0xFEED))))
    await client.write(update("DELETE", entry))


@asynchronous
async def test_truncated_requests_are_refused_as_such(built: Built, names: Names) -> None:
    async with controlled(built) as (rig, client):
        entry = names.entry("mac", exact(1, 5), action=names.action("drop"))
        whole = client.request(p4r.WriteRequest, updates=[update("INSERT", entry)])
        data = whole.SerializeToString()
        async with grpc.aio.insecure_channel(rig.address) as channel:
            for name in METHODS:
                call = channel.unary_unary(f"/p4.v1.P4Runtime/{name}")
                error = await fails(call(data[:-3]))
                assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
                assert "not a well-formed" in error.details()
            read = channel.unary_stream("/p4.v1.P4Runtime/Read")(data[:-3])
            error = await fails(read.read())
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
            stream = channel.stream_stream("/p4.v1.P4Runtime/StreamChannel")()
            await stream.write(b"\x0a\xff")
            assert await stream.code() == grpc.StatusCode.INVALID_ARGUMENT
            error = await fails(channel.unary_unary("/p4.v1.P4Runtime/Nothing")(b""))
            assert error.code() == grpc.StatusCode.UNIMPLEMENTED
        await alive(client, names)


@asynchronous
async def test_mutated_requests_never_break_the_switch(built: Built, names: Names) -> None:
    seed = 20
    print(f"seed {seed}")
    chance = random.Random(seed)
    entry = names.entry("mac", exact(1, 5), action=names.action("forward", port=1))
    async with controlled(built) as (rig, client):
        data = client.request(
            p4r.WriteRequest, updates=[update("INSERT", entry)] * 3
        ).SerializeToString()
        query = p4r.ReadRequest(device_id=7, entities=[entity_of(entry)]).SerializeToString()
        allowed = {code for code in grpc.StatusCode if code is not grpc.StatusCode.INTERNAL}
        async with grpc.aio.insecure_channel(rig.address) as channel:
            write = channel.unary_unary("/p4.v1.P4Runtime/Write")
            read = channel.unary_stream("/p4.v1.P4Runtime/Read")
            for _ in range(1500):
                for source, call in ((data, write), (query, read)):
                    mutant = bytearray(source)
                    for _ in range(chance.randint(1, 4)):
                        mutant[chance.randrange(len(mutant))] = chance.randrange(256)
                    code, _ = await ended(call(bytes(mutant)))
                    assert code in allowed, mutant.hex()
        await alive(client, names)


@asynchronous
async def test_clients_that_vanish_leave_nothing_behind(built: Built, names: Names) -> None:
    async with controlled(built) as (rig, client):
        for number in range(20):
            ghost = Client(rig.address, election_id=100 + number)
            await ghost.bid()
            call = ghost.stub.Read(p4r.ReadRequest(device_id=7, entities=[p4r.Entity()]))
            call.cancel()
            await ghost.close()
        for _ in range(1000):
            if (await client.bid()).status.code == 0:
                break
            client.election_id = 1000
            await asyncio.sleep(0.02)
        await alive(client, names)


@asynchronous
async def test_a_controller_that_does_not_read_does_not_stop_the_others(
    built: Built, names: Names
) -> None:
    async with controlled(built) as (rig, client):
        lazy = Client(rig.address, role="lazy", reads=False)
        await lazy.stream.write(p4r.StreamMessageRequest(arbitration=lazy.arbitration()))
        await asyncio.sleep(0.1)
        frame = bytes.fromhex("000000000001 000000000002 88b8") + bytes(1400)
        for _ in range(20):
            for _ in range(1000):
                rig.plane.inject(1, frame, 1_000)
            await asyncio.sleep(0)
        await client.next("packet")
        await alive(client, names)
        await lazy.close()


@asynchronous
async def test_huge_batches_with_one_error_reach_the_client(built: Built, names: Names) -> None:
    drop = names.action("drop")
    entries = [names.entry("mac", exact(1, n), action=drop) for n in range(5000)]
    batch = [update("INSERT", entry) for entry in [*entries, entries[0]]]
    async with controlled(built) as (_, client):
        error = await fails(client.write(*batch))
        assert error.code() == grpc.StatusCode.ALREADY_EXISTS
        assert "update 5000" in error.details()
        found = await client.read(entity_of(names.entry("mac")))
        assert len(found) == 5000


@pytest.mark.parametrize("length", [0, 1, 100, 100_000])
def test_values_of_any_length_are_answered(built: Built, names: Names, length: int) -> None:
    @asynchronous
    async def scenario() -> None:
        async with controlled(built) as (_, client):
            match = p4r.FieldMatch(field_id=1, exact=p4r.FieldMatch.Exact(value=b"\xff" * length))
            entry = names.entry("mac", match, action=names.action("drop"))
            if length == 1:
                await client.write(update("INSERT", entry))
            else:
                error = await fails(client.write(update("INSERT", entry)))
                assert error.code() == grpc.StatusCode.UNKNOWN
                assert len(error.details()) < 1000
            await alive(client, names)

    scenario()


def test_messages_in_every_order_are_answered(built: Built) -> None:
    """Some must be allowed, or this proves little; whose bid is highest when is the machine's."""
    wanted = {"writes OK", "programs OK", "stream OK"}
    for seed in range(3, 23):
        outcome = asyncio.run(orders.play(built, 500, seed))
        assert outcome.faults == []
        wanted -= outcome.ended.keys()
        if not wanted:
            break
    assert not wanted


@pytest.mark.slow
def test_a_hundred_thousand_messages_leave_nothing(built: Built) -> None:
    outcome = asyncio.run(orders.play(built, 100_000, seed=4))
    assert outcome.faults == []
    first, last = outcome.memory
    assert last - first < 32 << 20, str(outcome)


@asynchronous
async def test_every_stream_that_ends_in_an_error_gets_its_status() -> None:
    """Also one whose error comes while the answer to its bid is still on its way."""
    count = 300

    async def read_all(stream: Any) -> None:
        async for _ in stream:
            pass

    async def wrong(address: str, number: int) -> tuple[grpc.StatusCode, str]:
        async with grpc.aio.insecure_channel(address) as channel:
            stream = p4r_grpc.P4RuntimeStub(channel).StreamChannel()
            bid = p4r.MasterArbitrationUpdate(device_id=DEVICE_ID)
            bid.election_id.low = 1 + number % 7  # most are taken
            elsewhere = p4r.MasterArbitrationUpdate(device_id=DEVICE_ID + 1)
            try:
                await stream.write(p4r.StreamMessageRequest(arbitration=bid))
                await stream.write(p4r.StreamMessageRequest(arbitration=elsewhere))
            except (asyncio.InvalidStateError, grpc.aio.AioRpcError):
                pass  # it ended by the first already
            error = await fails(asyncio.wait_for(read_all(stream), LONG_S))
            return error.code(), error.details()

    async with running() as rig:
        ends = await asyncio.gather(*(wrong(rig.address, n) for n in range(count)))
        assert len(ends) == count
        expected = {
            (grpc.StatusCode.FAILED_PRECONDITION, "this stream belongs to device 7"),
            *(
                (
                    grpc.StatusCode.INVALID_ARGUMENT,
                    f"Election id {n} is already used by another controller; choose another",
                )
                for n in range(1, 8)
            ),
            (
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"{MAX_STREAMS} streams are open here; close some",
            ),
        }
        assert set(ends) <= expected
        assert (grpc.StatusCode.FAILED_PRECONDITION, "this stream belongs to device 7") in ends
        client = Client(rig.address)
        assert (await client.bid(1)).status.code == rpc_code.OK  # nobody is left behind
        await client.close()


@pytest.mark.slow
@asynchronous
async def test_who_calls_while_a_switch_is_at_something_else_is_heard() -> None:
    """As when others have all processors of a slow machine; gRPC itself gives up after 30 s."""

    def call(address: str) -> str:
        with grpc.insecure_channel(address) as channel:
            answer = p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest())
            return str(answer.p4runtime_api_version)

    async with running() as rig:
        calls = [asyncio.to_thread(call, rig.address) for _ in range(4)]
        answers = asyncio.gather(*calls)
        await asyncio.sleep(0)  # they start
        time.sleep(35)
        assert await answers == [API_VERSION] * len(calls)


@asynchronous
async def test_streams_are_limited_in_all_whatever_their_roles_and_bids() -> None:
    async with running() as rig, grpc.aio.insecure_channel(rig.address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        silent = [stub.StreamChannel() for _ in range(MAX_STREAMS // 2)]
        await asyncio.gather(*(s.wait_for_connection() for s in silent))
        clients = [Client(rig.address, role=f"role{n}") for n in range(MAX_STREAMS)]
        tries = await asyncio.gather(*(c.bid_or_end() for c in clients))
        assert len([t for t in tries if t is None]) == MAX_STREAMS - len(silent)
        assert {t for t in tries if t} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        for stream in silent:
            stream.cancel()
        late = Client(rig.address)
        while await late.bid_or_end():
            await late.close()
            late = Client(rig.address)
        for client in (*clients, late):
            await client.close()

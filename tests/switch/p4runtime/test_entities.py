"""Multicast, clones, counters, meters, registers, value sets, digests, packets and idle times."""

import asyncio
from typing import Any

import pytest
from finsy.proto import p4r, rpc_code

from .rig import (
    CPU_PORT,
    Built,
    Client,
    Names,
    asynchronous,
    controlled,
    entity_of,
    exact,
    fails,
    refused,
    update,
)


def frame_of(ether_type: int, dst: int = 1, src: int = 2) -> bytes:
    return (
        dst.to_bytes(6, "big") + src.to_bytes(6, "big") + ether_type.to_bytes(2, "big") + bytes(46)
    )


def multicast(group: int, *replicas: tuple[int, int], **fields: Any) -> p4r.MulticastGroupEntry:
    entry = p4r.MulticastGroupEntry(multicast_group_id=group, **fields)
    for port, instance in replicas:
        entry.replicas.add(egress_port=port, instance=instance)
    return entry


def clone(session: int, *ports: int, **fields: Any) -> p4r.CloneSessionEntry:
    entry = p4r.CloneSessionEntry(session_id=session, **fields)
    for port in ports:
        entry.replicas.add(egress_port=port)
    return entry


async def read(client: Client, query: Any) -> list[Any]:
    found = await client.read(entity_of(query))
    messages = [getattr(entity, entity.WhichOneof("entity")) for entity in found]
    return [
        getattr(m, m.WhichOneof("type")) if isinstance(m, p4r.PacketReplicationEngineEntry) else m
        for m in messages
    ]


@asynchronous
async def test_multicast_groups(built: Built) -> None:
    group = multicast(1, (2, 0), (3, 5), metadata=b"mine")
    async with controlled(built) as (rig, client):
        await client.write(update("INSERT", group), update("INSERT", multicast(7)))
        assert await read(client, multicast(0)) == [group, multicast(7)]
        assert await read(client, multicast(1)) == [group]
        flood = frame_of(0x88B7)
        assert sorted(rig.send(1, flood)) == [(2, flood), (3, flood)]
        await client.write(update("MODIFY", multicast(1, (2, 0))))
        assert rig.send(1, flood) == [(2, flood)]
        await client.write(update("DELETE", multicast(1)))
        assert rig.send(1, flood) == []


@asynchronous
async def test_replicas_may_name_ports_as_bytes_and_read_back_so(built: Built) -> None:
    group = p4r.MulticastGroupEntry(multicast_group_id=1)
    group.replicas.add(port=b"\0\0\0\x02", instance=1)
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", group))
        group.replicas[0].port = b"\x02"
        assert await read(client, multicast(1)) == [group]


@asynchronous
async def test_clone_sessions(built: Built) -> None:
    session = clone(5, 3, class_of_service=2, packet_length_bytes=20)
    async with controlled(built) as (rig, client):
        await client.write(update("INSERT", session))
        assert await read(client, clone(0)) == [session]
        frame = frame_of(0x88B6)
        assert (3, frame[:20]) in rig.send(1, frame)
        await client.write(update("MODIFY", clone(5, 2)))
        assert (2, frame) in rig.send(1, frame)
        await client.write(update("DELETE", clone(5)))
        assert await read(client, clone(0)) == []


@pytest.mark.parametrize(
    ("verb", "message", "code"),
    [
        ("INSERT", multicast(0), rpc_code.INVALID_ARGUMENT),
        ("INSERT", multicast(65536), rpc_code.INVALID_ARGUMENT),
        ("INSERT", multicast(1, (1, 1), (1, 1)), rpc_code.INVALID_ARGUMENT),
        ("INSERT", multicast(1, (1, 70000)), rpc_code.INVALID_ARGUMENT),
        ("INSERT", multicast(9), rpc_code.ALREADY_EXISTS),
        ("MODIFY", multicast(1), rpc_code.NOT_FOUND),
        ("DELETE", multicast(1), rpc_code.NOT_FOUND),
        ("INSERT", clone(0, 1), rpc_code.INVALID_ARGUMENT),
        ("INSERT", clone(32768, 1), rpc_code.INVALID_ARGUMENT),
        ("INSERT", clone(1, 1, class_of_service=8), rpc_code.INVALID_ARGUMENT),
        ("INSERT", clone(1, 1, packet_length_bytes=-1), rpc_code.INVALID_ARGUMENT),
        ("MODIFY", clone(1, 1), rpc_code.NOT_FOUND),
        ("INSERT", p4r.PacketReplicationEngineEntry(), rpc_code.INVALID_ARGUMENT),
    ],
)
def test_wrong_replications_are_refused(built: Built, verb: str, message: Any, code: int) -> None:
    @asynchronous
    async def scenario() -> None:
        async with controlled(built) as (_, client):
            await client.write(update("INSERT", multicast(9)))
            (error,) = await refused(client, update(verb, message))
            assert error.canonical_code == code

    scenario()


@asynchronous
async def test_counters(built: Built, names: Names) -> None:
    counter = names.id("port_counter")
    async with controlled(built) as (rig, client):
        frame = frame_of(0x1234)
        rig.send(2, frame)
        cell = p4r.CounterEntry(counter_id=counter, index=p4r.Index(index=2))
        (found,) = await read(client, cell)
        assert (found.data.packet_count, found.data.byte_count) == (1, len(frame))
        everything = await read(client, p4r.CounterEntry())
        assert [entry.index.index for entry in everything] == list(range(16))
        assert everything == await read(client, p4r.CounterEntry(counter_id=counter))
        cell.data.packet_count = 100
        await client.write(update("MODIFY", cell))
        rig.send(2, frame)
        (found,) = await read(client, cell)
        assert found.data.packet_count == 101
        whole = p4r.CounterEntry(counter_id=counter, data=p4r.CounterData(packet_count=7))
        await client.write(update("MODIFY", whole))
        assert {e.data.packet_count for e in await read(client, p4r.CounterEntry())} == {7}


@asynchronous
async def test_meters(built: Built, names: Names) -> None:
    meter = names.id("port_meter")
    config = p4r.MeterConfig(cir=1000, cburst=200, pir=3000, pburst=400)
    one = p4r.MeterEntry(meter_id=meter, index=p4r.Index(index=3), config=config)
    async with controlled(built) as (_, client):
        await client.write(update("MODIFY", one))
        assert await read(client, p4r.MeterEntry(meter_id=meter, index=one.index)) == [one]
        found = await read(client, p4r.MeterEntry())
        assert [entry.HasField("config") for entry in found] == [n == 3 for n in range(8)]
        await client.write(update("MODIFY", p4r.MeterEntry(meter_id=meter)))
        assert not any(e.HasField("config") for e in await read(client, p4r.MeterEntry()))


@asynchronous
async def test_registers(built: Built, names: Names) -> None:
    cells = names.id("cells")
    async with controlled(built) as (rig, client):
        one = p4r.RegisterEntry(register_id=cells, index=p4r.Index(index=3))
        one.data.bitstring = b"\x12\x34"
        await client.write(update("MODIFY", one))
        assert await read(client, one) == [one]
        # The program copies cell 3 into the source and the destination into cell 4.
        ((_, frame),) = rig.send(1, frame_of(0x88B9, dst=0xCAFE))
        assert frame[6:12].hex() == "000000001234"
        four = p4r.RegisterEntry(register_id=cells, index=p4r.Index(index=4))
        (found,) = await read(client, four)
        assert found.data.bitstring == b"\xca\xfe"
        whole = p4r.RegisterEntry(register_id=cells)
        whole.data.bitstring = b"\x09"
        await client.write(update("MODIFY", whole))
        found = await read(client, p4r.RegisterEntry(register_id=cells))
        assert [(e.index.index, e.data.bitstring) for e in found] == [
            (n, b"\x09") for n in range(16)
        ]


@asynchronous
async def test_value_sets(built: Built, names: Names) -> None:
    types = p4r.ValueSetEntry(value_set_id=names.id("trusted_types"))
    async with controlled(built) as (rig, client):
        trusted = frame_of(0x9999)
        assert rig.send(1, trusted) == [(0, trusted)] or rig.send(1, trusted) == []
        types.members.add(match=[exact(1, 0x9998)])
        types.members.add(match=[exact(1, 0x9999)])
        await client.write(update("MODIFY", types))
        assert await read(client, p4r.ValueSetEntry()) == [types]
        assert rig.send(1, trusted) == [(1, trusted)], "a trusted type is sent back"
        del types.members[:]
        await client.write(update("MODIFY", types))
        assert rig.send(1, trusted) != [(1, trusted)]


def array_mistakes(names: Names) -> list[tuple[str, Any, int]]:
    counter, meter, cells = names.id("port_counter"), names.id("port_meter"), names.id("cells")
    types = names.id("trusted_types")
    index = p4r.Index
    invalid = rpc_code.INVALID_ARGUMENT
    wide = p4r.RegisterEntry(register_id=cells, index=index(index=1))
    wide.data.bitstring = b"\x01\0\0\0\0"
    kind = p4r.RegisterEntry(register_id=cells, index=index(index=1))
    kind.data.bool = True
    twice = p4r.ValueSetEntry(value_set_id=types)
    five = p4r.ValueSetEntry(value_set_id=types)
    for number in range(5):
        five.members.add(match=[exact(1, number)])
        twice.members.add(match=[exact(1, 1)])
    slow = p4r.MeterConfig(cir=5, pir=4)
    return [
        ("INSERT", p4r.CounterEntry(counter_id=counter), invalid),
        ("MODIFY", p4r.CounterEntry(), invalid),
        ("MODIFY", p4r.CounterEntry(counter_id=0x12FFFFFF), invalid),
        ("MODIFY", p4r.CounterEntry(counter_id=counter, index=index(index=-1)), invalid),
        (
            "MODIFY",
            p4r.CounterEntry(counter_id=counter, index=index(index=16)),
            rpc_code.OUT_OF_RANGE,
        ),
        ("DELETE", p4r.MeterEntry(meter_id=meter), invalid),
        ("MODIFY", p4r.MeterEntry(meter_id=meter, config=slow), invalid),
        ("MODIFY", p4r.MeterEntry(meter_id=meter, config=p4r.MeterConfig(cir=-1)), invalid),
        ("MODIFY", p4r.MeterEntry(meter_id=meter, config=p4r.MeterConfig(eburst=1)), invalid),
        (
            "MODIFY",
            p4r.MeterEntry(meter_id=meter, counter_data=p4r.MeterCounterData()),
            rpc_code.UNIMPLEMENTED,
        ),
        ("MODIFY", wide, rpc_code.OUT_OF_RANGE),
        ("MODIFY", kind, invalid),
        ("MODIFY", p4r.RegisterEntry(register_id=cells), invalid),
        (
            "MODIFY",
            p4r.RegisterEntry(register_id=cells, index=index(index=16)),
            rpc_code.OUT_OF_RANGE,
        ),
        ("INSERT", p4r.ValueSetEntry(value_set_id=types), invalid),
        ("MODIFY", twice, rpc_code.ALREADY_EXISTS),
        ("MODIFY", five, rpc_code.RESOURCE_EXHAUSTED),
        ("DELETE", p4r.DigestEntry(digest_id=names.id("learn_t")), rpc_code.NOT_FOUND),
    ]


@asynchronous
async def test_wrong_writes_to_arrays_are_refused(built: Built, names: Names) -> None:
    async with controlled(built) as (_, client):
        for verb, message, code in array_mistakes(names):
            (error,) = await refused(client, update(verb, message))
            assert error.canonical_code == code, (message, error)
        extern = p4r.Entity(extern_entry=p4r.ExternEntry())
        (error,) = await refused(client, p4r.Update(type=p4r.Update.INSERT, entity=extern))
        assert error.canonical_code == rpc_code.UNIMPLEMENTED
        assert "extern_entry" in (await fails(client.read(extern))).details()


@asynchronous
async def test_digests_are_delivered_once_until_acknowledged(built: Built, names: Names) -> None:
    digest = p4r.DigestEntry(digest_id=names.id("learn_t"))
    digest.config.max_list_size = 1
    digest.config.ack_timeout_ns = 10**12
    async with controlled(built) as (rig, client):
        rig.send(1, frame_of(0x88B5, src=0xAAAA))
        await client.write(update("INSERT", digest))
        assert await read(client, p4r.DigestEntry()) == [digest]
        rig.send(1, frame_of(0x88B5, src=0xABCD))
        message = (await client.next("digest")).digest
        (sample,) = message.data
        assert [m.bitstring for m in sample.struct.members] == [b"\xab\xcd", b"\x01"]
        rig.send(1, frame_of(0x88B5, src=0xABCD))
        rig.send(1, frame_of(0x88B5, src=0xEEEE))
        other = (await client.next("digest")).digest
        assert other.data[0].struct.members[0].bitstring == b"\xee\xee"
        ack = p4r.DigestListAck(digest_id=message.digest_id, list_id=message.list_id)
        await client.stream.write(p4r.StreamMessageRequest(digest_ack=ack))
        await settle(client)
        rig.send(1, frame_of(0x88B5, src=0xABCD))
        again = (await client.next("digest")).digest
        assert again.data[0].struct.members[0].bitstring == b"\xab\xcd"
        await client.write(update("DELETE", digest))


async def settle(client: Client) -> None:
    """Wait until the stream's earlier messages have been taken."""
    await client.bid()


@asynchronous
async def test_packet_in(built: Built) -> None:
    async with controlled(built) as (rig, client):
        frame = frame_of(0x88B8)
        rig.send(3, frame)
        packet = (await client.next("packet")).packet
        assert packet.payload == frame
        assert {m.metadata_id: m.value for m in packet.metadata} == {1: b"\x03", 2: b"\x03"}


@asynchronous
async def test_packet_out(built: Built) -> None:
    async with controlled(built) as (rig, client):
        frame = frame_of(0x1234)
        packet = p4r.PacketOut(payload=frame)
        packet.metadata.add(metadata_id=2, value=b"\0")
        packet.metadata.add(metadata_id=1, value=b"\0\0\0\x02")
        await client.stream.write(p4r.StreamMessageRequest(packet=packet))
        await settle(client)
        rig.plane.service(2_000)
        assert [(p, d) for p, d, _ in rig.plane.outputs()] == [(2, frame)]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "metadata 1 (egress_port) is missing"),
        ({1: b"\x02"}, "metadata 2 (padding) is missing"),
        ({1: b"\x02\x00", 2: b"\0"}, "egress_port: 0x0200 does not fit in 9 bits"),
        ({1: b"\x02", 2: b"\0", 7: b"\0"}, "no packet-out metadata has id 7"),
    ],
)
def test_a_wrong_packet_out_is_answered_and_dropped(
    built: Built, metadata: dict[int, bytes], message: str
) -> None:
    @asynchronous
    async def scenario() -> None:
        async with controlled(built) as (rig, client):
            packet = p4r.PacketOut(payload=b"x" * 60)
            for key, value in metadata.items():
                packet.metadata.add(metadata_id=key, value=value)
            await client.stream.write(p4r.StreamMessageRequest(packet=packet))
            error = (await client.next("error")).error
            assert error.canonical_code == rpc_code.INVALID_ARGUMENT
            assert message in error.message
            assert error.packet_out.packet_out == packet
            rig.plane.service(2_000)
            assert rig.plane.outputs() == []

    scenario()


@asynchronous
async def test_backups_neither_send_nor_receive_packets(built: Built) -> None:
    async with controlled(built) as (rig, client):
        backup = Client(rig.address, election_id=0)
        await backup.bid()
        await backup.stream.write(p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"x")))
        error = (await backup.next("error")).error
        assert error.canonical_code == rpc_code.PERMISSION_DENIED
        rig.send(3, frame_of(0x88B8))
        await client.next("packet")
        assert backup.inbox.empty()
        await backup.close()


@asynchronous
async def test_unknown_stream_messages_are_answered(built: Built) -> None:
    async with controlled(built) as (_, client):
        await client.stream.write(p4r.StreamMessageRequest())
        assert (await client.next("error")).error.canonical_code == rpc_code.INVALID_ARGUMENT
        ack = p4r.DigestListAck(digest_id=0x17FFFFFF)
        await client.stream.write(p4r.StreamMessageRequest(digest_ack=ack))
        error = (await client.next("error")).error
        assert error.canonical_code == rpc_code.INVALID_ARGUMENT
        assert error.HasField("digest_list_ack")


@asynchronous
async def test_idle_entries_are_reported_with_what_the_client_knows_them_by(
    built: Built, names: Names
) -> None:
    second = 10**9
    entry = names.entry(
        "mac", exact(1, 5), action=names.action("drop"), idle_timeout_ns=second, metadata=b"me"
    )
    async with controlled(built) as (rig, client):
        await client.write(update("INSERT", entry))
        rig.send(1, frame_of(0x1234, dst=5), now_ns=1_000)
        rig.plane.service(second // 2)
        await asyncio.sleep(0.05)
        assert client.inbox.empty()
        rig.plane.service(3 * second)
        message = (await client.next("idle_timeout_notification")).idle_timeout_notification
        (idle,) = message.table_entry
        assert idle.match == entry.match
        assert (idle.metadata, idle.idle_timeout_ns) == (b"me", second)


def test_the_cpu_port_is_the_programs() -> None:
    # The program punts to port 510; the rig must have its CPU port there.
    assert CPU_PORT == 510

"""Forwarding pipeline configs: every action, every response type, every complaint."""

import asyncio
import re
import struct
from typing import Any

import grpc
import pytest
from finsy.proto import p4r

from switch import dataplane as dp
from switch.p4runtime.programs import Programs
from switch.place import JsonError

from .rig import (
    DEVICE_ID,
    Built,
    Client,
    Names,
    asynchronous,
    controlled,
    entity_of,
    exact,
    fails,
    refused,
    running,
    update,
)

MAC = exact(1, 0x112233445566)


def forward(names: Names, port: int = 3) -> p4r.TableEntry:
    return names.entry("mac", MAC, action=names.action("forward", port=port))


@asynchronous
async def test_without_a_pipeline_everything_says_so() -> None:
    async with running() as rig:
        client = Client(rig.address)
        await client.bid()
        for call in (client.get_pipeline(), client.write(), client.read()):
            error = await fails(call)
            assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
            assert "No forwarding pipeline config" in error.details()
        await client.close()


@asynchronous
async def test_a_config_is_read_back_as_it_was_sent(built: Built) -> None:
    async with controlled(built) as (_, client):
        config = built.config
        config.cookie.cookie = 0xDEADBEEF
        await client.set_pipeline(config)
        assert await client.get_pipeline() == config
        cookie = p4r.ForwardingPipelineConfig(cookie=config.cookie)
        assert await client.get_pipeline("COOKIE_ONLY") == cookie
        answer = await client.get_pipeline("P4INFO_AND_COOKIE")
        assert answer.p4info == config.p4info
        assert not answer.p4_device_config
        answer = await client.get_pipeline("DEVICE_CONFIG_AND_COOKIE")
        assert answer.p4_device_config == config.p4_device_config
        assert not answer.HasField("p4info")


@asynchronous
async def test_a_config_without_a_cookie_has_none(built: Built) -> None:
    async with controlled(built) as (_, client):
        assert not (await client.get_pipeline()).HasField("cookie")


def p4_device_config(data: bytes) -> bytes:
    """A P4DeviceConfig: reassign (1, bool) and device_data (3, bytes)."""
    assert len(data) >> 14
    length = bytes([len(data) & 0x7F | 0x80, len(data) >> 7 & 0x7F | 0x80, len(data) >> 14])
    return b"\x08\x01\x1a" + length + data


@asynchronous
async def test_json_may_come_wrapped_in_a_p4_device_config(built: Built) -> None:
    async with controlled(built) as (_, client):
        config = built.config
        config.p4_device_config = p4_device_config(config.p4_device_config)
        await client.set_pipeline(config)
        assert await client.get_pipeline() == config


@pytest.mark.parametrize(
    ("device_config", "message"),
    [
        (b"", "is empty"),
        (b"\x00\x01\x02", "neither BMv2 JSON nor a P4DeviceConfig"),
        (b"\x1a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "neither BMv2 JSON"),
        (b"{", "JSON"),
        (b"{}", r"\$"),
        (struct.pack(">I", 7) * 100, "neither BMv2 JSON"),
    ],
)
def test_a_bad_device_config_is_refused_and_changes_nothing(
    built: Built, names: Names, device_config: bytes, message: str
) -> None:
    @asynchronous
    async def scenario() -> None:
        async with controlled(built) as (_, client):
            await client.write(update("INSERT", forward(names)))
            config = built.config
            config.p4_device_config = device_config
            for action in ("VERIFY", "VERIFY_AND_SAVE", "VERIFY_AND_COMMIT"):
                error = await fails(client.set_pipeline(config, action))
                assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
                assert re.search(message, error.details())
            assert await client.get_pipeline() == built.config
            assert await client.read(entity_of(p4r.TableEntry(table_id=names.id("mac"))))

    scenario()


@asynchronous
async def test_a_p4info_of_another_program_is_refused(built: Built) -> None:
    async with controlled(built) as (_, client):
        config = built.config
        config.p4info.tables[0].preamble.name = "Forward.other"
        error = await fails(client.set_pipeline(config))
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "table Forward.other of the P4Info is not in the program" in error.details()


@asynchronous
async def test_requests_that_make_no_sense_are_refused(built: Built) -> None:
    async with controlled(built) as (_, client):
        for action, config in (
            ("UNSPECIFIED", built.config),
            ("VERIFY_AND_COMMIT", None),
            ("COMMIT", built.config),
            ("VERIFY", p4r.ForwardingPipelineConfig()),
        ):
            error = await fails(client.set_pipeline(config, action))
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT, action
        error = await fails(client.set_pipeline(None, "COMMIT"))
        assert error.code() == grpc.StatusCode.NOT_FOUND


@asynchronous
async def test_another_device_is_not_found(built: Built) -> None:
    async with controlled(built) as (_, client):
        requests = (
            client.stub.Capabilities(p4r.CapabilitiesRequest(device_id=DEVICE_ID + 1)),
            client.stub.Write(p4r.WriteRequest(device_id=DEVICE_ID + 1)),
            client.stub.GetForwardingPipelineConfig(p4r.GetForwardingPipelineConfigRequest()),
        )
        for request in requests:
            assert (await fails(request)).code() == grpc.StatusCode.NOT_FOUND


@asynchronous
async def test_capabilities_name_a_version(built: Built) -> None:
    async with controlled(built) as (_, client):
        answer = await client.stub.Capabilities(p4r.CapabilitiesRequest(device_id=DEVICE_ID))
        major, minor, _ = answer.p4runtime_api_version.split(".")
        assert (int(major), int(minor)) < (1, 5), "finsy would send ports as bytes"


@asynchronous
async def test_verify_changes_nothing(built: Built, names: Names) -> None:
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", forward(names)))
        config = built.config
        config.cookie.cookie = 5
        await client.set_pipeline(config, "VERIFY")
        assert not (await client.get_pipeline()).HasField("cookie")
        assert len(await client.read(entity_of(p4r.TableEntry(table_id=names.id("mac"))))) == 1


@asynchronous
async def test_commit_clears_the_state(built: Built, names: Names) -> None:
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", forward(names)))
        await client.set_pipeline(built.config)
        assert not await client.read(entity_of(p4r.TableEntry(table_id=names.id("mac"))))


@asynchronous
async def test_a_saved_config_takes_writes_and_realizes_them_at_commit(
    built: Built, names: Names
) -> None:
    frame = bytes.fromhex("112233445566 0a0000000001 1234") + bytes(46)
    async with controlled(built) as (rig, client):
        await client.write(update("INSERT", forward(names, port=2)))
        await client.set_pipeline(built.config, "VERIFY_AND_SAVE")
        mine = entity_of(p4r.TableEntry(table_id=names.id("mac")))
        assert not await client.read(mine)
        await client.write(update("INSERT", forward(names, port=3)))
        assert len(await client.read(mine)) == 1
        assert rig.send(1, frame) == [(2, frame)], "the old pipeline runs until the commit"
        await client.set_pipeline(None, "COMMIT")
        assert rig.send(1, frame) == [(3, frame)]
        assert len(await client.read(mine)) == 1


@asynchronous
async def test_a_saved_config_has_the_programs_sizes(built: Built, names: Names) -> None:
    inserts = [
        update("INSERT", names.entry("exact_and_lpm", exact(1, n), action=names.action("drop")))
        for n in range(6)
    ]
    async with controlled(built) as (_, client):
        await client.set_pipeline(built.config, "VERIFY_AND_SAVE")
        errors = await refused(client, *inserts)
        assert [error.canonical_code for error in errors] == [0, 0, 0, 0, 8, 8]
        await client.set_pipeline(None, "COMMIT")
        assert len(await client.read(entity_of(names.entry("exact_and_lpm")))) == 4


@asynchronous
async def test_reconcile_with_the_same_program_keeps_everything(built: Built, names: Names) -> None:
    frame = bytes.fromhex("112233445566 0a0000000001 1234") + bytes(46)
    counter = p4r.CounterEntry(counter_id=names.id("port_counter"), index=p4r.Index(index=1))
    async with controlled(built) as (rig, client):
        await client.write(update("INSERT", forward(names)))
        rig.send(1, frame)
        program = rig.plane.program
        config = built.config
        config.cookie.cookie = 5
        await client.set_pipeline(config, "RECONCILE_AND_COMMIT")
        assert rig.plane.program is program, "the program was not touched"
        assert (await client.get_pipeline()).cookie.cookie == 5
        assert rig.send(1, frame) == [(3, frame)]
        (found,) = await client.read(entity_of(counter))
        assert found.counter_entry.data.packet_count == 2


@asynchronous
async def test_reconcile_with_the_same_program_may_bring_tables(built: Built, names: Names) -> None:
    """Those that the P4Info before left out."""
    frame = bytes.fromhex("112233445566 0a0000000001 1234") + bytes(46)
    fewer = built.config
    for number, table in reversed(list(enumerate(fewer.p4info.tables))):
        if table.is_const_table or table.preamble.alias == "mac":
            del fewer.p4info.tables[number]
    assert len(fewer.p4info.tables) < len(built.info.tables)
    everything = entity_of(p4r.TableEntry())
    async with controlled(built) as (rig, client):
        own = await client.read(everything)
        await client.set_pipeline(fewer)
        await client.set_pipeline(built.config, "RECONCILE_AND_COMMIT")
        assert await client.read(everything) == own
        await client.write(update("INSERT", forward(names)))
        assert rig.send(1, frame) == [(3, frame)]


@asynchronous
async def test_reconcile_with_another_program_carries_the_state_over(
    built: Built, names: Names
) -> None:
    async with controlled(built) as (_, client):
        entry = forward(names)
        entry.metadata = b"mine"
        register = p4r.RegisterEntry(register_id=names.id("cells"), index=p4r.Index(index=4))
        register.data.bitstring = b"\x2a"
        group = p4r.MulticastGroupEntry(multicast_group_id=9)
        group.replicas.add(egress_port=1)
        default = names.entry("ipv4_lpm", action=names.action("count_route", port=1, dst=2))
        default.is_default_action = True
        await client.write(update("INSERT", entry), update("INSERT", group))
        await client.write(update("MODIFY", register), update("MODIFY", default))
        config = built.config
        config.p4_device_config += b"\n"
        await client.set_pipeline(config, "RECONCILE_AND_COMMIT")
        found = await client.read(entity_of(p4r.TableEntry(table_id=names.id("mac"))))
        assert [e.table_entry.metadata for e in found] == [b"mine"]
        (cell,) = await client.read(entity_of(register))
        assert cell.register_entry == register
        (seen,) = await client.read(entity_of(group))
        assert seen.packet_replication_engine_entry.multicast_group_entry == group
        (seen,) = await client.read(entity_of(default))
        assert seen.table_entry == default


@asynchronous
async def test_reconcile_refuses_what_would_lose_state(built: Built, names: Names) -> None:
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", forward(names)))
        config = built.config
        config.p4_device_config += b"\n"
        mac = next(t for t in config.p4info.tables if t.preamble.alias == "mac")
        mac.preamble.id += 1
        error = await fails(client.set_pipeline(config, "RECONCILE_AND_COMMIT"))
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "cannot be preserved" in error.details()
        assert len(await client.read(entity_of(p4r.TableEntry(table_id=names.id("mac"))))) == 1


@pytest.mark.parametrize(
    ("mark", "register", "message"),
    [
        ("@queue_gate", "cells", None),
        ("@queue_gate()", "cells", None),
        ("@port_down", "cells", None),
        ("@timer", "cells", None),
        ("@clock", "cells", None),
        (
            "@queue_gate",
            "flags",
            "register Forward.flags: @queue_gate needs cells of 17 to 64 bits",
        ),
    ],
)
def test_registers_shared_with_the_switch_are_marked(
    built: Built, mark: str, register: str, message: str | None
) -> None:
    config = built.config
    found = next(r for r in config.p4info.registers if r.preamble.alias == register)
    found.preamble.annotations.append(mark)

    @asynchronous
    async def scenario() -> None:
        async with controlled(built) as (rig, client):
            if message is None:
                await client.set_pipeline(config)
                pipeline = rig.device.entities.pipeline
                index = pipeline.registers[found.preamble.id].index
                assert pipeline.shared_registers == {
                    role: index if role.mark == mark.rstrip("()") else None for role in dp.Role
                }
            else:
                error = await fails(client.set_pipeline(config))
                assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
                assert message in error.details()
                assert await client.get_pipeline() == built.config

    scenario()


@pytest.mark.parametrize(
    ("mark", "table", "message"),
    [
        ("@queue_schedule", "mac", "@queue_schedule needs a key of bit<9> and bit<3>, exact"),
        ("@port_shaper", "mac", "@port_shaper needs a key of bit<9>, exact"),
    ],
)
def test_tables_that_schedule_queues_have_their_key(
    built: Built, mark: str, table: str, message: str
) -> None:
    config = built.config
    found = next(t for t in config.p4info.tables if t.preamble.alias == table)
    found.preamble.annotations.append(mark)

    @asynchronous
    async def scenario() -> None:
        async with controlled(built) as (_, client):
            error = await fails(client.set_pipeline(config))
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert message in error.details()

    scenario()


@asynchronous
async def test_a_program_is_built_once_for_all_who_ask(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, loads = dp.Program.load, []

    def counted(source: bytes, **more: Any) -> dp.Program:
        loads.append(source)
        return load(source, **more)

    monkeypatch.setattr(dp.Program, "load", counted)
    programs, source = Programs(), built.json.read_bytes()
    impatient = asyncio.create_task(programs.load(source, trace=False))
    others = [asyncio.create_task(programs.load(source, trace=False)) for _ in range(5)]
    await asyncio.sleep(0)
    impatient.cancel()
    assert len({id(program) for program in await asyncio.gather(*others)}) == 1
    assert len(loads) == 1
    for _ in range(2):
        with pytest.raises(JsonError):
            await programs.load(b"{}", trace=False)
    assert len(loads) == 3, "a failure is tried again"

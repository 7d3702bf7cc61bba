"""finsy, as it is but for its patience, does all it can."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import finsy as fy
import pytest
from finsy.p4entity import P4Replica, P4ValueSetMember

from tests.waiting import LONG_S

from .rig import DEVICE_ID, Built, Rig, asynchronous, running, wait_for_answers

wait_for_answers()

FRAME = bytes.fromhex("112233445566 0a0000000001 1234") + bytes(46)


def options(built: Built, **more: Any) -> fy.SwitchOptions:
    return fy.SwitchOptions(p4info=built.p4info, p4blob=built.json, device_id=DEVICE_ID, **more)


@asynccontextmanager
async def connected(built: Built) -> AsyncIterator[tuple[Rig, fy.Switch]]:
    async with running() as rig, fy.Switch("s1", rig.address, options(built)) as switch:
        yield rig, switch


async def read(switch: fy.Switch, *queries: Any) -> list[Any]:
    found: Any = switch.read(queries)  # finsy has it as who waits for it
    return [entity async for entity in found]


@asynchronous
async def test_the_pipeline_is_set_once_by_its_cookie(built: Built) -> None:
    async with running() as rig:
        async with fy.Switch("s1", rig.address, options(built)) as switch:
            assert switch.is_primary
            await switch.write(
                [
                    +fy.P4TableEntry(
                        "mac", match=fy.P4TableMatch(dst=1), action=fy.P4TableAction("drop")
                    )
                ]
            )
        async with fy.Switch("s1", rig.address, options(built)) as switch:
            assert len(await read(switch, fy.P4TableEntry("mac"))) == 1, "the cookie was equal"
        async with fy.Switch("s1", rig.address, options(built, p4force=True)) as switch:
            assert await read(switch, fy.P4TableEntry("mac")) == []


@asynchronous
async def test_every_entity_is_written_and_read_back(built: Built) -> None:
    route = fy.P4TableAction("route", port=2, dst="00:00:00:00:00:99")
    entities = [
        fy.P4TableEntry(
            "mac",
            match=fy.P4TableMatch(dst="11:22:33:44:55:66"),
            action=fy.P4TableAction("forward", port=3),
            idle_timeout_ns=10**12,
            metadata=b"m",
        ),
        fy.P4TableEntry(
            "ipv4_lpm",
            match=fy.P4TableMatch(dst="10.0.0.0/8"),
            action=fy.P4TableAction("count_route", port=1, dst=5),
        ),
        fy.P4TableEntry(
            "acl",
            match=fy.P4TableMatch(src="10.0.0.1/&255.0.0.255", protocol=6, len="5...9"),
            priority=4,
            action=fy.P4TableAction("police"),
        ),
        fy.P4ActionProfileMember("paths", member_id=1, action=route),
        fy.P4ActionProfileMember("ways", member_id=1, action=route),
        fy.P4ActionProfileGroup("ways", group_id=1, members=[fy.P4Member(1, weight=2)]),
        fy.P4TableEntry(
            "via_profile",
            match=fy.P4TableMatch(tos=1),
            action=fy.P4IndirectAction(member_id=1),
        ),
        fy.P4TableEntry(
            "via_selector",
            match=fy.P4TableMatch(protocol=1),
            action=fy.P4IndirectAction(group_id=1),
        ),
        fy.P4MulticastGroupEntry(1, replicas=[2, P4Replica(3, instance=1)]),
        fy.P4CloneSessionEntry(5, replicas=[1], class_of_service=1, packet_length_bytes=64),
        fy.P4DigestEntry("learn_t", max_list_size=2, max_timeout_ns=10**9),
    ]
    meter = fy.P4MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
    changes = [
        fy.P4RegisterEntry("cells", index=2, data=77),
        fy.P4ValueSetEntry("trusted_types", members=[P4ValueSetMember(0x9999)]),
        fy.P4MeterEntry("port_meter", index=2, config=meter),
        fy.P4CounterEntry("port_counter", index=2, data=fy.P4CounterData(packet_count=9)),
    ]
    async with connected(built) as (_, switch):
        for entity in entities:
            await switch.insert([entity])
        for change in changes:
            await switch.modify([change])
        found = await read(
            switch,
            fy.P4TableEntry(),
            fy.P4ActionProfileMember(),
            fy.P4ActionProfileGroup(),
            fy.P4MulticastGroupEntry(),
            fy.P4CloneSessionEntry(),
            fy.P4DigestEntry("learn_t"),
        )
        assert len(found) == len(entities) + 2, "two const entries come along"
        (cell,) = await read(switch, fy.P4RegisterEntry("cells", index=2))
        assert cell.data == 77
        assert len(await read(switch, fy.P4RegisterEntry("cells"))) == 16
        (config,) = await read(switch, fy.P4MeterEntry("port_meter", index=2))
        assert config.config == meter
        (counter,) = await read(switch, fy.P4CounterEntry("port_counter", index=2))
        assert counter.data.packet_count == 9
        (value_set,) = await read(switch, fy.P4ValueSetEntry("trusted_types", members=[]))
        assert len(value_set.members) == 1
        await switch.delete_all()
        assert {entry.table_id for entry in await read(switch, fy.P4TableEntry())} == {"fixed"}
        # In a program with a const table finsy's delete_all goes no further.
        for query in (
            fy.P4MulticastGroupEntry(),
            fy.P4CloneSessionEntry(),
            fy.P4ActionProfileGroup(),
            fy.P4ActionProfileMember(),
        ):
            await switch.delete(await read(switch, query))
            assert await read(switch, query) == []


@asynchronous
async def test_one_shots(built: Built) -> None:
    ways = [
        (1, fy.P4TableAction("route", port=2, dst=1)),
        (3, fy.P4TableAction("route", port=3, dst=1)),
    ]
    entry = fy.P4TableEntry(
        "via_selector", match=fy.P4TableMatch(protocol=6), action=fy.P4IndirectAction(ways)
    )
    async with connected(built) as (_, switch):
        await switch.insert([entry])
        (found,) = await read(switch, fy.P4TableEntry("via_selector"))
        assert [weight for weight, _ in found.action.action_set] == [1, 3]
        await switch.delete([found])
        assert await read(switch, fy.P4TableEntry("via_selector")) == []


@asynchronous
async def test_packets_and_digests_and_idle_entries_arrive(built: Built) -> None:
    async with connected(built) as (rig, switch):
        await switch.insert([fy.P4DigestEntry("learn_t", max_list_size=1)])
        second = 10**9
        await switch.insert(
            [
                fy.P4TableEntry(
                    "mac",
                    match=fy.P4TableMatch(dst=5),
                    action=fy.P4TableAction("drop"),
                    idle_timeout_ns=second,
                )
            ]
        )

        sources = (
            switch.read_packets(),
            switch.read_digests("learn_t"),
            switch.read_idle_timeouts(),
        )
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(anext(aiter(source))) for source in sources
        ]
        await asyncio.sleep(0.05)
        rig.plane.inject(3, FRAME[:12] + b"\x88\xb8" + bytes(46), 1_000)
        rig.plane.inject(1, FRAME[:12] + b"\x88\xb5" + bytes(46), 1_000)
        rig.plane.service(3 * second)
        got_packet, got_digest, got_idle = await asyncio.wait_for(asyncio.gather(*tasks), LONG_S)
        assert got_packet["ingress_port"] == 3
        assert got_digest.data[0] == {"mac": 0x0A0000000001, "port": 1}
        assert got_idle.table_entry[0].match["dst"] == 5

        await switch.write([fy.P4PacketOut(FRAME, egress_port=2, padding=0)])
        for _ in range(1000):
            rig.plane.service(3 * second)
            out = rig.plane.outputs()
            if out:
                break
            await asyncio.sleep(0.01)
        assert [(port, data) for port, data, _ in out] == [(2, FRAME)]


@asynchronous
async def test_errors_name_the_update(built: Built) -> None:
    async with connected(built) as (_, switch):
        drop = fy.P4TableAction("drop")
        entries = [
            fy.P4TableEntry("mac", match=fy.P4TableMatch(dst=n), action=drop) for n in (1, 2, 1)
        ]
        with pytest.raises(fy.P4ClientError) as caught:
            await switch.insert(entries)
        (index,) = caught.value.details
        assert index == 2
        assert caught.value.details[2].canonical_code == fy.GRPCStatusCode.ALREADY_EXISTS


@asynchronous
async def test_a_backup_takes_over(built: Built) -> None:
    async with running() as rig:
        first = fy.Switch("a", rig.address, options(built, initial_election_id=20))
        second = fy.Switch("b", rig.address, options(built, initial_election_id=10))
        async with second:
            async with first:
                assert first.is_primary
                await asyncio.sleep(0.1)
                assert not second.is_primary
            for _ in range(1000):
                if second.is_primary:
                    break
                await asyncio.sleep(0.02)
            assert second.is_primary

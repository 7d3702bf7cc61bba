"""Table entries: written, read back exactly, filtered, refused."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, rpc_code

from .rig import (
    HERE,
    Built,
    Client,
    Names,
    asynchronous,
    between,
    compile_p4,
    controlled,
    entity_of,
    errors_of,
    exact,
    fails,
    lpm,
    optional,
    refused,
    ternary,
    update,
)

ALL = p4r.TableEntry()


def entries_of_every_kind(names: Names) -> list[p4r.TableEntry]:
    drop = names.action("drop")
    route = names.action("count_route", port=3, dst=0x0A0B0C0D0E0F)
    return [
        names.entry("mac", exact(1, 5), action=names.action("forward", port=3)),
        names.entry("mac", exact(1, 6), action=drop, metadata=b"note", idle_timeout_ns=5 * 10**9),
        names.entry("ipv4_lpm", lpm(1, 0x0A000000, 8), action=route),
        names.entry("ipv4_lpm", lpm(1, 0x0A010000, 16), action=route, controller_metadata=77),
        names.entry("ipv4_lpm", action=route),
        names.entry(
            "acl", ternary(1, 1, 3), optional(2, 6), between(3, 1, 9), action=drop, priority=2
        ),
        names.entry("acl", ternary(1, 1, 3), action=drop, priority=1),
        names.entry("acl", action=drop, priority=1),
        names.entry("exact_and_lpm", exact(1, 1), lpm(2, 0, 1), action=drop),
    ]


def tables_of(found: list[p4r.Entity]) -> list[p4r.TableEntry]:
    return [entity.table_entry for entity in found]


async def read(client: Client, query: p4r.TableEntry) -> list[p4r.TableEntry]:
    return tables_of(await client.read(entity_of(query)))


def same(left: list[p4r.TableEntry], right: list[p4r.TableEntry]) -> bool:
    def text(entries: list[p4r.TableEntry]) -> list[bytes]:
        return sorted(entry.SerializeToString(deterministic=True) for entry in entries)

    return text(left) == text(right)


@asynchronous
async def test_entries_of_every_match_kind_read_back_as_written(built: Built, names: Names) -> None:
    written = entries_of_every_kind(names)
    async with controlled(built) as (_, client):
        await client.write(*(update("INSERT", entry) for entry in written))
        found = await read(client, ALL)
        assert same([e for e in found if not e.is_const], written)
        for entry in written:
            query = p4r.TableEntry(table_id=entry.table_id, priority=entry.priority)
            query.match.extend(entry.match)
            if query.match:
                assert await read(client, query) == [entry]
        await client.write(*(update("DELETE", entry) for entry in written))
        assert all(e.is_const for e in await read(client, ALL))


@asynchronous
async def test_const_entries_are_read_and_cannot_be_changed(built: Built, names: Names) -> None:
    async with controlled(built) as (_, client):
        found = await read(client, names.entry("fixed"))
        assert [(e.match[0].exact.value, e.is_const) for e in found] == [
            (b"\x90\x00", True),
            (b"\x90\x01", True),
        ]
        entry = names.entry("fixed", exact(1, 0x9000), action=names.action("forward", port=1))
        other = names.entry("fixed", exact(1, 0x9002), action=names.action("forward", port=1))
        for bad in (update("INSERT", other), update("MODIFY", entry), update("DELETE", entry)):
            (error,) = await refused(client, bad)
            assert error.canonical_code == rpc_code.PERMISSION_DENIED


@asynchronous
async def test_defaults_are_read_when_asked_and_restored_by_an_empty_modify(
    built: Built, names: Names
) -> None:
    query = names.entry("ipv4_lpm", is_default_action=True)
    changed = names.entry("ipv4_lpm", action=names.action("count_route", port=1, dst=2))
    changed.is_default_action = True
    async with controlled(built) as (_, client):
        (original,) = await read(client, query)
        assert original.action.action == names.action("count_drop")
        await client.write(update("MODIFY", changed))
        assert await read(client, query) == [changed]
        assert not any(e.is_default_action for e in await read(client, ALL))
        everything = await read(client, p4r.TableEntry(is_default_action=True))
        assert changed in everything
        await client.write(update("MODIFY", query))
        assert await read(client, query) == [original]


@asynchronous
async def test_filters(built: Built, names: Names) -> None:
    written = entries_of_every_kind(names)
    mac6, route16, acl2 = written[1], written[3], written[5]
    async with controlled(built) as (_, client):
        await client.write(*(update("INSERT", entry) for entry in written))
        by_action = names.entry("mac")
        by_action.action.action.action_id = names.id("drop")
        cases = [
            (names.entry("acl", priority=2), [acl2]),
            (names.entry("acl", priority=3), []),
            (by_action, [mac6]),
            (names.entry("mac", metadata=b"note"), [mac6]),
            (names.entry("mac", metadata=b"other"), []),
            (names.entry("ipv4_lpm", controller_metadata=77), [route16]),
            (names.entry("mac", exact(1, 99)), []),
        ]
        for query, wanted in cases:
            assert await read(client, query) == wanted, query
        both = await read(client, names.entry("acl", ternary(1, 1, 3)))
        assert both == [written[6]], "the match is exact, whatever the priority"


@asynchronous
async def test_counters_and_idle_times_come_only_when_asked(built: Built, names: Names) -> None:
    ip = bytes.fromhex("4500001400000000400600000a0000010a000002")
    frame = bytes.fromhex("000000000005 0a0000000001 0800") + ip + bytes(30)
    route = names.entry(
        "ipv4_lpm", lpm(1, 0x0A000000, 8), action=names.action("count_route", port=2, dst=9)
    )
    async with controlled(built) as (rig, client):
        await client.write(update("INSERT", route))
        rig.send(1, frame)
        rig.send(1, frame)
        (found,) = await read(client, names.entry("ipv4_lpm"))
        assert not found.HasField("counter_data")
        query = names.entry("ipv4_lpm", counter_data=p4r.CounterData())
        (found,) = await read(client, query)
        assert found.counter_data.packet_count == 2
        assert found.counter_data.byte_count == 2 * len(frame)
        direct = p4r.DirectCounterEntry(table_entry=names.entry("ipv4_lpm", *route.match))
        (entity,) = await client.read(entity_of(direct))
        assert entity.direct_counter_entry.data.packet_count == 2
        direct.data.packet_count = 40
        await client.write(update("MODIFY", direct))
        rig.send(1, frame)
        (entity,) = await client.read(entity_of(direct))
        assert entity.direct_counter_entry.data.packet_count == 41
        mac = names.entry("mac", exact(1, 5), action=names.action("forward", port=2))
        await client.write(update("INSERT", mac))
        query = names.entry("mac", time_since_last_hit=p4r.TableEntry.IdleTimeout())
        (found,) = await read(client, query)
        assert found.HasField("time_since_last_hit")


@asynchronous
async def test_direct_meters(built: Built, names: Names) -> None:
    config = p4r.MeterConfig(cir=1, cburst=2, pir=3, pburst=4)
    entry = names.entry("acl", action=names.action("police"), priority=1, meter_config=config)
    asked = names.entry("acl", meter_config=p4r.MeterConfig())
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", entry))
        (found,) = await read(client, asked)
        assert found == entry
        (found,) = await read(client, names.entry("acl"))
        assert not found.HasField("meter_config")
        direct = p4r.DirectMeterEntry(table_entry=names.entry("acl", priority=1))
        direct.config.CopyFrom(p4r.MeterConfig(cir=5, cburst=6, pir=7, pburst=8))
        await client.write(update("MODIFY", direct))
        (entity,) = await client.read(entity_of(direct))
        assert entity.direct_meter_entry == direct
        entry.ClearField("meter_config")
        await client.write(update("MODIFY", entry))
        (found,) = await read(client, asked)
        assert not found.HasField("meter_config"), "an unset config resets the meter"


def wrong_updates(names: Names) -> list[tuple[p4r.Update, int, str]]:
    drop, forward = names.action("drop"), names.action("forward", port=1)
    unknown = p4r.Action(action_id=0x01FFFFFF)
    wide = names.action("forward", port=0x200)
    extra = names.action("forward", port=1)
    extra.params.add(param_id=2, value=b"\1")
    twice = names.action("forward", port=1)
    twice.params.add(param_id=1, value=b"\1")
    renamed = p4r.Action(action_id=names.id("forward"))
    renamed.params.add(param_id=5, value=b"\1")
    empty = p4r.Action(action_id=names.id("forward"))
    empty.params.add(param_id=1)

    def mac(action: p4r.Action, **fields: Any) -> p4r.TableEntry:
        return names.entry("mac", exact(1, 1), action=action, **fields)

    member = names.entry("mac", exact(1, 1))
    member.action.action_profile_member_id = 1
    default_only = names.entry("via_profile", exact(1, 1), action=drop)
    invalid, outside = rpc_code.INVALID_ARGUMENT, rpc_code.OUT_OF_RANGE
    return [
        (p4r.Update(), invalid, "neither INSERT, MODIFY nor DELETE"),
        (p4r.Update(type=p4r.Update.INSERT), invalid, "names no entity"),
        (update("INSERT", p4r.TableEntry()), invalid, "table id is missing"),
        (update("INSERT", p4r.TableEntry(table_id=0x02FFFFFF)), invalid, "0x02ffffff"),
        (
            update("INSERT", p4r.TableEntry(table_id=names.id("drop"))),
            invalid,
            "its prefix means action",
        ),
        (update("INSERT", names.entry("mac", exact(1, 1))), invalid, "the action is missing"),
        (update("INSERT", mac(unknown)), invalid, "is not one of its actions"),
        (
            update("INSERT", mac(wide)),
            rpc_code.OUT_OF_RANGE,
            "parameter port: 0x0200 does not fit in 9 bits",
        ),
        (update("INSERT", mac(extra)), invalid, "takes parameters 1 (port); given: 1, 2"),
        (update("INSERT", mac(twice)), invalid, "takes parameters 1 (port); given: 1, 1"),
        (update("INSERT", mac(renamed)), invalid, "takes parameters 1 (port); given: 5"),
        (update("INSERT", mac(empty)), outside, "the value is empty"),
        (update("INSERT", mac(forward, priority=1)), invalid, "the priority must be 0"),
        (update("INSERT", mac(forward, priority=-1)), invalid, "priority -1"),
        (update("INSERT", names.entry("acl", action=drop)), invalid, "a priority above 0"),
        (update("INSERT", mac(forward, idle_timeout_ns=-1)), invalid, "negative"),
        (
            update("INSERT", names.entry("acl", action=drop, priority=1, idle_timeout_ns=1)),
            invalid,
            "does not support idle timeouts",
        ),
        (
            update("INSERT", mac(forward, time_since_last_hit=p4r.TableEntry.IdleTimeout())),
            invalid,
            "cannot be written",
        ),
        (
            update("INSERT", mac(forward, counter_data=p4r.CounterData())),
            invalid,
            "no direct counter",
        ),
        (
            update("INSERT", mac(forward, meter_config=p4r.MeterConfig())),
            invalid,
            "no direct meter",
        ),
        (update("INSERT", member), invalid, "takes an action, action_profile_member_id"),
        (update("INSERT", default_only), invalid, "takes a member id"),
        (update("MODIFY", mac(forward)), rpc_code.NOT_FOUND, "hdr.ethernet.dst=0x01"),
        (update("DELETE", mac(forward)), rpc_code.NOT_FOUND, "no such entry"),
        (
            update("INSERT", names.entry("mac", action=forward, is_default_action=True)),
            invalid,
            "can only be modified",
        ),
        (
            update("MODIFY", mac(forward, is_default_action=True)),
            invalid,
            "neither match fields nor priority",
        ),
        (
            update("MODIFY", names.entry("exact_and_lpm", action=drop, is_default_action=True)),
            rpc_code.PERMISSION_DENIED,
            "its default action is const",
        ),
    ]


@asynchronous
async def test_wrong_updates_are_refused_by_name_and_the_rest_of_the_batch_is_done(
    built: Built, names: Names
) -> None:
    wrong = wrong_updates(names)
    good = [
        update("INSERT", names.entry("mac", exact(1, 100 + i), action=names.action("drop")))
        for i in range(2)
    ]
    async with controlled(built) as (_, client):
        for bad, code, message in wrong:
            error = (await refused(client, bad))[0]
            assert error.canonical_code == code, error
            assert message in error.message
        batch = [good[0], *(bad for bad, _, _ in wrong), good[1]]
        errors = await refused(client, *batch)
        wanted = [0, *(code for _, code, _ in wrong), 0]
        assert [error.canonical_code for error in errors] == wanted
        assert len(await read(client, names.entry("mac"))) == 2


@asynchronous
async def test_a_full_table_refuses_what_does_not_fit(built: Built, names: Names) -> None:
    inserts = [
        update("INSERT", names.entry("exact_and_lpm", exact(1, i), action=names.action("drop")))
        for i in range(6)
    ]
    async with controlled(built) as (_, client):
        errors = await refused(client, *inserts)
        full = rpc_code.RESOURCE_EXHAUSTED
        assert [e.canonical_code for e in errors] == [0, 0, 0, 0, full, full]
        assert len(await read(client, names.entry("exact_and_lpm"))) == 4
        await client.write(update("DELETE", inserts[0].entity.table_entry))
        await client.write(inserts[4])


@pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
def test_a_batch_may_be_all_or_nothing(built: Built, names: Names, atomicity: str) -> None:
    mode = p4r.WriteRequest.Atomicity.Value(atomicity)
    drop = names.action("drop")
    first = names.entry("exact_and_lpm", exact(1, 1), action=drop)

    def inserts(start: int, count: int) -> list[p4r.Update]:
        entries = (
            names.entry("exact_and_lpm", exact(1, start + i), action=drop) for i in range(count)
        )
        return [update("INSERT", entry) for entry in entries]

    @asynchronous
    async def scenario() -> None:
        async with controlled(built) as (_, client):
            await client.write(update("INSERT", first), atomicity=mode)
            # Refused by the checks, refused by the data plane.
            for batch, culprit, code in (
                ([*inserts(2, 1), update("INSERT", first)], 1, rpc_code.ALREADY_EXISTS),
                (inserts(10, 5), 3, rpc_code.RESOURCE_EXHAUSTED),
            ):
                errors = await refused(client, *batch, atomicity=mode)
                codes = [error.canonical_code for error in errors]
                assert codes[culprit] == code
                assert set(codes) == {code, rpc_code.ABORTED}
                assert await read(client, names.entry("exact_and_lpm")) == [first]

    scenario()


@asynchronous
async def test_a_batch_of_entries_and_cells_rolls_back_whole(built: Built, names: Names) -> None:
    cell = p4r.RegisterEntry(register_id=names.id("cells"), index=p4r.Index(index=3))
    cell.data.bitstring = b"\x07"
    entry = names.entry("mac", exact(1, 5), action=names.action("drop"))
    full = [
        names.entry("exact_and_lpm", exact(1, n), action=names.action("drop")) for n in range(5)
    ]
    rollback = p4r.WriteRequest.ROLLBACK_ON_ERROR
    one_step = p4r.WriteRequest.DATAPLANE_ATOMIC
    async with controlled(built) as (_, client):
        batch = [update("MODIFY", cell), update("INSERT", entry)]
        errors = await refused(
            client, *batch, *(update("INSERT", e) for e in full), atomicity=rollback
        )
        assert errors[-1].canonical_code == rpc_code.RESOURCE_EXHAUSTED
        assert {e.canonical_code for e in errors[:-1]} == {rpc_code.ABORTED}
        (found,) = await client.read(entity_of(cell))
        assert found.register_entry.data.bitstring == b"\0"
        assert await read(client, names.entry("mac")) == []
        error = await fails(client.write(*batch, atomicity=one_step))
        assert error.code() == grpc.StatusCode.UNIMPLEMENTED
        assert await read(client, names.entry("mac")) == []
        await client.write(*batch, atomicity=rollback)
        (found,) = await client.read(entity_of(cell))
        assert found.register_entry == cell
        await client.write(batch[0], atomicity=one_step)


@asynchronous
async def test_updates_of_one_batch_see_each_other(built: Built, names: Names) -> None:
    entry = names.entry("mac", exact(1, 5), action=names.action("forward", port=1))
    changed = names.entry("mac", exact(1, 5), action=names.action("forward", port=2))
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", entry), update("MODIFY", changed))
        assert await read(client, names.entry("mac")) == [changed]
        await client.write(update("DELETE", entry), update("INSERT", entry))
        assert await read(client, names.entry("mac")) == [entry]


@asynchronous
async def test_a_modify_without_an_action_keeps_it(built: Built, names: Names) -> None:
    entry = names.entry("mac", exact(1, 5), action=names.action("forward", port=1), metadata=b"a")
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", entry))
        await client.write(update("MODIFY", names.entry("mac", exact(1, 5), metadata=b"b")))
        entry.metadata = b"b"
        assert await read(client, names.entry("mac")) == [entry]


@asynchronous
async def test_a_bad_query_is_told_apart_from_the_good_ones(built: Built, names: Names) -> None:
    async with controlled(built) as (_, client):
        bad = p4r.TableEntry(table_id=0x02FFFFFF)
        error = await fails(client.read(entity_of(ALL), entity_of(bad), p4r.Entity()))
        assert error.details().startswith("2 of 3 failed: query 1: INVALID_ARGUMENT")
        assert [e.canonical_code == 0 for e in errors_of(error)] == [True, False, False]
        error = await fails(client.read(entity_of(p4r.TableEntry(match=[exact(1, 1)]))))
        assert "cannot be filtered" in error.details()


@asynchronous
async def test_asking_for_counters_a_table_does_not_have_is_harmless(
    built: Built, names: Names
) -> None:
    entry = names.entry("mac", exact(1, 5), action=names.action("drop"))
    query = names.entry("mac", counter_data=p4r.CounterData(), meter_config=p4r.MeterConfig())
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", entry))
        assert await read(client, query) == [entry]


@asynchronous
async def test_packets_obey(built: Built, names: Names) -> None:
    frame = bytes.fromhex("000000000005 0a0000000001 1234") + bytes(46)
    entry = names.entry("mac", exact(1, 5), action=names.action("forward", port=2))
    async with controlled(built) as (rig, client):
        await client.write(update("INSERT", entry))
        assert rig.send(1, frame) == [(2, frame)]
        moved = names.entry("mac", exact(1, 5), action=names.action("forward", port=3))
        await client.write(update("MODIFY", moved))
        assert rig.send(1, frame) == [(3, frame)]


@asynchronous
async def test_const_entries_count_down_from_the_first(tmp_path: Path) -> None:
    ranked = compile_p4(HERE / "ranked.p4", tmp_path)
    names = Names(ranked.info)
    query = names.entry("ranked", counter_data=p4r.CounterData())
    async with controlled(ranked) as (rig, client):
        for value, port in ((1, 1), (3, 2), (3, 2), (2, 3)):
            assert rig.send(1, bytes([value]) * 60) == [(port, bytes([value]) * 60)]
        seen = {e.priority: e.counter_data.packet_count for e in await read(client, query)}
        assert seen == {3: 1, 2: 2, 1: 1}
        middle = names.entry("ranked", ternary(1, 1, 1), priority=2)
        reset = p4r.DirectCounterEntry(table_entry=middle, data=p4r.CounterData(packet_count=9))
        await client.write(update("MODIFY", reset))
        (entity,) = await client.read(entity_of(reset))
        assert entity.direct_counter_entry.data.packet_count == 9
        query.priority = 2
        (found,) = await read(client, query)
        assert found.counter_data.packet_count == 9

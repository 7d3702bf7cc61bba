"""Members, groups and one-shots."""

from typing import Any

import pytest
from finsy.proto import p4r, rpc_code

from .rig import (
    Built,
    Client,
    Names,
    asynchronous,
    controlled,
    entity_of,
    exact,
    refused,
    update,
)

IP = bytes.fromhex("4500001400000000400600000a0000010a000002")
FRAME = bytes.fromhex("000000000005 0a0000000001 0800") + IP + bytes(30)


class Profile:
    """Builds messages about one action profile."""

    def __init__(self, names: Names, alias: str) -> None:
        self._names = names
        self.id = names.id(alias)

    def member(self, member_id: int, port: int | None = None) -> p4r.ActionProfileMember:
        member = p4r.ActionProfileMember(action_profile_id=self.id, member_id=member_id)
        if port is not None:
            member.action.CopyFrom(self._names.action("route", port=port, dst=0x99))
        return member

    def group(self, group_id: int, *members: Any, max_size: int = 0) -> p4r.ActionProfileGroup:
        group = p4r.ActionProfileGroup(
            action_profile_id=self.id, group_id=group_id, max_size=max_size
        )
        for member in members:
            group.members.add(**member)
        return group


def by_member(names: Names, member_id: int, key: int = 0) -> p4r.TableEntry:
    entry = names.entry("via_profile", exact(1, key))
    entry.action.action_profile_member_id = member_id
    return entry


def by_group(names: Names, group_id: int, key: int = 6) -> p4r.TableEntry:
    entry = names.entry("via_selector", exact(1, key))
    entry.action.action_profile_group_id = group_id
    return entry


def one_shot(names: Names, *ports: int, key: int = 6, **fields: Any) -> p4r.TableEntry:
    entry = names.entry("via_selector", exact(1, key))
    for port in ports:
        entry.action.action_profile_action_set.action_profile_actions.add(
            action=names.action("route", port=port, dst=0x99), weight=1, **fields
        )
    return entry


async def read(client: Client, query: Any) -> list[Any]:
    found = await client.read(entity_of(query))
    return [getattr(entity, entity.WhichOneof("entity")) for entity in found]


@asynchronous
async def test_members_and_groups_read_back_as_written(built: Built, names: Names) -> None:
    ways, paths = Profile(names, "ways"), Profile(names, "paths")
    members = [ways.member(1, port=1), ways.member(0xFFFF, port=2), paths.member(1, port=3)]
    group = ways.group(
        1,
        {"member_id": 1, "weight": 2, "watch_port": b"\x01"},
        {"member_id": 0xFFFF, "weight": 1, "watch": 2},
        max_size=9,
    )
    async with controlled(built) as (_, client):
        await client.write(*(update("INSERT", member) for member in members))
        await client.write(update("INSERT", group))
        assert await read(client, p4r.ActionProfileMember()) == [members[2], *members[:2]]
        assert await read(client, p4r.ActionProfileMember(action_profile_id=ways.id)) == members[:2]
        assert await read(client, ways.member(0xFFFF)) == [members[1]]
        assert await read(client, p4r.ActionProfileGroup()) == [group]
        del group.members[1]
        await client.write(update("MODIFY", group))
        assert await read(client, ways.group(1)) == [group]
        await client.write(update("DELETE", ways.group(1)), update("DELETE", ways.member(1)))
        assert await read(client, p4r.ActionProfileGroup()) == []


@asynchronous
async def test_packets_follow_members_and_their_changes(built: Built, names: Names) -> None:
    paths = Profile(names, "paths")
    async with controlled(built) as (rig, client):
        await client.write(update("INSERT", paths.member(1, port=2)))
        await client.write(update("INSERT", by_member(names, 1)))
        ((port, frame),) = rig.send(1, FRAME)
        assert (port, frame[:6].hex()) == (2, "000000000099")
        await client.write(update("MODIFY", paths.member(1, port=3)))
        ((port, _),) = rig.send(1, FRAME)
        assert port == 3
        (found,) = await read(client, names.entry("via_profile"))
        assert found == by_member(names, 1)


@asynchronous
async def test_what_is_used_cannot_be_deleted(built: Built, names: Names) -> None:
    ways = Profile(names, "ways")
    member, group = ways.member(1, port=1), ways.group(1, {"member_id": 1, "weight": 1})
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", member), update("INSERT", group))
        await client.write(update("INSERT", by_group(names, 1)))
        for used in (member, group):
            (error,) = await refused(client, update("DELETE", used))
            assert error.canonical_code == rpc_code.FAILED_PRECONDITION
        await client.write(
            update("DELETE", by_group(names, 1)), update("DELETE", group), update("DELETE", member)
        )
        assert await read(client, p4r.ActionProfileMember()) == []


@asynchronous
async def test_one_shots_read_back_as_written_and_leave_nothing_behind(
    built: Built, names: Names
) -> None:
    first, second = one_shot(names, 2, 2, watch_port=b"\x02"), one_shot(names, 3)
    async with controlled(built) as (rig, client):
        await client.write(update("INSERT", first))
        assert await read(client, names.entry("via_selector")) == [first]
        assert await read(client, p4r.ActionProfileMember()) == []
        ((port, _),) = rig.send(1, FRAME)
        assert port == 2
        await client.write(update("MODIFY", second))
        assert await read(client, names.entry("via_selector")) == [second]
        ((port, _),) = rig.send(1, FRAME)
        assert port == 3
        await client.write(update("DELETE", second))
        # Far more one-shots than the selector has members: each must have freed its own.
        for _ in range(100):
            await client.write(update("INSERT", first))
            await client.write(update("DELETE", first))
        assert await read(client, names.entry("via_selector")) == []


@asynchronous
async def test_one_shots_and_members_do_not_mix(built: Built, names: Names) -> None:
    ways = Profile(names, "ways")
    async with controlled(built) as (_, client):
        await client.write(update("INSERT", one_shot(names, 1)))
        (error,) = await refused(client, update("INSERT", ways.member(1, port=1)))
        assert error.canonical_code == rpc_code.INVALID_ARGUMENT
        await client.write(update("DELETE", one_shot(names)))
        await client.write(update("INSERT", ways.member(1, port=1)))
        (error,) = await refused(client, update("INSERT", one_shot(names, 1)))
        assert error.canonical_code == rpc_code.INVALID_ARGUMENT


@asynchronous
async def test_packets_spread_over_a_group_by_weight(built: Built, names: Names) -> None:
    ways = Profile(names, "ways")
    seats = [{"member_id": 1, "weight": 3}, {"member_id": 2, "weight": 1}]
    async with controlled(built) as (rig, client):
        await client.write(
            update("INSERT", ways.member(1, port=2)), update("INSERT", ways.member(2, port=3))
        )
        await client.write(update("INSERT", ways.group(1, *seats)))
        await client.write(update("INSERT", by_group(names, 1)))
        counts = {2: 0, 3: 0}
        for flow in range(400):
            frame = bytearray(FRAME)
            frame[26:30] = (0x0A000000 + flow * 7919).to_bytes(4, "big")
            ((port, _),) = rig.send(1, bytes(frame))
            counts[port] += 1
        assert counts[2] > 2 * counts[3] > 0


@pytest.mark.parametrize("verb", ["INSERT", "MODIFY", "DELETE"])
def test_wrong_members_and_groups_are_refused(built: Built, names: Names, verb: str) -> None:
    ways, paths = Profile(names, "ways"), Profile(names, "paths")
    invalid, missing = rpc_code.INVALID_ARGUMENT, rpc_code.NOT_FOUND
    wide = rpc_code.OUT_OF_RANGE
    unknown = p4r.ActionProfileMember(action_profile_id=0x11FFFFFF, member_id=1)
    seat = {"member_id": 1, "weight": 1}
    cases: dict[str, list[tuple[Any, int]]] = {
        "INSERT": [
            (unknown, invalid),
            (ways.member(0, port=1), invalid),
            (ways.member(1, port=1), rpc_code.ALREADY_EXISTS),
            (ways.member(2), invalid),
            (paths.group(1), invalid),
            (ways.group(0), invalid),
            (ways.group(1), rpc_code.ALREADY_EXISTS),
            (ways.group(2, {"member_id": 9, "weight": 1}), missing),
            (ways.group(2, seat, seat), invalid),
            (ways.group(2, {"member_id": 1, "weight": 0}), invalid),
            (ways.group(2, {"member_id": 1, "weight": -1}), invalid),
            (ways.group(2, {"member_id": 1, "weight": 5}, max_size=4), rpc_code.RESOURCE_EXHAUSTED),
            (ways.group(2, {"member_id": 1, "weight": 1, "watch_port": b"\xff" * 5}), wide),
            (ways.group(2, {"member_id": 1, "weight": 1, "watch": -2}), invalid),
            (by_member(names, 5, key=1), missing),
            (by_group(names, 5, key=1), missing),
        ],
        "MODIFY": [
            (ways.member(2, port=1), missing),
            (ways.group(2), missing),
            (ways.group(1, seat, max_size=5), invalid),
        ],
        "DELETE": [(ways.member(2), missing), (ways.group(2), missing), (ways.member(0), invalid)],
    }

    @asynchronous
    async def scenario() -> None:
        async with controlled(built) as (_, client):
            await client.write(update("INSERT", ways.member(1, port=1)))
            await client.write(update("INSERT", ways.group(1)))
            for message, code in cases[verb]:
                (error,) = await refused(client, update(verb, message))
                assert error.canonical_code == code, (message, error)

    scenario()


@asynchronous
async def test_a_profile_holds_as_many_members_as_it_says(built: Built, names: Names) -> None:
    paths = Profile(names, "paths")
    inserts = [update("INSERT", paths.member(n, port=1)) for n in range(1, 10)]
    async with controlled(built) as (_, client):
        errors = await refused(client, *inserts)
        assert [e.canonical_code for e in errors] == [0] * 8 + [rpc_code.RESOURCE_EXHAUSTED]


@asynchronous
async def test_members_stand_aside_while_their_watched_port_is_down(
    built: Built, names: Names
) -> None:
    ways = Profile(names, "ways")
    seats = [
        {"member_id": 1, "weight": 1, "watch_port": b"\x02"},
        {"member_id": 2, "weight": 1, "watch_port": b"\x03"},
    ]
    async with controlled(built) as (rig, client):
        await client.write(
            update("INSERT", ways.member(1, port=2)), update("INSERT", ways.member(2, port=3))
        )
        await client.write(update("INSERT", ways.group(1, *seats)))
        await client.write(update("INSERT", by_group(names, 1)))

        def ports_used() -> set[int]:
            used = set()
            for flow in range(40):
                frame = bytearray(FRAME)
                frame[26:30] = (0x0A000000 + flow * 7919).to_bytes(4, "big")
                used |= {port for port, _ in rig.send(1, bytes(frame))}
            return used

        assert ports_used() == {2, 3}
        rig.plane.set_port_up(2, False)
        assert ports_used() == {3}
        rig.plane.set_port_up(2, True)
        assert ports_used() == {2, 3}

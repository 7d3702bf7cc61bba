"""Roles: what each may write and read, and of what it is told, by the program and by its config."""

from __future__ import annotations

import asyncio
import random
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from finsy.proto import p4d, p4r, rpc_code
from finsy.proto.stratum1.p4_role_config_pb2 import P4RoleConfig

from switch.p4runtime.arbitration import Arbiter, Stream
from switch.p4runtime.errors import RequestError
from tests.waiting import LONG_S

from .rig import (
    DEVICE_ID,
    HERE,
    Built,
    Client,
    Names,
    asynchronous,
    compile_p4,
    exact,
    fails,
    octets,
    refused,
    running,
    update,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from google.protobuf.message import Message

    from .rig import Rig

# Who owns what, as roles.p4 says; the default role has everything.
OWNERS = {
    "routes": {"routing"},
    "acl": {"routing", "policy"},
    "groups": {"routing"},
    "detours": {"policy"},
    "plain": set(),
    "ways": {"routing"},
    "spares": {"policy"},
    "passed": {"routing", "policy"},
    "rate": {"policy"},
    "last": {"learning"},
    "punted": {"policy"},
    "seen_t": {"learning"},
}
ROLES = ["", "routing", "policy", "learning", "unheard-of"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return compile_p4(HERE / "roles.p4", tmp_path_factory.mktemp("roles"))


@asynccontextmanager
async def clients(
    built: Built, configs: dict[str, P4RoleConfig | None]
) -> AsyncIterator[tuple[Rig, dict[str, Client]]]:
    """A primary of every role; the default role's sets the pipeline first."""
    async with running() as rig:
        found = {role: Client(rig.address, role=role) for role in configs}
        try:
            for role, config in configs.items():
                await bid(found[role], config)
                if not role:
                    await found[""].set_pipeline(built.config)
            yield rig, found
        finally:
            for client in found.values():
                await client.close()


async def bid(client: Client, config: Message | None) -> p4r.MasterArbitrationUpdate:
    arbitration = client.arbitration()
    if config is not None:
        arbitration.role.config.Pack(config)
    await client.stream.write(p4r.StreamMessageRequest(arbitration=arbitration))
    return (await client.next("arbitration")).arbitration


async def heard(client: Client, wanted: set[str]) -> set[str]:
    """The kinds of what a controller was sent: what it must be, and more if there is more."""
    kinds: set[str] = set()
    while not wanted <= kinds:
        message = await asyncio.wait_for(client.inbox.get(), LONG_S)
        kinds.add(message.WhichOneof("update") or "")
    # The answer to nonsense comes after all that is on its way by now.
    await client.stream.write(p4r.StreamMessageRequest())
    while "error" not in kinds:
        message = await asyncio.wait_for(client.inbox.get(), LONG_S)
        kinds.add(message.WhichOneof("update") or "")
    return kinds & {"packet", "digest"}


def sample(names: Names, target: str, key: int) -> tuple[str, Any]:
    """A write that is right but for who sends it."""
    send = names.action("send", port=1)
    match target:
        case "routes" | "acl" | "plain":
            return "INSERT", names.entry(target, exact(1, key), action=send)
        case "groups":
            entry = names.entry(target, exact(1, key))
            shot = entry.action.action_profile_action_set.action_profile_actions
            shot.add(action=send, weight=1)
            return "INSERT", entry
        case "detours":
            # Of a member that is not there: who may write hears so, nobody else.
            entry = names.entry(target, exact(1, key))
            entry.action.action_profile_member_id = 1
            return "INSERT", entry
        case "ways" | "spares":
            profile = names.id(target)
            return "INSERT", p4r.ActionProfileMember(
                action_profile_id=profile, member_id=key + 1, action=send
            )
        case "passed":
            index = p4r.Index(index=key % 8)
            data = p4r.CounterData(packet_count=key)
            return "MODIFY", p4r.CounterEntry(counter_id=names.id(target), index=index, data=data)
        case "rate":
            return "MODIFY", p4r.MeterEntry(meter_id=names.id(target))
        case "last":
            data = p4d.P4Data(bitstring=octets(key))
            return "MODIFY", p4r.RegisterEntry(register_id=names.id(target), data=data)
        case "punted":
            return "MODIFY", p4r.ValueSetEntry(value_set_id=names.id(target))
        case _:
            assert target == "seen_t"
            return "INSERT", p4r.DigestEntry(digest_id=names.id(target))


@asynchronous
async def test_each_role_writes_what_the_program_gives_it(built: Built) -> None:
    names = Names(built.info)
    draw = random.Random(15)
    async with clients(built, dict.fromkeys(ROLES)) as (_, by_role):
        keys = iter(range(200))
        for _ in range(150):
            role, target = draw.choice(ROLES), draw.choice(list(OWNERS))
            verb, entity = sample(names, target, next(keys))
            try:
                await by_role[role].write(update(verb, entity))
                allowed = True
            except grpc.aio.AioRpcError as error:
                assert error.code() == grpc.StatusCode.UNKNOWN
                allowed = "PERMISSION_DENIED" not in (error.details() or "")
            assert allowed is (not role or role in OWNERS[target]), (role, target)


@asynchronous
async def test_an_action_may_be_a_roles_alone(built: Built) -> None:
    names = Names(built.info)
    async with clients(built, dict.fromkeys(ROLES)) as (_, by_role):
        punt = names.entry("acl", exact(1, 1), action=names.action("punt"))
        good = names.entry("acl", exact(1, 2), action=names.action("send", port=1))
        errors = await refused(by_role["routing"], update("INSERT", punt), update("INSERT", good))
        codes = [error.canonical_code for error in errors]
        assert codes == [rpc_code.PERMISSION_DENIED, rpc_code.OK]
        assert "punt" in errors[0].message or f"{names.id('punt'):#010x}" in errors[0].message
        await by_role["policy"].write(update("INSERT", punt))
        await by_role[""].write(update("DELETE", punt))


@asynchronous
async def test_groups_of_copies_are_for_roles_without_limits(built: Built) -> None:
    session = p4r.CloneSessionEntry(session_id=5)
    session.replicas.add(egress_port=1, instance=1)
    async with clients(built, dict.fromkeys(ROLES)) as (_, by_role):
        for role in ROLES[1:]:
            (error,) = await refused(by_role[role], update("INSERT", session))
            assert error.canonical_code == rpc_code.PERMISSION_DENIED
        await by_role[""].write(update("INSERT", session))


@asynchronous
async def test_a_read_in_a_role_shows_what_belongs_to_it(built: Built) -> None:
    names = Names(built.info)
    tables = ["routes", "acl", "plain"]
    async with clients(built, dict.fromkeys(ROLES)) as (_, by_role):
        for table in tables:
            await by_role[""].write(update(*sample(names, table, 3)))
        for role in ROLES:
            request = p4r.ReadRequest(device_id=DEVICE_ID, role=role)
            request.entities.add().table_entry.SetInParent()
            request.entities.add().counter_entry.SetInParent()
            stream = by_role[role].stub.Read(request)
            found = [e async for answer in stream for e in answer.entities]
            seen = {e.table_entry.table_id for e in found if e.HasField("table_entry")}
            mine = {t for t in tables if not role or role in OWNERS[t]}
            assert seen == {names.id(t) for t in mine}, role
            cells = sum(e.HasField("counter_entry") for e in found)
            assert cells == (8 if not role or role in OWNERS["passed"] else 0)


@asynchronous
async def test_packets_and_digests_go_to_their_roles(built: Built) -> None:
    names = Names(built.info)
    async with clients(built, dict.fromkeys(ROLES)) as (rig, by_role):
        punt = names.entry("acl", exact(1, 9), action=names.action("punt"))
        digest = p4r.DigestEntry(digest_id=names.id("seen_t"))
        digest.config.max_list_size = 1
        await by_role[""].write(update("INSERT", punt), update("INSERT", digest))
        rig.send(2, b"\x09rest")
        wanted: dict[str, set[str]] = {
            "": {"packet", "digest"},
            "policy": {"packet"},
            "learning": {"digest"},
            "routing": set(),
            "unheard-of": set(),
        }
        kinds_heard = {role: await heard(by_role[role], kinds) for role, kinds in wanted.items()}
        assert kinds_heard == wanted
        out = p4r.PacketOut(payload=b"\x01")
        out.metadata.add(metadata_id=1, value=b"\x02")
        out.metadata.add(metadata_id=2, value=b"\x00")
        for role, client in by_role.items():
            await client.stream.write(p4r.StreamMessageRequest(packet=out))
            if role not in ("", "policy"):
                error = (await client.next("error")).error
                assert error.canonical_code == rpc_code.PERMISSION_DENIED
                assert error.HasField("packet_out")
        ack = p4r.DigestListAck(digest_id=digest.digest_id, list_id=1)
        await by_role["routing"].stream.write(p4r.StreamMessageRequest(digest_ack=ack))
        error = (await by_role["routing"].next("error")).error
        assert error.canonical_code == rpc_code.PERMISSION_DENIED


@asynchronous
async def test_a_program_that_names_no_roles_is_everybodys(tmp_path: Any) -> None:
    plain = compile_p4(HERE / "translated.p4", tmp_path)
    async with clients(plain, dict.fromkeys(["", "any"])) as (_, by_role):
        session = p4r.CloneSessionEntry(session_id=5)
        session.replicas.add(egress_port=1, instance=1)
        await by_role["any"].write(update("INSERT", session))
        await by_role["any"].set_pipeline(plain.config)


# Configs of Stratum's kind


@asynchronous
async def test_a_config_says_what_a_role_may_write_hear_and_set(built: Built) -> None:
    names = Names(built.info)
    mine = P4RoleConfig(exclusive_p4_ids=[names.id("plain")], shared_p4_ids=[names.id("acl")])
    mine.receives_packet_ins = True
    mine.packet_in_filter.metadata_id = 1
    mine.packet_in_filter.value = b"\x03"
    async with clients(built, {"": None, "routing": None, "mine": mine}) as (rig, by_role):
        writes = {t: update(*sample(names, t, 1)) for t in ("plain", "acl", "routes")}
        await by_role["mine"].write(writes["plain"], writes["acl"])
        (error,) = await refused(by_role["mine"], writes["routes"])
        assert error.canonical_code == rpc_code.PERMISSION_DENIED
        # What is its own nobody else may write; what is shared anybody may.
        (error,) = await refused(by_role[""], update(*sample(names, "plain", 2)))
        assert error.canonical_code == rpc_code.PERMISSION_DENIED
        await by_role[""].write(update(*sample(names, "acl", 2)))
        error = await fails(by_role["mine"].set_pipeline(built.config))
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        punt = names.entry("acl", exact(1, 9), action=names.action("punt"))
        await by_role[""].write(update("INSERT", punt))
        rig.send(2, b"\x09two")
        rig.send(3, b"\x09three")
        packet = (await by_role["mine"].next("packet")).packet
        assert packet.payload == b"\x09three"
        # Gone with the role.
        await by_role["mine"].close()
        for key in range(3, 60):
            try:
                await by_role[""].write(update(*sample(names, "plain", key)))
                break
            except grpc.aio.AioRpcError:
                continue
        else:
            pytest.fail("what a role has to itself outlives it")


def bid_of(role: str, config: Message | None) -> p4r.MasterArbitrationUpdate:
    message = p4r.MasterArbitrationUpdate(device_id=1)
    message.election_id.low = 1
    message.role.name = role
    if config is not None:
        message.role.config.Pack(config)
    return message


def test_a_config_of_another_kind_is_refused() -> None:
    arbiter = Arbiter(1)
    with pytest.raises(RequestError, match=r"p4\.v1\.Index.*stratum\.P4RoleConfig") as caught:
        arbiter.bid(Stream(lambda _: None), bid_of("a", p4r.Index(index=1)))
    assert caught.value.code == rpc_code.INVALID_ARGUMENT
    torn = bid_of("a", P4RoleConfig(exclusive_p4_ids=[1]))
    torn.role.config.value = b"\xff\xff"
    with pytest.raises(RequestError) as caught:
        arbiter.bid(Stream(lambda _: None), torn)
    assert caught.value.code == rpc_code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (P4RoleConfig(exclusive_p4_ids=[7]), P4RoleConfig(exclusive_p4_ids=[7, 8])),
        (P4RoleConfig(exclusive_p4_ids=[7]), P4RoleConfig(shared_p4_ids=[7])),
        (P4RoleConfig(shared_p4_ids=[7]), P4RoleConfig(exclusive_p4_ids=[7])),
    ],
)
def test_two_roles_cannot_have_the_same_object_to_themselves(
    first: P4RoleConfig, second: P4RoleConfig
) -> None:
    arbiter = Arbiter(1)
    one = Stream(lambda _: None)
    arbiter.bid(one, bid_of("a", first))
    with pytest.raises(RequestError, match="0x00000007") as caught:
        arbiter.bid(Stream(lambda _: None), bid_of("b", second))
    assert caught.value.code == rpc_code.INVALID_ARGUMENT
    arbiter.leave(one)
    arbiter.bid(Stream(lambda _: None), bid_of("b", second))

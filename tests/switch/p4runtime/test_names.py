"""Translated types: what clients see in place of the program's numbers, in entries and packets."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import grpc
import pytest
from finsy.proto import p4r, p4t, rpc_code

from switch import dataplane as dp
from switch.p4runtime.device import Device
from switch.p4runtime.errors import RequestError
from switch.p4runtime.names import Names
from switch.p4runtime.pipeline import Pipeline
from switch.shims.console import Console

from .rig import (
    HERE,
    Built,
    asynchronous,
    compile_p4,
    controlled,
    entity_of,
    errors_of,
    refused,
    update,
)
from .rig import Names as Ids
from .test_entities import settle


@pytest.fixture(scope="module")
def translated(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return compile_p4(HERE / "translated.p4", tmp_path_factory.mktemp("translated"))


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return compile_p4(HERE / "routed.p4", tmp_path_factory.mktemp("routed"))


def test_switches_made_anew_share_what_gives_no_names(built: Built, translated: Built) -> None:
    """Of the same program; of one that gives names each decides its own."""

    def pipeline(of: Built, before: Pipeline | None = None) -> Pipeline:
        made = Device(1, dp.Dataplane("s"))
        return made.build_now(of.config.p4info, of.json.read_bytes(), before, soon=False)

    first = pipeline(built)
    assert pipeline(built, first) is first
    named = pipeline(translated, first)
    assert named.program.source == translated.json.read_bytes()
    assert pipeline(translated, named) is not named


def text(field: int, value: bytes) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field, exact=p4r.FieldMatch.Exact(value=value))


def call(ids: Ids, alias: str, *values: bytes) -> p4r.Action:
    params = [p4r.Action.Param(param_id=i, value=v) for i, v in enumerate(values, 1)]
    return p4r.Action(action_id=ids.id(alias), params=params)


def test_digits_are_numbers_and_others_get_what_is_free() -> None:
    names = Names("port_t")
    assert names.number(b"17", 9, "") == 17
    assert names.number(b"", 9, "") == 0
    given = [names.number(name, 9, "") for name in (b"Ethernet0", b"Ethernet4", b"017", b"-1")]
    assert len({17, 0, *given}) == 6
    assert all(0 <= number < 512 for number in given)
    assert [names.number(n, 9, "") for n in (b"Ethernet0", b"017")] == [given[0], given[2]]
    assert [names.text(n) for n in (17, 0, given[1], 300)] == [b"17", b"", b"Ethernet4", b"300"]


@pytest.mark.parametrize("value", [b"512", b"\xff", b"a" * 5000])
def test_what_no_number_can_be_given_to_is_refused(value: bytes) -> None:
    with pytest.raises(RequestError):
        Names("port_t").number(value, 9, "")


def test_names_run_out_with_the_width() -> None:
    names = Names("tiny_t")
    for index in range(4):
        names.number(b"name %d" % index, 2, "")
    with pytest.raises(RequestError, match="have names already"):
        names.number(b"one more", 2, "")


@asynchronous
async def test_entries_speak_in_names_and_read_back_the_same(translated: Built) -> None:
    ids = Ids(translated.info)
    async with controlled(translated) as (rig, client):
        entries = [
            ids.entry("vrfs", text(1, b"1"), action=call(ids, "set_vrf", b"blue")),
            ids.entry("routes", text(1, b"blue"), action=call(ids, "send", b"2"), priority=1),
            ids.entry("routes", text(1, b""), action=call(ids, "send", b"3"), priority=1),
        ]
        await client.write(*(update("INSERT", e) for e in entries))
        found = [e.table_entry for e in await client.read(entity_of(p4r.TableEntry()))]
        assert sorted(map(str, found)) == sorted(map(str, entries))
        assert rig.send(1, b"\x07") == [(2, b"\x07")]
        assert rig.send(2, b"\x07") == [(3, b"\x07")]
        # The same names, the same numbers, after the pipeline was set anew.
        await client.set_pipeline(translated.config, "RECONCILE_AND_COMMIT")
        again = [e.table_entry for e in await client.read(entity_of(p4r.TableEntry()))]
        assert sorted(map(str, again)) == sorted(map(str, entries))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            bad = ids.entry("vrfs", text(1, b"512"), action=call(ids, "set_vrf", b"blue"))
            await client.write(update("INSERT", bad))
        assert [e.canonical_code for e in errors_of(refused.value)] == [rpc_code.OUT_OF_RANGE]
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.write(update("INSERT", entries[1]))
        (there,) = errors_of(refused.value)
        assert there.canonical_code == rpc_code.ALREADY_EXISTS
        assert "='blue', priority=1" in there.message


@asynchronous
async def test_packets_carry_names_in_headers_of_the_programs_width(translated: Built) -> None:
    async with controlled(translated) as (rig, client):
        rig.send(3, b"\x09rest")
        packet = (await client.next("packet")).packet
        assert packet.payload == b"\x09rest"
        assert [(m.metadata_id, m.value) for m in packet.metadata] == [
            (1, b"3"),
            (2, b"\x03"),
            (3, b"\x00"),
        ]
        out = p4r.PacketOut(payload=b"\x08")
        out.metadata.add(metadata_id=1, value=b"2")
        out.metadata.add(metadata_id=2, value=b"\x00")
        await client.stream.write(p4r.StreamMessageRequest(packet=out))
        await settle(client)
        rig.plane.service(2_000)
        assert [(port, data) for port, data, _ in rig.plane.outputs()] == [(2, b"\x08")]


@asynchronous
async def test_bits_that_fill_up_a_byte_need_no_metadata(translated: Built) -> None:
    config = translated.config
    (packet_in,) = (
        header
        for header in config.p4info.controller_packet_metadata
        if header.preamble.name == "packet_in"
    )
    assert packet_in.metadata.pop().name == "pad"
    async with controlled(translated) as (rig, client):
        await client.set_pipeline(config)
        rig.send(3, b"\x09rest")
        packet = (await client.next("packet")).packet
        assert packet.payload == b"\x09rest"
        assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"3"), (2, b"\x03")]


@pytest.mark.parametrize("sdn", ["string", "nothing"])
def test_what_a_program_declares_and_never_sends_is_cut_off_no_packet(
    sdn: str, tmp_path: Path
) -> None:
    source = (HERE / "routed.p4").read_text()
    source = source.replace("port_t meant_for;", "port_t meant_for; bit<6> pad;")
    source = source.replace("packet_out_t from_cpu;", "packet_in_t to_cpu; packet_out_t from_cpu;")
    if sdn == "nothing":
        source = source.replace('@p4runtime_translation("", string)', "")
    (tmp_path / "silent.p4").write_text(source)
    silent = compile_p4(tmp_path / "silent.p4", tmp_path)

    @asynchronous
    async def scenario() -> None:
        async with controlled(silent) as (rig, client):
            rig.send(1, frame(7))
            packet = (await client.next("packet")).packet
            assert (packet.payload, list(packet.metadata)) == (frame(7), [])

    scenario()


@asynchronous
async def test_registers_and_digests_speak_in_names(translated: Built) -> None:
    ids = Ids(translated.info)

    def cell(alias: str, value: bytes) -> p4r.RegisterEntry:
        entry = p4r.RegisterEntry(register_id=ids.id(alias), index=p4r.Index(index=2))
        entry.data.bitstring = value
        return entry

    async with controlled(translated) as (rig, client):
        await client.write(
            update("INSERT", ids.entry("vrfs", text(1, b"3"), action=call(ids, "set_vrf", b"red"))),
            update("MODIFY", cell("came_by", b"Ethernet8")),
            update("MODIFY", cell("came_by_wide", b"\x01\x02")),
        )
        digest = p4r.DigestEntry(digest_id=ids.id("seen_t"))
        digest.config.max_list_size = 1
        await client.write(update("INSERT", digest))
        rig.send(3, b"\x09")
        sample = (await client.next("digest")).digest.data[0].struct.members
        assert [m.bitstring for m in sample] == [b"3", b"\x03", b"red", b"\x09"]
        cells = {
            alias: [
                e.register_entry.data.bitstring
                for e in await client.read(entity_of(p4r.RegisterEntry(register_id=ids.id(alias))))
            ]
            for alias in ("came_by", "came_by_wide")
        }
        # A number nobody named is told in digits.
        assert cells["came_by"][1:3] == [b"3", b"Ethernet8"]
        assert cells["came_by_wide"][1:3] == [b"\x03", b"\x01\x02"]
        for alias, value in (("came_by", b"512"), ("came_by_wide", b"\x02\0")):
            (error,) = await refused(client, update("MODIFY", cell(alias, value)))
            assert error.canonical_code == rpc_code.OUT_OF_RANGE, error


def test_the_default_action_is_told_as_clients_see_it(translated: Built) -> None:
    vrfs = next(t for t in translated.info.tables if t.preamble.alias == "vrfs")
    (argument,) = vrfs.initial_default_action.arguments
    assert (argument.param_id, argument.value) == (1, b"0")


@asynchronous
async def test_a_default_can_be_written_and_put_back_as_p4info_tells_it(translated: Built) -> None:
    ids = Ids(translated.info)
    vrfs = next(t for t in translated.info.tables if t.preamble.alias == "vrfs")
    default_call = call(ids, "set_vrf", vrfs.initial_default_action.arguments[0].value)
    default = p4r.TableEntry(table_id=ids.id("vrfs"), is_default_action=True)
    async with controlled(translated) as (_, client):

        async def now() -> p4r.Action:
            (found,) = await client.read(entity_of(default))
            return found.table_entry.action.action

        assert await now() == default_call
        default.action.action.CopyFrom(call(ids, "set_vrf", b"green"))
        await client.write(update("MODIFY", default))
        default.ClearField("action")
        assert await now() == call(ids, "set_vrf", b"green")
        default.action.action.CopyFrom(default_call)
        await client.write(update("MODIFY", default))
        default.ClearField("action")
        assert await now() == default_call


@pytest.mark.parametrize(
    ("sdn", "value"), [(p4t.P4NewTypeTranslation.SdnString(), b"two"), (32, b"\x02")]
)
def test_value_sets_speak_in_names(translated: Built, sdn: Any, value: bytes) -> None:
    """P4 selects on no translated type yet, so the P4Info is made to say that it does."""
    config = translated.config
    (value_set,) = config.p4info.value_sets
    spec = config.p4info.type_info.new_types["in_t"].translated_type
    value_set.match[0].type_name.name = "in_t"
    if isinstance(sdn, int):
        spec.sdn_bitwidth = value_set.match[0].bitwidth = sdn
    else:
        spec.sdn_string.CopyFrom(sdn)
        value_set.match[0].bitwidth = 0

    @asynchronous
    async def scenario() -> None:
        async with controlled(translated) as (rig, client):
            await client.set_pipeline(config)
            entry = p4r.ValueSetEntry(value_set_id=value_set.preamble.id)
            entry.members.add(match=[text(1, value)])
            await client.write(update("MODIFY", entry))
            (found,) = await client.read(entity_of(entry))
            assert found.value_set_entry == entry
            # The number that the name stands for is marked, and no other.
            special = 255 if value == b"two" else 2
            marks = Ids(config.p4info).id("marks")
            for tag in (special, special - 1):
                rig.send(1, bytes([tag]))
                cell = p4r.RegisterEntry(register_id=marks, index=p4r.Index(index=tag))
                (found,) = await client.read(entity_of(cell))
                assert found.register_entry.data.bitstring == bytes([tag == special])

    scenario()


def frame(dst: int, hops: int = 9) -> bytes:
    """A packet of `routed.p4`'s: two MAC addresses, a type, hops left and where to."""
    return bytes(12) + b"\x08\x00" + bytes([hops]) + dst.to_bytes(16, "big") + b"rest"


@asynchronous
async def test_routes_lead_by_names_to_ports_and_addresses(routed: Built) -> None:
    ids = Ids(routed.info)

    def interface(name: bytes, port: bytes, mac: bytes) -> list[p4r.TableEntry]:
        hop, near = b"hop-" + name, b"\xfe\x80" + bytes(13) + b"\x02"
        return [
            ids.entry("interfaces", text(1, name), action=call(ids, "leave", port, b"\xaa" + mac)),
            ids.entry(
                "neighbours",
                text(1, name),
                text(2, near),
                action=call(ids, "set_dst", b"\xbb" + mac),
            ),
            ids.entry("next_hops", text(1, hop), action=call(ids, "set_neighbour", name, near)),
        ]

    def route(dst: int, bits: int, action: p4r.Action) -> p4r.TableEntry:
        prefix = p4r.FieldMatch.LPM(value=dst.to_bytes(16, "big"), prefix_len=bits)
        matches = text(1, b"vrf-80"), p4r.FieldMatch(field_id=2, lpm=prefix)
        return ids.entry("routes", *matches, action=action)

    group = ids.entry("groups", text(1, b"group-7"))
    for hop, weight, port in ((b"hop-rif-a", 1, b"2"), (b"hop-rif-b", 3, b"3")):
        member = group.action.action_profile_action_set.action_profile_actions.add(
            weight=weight, watch_port=port
        )
        member.action.CopyFrom(call(ids, "set_next_hop", hop))
    flood = p4r.MulticastGroupEntry(multicast_group_id=5)
    session = p4r.CloneSessionEntry(session_id=6)
    for copies in (flood, session):
        copies.replicas.add(port=b"2", instance=1)
        copies.replicas.add(port=b"3", instance=1)
        copies.replicas.add(egress_port=1, instance=2)
    ours, shared, everyone = 0x20010DB8 << 96, 0x20010DB9 << 96, 0x20010DBA << 96
    entries = [
        ids.entry("vrfs", action=call(ids, "set_vrf", b"vrf-80"), priority=1),
        *interface(b"rif-a", b"2", b"\x02"),
        *interface(b"rif-b", b"3", b"\x03"),
        group,
        route(ours, 32, call(ids, "set_next_hop", b"hop-rif-a")),
        route(shared, 32, call(ids, "set_group", b"group-7")),
        route(everyone, 32, call(ids, "set_flood", b"\x05")),
    ]
    async with controlled(routed) as (rig, client):
        await client.write(update("INSERT", flood), update("INSERT", session))
        for copies in (flood, session):
            assert list(await client.read(update("INSERT", copies).entity)) == [
                update("INSERT", copies).entity
            ]
        await client.write(*(update("INSERT", e) for e in entries))
        found = [e.table_entry for e in await client.read(entity_of(p4r.TableEntry()))]
        assert sorted(map(str, found)) == sorted(map(str, entries))

        ((port, sent),) = rig.send(1, frame(ours + 5))
        assert (port, sent[:14]) == (2, bytes(4) + b"\xbb\x02" + bytes(4) + b"\xaa\x02\x08\x00")
        assert sent[14:] == frame(ours + 5, hops=8)[14:]

        rng = random.Random(1)
        theirs = [shared | rng.getrandbits(96) for _ in range(400)]
        ports = [out for dst in theirs for out, _ in rig.send(1, frame(dst))]
        assert len(ports) == 400
        assert 240 < ports.count(3) < 360  # three quarters are 300, six deviations are 52

        console = Console(rig.device)
        assert "(rid=1) -> (ports=[3])" in console.run("mc_dump")
        assert "port=2, 3, 1)" in console.run("mirroring_get 6")
        flood.replicas[1].port = b"\x03"
        (error,) = await refused(client, update("MODIFY", flood))
        problem = "0x03 is no name; ports are strings here, as '2'"
        assert error.message == f"multicast group 5: port: {problem}"

        rig.plane.set_port_up(3, False)
        assert {out for dst in theirs for out, _ in rig.send(1, frame(dst))} == {2}
        rig.plane.set_port_up(3, True)
        assert sorted(rig.send(1, frame(everyone))) == [(n, frame(everyone)) for n in (1, 2, 3)]

        rig.send(1, frame(7))  # no way: to the controller, and nothing of it is taken for a header
        packet = (await client.next("packet")).packet
        assert (packet.payload, list(packet.metadata)) == (frame(7), [])
        out = p4r.PacketOut(payload=frame(9))
        out.metadata.add(metadata_id=1, value=b"3")
        out.metadata.add(metadata_id=2, value=b"\x00")
        await client.stream.write(p4r.StreamMessageRequest(packet=out))
        await settle(client)
        rig.plane.service(2_000)
        assert [(port, data) for port, data, _ in rig.plane.outputs()] == [(3, frame(9))]

"""What is written by image: entries taken apart once, and written to several devices."""

import pytest
from finsy.proto import p4r, rpc_code

from switch import dataplane as dp
from switch.p4runtime.entities import Entities
from switch.p4runtime.errors import RequestError
from switch.p4runtime.pipeline import Pipeline

from .rig import Built, Names, exact, lpm, update
from .test_entries import ALL, entries_of_every_kind, same, wrong_updates


@pytest.fixture
def pipeline(built: Built) -> Pipeline:
    return Pipeline(built.config, dp.Program.load(built.json))


def device(pipeline: Pipeline) -> Entities:
    return Entities(pipeline, dp.Dataplane("s", pipeline.program))


def all_of(entities: Entities) -> list[p4r.TableEntry]:
    found, (error,) = entities.read([p4r.Entity(table_entry=ALL)])
    assert error is None
    return [entity.table_entry for entity in found]


def test_what_was_prepared_is_read_back_as_what_was_written(
    pipeline: Pipeline, names: Names
) -> None:
    written = [update("INSERT", entry) for entry in entries_of_every_kind(names)]
    one, other, third = (device(pipeline) for _ in range(3))
    assert one.write(written, atomic=False) == [None] * len(written)
    prepared = [one.prepare(entry) for entry in written]
    assert None not in prepared
    for entities in other, third:
        assert entities.insert([p for p in prepared if p]) == [None] * len(written)
        assert same(all_of(entities), all_of(one))
    deleted = [update("DELETE", entry.entity.table_entry) for entry in written]
    assert third.write(deleted, atomic=False) == [None] * len(written)
    assert same(all_of(other), all_of(one))
    assert all(entry.is_const for entry in all_of(third))


def test_an_entry_that_is_there_is_refused_and_the_others_are_written(
    pipeline: Pipeline, names: Names
) -> None:
    entities = device(pipeline)
    ports = [
        update("INSERT", names.entry("mac", exact(1, mac), action=names.action("forward", port=2)))
        for mac in (5, 6)
    ]
    five, six = (entities.prepare(entry) for entry in ports)
    assert five and six
    assert entities.insert([five]) == [None]
    (refused, written) = entities.insert([five, six])
    assert refused is not None and refused.code == rpc_code.ALREADY_EXISTS
    assert written is None
    assert same(
        [e for e in all_of(entities) if not e.is_const], [e.entity.table_entry for e in ports]
    )


def test_what_the_data_plane_refuses_is_not_there(pipeline: Pipeline, names: Names) -> None:
    entities = device(pipeline)
    size = pipeline.tables[names.entry("exact_and_lpm").table_id].info.size
    drop = names.action("drop")
    entries = [
        names.entry("exact_and_lpm", exact(1, n), lpm(2, 0, 1), action=drop)
        for n in range(size + 1)
    ]
    prepared = [entities.prepare(update("INSERT", entry)) for entry in entries]
    *done, refused = entities.insert([p for p in prepared if p])
    assert not any(done) and refused is not None
    assert refused.code == rpc_code.RESOURCE_EXHAUSTED
    assert len([e for e in all_of(entities) if not e.is_const]) == size


def test_what_is_more_than_an_entry_is_not_prepared(pipeline: Pipeline, names: Names) -> None:
    entities = device(pipeline)
    default = names.entry("ipv4_lpm", action=names.action("count_drop"))
    default.is_default_action = True
    route = names.action("count_route", port=3, dst=1)
    counted = names.entry("ipv4_lpm", action=route)
    counted.counter_data.packet_count = 1
    for verb, entry in (("MODIFY", default), ("INSERT", counted), ("DELETE", counted)):
        assert entities.prepare(update(verb, entry)) is None


def test_what_cannot_be_written_cannot_be_prepared(pipeline: Pipeline, names: Names) -> None:
    entities = device(pipeline)
    for wrong, _, _ in wrong_updates(names):
        (error,) = entities.write([wrong], atomic=False)
        assert error is not None
        if wrong.type != p4r.Update.INSERT or not wrong.entity.HasField("table_entry"):
            continue
        try:
            prepared = entities.prepare(wrong)
        except RequestError as same_error:
            assert same_error.message == error.message
        else:
            assert prepared is None

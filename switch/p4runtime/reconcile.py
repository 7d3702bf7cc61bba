"""Keeping the forwarding state while the pipeline changes.

The state is read out as updates in the client's own terms, tried on the new pipeline without a
data plane, and only if all of it fits is the program exchanged and the updates replayed. Counter
and register cells are carried over for arrays that keep their name and shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from finsy.proto import p4r

from params.data import Data
from switch import dataplane as dp
from switch.p4runtime.batch import Plane
from switch.p4runtime.entities import Entities, Rehearsal
from switch.p4runtime.errors import invalid
from switch.p4runtime.pipeline import Pipeline


def export(entities: Entities, *, with_counters: bool) -> list[p4r.Update]:
    """Return updates that would make the present state from a clean one."""
    query = p4r.TableEntry(meter_config=p4r.MeterConfig())
    if with_counters:
        query.counter_data.SetInParent()
    groups = p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry())
    clones = p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry())
    insert, modify = p4r.Update.INSERT, p4r.Update.MODIFY
    plan = [
        (insert, p4r.Entity(action_profile_member=p4r.ActionProfileMember())),
        (insert, p4r.Entity(action_profile_group=p4r.ActionProfileGroup())),
        (insert, p4r.Entity(table_entry=query)),
        (insert, p4r.Entity(packet_replication_engine_entry=groups)),
        (insert, p4r.Entity(packet_replication_engine_entry=clones)),
        (modify, p4r.Entity(meter_entry=p4r.MeterEntry())),
        (modify, p4r.Entity(value_set_entry=p4r.ValueSetEntry())),
        (insert, p4r.Entity(digest_entry=p4r.DigestEntry())),
    ]
    updates = []
    for verb, wanted in plan:
        found, errors = entities.read([wanted])
        assert errors == [None]
        updates += [
            p4r.Update(type=verb, entity=entity) for entity in found if not _is_initial(entity)
        ]
    changed = (p4r.Entity(table_entry=entry) for entry in entities.tables.changed_defaults())
    updates += [p4r.Update(type=modify, entity=entity) for entity in changed]
    return updates


def _is_initial(entity: p4r.Entity) -> bool:
    """Tell whether a clean pipeline has this without being told."""
    if entity.HasField("table_entry"):
        return entity.table_entry.is_const
    if entity.HasField("meter_entry"):
        return not entity.meter_entry.HasField("config")
    return entity.HasField("value_set_entry") and not entity.value_set_entry.members


def rehearse(pipeline: Pipeline, updates: Iterable[p4r.Update]) -> None:
    """Refuse a pipeline that cannot hold the state."""
    errors = Entities(pipeline, Rehearsal(pipeline.program)).write(updates, atomic=False)
    lost = [error for error in errors if error is not None]
    if lost:
        raise invalid(
            f"the forwarding state cannot be preserved: {len(lost)} entities do not fit the new"
            f" program, the first because: {lost[0].message}"
        )


def clearing(entities: Entities) -> list[p4r.Update]:
    """Return updates that delete the entries a program begins with, so that all may be replayed."""
    found, _ = entities.read([p4r.Entity(table_entry=p4r.TableEntry())])
    return [
        p4r.Update(type=p4r.Update.DELETE, entity=entity)
        for entity in found
        if not entity.table_entry.is_const
    ]


class Cells(Data, frozen=False):
    """The contents of a program's arrays, by name."""

    counters: dict[str, list[dp.CounterValue]] = field(default_factory=dict)
    registers: dict[str, tuple[int, list[int]]] = field(default_factory=dict)


def save_cells(program: dp.Program, plane: Plane) -> Cells:
    """Read every counter and register array."""
    cells = Cells()
    for counter in program.counters:
        if counter.table is None:
            cells.counters[counter.name] = plane.read_counter(counter.index)
    for register in program.registers:
        cells.registers[register.name] = (register.width, plane.read_register(register.index))
    return cells


def restore_cells(program: dp.Program, cells: Cells) -> list[dp.Op]:
    """Return what sets the arrays of a new program that were there before, in the same shape."""
    ops: list[dp.Op] = []
    for counter in program.counters:
        values = cells.counters.get(counter.name, [])
        if counter.table is None and len(values) == counter.size:
            ops += [
                dp.CounterWrite(counter.index, index, value.packets, value.bytes)
                for index, value in enumerate(values)
                if value.packets or value.bytes
            ]
    for register in program.registers:
        width, numbers = cells.registers.get(register.name, (0, []))
        if (width, len(numbers)) == (register.width, register.size):
            ops += [
                dp.RegisterWrite(register.index, index, number)
                for index, number in enumerate(numbers)
                if number
            ]
    return ops

"""Random updates built from the program's own ids: wrong in ways a mutated byte seldom is."""

import random
from typing import Any

import grpc
import pytest
from finsy.proto import p4i, p4r, rpc_code
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from .rig import (
    Built,
    Client,
    Names,
    asynchronous,
    between,
    controlled,
    entity_of,
    errors_of,
    exact,
    lpm,
    optional,
    ternary,
)

SMALL = (0, 1, 2, 3, 5, 6, 8, 15, 16, 32, 255, 510, 511, 512, 32767, 32768, 65535, 65536)
EXTREME = (-1, -(1 << 31), (1 << 31) - 1, -(1 << 63), (1 << 63) - 1)
ROUNDS = 300
BATCH = 15


class Monkey:
    """Fills messages with what might be meant and what cannot be."""

    def __init__(self, seed: int, info: p4i.P4Info) -> None:
        self._chance = random.Random(seed)
        self._ids = [
            item.preamble.id
            for field in info.DESCRIPTOR.fields
            if field.name not in ("pkg_info", "type_info", "externs", "controller_packet_metadata")
            for item in getattr(info, field.name)
        ]
        self._info = info
        self._by_prefix: dict[int, list[int]] = {}
        for number in self._ids:
            self._by_prefix.setdefault(number >> 24, []).append(number)

    def update(self) -> p4r.Update:
        update = p4r.Update(type=self._chance.choice((1, 1, 2, 3)))
        self._fill(update.entity, depth=0)
        return update

    def _fill(self, message: Message, depth: int) -> None:
        if isinstance(message, p4r.TableEntry) and self._chance.random() < 0.8:
            self._fill_entry(message)
            return
        if isinstance(message, p4r.Action) and self._chance.random() < 0.8:
            self._fill_action(message, self._chance.choice(self._info.actions))
            return
        fields: list[FieldDescriptor] = list(message.DESCRIPTOR.fields)
        for oneof in message.DESCRIPTOR.oneofs:
            kept = self._chance.choice(list(oneof.fields))
            fields = [f for f in fields if f.containing_oneof is not oneof or f is kept]
        for field in fields:
            if field.message_type and field.message_type.full_name == "google.protobuf.Any":
                continue
            if depth and self._chance.random() < 0.25:
                continue
            if field.is_repeated:
                for _ in range(self._chance.choice((0, 1, 1, 2, 3))):
                    self._add(message, field, depth)
            elif field.message_type:
                child = getattr(message, field.name)
                child.SetInParent()
                if depth < 8:
                    self._fill(child, depth + 1)
            else:
                setattr(message, field.name, self._value(field))

    def _fill_entry(self, entry: p4r.TableEntry) -> None:
        """A mostly sensible entry; few keys, so that they meet again."""
        chance = self._chance
        table = chance.choice(self._info.tables)
        entry.table_id = table.preamble.id
        needs_priority = False
        for field in table.match_fields:
            needs_priority |= field.match_type not in (p4i.MatchField.EXACT, p4i.MatchField.LPM)
            if field.match_type == p4i.MatchField.EXACT or chance.random() < 0.7:
                entry.match.append(self._match(field))
        if chance.random() < 0.95:
            entry.priority = chance.randint(1, 2) if needs_priority else 0
        if table.implementation_id:
            self._fill(entry.action, depth=1)
        elif chance.random() < 0.95:
            ids = [ref.id for ref in table.action_refs]
            known = [a for a in self._info.actions if a.preamble.id in ids]
            self._fill_action(entry.action.action, chance.choice(known))
        if chance.random() < 0.1:
            entry.is_default_action = True
            del entry.match[:]
            entry.priority = 0
        if chance.random() < 0.2:
            entry.metadata = chance.randbytes(2)
        if chance.random() < 0.1:
            entry.idle_timeout_ns = chance.choice((1, 10**9, -1))
        if chance.random() < 0.1:
            self._fill(entry.counter_data, depth=2)
        if chance.random() < 0.1:
            self._fill(entry.meter_config, depth=2)

    def _fill_action(self, message: p4r.Action, action: p4i.Action) -> None:
        message.action_id = action.preamble.id
        for param in action.params:
            message.params.add(param_id=param.id, value=bytes([self._chance.randrange(8)]))

    def _match(self, field: p4i.MatchField) -> p4r.FieldMatch:
        value = self._chance.randrange(6)
        match field.match_type:
            case p4i.MatchField.EXACT:
                return exact(field.id, value)
            case p4i.MatchField.LPM:
                return lpm(field.id, value << 28 & 0xFFFFFFFF, self._chance.choice((4, 8, 32)))
            case p4i.MatchField.TERNARY:
                return ternary(field.id, value, 7)
            case p4i.MatchField.RANGE:
                return between(field.id, value, 6)
            case _:
                return optional(field.id, value)

    def _add(self, message: Message, field: FieldDescriptor, depth: int) -> None:
        if field.message_type:
            if depth < 8:
                self._fill(getattr(message, field.name).add(), depth + 1)
        else:
            getattr(message, field.name).append(self._value(field))

    def _value(self, field: FieldDescriptor) -> Any:
        chance = self._chance
        if field.type == FieldDescriptor.TYPE_BYTES:
            if field.name == "metadata":
                return chance.randbytes(3)
            return chance.choice((b"\0", b"\1", b"\6", chance.randbytes(chance.randrange(9))))
        if field.type == FieldDescriptor.TYPE_BOOL:
            return chance.random() < 0.1
        if field.type == FieldDescriptor.TYPE_STRING:
            return "x"
        if field.enum_type:
            return chance.choice(field.enum_type.values).number
        prefixes = {"table_id": 2, "action_id": 1, "action_profile_id": 0x11, "counter_id": 0x12}
        prefixes |= {"meter_id": 0x14, "register_id": 0x16, "digest_id": 0x17, "value_set_id": 3}
        if field.name in prefixes and chance.random() < 0.95:
            return chance.choice(self._by_prefix.get(prefixes[field.name], self._ids))
        if chance.random() < 0.9:
            small = chance.choice(SMALL)
            return min(small, 3) if field.name in ("field_id", "param_id") else small
        unsigned = field.type in (FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64)
        wide = field.type in (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT64)
        allowed = [n for n in EXTREME if (n >= 0 or not unsigned) and (wide or abs(n) <= 1 << 31)]
        return chance.choice([*self._ids, *allowed]) if wide or unsigned else chance.choice(allowed)


async def outcomes(client: Client, updates: list[p4r.Update]) -> list[int]:
    try:
        await client.write(*updates)
    except grpc.aio.AioRpcError as error:
        assert error.code() is not grpc.StatusCode.INTERNAL, error.details()
        return [found.canonical_code for found in errors_of(error)]
    return [rpc_code.OK] * len(updates)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("atomicity", ["CONTINUE_ON_ERROR", "ROLLBACK_ON_ERROR"])
def test_random_updates(built: Built, names: Names, seed: int, atomicity: str) -> None:
    print(f"seed {seed}")
    monkey = Monkey(seed, built.info)
    mode = p4r.WriteRequest.Atomicity.Value(atomicity)

    @asynchronous
    async def scenario() -> None:
        done = 0
        async with controlled(built) as (_, client):
            for _ in range(ROUNDS):
                if mode:
                    updates = [monkey.update() for _ in range(1 + done % 2)]
                    try:
                        await client.write(*updates, atomicity=mode)
                        done += 1
                    except grpc.aio.AioRpcError as error:
                        codes = [item.canonical_code for item in errors_of(error)]
                        assert rpc_code.OK not in codes
                        assert error.code() is not grpc.StatusCode.INTERNAL, error.details()
                else:
                    codes = await outcomes(client, [monkey.update() for _ in range(BATCH)])
                    assert rpc_code.INTERNAL not in codes
                    done += codes.count(rpc_code.OK)
            assert done, "some of the updates must have made sense"
            await consistent(client, names)

    scenario()


async def consistent(client: Client, names: Names) -> None:
    """Whatever was accepted can be read and deleted, in the order of use."""
    for table in ("via_profile", "via_selector"):
        default = names.entry(table, is_default_action=True)
        await client.write(p4r.Update(type=p4r.Update.MODIFY, entity=entity_of(default)))
    for query in (
        p4r.TableEntry(),
        p4r.ActionProfileGroup(),
        p4r.ActionProfileMember(),
        p4r.MulticastGroupEntry(),
        p4r.CloneSessionEntry(),
    ):
        found = await client.read(entity_of(query))
        deletes = [
            p4r.Update(type=p4r.Update.DELETE, entity=entity)
            for entity in found
            if not (entity.HasField("table_entry") and entity.table_entry.is_const)
        ]
        await client.write(*deletes)
        left = await client.read(entity_of(query))
        assert all(entity.table_entry.is_const for entity in left)

"""Random operations of a control plane: mostly right, some wrong."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from switch.dataplane import (
    CloneWrite,
    CounterInfo,
    CounterWrite,
    DefaultWrite,
    DigestInfo,
    DigestWrite,
    DirectCounterWrite,
    DirectMeterWrite,
    Entry,
    GroupMember,
    GroupWrite,
    MatchKind,
    MemberWrite,
    MeterInfo,
    MeterRates,
    MeterWrite,
    MulticastWrite,
    Op,
    Program,
    RegisterInfo,
    RegisterWrite,
    Replica,
    TableInfo,
    TableWrite,
    ValueSetWrite,
    Verb,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def bits(rng: random.Random, width: int) -> int:
    """A value that fits, more often than not a small one."""
    return rng.choice([0, 1, (1 << width) - 1, rng.getrandbits(width), rng.getrandbits(3)]) & (
        (1 << width) - 1
    )


def verb(rng: random.Random) -> Verb:
    return rng.choice([Verb.INSERT, Verb.INSERT, Verb.MODIFY, Verb.DELETE])


def random_params(rng: random.Random, program: Program, action: int) -> tuple[int, ...]:
    return tuple(bits(rng, p.width) for p in program.actions[action].params)


def random_entry(rng: random.Random, program: Program, table: TableInfo) -> Entry:
    values, masks = [], []
    for key in table.keys:
        value, mask = bits(rng, key.width), 0
        if key.kind is MatchKind.LPM:
            mask = rng.randrange(key.width + 2)
        elif key.kind is MatchKind.TERNARY or key.kind is MatchKind.RANGE:
            mask = bits(rng, key.width)
        values.append(value)
        masks.append(mask)
    entry = Entry(table.index, tuple(values), tuple(masks), rng.randrange(5))
    if table.has_timeout and rng.random() < 0.3:
        entry.idle_timeout_ns = rng.randrange(1, 10**8)
    if table.profile is not None:
        if rng.random() < 0.5:
            entry.member = rng.randrange(1, 6)
        else:
            entry.group = rng.randrange(1, 4)
    elif table.actions:
        entry.action = rng.choice(table.actions)
        entry.params = random_params(rng, program, entry.action)
    return entry


def random_rates(rng: random.Random) -> MeterRates | None:
    if rng.random() < 0.2:
        return None
    low, high = sorted(rng.choice([0, 1, 1000, 10**9, 2**63]) for _ in range(2))
    return MeterRates(low, rng.randrange(5000), high, rng.randrange(5000))


def random_op(rng: random.Random, program: Program) -> Op:
    """Something a control plane might ask of this program."""
    makers: list[Callable[[], Op]] = [lambda: replication(rng)]
    if program.tables:
        makers += [lambda: table_op(rng, program)] * 6
    if program.profiles:
        makers += [lambda: profile_op(rng, program)] * 4
    makers += [lambda: extern_op(rng, program)] * 2
    return rng.choice(makers)()


def table_op(rng: random.Random, program: Program) -> Op:
    table = rng.choice(program.tables)
    entry = random_entry(rng, program, table)
    kind = rng.random()
    if kind < 0.1:
        return DefaultWrite(table.index, entry.action, entry.params, entry.member, entry.group)
    if kind < 0.2:
        return DirectCounterWrite(entry, rng.getrandbits(20), rng.getrandbits(40))
    if kind < 0.3:
        return DirectMeterWrite(entry, random_rates(rng))
    return TableWrite(verb(rng), entry)


def profile_op(rng: random.Random, program: Program) -> Op:
    profile = rng.choice(program.profiles).index
    if rng.random() < 0.5:
        action = rng.randrange(len(program.actions))
        params = random_params(rng, program, action)
        return MemberWrite(verb(rng), profile, rng.randrange(1, 6), action, params)
    members = tuple(
        GroupMember(rng.randrange(1, 6), rng.randrange(4), rng.choice([-1, 1, 2]))
        for _ in range(rng.randrange(4))
    )
    return GroupWrite(verb(rng), profile, rng.randrange(1, 4), members)


def replication(rng: random.Random) -> Op:
    replicas = tuple(
        Replica(rng.choice([1, 2, 3, 64, 511, 600]), rng.randrange(4))
        for _ in range(rng.randrange(4))
    )
    if rng.random() < 0.5:
        return MulticastWrite(verb(rng), rng.randrange(1, 8), replicas)
    return CloneWrite(
        verb(rng), rng.randrange(1, 8), replicas, rng.choice([0, 0, 20]), rng.randrange(8),
        rng.choice([0, 0, 1, 2]),
    )  # fmt: skip


def extern_op(rng: random.Random, program: Program) -> Op:
    things: list[Any] = [
        *program.counters, *program.meters, *program.registers, *program.digests,
        *program.value_sets,
    ]  # fmt: skip
    if not things:
        return replication(rng)
    thing = rng.choice(things)
    index = rng.choice([None, 0, rng.randrange(2000)])
    match thing:
        case CounterInfo():
            return CounterWrite(thing.index, index, 1, 2)
        case MeterInfo():
            return MeterWrite(thing.index, index, random_rates(rng))
        case RegisterInfo():
            return RegisterWrite(thing.index, index, bits(rng, thing.width))
        case DigestInfo():
            return DigestWrite(verb(rng), thing.index, 1000, rng.randrange(5), 1000)
    members = tuple(
        (bits(rng, thing.width), bits(rng, thing.width)) for _ in range(rng.randrange(3))
    )
    return ValueSetWrite(thing.index, members)

"""From BMv2 JSON to C, and to the list of a program's objects.

Only who comes first with a program needs this: what it makes is kept (`program.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from . import bmv2, codegen
from .layout import entry_layout
from .objects import (
    ActionInfo,
    CounterInfo,
    DigestInfo,
    FieldInfo,
    HeaderInfo,
    KeyInfo,
    MatchKind,
    MeterInfo,
    Objects,
    ParamInfo,
    ProfileInfo,
    RegisterInfo,
    TableInfo,
    Translation,
    ValueSetInfo,
)
from .ops import NO_ACTION, Entry
from .read import read_program


def translate(text: bytes, name: str) -> Translation:
    """Read a program, check it, and write it as C that bears its name."""
    parsed = read_program(text)
    return Translation(objects_of(parsed), codegen.generate(parsed, name))


def objects_of(program: bmv2.Program) -> Objects:
    """A program's objects."""
    return Objects(
        tables=tuple(table_info(program, i) for i in range(len(program.tables))),
        actions=tuple(action_info(i, a) for i, a in enumerate(program.actions)),
        profiles=tuple(
            ProfileInfo(i, p.name, p.size, p.algo is not None)
            for i, p in enumerate(program.profiles.values())
        ),
        counters=tuple(counter_info(program, i) for i in range(len(program.counters))),
        meters=tuple(meter_info(program, i) for i in range(len(program.meters))),
        registers=tuple(
            RegisterInfo(i, r.name, r.size, r.width)
            for i, r in enumerate(program.registers.values())
        ),
        digests=tuple(
            DigestInfo(i, d.name, tuple(codegen.digest_widths(program, d)))
            for i, d in enumerate(program.digests)
        ),
        value_sets=tuple(
            ValueSetInfo(i, v.name, v.width) for i, v in enumerate(program.value_sets.values())
        ),
        headers=tuple(
            HeaderInfo(
                tuple(FieldInfo(f.name, f.width) for f in header.type.fields),
                name in program.deparser.order,
            )
            for name, header in program.headers.items()
        ),
        const_entries=tuple(const_entries(program)),
    )


def action_info(index: int, action: bmv2.Action) -> ActionInfo:
    """An action's words for whoever controls it."""
    return ActionInfo(index, action.name, tuple(ParamInfo(p.name, p.width) for p in action.params))


def const_entries(program: bmv2.Program) -> Iterator[Entry]:
    """The program's own entries; among those the smaller number wins, as in BMv2."""
    for index, table in enumerate(program.tables):
        for const in table.entries or ():
            yield Entry(
                table=index,
                values=tuple(k.value for k in const.keys),
                masks=tuple(k.mask for k in const.keys),
                priority=-const.priority,
                action=const.action,
                params=const.params,
            )


def table_info(program: bmv2.Program, index: int) -> TableInfo:
    """A table's words for whoever controls it."""
    table = program.tables[index]
    keys = tuple(
        KeyInfo(
            k.name,
            program.field_of(k.target).width,
            MatchKind(k.match),
            f"{k.target.header}.{k.target.field}",
        )
        for k in table.keys
    )
    layout = entry_layout(program, table)
    direct = [c.binding for c in program.counters.values() if c.binding == table.name]
    default = table.default if table.profile is None else None
    return TableInfo(
        index=index,
        name=table.name,
        kind=MatchKind(table.match),
        keys=keys,
        actions=table.actions,
        size=table.size,
        profile=None if table.profile is None else list(program.profiles).index(table.profile),
        has_counters=table.with_counters or bool(direct),
        meter=None
        if table.direct_meter is None
        else list(program.meters).index(table.direct_meter),
        has_timeout=table.support_timeout,
        is_const=table.entries is not None,
        default_action=default.action if default else NO_ACTION,
        default_params=default.params if default else (),
        default_is_const=default.is_const if default else False,
        data_bytes=layout.stride - layout.data_at,
    )


def bound_table(program: bmv2.Program, name: str | None) -> int | None:
    """The table that a direct counter or meter belongs to."""
    if name is None:
        return None
    names = [t.name for t in program.tables]
    return names.index(name) if name in names else None


def counter_info(program: bmv2.Program, index: int) -> CounterInfo:
    """A counter array's words for whoever controls it."""
    counter = list(program.counters.values())[index]
    return CounterInfo(index, counter.name, counter.size, bound_table(program, counter.binding))


def meter_info(program: bmv2.Program, index: int) -> MeterInfo:
    """A meter array's words for whoever controls it."""
    meter = list(program.meters.values())[index]
    table = bound_table(program, meter.binding)
    return MeterInfo(index, meter.name, meter.size, table, meter.counts_bytes)

"""A P4Info made from a program alone, for switches started without one.

Names are in the BMv2 JSON and ids are hashes of names, so most of what a compiler writes can be
had again. What cannot: the controller headers, annotations, optional keys (they read as ternary)
and ids that two names would share.
"""

from __future__ import annotations

from collections.abc import Iterable

from finsy.proto import p4i, p4t

from switch import dataplane as dp

_MATCH = {
    dp.MatchKind.EXACT: p4i.MatchField.EXACT,
    dp.MatchKind.LPM: p4i.MatchField.LPM,
    dp.MatchKind.TERNARY: p4i.MatchField.TERNARY,
    dp.MatchKind.RANGE: p4i.MatchField.RANGE,
}


def infer_p4info(program: dp.Program) -> p4i.P4Info:
    """Return the P4Info of a program, as far as its JSON tells."""
    info = p4i.P4Info()
    info.pkg_info.arch = "v1model"
    aliases = _Aliases(program)
    tables = [table for table in program.tables if not _is_hidden(table, program)]
    names = action_names(program)
    used = {names[index]: index for table in tables for index in table.actions}
    for name, index in used.items():
        entry = info.actions.add(preamble=aliases.preamble(1, name))
        for number, param in enumerate(program.actions[index].params, 1):
            entry.params.add(id=number, name=param.name, bitwidth=param.width)
    for table in tables:
        _add_table(info, aliases, program, table, names)
    for profile in program.profiles:
        info.action_profiles.add(
            preamble=aliases.preamble(0x11, profile.name),
            table_ids=[
                symbol_id(2, table.name) for table in tables if table.profile == profile.index
            ],
            with_selector=profile.has_selector,
            size=profile.size,
        )
    _add_arrays(info, aliases, program)
    for digest in program.digests:
        spec = info.digests.add(preamble=aliases.preamble(0x17, digest.name)).type_spec
        for width in digest.widths:
            spec.tuple.members.append(_bits(width))
    for value_set in program.value_sets:
        info.value_sets.add(
            preamble=aliases.preamble(3, value_set.name),
            match=[
                p4i.MatchField(id=1, bitwidth=value_set.width, match_type=p4i.MatchField.TERNARY)
            ],
        )
    return info


def action_names(program: dp.Program) -> tuple[str, ...]:
    """What the control plane calls each action: its name, unless that would mean two.

    A compiler copies an action for each table that uses it, and all copies are one to the control
    plane. But it may also synthesise actions of one name that differ, or that one table has both
    of; these are called after their place in the program, `name#index`.
    """
    shapes: dict[str, tuple[dp.ParamInfo, ...]] = {}
    names = [action.name for action in program.actions]
    for index, action in enumerate(program.actions):
        if shapes.setdefault(action.name, action.params) != action.params:
            names[index] = f"{action.name}#{index}"
    for table in program.tables:
        seen: set[str] = set()
        for index in table.actions:
            if names[index] in seen:
                names[index] = f"{names[index]}#{index}"
            seen.add(names[index])
    return tuple(names)


def symbol_id(prefix: int, name: str) -> int:
    """Return the id a compiler gives a name: Jenkins' one-at-a-time hash under a type prefix."""
    value = 0
    for byte in name.encode():
        value = value + byte & 0xFFFFFFFF
        value = value + (value << 10) & 0xFFFFFFFF
        value ^= value >> 6
    value = value + (value << 3) & 0xFFFFFFFF
    value ^= value >> 11
    value = value + (value << 15) & 0xFFFFFFFF
    return prefix << 24 | value & 0xFFFFFF


class _Aliases:
    """Shortest unambiguous suffixes of the program's names."""

    def __init__(self, program: dp.Program) -> None:
        self._names = set(_names(program))

    def preamble(self, prefix: int, name: str) -> p4i.Preamble:
        """Return a name with its id and alias."""
        return p4i.Preamble(id=symbol_id(prefix, name), name=name, alias=self._alias(name))

    def _alias(self, name: str) -> str:
        parts = name.split(".")
        for length in range(1, len(parts)):
            suffix = ".".join(parts[-length:])
            if not any(
                other != name and (other == suffix or other.endswith(f".{suffix}"))
                for other in self._names
            ):
                return suffix
        return name


def _names(program: dp.Program) -> Iterable[str]:
    for items in (
        program.tables,
        program.actions,
        program.profiles,
        program.counters,
        program.meters,
        program.registers,
        program.digests,
        program.value_sets,
    ):
        for item in items:
            yield item.name


def _is_hidden(table: dp.TableInfo, program: dp.Program) -> bool:
    """Tell a table of the source from one a compiler made of a single statement."""
    if table.keys or not table.default_is_const or len(table.actions) != 1:
        return False
    return "." not in table.name and "." not in program.actions[table.actions[0]].name


def _add_table(
    info: p4i.P4Info,
    aliases: _Aliases,
    program: dp.Program,
    table: dp.TableInfo,
    names: tuple[str, ...],
) -> None:
    entry = info.tables.add(
        preamble=aliases.preamble(2, table.name), size=table.size, is_const_table=table.is_const
    )
    for number, key in enumerate(table.keys, 1):
        name = key.name or f"key{number}"
        entry.match_fields.add(
            id=number, name=name, bitwidth=key.width, match_type=_MATCH[key.kind]
        )
    entry.action_refs.extend(
        p4i.ActionRef(id=symbol_id(1, names[index])) for index in table.actions
    )
    if table.default_is_const and table.default_action != dp.NO_ACTION:
        entry.const_default_action_id = symbol_id(1, names[table.default_action])
    if table.has_timeout:
        entry.idle_timeout_behavior = p4i.Table.NOTIFY_CONTROL
    if table.profile is not None:
        entry.implementation_id = symbol_id(0x11, program.profiles[table.profile].name)


def _add_arrays(info: p4i.P4Info, aliases: _Aliases, program: dp.Program) -> None:
    for counter in program.counters:
        spec = p4i.CounterSpec(unit=p4i.CounterSpec.BOTH)
        if counter.table is None:
            preamble = aliases.preamble(0x12, counter.name)
            info.counters.add(preamble=preamble, spec=spec, size=counter.size)
        else:
            table = symbol_id(2, program.tables[counter.table].name)
            preamble = aliases.preamble(0x13, counter.name)
            info.direct_counters.add(preamble=preamble, spec=spec, direct_table_id=table)
    for meter in program.meters:
        unit = p4i.MeterSpec.BYTES if meter.counts_bytes else p4i.MeterSpec.PACKETS
        rates = p4i.MeterSpec(unit=unit)
        if meter.table is None:
            preamble = aliases.preamble(0x14, meter.name)
            info.meters.add(preamble=preamble, spec=rates, size=meter.size)
        else:
            table = symbol_id(2, program.tables[meter.table].name)
            preamble = aliases.preamble(0x15, meter.name)
            info.direct_meters.add(preamble=preamble, spec=rates, direct_table_id=table)
    for register in program.registers:
        info.registers.add(
            preamble=aliases.preamble(0x16, register.name),
            type_spec=_bits(register.width),
            size=register.size,
        )


def _bits(width: int) -> p4t.P4DataTypeSpec:
    bit = p4t.P4BitTypeSpec(bitwidth=width)
    return p4t.P4DataTypeSpec(bitstring=p4t.P4BitstringLikeTypeSpec(bit=bit))

"""Arrays and sets a program declares: counters, meters, registers and parser value sets.

Counters, meters and registers live in the data plane alone and are asked of it each time. A value
set is kept here as well, because the data plane knows it only as joined numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from finsy.proto import p4d, p4r

from switch import dataplane as dp
from switch.p4runtime import p4data
from switch.p4runtime.batch import Batch, Plane
from switch.p4runtime.errors import (
    already_exists,
    exhausted,
    invalid,
    out_of_range,
    unimplemented,
)
from switch.p4runtime.keys import KeyCodec
from switch.p4runtime.meters import check_rates, config_of, rates_of
from switch.p4runtime.pipeline import Pipeline
from switch.p4runtime.symbols import Array, Match, Register
from switch.p4runtime.values import all_ones, prefix_mask

MemberKey = tuple[tuple[int, ...], tuple[int, ...]]


class Externs:
    """The counters, meters, registers and value sets of a switch."""

    def __init__(self, pipeline: Pipeline, plane: Plane) -> None:
        self._pipeline = pipeline
        self._plane = plane
        self._members: dict[int, tuple[MemberKey, ...]] = {}

    def rebind(self, pipeline: Pipeline) -> None:
        """Speak to clients in the terms of another P4Info of the same program."""
        self._pipeline = pipeline

    # Counters

    def write_counter(self, batch: Batch, verb: dp.Verb, message: p4r.CounterEntry) -> None:
        """Set one cell, or all of them."""
        symbol = self._pipeline.symbols.counters[message.counter_id]
        _require_modify(verb, "counter", symbol)
        info = self._pipeline.counters[symbol.id]
        index = _index(message, symbol, info.size, "counter")
        data = message.data
        if data.packet_count < 0 or data.byte_count < 0:
            raise invalid(f"counter {symbol.name}: a counter cannot be negative")
        if message.HasField("data"):
            write = dp.CounterWrite(info.index, index, data.packet_count, data.byte_count)
            batch.ops.append(write)

    def read_counters(self, query: p4r.CounterEntry) -> Iterator[p4r.Entity]:
        """Return one cell, one counter's or all; they are read now and encoded later."""
        found = []
        for symbol in self._pipeline.symbols.counters.select(query.counter_id):
            info = self._pipeline.counters[symbol.id]
            index = _index(query, symbol, info.size, "counter") if query.counter_id else None
            found.append((symbol, index or 0, self._plane.read_counter(info.index, index)))
        return (
            _counter_entity(symbol.id, position, cell)
            for symbol, first, cells in found
            for position, cell in enumerate(cells, first)
        )

    # Meters

    def write_meter(self, batch: Batch, verb: dp.Verb, message: p4r.MeterEntry) -> None:
        """Set the rates of one meter, or of the array."""
        symbol = self._pipeline.symbols.meters[message.meter_id]
        _require_modify(verb, "meter", symbol)
        info = self._pipeline.meters[symbol.id]
        index = _index(message, symbol, info.size, "meter")
        if message.HasField("counter_data"):
            raise unimplemented(f"meter {symbol.name} does not count per colour")
        config = message.config if message.HasField("config") else None
        if config is not None:
            check_rates(config, symbol.kind, f"meter {symbol.name}")
        batch.ops.append(dp.MeterWrite(info.index, index, rates_of(config)))

    def read_meters(self, query: p4r.MeterEntry) -> Iterator[p4r.Entity]:
        """Return one meter's config, one array's or all; they are read now and encoded later."""
        if query.HasField("counter_data"):
            raise unimplemented("meters do not count per colour here")
        found = []
        for symbol in self._pipeline.symbols.meters.select(query.meter_id):
            info = self._pipeline.meters[symbol.id]
            index = _index(query, symbol, info.size, "meter") if query.meter_id else None
            found.append((symbol, index or 0, self._plane.read_meter(info.index, index)))
        return (
            _meter_entity(symbol.id, position, rates)
            for symbol, first, cells in found
            for position, rates in enumerate(cells, first)
        )

    # Registers

    def write_register(self, batch: Batch, verb: dp.Verb, message: p4r.RegisterEntry) -> None:
        """Set one cell, or all of them."""
        symbol = self._pipeline.symbols.registers[message.register_id]
        _require_modify(verb, "register", symbol)
        info = self._pipeline.registers[symbol.id]
        index = _index(message, symbol, info.size, "register")
        where = f"register {symbol.name}"
        symbols = self._pipeline.symbols
        leaves = list(p4data.parse(symbol.type, symbols, message.data, where, info.width))
        if len(leaves) != 1:
            raise unimplemented(f"{where}: cells of more than one value are not supported")
        if leaves[0] >> info.width:
            raise out_of_range(f"{where}: 0x{leaves[0]:x} does not fit in {info.width} bits")
        batch.ops.append(dp.RegisterWrite(info.index, index, leaves[0]))

    def read_registers(self, query: p4r.RegisterEntry) -> Iterator[p4r.Entity]:
        """Return one cell, one register's or all; they are read now and encoded later."""
        found = []
        for symbol in self._pipeline.symbols.registers.select(query.register_id):
            info = self._pipeline.registers[symbol.id]
            index = _index(query, symbol, info.size, "register") if query.register_id else None
            found.append((symbol, index or 0, self._plane.read_register(info.index, index)))
        symbols = self._pipeline.symbols
        return (
            _register_entity(symbol, position, p4data.build(symbol.type, symbols, iter((value,))))
            for symbol, first, cells in found
            for position, value in enumerate(cells, first)
        )

    # Value sets

    def write_value_set(self, batch: Batch, verb: dp.Verb, message: p4r.ValueSetEntry) -> None:
        """Replace a value set's members."""
        symbol = self._pipeline.symbols.value_sets[message.value_set_id]
        where = f"value set {symbol.name}"
        if verb is not dp.Verb.MODIFY:
            raise invalid(f"{where} can only be modified")
        codec = self._pipeline.value_set_keys[symbol.id]
        members: list[MemberKey] = []
        for member in message.members:
            key = codec.decode(member.match)
            if key in members:
                raise already_exists(f"{where}: member {len(members) + 1} is there already")
            members.append(key)
        if symbol.size and len(members) > symbol.size:
            raise exhausted(f"{where} holds {symbol.size} members, {len(members)} were given")
        info = self._pipeline.value_sets[symbol.id]
        batch.put(self._members, info.index, tuple(members))
        joined = tuple(_join(codec, *member) for member in members)
        batch.ops.append(dp.ValueSetWrite(info.index, joined))

    def read_value_sets(self, query: p4r.ValueSetEntry) -> list[p4r.Entity]:
        """Return one value set, or all."""
        entities = []
        for symbol in self._pipeline.symbols.value_sets.select(query.value_set_id):
            codec = self._pipeline.value_set_keys[symbol.id]
            entry = p4r.ValueSetEntry(value_set_id=symbol.id)
            for member in self._members.get(self._pipeline.value_sets[symbol.id].index, ()):
                entry.members.add(match=codec.encode(*member))
            entities.append(p4r.Entity(value_set_entry=entry))
        return entities


def _require_modify(verb: dp.Verb, what: str, symbol: Array) -> None:
    if verb is not dp.Verb.MODIFY:
        raise invalid(f"{what} {symbol.name} can only be modified")


def _index(
    message: p4r.CounterEntry | p4r.MeterEntry | p4r.RegisterEntry,
    symbol: Array,
    size: int,
    what: str,
) -> int | None:
    """Return the cell a message is about, None for all of them."""
    if not message.HasField("index"):
        return None
    index = message.index.index
    if index < 0:
        raise invalid(f"{what} {symbol.name}: index {index} is negative")
    if index >= size:
        raise out_of_range(f"{what} {symbol.name} has cells 0 to {size - 1}; there is no {index}")
    return index


def _counter_entity(counter_id: int, index: int, cell: dp.CounterValue) -> p4r.Entity:
    data = p4r.CounterData(packet_count=cell.packets, byte_count=cell.bytes)
    entry = p4r.CounterEntry(counter_id=counter_id, index=p4r.Index(index=index), data=data)
    return p4r.Entity(counter_entry=entry)


def _meter_entity(meter_id: int, index: int, rates: dp.MeterRates | None) -> p4r.Entity:
    config = config_of(rates)
    entry = p4r.MeterEntry(meter_id=meter_id, index=p4r.Index(index=index), config=config)
    return p4r.Entity(meter_entry=entry)


def _register_entity(symbol: Register, index: int, data: p4d.P4Data) -> p4r.Entity:
    entry = p4r.RegisterEntry(register_id=symbol.id, index=p4r.Index(index=index), data=data)
    return p4r.Entity(register_entry=entry)


def _join(codec: KeyCodec, values: tuple[int, ...], masks: tuple[int, ...]) -> tuple[int, int]:
    """Return a member as one number and one mask, its first field in the high bits."""
    value = mask = 0
    masks = masks or tuple(all_ones(field.bits) for field in codec.fields)
    for field, part, part_mask in zip(codec.fields, values, masks, strict=True):
        bits = prefix_mask(part_mask, field.bits) if field.match is Match.LPM else part_mask
        value = value << field.bits | part
        mask = mask << field.bits | bits
    return value, mask

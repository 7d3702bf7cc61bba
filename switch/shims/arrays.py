"""Commands on counters, meters and registers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from finsy.proto import p4r

from switch import dataplane as dp
from switch.p4runtime.pipeline import TableBinding
from switch.p4runtime.symbols import Array
from switch.shims.session import CommandError, Session, named, need, number

_MICROSECONDS = 1_000_000


def do_register_read(session: Session, words: list[str]) -> Iterator[str]:
    """Read a cell, or all of them: register_read <name> [index]."""
    need(words, 1, 2)
    info = named("register", words[0], session.pipeline.program.registers, lambda r: r.name)
    if len(words) == 1:
        cells = session.device.plane.read_register(info.index)
        yield f"{words[0]}= {', '.join(map(str, cells))}"
        return
    index = _index(words[1], info.size, words[0])
    (cell,) = session.device.plane.read_register(info.index, index)
    yield f"{words[0]}[{index}]= {cell}"


def do_register_write(session: Session, words: list[str]) -> None:
    """Write a cell: register_write <name> <index> <value>."""
    need(words, 3)
    info = named("register", words[0], session.pipeline.program.registers, lambda r: r.name)
    index = _index(words[1], info.size, words[0])
    cell = number(words[2], "value")
    if cell < 0 or cell >> info.width:
        raise CommandError(f"{cell} does not fit in {info.width} bits")
    session.do(dp.RegisterWrite(info.index, index, cell))


def do_register_reset(session: Session, words: list[str]) -> None:
    """Set all cells to 0: register_reset <name>."""
    need(words, 1)
    info = named("register", words[0], session.pipeline.program.registers, lambda r: r.name)
    session.do(dp.RegisterWrite(info.index, None, 0))


def do_counter_read(session: Session, words: list[str]) -> Iterator[str]:
    """Read a counter: counter_read <name> <index, or entry handle if direct>."""
    need(words, 2)
    info = _counter(session, words[0])
    if info.table is None:
        index = _index(words[1], info.size, words[0])
        (cell,) = session.device.plane.read_counter(info.index, index)
        yield f"{words[0]}[{index}]= ({cell.bytes} bytes, {cell.packets} packets)"
        return
    table = session.pipeline.tables_by_index[info.table]
    yield f"this is the direct counter for table {table.symbol.name}"
    query = p4r.DirectCounterEntry(table_entry=session.entry(table, words[1]))
    for found in session.read(p4r.Entity(direct_counter_entry=query)):
        data = found.direct_counter_entry.data
        yield f"{words[0]}[{words[1]}]= ({data.byte_count} bytes, {data.packet_count} packets)"


def do_counter_write(session: Session, words: list[str]) -> Iterator[str]:
    """Set a counter: counter_write <name> <index, or entry handle> <packets> <bytes>."""
    need(words, 4)
    info = _counter(session, words[0])
    packets, bytes_ = number(words[2], "packets"), number(words[3], "bytes")
    if info.table is None:
        index = _index(words[1], info.size, words[0])
        session.do(dp.CounterWrite(info.index, index, packets, bytes_))
    else:
        table = session.pipeline.tables_by_index[info.table]
        write = p4r.DirectCounterEntry(
            table_entry=session.entry(table, words[1]),
            data=p4r.CounterData(byte_count=bytes_, packet_count=packets),
        )
        session.write(dp.Verb.MODIFY, p4r.Entity(direct_counter_entry=write))
    yield f"{words[0]}[{words[1]}] has been updated"


def do_counter_reset(session: Session, words: list[str]) -> None:
    """Set all of a counter's cells to 0: counter_reset <name>."""
    need(words, 1)
    info = _counter(session, words[0])
    if info.table is None:
        session.do(dp.CounterWrite(info.index, None))
    else:
        table = session.pipeline.tables_by_index[info.table]
        for entry in session.entries(table).values():
            zero = p4r.DirectCounterEntry(table_entry=entry, data=p4r.CounterData())
            session.write(dp.Verb.MODIFY, p4r.Entity(direct_counter_entry=zero))


def do_meter_set_rates(session: Session, words: list[str]) -> None:
    """Set one meter, per us: meter_set_rates <name> <index, or entry handle> <rate>:<burst> x 2."""
    need(words, 4)
    config = _rates(words[2:])
    session.write(dp.Verb.MODIFY, _meter_cell(session, words[0], words[1], config))


def do_meter_array_set_rates(session: Session, words: list[str]) -> None:
    """Set all meters, per us: meter_array_set_rates <name> <rate>:<burst> <rate>:<burst>."""
    need(words, 3)
    symbol, table = _meter(session, words[0])
    config = _rates(words[1:])
    if table is None:
        entry = p4r.MeterEntry(meter_id=symbol.id, config=config)
        session.write(dp.Verb.MODIFY, p4r.Entity(meter_entry=entry))
    else:
        for handle in session.entries(table):
            cell = _meter_cell(session, words[0], str(handle), config)
            session.write(dp.Verb.MODIFY, cell)


def do_meter_get_rates(session: Session, words: list[str]) -> Iterator[str]:
    """Read a meter's rates: meter_get_rates <name> <index, or entry handle if direct>."""
    need(words, 2)
    for found in session.read(_meter_cell(session, words[0], words[1])):
        config = getattr(found, found.WhichOneof("entity") or "").config
        rates = ((config.cir, config.cburst), (config.pir, config.pburst))
        for order, (rate, burst) in enumerate(rates):
            yield f"{order}: info rate = {rate / _MICROSECONDS}, burst size = {burst}"


def _meter_cell(
    session: Session, name: str, word: str, config: p4r.MeterConfig | None = None
) -> p4r.Entity:
    """One meter, of an array or of a table's entry."""
    symbol, table = _meter(session, name)
    if table is not None:
        direct = p4r.DirectMeterEntry(table_entry=session.entry(table, word), config=config)
        return p4r.Entity(direct_meter_entry=direct)
    index = p4r.Index(index=_index(word, symbol.size, name))
    return p4r.Entity(meter_entry=p4r.MeterEntry(meter_id=symbol.id, index=index, config=config))


def _counter(session: Session, name: str) -> dp.CounterInfo:
    return named("counter", name, session.pipeline.program.counters, lambda c: c.name)


def _meter(session: Session, name: str) -> tuple[Array, TableBinding | None]:
    """A meter, and the table whose entries have one each if it is direct."""
    symbols, tables = session.pipeline.symbols, session.pipeline.tables
    meters: list[tuple[Array, TableBinding | None]] = [(m, None) for m in symbols.meters]
    meters += [(meter, tables[table]) for table, meter in symbols.direct_meters.items()]
    return named("meter", name, meters, lambda found: found[0].name)


def _index(word: str, size: int, name: str) -> int:
    index = number(word, "index")
    if not 0 <= index < size:
        raise CommandError(f"{name} has cells 0 to {size - 1}; there is no {index}")
    return index


def _rates(words: list[str]) -> p4r.MeterConfig:
    numbers: list[float] = []
    for word in words:
        parts = re.fullmatch(r"([0-9.eE+-]+):(\d+)", word)
        if parts is None:
            raise CommandError(f"{word!r} is not a rate and a burst, such as 0.5:1000")
        try:
            numbers += [float(parts[1]) * _MICROSECONDS, int(parts[2])]
        except ValueError:
            raise CommandError(f"{parts[1]!r} is not a rate") from None
    cir, cburst, pir, pburst = (round(item) for item in numbers)
    return p4r.MeterConfig(cir=cir, cburst=cburst, pir=pir, pburst=pburst)

"""Table entries and their direct counters and meters.

The server keeps every entry it was given, because clients are told back exactly what they wrote:
metadata, a one-shot action set, a meter config with its unused fields. The data plane keeps the
entry proper and what it has seen; counters and idle times are always asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from finsy.proto import p4i, p4r

from switch import dataplane as dp
from switch.p4runtime.batch import Batch, Plane
from switch.p4runtime.errors import (
    RequestError,
    already_exists,
    denied,
    invalid,
    not_found,
    unimplemented,
)
from switch.p4runtime.meters import check_rates, rates_of
from switch.p4runtime.pipeline import Pipeline, TableBinding
from switch.p4runtime.profiles import Profiles
from switch.p4runtime.record import Key, Record
from switch.p4runtime.symbols import unknown_id

_INSERT, _MODIFY, _DELETE = dp.Verb.INSERT, dp.Verb.MODIFY, dp.Verb.DELETE


class Tables:
    """The entries of every table."""

    def __init__(self, pipeline: Pipeline, plane: Plane, profiles: Profiles) -> None:
        self._plane = plane
        self._profiles = profiles
        self._entries: dict[int, dict[Key, Record]] = {}
        self._defaults: dict[int, Record] = {}
        self.rebind(pipeline)

    def rebind(self, pipeline: Pipeline) -> None:
        """Speak to clients in the terms of another P4Info of the same program.

        It may have tables that the one before left out.
        """
        self._pipeline = pipeline
        for table in pipeline.tables.values():
            if table.index not in self._entries:
                self._entries[table.index] = self._initial_entries(table)

    def count(self) -> int:
        """Return how many entries there are, defaults excepted."""
        return sum(map(len, self._entries.values()))

    # Writing

    def write(self, batch: Batch, verb: dp.Verb, message: p4r.TableEntry) -> None:
        """Insert, modify or delete an entry."""
        table = self._table(message.table_id)
        if message.is_default_action:
            self._write_default(batch, verb, table, message)
            return
        key = self._key(table, message)
        entries = self._entries[table.index]
        old = entries.get(key)
        if table.symbol.is_const or (old is not None and old.is_const):
            self._write_const(batch, verb, table, old, message)
        elif verb is _DELETE:
            if old is None:
                raise self._missing(table, key)
            self._delete(batch, entries, old)
        elif verb is _INSERT:
            if old is not None:
                raise already_exists(f"{table.where}: the entry exists: {self._show(table, old)}")
            record = Record(table.index, *key)
            self._fill(batch, table, record, message)
            self._insert(batch, entries, record, message)
        else:
            if old is None:
                raise self._missing(table, key)
            self._modify(batch, table, entries, old, message)

    def prepare(self, message: p4r.TableEntry) -> Record | None:
        """Take apart an entry that is to be inserted; None if it is more than that by itself."""
        table = self._table(message.table_id)
        has_more = message.HasField("counter_data") or message.HasField("meter_config")
        if message.is_default_action or table.symbol.is_const or table.info.profile is not None:
            return None
        if has_more:
            return None
        record = Record(table.index, *self._key(table, message))
        self._fill(Batch(), table, record, message)
        return record

    def add(self, record: Record) -> bool:
        """Note an entry that was taken apart; False if there is one of this key."""
        entries = self._entries[record.table]
        if record.key in entries:
            return False
        entries[record.key] = record
        return True

    def exchange(self, record: Record) -> None:
        """Note an entry in place of the one of its key."""
        self._entries[record.table][record.key] = record

    def forget(self, record: Record) -> None:
        """Take back such a note."""
        del self._entries[record.table][record.key]

    def write_direct_counter(
        self, batch: Batch, verb: dp.Verb, message: p4r.DirectCounterEntry
    ) -> None:
        """Set an entry's counter."""
        table, record = self._direct(verb, message.table_entry, "direct counter")
        if not table.info.has_counters:
            raise invalid(f"{table.where} has no direct counter")
        if message.HasField("data"):
            batch.ops.append(_counter_write(record, message.data))

    def write_direct_meter(
        self, batch: Batch, verb: dp.Verb, message: p4r.DirectMeterEntry
    ) -> None:
        """Set an entry's meter."""
        table, record = self._direct(verb, message.table_entry, "direct meter")
        if message.HasField("counter_data"):
            raise _no_colour_counters()
        config = message.config if message.HasField("config") else None
        changed = replace(record)
        self._set_meter(batch, table, changed, config)
        batch.put(self._entries[table.index], record.key, changed)

    def _key(self, table: TableBinding, message: p4r.TableEntry) -> Key:
        values, masks = table.key.decode(message.match)
        priority = message.priority
        if (priority > 0) is not table.symbol.needs_priority or priority < 0:
            raise _wrong_priority(table, priority)
        return values, masks, priority

    def _table(self, table_id: int) -> TableBinding:
        table = self._pipeline.tables.get(table_id)
        if table is None:
            raise unknown_id("table", table_id)
        return table

    def _fill(
        self, batch: Batch, table: TableBinding, record: Record, message: p4r.TableEntry
    ) -> None:
        """Give a new record everything but its match part."""
        if not message.HasField("action"):
            raise invalid(f"{table.where}: the action is missing")
        self._set_action(batch, table, record, message.action)
        self._set_extras(table, record, message)

    def _set_action(
        self, batch: Batch, table: TableBinding, record: Record, action: p4r.TableAction
    ) -> None:
        if self._take_action(batch, table, record, action) == p4i.ActionRef.DEFAULT_ONLY:
            raise denied(f"{table.where}: this action may only be the default")

    def _set_extras(self, table: TableBinding, record: Record, message: p4r.TableEntry) -> None:
        record.metadata = message.metadata
        record.controller_metadata = message.controller_metadata
        timeout = message.idle_timeout_ns
        if timeout:
            if not table.symbol.has_idle_timeout:
                raise invalid(f"{table.where} does not support idle timeouts")
            if timeout < 0:
                raise invalid(f"{table.where}: the idle timeout is negative")
            record.idle_timeout_ns = timeout
        if message.HasField("time_since_last_hit"):
            raise invalid(f"{table.where}: time_since_last_hit cannot be written")
        if message.HasField("meter_counter_data"):
            raise _no_colour_counters()

    def _insert(
        self,
        batch: Batch,
        entries: dict[Key, Record],
        record: Record,
        message: p4r.TableEntry,
    ) -> None:
        batch.put(entries, record.key, record)
        batch.ops.append(dp.TableWrite(_INSERT, record))
        self._write_direct(batch, record, message, had_meter=False)

    def _modify(
        self,
        batch: Batch,
        table: TableBinding,
        entries: dict[Key, Record],
        old: Record,
        message: p4r.TableEntry,
    ) -> None:
        record = Record(old.table, old.values, old.masks, old.priority)
        if message.HasField("action"):
            # Release first: a modify may take the place its entry gives up.
            self._profiles.release(batch, old)
            self._set_action(batch, table, record, message.action)
        else:
            record.action, record.params = old.action, old.params
            record.member, record.group = old.member, old.group
            record.one_shot = old.one_shot
        self._set_extras(table, record, message)
        batch.put(entries, record.key, record)
        batch.ops.append(dp.TableWrite(_MODIFY, record))
        if message.HasField("action"):
            self._profiles.sweep(batch, old)
        self._write_direct(batch, record, message, had_meter=old.meter is not None)

    def _delete(self, batch: Batch, entries: dict[Key, Record], old: Record) -> None:
        batch.drop(entries, old.key)
        batch.ops.append(dp.TableWrite(_DELETE, old))
        self._profiles.release(batch, old)
        self._profiles.sweep(batch, old)

    def _write_direct(
        self, batch: Batch, record: Record, message: p4r.TableEntry, *, had_meter: bool
    ) -> None:
        table = self._pipeline.tables_by_index[record.table]
        if message.HasField("counter_data"):
            if not table.info.has_counters:
                raise invalid(f"{table.where} has no direct counter")
            batch.ops.append(_counter_write(record, message.counter_data))
        if message.HasField("meter_config"):
            self._set_meter(batch, table, record, message.meter_config)
        elif had_meter:
            self._set_meter(batch, table, record, None)

    def _set_meter(
        self, batch: Batch, table: TableBinding, record: Record, config: p4r.MeterConfig | None
    ) -> None:
        if table.info.meter is None:
            raise invalid(f"{table.where} has no direct meter")
        if config is not None:
            meter = self._pipeline.symbols.direct_meters[table.symbol.id]
            check_rates(config, meter.kind, table.where)
            kept = p4r.MeterConfig()
            kept.CopyFrom(config)
            config = kept
        record.meter = config
        batch.ops.append(dp.DirectMeterWrite(record, rates_of(config)))

    def _write_const(
        self,
        batch: Batch,
        verb: dp.Verb,
        table: TableBinding,
        old: Record | None,
        message: p4r.TableEntry,
    ) -> None:
        """Refuse all but a modification of a const entry's direct resources."""
        if verb is not _MODIFY or message.HasField("action"):
            raise denied(f"{table.where}: its entries are const")
        if old is None:
            raise not_found(f"{table.where}: no such const entry")
        record = replace(old)
        batch.put(self._entries[table.index], record.key, record)
        self._write_direct(batch, record, message, had_meter=old.meter is not None)

    def _write_default(
        self, batch: Batch, verb: dp.Verb, table: TableBinding, message: p4r.TableEntry
    ) -> None:
        if verb is not _MODIFY:
            raise invalid(f"{table.where}: a default entry can only be modified")
        if message.match or message.priority:
            raise invalid(f"{table.where}: a default entry has neither match fields nor priority")
        if message.idle_timeout_ns:
            raise invalid(f"{table.where}: a default entry has no idle timeout")
        if table.symbol.has_const_default or table.info.default_is_const:
            raise denied(f"{table.where}: its default action is const")
        old = self._defaults.get(table.index)
        if old is not None:
            self._profiles.release(batch, old)
        if not message.HasField("action"):
            batch.ops.append(dp.DefaultWrite(table.index))
            if old is not None:
                batch.drop(self._defaults, table.index)
                self._profiles.sweep(batch, old)
            return
        record = Record(table.index)
        self._set_default_action(batch, table, record, message.action)
        self._set_extras(table, record, message)
        batch.put(self._defaults, table.index, record)
        batch.ops.append(
            dp.DefaultWrite(table.index, record.action, record.params, record.member, record.group)
        )
        if old is not None:
            self._profiles.sweep(batch, old)
        if message.HasField("meter_config") or message.HasField("counter_data"):
            raise unimplemented(f"{table.where}: the default entry has no counter or meter")

    def _set_default_action(
        self, batch: Batch, table: TableBinding, record: Record, action: p4r.TableAction
    ) -> None:
        if self._take_action(batch, table, record, action) == p4i.ActionRef.TABLE_ONLY:
            raise denied(f"{table.where}: this action may not be the default")

    def _take_action(
        self, batch: Batch, table: TableBinding, record: Record, action: p4r.TableAction
    ) -> int | None:
        """Bind an entry to its action; where that may stand, if the table has no profile."""
        if table.info.profile is not None:
            self._profiles.bind(batch, table, record, action)
            return None
        if not action.HasField("action"):
            raise invalid(f"{table.where} takes an action, {_kind(action)} was given")
        record.action, record.params = table.actions.decode(action.action)
        return table.symbol.scopes[action.action.action_id]

    def _direct(
        self, verb: dp.Verb, message: p4r.TableEntry, what: str
    ) -> tuple[TableBinding, Record]:
        """Return the entry whose direct resource is written."""
        if verb is not _MODIFY:
            raise invalid(f"a {what} can only be modified")
        table = self._table(message.table_id)
        if message.is_default_action:
            raise unimplemented(f"{table.where}: the default entry has no {what}")
        values, masks = table.key.decode(message.match)
        key = (values, masks, message.priority)
        record = self._entries[table.index].get(key)
        if record is None:
            raise self._missing(table, key)
        return table, record

    def _missing(self, table: TableBinding, key: Key) -> RequestError:
        shown = self._show(table, Record(table.index, *key))
        return not_found(f"{table.where}: no such entry: {shown}")

    def _show(self, table: TableBinding, record: Record) -> str:
        parts = []
        for match in table.key.encode(record.values, record.masks):
            field = next(f for f in table.key.fields if f.id == match.field_id)
            shown = _show_text(match) if field.names is not None else _show_match(match)
            parts.append(f"{field.name}={shown}")
        if record.shown_priority:
            parts.append(f"priority={record.shown_priority}")
        return ", ".join(parts) or "the one that matches everything"

    # Reading

    def read(self, query: p4r.TableEntry) -> Iterator[p4r.Entity]:
        """Return the entries a query asks for; they are selected now and encoded later."""
        tables = self._select_tables(query)
        found = []
        for table in tables:
            records = self._select(table, query)
            if records:
                found.append((table, records, self._states(table, records, query)))
        return (
            p4r.Entity(table_entry=self._encode(table, record, states.get(record.plane_key), query))
            for table, records, states in found
            for record in records
        )

    def changed_defaults(self) -> list[p4r.TableEntry]:
        """Return the defaults that are not the program's own."""
        query = p4r.TableEntry(is_default_action=True)
        return [
            self._encode(self._pipeline.tables_by_index[index], record, None, query)
            for index, record in self._defaults.items()
        ]

    def read_direct_counter(self, query: p4r.DirectCounterEntry) -> list[p4r.Entity]:
        """Return direct counters: of one entry, one table or all tables."""
        wanted = p4r.TableEntry(counter_data=p4r.CounterData())
        entities = []
        for table, records in self._direct_targets(query.table_entry, "counter"):
            states = self._states(table, records, wanted)
            for record in records:
                state = states.get(record.plane_key)
                if state is not None and state.counter is not None:
                    entry = p4r.DirectCounterEntry(
                        table_entry=self._encode_key(table, record),
                        data=counter_data(state.counter),
                    )
                    entities.append(p4r.Entity(direct_counter_entry=entry))
        return entities

    def read_direct_meter(self, query: p4r.DirectMeterEntry) -> list[p4r.Entity]:
        """Return direct meters: of one entry, one table or all tables."""
        if query.HasField("counter_data"):
            raise _no_colour_counters()
        entities = []
        for table, records in self._direct_targets(query.table_entry, "meter"):
            for record in records:
                entry = p4r.DirectMeterEntry(
                    table_entry=self._encode_key(table, record), config=record.meter
                )
                entities.append(p4r.Entity(direct_meter_entry=entry))
        return entities

    def find(self, entry: dp.Entry) -> p4r.TableEntry | None:
        """Return what an idle timeout notification says of an entry."""
        table = self._pipeline.tables_by_index.get(entry.table)
        if table is None:
            return None
        key = (entry.values, self._normal_masks(table, entry), entry.priority)
        record = self._entries[table.index].get(key)
        if record is None:
            return None
        message = self._encode_key(table, record)
        message.idle_timeout_ns = record.idle_timeout_ns
        message.metadata = record.metadata
        message.controller_metadata = record.controller_metadata
        return message

    def _select_tables(self, query: p4r.TableEntry) -> list[TableBinding]:
        if query.table_id:
            table = self._table(query.table_id)
            if query.HasField("time_since_last_hit") and not table.symbol.has_idle_timeout:
                raise invalid(f"{table.where} does not support idle timeouts")
            if query.HasField("meter_counter_data"):
                raise _no_colour_counters()
            return [table]
        if query.match or query.HasField("action"):
            raise invalid("a read of all tables cannot be filtered by match or action")
        return list(self._pipeline.tables.values())

    def _select(self, table: TableBinding, query: p4r.TableEntry) -> list[Record]:
        if query.is_default_action:
            return [self._default(table)]
        entries = self._entries[table.index]
        priority = query.priority
        records: list[Record]
        if query.match:
            values, masks = table.key.decode(query.match)
            if priority or not table.symbol.needs_priority:
                record = entries.get((values, masks, priority))
                records = [record] if record else []
            else:
                records = [r for r in entries.values() if (r.values, r.masks) == (values, masks)]
        else:
            records = list(entries.values())
            if priority:
                records = [r for r in records if r.shown_priority == priority]
        if query.HasField("action"):
            records = self._filter_action(table, records, query.action)
        if query.metadata:
            records = [r for r in records if r.metadata == query.metadata]
        if query.controller_metadata:
            wanted = query.controller_metadata
            records = [r for r in records if r.controller_metadata == wanted]
        return records

    def _filter_action(
        self, table: TableBinding, records: list[Record], action: p4r.TableAction
    ) -> list[Record]:
        match action.WhichOneof("type"):
            case "action":
                wanted = action.action.action_id
                if not wanted:
                    return records
                if not table.actions.has(wanted):
                    raise invalid(f"{table.where}: action id 0x{wanted:08x} is not one of its own")
                return [r for r in records if table.actions.id_of(r.action) == wanted]
            case "action_profile_member_id":
                return [r for r in records if r.member == action.action_profile_member_id]
            case "action_profile_group_id":
                return [r for r in records if r.group == action.action_profile_group_id]
            case _:
                return records

    def _states(
        self, table: TableBinding, records: list[Record], query: p4r.TableEntry
    ) -> dict[Key, dp.EntryState]:
        """Ask the data plane what the entries have seen, if the query wants to know."""
        wanted = (query.HasField("counter_data") and table.info.has_counters) or query.HasField(
            "time_since_last_hit"
        )
        if not wanted or query.is_default_action:
            return {}
        if len(records) > 1:
            states = self._plane.entries(table.index)
            return {
                (s.entry.values, self._normal_masks(table, s.entry), s.entry.priority): s
                for s in states
            }
        state = self._plane.entry(records[0])
        return {records[0].plane_key: state} if state else {}

    def _direct_targets(
        self, query: p4r.TableEntry, what: str
    ) -> list[tuple[TableBinding, list[Record]]]:
        tables = [self._table(query.table_id)] if query.table_id else self._pipeline.tables.values()
        targets = []
        for table in tables:
            has = table.info.has_counters if what == "counter" else table.info.meter is not None
            if not has:
                if query.table_id:
                    raise invalid(f"{table.where} has no direct {what}")
                continue
            records = [] if query.is_default_action else self._select(table, query)
            if query.match and not records:
                values, masks = table.key.decode(query.match)
                raise self._missing(table, (values, masks, query.priority))
            if records:
                targets.append((table, records))
        return targets

    def _default(self, table: TableBinding) -> Record:
        record = self._defaults.get(table.index)
        if record is None:
            entry = self._plane.default_entry(table.index).entry
            record = Record(table.index, action=entry.action, params=entry.params)
        return record

    def _initial_entries(self, table: TableBinding) -> dict[Key, Record]:
        """Return the entries that are part of the program."""
        if not table.info.is_const:
            return {}
        states = self._plane.entries(table.index)
        lowest = min((state.entry.priority for state in states), default=0)
        records = {}
        for state in states:
            entry = state.entry
            record = Record(
                table=table.index,
                values=entry.values,
                masks=self._normal_masks(table, entry),
                priority=entry.priority,
                action=entry.action,
                params=entry.params,
                member=entry.member,
                group=entry.group,
                is_const=state.is_const,
                raised=1 - lowest if table.symbol.needs_priority else -entry.priority,
            )
            records[record.key] = record
        return records

    @staticmethod
    def _normal_masks(table: TableBinding, entry: dp.Entry) -> tuple[int, ...]:
        return table.key.normal_masks(entry.masks)

    def _encode_key(self, table: TableBinding, record: Record) -> p4r.TableEntry:
        return p4r.TableEntry(
            table_id=table.symbol.id,
            match=table.key.encode(record.values, record.masks),
            priority=record.shown_priority,
        )

    def _encode(
        self,
        table: TableBinding,
        record: Record,
        state: dp.EntryState | None,
        query: p4r.TableEntry,
    ) -> p4r.TableEntry:
        message = p4r.TableEntry(
            table_id=table.symbol.id,
            priority=record.shown_priority,
            metadata=record.metadata,
            controller_metadata=record.controller_metadata,
            idle_timeout_ns=record.idle_timeout_ns,
            is_const=record.is_const,
        )
        if query.is_default_action:
            message.is_default_action = True
        else:
            message.match.extend(table.key.encode(record.values, record.masks))
        self._encode_action(table, record, message)
        if record.meter is not None and query.HasField("meter_config"):
            message.meter_config.CopyFrom(record.meter)
        if state is not None:
            if state.counter is not None and query.HasField("counter_data"):
                message.counter_data.CopyFrom(counter_data(state.counter))
            if table.symbol.has_idle_timeout and query.HasField("time_since_last_hit"):
                message.time_since_last_hit.elapsed_ns = state.idle_ns
        return message

    def _encode_action(self, table: TableBinding, record: Record, message: p4r.TableEntry) -> None:
        if record.one_shot is not None:
            action_set = record.one_shot.encode(self._pipeline)
            message.action.action_profile_action_set.CopyFrom(action_set)
        elif record.group:
            message.action.action_profile_group_id = record.group
        elif record.member:
            message.action.action_profile_member_id = record.member
        elif table.actions.id_of(record.action):
            message.action.action.CopyFrom(table.actions.encode(record.action, record.params))


def counter_data(value: dp.CounterValue) -> p4r.CounterData:
    """Return a counter's value as a message."""
    return p4r.CounterData(byte_count=value.bytes, packet_count=value.packets)


def _counter_write(record: Record, data: p4r.CounterData) -> dp.DirectCounterWrite:
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid("a counter cannot be negative")
    return dp.DirectCounterWrite(record, data.packet_count, data.byte_count)


def _no_colour_counters() -> RequestError:
    return unimplemented("meters do not count per colour here; leave their counter data unset")


def _wrong_priority(table: TableBinding, priority: int) -> RequestError:
    if table.symbol.needs_priority:
        cure = "it has ternary, range or optional fields, so a priority above 0 is needed"
    else:
        cure = "it has only exact and lpm fields, so the priority must be 0"
    return invalid(f"{table.where}: priority {priority} is not allowed; {cure}")


def _kind(action: p4r.TableAction) -> str:
    return action.WhichOneof("type") or "nothing"


def _show_text(match: p4r.FieldMatch) -> str:
    """What its client knows as a string: only what is compared whole is."""
    value = match.exact.value if match.HasField("exact") else match.optional.value
    return f"'{value.decode(errors='backslashreplace')}'"


def _show_match(match: p4r.FieldMatch) -> str:
    match match.WhichOneof("field_match_type"):
        case "exact":
            return f"0x{match.exact.value.hex()}"
        case "lpm":
            return f"0x{match.lpm.value.hex()}/{match.lpm.prefix_len}"
        case "ternary":
            return f"0x{match.ternary.value.hex()}&&&0x{match.ternary.mask.hex()}"
        case "range":
            return f"0x{match.range.low.hex()}..0x{match.range.high.hex()}"
        case _:
            return f"0x{match.optional.value.hex()}"

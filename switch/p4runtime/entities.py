"""All entities of a pipeline: one place that sends an update or a query to whom it concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from finsy.proto import p4r

from switch import dataplane as dp
from switch.p4runtime.batch import Batch, Plane
from switch.p4runtime.digests import Digests
from switch.p4runtime.errors import (
    RequestError,
    aborted,
    already_exists,
    invalid,
    unimplemented,
)
from switch.p4runtime.externs import Externs
from switch.p4runtime.packetio import PacketCodec
from switch.p4runtime.pipeline import Pipeline
from switch.p4runtime.profiles import Profiles
from switch.p4runtime.record import Record
from switch.p4runtime.replication import Replication
from switch.p4runtime.roles import Scope
from switch.p4runtime.tables import Tables

_VERBS = {
    p4r.Update.INSERT: dp.Verb.INSERT,
    p4r.Update.MODIFY: dp.Verb.MODIFY,
    p4r.Update.DELETE: dp.Verb.DELETE,
}


class Prepared(NamedTuple):
    """An entry to insert, in the words of every device that runs its pipeline."""

    op: dp.TableWrite
    packed: bytes
    record: Record


class PackedWrites(NamedTuple):
    """Much that a device is told at once, in the words of every device that runs its pipeline."""

    packed: bytes
    ops: int
    """How many that is."""
    orders: tuple[dp.TableWrite, ...]
    """Those of its entries that are orders to queues, ports and links."""


class Known(NamedTuple):
    """The same as clients see it."""

    records: Iterable[Record]
    updates: Iterable[p4r.Update]


class Entities:
    """The forwarding state of one pipeline, as its clients see it."""

    def __init__(self, pipeline: Pipeline, plane: Plane) -> None:
        self.pipeline = pipeline
        self._plane = plane
        self._pending: list[Callable[[], Known]] = []
        self.profiles = Profiles(pipeline)
        self.tables = Tables(pipeline, plane, self.profiles)
        self.replication = Replication(pipeline.ports)
        self.externs = Externs(pipeline, plane)
        self.digests = Digests(pipeline)
        self.packets = PacketCodec(pipeline)
        self._writers: dict[str, Callable[[Batch, dp.Verb, Any], None]] = {
            "table_entry": self.tables.write,
            "direct_counter_entry": self.tables.write_direct_counter,
            "direct_meter_entry": self.tables.write_direct_meter,
            "action_profile_member": self.profiles.write_member,
            "action_profile_group": self.profiles.write_group,
            "packet_replication_engine_entry": self.replication.write,
            "counter_entry": self.externs.write_counter,
            "meter_entry": self.externs.write_meter,
            "register_entry": self.externs.write_register,
            "value_set_entry": self.externs.write_value_set,
            "digest_entry": self.digests.write,
        }
        self._readers: dict[str, Callable[[Any], Iterable[p4r.Entity]]] = {
            "table_entry": self.tables.read,
            "direct_counter_entry": self.tables.read_direct_counter,
            "direct_meter_entry": self.tables.read_direct_meter,
            "action_profile_member": self.profiles.read_members,
            "action_profile_group": self.profiles.read_groups,
            "packet_replication_engine_entry": self.replication.read,
            "counter_entry": self.externs.read_counters,
            "meter_entry": self.externs.read_meters,
            "register_entry": self.externs.read_registers,
            "value_set_entry": self.externs.read_value_sets,
            "digest_entry": self.digests.read,
        }

    def rebind(self, pipeline: Pipeline) -> None:
        """Take another P4Info of the same program; the state stays."""
        self.pipeline = pipeline
        self.profiles.rebind(pipeline)
        self.tables.rebind(pipeline)
        self.externs.rebind(pipeline)
        self.digests.rebind(pipeline)
        self.replication.rebind(pipeline.ports)
        self.packets = PacketCodec(pipeline)

    def write(
        self,
        updates: Iterable[p4r.Update],
        *,
        atomic: bool,
        one_step: bool = False,
        scope: Scope | None = None,
    ) -> list[RequestError | None]:
        """Carry out a batch, `atomic` whole or not at all; return an error or None per update.

        With `one_step` no packet may see a part of it either, or it is refused. With a `scope`
        nothing outside it is written.
        """
        self._catch_up()
        batch = Batch()
        errors: list[RequestError | None] = []
        failed = False
        for update in updates:
            try:
                if scope is not None and (refusal := scope.refusal(update.entity)):
                    raise refusal
                self._write_one(batch, update)
            except RequestError as error:
                batch.fail_update()
                errors.append(error)
                failed = True
            else:
                batch.close_update()
                errors.append(None)
        if atomic and failed:
            batch.undo()
            undone = aborted("not done: another update of this batch failed")
            return [found or undone for found in errors]
        if one_step and not batch.is_one_step:
            batch.undo()
            raise unimplemented(
                "a DATAPLANE_ATOMIC batch cannot mix entries, members, groups or replicas with"
                " counters, meters, registers, value sets or digests"
            )
        carry_out = batch.apply_atomically if atomic else batch.apply
        for index, refused in carry_out(self._plane).items():
            errors[index] = refused
        return errors

    def prepare(self, update: p4r.Update) -> Prepared | None:
        """Take apart an update that inserts an entry and does nothing else; None for any other.

        What comes of it is good for every device that runs this pipeline.
        """
        if update.type != p4r.Update.INSERT or not update.entity.HasField("table_entry"):
            return None
        record = self.tables.prepare(update.entity.table_entry)
        if record is None:
            return None
        op = dp.TableWrite(dp.Verb.INSERT, record)
        packed = self._plane.pack(op)
        return None if isinstance(packed, dp.OpError) else Prepared(op, packed, record)

    def insert(self, entries: Sequence[Prepared]) -> list[RequestError | None]:
        """Write what was prepared, each entry on its own; return an error or None per entry."""
        self._catch_up()
        errors: list[RequestError | None] = [
            None if self.tables.add(entry.record) else already_exists("the entry exists")
            for entry in entries
        ]
        new = [at for at, error in enumerate(errors) if error is None]
        ops = [entries[at].op for at in new]
        answers = self._plane.write_packed(ops, [entries[at].packed for at in new])
        for at, answer in zip(new, answers, strict=True):
            if answer is not None:
                self.tables.forget(entries[at].record)
                errors[at] = RequestError(answer.code, answer.message)
        return errors

    def like(
        self,
        record: Record,
        values: tuple[int, ...],
        masks: tuple[int, ...],
        params: tuple[int, ...],
    ) -> Prepared | None:
        """An entry of the same table and action as one that was prepared, of other numbers.

        None where they do not fit, which `prepare` says in words.
        """
        like = Record(*(record.table, values, masks, record.priority, record.action), params=params)
        op = dp.TableWrite(dp.Verb.INSERT, like)
        packed = self._plane.pack(op)
        return None if isinstance(packed, dp.OpError) else Prepared(op, packed, like)

    def ops(self, updates: Iterable[p4r.Update]) -> list[dp.Op]:
        """What updates come to, which are not carried out."""
        batch = Batch()
        try:
            for update in updates:
                self._write_one(batch, update)
                batch.close_update()
            return list(batch.ops)
        finally:
            batch.undo()

    def tell(
        self, writes: Iterable[PackedWrites], known: Callable[[], Known]
    ) -> RequestError | None:
        """Write what no entity here is in the way of; return what was refused first.

        What it is to clients is asked for when one of them wants to see or to change anything.
        """
        parts = tuple(writes)
        refused = self._plane.write_many(
            b"".join(part.packed for part in parts),
            sum(part.ops for part in parts),
            [op for part in parts for op in part.orders],
        )
        self._pending.append(known)
        return None if refused is None else RequestError(refused.code, refused.message)

    def _catch_up(self) -> None:
        pending, self._pending = self._pending, []
        for known in pending:
            records, updates = known()
            for record in records:
                self.tables.add(record)
            batch = Batch()
            for update in updates:
                self._write_one(batch, update)

    def changing(self, entry: Prepared) -> Prepared:
        """The same, for a device that has an entry of its key."""
        op = dp.TableWrite(dp.Verb.MODIFY, entry.record)
        packed = self._plane.pack(op)
        assert not isinstance(packed, dp.OpError)  # it was packed to be inserted
        return Prepared(op, packed, entry.record)

    def change(self, entries: Sequence[Prepared]) -> list[RequestError | None]:
        """Let entries that are there be these; return an error or None per entry."""
        self._catch_up()
        answers = self._plane.write_packed([e.op for e in entries], [e.packed for e in entries])
        errors: list[RequestError | None] = []
        for entry, answer in zip(entries, answers, strict=True):
            if answer is None:
                self.tables.exchange(entry.record)
            errors.append(None if answer is None else RequestError(answer.code, answer.message))
        return errors

    def read(
        self, queries: Iterable[p4r.Entity]
    ) -> tuple[Iterator[p4r.Entity], list[RequestError | None]]:
        """Select what each query asks for; return the entities and an error or None per query.

        Readers select at once, so that all queries see the same state, and may encode lazily.
        """
        self._catch_up()
        found: list[Iterable[p4r.Entity]] = []
        errors: list[RequestError | None] = []
        for query in queries:
            try:
                found.append(self._read_one(query))
            except RequestError as error:
                errors.append(error)
            else:
                errors.append(None)
        return chain.from_iterable(found), errors

    def _write_one(self, batch: Batch, update: p4r.Update) -> None:
        verb = _VERBS.get(update.type)
        if verb is None:
            raise invalid("the update says neither INSERT, MODIFY nor DELETE")
        entity = update.entity
        # Nearly every update is a table entry; asking for it alone is cheaper than asking which.
        if entity.HasField("table_entry"):
            self.tables.write(batch, verb, entity.table_entry)
            return
        kind = entity.WhichOneof("entity")
        if kind is None:
            raise invalid("the update names no entity")
        writer = self._writers.get(kind)
        if writer is None:
            raise unimplemented(f"{kind} is not supported")
        writer(batch, verb, getattr(entity, kind))

    def _read_one(self, query: p4r.Entity) -> Iterable[p4r.Entity]:
        kind = query.WhichOneof("entity")
        if kind is None:
            raise invalid(
                "the query names no entity; to read all tables, give an empty table_entry"
            )
        reader = self._readers.get(kind)
        if reader is None:
            raise unimplemented(f"{kind} is not supported")
        return reader(getattr(query, kind))


class Rehearsal:
    """A data plane that only counts entries: what stands behind a pipeline not yet committed."""

    def __init__(self, program: dp.Program) -> None:
        self._program = program
        self._used = [0] * len(program.tables)

    def pack(self, op: dp.Op) -> bytes:  # noqa: ARG002
        """Return nothing: counting needs no records."""
        return b""

    def write_packed(
        self,
        ops: Sequence[dp.Op],
        packed: Sequence[bytes | dp.OpError],  # noqa: ARG002
    ) -> list[dp.OpError | None]:
        """Do the same as write."""
        return self.write(ops)

    def write_many(
        self,
        packed: bytes,  # noqa: ARG002
        count: int,  # noqa: ARG002
        orders: Iterable[dp.TableWrite],  # noqa: ARG002
    ) -> dp.OpError | None:
        """Accept it."""
        return None

    def write(
        self, ops: Sequence[dp.Op], *, all_or_nothing: bool = False
    ) -> list[dp.OpError | None]:
        """Accept whatever there is room for."""
        before = list(self._used)
        answers = [self._account(op) for op in ops]
        if all_or_nothing and any(answers):
            self._used = before
            undone = dp.OpError(dp.Code.ABORTED, "another operation of the batch failed")
            return [answer or undone for answer in answers]
        return answers

    def _account(self, op: dp.Op) -> dp.OpError | None:
        if not isinstance(op, dp.TableWrite) or op.verb is dp.Verb.MODIFY:
            return None
        table = self._program.tables[op.entry.table]
        if op.verb is dp.Verb.DELETE:
            self._used[table.index] -= 1
        elif self._used[table.index] >= table.size:
            return dp.OpError(
                dp.Code.RESOURCE_EXHAUSTED, f"table {table.name} holds {table.size} entries"
            )
        else:
            self._used[table.index] += 1
        return None

    def entries(self, table: int) -> list[dp.EntryState]:  # noqa: ARG002
        """Nothing has been seen yet."""
        return []

    def entry(self, key: dp.Entry) -> dp.EntryState | None:
        """Return an entry as one that has seen nothing."""
        return dp.EntryState(key, dp.CounterValue(0, 0), None, 0, is_const=False)

    def default_entry(self, table: int) -> dp.EntryState:
        """Return the program's own default."""
        info = self._program.tables[table]
        entry = dp.Entry(table, action=info.default_action, params=info.default_params)
        return dp.EntryState(entry, None, None, 0, is_const=info.default_is_const)

    def read_counter(self, counter: int, index: int | None = None) -> list[dp.CounterValue]:
        """Return zeros."""
        size = self._program.counters[counter].size
        return [dp.CounterValue(0, 0)] * (size if index is None else 1)

    def read_meter(self, meter: int, index: int | None = None) -> list[dp.MeterRates | None]:
        """Return meters that are not configured."""
        size = self._program.meters[meter].size
        return [None] * (size if index is None else 1)

    def read_register(self, register: int, index: int | None = None) -> list[int]:
        """Return zeros."""
        size = self._program.registers[register].size
        return [0] * (size if index is None else 1)

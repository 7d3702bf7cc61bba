"""The controller's words to simulated switches, without a wire: same P4Runtime, same servicer.

What the controller would send in Write requests is encoded as ever and handed to the P4Runtime
device of each switch directly, so three hundred switches are programmed in seconds, and nothing
depends on when a packet of a control network arrives. Counters and registers are read from the data
plane itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import field, replace
from functools import lru_cache, partial
from typing import Any, Protocol, Self
from weakref import WeakKeyDictionary

import finsy as fy
from finsy.p4entity import decode_entity, encode_entities, encode_updates
from finsy.p4schema import P4MatchType
from finsy.proto import p4r

from controller.client import queries_of, writes_of
from controller.entities import Entity, SwitchPlan, TableEntry, changes
from controller.errors import ControllerError
from controller.tables import PlanParts
from controller.wire import canonical, from_finsy
from lab.engines.sim import native
from lab.errors import RunError
from lab.machine.program import BuiltProgram, p4info_of
from lab.results.counts import PAUSE_TOTAL, WAITED, Reading, Wanted
from lab.results.outcome import Line, SwitchBooks, SwitchCounts, Traffic
from params.classes import ClassSet
from params.data import Data
from switch.dataplane import BookLine, Dataplane, PacketIn, Program, padded
from switch.p4runtime.device import Device
from switch.p4runtime.entities import Entities, Known, PackedWrites, Prepared
from switch.p4runtime.errors import RequestError
from switch.p4runtime.pipeline import Pipeline
from switch.p4runtime.record import Record
from topologies import Node

STOCK = "in_used", "in_headroom", "out_used", "pool_used", "headroom_used"  # of a buffer


# Registers that only tell: nothing depends on how large they are.
_TALLIES = {PAUSE_TOTAL, "link_sent", "link_counts", "report_sequence"}
_MAX_TAKEN_IN = 20_000  # entities that are remembered from run to run


class _Form(Data):
    """How entries that differ in numbers alone are taken in: as one of them was, by P4Runtime."""

    like: Record
    values: tuple[int, ...]  # where in an entry's match a record's are
    params: tuple[int, ...]  # and where in its parameters

    @classmethod
    def of(cls, entry: TableEntry, record: Record, schema: fy.P4Schema) -> Self | None:
        """The form of an entry; None where numbers alone do not tell what becomes of one."""
        table = schema.tables[entry.table]
        action = table.actions[entry.action]
        if any(field.match_type not in _PLAIN for field in table.match_fields):
            return None
        keys = [table.match_fields[name].alias for name, _ in entry.match]
        names = [action.params[name].name for name, _ in entry.params]
        try:
            values = tuple(keys.index(field.alias) for field in table.match_fields)
            params = tuple(names.index(param.name) for param in action.params)
        except ValueError:  # something is left out
            return None
        form = cls(record, values, params)
        return form if form.numbers(entry) == (record.values, record.masks, record.params) else None

    def numbers(self, entry: TableEntry) -> tuple[tuple[int, ...], ...]:
        """A record's values, masks and parameters."""
        found = [entry.match[at][1] for at in self.values]
        params = tuple([entry.params[at][1] for at in self.params])
        if not self.like.masks:
            return tuple(found), (), params  # type: ignore[arg-type]
        pairs = [each if isinstance(each, tuple) else (each, 0) for each in found]
        values, masks = zip(*pairs, strict=True)
        return values, masks, params

    def filled(self, entry: TableEntry, entities: Entities) -> Prepared | None:
        """An entry of the form, taken in."""
        return entities.like(self.like, *self.numbers(entry))


_PLAIN = P4MatchType.EXACT, P4MatchType.LPM


class _TakenIn(Data, frozen=False):
    """What all switches of a program are told, as they take it in: the same in every run."""

    program: bytes  # its JSON
    names: dict[Entity, Entity] = field(default_factory=dict)  # as switches name everything
    prepared: dict[Entity, Prepared | None] = field(default_factory=dict)
    changed: dict[Entity, Prepared] = field(default_factory=dict)  # where one of its key stands
    forms: dict[object, _Form | None] = field(default_factory=dict)
    pipeline: Pipeline | None = None  # of the run before


class SimulatedSwitches:
    """A switch for each node, all running one program, and what a controller may ask of them."""

    def __init__(
        self,
        nodes: Iterable[Node],
        program: BuiltProgram,
        seed_of: Callable[[Node], int] = lambda _: 1,
        *,
        cpu_port: int | None = None,
        soon: bool = False,
    ) -> None:
        self.json = program.json
        self._schema = _schema_of(program.p4info.read_text())
        self.planes: dict[Node, Dataplane] = {}
        self._devices: dict[Node, Device] = {}
        self._installed: dict[Node, PlanParts] = {}
        self._alike: dict[int, tuple[SwitchPlan, PackedWrites]] = {}
        self.before: dict[Node, SwitchCounts] = {}  # of switches that started again
        self._pipeline: Pipeline | None = None
        self._since: dict[Node, dict[object, Entity]] = {}  # what was changed meanwhile
        text = program.json.read_bytes()
        self._taken_in = _taken_in(self._schema, text)
        try:
            for number, node in enumerate(nodes, 1):
                self.planes[node] = Dataplane(node.name, seed=seed_of(node), cpu_port=cpu_port)
                device = self._devices[node] = Device(number, self.planes[node])
                # Built once: code and symbols are shared, state is not.
                if self._pipeline is None:
                    known = self._taken_in
                    known.pipeline = self._pipeline = device.build_now(
                        self._schema.p4info, text, known.pipeline, soon=soon
                    )
                device.commit(self._pipeline)
        except RequestError as error:  # of a program that was compiled a moment ago
            raise RunError(
                str(error), "Allow it more memory (ulimit -v), or ask for fewer switches."
            ) from None

    def tell(self, node: Node, parts: PlanParts) -> None:
        """Tell a switch that knows nothing yet its plan."""
        entities = self._devices[node].entities
        try:
            writes = [self._packed_alike(part, entities) for part in parts.alike]
            writes.append(self._packed(parts.own, entities))
        except ControllerError as complaint:
            raise RunError(f"{node}: {complaint}") from None
        self._installed[node] = parts
        refused = entities.tell(writes, partial(self._known, parts, entities))
        if refused is not None:
            raise RunError(f"{node} refused what it was told: {refused.message}")

    def _packed_alike(self, part: SwitchPlan, entities: Entities) -> PackedWrites:
        """What several are told: the part is kept, so that no other is taken for it."""
        found = self._alike.get(id(part))
        if found is None:
            found = self._alike[id(part)] = part, self._packed(part, entities)
        return found[1]

    def _packed(self, plan: SwitchPlan, entities: Entities) -> PackedWrites:
        """A plan in the words of all switches: entries, then all else."""
        prepared, others = self._taken_apart(plan, entities)
        packed = [entry.packed for entry in prepared]
        for op in entities.ops(self._encoded(writes_of(changes((), others)))):
            answer = next(iter(self.planes.values())).pack(op)
            assert isinstance(answer, bytes)  # it was looked at
            packed.append(answer)
        ordered = next(iter(self.planes.values())).order_tables
        orders = tuple(entry.op for entry in prepared if entry.op.entry.table in ordered)
        return PackedWrites(padded(packed), len(packed), orders)

    def _known(self, parts: PlanParts, entities: Entities) -> Known:
        """A plan as its switch's clients see it."""
        prepared, others = self._taken_apart(parts.plan, entities)
        updates = self._encoded(writes_of(changes((), others)))
        return Known((entry.record for entry in prepared), updates)

    def _taken_apart(
        self, plan: SwitchPlan, entities: Entities
    ) -> tuple[list[Prepared], SwitchPlan]:
        """A plan's entries as all switches take them in, and what else is in it."""
        prepared, others = [], []
        for entity in plan:
            found = self._by_form(entity, entities)
            if found is None:
                others.append(self._named(entity))
            else:
                prepared.append(found)
        return prepared, tuple(others)

    def _by_form(self, entity: Entity, entities: Entities) -> Prepared | None:
        """An entry as all switches take it in: the first of each form by P4Runtime's own words."""
        if not isinstance(entity, TableEntry):
            return None
        names = *(name for name, _ in entity.match), entity.action, *(n for n, _ in entity.params)
        key = entity.table, entity.priority, names
        forms = self._taken_in.forms
        form = forms.get(key)
        if form is not None and (found := form.filled(entity, entities)) is not None:
            return found
        found = self._prepared(self._named(entity), entities)
        if found is not None and key not in forms:
            forms[key] = _Form.of(entity, found.record, self._schema)
        return found

    def install(self, node: Node, plan: SwitchPlan) -> None:
        """Tell a switch everything it has to know and was not told before."""
        try:
            wanted = tuple(self._named(entity) for entity in plan)
        except ControllerError as complaint:
            raise RunError(f"{node}: {complaint}") from None
        difference = changes(self._present(node), wanted)
        self._installed[node] = PlanParts((), wanted)
        entities = self._devices[node].entities
        prepared = [self._prepared(entity, entities) for entity in difference.add]
        errors = entities.insert([entry for entry in prepared if entry is not None])
        others = tuple(
            entity for entity, entry in zip(difference.add, prepared, strict=True) if entry is None
        )
        words = writes_of(replace(difference, add=others))
        errors += entities.write(self._encoded(words), atomic=False)
        for error in errors:
            if error is not None:
                raise RunError(f"{node} refused what it was told: {error.message}")

    def change(self, node: Node, entities: Iterable[Entity]) -> None:
        """Let table entries that a switch has be others of the same keys, while packets pass."""
        since = self._since.setdefault(node, {})
        own = self._devices[node].entities
        wanted = [each for each in entities if since.get(each.key) != each]
        errors = own.change([self._changing(entity, own) for entity in wanted])
        for entity, error in zip(wanted, errors, strict=True):
            if error is not None:
                raise RunError(f"{node} refused what it was told: {error.message}")
            since[entity.key] = entity

    def _changing(self, entity: Entity, entities: Entities) -> Prepared:
        """An entry as all switches take it in that have one of its key."""
        found = self._taken_in.changed.get(entity)
        if found is None:
            prepared = self._prepared(self._named(entity), entities)
            assert prepared is not None  # of the fabric program's own tables
            found = self._taken_in.changed[entity] = entities.changing(prepared)
        return found

    def _present(self, node: Node) -> SwitchPlan:
        """What a switch has now."""
        since = {e.key: e for e in map(self._named, self._since.pop(node, {}).values())}
        installed = self._installed[node].plan if node in self._installed else ()
        return tuple(since.get(entity.key, entity) for entity in map(self._named, installed))

    def restart(self, node: Node, ports: Collection[int], now_ns: int) -> None:
        """Let a switch start again, empty; what its program had counted is kept here."""
        self.before[node] = self._by_program(node, ports, now_ns)
        assert self._pipeline is not None
        program = self.program
        self._devices[node].commit(self._pipeline)
        self.planes[node].exchange(program)
        self._installed.pop(node, None)
        self._since.pop(node, None)

    @property
    def program(self) -> Program:
        """What all of them run."""
        program = next(iter(self.planes.values())).program
        assert program is not None
        return program

    def go_on_with(self, program: Program) -> None:
        """Let all of them run other code of the same program."""
        for plane in self.planes.values():
            plane.exchange(program)

    def _by_program(self, node: Node, ports: Collection[int], now_ns: int) -> SwitchCounts:
        reading = replace(read(self.planes[node], ports, now_ns), lost={})
        return reading.counts(ports).plus(self.before.get(node))

    def _named(self, entity: Entity) -> Entity:
        """An entity with every name as switches tell it."""
        found = self._taken_in.names.get(entity)
        if found is None:
            (found,) = canonical((entity,), self._schema)
            self._taken_in.names[entity] = found
        return found

    def _prepared(self, entity: Entity, entities: Entities) -> Prepared | None:
        """An entry as all switches take it in: most of what one is told many are."""
        known = self._taken_in.prepared
        if entity not in known:
            known[entity] = None
            if isinstance(entity, TableEntry):
                (update,) = self._encoded(writes_of(changes((), (entity,))))
                known[entity] = entities.prepare(update)
        return known[entity]

    def _encoded(self, words: Iterable[Any]) -> list[p4r.Update]:
        encoded = encode_updates(words, self._schema)
        return [update for update in encoded if isinstance(update, p4r.Update)]

    def reports(self) -> Iterator[tuple[int, bytes]]:
        """Take the telemetry reports that wait, with the numbers of their switches."""
        for number, plane in enumerate(self.planes.values()):
            for event in plane.drain():
                if isinstance(event, PacketIn):
                    yield number, event.data

    def watch(
        self, pausable: Iterable[int], lossless: Iterable[int] = (), *, has_credits: bool = False
    ) -> native.Watch:
        """Where the program keeps what is noted while it runs, and whose pauses.

        Where classes go by credits, what stands still waits for them.
        """
        program = self.program
        stock = {name: _index_or_none(program.registers, f"buffer_{name}") for name in STOCK}
        has_stock = None not in stock.values()
        storms = _index_or_none(program.counters, "pause_storms")
        return native.Watch(
            pause_total=_index(program.registers, WAITED if has_credits else PAUSE_TOTAL),
            marked=_index(program.counters, "marked"),
            dropped=_index(program.counters, "dropped"),
            classes=ClassSet(pausable).mask,
            lossless=ClassSet(lossless).mask,
            storms=native.NOWHERE if storms is None else storms,
            **{name: at if has_stock else native.NOWHERE for name, at in stock.items()},
        )

    @property
    def tallies(self) -> bytes:
        """By register: whether nothing depends on how large it is."""
        names = (info.name.rsplit(".", 1)[-1] for info in self.program.registers)
        return bytes(name in _TALLIES for name in names)

    def counts(self, node: Node, ports: Collection[int], now_ns: int) -> SwitchCounts:
        """What a switch has counted so far, and before it last started again."""
        return read(self.planes[node], ports, now_ns).counts(ports).plus(self.before.get(node))

    @property
    def schema(self) -> fy.P4Schema:
        """What the controller sees of the program."""
        return self._schema

    def read_plan(self, node: Node, wanted: SwitchPlan) -> SwitchPlan:
        """What a switch has of a plan's kinds."""
        queries = encode_entities(queries_of(wanted), self._schema)
        answers, errors = self._devices[node].entities.read(queries)
        for error in errors:
            if error is not None:
                raise RunError(f"{node} would not tell what it has: {error.message}")
        found = (from_finsy(decode_entity(answer, self._schema)) for answer in answers)
        return tuple(entity for entity in found if entity is not None)

    def books(self, node: Node) -> SwitchBooks:
        """A switch's books."""
        lines, stats = self.planes[node].books()
        return SwitchBooks(
            lines_of(lines),
            *(stats.received, stats.copies, stats.sent, stats.held, stats.drops),
        )

    def close(self) -> None:
        """Release the switches, and the program, which is megabytes, without waiting for others."""
        for plane in self.planes.values():
            plane.close()
        self._devices.clear()
        self._pipeline = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@lru_cache(maxsize=4)  # who runs many scenarios runs them with one program
def _schema_of(p4info: str) -> fy.P4Schema:
    return fy.P4Schema(p4info_of(p4info))


_latest: WeakKeyDictionary[fy.P4Schema, _TakenIn] = WeakKeyDictionary()


def _taken_in(schema: fy.P4Schema, program: bytes) -> _TakenIn:
    """What is known of a program from the run before, unless that is too much to keep."""
    found = _latest.get(schema)
    if found is None or found.program != program or len(found.names) > _MAX_TAKEN_IN:
        found = _latest[schema] = _TakenIn(program)
    return found


def read(plane: Dataplane, ports: Collection[int], now: int) -> Reading:
    """All cells of a switch that tell what happened at some ports."""
    program = plane.program
    assert program is not None
    wanted = Wanted.at(ports)
    counters = {}
    for name, span in wanted.counters.items():
        values = plane.read_counter(_index(program.counters, name), span)
        counted = (Traffic(value.packets, value.bytes) for value in values)
        counters[name] = dict(zip(span, counted, strict=True))
    registers = {
        name: dict(
            zip(span, plane.read_register(_index(program.registers, name), span), strict=True)
        )
        for name, span in wanted.registers.items()
    }
    return Reading(counters, registers, now, plane.stats().drops)


def lines_of(books: Iterable[BookLine]) -> tuple[Line, ...]:
    """Books as results have them."""
    return tuple(Line(*line) for line in books)


class _Named(Protocol):
    @property
    def index(self) -> int: ...
    @property
    def name(self) -> str: ...


def _index_or_none(infos: Sequence[_Named], name: str) -> int | None:
    """The number of what has this name, or one that ends so."""
    found = (info.index for info in infos if f".{info.name}".endswith(f".{name}"))
    return next(found, None)


def _index(infos: Sequence[_Named], name: str) -> int:
    """The same of what has to be there."""
    found = _index_or_none(infos, name)
    if found is not None:
        return found
    raise RunError(f"the program has no '{name}' to read; is it the fabric program?")

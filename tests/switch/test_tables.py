"""Tables of every kind against a model that looks at each entry, through random changes."""

from __future__ import annotations

import ctypes
import random
import subprocess
from collections.abc import Callable
from dataclasses import field
from pathlib import Path

import pytest

import switch
from compiler import compile_program
from params.data import Data
from switch.dataplane import (
    Code,
    Dataplane,
    DefaultWrite,
    Entry,
    EntryState,
    MatchKind,
    OpError,
    Program,
    TableInfo,
    TableWrite,
    Verb,
)
from switch.place import JsonError

from .programs import compiled
from .sanitized import cut_short

P4 = Path(__file__).parent / "p4"
FIELDS = [("mac", 48), ("port", 16), ("ip", 32), ("wide", 64), ("ip6", 128), ("proto", 8)]
KEY_BYTES = sum(w for _, w in FIELDS) // 8


@pytest.fixture(scope="module")
def program() -> Program:
    return compiled(P4 / "tables.p4")


class Model(Data, frozen=False):
    """A table as the specification has it: a list of entries, the best match wins."""

    info: TableInfo
    entries: dict[tuple[object, ...], Entry] = field(default_factory=dict)
    default: int = 0  # what is written where none matches

    def key_of(self, e: Entry) -> tuple[object, ...]:
        priority = e.priority if self.info.needs_priority else 0
        return (e.values, tuple(self.mask(i, e) for i in range(len(e.values))), priority)

    def mask(self, i: int, e: Entry) -> int:
        key = self.info.keys[i]
        full = (1 << key.width) - 1
        if key.kind is MatchKind.EXACT:
            return full
        if key.kind is MatchKind.LPM:
            return full >> (key.width - e.masks[i]) << (key.width - e.masks[i])
        return e.masks[i]

    def matches(self, e: Entry, packet: dict[str, int]) -> bool:
        for i, key in enumerate(self.info.keys):
            value = packet[key.name.rsplit(".", 1)[1]]
            if key.kind is MatchKind.RANGE:
                if not e.values[i] <= value <= e.masks[i]:
                    return False
            elif (value ^ e.values[i]) & self.mask(i, e):
                return False
        return True

    def rank(self, e: Entry) -> int:
        if self.info.needs_priority:
            return e.priority
        lengths = (e.masks[i] for i, k in enumerate(self.info.keys) if k.kind is MatchKind.LPM)
        return next(lengths, 0)

    def find(self, packet: dict[str, int]) -> int:
        found = [e for e in self.entries.values() if self.matches(e, packet)]
        if not found:
            return self.default
        best = max(self.rank(e) for e in found)
        return next(e.params[0] for e in found if self.rank(e) == best)


class Chooser:
    """Random keys that are near each other, so that entries overlap and packets hit.

    Of every second one all begin alike, for the first half.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.pool = {n: self.some(w) for n, w in FIELDS}

    def some(self, width: int) -> list[int]:
        first, differs = self.rng.getrandbits(width), self.rng.choice([width, width // 2])
        return [first ^ self.rng.getrandbits(differs) for _ in range(4)]

    def value(self, name: str, width: int) -> int:
        base = self.rng.choice(self.pool[name])
        if self.rng.random() < 0.5:
            base ^= 1 << self.rng.randrange(width)
        return base

    def packet(self) -> dict[str, int]:
        return {n: self.value(n, w) for n, w in FIELDS}

    def entry(self, info: TableInfo, tag: int) -> Entry:
        values, masks = [], []
        for key in info.keys:
            value = self.value(key.name.rsplit(".", 1)[1], key.width)
            full = (1 << key.width) - 1
            mask = 0
            if key.kind is MatchKind.LPM:
                mask = self.rng.choice([0, 1, key.width // 2, key.width - 1, key.width])
                mask = self.rng.choice([mask, self.rng.randrange(key.width + 1)])
                value &= full >> (key.width - mask) << (key.width - mask)
            elif key.kind is MatchKind.TERNARY:
                mask = self.rng.choice(
                    [0, full, full ^ 0xF, full >> 3, self.rng.getrandbits(key.width)]
                )
                value &= mask
            elif key.kind is MatchKind.RANGE:
                other = self.value(key.name.rsplit(".", 1)[1], key.width)
                value, mask = min(value, other), max(value, other)
            values.append(value)
            masks.append(mask)
        priority = self.rng.randrange(1, 30) if info.needs_priority else 0
        # Equal priorities: the earlier entry wins; the model's dict keeps that order.
        return Entry(info.index, tuple(values), tuple(masks), priority, info.actions[0], (tag,))


def frame(packet: dict[str, int], tables: int) -> bytes:
    whole = 0
    for name, width in FIELDS:
        whole = whole << width | packet[name]
    return whole.to_bytes(KEY_BYTES, "big") + bytes(4 * tables)


def check(dataplane: Dataplane, models: list[Model], chooser: Chooser, now: int) -> int:
    """Send packets and compare what each table found; returns how many were hits."""
    hits = 0
    for i in range(25):
        packet = chooser.packet()
        dataplane.inject(0, frame(packet, len(models)), now + i)
        ((_, sent, _),) = dataplane.outputs()
        for number, model in enumerate(models):
            at = KEY_BYTES + 4 * number
            got = int.from_bytes(sent[at : at + 4], "big")
            want = model.find(packet)
            assert got == want, f"{model.info.name}: {packet}"
            hits += want != 0
    return hits


AGEING = """
#include "sw.h"
void age(struct sw *sw)
{
    for (uint32_t i = 0; i < sw->program->n_tables; i++)
        sw->state.tables[i].sequence = UINT32_MAX - 3;
}
"""


def ageing(folder: Path) -> Callable[[int], None]:
    """What makes a switch's tables as old as after 2^32 insertions, but for three."""
    (folder / "age.c").write_text(AGEING)
    runtime = Path(switch.__file__).parent / "rt"
    words = ["gcc", "-shared", "-fPIC", f"-I{runtime}", "-o", "age.so", "age.c"]
    subprocess.run(words, cwd=folder, check=True)
    age: Callable[[int], None] = ctypes.CDLL(str(folder / "age.so")).age
    age.argtypes = [ctypes.c_void_p]  # type: ignore[attr-defined]
    return age


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(4))
def test_random_changes(program: Program, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    chooser = Chooser(rng)
    models = [Model(t) for t in program.tables if t.keys]
    age = ageing(tmp_path)
    tag = hits = 0
    with Dataplane("tables", program) as dataplane:
        dataplane.add_port(1)
        for step in range(60):
            if rng.random() < 0.2:
                age(dataplane.handle)
            ops, wanted = [], []
            for model in models:
                for _ in range(rng.randrange(1, 8)):
                    tag += 1
                    verb = rng.choice([Verb.INSERT, Verb.INSERT, Verb.MODIFY, Verb.DELETE])
                    entry = chooser.entry(model.info, tag)
                    if verb is not Verb.INSERT and model.entries and rng.random() < 0.9:
                        old = rng.choice(list(model.entries.values()))
                        entry = Entry(old.table, old.values, old.masks, old.priority,
                                      old.action, (tag,))  # fmt: skip
                    key = model.key_of(entry)
                    there = key in model.entries
                    ops.append(TableWrite(verb, entry))
                    wanted.append(
                        Code.ALREADY_EXISTS if there and verb is Verb.INSERT
                        else Code.NOT_FOUND if not there and verb is not Verb.INSERT
                        else None
                    )  # fmt: skip
                    if verb is Verb.DELETE:
                        model.entries.pop(key, None)
                    elif wanted[-1] is None:
                        model.entries[key] = entry
            refuse(dataplane, [op for op, why in zip(ops, wanted, strict=True) if not why], program)
            errors = dataplane.write(ops)
            assert [e.code if e else None for e in errors] == wanted
            hits += check(dataplane, models, chooser, step * 1000 + 1)
        for model in models:
            read = dataplane.entries(model.info.index)
            got = {model.key_of(s.entry): s.entry.params for s in read}
            assert got == {k: e.params for k, e in model.entries.items()}
    assert hits > 1000  # else the test does not test


@pytest.mark.by_day(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_table_that_was_empty_is_looked_at_again(program: Program, seed: int) -> None:
    """An entry, and another default action, come and go at a time."""
    rng = random.Random(seed)
    chooser = Chooser(rng)
    models = [Model(t) for t in program.tables if t.keys]
    hits = 0
    with Dataplane("tables", program) as dataplane:
        dataplane.add_port(1)
        for step in range(1, 40):
            for model in models:
                table, action = model.info.index, model.info.actions[0]
                if rng.random() < 0.5:
                    model.default = step * (not model.default)
                    own = (action, (step,)) if model.default else ()
                    assert dataplane.write([DefaultWrite(table, *own)]) == [None]
                elif model.entries:
                    ((_, entry),) = model.entries.items()
                    assert dataplane.write([TableWrite(Verb.DELETE, entry)]) == [None]
                    model.entries.clear()
                else:
                    entry = chooser.entry(model.info, step)
                    assert dataplane.write([TableWrite(Verb.INSERT, entry)]) == [None]
                    model.entries[model.key_of(entry)] = entry
            hits += check(dataplane, models, chooser, step * 1000)
    assert hits > 1000  # else the test does not test


def refuse(dataplane: Dataplane, ops: list[TableWrite], program: Program) -> None:
    """Have a batch refused as a whole: not a turn nor a count is other than before."""

    def everything() -> list[list[EntryState]]:
        return [dataplane.entries(table.index) for table in program.tables]

    before = everything()
    gone = TableWrite(Verb.DELETE, ops[-1].entry)
    errors = dataplane.write([*ops, gone, gone], all_or_nothing=True)
    assert all(errors)  # the second time it is gone already
    assert everything() == before


def test_keys_of_4096_bits_can_be_matched_and_wider_ones_are_refused(tmp_path: Path) -> None:
    for fields in (32, 33):
        source = tmp_path / f"wide{fields}.p4"
        keys = "".join(f"h.w.f{i}: ternary; " for i in range(fields))
        declared = "".join(f"bit<128> f{i}; " for i in range(fields))
        source.write_text(WIDE.replace("KEYS", keys).replace("FIELDS", declared))
        json = compile_program(source).json
        if fields == 33:
            with pytest.raises(JsonError, match=r"key.*4,224 bits.*at most 4,096"):
                Program.load(json)
            continue
        program = Program.load(json)
        (info,) = (table for table in program.tables if table.keys)
        with Dataplane("wide", program) as dataplane:
            dataplane.add_port(1)
            values = tuple(range(fields))
            full = ((1 << 128) - 1,) * fields
            entry = Entry(info.index, values, full, 1, info.actions[0], ())
            for verb in (Verb.INSERT, Verb.MODIFY):
                assert dataplane.write([TableWrite(verb, entry)], all_or_nothing=True) == [None]
            packet = b"".join(value.to_bytes(16, "big") for value in values)
            dataplane.inject(0, packet, 1)
            dataplane.inject(0, packet[:-1] + b"\0", 1)
            assert len(dataplane.outputs()) == 1


WIDE = """
#include <core.p4>
#include <v1model.p4>
header wide_t { FIELDS }
struct headers_t { wide_t w; }
struct metadata_t {}
parser p(packet_in b, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { b.extract(h.w); transition accept; }
}
control c(inout headers_t h, inout metadata_t m) { apply {} }
control e(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control d(packet_out b, in headers_t h) { apply { b.emit(h.w); } }
control i(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    action pass() { s.egress_spec = 1; }
    action drop() { mark_to_drop(s); }
    table t { key = { KEYS } actions = { pass; @defaultonly drop; } default_action = drop(); }
    apply { t.apply(); }
}
V1Switch(p(), c(), i(), e(), c(), d()) main;
"""


def test_many_masks_and_few(program: Program) -> None:
    """A ternary table answers the same when it is scanned and when it is hashed, and in between."""
    rng = random.Random(7)
    info = next(t for t in program.tables if t.name.endswith("ternary_one"))
    with Dataplane("masks", program) as dataplane:
        dataplane.add_port(1)
        entries: list[Entry] = []
        for count, masks in ((200, 200), (3000, 3000), (3000, 4)):
            dataplane.write([TableWrite(Verb.DELETE, e) for e in entries])
            some = [rng.getrandbits(32) | 0xF0000000 for _ in range(masks)]
            entries = []
            for i in range(count):
                mask = some[i % masks]
                value = rng.getrandbits(32) & mask & 0x0FFFFFFF | rng.randrange(4) << 28
                entries.append(
                    Entry(info.index, (value,), (mask,), i + 1, info.actions[0], (i + 1,))
                )
            errors = dataplane.write([TableWrite(Verb.INSERT, e) for e in entries])
            present = [e for e, error in zip(entries, errors, strict=True) if error is None]
            for _ in range(100):
                ip = rng.choice(present).values[0] | rng.getrandbits(28)
                packet = dict.fromkeys((n for n, _ in FIELDS), 0) | {"ip": ip}
                want = max(
                    (e.priority for e in present if (ip ^ e.values[0]) & e.masks[0] == 0), default=0
                )
                dataplane.inject(0, frame(packet, 9), 1)
                ((_, sent, _),) = dataplane.outputs()
                at = KEY_BYTES + 4 * 6
                assert int.from_bytes(sent[at : at + 4], "big") == want


def test_wrong_entries_are_refused(program: Program) -> None:
    by_name = {t.name.rpartition(".")[2]: t for t in program.tables}
    exact, lpm, ternary = by_name["exact_one"], by_name["lpm32"], by_name["ternary_one"]
    ranges = by_name["range_mixed"]
    cases = [
        (Entry(exact.index, (1 << 48,), action=exact.actions[0], params=(1,)), "48 bits"),
        (Entry(exact.index, (-1,), action=exact.actions[0], params=(1,)), "48 bits"),
        (Entry(exact.index, (), action=exact.actions[0], params=(1,)), "1 keys"),
        (Entry(exact.index, (1,), action=exact.actions[0], params=()), "1 parameters"),
        (Entry(exact.index, (1,), action=exact.actions[0], params=(1 << 32,)), "32 bits"),
        (Entry(exact.index, (1,), action=lpm.actions[0], params=(1,)), "does not offer"),
        (Entry(exact.index, (1,)), "needs an action"),
        (Entry(exact.index, (1,), member=1), "takes actions"),
        (Entry(exact.index, (1,), action=exact.actions[0], params=(1,), idle_timeout_ns=5), "idle"),
        (Entry(lpm.index, (0,), (33,), action=lpm.actions[0], params=(1,)), "prefix length"),
        (Entry(ternary.index, (0,), (1 << 32,), action=ternary.actions[0], params=(1,)), "32 bits"),
        (Entry(ternary.index, (0,), action=ternary.actions[0], params=(1,)), "mask per key"),
        (Entry(ranges.index, (5, 0, 0), (4, 0, 0), 1, ranges.actions[0], (1,)), "range ends"),
        (Entry(99, (1,)), "no table 99"),
    ]
    with Dataplane("refuse", program) as dataplane:
        for entry, text in cases:
            (error,) = dataplane.write([TableWrite(Verb.INSERT, entry)])
            assert isinstance(error, OpError), text
            assert text in error.message
        assert all(not dataplane.entries(t.index) for t in program.tables)


def test_all_or_nothing(program: Program) -> None:
    info = next(t for t in program.tables if t.name.endswith("exact_one"))
    action = info.actions[0]

    def write(verb: Verb, key: int, tag: int) -> TableWrite:
        return TableWrite(verb, Entry(info.index, (key,), (), 0, action, (tag,)))

    with Dataplane("whole", program) as dataplane:
        assert dataplane.write([write(Verb.INSERT, k, k) for k in (1, 2, 3)]) == [None] * 3
        batch = [
            write(Verb.INSERT, 4, 4),
            write(Verb.MODIFY, 1, 100),
            write(Verb.DELETE, 2, 0),
            write(Verb.MODIFY, 9, 9),
            write(Verb.DELETE, 3, 0),
        ]
        codes = [e and e.code for e in dataplane.write(batch, all_or_nothing=True)]
        assert codes == [Code.ABORTED] * 3 + [Code.NOT_FOUND, Code.ABORTED]
        assert {s.entry.values[0]: s.entry.params[0] for s in dataplane.entries(info.index)} == {
            1: 1, 2: 2, 3: 3,
        }  # fmt: skip
        del batch[3]
        assert dataplane.write(batch, all_or_nothing=True) == [None] * 4
        assert {s.entry.values[0]: s.entry.params[0] for s in dataplane.entries(info.index)} == {
            1: 100, 4: 4,
        }  # fmt: skip


@pytest.mark.parametrize("all_or_nothing", [False, True])
def test_a_record_that_ends_too_soon_is_refused(program: Program, all_or_nothing: bool) -> None:
    """Wherever it ends; under sanitizers, tests.switch.sanitized sees that nobody reads on."""
    chooser = Chooser(random.Random(1))
    with Dataplane("tables", program) as dataplane:
        for info in (info for info in program.tables if info.keys):
            op = TableWrite(Verb.INSERT, chooser.entry(info, 1))
            record = dataplane.pack(op)
            assert isinstance(record, bytes)
            for length in range(16, len(record), 8):
                (error,) = dataplane.write_packed(
                    [op], [cut_short(record, length)], all_or_nothing=all_or_nothing
                )
                assert error is not None and error.code is Code.INVALID_ARGUMENT
                assert [each for each in dataplane.entries(info.index) if not each.is_const] == []
            assert dataplane.write([op]) == [None]

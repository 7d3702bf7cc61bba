"""Our switch and real BMv2, fed the same random and mutated frames: the same must come out.

The programs are those of tests/p4, through our compiler, their tables filled as their packet tests
fill them; the frames grow from the packets of these tests. Compared are the frames that left, port
by port and in order, and after them every counter and register.

Left out is what BMv2 itself does not repeat: random numbers, clocks and queue depths; recirculated
packets and registers that its ingress and egress threads race for; and indices out of bounds and
divisions by zero, on which it ends, or goes on in somebody else's memory, as it was built. Frames
are never shorter than the test's own, since what BMv2 reads from a header that is not there is left
over from another packet.
"""

from __future__ import annotations

import json
import random
import re
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from compiler import compile_program
from params.data import Data
from switch.dataplane import Entry, Program, TableWrite
from switch.stf import StfRunner
from tests.chosen import chosen
from tests.p4 import bmv2
from tests.waiting import LONG_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from switch.dataplane import CounterValue, Op

P4 = Path(__file__).parent.parent / "p4"
FRAMES = 100
BURST = 20  # fewer than BMv2's queues hold
PORTS = range(8)
CELLS = 64  # of a counter, and all that counted
SIDE_BY_SIDE = 6
SEED = 1
UNREPEATABLE = re.compile(
    r"\brandom\(|_timestamp|_qdepth|deq_timedelta|HashAlgorithm\.random|meter|advance\("
    r"|recirculate|packet_length|\bassert\(|\bassume\("
)
RACING = frozenset(("externs/register_shared", "externs/register_outside", "programs/telemetry"))
ENDING = frozenset(("stacks/by_field", "unions/stack_by_field", "arithmetic/divide"))
LEFT_OVER = frozenset(("stacks/by_constant",))
# Which byte of a frame is an index, and into how many cells.
INDICES = {
    "externs/counter": (12, 4),
    "externs/counter_indexed": (10, 16),
    "externs/register": (12, 4),
    "externs/register_by_field": (10, 8),
    "externs/register_if_in_action": (10, 8),
    "externs/register_in_action": (10, 8),
}
NOT_CONTROL = re.compile(r"\s*(packet|expect|no_packet|wait|check_\w+|\w+_read|\w+_get\w*)\b")

Counts = dict[tuple[str, object], tuple[int, int]]

pytestmark = pytest.mark.reference


def name_of(path: Path) -> str:
    """Where a program or a test of it lies."""
    return path.relative_to(P4).with_suffix("").as_posix()


def is_repeatable(program: Path) -> bool:
    """Whether a program has a packet test, and nothing in it that BMv2 does not repeat."""
    stf = program.with_suffix(".stf")
    return (
        stf.exists()
        and name_of(program) not in RACING | ENDING | LEFT_OVER
        and not UNREPEATABLE.search(program.read_text())
        and not bmv2.cannot(stf)
    )


PROGRAMS = [program for program in sorted(P4.rglob("*.p4")) if is_repeatable(program)]


def within(stf: Path, frame: bytes) -> bytes:
    """A frame whose index, where its program has one in it, is that of an array's cell."""
    at, cells = INDICES.get(name_of(stf), (0, 256))
    return frame[:at] + bytes([frame[at] % cells]) + frame[at + 1 :]


def mutated(rng: random.Random, frame: bytes) -> bytes:
    """A frame with a few bytes changed, perhaps longer."""
    data = bytearray(frame)
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        data[rng.randrange(len(data))] = rng.choice([0, 1, 255, rng.getrandbits(8)])
    if rng.random() < 0.3:
        data += rng.randbytes(rng.randrange(40))
    return bytes(data)


def frames_like(known: list[tuple[int, bytes]], rng: random.Random) -> Iterator[tuple[int, bytes]]:
    """Frames of a test, mutated, and some that are no more than random."""
    known = [(port, frame) for port, frame in known if port in PORTS and frame]
    longest = max((len(frame) for _, frame in known), default=60)
    for _ in range(FRAMES):
        if known and rng.random() < 0.85:
            port, frame = rng.choice(known)
            yield rng.choice([port, rng.choice(PORTS)]), mutated(rng, frame)
        else:
            yield rng.choice(PORTS), rng.randbytes(longest + rng.randrange(100))


def random_test(stf: Path) -> str:
    """A packet test's control commands, and frames like its own, a burst at a time."""
    lines = [line for line in stf.read_text().splitlines() if not NOT_CONTROL.match(line)]
    rng = random.Random(f"{stf.stem} {SEED}")
    for number, (port, frame) in enumerate(frames_like(bmv2.packets_of(stf), rng), 1):
        lines.append(f"packet {port} {within(stf, frame).hex()}")
        if number % BURST == 0:
            lines.append("wait")
    return "\n".join(lines) + "\n"


class Outcome(Data, frozen=False):
    """What left, port by port, and what was counted and kept."""

    frames: dict[int, list[str]] = field(default_factory=dict)
    counters: Counts = field(default_factory=dict)
    registers: dict[str, list[int]] = field(default_factory=dict)


class Ours(StfRunner):
    """The runner, which remembers in which order entries were added."""

    def __init__(self, program: Program, stf: Path) -> None:
        super().__init__(program, stf)
        self.entries: dict[int, list[Entry]] = {}

    def write(self, *ops: Op) -> None:
        for op in ops:
            if isinstance(op, TableWrite):
                self.entries.setdefault(op.entry.table, []).append(op.entry)
        super().write(*ops)


def frames_of(runner: StfRunner) -> dict[int, list[str]]:
    """What left by the ports that BMv2 has."""
    ports = bmv2.ports_of(runner.stf)
    return {port: [f.hex() for f in fs] for port, fs in sorted(runner.got.items()) if port in ports}


def registers_of(runner: StfRunner) -> dict[str, list[int]]:
    """All registers, as BMv2 shows them: negative values as such, large ones as the largest."""
    return {
        r.name: [
            min(value % (1 << r.width), (1 << 63) - 1)
            for value in runner.dataplane.read_register(r.index)
        ]
        for r in runner.program.registers
    }


def ours(program: Program, stf: Path) -> Outcome:
    runner = Ours(program, stf)
    try:
        runner.play(stf.read_text())
        counters: Counts = {}
        for counter in program.counters:
            if counter.table is None:
                cells = runner.dataplane.read_counter(counter.index)
                counted = {i: cell for i, cell in enumerate(cells) if cell.packets or i < CELLS}
            else:
                counted = direct(runner, counter.table)
            counters |= {(counter.name, i): (c.packets, c.bytes) for i, c in counted.items()}
        return Outcome(frames_of(runner), counters, registers_of(runner))
    finally:
        runner.dataplane.close()


def direct(runner: Ours, table: int) -> dict[int, CounterValue]:
    """The counters of the entries that a test added, by the handle that BMv2 gave each."""
    found = {}
    for handle, entry in enumerate(runner.entries.get(table, [])):
        state = runner.dataplane.entry(entry)
        assert state is not None
        assert state.counter is not None
        found[handle] = state.counter
    return found


def theirs(program: Program, code: dict[str, object], stf: Path, wanted: Outcome) -> Outcome:
    """BMv2's outcome: as soon as as much has left as from ours, or time is up."""
    runner = bmv2.Bmv2Runner(program, code, stf)
    try:
        runner.play(stf.read_text())
        end = time.monotonic() + LONG_S
        while time.monotonic() < end and sum(map(len, frames_of(runner).values())) < sum(
            map(len, wanted.frames.values())
        ):
            runner.settle()
        names = {counter.name: counter.index for counter in program.counters}
        counters: Counts = {}
        for name, index in wanted.counters:
            cell = runner.dataplane.read_counter(names[name], cast("int", index))[0]
            counters[name, index] = (cell.packets, cell.bytes)
        return Outcome(frames_of(runner), counters, registers_of(runner))
    finally:
        runner.dataplane.close()


@cache
def compiled(program: Path) -> dict[str, object]:
    return compile_program(program).json


def both(path: Path, folder: Path) -> tuple[Outcome, Outcome]:
    """Ours and theirs."""
    stf = folder / f"{path.stem}.stf"
    stf.write_text(random_test(path.with_suffix(".stf")))
    program = Program.load(json.dumps(compiled(path)).encode(), name=path.stem)
    wanted = ours(program, stf)
    return wanted, theirs(program, compiled(path), stf, wanted)


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Path, Future[tuple[Outcome, Outcome]]]]:
    """Results of the programs chosen, side by side: BMv2 waits more than it works."""
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        yield {
            path: pool.submit(both, path, tmp_path_factory.mktemp(path.stem))
            for path in chosen(request, "path")
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("path", PROGRAMS, ids=name_of)
def test_same_as_bmv2(path: Path, outcomes: dict[Path, Future[tuple[Outcome, Outcome]]]) -> None:
    wanted, got = outcomes[path].result()
    assert got.frames == wanted.frames
    assert got.counters == wanted.counters
    assert got.registers == wanted.registers


def test_there_is_enough_to_compare() -> None:
    assert len(PROGRAMS) >= 30

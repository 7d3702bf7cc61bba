"""`closlab bench tables`: how the size of a table tells on lookups, and how fast it is filled.

Everything is in memory and in one thread; times are of the processor, not of the wall. A figure is
for a whole packet, from its arrival to its leaving, with one lookup in between.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import random
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from compiler import compile_program
from params.data import Data
from switch import build
from switch.abi import Declarations, Library
from switch.dataplane import Dataplane, Entry, Program, TableWrite, Verb

HERE = Path(__file__).parent
FRAME = struct.Struct(">BI6sHB34x")
FRAMES = 1 << 14
EXACT, LPM, TERNARY = range(3)

Key = tuple[int, bytes, int, int]  # address, MAC, port, protocol


class TableLoad(Data):
    """A table to fill and to look things up in."""

    title: str
    table: str
    which: int
    sizes: tuple[int, ...]
    make: Callable[[random.Random, int], tuple[Entry, Key]]


def exact(rng: random.Random, _: int) -> tuple[Entry, Key]:
    """A random address."""
    mac = rng.getrandbits(48)
    return Entry(0, (mac,)), (0, mac.to_bytes(6, "big"), 0, 0)


def lpm(rng: random.Random, _: int) -> tuple[Entry, Key]:
    """A random prefix, mostly of 24 bits as in the wild."""
    length = rng.choice([16, 20, 22, 24, 24, 24, 24, 24, 28, 32])
    value = rng.getrandbits(32)
    masked = value >> (32 - length) << (32 - length)
    return Entry(0, (masked,), (length,)), (value, bytes(6), 0, 0)


def ternary(masks: int) -> Callable[[random.Random, int], tuple[Entry, Key]]:
    """A rule as of an access list, under one of some masks."""

    def make(rng: random.Random, i: int) -> tuple[Entry, Key]:
        chosen = random.Random(i % masks)  # noqa: S311 - repeatable on purpose
        mask = (chosen.getrandbits(32) | 0xFFFF0000, chosen.getrandbits(48), 0xFFFF, 0xFF)
        value = (rng.getrandbits(32), rng.getrandbits(48), rng.getrandbits(16), 6)
        masked = tuple(v & m for v, m in zip(value, mask, strict=True))
        key = (value[0], value[1].to_bytes(6, "big"), value[2], value[3])
        return Entry(0, masked, mask, priority=i + 1), key

    return make


CASES = (
    TableLoad("exact", "exact_mac", EXACT, (10, 1000, 100_000), exact),
    TableLoad("lpm", "lpm_ip", LPM, (10, 1000, 100_000), lpm),
    TableLoad("ternary, 8 masks", "ternary_five", TERNARY, (10, 1000, 100_000), ternary(8)),
    TableLoad("ternary, a mask each", "ternary_five", TERNARY, (10, 1000), ternary(1 << 30)),
)


def driver() -> Library:
    """The benchmark's own C, built if need be."""
    source = HERE / "tables.c"
    return Library(build.beside_runtime(source), Declarations(source))


def measure(
    library: Library, program: Program, case: TableLoad, size: int, packets: int, seed: int
) -> tuple[float, float]:
    """Nanoseconds a packet, and entries inserted a second."""
    rng = random.Random(seed)  # noqa: S311 - repeatable on purpose
    table = next(t for t in program.tables if t.name.endswith(case.table))
    keys = []
    ops = []
    for i in range(size):
        entry, key = case.make(rng, i)
        entry.table, entry.action, entry.params = table.index, table.actions[0], (1,)
        ops.append(TableWrite(Verb.INSERT, entry))
        keys.append(key)
    frames = b"".join(FRAME.pack(case.which, *rng.choice(keys)) for _ in range(FRAMES))
    with Dataplane("bench", program) as dataplane:
        start = time.process_time()
        dataplane.write(ops)
        rate = size / max(time.process_time() - start, 1e-9)
        best = float("inf")
        for _ in range(3):
            sent = ctypes.c_uint64()
            took = library.tables_run(
                dataplane._sw, frames, FRAME.size, FRAMES, packets, ctypes.byref(sent)
            )
            if sent.value != packets:
                raise RuntimeError(f"{packets - sent.value} of {packets} packets found no entry")
            best = min(best, took / packets)
    return best, rate


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line per table and size."""
    parser = argparse.ArgumentParser(prog="closlab bench tables", description=__doc__)
    parser.add_argument("--packets", type=int, default=1 << 20, help="per figure")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    library = driver()
    source = json.dumps(compile_program(HERE / "tables.p4").json).encode()
    program = Program.load(source, name="tables")
    print(
        f"{'table':<22}{'entries':>9}{'ns/packet':>11}{'kpps':>8}{'to fewest':>11}{'inserts/s':>12}"
    )
    for case in CASES:
        least = 0.0
        for size in case.sizes:
            packets = arguments.packets // 32 * 32
            ns, rate = measure(library, program, case, size, packets, arguments.seed)
            least = least or ns
            print(
                f"{case.title:<22}{size:>9}{ns:>11.1f}{1e6 / ns:>8.0f}"
                f"{ns / least:>11.2f}{rate:>12.0f}"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Packet tests, random and mutated frames, and random control, under AddressSanitizer and UBSan.

    python -m tests.switch.sanitized FRAMES SEED [PROGRAM.p4 ...]

Runs in a process of its own, as the sanitizers must be loaded before anything else; the caller sets
that up with `environment()`. Any report ends the process.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from switch import build
from tests.test_packets import TESTS, program_of

if TYPE_CHECKING:
    from switch.dataplane import Dataplane
    from switch.ops import Op

# Hardly optimised: what sanitizers add takes the compiler long to make quicker.
FLAGS = (
    f"-Og -Werror {build.CHECKED} -fsanitize=address,undefined -fno-sanitize-recover=all"
    " -fno-omit-frame-pointer"
)


def environment() -> dict[str, str]:
    """What a process needs so that sanitized shared objects can be loaded into Python."""
    libraries = []
    for name in ("libasan.so", "libubsan.so"):
        found = subprocess.run(
            ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
        )
        libraries.append(found.stdout.strip())
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps much until it ends
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "CLOSLAB_CFLAGS": FLAGS,
        "PYTHONMALLOC": "malloc",  # so that a look past the end of what Python handed over is seen
    }


def mutate(rng: random.Random, frame: bytes) -> bytes:
    """Some bytes changed, cut, grown or repeated."""
    data = bytearray(frame)
    for _ in range(rng.randrange(5)):
        if data:
            data[rng.randrange(len(data))] = rng.choice(
                (0, 1, 0x7F, 0x80, 0xFF, rng.getrandbits(8))
            )
    roll = rng.random()
    if roll < 0.2:
        data = data[: rng.randrange(len(data) + 1)]
    elif roll < 0.3:
        data += rng.randbytes(rng.randrange(200))
    elif roll < 0.32:
        data *= rng.randrange(1, 200)
    return bytes(data[:20_000])


def seeds_of(path: Path) -> list[bytes]:
    """The frames of a program's packet test, and some of no use to it."""
    stf = path.with_suffix(".stf")
    text = stf.read_text() if stf.exists() else ""
    found = [re.sub(r"\s", "", m) for m in re.findall(r"^\s*packet\s+\d+([^#\n]*)", text, re.M)]
    return [bytes.fromhex(f) for f in found if len(f) % 2 == 0] + [bytes(64), b"\xff" * 300]


def packet_suite() -> list[Path]:
    """The programs that packet tests are for."""
    return sorted({program_of(test) for test in TESTS})


def play_tests(path: Path) -> None:
    """Run a program's own packet tests."""
    from compiler import compile_program
    from switch.stf import report, run_stf

    for test in path.parent.glob(f"{path.stem}*.stf"):
        if program_of(test) == path:
            result = run_stf(compile_program(path).json, test)
            assert result.passed, "\n".join(report(result))


def cut_short(record: bytes, length: int) -> bytes:
    """A record that ends before all of it has come, and says that it does."""
    return record[:4] + length.to_bytes(4, "little") + record[8:length]


def write_short(rng: random.Random, dataplane: Dataplane, op: Op) -> None:
    """Refused, or enough for what is asked; what lies behind it is nobody's to read."""
    record = dataplane.pack(op)
    if isinstance(record, bytes):
        cut = cut_short(record, rng.randrange(16, len(record) + 1, 8))
        for all_or_nothing in (False, True):
            dataplane.write_packed([op], [cut], all_or_nothing=all_or_nothing)


def fuzz(path: Path, frames: int, seed: int) -> int:
    """Feed one program; returns how many frames left it."""
    from compiler.driver import compile_program
    from switch.dataplane import Dataplane, Program

    from .churn import random_op

    rng = random.Random(f"{path.stem} {seed}")
    program = Program.load(json.dumps(compile_program(path).json).encode(), name=path.stem)
    seeds = seeds_of(path)
    sent = 0
    with Dataplane(path.stem, program, cpu_port=64, seed=seed, whole=seed % 2) as dataplane:
        for port in range(8):
            dataplane.add_port(port)
        dataplane.configure_port(3, rate_bps=10**9, delay_ns=100)
        now = 0
        for i in range(frames):
            now += rng.randrange(2000)
            dataplane.inject(rng.randrange(8), mutate(rng, rng.choice(seeds)), now)
            if i % 64 == 0:
                dataplane.write([random_op(rng, program) for _ in range(4)])
                write_short(rng, dataplane, random_op(rng, program))
                sent += len(dataplane.outputs())
                dataplane.drain()
            if i % 1024 == 0:
                stats = dataplane.stats()
                out = stats.sent + stats.held + sum(stats.drops.values())
                assert stats.received + stats.copies == out, path
        if rng.random() < 0.5:
            dataplane.load(program)
    return sent


def main(argv: list[str]) -> int:
    """Spread the frames over the programs."""
    frames, seed = int(argv[0]), int(argv[1])
    paths = [Path(a) for a in argv[2:]] or packet_suite()
    each = -(-frames // len(paths))
    sent = 0
    for number, path in enumerate(paths, 1):
        play_tests(path)
        sent += fuzz(path, each, seed)
        print(f"{number * each} frames through {number} programs, {sent} came out", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

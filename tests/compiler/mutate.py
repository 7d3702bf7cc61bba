"""Feeds mutated programs to the front end: it must answer every one, quickly, without a traceback.

    python -m tests.compiler.mutate --count 200000 --seed 1 --jobs 2

Half the mutations work on bytes (flip, drop, double, splice), half on tokens (drop, double, swap,
replace by one from elsewhere), one to four at a time. The seed is printed; a seed and a number give
one program, so that `--first` goes on where a run stopped.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from compiler import CompileError, CompileOptions, compile_program
from compiler.diagnostics import Diagnostics
from compiler.lexer import tokenize
from compiler.preprocess import blank_comments

if TYPE_CHECKING:
    from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / "tests" / "p4", ROOT / "tests" / "compiler" / "stages", ROOT / "p4src"]
LIMIT_SECONDS = 5.0
STEP = 500


@dataclass
class Outcome:
    """What came of a run."""

    accepted: int = 0
    rejected: int = 0
    slowest_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.accepted} accepted, {self.rejected} refused, slowest "
            f"{self.slowest_seconds:.2f} s, {len(self.failures)} failures"
        )

    def add(self, other: Outcome) -> None:
        self.accepted += other.accepted
        self.rejected += other.rejected
        self.slowest_seconds = max(self.slowest_seconds, other.slowest_seconds)
        self.failures += other.failures


def corpus(folders: list[Path]) -> list[Path]:
    """The programs to start from."""
    return sorted(path for folder in folders for path in folder.rglob("*.p4"))


def mutate_bytes(text: bytes, chance: random.Random) -> bytes:
    """One to four changes to bytes."""
    data = bytearray(text)
    for _ in range(chance.choice((1, 1, 2, 4))):
        at = chance.randrange(len(data) + 1) if data else 0
        kind = chance.randrange(5)
        if kind == 0 and at < len(data):
            data[at] ^= 1 << chance.randrange(4)
        elif kind == 1:
            del data[at : at + chance.randint(1, 20)]
        elif kind == 2:
            data[at:at] = data[at : at + chance.randint(1, 40)]
        elif kind == 3:
            data[at:at] = bytes([chance.choice((chance.randrange(256), *b"(){};<>,.=+"))])
        else:
            source = chance.randrange(len(data) + 1)
            data[at:at] = data[source : source + chance.randint(1, 60)]
    return bytes(data)


def mutate_tokens(words: list[str], chance: random.Random) -> bytes:
    """One to four changes to tokens; half of them replace one by another of its kind."""
    words = list(words)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        at = chance.randrange(len(words))
        kind = chance.randrange(10)
        if kind < 5:
            alike = [w for w in words if _kind(w) == _kind(words[at])]
            words[at] = chance.choice(alike)
        elif kind == 5:
            del words[at]
        elif kind == 6:
            words.insert(at, words[at])
        elif kind == 7:
            other = chance.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif kind == 8:
            words[at] = chance.choice(words)
        else:
            words.insert(at, chance.choice(words))
        if not words:
            break
    return " ".join(words).encode()


def _kind(word: str) -> str:
    if word[0].isdigit():
        return "number"
    return "word" if word[0].isalpha() or word[0] == "_" else "sign"


def split(program: bytes) -> tuple[list[bytes], list[str]]:
    """A program's directives, and the tokens of everything else."""
    lines = program.split(b"\n")
    directives = [line for line in lines if line.lstrip().startswith(b"#")]
    rest = b"\n".join(line for line in lines if not line.lstrip().startswith(b"#"))
    blank = blank_comments(rest.decode("utf-8", "replace"))
    return directives, [word for word in tokenize(blank, Diagnostics()).texts if word]


def run(seed: int, first: int, count: int, folders: list[Path]) -> Outcome:
    """Mutations number `first` to `first + count` of a seed."""
    programs = [path.read_bytes() for path in corpus(folders)]
    names = corpus(folders)
    parts = [split(program) for program in programs]
    outcome = Outcome()
    signal.signal(signal.SIGVTALRM, _too_slow)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "mutant.p4"
        # A program in a room includes "../include/...", seen here from the room beside it.
        rooms = (folder / "include" for folder in folders)
        options = CompileOptions(include_dirs=(*folders, *rooms), no_warnings=True)
        for number in range(first, first + count):
            chance = random.Random(f"{seed}/{number}")
            which = chance.randrange(len(programs))
            if chance.random() < 0.5:
                target.write_bytes(mutate_bytes(programs[which], chance))
            else:
                directives, words = parts[which]
                target.write_bytes(b"\n".join([*directives, mutate_tokens(words, chance)]))
            _one(target, options, f"seed {seed} number {number} of {names[which].name}", outcome)
    return outcome


def _one(target: Path, options: CompileOptions, label: str, outcome: Outcome) -> None:
    start = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
        compile_program(target, options)
        outcome.accepted += 1
    except CompileError:
        outcome.rejected += 1
    except Exception:
        outcome.failures.append(f"{label}:\n{traceback.format_exc()}")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    outcome.slowest_seconds = max(outcome.slowest_seconds, time.process_time() - start)


def _too_slow(_number: int, _frame: FrameType | None) -> NoReturn:
    raise TimeoutError(f"not done in {LIMIT_SECONDS} s of processor time")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--first", type=int, default=0, help="the number to begin with")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args(argv)
    seed, end = arguments.seed, arguments.first + arguments.count
    programs = len(corpus(FOLDERS))
    print(f"seed {seed}, {arguments.count} mutations of {programs} programs", flush=True)
    total = Outcome()
    with ProcessPoolExecutor(arguments.jobs) as pool:
        futures = {
            first: pool.submit(run, seed, first, min(STEP, end - first), FOLDERS)
            for first in range(arguments.first, end, STEP)
        }
        for first, future in futures.items():
            failed = len(total.failures)
            total.add(future.result())
            for failure in total.failures[failed:]:
                print(failure, flush=True)
            if (first + STEP) % 10_000 == 0 or first + STEP >= end:
                print(f"up to number {min(first + STEP, end)}: {total}", flush=True)
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())

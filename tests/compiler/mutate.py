"""Feeds mutated programs to the front end: it must answer every one, quickly, without a traceback.

    python -m tests.compiler.mutate --count 200000 --seed 1 --jobs 2

Half the mutations work on bytes (flip, drop, double, splice), half on words (drop, double, swap,
replace by one from elsewhere, mostly of the same kind), one to four at a time. The seed is printed;
a seed and a number give one program, so that `--first` goes on where a run stopped.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from concurrent.futures import ProcessPoolExecutor
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from compiler import CompileError, CompileOptions, compile_program
from compiler.diagnostics import Diagnostics
from compiler.lexer import KEYWORDS, tokenize
from compiler.preprocess import blank_comments
from params.data import Data

if TYPE_CHECKING:
    from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = [ROOT / "tests" / "p4", ROOT / "tests" / "compiler" / "stages", ROOT / "p4src"]
LIMIT_SECONDS = 5.0
STEP = 500
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*\n?", re.MULTILINE)
_TWO_IN_ONE = re.compile(r"(?<=\w)\0(?=\w)")
_MARKS = frozenset("(){}[];:,.@")
_CHANGES, _OFTEN = ("alike", "drop", "double", "swap", "replace", "insert"), (14, 1, 1, 2, 1, 1)


class Outcome(Data, frozen=False):
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


def options_of(program: Path) -> CompileOptions:
    """How a program is compiled elsewhere: what it includes lies beside it."""
    return CompileOptions(include_dirs=(program.parent,), no_warnings=True)


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


def mutate_words(words: list[str], chance: random.Random) -> bytes:
    """One to four changes to words; most replace one by another of its kind, which may be right."""
    words = list(words)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        at = chance.randrange(len(words))
        if _kind(words[at]) == "mark":  # half of all are, and few others may stand there
            at = chance.randrange(len(words))
        change = chance.choices(_CHANGES, _OFTEN)[0]
        if change == "alike":
            words[at] = chance.choice([w for w in words if _kind(w) == _kind(words[at])])
        elif change == "drop" and len(words) > 1:
            del words[at]
        elif change == "double":
            words.insert(at, words[at])
        elif change == "swap":
            other = chance.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        elif change == "replace":
            words[at] = chance.choice(words)
        else:
            words.insert(at, chance.choice(words))
    return joined(words).encode()


def _kind(word: str) -> str:
    text = word.strip()
    if text[0].isdigit():
        return "number"
    if text[0].isalpha() or text[0] == "_":
        return "keyword" if text in KEYWORDS else "name"
    if text[0] in '#"':
        return text[0]
    return "mark" if text in _MARKS else "operator"


def split(program: bytes) -> list[str]:
    """A program's words, each with the space behind it; a directive is one, in its own line."""
    text = blank_comments(program.decode("utf-8", "replace"))
    words, at = [], 0
    for line in _DIRECTIVE.finditer(text):
        words += [*_words(text[at : line.start()]), f"\n{line[0].strip()}\n"]
        at = line.end()
    return words + _words(text[at:])


def _words(text: str) -> list[str]:
    tokens = tokenize(text, Diagnostics())
    ends = [start + len(word) for start, word in zip(tokens.starts, tokens.texts, strict=True)]
    spaces = [" " if text[end : end + 1].isspace() else "" for end in ends]
    return [f"{word}{space}" for word, space in zip(tokens.texts, spaces, strict=True) if word]


def joined(words: list[str]) -> str:
    """Words as a program, none of which becomes one with its neighbour."""
    return _TWO_IN_ONE.sub(" ", "\0".join(words)).replace("\0", "")


def run(seed: int, first: int, count: int, folders: list[Path]) -> Outcome:
    """Mutations number `first` to `first + count` of a seed."""
    names = corpus(folders)
    programs = [path.read_bytes() for path in names]
    words = [split(program) for program in programs]
    outcome = Outcome()
    signal.signal(signal.SIGVTALRM, _too_slow)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "mutant.p4"
        for number in range(first, first + count):
            chance = random.Random(f"{seed}/{number}")
            which = chance.randrange(len(programs))
            if chance.random() < 0.5:
                target.write_bytes(mutate_bytes(programs[which], chance))
            else:
                target.write_bytes(mutate_words(words[which], chance))
            label = f"seed {seed} number {number} of {names[which].name}"
            _one(target, options_of(names[which]), label, outcome)
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

"""Grow programs, and hold compilers and switches to what they must do.

python -m tests.p4.grown 17 out                     program 17 and its test, as files
python -m tests.p4.grown --count 200 --first 1000   runs them
python -m tests.p4.grown --count 200 --on bmv2      our compiler, their switch
python -m tests.p4.grown --count 200 --on p4c       their compiler, our switch
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from .program import Program
from .trials import TRIALS, RefusedError, differences

SHOWN = 5  # differences of a program


def write(number: int, folder: Path) -> Path:
    """A program and its test, as files; the test's."""
    program = Program(number)
    folder.mkdir(parents=True, exist_ok=True)
    stf = folder / f"grown{number}.stf"
    stf.with_suffix(".p4").write_text(program.text())
    stf.write_text(program.test())
    return stf


def tried(on: str, number: int) -> tuple[int, list[str] | None]:
    """What differs, if anything does; none if the program was refused by p4c."""
    try:
        return number, differences(Program(number), on)
    except RefusedError as refused:
        print(f"{number}: refused: {refused}")
        return number, None
    except Exception as error:  # whatever it is, the number is wanted
        return number, [f"{type(error).__name__}: {error}"]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.p4.grown", description=__doc__)
    parser.add_argument("number", nargs="?", type=int)
    parser.add_argument("out", nargs="?", type=Path, default=Path())
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--on", choices=TRIALS, default="ours")
    parser.add_argument("--jobs", type=int, default=2)
    words = parser.parse_args()
    if words.number is not None:
        print(write(words.number, words.out))
        return 0
    began, counts = time.monotonic(), {"same": 0, "refused": 0, "different": 0}
    with ProcessPoolExecutor(words.jobs) as pool:  # in the order of their numbers
        numbers = range(words.first, words.first + words.count)
        for number, found in pool.map(partial(tried, words.on), numbers):
            verdict = "refused" if found is None else "different" if found else "same"
            counts[verdict] += 1
            for line in (found or [])[:SHOWN]:
                print(f"{number}: {line[:400]}", flush=True)
    text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    print(f"{words.on}: {text}; {time.monotonic() - began:.0f} s")
    return 1 if counts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())

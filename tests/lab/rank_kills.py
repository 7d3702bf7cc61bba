"""A rank killed at any moment ends its run: with a message, and with no result that is not whole.

    python -m tests.lab.rank_kills --count 40 --seed 1 --mpirun mpirun.mpich

Which rank of 2 or 4 is killed, and when, is drawn from the seed: while Python is read, while the
fabric is built, while it is simulated, or while what came of it is gathered and written.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from lab.machine.paths import ROOT
from tests.lab.any_ranks import as_root, launcher
from tests.lab.checkpoint_kills import differences

_RUN = "from lab.cli import main; main()"
_WORDS = "run", "alltoall", "--engine", "sim", "--jobs", "1", "--set", "traffic.bytes=1MB"
_LONGEST_S = 120
_GONE_S = 10.0
_NUMBERS = "OMPI_COMM_WORLD_RANK", "PMI_RANK"
_SAID = "signal 9 (Killed)", "EXIT CODE: 9"  # by Open MPI's launcher, by MPICH's
_BESIDE = "report.html"  # which tells of its origin


def started(words: list[str], out: Path) -> subprocess.Popen[str]:
    """A run by so many."""
    return subprocess.Popen(
        [*words, sys.executable, "-c", _RUN, *_WORDS, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=os.environ | as_root(),
    )


def ranks_of(out: Path) -> dict[int, int]:
    """The processes of a run that writes there, by the numbers of their ranks."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_text().split("\0")
            if words[1:3] != ["-c", _RUN] or str(out) not in words:
                continue
            variables = (process / "environ").read_text().split("\0")
            said = dict(each.split("=", 1) for each in variables if "=" in each)
            number = next(said[name] for name in _NUMBERS if name in said)
            found[int(number)] = int(process.name)
    return found


def _killed(process: subprocess.Popen[str], out: Path, victim: int, wait_s: float) -> bool:
    """Kill a rank so long after it is there; whether it was there to be killed."""
    began = time.monotonic()
    while victim not in (found := ranks_of(out)):
        if process.poll() is not None or time.monotonic() - began > _LONGEST_S:
            return False
        time.sleep(0.01)
    time.sleep(wait_s)
    with suppress(ProcessLookupError):
        os.kill(found[victim], signal.SIGKILL)
        return True
    return False


def check(seed: int, mpirun: str, folder: Path, expected: Path, took_s: float) -> tuple[str, str]:
    """One kill; what it hit, and what is wrong."""
    lot = random.Random(f"kill {seed}")
    ranks = lot.choice((2, 4))
    victim, out = lot.randrange(ranks), folder / str(seed)
    process = started(launcher(mpirun, ranks), out)
    was_there = _killed(process, out, victim, 0.8 * lot.random() * took_s)
    said, _ = process.communicate(timeout=_LONGEST_S)
    is_whole = (out / "result.json").exists()
    wrong = []
    if is_whole and (bad := [n for n in differences(expected, out) if n != _BESIDE]):
        wrong.append(f"what is kept differs: {bad}")
    if process.returncode == 0 and not is_whole:
        wrong.append("it ended with 0, and there is no result")
    if "Traceback" in said:
        wrong.append("it ended with a traceback")
    if not is_whole and not any(words in said for words in _SAID):
        wrong.append("nobody said that a rank was killed")
    until = time.monotonic() + _GONE_S
    while (left := ranks_of(out)) and time.monotonic() < until:
        time.sleep(0.1)
    if left:
        wrong.append(f"left behind: {left}")
    hit = "when it was over" if is_whole or not was_there else f"rank {victim} of {ranks}"
    return hit, f"seed {seed}: {'; '.join(wrong)}: {said[-1500:]}" if wrong else ""


def sweep(count: int, seed: int, mpirun: str, folder: Path) -> list[str]:
    """So many kills; what is wrong."""
    hits: Counter[str] = Counter()
    failed = []
    expected, began = folder / "expected", time.monotonic()
    said, _ = started(launcher(mpirun, 2), expected).communicate(timeout=_LONGEST_S)
    took_s = time.monotonic() - began
    assert (expected / "result.json").exists(), said
    for each in range(seed, seed + count):
        hit, wrong = check(each, mpirun, folder, expected, took_s)
        hits[hit] += 1
        failed += [wrong] * bool(wrong)
        print(f"seed {each}: {hit}{' WRONG' * bool(wrong)}", flush=True)
    print(*(f"{times:5} {hit}" for hit, times in sorted(hits.items())), sep="\n")
    return failed


def main() -> int:
    """Kill so many."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mpirun", default="mpirun")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        failed = sweep(asked.count, asked.seed, asked.mpirun, Path(name))
    print(f"{asked.count} kills, {len(failed)} wrong", *failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

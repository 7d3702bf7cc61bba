"""A simulated run killed at any moment goes on from its checkpoint, and comes to the same bytes.

    python -m tests.lab.checkpoint_kills --count 100 --seed 1

Each seed is a scenario by lot (`lab/runs/chaos.py`: fabric, transport and faults), by one thread or
two. It is run once as it is, for what it has to come to. Then it is begun with checkpoints, killed
(SIGKILL) at a moment by lot, begun again by the same command, killed again, until it has come to
its end; what it then keeps is compared file by file. Slices are short, so that there are many
moments at which a checkpoint may be taken, and they follow each other so closely that many kills
hit one that is being written.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import field, replace
from pathlib import Path

from rich.console import Console

from lab.engines import RunOptions
from lab.engines.sim import checkpoint, engine, simulation
from lab.machine.paths import ROOT
from lab.progress import Stages
from lab.runs import chaos
from lab.runs.run import keeping, simulate
from lab.scenario import catalogue
from params.data import Data

_NAME = "tests.lab.checkpoint_kills"
_BEGUN = "begun"
_WENT_ON = "went on"
_LONGEST_S = 300
_SELDOM_S = 1.0  # who is not killed any more need not keep so many
_MAX_KILLS = 6  # of one run
_BESIDE = ("fabric.json", "fabric.p4info.txtpb")


class Case(Data):
    """A run by lot."""

    seed: int
    threads: int
    slice_events: int
    interval_s: float

    @classmethod
    def drawn(cls, seed: int) -> Case:
        """That of a seed."""
        lot = random.Random(seed)
        return cls(
            *(seed, lot.choice((1, 2)), lot.choice((500, 2000, 10_000))),
            lot.choice((0.02, 0.1, 0.3)),
        )

    def started(self, out: Path, *, kept: bool) -> subprocess.Popen[str]:
        """Its process, with checkpoints or without."""
        words = json.dumps([vars(self), str(out), kept])
        return subprocess.Popen(
            [sys.executable, "-m", _NAME, "--one", words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
        )

    def run(self, out: Path, *, kept: bool) -> int:
        """Run it in this process."""
        out.mkdir(exist_ok=True)
        engine._SLICE_EVENTS = self.slice_events
        simulation.WORTH_EVENTS = 0  # every turn is shared, however little there is to do
        begin = engine._Course._begin

        def telling(course: engine._Course) -> int:
            at_ns = begin(course)
            print(_WENT_ON if at_ns else _BEGUN, flush=True)
            return at_ns

        engine._Course._begin = telling
        drawn = chaos.drawn(self.seed)
        scenario = catalogue.made({**drawn.content(), "measures": {"series": True}})
        options = RunOptions(
            out=out,
            engine="sim",
            threads=self.threads,
            checkpoint_s=self.interval_s if kept else None,
        )
        stages = Stages(Console(file=io.StringIO()))
        code = simulate(scenario, options, stages, keeping(options, stages))
        checkpoint.discard(out)
        return code


class Tally(Data, frozen=False):
    """What became of all of them."""

    kills: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)


def _to_its_end(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=_LONGEST_S)
    return said


def _killed(case: Case, out: Path, wait_s: float) -> tuple[str, str] | None:
    """Begin, or go on, and kill it so long after it did: how it had begun, and what the kill hit;
    nothing, if it was over before."""
    process = case.started(out, kept=True)
    assert process.stdout is not None
    how = process.stdout.readline().strip()
    time.sleep(wait_s)
    process.send_signal(signal.SIGKILL)
    said = how + process.stdout.read()
    process.wait()
    if process.returncode != -signal.SIGKILL:
        if process.returncode not in (0, 1, 3, 4) or "Traceback" in said:
            raise AssertionError(said)
        return None
    if (out / f"{checkpoint.FILE}.part").exists():
        return how, "while one was written"
    if (out / checkpoint.FILE).exists():
        return how, "between two"
    return how, "when it was over" if (out / "result.json").exists() else "before the first"


def differences(expected: Path, found: Path) -> list[str]:
    """Which files are not the same."""
    names = {path.name for folder in (expected, found) for path in folder.iterdir()}
    return sorted(n for n in names - {*_BESIDE} if _content(expected / n) != _content(found / n))


def _content(path: Path) -> object:
    if not path.exists():
        return None
    if path.name != "result.json":
        return path.read_bytes()
    return {**json.loads(path.read_text()), "provenance": None}


def check(seed: int, tally: Tally) -> str:
    """One of them; what it was."""
    case, lot = Case.drawn(seed), random.Random(-seed)
    with tempfile.TemporaryDirectory() as folder:
        expected, out = Path(folder) / "expected", Path(folder) / "found"
        process = case.started(expected, kept=False)
        assert process.stdout is not None
        begun = process.stdout.readline()
        began = time.monotonic()
        said = begun + _to_its_end(process)
        took_s = time.monotonic() - began
        codes = {process.returncode}
        hits: list[str] = []
        while len(hits) < _MAX_KILLS and (hit := _killed(case, out, lot.random() * took_s)):
            hits.append(f"{hit[0]}, {hit[1]}")
        if not (out / "result.json").exists() or [*out.glob(f"{checkpoint.FILE}*")]:
            process = replace(case, interval_s=_SELDOM_S).started(out, kept=True)
            said = _to_its_end(process)
            codes.add(process.returncode)
        tally.kills.update(hits)
        wrong = differences(expected, out)
        if wrong or len(codes) > 1:
            tally.failed.append(f"seed {seed}: {', '.join(wrong)} {codes}: {said[-2000:]}")
    return f"{case.threads} threads, {took_s:.1f} s, killed {len(hits)} times"


def main() -> int:
    """Kill so many times."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100, help="kills at least")
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        drawn, out, kept = json.loads(asked.one)
        return Case(**drawn).run(Path(out), kept=kept)
    tally, seed = Tally(), asked.seed
    while tally.kills.total() < asked.count:
        print(f"seed {seed}: {check(seed, tally)}", flush=True)
        seed += 1
    for hit, times in sorted(tally.kills.items()):
        print(f"{times:5} {hit}")
    print(f"{tally.kills.total()} kills of {seed - asked.seed} runs, {len(tally.failed)} differ")
    print(*tally.failed, sep="\n")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())

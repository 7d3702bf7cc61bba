"""Whatever a fabric is told: what is drawn by lot is run, and what must hold is held.

Nothing is lost where headroom is computed, what is lost by somebody's choice is told as its price,
books balance, and what did not arrive has a verdict.

    .venv/bin/python -m tests.lab.any_settings [--seed N] [--runs N]

runs so many seeds, one after the other, and names each that fails with what it was and the command
that runs it again. It ends with 1 if any did.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from lab.errors import LabError
from lab.results.result import Result
from lab.runs.lots import Drawn, drawn
from lab.runs.run import code_of
from lab.scenario.experiment import Experiment
from params.pfc import Remedy
from tests.lab.simulated import run_of

# Drops that say nothing of pauses: frames that are used up whoever they were for, what a table
# forbids, and what the watchdog was told to do.
_OTHERWISE = frozenset(("foreign_pause", "foreign_credit", "denied", "watchdog"))


def complaints(case: Drawn, result: Result) -> Iterator[str]:
    """What should not be: something lossless lost, unless it is said by whose choice."""
    drops = result.drops
    if not result.fidelity.ok:
        yield f"not to be trusted: {result.fidelity.note}"
    lost = drops.by_reason.get("headroom_full", 0)
    if lost and not (drops.price or not result.fidelity.ok):
        yield f"{lost} packets found no headroom, and nobody says why"
    if lost and not (case.is_sized or case.loses or result.pfc.storms):
        yield f"{lost} packets found no headroom as computed: {drops.price}"
    if lost and code_of(result) == 0:
        yield f"{lost} packets found no headroom, and the run ends with 0"
    others = {why: n for why, n in drops.by_reason.items() if why not in _OTHERWISE and n}
    if case.scenario.pfc.watchdog_action is Remedy.FORWARD and result.pfc.storms and drops.price:
        others.pop("receive_buffer_full", None)  # of what went on, deaf to adapters' pauses
    stalls = result.stalls or ()
    judged = sum(stall.messages for stall in stalls)
    if judged != result.flows.failed:
        yield f"{result.flows.failed} messages did not arrive, and {judged} have a verdict"
    if any(stall.verdict == "untold" for stall in stalls):
        yield f"the simulator does not know why: {stalls}"
    if set(case.carried) <= set(case.lossless) and not (case.loses or lost) and others:
        yield f"all classes are lossless, but packets were dropped: {others}"


def check(seed: int, out: Path) -> Result:
    """A seed's run; an assertion, if something of it should not be."""
    case = drawn(seed, out)
    result = run_of(Experiment.of(case.scenario), out).result
    found = "; ".join(complaints(case, result))
    assert not found, f"seed {seed}: {found}\n{again(seed)}"
    return result


def written(seed: int, folder: Path, **measures: bool) -> str:
    """A seed's scenario in a file of that folder, which is a name that can be run."""
    file = folder / f"lot-{seed}.yaml"
    content = drawn(seed, folder).content
    file.write_text(yaml.safe_dump(content | {"measures": measures}, sort_keys=False))
    return str(file)


def again(seed: int) -> str:
    """The command that runs a seed once more."""
    return f".venv/bin/python -m tests.lab.any_settings --seed {seed} --runs 1"


def main() -> int:
    """Run many; the exit code says whether all were as they should be."""
    parser = argparse.ArgumentParser(description="Runs of whatever settings chance draws.")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--runs", type=int, default=500, help="how many")
    options = parser.parse_args()
    failed, tally, began = [], Counter[str](), time.monotonic()
    for seed in range(options.seed, options.seed + options.runs):
        with tempfile.TemporaryDirectory() as folder:
            try:
                result = check(seed, Path(folder))
            except (AssertionError, LabError) as error:
                failed.append(seed)
                print(f"FAILED seed {seed}: {error}", flush=True)
                continue
        tally["stalled"] += result.flows.failed > 0
        tally["priced"] += result.drops.price is not None
        tally["paused"] += result.pfc.xoff_frames > 0
    took_s = time.monotonic() - began
    print(f"{options.runs} seeds from {options.seed} in {took_s:.0f} s: {dict(tally)}")
    print(f"{len(failed)} failed{': ' if failed else ''}{', '.join(map(str, failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

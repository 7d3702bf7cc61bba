"""Runs that leave out what repeats, held against exact ones: cases by lot, most of them traps.

    python -m tests.lab.any_skips --count 200 --seed 1
    python -m tests.lab.any_skips --unsettled --count 200 --seed 100 --accuracy 5%
    python -m tests.lab.any_skips --training --count 300 --seed 0

Jobs that almost keep step, so that they drift past each other; stragglers; periods of several
steps; jobs that end, and faults that come, long after all has repeated; links that mend; marks,
pauses, and chance in the ways of packets. The exact engine judges: of every case each step's begin
and end, each job's and the run's time may differ by no more than what the run says of itself, and
if that is nothing neither may distributions of messages' times. How many cases are the same in
everything that is kept is told, too. With --unsettled there are many steps, of which hardly two are
alike: what is told from few of them is at stake. With --training the cases are `training-gpt3` with
--steps: 15 for a seed, the second job by each placement and ways by three policies.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, get_args

from rich.console import Console

from lab.engines import ABOUT, RunOptions
from lab.progress import Stages
from lab.results.alone import Alone
from lab.results.outcome import Outcome
from lab.results.result import Result
from lab.results.skipped import with_skipped
from lab.runs.run import assembled, outcome_of, proved
from lab.runs.skip import simulated
from lab.scenario.catalogue import load, made
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.data import Data
from traffic.jobs import MixSpec, Policy
from traffic.measures import JobMeasure, Measures

_HOSTS = 8
# Packed jobs meet nobody, and repeat; others often never do, for lots decide who is first.
_PLACEMENTS = "packed", "packed", "packed", "spread", "random"
_ALL_PLACEMENTS: tuple[str, ...] = get_args(Policy)
_POLICIES = "ecmp", "spray", "dlb"
_TRAINING_STEPS = 24
_BESIDES = "provenance", "skipped"  # which are not of the network


class Verdict(Data):
    """A case, both ways."""

    exact: Result
    skipped: Result
    jobs: Sequence[JobMeasure]  # exactly, with all steps of each
    skipped_jobs: Sequence[JobMeasure]
    exact_s: float  # of processors
    skipped_s: float

    @property
    def steps(self) -> int:
        """How many were left out."""
        assert self.skipped.skipped is not None
        return sum(self.skipped.skipped.steps.values())

    @property
    def is_same(self) -> bool:
        """Whether all that is kept of the network is the same."""
        one, other = (
            {key: value for key, value in each.content().items() if key not in _BESIDES}
            for each in (self.exact, self.skipped)
        )
        return one == other

    @property
    def error(self) -> float:
        """The largest difference of any moment, as a share of it.

        Where nothing may differ, of how long anything took as well, and of counts of messages.
        """
        said = self.skipped.skipped
        ways = (_times,) if said is not None and said.bound else (_times, _lengths)
        exact, told = (
            [*chain(*(way(*each) for way in ways))]
            for each in ((self.exact, self.jobs), (self.skipped, self.skipped_jobs))
        )
        if len(exact) != len(told):
            return 1.0
        return max(abs(a - b) / max(a, b, 1) for a, b in zip(exact, told, strict=True))

    @property
    def is_kept(self) -> bool:
        """Whether it is within what it says of itself, and that within what was asked."""
        said = self.skipped.skipped
        assert said is not None
        return self.error <= said.bound <= float(said.accuracy.rstrip("%")) / 100


def _times(result: Result, jobs: Sequence[JobMeasure]) -> Iterator[float]:
    yield from (result.duration_ns, result.jct_ns or 0)
    for job in jobs:
        yield job.jct_ns or 0
        for step in job.steps:
            yield from (step.start_ns, step.end_ns or 0)


def _lengths(result: Result, jobs: Sequence[JobMeasure]) -> Iterator[float]:
    for job in jobs:
        yield from (step.comm_ns for step in job.steps)
    for flows in (result.flows, *(result.parts or {}).values()):
        yield from (flows.count, flows.completed)


def _measured(experiment: Experiment, outcome: Outcome) -> list[JobMeasure]:
    """All of them: a result has the steps of the longest alone, which of two like may be either."""
    alone = Alone(experiment)
    measures = Measures(
        experiment.schedule, outcome.timeline, alone.alpha_ns, alone.payload_rate_gbps
    )
    return [with_skipped(job, outcome) for job in measures.jobs]


def judged(scenario: Scenario, accuracy: str, out: Path) -> Verdict:
    """Run it both ways."""
    options = RunOptions(out=out, engine="sim")
    stages = Stages(Console(quiet=True))
    began = time.process_time()
    experiment = Experiment.of(scenario)
    whole = outcome_of(experiment, options, stages)
    exact = assembled(experiment, whole, options)
    between = time.process_time()
    skipping = replace(options, accuracy=accuracy)
    short, outcome = simulated(scenario, skipping, stages)
    outcome = proved(short, outcome)
    skipped = assembled(short, outcome, skipping)
    took_s = between - began, time.process_time() - between
    return Verdict(exact, skipped, _measured(experiment, whole), _measured(short, outcome), *took_s)


# --- cases ----------------------------------------------------------------------------------------


def drawn(number: int) -> Scenario:
    """A case by lot."""
    chance = Random(number)
    kinds = "alone", "alone", "twins", "twins", "near", "ratio", "leaver", "training"
    jobs = _jobs(chance, kinds[number % len(kinds)])
    recovery = chance.choice(("go-back-n", "selective"))
    return made(
        {
            "name": f"skips-{number}",
            "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
            "lb": {"policy": chance.choice(("ecmp", "ecmp", "flowlet", "spray", "dlb"))},
            "transport": {
                "recovery": recovery,
                "cc": chance.choice(("none", "none", "dcqcn", "dctcp")),
            },
            "buffer": {"bytes": chance.choice((700_000, 4_000_000))},
            "ecn": {"enabled": chance.random() < 0.7, "kmin": 10_000, "kmax": 40_000},
            "traffic": {"kind": "mix", "parts": jobs},
            "faults": _faults(chance),
            "measures": {"series": False},
            "seed": chance.randrange(2**32),
        }
    )


def unsettled(number: int) -> Scenario:
    """A case by lot of many short steps, no two of which need be alike."""
    chance = Random(number)
    kinds = "noisy", "near", "ratio", "beside", "lanes", "burst"
    kind = kinds[number % len(kinds)]
    steps = chance.choice((480, 960, 1440))
    first = _job(chance, "first", _HOSTS if kind == "noisy" else _HOSTS // 2)
    first |= {"steps": steps, "placement": chance.choice(("random", "spread", "packed"))}
    second = {**first, "name": "second"}
    match kind:
        case "near":  # so that they creep through each other, or lock
            second["compute_ns"] = first["compute_ns"] + chance.choice((1, 5, 25, 100, 400, 2000))
        case "ratio":  # they meet in the same places, or nearly
            second["compute_ns"] = first["compute_ns"] * 2 + chance.choice((0, 1, 50, 1000))
        case "beside":  # one ends long before
            second["compute_ns"] = first["compute_ns"] + chance.randrange(30_000)
            second["steps"] = steps // chance.choice((2, 4))
        case "lanes":
            second = {**_training(chance), "name": "second", "ranks": None, "steps": steps // 2}
            second = {key: value for key, value in second.items() if value is not None}
            first["placement"], jobs_hosts = "packed", _HOSTS // 2
            second["parallelism"] = {"tensor": 2, "pipeline": 2, "data": jobs_hosts // 4}
            second["batch"] = {"sequences": 2}
            second["node"] = {"gpus": 2}
        case "burst":  # rarely, much more is under way than ever else
            second |= {"compute_ns": first["compute_ns"] * chance.randrange(20, 60)}
            second["collective"] = {"op": "all-to-all", "bytes": chance.randrange(200_000, 600_000)}
            second["steps"] = steps // chance.choice((2, 4))
    return made(
        {
            "name": f"settles-{number}",
            "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
            "lb": {"policy": chance.choice(("ecmp", "flowlet", "spray", "dlb"))},
            "transport": {
                "recovery": "selective",
                "cc": chance.choice(("none", "none", "dcqcn", "dctcp")),
            },
            "buffer": {"bytes": chance.choice((700_000, 4_000_000))},
            "ecn": {"enabled": chance.random() < 0.7, "kmin": 10_000, "kmax": 40_000},
            "traffic": {"kind": "mix", "parts": [first] if kind == "noisy" else [first, second]},
            "faults": _faults(chance) if chance.random() < 0.1 else [],
            "measures": {"series": False},
            "seed": chance.randrange(2**32),
        }
    )


def training(number: int, steps: int = _TRAINING_STEPS) -> Scenario:
    """`training-gpt3` by a seed, a placement and a policy."""
    seed, turn = divmod(number, len(_POLICIES) * len(_ALL_PLACEMENTS))
    at_policy, at_placement = divmod(turn, len(_ALL_PLACEMENTS))
    recovery = "selective" if _POLICIES[at_policy] == "spray" else "go-back-n"
    scenario = load(
        "training-gpt3",
        (
            f"seed={seed}",
            f"lb.policy={_POLICIES[at_policy]}",
            f"transport.recovery={recovery}",
            "measures.series=false",
        ),
    )
    traffic = scenario.traffic
    assert isinstance(traffic, MixSpec)
    placements = "rail-aligned", _ALL_PLACEMENTS[at_placement]
    parts = tuple(
        part.model_copy(update={"steps": steps, "placement": placement})
        for part, placement in zip(traffic.parts, placements, strict=True)
    )
    return scenario.model_copy(update={"traffic": traffic.model_copy(update={"parts": parts})})


def _jobs(chance: Random, kind: str) -> list[dict[str, Any]]:
    """One or two, which meet or do not."""
    if kind == "training":
        return [_training(chance)]
    first = _job(
        chance, "first", chance.choice((_HOSTS, _HOSTS // 2)) if kind == "alone" else _HOSTS // 2
    )
    second = {**first, "name": "second"}
    compute_ns = first["compute_ns"]
    match kind:
        case "alone":
            return [first]
        case "near":  # a step of one takes a little longer than one of the other
            second["compute_ns"] = compute_ns + chance.choice((1, 2, 10, 100, 1000))
        case "ratio":
            second["compute_ns"] = compute_ns * chance.choice((2, 3))
        case "leaver":
            second["steps"] = chance.randrange(3, first["steps"])
    return [first, second]


def _job(chance: Random, name: str, ranks: int) -> dict[str, Any]:
    slow = [{"rank": chance.randrange(ranks), "slowdown": 1 + chance.random()}]
    return {
        "kind": "job",
        "name": name,
        "ranks": ranks,
        "steps": chance.randrange(30, 150),
        "compute_ns": chance.randrange(10_000, 60_000),
        "collective": {
            "op": chance.choice(("all-reduce", "all-gather", "all-to-all")),
            "bytes": chance.randrange(1_000, 60_000),
        },
        "buckets": chance.choice((1, 2)),
        "overlap": chance.random() < 0.5,
        "barrier": chance.random() < 0.5,
        "placement": chance.choice(_PLACEMENTS),
        "stragglers": slow if chance.random() < 0.3 else [],
    }


def _training(chance: Random) -> dict[str, Any]:
    tensor, pipeline, data = chance.choice(((2, 2, 2), (1, 4, 2), (1, 2, 4), (2, 1, 4)))
    return {
        "kind": "training",
        "name": "training",
        "model": "gpt3-175b",
        "parallelism": {"tensor": tensor, "pipeline": pipeline, "data": data},
        "batch": {"sequences": 2 * data},
        "node": {"gpus": tensor},
        "placement": chance.choice(_PLACEMENTS),
        "scale": 0.000005,
        "steps": chance.randrange(24, 50),
    }


def _faults(chance: Random) -> list[dict[str, Any]]:
    """One, at any time, or none."""
    if chance.random() < 0.4:
        return []
    fault: dict[str, Any] = {"at_ns": chance.randrange(100_000, 4_000_000)}
    match chance.choice(("down", "slow", "slow", "drain", "halt", "halt")):
        case "down":
            fault |= {"action": "down", "link": "leaf1-spine1", "for_ns": 200_000}
        case "slow":
            link = chance.choice(("h2-leaf1", "h2-leaf1", "leaf1-spine2"))
            fault |= {"action": "slow", "link": link, "share": chance.choice((0.25, 0.9))}
            fault |= chance.choice(({}, {"for_ns": chance.randrange(1_000, 1_000_000)}))
        case "drain":
            fault |= {"action": "drain", "switch": "spine1"}
        case "halt":
            fault |= {"action": "halt", "host": "h3", "for_ns": chance.randrange(1_000, 50_000)}
    return [fault]


def main() -> int:
    """Judge so many, and say what is amiss."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--training", action="store_true", help="training-gpt3 in many ways")
    parser.add_argument("--steps", type=int, default=_TRAINING_STEPS, help="of --training")
    parser.add_argument("--unsettled", action="store_true", help="many steps, and hardly two alike")
    parser.add_argument("--accuracy", choices=ABOUT, help="both in turn, if it is not said")
    asked = parser.parse_args()
    case = unsettled if asked.unsettled else drawn
    if asked.training:
        case = partial(training, steps=asked.steps)
    tally: Counter[str] = Counter()
    worst, exact_s, skipped_s = 0.0, 0.0, 0.0
    with TemporaryDirectory() as out:
        for number in range(asked.seed, asked.seed + asked.count):
            verdict = judged(case(number), asked.accuracy or ABOUT[number % len(ABOUT)], Path(out))
            why = verdict.skipped.skipped.why if verdict.skipped.skipped else None
            is_near = bool(verdict.skipped.skipped and verdict.skipped.skipped.bound)
            tally[why or ("told from fewer steps" if is_near else "skipped")] += 1
            tally["same"] += verdict.is_same
            tally["skipped, and the same"] += verdict.is_same and why is None
            worst = max(worst, verdict.error)
            if why is None:
                exact_s, skipped_s = exact_s + verdict.exact_s, skipped_s + verdict.skipped_s
            if not verdict.is_kept:
                tally["beyond"] += 1
                print(f"{number}: off by {verdict.error:.2g}, {verdict.steps} steps left out")
    for what, count in tally.most_common():
        print(f"{count:6} {what}")
    print(
        f"of {asked.count}; off by {worst:.2g} at most; what was skipped took {skipped_s:.1f} s of"
    )
    print(f"processors, {exact_s:.1f} exactly")
    return 1 if tally["beyond"] else 0


if __name__ == "__main__":
    sys.exit(main())

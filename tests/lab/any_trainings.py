"""Trainings that are told from few of their steps, held against exact ones: a thousand hosts.

    python -m tests.lab.any_trainings --count 20 --seed 0

Two jobs train GPT-3 side by side as in `training-gpt3`, on 512 hosts each of a fat tree, and end
each step with the norm of their gradients. By its number a case has one of five placements and one
of three policies, all 15 in 15 cases on end, and a seed. Every step's begin and end, both jobs'
times and the run's may differ from the exact run's by no more than the bound that is stated, and
that by no more than was asked for. A line is printed as each case ends; it says too how many times
quicker a run of --reckoned steps would be: so many times what a step takes exactly, over what it
took to tell the whole, which is the same whatever the number of steps. What is refused is asked
again with twice as many steps, so that twice as many are simulated, up to --most.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import get_args

from lab.engines import ABOUT
from lab.scenario.catalogue import made
from lab.scenario.model import Scenario
from tests.lab.any_skips import Verdict, judged
from traffic.jobs import Policy

_PLACEMENTS: tuple[str, ...] = get_args(Policy)
_POLICIES = "ecmp", "flowlet", "adaptive"
_STEPS = 192  # a quarter of which is simulated
_TENSOR = 8
_PODS = 16  # of 64 hosts:
_HOSTS = 1024
_REPEATS = 0.001  # the bound of what repeats to the nanosecond


def drawn(number: int, steps: int, pods: int, data: int, scale: float) -> Scenario:
    """A case by its number; on any fabric hosts have as much to do."""
    at_policy, at_placement = divmod(number % 15, len(_PLACEMENTS))
    policy, placement = _POLICIES[at_policy], _PLACEMENTS[at_placement]
    hosts = pods**3 // 4
    split = {"tensor": _TENSOR, "data": data, "pipeline": hosts // 2 // (_TENSOR * data)}
    job = {
        "kind": "training",
        "model": "gpt3-175b",
        "parallelism": split,
        "batch": {"sequences": 4},
        "node": {"gpus": _TENSOR},
        "buckets": 1,
        "clip_gradients": True,
        "placement": placement,
        "scale": scale * hosts / _HOSTS,
        "steps": steps,
    }
    return made(
        {
            "name": f"trainings-{number}-{placement}-{policy}",
            "topology": {"kind": "fat-tree", "k": pods},
            "link": {"rate_gbps": 100, "delay_ns": 1000, "mtu": 4096},
            "lb": {"policy": policy},
            "transport": {"recovery": "go-back-n" if policy == "ecmp" else "selective"},
            "traffic": {"kind": "mix", "parts": [{**job, "name": "one"}, {**job, "name": "two"}]},
            "measures": {"series": False, "flows": False},
            "limit_ns": 10**15,
            "seed": Random(number).randrange(2**32),
        }
    )


def is_refused(verdict: Verdict) -> bool:
    """Whether nothing was told, and all was simulated."""
    return bool(verdict.skipped.skipped and verdict.skipped.skipped.why)


def line(scenario: Scenario, verdict: Verdict, steps: int, reckoned: int) -> str:
    """A case in words."""
    said = verdict.skipped.skipped
    assert said is not None
    exact_s = verdict.exact_s / steps
    if said.why is not None:
        return f"{scenario.name}: {steps} steps refused, {said.why}; {exact_s:.2f} s a step"
    way = "told" if said.bound > _REPEATS else "skipped"
    return (
        f"{scenario.name}: {steps} steps {way}, bound {said.bound:.2%}, off by {verdict.error:.3%}"
        f"{'' if verdict.is_kept else ' BEYOND'}; {verdict.skipped_s:.0f} s, {exact_s:.2f} s a step"
        f" exactly: {reckoned:,} steps {reckoned * exact_s / verdict.skipped_s:.0f} times quicker"
    )


def main() -> int:
    """Judge so many, and say what is amiss."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="the number of the first")
    parser.add_argument("--accuracy", choices=ABOUT, default="1%")
    parser.add_argument("--steps", type=int, default=_STEPS, help="that are simulated exactly")
    parser.add_argument("--most", type=int, default=4 * _STEPS, help="steps, if it is refused")
    parser.add_argument("--pods", type=int, default=_PODS, help="of the fat tree")
    parser.add_argument("--data", type=int, default=2, help="replicas of each model")
    parser.add_argument("--scale", type=float, default=0.0001, help="of jobs at 1,024 hosts")
    parser.add_argument("--reckoned", type=int, default=100_000, help="steps")
    asked = parser.parse_args()
    refused = beyond = 0
    with TemporaryDirectory() as out:
        for number in range(asked.seed, asked.seed + asked.count):
            steps = asked.steps
            while True:
                scenario = drawn(number, steps, asked.pods, asked.data, asked.scale)
                verdict = judged(scenario, asked.accuracy, Path(out))
                print(line(scenario, verdict, steps, asked.reckoned), flush=True)
                if not is_refused(verdict) or 2 * steps > asked.most:
                    break
                steps *= 2
            beyond += not verdict.is_kept
            refused += is_refused(verdict)
    print(f"of {asked.count} {refused} refused, {beyond} beyond what was stated")
    return 1 if beyond or refused else 0


if __name__ == "__main__":
    sys.exit(main())

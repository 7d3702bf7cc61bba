"""An example that learns: when each switch is to mark, from what its own ports tell.

    python -m doors.learning.example --seeds 5 --out learned.json

All switches share one linear policy, as in ACC (SIGCOMM 2021) all share one network: an action is
tanh(W x + b) of the most and the mean of what a switch sees of its ports. An evolution strategy in
numpy trains it under some workloads; it is judged under one it never saw, on seeds of its own,
beside every fixed setting of a grid: also beside the one of these that turns out best under the
very workload that judges, which nobody could have known before. The score of an episode is minus
the mean slowdown of its messages, all of which arrive: an episode ends when the last does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doors.learning.actions import NAMES, numbers_of
from doors.learning.bench import FEATURES
from doors.learning.several import SwitchesEnv

Numbers = NDArray[np.float64]
Job = tuple[str, Numbers, int]

_SEEN = 2 * len(FEATURES)
_SIZE = len(NAMES) * (_SEEN + 1)
_EVERY_NS, _MAX_STEPS = 20_000, 1000
_PAIRS = 6  # of opposite tries in a generation
_SIGMA, _RATE = 0.2, 0.3
_TRAINS, _JUDGES = range(1000), range(100_000, 100_008)
_GRID = tuple(product((5_000, 20_000, 80_000, 320_000), (1, 4), (0.1, 1.0), (1 / 16, 1.0)))
_STUDENT = {
    1: 12.71,
    2: 4.303,
    3: 3.182,
    4: 2.776,
    5: 2.571,
    6: 2.447,
    7: 2.365,
    8: 2.306,
    9: 2.262,
}


def _workload(sizes: str, load: float, duration: str) -> dict[str, Any]:
    return {
        "name": f"{sizes}-{round(100 * load)}",
        "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
        "transport": {"cc": "dcqcn"},
        "traffic": {"kind": "poisson", "load": load, "duration_ns": duration, "sizes": sizes},
    }


TRAINED = (
    _workload("websearch", 0.5, "800us"),
    _workload("websearch", 0.8, "800us"),
    _workload("storage", 0.7, "400us"),
)
JUDGED = _workload("hadoop", 0.8, "400us")
_NAMED = {each["name"]: each for each in (*TRAINED, JUDGED)}


def features(seen: NDArray[np.floating[Any]]) -> Numbers:
    """Of what a switch sees of its ports: the most and the mean of each, small ones made larger."""
    ports = np.sqrt(np.asarray(seen, float).reshape(-1, len(FEATURES)))
    return np.concatenate((ports.max(axis=0), ports.mean(axis=0)))


def acts(policy: Numbers, seen: NDArray[np.floating[Any]]) -> Numbers:
    """What a policy decides for a switch."""
    shaped = policy.reshape(len(NAMES), _SEEN + 1)
    return np.tanh(shaped[:, :-1] @ features(seen) + shaped[:, -1])


def held(numbers: Sequence[float]) -> Numbers:
    """The policy that always decides this."""
    policy = np.zeros((len(NAMES), _SEEN + 1))
    policy[:, -1] = np.arctanh(np.clip(numbers, -0.999, 0.999))
    return policy.reshape(-1)


@cache
def _env(name: str) -> SwitchesEnv:
    return SwitchesEnv(_NAMED[name], every_ns=_EVERY_NS, steps=_MAX_STEPS)


def score(job: Job) -> float:
    """What an episode under a policy comes to."""
    name, policy, seed = job
    env = _env(name)
    seen, _ = env.reset(seed=seed)
    info: dict[str, dict[str, Any]] = {}
    while env.agents:
        decided = {agent: acts(policy, own).astype(np.float32) for agent, own in seen.items()}
        seen, _, _, _, info = env.step(decided)
    return -float(next(iter(info.values())).get("mean_slowdown", 1e3))


def _scores(pool: ProcessPoolExecutor, jobs: Iterable[Job]) -> Numbers:
    return np.array([*pool.map(score, jobs, chunksize=1)])


def _table(
    pool: ProcessPoolExecutor,
    names: Sequence[str],
    policies: Sequence[Numbers],
    seeds: Sequence[int],
) -> Numbers:
    """A row a policy: the score of each workload and seed."""
    jobs = [(name, policy, seed) for policy in policies for name in names for seed in seeds]
    return _scores(pool, jobs).reshape(len(policies), -1)


def learned(
    pool: ProcessPoolExecutor, first: Numbers, seed: int, generations: int
) -> tuple[Numbers, list[float]]:
    """A policy after so many generations, and the mean score of each of them."""
    drawn = np.random.default_rng(seed)
    names = [each["name"] for each in TRAINED]
    policy, curve = first.copy(), []
    for _ in range(generations):
        tries = drawn.standard_normal((_PAIRS, _SIZE))
        both = [policy + _SIGMA * each for each in (*tries, *-tries)]
        found = _table(pool, names, both, [int(drawn.integers(len(_TRAINS)))])
        curve.append(float(found.mean()))
        # Of each workload the order alone counts, so that none outshouts the others.
        ranks = (found.argsort(axis=0).argsort(axis=0) / (len(both) - 1) - 0.5).mean(axis=1)
        policy += _RATE * _SIGMA * (ranks[:_PAIRS] - ranks[_PAIRS:]) @ tries
    return policy, curve


def interval(values: Sequence[float]) -> tuple[float, float]:
    """A mean, and half of the width of its 95 % interval by Student's t."""
    if len(values) < 2:
        return mean(values), float("inf")
    beyond = _STUDENT.get(len(values) - 1, 2.1)
    return mean(values), beyond * stdev(values) / len(values) ** 0.5


def study(pool: ProcessPoolExecutor, seeds: Sequence[int], generations: int) -> dict[str, Any]:
    """Learn once a seed, judge all, and say what came of it."""
    fixed = [held(numbers_of(k, k * w, p, a)) for k, w, p, a in _GRID]
    names = [each["name"] for each in TRAINED]
    first = int(_table(pool, names, fixed, [*_TRAINS][:2]).mean(axis=1).argmax())
    runs = []
    for seed in seeds:
        began = time.monotonic()
        policy, curve = learned(pool, fixed[first], seed, generations)
        runs.append({"seed": seed, "seconds": time.monotonic() - began, "curve": curve,
                     "policy": policy.tolist()})  # fmt: skip
        print(f"seed {seed}: {curve[0]:.3f} to {curve[-1]:.3f}", flush=True)
    policies = [np.array(run["policy"]) for run in runs]
    judged = -_table(pool, [JUDGED["name"]], [*fixed, *policies], [*_JUDGES])
    settings, own = judged[: len(fixed)], judged[len(fixed) :]
    best = int(settings.mean(axis=1).argmin())
    middle, half = interval([float(each) for each in own.mean(axis=1)])
    pairs = [float(each) for each in (own.mean(axis=0) / settings[best])]  # an episode each
    against, within = interval(pairs)
    return {
        "mean_slowdown": {
            "learned": [middle, half],
            "best fixed where it was trained": float(settings[first].mean()),
            "best fixed in hindsight": float(settings[best].mean()),
            "worst fixed": float(settings.mean(axis=1).max()),
        },
        "learned, of the best in hindsight, by episode": [against, within],
        "fixed": {"trained": _GRID[first], "hindsight": _GRID[best]},
        "judged": own.tolist(),
        "runs": runs,
    }


def main() -> None:
    """Learn, judge, and tell."""
    parser = argparse.ArgumentParser(description="Learn when to mark, and judge it.")
    parser.add_argument("--seeds", type=int, default=5, help="how often it is trained")
    parser.add_argument("--first", type=int, default=1, help="the first of these seeds")
    parser.add_argument("--generations", type=int, default=12)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        record = study(pool, seeds, given.generations)
    if given.out is not None:
        given.out.write_text(json.dumps(record, indent=1) + "\n")
    for what, value in record["mean_slowdown"].items():
        spread = f" ± {value[1]:.4f}" if isinstance(value, list) else ""
        print(f"{what:34} {value[0] if spread else value:.4f}{spread}")
    ratio, half = record["learned, of the best in hindsight, by episode"]
    print(f"learned / best fixed in hindsight  {ratio:.4f} ± {half:.4f}, episode by episode")


if __name__ == "__main__":
    main()

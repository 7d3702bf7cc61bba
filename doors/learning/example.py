"""An example that learns: when to mark, from what ports tell, by an evolution strategy in numpy.

    python -m doors.learning.example --minutes 8 --out learned.json

The policy is linear: an action is tanh(W x + b) of what FabricEnv shows. It is trained under one
workload, and judged under another, on seeds of its own, beside every fixed setting of a grid: also
beside the one of these that turns out best under the very workload that judges, which nobody could
have known before. The score of an episode is minus the mean slowdown of its messages.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doors.learning.actions import NAMES, numbers_of
from doors.learning.single import FabricEnv

Numbers = NDArray[np.float64]

_SEEN = 28
_SIZE = len(NAMES) * (_SEEN + 1)
_EVERY_NS, _STEPS = 20_000, 60
_PAIRS = 6  # of opposite tries in a generation
_SIGMA, _RATE = 0.15, 0.3
_TRAINS, _JUDGES = range(1000), range(100_000, 100_008)
_GRID = tuple(product((5_000, 20_000, 80_000, 320_000), (1, 4), (0.1, 1.0), (1 / 16, 1.0)))
_FABRIC: dict[str, Any] = {
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
    "transport": {"cc": "dcqcn"},
}
TRAINED = {
    **_FABRIC,
    "name": "trained",
    "traffic": {"kind": "poisson", "load": 0.6, "duration_ns": "800us", "sizes": "websearch"},
}
JUDGED = {
    **_FABRIC,
    "name": "judged",
    "traffic": {"kind": "poisson", "load": 0.8, "duration_ns": "400us", "sizes": "hadoop"},
}


def acts(policy: Numbers, seen: NDArray[np.floating[Any]]) -> Numbers:
    """What a policy decides."""
    shaped = policy.reshape(len(NAMES), _SEEN + 1)
    return np.tanh(shaped[:, :-1] @ np.asarray(seen) + shaped[:, -1])


def held(numbers: Sequence[float]) -> Numbers:
    """The policy that always decides this."""
    policy = np.zeros((len(NAMES), _SEEN + 1))
    policy[:, -1] = np.arctanh(np.clip(numbers, -0.999, 0.999))
    return policy.reshape(-1)


def score(job: tuple[str, Numbers, int]) -> float:
    """What an episode under a policy comes to."""
    name, policy, seed = job
    env = FabricEnv(TRAINED if name == "trained" else JUDGED, every_ns=_EVERY_NS, steps=_STEPS)
    try:
        seen, _ = env.reset(seed=seed)
        while True:
            seen, _, is_over, is_cut, told = env.step(acts(policy, seen).astype(np.float32))
            if is_over or is_cut:
                return -float(told.get("mean_slowdown", 1e3))
    finally:
        env.close()


def _scores(pool: ProcessPoolExecutor, jobs: Iterable[tuple[str, Numbers, int]]) -> Numbers:
    return np.array([*pool.map(score, jobs, chunksize=1)])


def _means(
    pool: ProcessPoolExecutor, name: str, policies: Sequence[Numbers], seeds: Sequence[int]
) -> Numbers:
    """Of each policy over the same seeds."""
    found = _scores(pool, [(name, policy, seed) for policy in policies for seed in seeds])
    means: Numbers = found.reshape(len(policies), len(seeds)).mean(axis=1)
    return means


def learned(
    pool: ProcessPoolExecutor, first: Numbers, seed: int, until: float
) -> tuple[Numbers, list[float]]:
    """A policy that time allowed for, and the mean score of each generation."""
    drawn = np.random.default_rng(seed)
    policy, curve = first.copy(), []
    while time.monotonic() < until:
        tries = drawn.standard_normal((_PAIRS, _SIZE))
        both = np.concatenate((tries, -tries))
        episode = int(drawn.integers(len(_TRAINS)))
        found = _scores(pool, [("trained", policy + _SIGMA * each, episode) for each in both])
        curve.append(float(found.mean()))
        ranks = found.argsort().argsort() / (len(found) - 1) - 0.5
        policy += _RATE * _SIGMA * (ranks[:_PAIRS] - ranks[_PAIRS:]) @ tries
    return policy, curve


def main() -> None:
    """Learn, judge, and tell."""
    parser = argparse.ArgumentParser(description="Learn when to mark, and judge it.")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    fixed = [held(numbers_of(k, k * w, p, a)) for k, w, p, a in _GRID]
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        trained = _means(pool, "trained", fixed, [*_TRAINS][:2])
        first = int(trained.argmax())
        policy, curve = learned(pool, fixed[first], given.seed, until)
        judged = _means(pool, "judged", [*fixed, policy], _JUDGES)
    best = int(judged[:-1].argmax())
    told = {
        "seed": given.seed,
        "curve": curve,
        "mean_slowdown": {
            "learned": -float(judged[-1]),
            "best fixed where it was trained": -float(judged[first]),
            "best fixed in hindsight": -float(judged[best]),
            "worst fixed": -float(judged[:-1].min()),
        },
        "fixed": {"trained": _GRID[first], "hindsight": _GRID[best]},
        "policy": policy.tolist(),
    }
    if given.out is not None:
        given.out.write_text(json.dumps(told, indent=1) + "\n")
    for what, value in told["mean_slowdown"].items():
        print(f"{what:34} {value:.4f}")


if __name__ == "__main__":
    main()

"""What may be rewarded, by name. All are of one decision's time, and are added up undiscounted.

ends       minus the share of messages that have not arrived. An episode's sum is, but for a
           constant, minus the mean time at which messages end, in decisions.
throughput the mean rate of links to hosts that carry anything, less half of the mean queue: as ACC
           (SIGCOMM 2021) weighs them.
lossless   the same, less the share of time that ports stood still.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from doors.learning.bench import Bench, Vector
from lab.errors import LabError

Reward = Callable[[Bench, Vector], float]


def _ends(bench: Bench, _: Vector) -> float:
    return -bench.open_share


def _throughput(_: Bench, seen: Vector) -> float:
    rates, queues = seen[:, 1], seen[:, 0]
    busy = rates > 0.01
    return float(rates[busy].mean() - 0.5 * queues[busy].mean()) if busy.any() else 0.0


def _lossless(bench: Bench, seen: Vector) -> float:
    return _throughput(bench, seen) - float(np.mean(seen[:, 2]))


REWARDS: Mapping[str, Reward] = {
    "ends": _ends,
    "throughput": _throughput,
    "lossless": _lossless,
}


def reward_named(name: str) -> Reward:
    """What is rewarded under that name."""
    if not isinstance(name, str) or name not in REWARDS:
        raise LabError(
            f"there is no reward {str(name)[:80]!r}", f"Choose one of {', '.join(REWARDS)}."
        )
    return REWARDS[name]

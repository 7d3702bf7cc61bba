"""One who decides for all switches, as Gymnasium has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from doors.learning.actions import NAMES, decided, taken
from doors.learning.bench import FEATURES, Bench, Vector, summed, whole
from doors.learning.rewards import reward_named
from lab import api

Action = NDArray[np.float32]
ID = "closlab/Fabric-v0"
_LEADS = 3
_SEEDS = 2**31


class FabricEnv(gym.Env[Vector, Action]):
    """A fabric under a scenario's traffic. An action: kmin, kmax, pmax and alpha of all switches.

    Seen: queues, rates, pauses and marks, by where ports lead, as mean and as most; then the last
    action.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(
        self,
        scenario: api.Said = "incast",
        changes: Mapping[str, object] | None = None,
        every_ns: int = 20_000,
        steps: int = 200,
        reward: str = "ends",
        render_mode: str | None = None,
    ) -> None:
        self._most_steps = whole("steps", steps)
        self.render_mode = render_mode
        self._reward = reward_named(reward)
        self._bench = Bench(api.scenario(scenario, set=changes), every_ns)
        seen = 2 * _LEADS * len(FEATURES) + len(NAMES)
        self.observation_space = gym.spaces.Box(-1.0, 10.0, (seen,), np.float32)
        self.action_space = gym.spaces.Box(-1.0, 1.0, (len(NAMES),), np.float32)
        self._last = np.zeros(len(NAMES), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Vector, dict[str, Any]]:
        """Begin an episode, whose seed follows from this one's."""
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(_SEEDS))
        self._steps = 0
        self._last = np.zeros(len(NAMES), np.float32)
        return self._with_last(self._bench.begin(chosen)), {"seed": chosen}

    def step(self, action: Action) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Decide, and see what comes of it."""
        bench = self._bench
        bench.check_open()
        self._last = taken(action)
        decision = decided(self._last.tolist())
        bench.decide(dict.fromkeys(bench.switches, decision))
        seen = bench.go_on()
        self._steps += 1
        is_over = bench.is_over
        is_cut = not is_over and self._steps >= self._most_steps
        info = bench.came_to() if is_over or is_cut else {}
        return self._with_last(seen), self._reward(bench, seen), is_over, is_cut, info

    def _with_last(self, seen: Vector) -> Vector:
        return np.concatenate((summed(self._bench, seen), self._last)).astype(np.float32)

    def close(self) -> None:
        """Release everything."""
        self._bench.close()


if ID not in gym.registry:
    gym.register(ID, "doors.learning.single:FabricEnv", disable_env_checker=True)

"""An agent a switch, as PettingZoo's parallel environments have it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from doors.learning.actions import NAMES, decided, taken
from doors.learning.bench import FEATURES, Bench, Vector, by_switch, whole
from doors.learning.rewards import reward_named
from lab import api
from lab.errors import LabError

Action = NDArray[np.float32]
_SEEDS = 2**31


class SwitchesEnv(ParallelEnv):  # type: ignore[misc]  # it has no types
    """Each switch sees its own ports and decides for itself; `ends` is rewarded to all alike, what
    is of ports to whose they are."""

    metadata: dict[str, Any] = {"name": "closlab_switches_v0", "render_modes": []}

    def __init__(
        self,
        scenario: api.Said = "incast",
        changes: Mapping[str, object] | None = None,
        every_ns: int = 20_000,
        steps: int = 200,
        reward: str = "throughput",
    ) -> None:
        self.render_mode = None
        self._reward = reward_named(reward)
        self._bench = Bench(api.scenario(scenario, set=changes), every_ns)
        self._most_steps = whole("steps", steps)
        self._wide = max(map(len, self._bench.ports_of.values()))
        self._drawn = np.random.default_rng()
        self.possible_agents = list(self._bench.switches)
        self.agents: list[str] = []
        seen = gym.spaces.Box(0.0, 10.0, (self._wide * len(FEATURES),), np.float32)
        acts = gym.spaces.Box(-1.0, 1.0, (len(NAMES),), np.float32)
        self.observation_spaces = dict.fromkeys(self.possible_agents, seen)
        self.action_spaces = dict.fromkeys(self.possible_agents, acts)

    def observation_space(self, agent: str) -> gym.Space[Vector]:
        """What a switch may see."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Action]:
        """What it may decide."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Vector], dict[str, dict[str, Any]]]:
        """Begin an episode, whose seed follows from this one's."""
        if seed is not None:
            self._drawn, _ = seeding.np_random(seed)
        chosen = int(self._drawn.integers(_SEEDS))
        self._steps = 0
        self.agents = list(self.possible_agents)
        seen = self._bench.begin(chosen)
        return by_switch(self._bench, seen, self._wide), {a: {"seed": chosen} for a in self.agents}

    def step(
        self, actions: dict[str, Action]
    ) -> tuple[
        dict[str, Vector],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Let all decide at once, and see what comes of it."""
        bench, agents = self._bench, self.agents
        bench.check_open()
        if not isinstance(actions, Mapping) or not set(actions) <= set(self.possible_agents):
            raise LabError(
                f"{str(actions)[:80]} are no actions", f"Give them by {', '.join(agents)}."
            )
        bench.decide({a: decided(taken(actions[a]).tolist()) for a in agents if a in actions})
        seen = bench.go_on()
        self._steps += 1
        is_over = bench.is_over
        is_cut = not is_over and self._steps >= self._most_steps
        info = bench.came_to() if is_over or is_cut else {}
        rewards = {a: self._reward(bench, seen[list(bench.ports_of[a])]) for a in agents}
        if is_over or is_cut:
            self.agents = []
        return (
            by_switch(bench, seen, self._wide),
            rewards,
            dict.fromkeys(agents, is_over),
            dict.fromkeys(agents, is_cut),
            {a: dict(info) for a in agents},
        )

    def close(self) -> None:
        """Release everything."""
        self._bench.close()

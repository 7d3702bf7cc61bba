"""What somebody may give an environment that it was not made for, drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from doors.learning.several import SwitchesEnv
from doors.learning.single import FabricEnv

_ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 4.5, 2**31, 2**63, -(2**200), 1e308, float("nan"), float("inf")),
    *("", "x", "leaf1", "\0", "../..", "\ud83d", "a" * 100_000, b"\xff", [], {}, (), [[]], {1}),
    *(
        [None] * 4,
        ["a"] * 4,
        [1, 2, 3],
        [1, 2, 3, 4, 5],
        [[1, 2, 3, 4]],
        {"a": {"b": []}},
        object(),
    ),
    *(np.full(4, np.nan), np.full(4, np.inf), np.full(4, -1e30), np.zeros((4, 4)), np.zeros(0)),
    *(np.array(["a"] * 4), np.array([1j] * 4), np.zeros(4, object), 0.5 + 1j, len, int),
)
_ARGUMENTS = ("scenario", "changes", "every_ns", "steps", "reward")
Attempt = tuple[str, Callable[[], object]]


def made(drawn: random.Random, small: dict[str, Any]) -> Attempt:
    """An environment of arguments that are none."""
    kind = drawn.choice((FabricEnv, SwitchesEnv))
    given: dict[str, Any] = {"scenario": small, "steps": 3}
    for name in drawn.sample(_ARGUMENTS, drawn.choice((1, 1, 2))):
        given[name] = drawn.choice(_ODD)
    if drawn.random() < 0.2:
        given["scenario"] = {**small, drawn.choice([*small, "x"]): drawn.choice(_ODD)}
    return f"{kind.__name__}({str(given)[:300]})", lambda: kind(**given).close()


def asked(drawn: random.Random, env: FabricEnv | SwitchesEnv) -> Attempt:
    """A call out of turn, or with what it does not take."""
    odd = drawn.choice(_ODD)
    name = type(env).__name__
    match drawn.randrange(25):  # an episode takes longer to begin than all else
        case 0:
            return f"{name}.reset(seed={str(odd)[:99]})", lambda: env.reset(seed=odd)
        case 1:
            return f"{name}.reset(options={str(odd)[:99]})", lambda: env.reset(options=odd)
        case 2:
            return f"{name}.reset()", lambda: env.reset(seed=drawn.randrange(100))
    action = odd
    if isinstance(env, SwitchesEnv) and drawn.random() < 0.8:
        agents = [*env.possible_agents, "leaf99", None]
        action = {drawn.choice(agents): odd, drawn.choice(agents): np.zeros(4, np.float32)}
    return f"{name}.step({str(action)[:300]})", lambda: env.step(action)

"""``closlab gym``: a scenario as an environment to learn in: what it is like, and how fast."""

from __future__ import annotations

import importlib.util
import time
from typing import Annotated

import typer

from lab.commands.options import Changes, Name
from lab.errors import MissingTool


def command(
    scenario: Name,
    changes: Changes = None,
    every: Annotated[str, typer.Option(help="Between two decisions.")] = "20us",
    steps: Annotated[int, typer.Option(min=1, help="Decisions of an episode.")] = 100,
    reward: Annotated[str, typer.Option(help="What is rewarded.")] = "ends",
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 1,
) -> None:
    """Try a scenario as an environment to learn in: an episode of random decisions, and its speed.

    From Python it is closlab/Fabric-v0 of Gymnasium, or SwitchesEnv of PettingZoo.
    """
    if not all(map(importlib.util.find_spec, ("gymnasium", "pettingzoo"))):
        raise MissingTool(
            "gymnasium and pettingzoo are not installed",
            "The launcher brings them (./closlab gym); in an environment of your own:  "
            "pip install 'closlab[gym]'",
        )
    from doors.learning.single import FabricEnv
    from lab.scenario import catalogue
    from views.live.pace import nanoseconds

    loaded = catalogue.load(scenario, tuple(changes or ()))
    env = FabricEnv(loaded, every_ns=nanoseconds(every, "--every"), steps=steps, reward=reward)
    try:
        env.reset(seed=seed)
        env.action_space.seed(seed)
        print(f"seen     {env.observation_space}")
        print(f"decided  {env.action_space}: kmin, kmax, pmax, alpha")
        began, total, count, is_over = time.process_time(), 0.0, 0, False
        while not is_over:
            _, gained, is_end, is_cut, info = env.step(env.action_space.sample())
            total, count, is_over = total + gained, count + 1, is_end or is_cut
        took = time.process_time() - began
        print(f"reward   {total:.4f} of '{reward}' in {count} random decisions")
        for name, value in info.items():
            print(f"{name:16} {value:,.6g}")
        print(f"{count / max(took, 1e-9):,.0f} decisions a second of one processor's time")
    finally:
        env.close()

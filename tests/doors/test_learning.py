"""closlab gym: what others' checks ask of an environment, and that decisions reach the switches."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from pettingzoo.test import parallel_api_test

from controller.entities import TableEntry
from doors.learning import example
from doors.learning.actions import decided, numbers_of
from doors.learning.several import SwitchesEnv
from doors.learning.single import ID, FabricEnv
from lab import api
from lab.errors import LabError
from tests.doors import hostile_gym
from tests.lab.conftest import closlab

SMALL: dict[str, Any] = {
    "name": "small",
    "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    "transport": {"cc": "dcqcn"},
    "traffic": {"kind": "poisson", "load": 0.8, "duration_ns": "300us", "sizes": "hadoop"},
}
INCAST = {**SMALL, "traffic": {"kind": "incast", "receiver": "h1", "senders": 3, "bytes": "500KB"}}


@pytest.fixture
def envs() -> Iterator[list[Any]]:
    made: list[Any] = []
    yield made
    for env in made:
        env.close()


def test_it_is_what_gymnasium_and_pettingzoo_check(envs: list[Any]) -> None:
    envs += [FabricEnv(SMALL, steps=5), SwitchesEnv(SMALL, steps=20)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(envs[0], skip_render_check=True)
        parallel_api_test(envs[1], num_cycles=40)


def _episode(env: FabricEnv, seed: int, actions: int = 1) -> list[Any]:
    drawn = np.random.default_rng(actions)
    found: list[Any] = [env.reset(seed=seed)[0].tolist()]
    while True:
        seen, reward, is_over, is_cut, info = env.step(drawn.uniform(-1, 1, 4).astype(np.float32))
        found.append((seen.tolist(), reward, info))
        if is_over or is_cut:
            return found


def test_what_happens_follows_from_the_seed_and_what_is_decided(envs: list[Any]) -> None:
    envs += [FabricEnv(SMALL, steps=40), FabricEnv(SMALL, steps=40)]
    first = _episode(envs[0], 7)
    assert first == _episode(envs[1], 7) == _episode(envs[0], 7)
    assert first != _episode(envs[1], 8)
    assert first[1:] != _episode(envs[0], 7, actions=2)[1:]


def test_a_decision_held_is_a_run_with_that_setting(envs: list[Any]) -> None:
    """Of the same seed, and not before the first: the messages take what they take in a run."""
    numbers = np.array(numbers_of(20_000, 40_000, 0.25, 1 / 8), np.float32)
    decision = decided([float(number) for number in numbers])
    assert (decision.kmin, decision.kmax, decision.pmax) == (20_000, 40_000, 0.25)
    env = FabricEnv(INCAST, every_ns=1000, steps=10_000)
    envs.append(env)
    _, info = env.reset(seed=3)
    while True:
        *_, is_over, is_cut, came = env.step(numbers)
        if is_over or is_cut:
            break
    keys = {"ecn.kmin": 20_000, "ecn.kmax": 40_000, "ecn.pmax": 0.25, "buffer.alpha": 0.125}
    run = api.run(INCAST, set=keys, seed=info["seed"])
    took = [row["fct_ns"] for row in api.records(run.flows)]
    assert came["arrived"] == len(took) == 3
    assert came["mean_fct_ns"] == pytest.approx(np.mean(took))
    other = api.run(
        INCAST, set={**keys, "ecn.kmin": 320_000, "ecn.kmax": 640_000}, seed=info["seed"]
    )
    assert [row["fct_ns"] for row in api.records(other.flows)] != took


def test_switches_have_what_was_decided(envs: list[Any]) -> None:
    env = SwitchesEnv(INCAST)
    envs.append(env)
    env.reset(seed=1)
    low, high = np.full(4, -1, np.float32), np.full(4, 1, np.float32)
    env.step({agent: high if agent == "leaf1" else low for agent in env.agents})
    bench = env._bench
    for switch in bench._fabric.switches:
        wanted = tuple(bench._entries(switch, bench._decided[switch]))
        read = {e.key: e for e in bench._switches.read_plan(switch, wanted)}
        named = [bench._switches._named(entity) for entity in wanted]
        assert named and all(read[entity.key] == entity for entity in named)
        least = {
            dict(entity.params)["queue_min"]
            for entity in wanted
            if isinstance(entity, TableEntry) and entity.table == "ecn_profiles"
        }
        assert least == {640_000 if switch.name == "leaf1" else 5_000}


def test_several_at_once_are_each_as_by_itself(envs: list[Any]) -> None:
    every = gym.make_vec(ID, num_envs=2, vectorization_mode="sync", scenario=SMALL, steps=5)
    envs += [every, FabricEnv(SMALL, steps=5), FabricEnv(SMALL, steps=5)]
    seen, _ = every.reset(seed=[4, 5])
    alone = [env.reset(seed=seed)[0] for env, seed in zip(envs[1:], (4, 5), strict=True)]
    acts = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    assert np.array_equal(seen, np.stack(alone))
    for _ in range(3):
        seen, *_ = every.step(acts)
        alone = [env.step(act)[0] for env, act in zip(envs[1:], acts, strict=True)]
        assert np.array_equal(seen, np.stack(alone))


def test_the_reward_of_ends_is_the_mean_time_at_which_messages_end(envs: list[Any]) -> None:
    env = FabricEnv(INCAST, every_ns=2000, steps=10_000)
    envs.append(env)
    env.reset(seed=1)
    total, is_over = 0.0, False
    while not is_over:
        _, gained, is_over, _, info = env.step(np.zeros(4, np.float32))
        total += gained
    # All begin at 0; one is open until its sender hears that it arrived, or until the next look.
    assert -total == pytest.approx(info["mean_fct_ns"] / 2000, abs=1)


def test_the_examples_policies_decide_what_they_are_told_to() -> None:
    numbers = numbers_of(80_000, 320_000, 0.1, 1 / 16)
    policy = example.held(numbers)
    assert policy.size == example._SIZE
    for seen in (np.zeros(example._SEEN), np.ones(example._SEEN)):
        assert decided(example.acts(policy, seen)) == decided(numbers)


def test_it_says_how_fast_it_is_and_refuses_what_it_cannot(envs: list[Any]) -> None:
    done = closlab("gym", "incast", "--set", "transport.cc=dcqcn", "--set", "ecn.enabled=true",
                   "--steps", "5")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "decisions a second" in done.stdout and "5 random decisions" in done.stdout
    assert "faults" in closlab("gym", "pfc-storm").stderr
    for wrong in ({"reward": "fame"}, {"steps": 0}, {"every_ns": 0}):
        with pytest.raises(LabError):
            FabricEnv(SMALL, **wrong)
    with pytest.raises(LabError, match="do not mark"):
        FabricEnv(SMALL, changes={"ecn.enabled": False})


def test_five_hundred_that_mean_it_harm_are_refused_or_carried_out(envs: list[Any]) -> None:
    drawn = random.Random(47)
    envs += [FabricEnv(SMALL, steps=3), SwitchesEnv(SMALL, steps=3)]
    attempts = [hostile_gym.made(drawn, SMALL) for _ in range(100)]
    attempts += [hostile_gym.asked(drawn, drawn.choice(envs)) for _ in range(400)]
    refused = 0
    for what, attempt in attempts:
        try:
            attempt()
        except (LabError, gym.error.Error):
            refused += 1
        except Exception as error:
            raise AssertionError(what) from error
    assert 100 < refused < 450
    assert envs[0].reset(seed=1)[0].tolist() == _episode(envs[0], 1)[0]
    for env in envs:
        env.close()
        with pytest.raises(LabError, match="closed"):
            env.reset()
        env.close()

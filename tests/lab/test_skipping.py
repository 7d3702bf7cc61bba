"""Runs that leave out what repeats come to what exact ones do; `tests.lab.any_skips` draws more."""

import ctypes
from pathlib import Path
from typing import Any

import pytest

from lab.engines import RunOptions
from lab.engines.sim import native
from lab.errors import RunError
from lab.runs.run import check
from lab.scenario.catalogue import made
from lab.scenario.model import Scenario
from tests.lab.any_skips import judged

_JOB = {
    "kind": "job", "name": "first", "ranks": 4, "steps": 60, "compute_ns": 20_000, "overlap": True,
    "collective": {"op": "all-reduce", "bytes": 20_000},
}  # fmt: skip


def scenario(*jobs: dict[str, Any], **keys: Any) -> Scenario:
    """Jobs side by side."""
    return made(
        {
            "name": "steps",
            "topology": {"kind": "leaf-spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
            "traffic": {"kind": "mix", "parts": jobs},
            "measures": {"series": False},
            **keys,
        }
    )


_DRIFTS = {**_JOB, "name": "second", "compute_ns": 20_001}
_LEAVES = {**_JOB, "name": "second", "steps": 30}


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    ("jobs", "keys", "least"),
    [
        pytest.param((_JOB,), {}, 50, id="alone"),
        pytest.param((_JOB, {**_JOB, "name": "second"}), {}, 100, id="twins"),
        pytest.param((_JOB, _LEAVES), {}, 40, id="one-leaves"),
        pytest.param(
            (_JOB,),
            {"faults": [{"at_ns": 1_400_000, "action": "halt", "host": "h3", "for_ns": 3000}]},
            20,
            id="fault",
        ),
        pytest.param(
            ({**_JOB, "steps": 150},),
            {"faults": [{"at_ns": 50_000, "action": "slow", "link": "h2-leaf1", "share": 0.5,
                         "for_ns": 500_000}]},
            100,
            id="slow-for-a-while",
        ),
    ],
)  # fmt: skip
def test_comes_to_the_same(
    jobs: tuple[dict[str, Any], ...], keys: dict[str, Any], least: int, tmp_path: Path
) -> None:
    verdict = judged(scenario(*jobs, **keys), "1%", tmp_path)
    assert verdict.is_same
    assert verdict.steps >= least


def test_jobs_that_drift_are_simulated_step_by_step(tmp_path: Path) -> None:
    verdict = judged(scenario(_JOB, _DRIFTS), "5%", tmp_path)
    assert verdict.is_same
    assert verdict.steps == 0
    assert verdict.skipped.skipped is not None
    assert verdict.skipped.skipped.why is not None
    assert verdict.skipped.skipped.why.startswith("no steps were alike, and ")


def test_what_only_nearly_repeats_is_told_from_few_steps(tmp_path: Path) -> None:
    """Messages whose packets take ways by turns, beside another job's: no two steps are alike."""
    spray = {"lb": {"policy": "spray"}, "transport": {"recovery": "selective"}}
    job = {**_JOB, "steps": 240, "placement": "random"}
    verdict = judged(scenario(job, {**job, "name": "second"}, seed=4, **spray), "5%", tmp_path)
    said = verdict.skipped.skipped
    assert said is not None
    assert said.why is None
    assert said.steps == {"first": 192, "second": 192}
    assert 0.001 < said.bound <= 0.05
    assert verdict.error <= said.bound
    exact, told = verdict.exact, verdict.skipped
    assert told.flows.count == exact.flows.count
    assert told.flows.bytes == exact.flows.bytes
    assert told.roce.data_packets == exact.roce.data_packets


def test_a_fault_ends_it(tmp_path: Path) -> None:
    spray = {"lb": {"policy": "spray"}, "transport": {"recovery": "selective"}}
    job = {**_JOB, "steps": 240, "placement": "random"}
    halt = {"at_ns": 5_000_000, "action": "halt", "host": "h3", "for_ns": 3000}
    verdict = judged(
        scenario(job, {**job, "name": "second"}, seed=4, faults=[halt], **spray), "5%", tmp_path
    )
    assert verdict.is_same
    said = verdict.skipped.skipped
    assert said is not None
    assert "something is to happen" in (said.why or "")


@pytest.mark.parametrize(
    ("kind", "alike", "other"),
    [
        ("SAME", [(5, 5, 5)], [(5, 5, 6), (5, 15, 25)]),
        ("TIME", [(5, 15, 25), (5, 5, 5)], [(5, 15, 15), (5, 6, 7), (2**32 - 5, 5, 15)]),
        ("SHORT_TIME", [(5, 15, 25), (2**32 - 5, 5, 15)], [(5, 6, 7)]),
        ("COUNT", [(5, 7, 9), (2**64 - 1, 1, 3)], [(5, 7, 8), (2**32 - 1, 1, 3)]),
        ("SHORT_COUNT", [(5, 7, 9), (2**32 - 1, 1, 3)], [(1, 2, 4)]),
    ],
)
def test_what_is_alike(
    kind: str, alike: list[tuple[int, int, int]], other: list[tuple[int, int, int]]
) -> None:
    """Of cells of a kind, ten nanoseconds apart."""
    kinds = (ctypes.c_uint8 * 2)(0, native.DECLARED.enum("likeness_kind", "LIKE_")[kind])

    def are_alike(values: tuple[int, int, int]) -> bool:
        states = ((ctypes.c_uint64 * 2)(0, value) for value in values)
        return bool(native.library().net_alike(*states, kinds, 2, 10) == 2)

    assert all(map(are_alike, alike))
    assert not any(map(are_alike, other))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"accuracy": "2%"}, "there is no accuracy '2%'"),
        ({"accuracy": "1%", "engine": "mininet"}, "--engine mininet"),
        ({"accuracy": "1%", "checkpoint_s": 1.0}, "--checkpoint"),
        ({"accuracy": "5%", "reports": "csv"}, "--reports"),
    ],
)
def test_what_does_not_go_with_it_is_said(options: dict[str, Any], said: str) -> None:
    with pytest.raises(RunError, match=said):
        check(RunOptions(**{"out": Path(), "engine": "sim", **options}))

"""A run that began with code built quickly goes on with better code, and nothing tells when."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab.engines.sim import engine, improvement
from lab.engines.sim.control import SimulatedSwitches
from lab.machine import program
from switch import build
from switch.dataplane import Program
from tests.lab.simulated import simulate
from topologies import leaf_spine

CASE = (
    "incast",
    "traffic.bytes=200KB",
    "lb.policy=flowlet",
    "faults=[{at_ns: 20us, switch: spine1, action: restart}]",
)


def kept(out: Path) -> dict[str, object]:
    result = json.loads((out / "result.json").read_text())
    del result["provenance"]
    return {
        "result": result,
        **{name: (out / name).read_bytes() for name in ("flows.csv", "timeseries.csv")},
    }


def test_a_run_on_either_code_or_both_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate(*CASE, out=tmp_path / "well")
    monkeypatch.setattr(build, "is_built", lambda _: False)
    simulate(*CASE, out=tmp_path / "quick")
    went_on: list[bool] = []
    go_on = SimulatedSwitches.go_on_with

    def noted(switches: SimulatedSwitches, better: Program) -> None:
        went_on.append(switches.program.is_quick and not better.is_quick)
        go_on(switches, better)

    monkeypatch.setattr(SimulatedSwitches, "go_on_with", noted)
    monkeypatch.setattr(engine, "_SLICE_EVENTS", 1000)
    monkeypatch.setattr(improvement, "_AFTER_S", 0)
    monkeypatch.setattr(
        improvement.Improvement,
        "_begin",
        lambda _: subprocess.Popen([sys.executable, "-c", ""]),
    )
    look = improvement.Improvement.look

    def wait(one: improvement.Improvement) -> None:
        if one._builder is not None:
            one._builder.wait()
        look(one)

    monkeypatch.setattr(improvement.Improvement, "look", wait)
    simulate(*CASE, out=tmp_path / "both")
    assert went_on == [True]
    assert kept(tmp_path / "well") == kept(tmp_path / "quick") == kept(tmp_path / "both")


@pytest.fixture
def switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimulatedSwitches:
    monkeypatch.setattr(build, "is_built", lambda _: False)
    monkeypatch.setattr(improvement, "_AFTER_S", 0)
    built = program.build(tmp_path, soon=True)
    return SimulatedSwitches(leaf_spine(1, 1, 1).switches, built, soon=True)


def test_it_is_built_beside_the_run(switches: SimulatedSwitches) -> None:
    """In a process of its own."""
    with switches, improvement.Improvement(switches) as better:
        assert switches.program.is_quick
        better.look()
        assert better._builder is not None
        assert better._builder.wait() == 0
        better.look()
        assert not switches.program.is_quick


def test_a_run_that_is_over_waits_for_none(
    switches: SimulatedSwitches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(improvement, "_BUILD", "import time; time.sleep(60)")
    began = time.monotonic()
    with switches, improvement.Improvement(switches) as better:
        better.look()
        assert better._builder is not None
    assert better._builder.returncode is not None
    assert time.monotonic() - began < 30

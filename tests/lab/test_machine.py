"""How slow a machine is told to be, and what a run on Mininet makes of it."""

import io
import math
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.engines.mininet import engine as mininet
from lab.engines.mininet.engine import (
    fitting_dilation,
    hurried_dilation,
    usual_dilation,
)
from lab.engines.mininet.switches import Switches
from lab.engines.mininet.switches.bmv2 import Bmv2Switches
from lab.engines.mininet.switches.soft import SoftSwitches
from lab.errors import RunError
from lab.machine import speed
from lab.machine.speed import _USUAL_PER_S, PROCESSORS, Measure, measured
from lab.progress import Stages
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment

_TAKES_S = 0.25


def slowness(speed: float, share: float) -> float:
    """Of processors of so much of the usual speed, a share of which is ours."""
    used_s = PROCESSORS * _TAKES_S * share
    return Measure(_USUAL_PER_S * speed * used_s, used_s, _TAKES_S).slowness


@pytest.mark.parametrize("seed", range(20))
def test_slowness_is_that_of_the_processor_or_a_large_one_of_its_surroundings(seed: int) -> None:
    random_ = random.Random(seed)
    times = random_.uniform(2, 100)
    busy = random_.uniform(0.3, 1)
    assert slowness(1 / times, 1) == pytest.approx(times)
    assert slowness(random_.uniform(0.8, 10), 1) == 1
    assert slowness(1, busy) == 1  # others on the machine: a run says itself whether that mattered
    assert slowness(1, 1 / (8 * times)) == pytest.approx(8 * times)  # a limit on what we get
    assert slowness(1 / times, 1 / 8) >= times


@pytest.mark.parametrize("disturbed", range(6))
def test_a_machine_that_others_disturb_for_a_moment_is_not_slow(disturbed: int) -> None:
    quick = Measure(_USUAL_PER_S * 0.5, 0.5, 0.25)
    in_turn = iter([quick._replace(blocks=quick.blocks / 2)] * disturbed + [quick] * 6)
    found = measured(lambda: next(in_turn), lambda: next(in_turn))
    assert len(found) == min(disturbed + 1, 4)  # a quiet one is measured once
    assert min(each.slowness for each in found) == (1 if disturbed < 4 else 2)


@pytest.mark.clock
def test_a_whole_machine_is_not_slow() -> None:
    """This one may be; but it is not infinitely so, nor does measuring take long."""
    assert 1 <= speed.slowness() < 1e4
    assert 1 <= speed.processor_slowness() < 1e4


def test_who_measures_for_somebody_that_is_gone_says_nothing() -> None:
    words = [sys.executable, "-IS", speed.__file__]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert child.stderr.read() == ""
    assert child.returncode == 0


@pytest.mark.clock
def test_it_is_measured_again_with_the_precedence_that_programs_of_a_run_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lent: list[int] = []

    def lend(pid: int) -> None:
        assert os.getsid(pid) == pid
        lent.append(pid)

    monkeypatch.setattr("lab.machine.sched_priority.lend_sched_priority", lend)
    found = speed._measure_apart()
    assert len(lent) == 1
    assert found.inside == pytest.approx(speed._measure().inside, rel=0.5)
    assert speed._TAKES_S <= found.took_s < found.used_s * 1e4


@pytest.mark.clock
def test_a_process_that_has_used_memory_finds_the_machine_as_slow_as_a_fresh_one_does() -> None:
    measure = "speed._measure().inside"
    words = f"""
from lab.machine import speed
fresh = {measure}
bytes(16 << 20)  # from now on the allocator keeps some
print({measure} / fresh)
"""
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert 1 / 1.5 < float(done.stdout) < 1.5


def said(times: float, name: str, *changes: str, leisure: int = 1) -> tuple[int, int, str]:
    """The usual dilation, that of a slower machine, and what is said of it."""
    experiment = Experiment.of(catalogue.load(name, changes))
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mininet, "slowness", lambda: times)
        stages = Stages(Console(file=out, width=400))
        fitting = fitting_dilation(experiment, SoftSwitches, stages, leisure)
    return usual_dilation(experiment, SoftSwitches), fitting, out.getvalue()


def test_a_slow_machine_slows_time_down_and_says_so() -> None:
    usual, fitting, text = said(1, "incast")
    assert fitting == usual and not text
    usual, fitting, text = said(30, "incast")
    assert fitting == 30 * usual
    assert said(30, "hello", leisure=4)[1] == 120 * said(1, "hello")[0]
    assert "some 30 times slower" in text and "--engine sim" in text
    assert f"{fitting:,} times slower than the fabric" in text


@pytest.mark.parametrize(
    ("name", "changes", "times", "processors", "kind", "why"),
    [
        ("incast", (), 1, 2, SoftSwitches, ""),
        ("allreduce-ring", ("int.share=1",), 1, 64, SoftSwitches, ""),
        ("incast", (), 1.5, 2, SoftSwitches, "his machine is some 2 times slower"),
        ("incast", (), 1, 1, SoftSwitches, "one processor is not enough"),
        ("incast", (), 1, 2, Bmv2Switches, "not told what is due"),
        ("incast", ("transport.endpoint=scapy",), 1, 2, SoftSwitches, "scapy takes real time"),
        ("incast", ("control.kind=bgp",), 1, 2, SoftSwitches, "BGP takes real time"),
        ("link-failure", (), 1, 2, SoftSwitches, "faults, and what follows"),
    ],
)
def test_a_run_hurries_where_all_that_takes_part_knows_what_is_due(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    changes: tuple[str, ...],
    times: float,
    processors: int,
    kind: type[Switches],
    why: str,
) -> None:
    experiment = Experiment.of(catalogue.load(name, changes))
    monkeypatch.setattr(mininet, "slowness", lambda: times)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(processors)))
    out = io.StringIO()
    stages = Stages(Console(file=out, width=400))
    usual, hurried = usual_dilation(experiment, kind), hurried_dilation(experiment, kind)
    wishes = RunOptions(Path(), hurry=True)
    chosen = mininet._chosen_dilation(experiment, kind, stages, wishes)
    if not why:
        assert usual == pytest.approx(hurried / 0.3, rel=0.01)
        assert chosen == (hurried, True) and not out.getvalue()
    else:
        assert chosen == (math.ceil(usual * times), False)
        if kind is SoftSwitches:
            assert why in out.getvalue() and f"{chosen[0]:,} times slower" in out.getvalue()
    own = replace(wishes, dilation=7)
    assert mininet._chosen_dilation(experiment, kind, stages, own) == (7, False)
    leisurely = replace(wishes, hurry=False)
    chosen = mininet._chosen_dilation(experiment, kind, stages, leisurely)
    assert chosen == (math.ceil(usual * times), False)


def test_what_would_take_too_long_is_said_at_once() -> None:
    with pytest.raises(RunError, match=r"30 times slower.*minutes") as caught:
        said(30, "incast", "traffic.bytes=100MB")
    assert "--engine sim" in (caught.value.cure or "")


def test_the_least_time_is_that_of_the_busiest_link() -> None:
    experiment = Experiment.of(catalogue.load("incast", ("traffic.bytes=1MB",)))
    assert experiment.least_ns == 7 * 10**6 * 8 * 10**9 // (100 * 10**9)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_reports_are_packets_that_take_time_too(share: float) -> None:
    def usual(*changes: str) -> int:
        experiment = Experiment.of(catalogue.load("incast", changes))
        return usual_dilation(experiment, SoftSwitches)

    assert usual(f"int.share={share}") == pytest.approx((1 + share) * usual(), rel=0.01)
    assert (
        usual("transport.cc=hpcc") == usual()
    )  # whose telemetry is for hosts: nothing is reported

"""BMv2 as the switch: the same scenarios, and what is said where it is missing."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format

from bench import switches
from compiler import CompileOptions, compile_program
from lab.engines.mininet.switches.bmv2 import _refusal
from lab.errors import LabError, MissingTool
from lab.machine import patience, program, tools
from lab.machine.paths import FABRIC_PROGRAM
from switch.dataplane import Program
from switch.shims import write_shims
from tests.lab.conftest import closlab
from tests.stand_ins import stand_in
from tests.waiting import SLOWNESS

pytestmark = pytest.mark.mininet

BMV2 = ("--switch", "bmv2")
TRIES = 3
TIMEOUT_S = 600
SMALL = ("topology={kind: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 1}",)


def run(
    engine: str, scenario: str, out: Path, changes: tuple[str, ...] = (), **environment: str
) -> dict[str, Any]:
    """A run's result; one that the machine could not keep up with again, in slower motion."""
    changed = [word for change in changes for word in ("--set", change)]
    words = [scenario, *changed, *(("--engine", "sim") if engine == "sim" else BMV2)]
    for attempt in range(TRIES):
        kept = out / str(attempt)
        done = closlab(
            "run", *words, "--out", str(kept), timeout_s=TIMEOUT_S * SLOWNESS, **environment
        )
        assert (kept / "result.json").exists(), done.stderr
        result: dict[str, Any] = json.loads((kept / "result.json").read_text())
        if engine == "sim" or result["fidelity"]["ok"]:
            break
        words = [scenario, *changed, *BMV2, "--dilation", str(round(result["dilation"]) * 3)]
    return result


def test_without_bmv2_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingTool) as caught:
        tools.require_bmv2()
    assert "no simple_switch_grpc and no simple_switch_CLI on the PATH" in caught.value.message
    own, *others = (caught.value.cure or "").splitlines()
    assert "Your own build" in own and "simple_switch_grpc, simple_switch_CLI" in own
    assert "bash provision/p4lang.sh" in " ".join(others)


@pytest.fixture
def programs(tmp_path: Path, bare_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first on a PATH on which there is no p4c, which would take a minute."""
    (bare_path / program.P4C).unlink(missing_ok=True)
    (folder := tmp_path / "programs").mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{bare_path}")
    return folder


@pytest.mark.slow
def test_a_bmv2_that_ends_is_named_with_its_last_words(programs: Path, tmp_path: Path) -> None:
    for name in (tools.BMV2, tools.BMV2_CLI):
        stand_in(programs / name, "echo 'no such interface: leaf1-eth1'; exit 3")
    done = closlab(
        *("run", "hello", "--switch", "bmv2", "--out", str(tmp_path / "out")),
        PATH=os.environ["PATH"],
    )
    assert done.returncode == 1
    assert "BMv2 as leaf1 ended by itself (exit code 3): no such interface" in done.stderr
    assert "logs/leaf1.log" in done.stderr


@pytest.mark.slow
def test_whatever_has_its_command_line_can_take_its_place(programs: Path, tmp_path: Path) -> None:
    """Everything but BMv2 itself: processes, queue rates, plans, counters, a program that parks."""
    write_shims(programs)
    for name in ("p4c", program.P4C):
        (programs / name).unlink()
    # Built here and now: a controller does not wait while three switches do so at once.
    Program.load(program.build_for_bmv2(tmp_path).json)
    result = run("mininet", "hello", tmp_path / "out", SMALL, PATH=os.environ["PATH"])
    assert result["switch"] == "bmv2"
    assert result["flows"] == result["flows"] | {"count": 2, "completed": 2, "failed": 0}
    assert result["drops"]["total"] == 0
    assert all("max_queue_bytes" not in link for link in result["links"])


def stand_in_for_p4c(programs: Path, *lines: str) -> None:
    """One that says nothing of its version, and else does this."""
    stand_in(programs / program.P4C, '[ "$1" != --version ] || exit', *lines)


def test_what_another_p4c_made_is_not_taken_for_its_own(programs: Path, tmp_path: Path) -> None:
    for version in ("one", "another"):
        writes = f'case $1 in -o | --p4runtime-files) echo {version} >"$2" ;; esac'
        stand_in_for_p4c(programs, f"while [ $# -gt 1 ]; do {writes}; shift; done")
        assert program.build_for_bmv2(tmp_path).json.read_text() == f"{version}\n"


def test_for_p4c_it_says_that_it_waits(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_TELL_S", 0.0)
    stand_in_for_p4c(programs, "sleep 1; exit 1")
    stages: list[str] = []
    with pytest.raises(LabError, match="does not compile with p4c-bm2-ss"):
        program.build_for_bmv2(tmp_path, still=lambda what, _: stages.append(what))
    assert set(stages) == {"p4c-bm2-ss to compile fabric.p4"}


def test_a_p4c_that_finds_no_memory_is_told_as_that(programs: Path, tmp_path: Path) -> None:
    stand_in_for_p4c(programs, "kill -9 $$")
    with pytest.raises(LabError, match="was killed") as caught:
        program.build_for_bmv2(tmp_path)
    assert "2 GB" in (caught.value.cure or "")


def test_a_p4c_that_does_nothing_is_not_waited_for(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "Patience", partial(patience.Patience, quiet_s=1.0))
    stand_in_for_p4c(programs, "exec sleep 100")
    with pytest.raises(LabError, match="does nothing any more"):
        program.build_for_bmv2(tmp_path)


def timed_as(result: dict[str, Any], reference: dict[str, Any]) -> bool:
    """Whether a run took as long as another, within a fifth."""
    times = [switches.completion_ns(one) for one in (result, reference)]
    return None not in times and abs((times[0] or 0) / (times[1] or 1) - 1) <= 0.20


@pytest.mark.reference
@pytest.mark.timeout(TRIES * TIMEOUT_S)
@pytest.mark.parametrize("case", switches.CASES, ids=lambda case: case.name)
def test_bmv2_comes_to_the_same_verdict(case: switches.Setup, tmp_path: Path) -> None:
    """As our switch in the simulator, which no neighbour on the machine can disturb."""
    ours = run("sim", case.scenario, tmp_path / "ours", case.changes)
    bmv2 = run("mininet", case.scenario, tmp_path / "bmv2", case.changes)
    assert switches.Shown.of(bmv2) == switches.Shown.of(ours)
    if case.is_timed:
        assert timed_as(bmv2, ours)


@pytest.mark.reference
def test_p4c_takes_the_program_that_parks_and_names_things_alike(tmp_path: Path) -> None:
    by_p4c = program.build_for_bmv2(tmp_path)
    ours = compile_program(FABRIC_PROGRAM, CompileOptions(defines=("PARKING",)))
    info = text_format.Parse(by_p4c.p4info.read_text(), type(ours.p4info)())
    for kind in ("tables", "actions", "counters", "registers"):
        ids = {what.preamble.name: what.preamble.id for what in getattr(info, kind)}
        assert ids == {what.preamble.name: what.preamble.id for what in getattr(ours.p4info, kind)}


@pytest.mark.reference
@pytest.mark.timeout(TRIES * TIMEOUT_S)
def test_bmv2_steers_by_micro_segments(tmp_path: Path) -> None:
    """IPv6 in carriers, each flow over the spine its list names, as in the simulator."""
    changes = (
        "topology={kind: leaf-spine, leaves: 2, spines: 2, hosts_per_leaf: 2}",
        "link.ip=6",
        "segments.policies=[{at: leaf1, to: h3, via: [[spine2]]}, {at: leaf1, to: h4, "
        "via: [[spine1]]}]",
        "traffic.flows=[{src: h1, dst: h3, bytes: 20KB}, {src: h2, dst: h4, bytes: 40KB}]",
    )
    ways = []
    for engine in ("sim", "mininet"):
        result = run(engine, "usid-steering", tmp_path / engine, changes)
        assert (result["drops"]["total"], result["flows"]["completed"]) == (0, 2)
        used = {link["name"]: link["bytes"] for link in result["links"]}
        ways.append([used[f"leaf1>spine{n}"] for n in (1, 2)])
    assert ways[0] == ways[1]
    assert ways[0][0] > 1.9 * ways[0][1]


def test_a_bmv2_without_an_option_is_told_from_one_that_starts(tmp_path: Path) -> None:
    log = tmp_path / "leaf1.log"
    assert _refusal(log) == ""
    log.write_text("Calling target program-options parser\nAdding interface a as port 1\n")
    assert _refusal(log) == ""
    log.write_text("Calling it\nunrecognised option '--priority-queues'\nAdding interface a\n")
    assert _refusal(log) == "unrecognised option '--priority-queues'"

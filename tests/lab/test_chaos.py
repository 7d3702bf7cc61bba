"""Faults by lot: some runs of it; that it repeats, and finds and shortens what is broken."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.engines.sim.control import SimulatedSwitches
from lab.results import conservation
from lab.runs import chaos
from lab.runs.chaos import Belongings, Drawn, Faults, Verdict, drawn, shortest
from tests.lab.conftest import closlab


def test_whatever_happens_everything_holds(tmp_path: Path) -> None:
    """Among them are faults of every kind."""
    said: list[str] = []
    tally = chaos.chaos(1, 12, "sim", tmp_path, said.append)
    assert tally.failed == [], "\n".join(said)
    assert tally.by_end["finished"] > 7
    kinds = {fault["action"] for seed in range(1, 13) for fault in drawn(seed).faults}
    assert kinds >= {"down", "slow", "restart", "halt", "storm", "corrupt", "reorder"}


@pytest.mark.slow
def test_two_hundred_runs_hold(tmp_path: Path) -> None:
    said: list[str] = []
    tally = chaos.chaos(1, 200, "sim", tmp_path, said.append)
    assert tally.failed == [], "\n".join(said)


@pytest.mark.slow
@pytest.mark.mininet
@pytest.mark.clock
def test_on_mininet_everything_holds(tmp_path: Path) -> None:
    done = closlab("chaos", "--engine", "mininet", "--runs", "4", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_a_run_repeats_from_its_seed() -> None:
    """To the last figure of its books."""
    told = []
    for _ in range(2):
        chosen = drawn(9)
        books: list[Any] = []

        def noted(fabric: Any, outcome: Any, books: list[Any] = books) -> list[str]:
            books.append([(str(node), kept) for node, kept in outcome.books.items()])
            books.append((outcome.end_ns, outcome.link_books, list(outcome.timeline.end_ns)))
            return []

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conservation, "violations", noted)
            told.append((chosen, chaos.simulated(chosen), books))
    assert told[0] == told[1]
    assert drawn(9) != drawn(10)


def test_what_is_broken_is_found_and_shortened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A controller that believes a switch to know still what it knew before it started again."""
    restart = SimulatedSwitches.restart

    def forgetful(self: SimulatedSwitches, node: Any, *rest: Any) -> None:
        known = self._installed[node]
        restart(self, node, *rest)
        self._installed[node] = known

    monkeypatch.setattr(SimulatedSwitches, "restart", forgetful)
    seed = next(
        seed
        for seed in range(1, 99)
        if any(fault["action"] == "restart" for fault in drawn(seed).faults)
        and len(drawn(seed).faults) >= 3
        and not drawn(seed).disk_is_full
    )
    said: list[str] = []
    tally = chaos.chaos(seed, 1, "sim", tmp_path, said.append)
    assert tally.failed == [seed]
    assert any("not as the controller means it to be" in line for line in said), said
    kept = yaml.safe_load((tmp_path / f"chaos-{seed}.yaml").read_text())
    assert [fault["action"] for fault in kept["faults"]] == ["restart"]


def test_a_missing_frame_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conservation, "violations", lambda *_: ["leaf1 lost a frame"])
    assert "leaf1 lost a frame" in chaos.simulated(drawn(1)).complaints


@pytest.mark.parametrize("seed", range(20))
def test_shortening_finds_the_fewest(seed: int) -> None:
    """Against a search of all that there is, for what fails if some of it is there together."""
    rng = random.Random(seed)
    faults: Faults = [{"n": n} for n in range(rng.randrange(1, 12))]
    guilty = rng.sample(faults, rng.randrange(0, min(4, len(faults)) + 1))
    tried = 0

    def fails(some: Faults) -> bool:
        nonlocal tried
        tried += 1
        return all(fault in some for fault in guilty)

    found = shortest(list(faults), fails)
    assert sorted(json.dumps(fault) for fault in found) == sorted(map(json.dumps, guilty))
    assert tried <= 4 * len(faults) ** 2 + 4


def test_leaks_are_told(tmp_path: Path) -> None:
    before = Belongings.now()
    with (tmp_path / "file").open("w"):
        ballast = bytearray(60 << 20)
        ballast[::4096] = b"x" * len(ballast[::4096])
        told = Belongings.now().leaks(before)
    assert len(told) == 2 and "descriptors" in told[0] and "grown" in told[1]
    assert Belongings.now().leaks(before) == [] or len(ballast)


def test_an_unfinished_job_must_have_a_reason() -> None:
    """Every fault let go, or nobody says why: both are complaints."""
    flap: Faults = [{"at_ns": 1, "action": "down", "link": "leaf1-spine1", "for_ns": 5}]
    dead: Faults = [{"at_ns": 1, "action": "halt", "host": "h1"}]
    assert chaos.is_survivable(flap) and not chaos.is_survivable(dead)
    chosen = Drawn(1, drawn(1).changes, flap, disk_is_full=False)
    assert chaos.simulated(chosen).complaints == ()
    hopeless = Drawn(1, chosen.changes | {"limit_ns": "5us"}, flap, disk_is_full=False)
    (complaint,) = chaos.simulated(hopeless).complaints
    assert "every fault let go" in complaint and "limit" in complaint
    assert isinstance(chaos.simulated(hopeless), Verdict)


def test_nobody_goes_by_a_clock_that_can_be_set() -> None:
    """So a jump of it is nothing to a run: it stamps what is told, and says how old a file is."""
    root = Path(chaos.__file__).resolve().parents[2]
    sources = [
        path
        for folder in ("switch", "traffic", "controller", "lab/engines", "lab/machine")
        for path in (root / folder).rglob("*.[cph]*")
        if path.suffix in (".c", ".h", ".py")
    ]
    settable = ("CLOCK_REALTIME", "gettimeofday", "time(NULL)", "time.time(", "time.time_ns(")
    found = {
        path.relative_to(root).as_posix()
        for path in sources
        if any(word in path.read_text() for word in settable)
    }
    assert len(sources) > 100
    told = {"switch/p4runtime/digests.py", "switch/p4runtime/idle.py", "lab/engines/mininet/tap.py"}
    assert found <= told | {"lab/engines/mininet/running.py"}

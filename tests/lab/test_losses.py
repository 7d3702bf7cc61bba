"""Frames lost between processes: told from what was dropped, or only paused."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.progress import Stages
from lab.results.losses import lost_frames
from lab.results.outcome import Outcome, Traffic
from lab.runs.run import outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from topologies import Fabric

NO_PFC = ("pfc.enabled=false", "transport={recovery: selective, rto_ns: 100us}")


def simulate(out: Path, *changes: str) -> tuple[Fabric, Outcome]:
    chosen = Experiment.of(catalogue.load("incast", ("traffic.bytes=250KB", *changes)))
    options = RunOptions(out=out, engine="sim")
    return chosen.fabric, outcome_of(chosen, options, Stages(Console(quiet=True)))


@pytest.mark.parametrize("changes", [(), NO_PFC], ids=["pauses", "drops"])
def test_pauses_and_drops_are_no_losses(tmp_path: Path, changes: tuple[str, ...]) -> None:
    fabric, outcome = simulate(tmp_path, *changes)
    assert lost_frames(fabric, outcome.switches, outcome.endpoints) == {}


def test_what_did_not_arrive_is_lost(tmp_path: Path) -> None:
    fabric, outcome = simulate(tmp_path)
    leaf, host = fabric.node("leaf1"), fabric.node("h1")
    port = fabric.port_towards(leaf, host)
    counts = outcome.switches[leaf]
    seen = counts.port(port)
    fewer = dataclasses.replace(
        seen, received=Traffic(seen.received.packets - 3, seen.received.bytes)
    )
    switches = {
        **outcome.switches,
        leaf: dataclasses.replace(counts, ports={**counts.ports, port: fewer}),
    }
    assert lost_frames(fabric, switches, outcome.endpoints) == {"h1>leaf1": 3}

"""Frames lost between processes: told from what was dropped, or only paused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from lab.engines import RunOptions
from lab.engines.mininet.emulation import Emulation
from lab.engines.mininet.endpoints import lost_before_the_end, settled_before_the_end
from lab.progress import Stages
from lab.results.losses import lost_frames
from lab.results.outcome import INTERRUPTION, Outcome, SwitchCounts, Traffic
from lab.runs.run import outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from topologies import Fabric, Node

NO_PFC = ("pfc.enabled=false", "transport={recovery: selective, rto_ns: 100us}")


def simulate(out: Path, *changes: str) -> tuple[Experiment, Outcome]:
    chosen = Experiment.of(catalogue.load("incast", ("traffic.bytes=250KB", *changes)))
    options = RunOptions(out=out, engine="sim")
    return chosen, outcome_of(chosen, options, Stages(Console(quiet=True)))


def with_fewer(fabric: Fabric, outcome: Outcome, by: int) -> dict[Node, SwitchCounts]:
    """The switches' counters, had a leaf received so many frames less from a host."""
    leaf, host = fabric.node("leaf1"), fabric.node("h1")
    port = fabric.port_towards(leaf, host)
    counts = outcome.switches[leaf]
    seen = counts.port(port)
    fewer = dataclasses.replace(
        seen, received=Traffic(seen.received.packets - by, seen.received.bytes)
    )
    changed = dataclasses.replace(counts, ports={**counts.ports, port: fewer})
    return {**outcome.switches, leaf: changed}


@pytest.mark.parametrize("changes", [(), NO_PFC], ids=["pauses", "drops"])
def test_pauses_and_drops_are_no_losses(tmp_path: Path, changes: tuple[str, ...]) -> None:
    experiment, outcome = simulate(tmp_path, *changes)
    assert lost_frames(experiment.fabric, outcome.switches, outcome.endpoints) == {}


def test_what_did_not_arrive_is_lost(tmp_path: Path) -> None:
    experiment, outcome = simulate(tmp_path)
    switches = with_fewer(experiment.fabric, outcome, 3)
    assert lost_frames(experiment.fabric, switches, outcome.endpoints) == {"h1>leaf1": 3}


def test_so_it_is_in_a_run_that_was_ended(tmp_path: Path) -> None:
    """Once nothing moves; what its hosts, which have stopped, did not take in is no loss."""
    experiment, outcome = simulate(tmp_path)
    begin = {switch: SwitchCounts({}, {}) for switch in outcome.switches}
    endpoints = {host: counted | {"rx_packets": 0} for host, counted in outcome.endpoints.items()}

    def lost(settled: dict[Node, SwitchCounts] | None, ended: str = "a limit") -> dict[str, int]:
        switches = SimpleNamespace(settled_counts=lambda: settled)
        emulation = cast("Emulation", SimpleNamespace(switches=switches))
        found = settled_before_the_end(emulation, begin, endpoints, ended)
        return lost_before_the_end(experiment, found, endpoints)

    fewer = with_fewer(experiment.fabric, outcome, 3)
    assert lost(outcome.switches) == {}
    assert lost(fewer) == {"h1>leaf1": 3}
    assert lost(None) == {}
    assert lost(fewer, INTERRUPTION) == {}
    endpoints[experiment.fabric.node("h2")] = {}  # it died
    assert lost(fewer) == {}

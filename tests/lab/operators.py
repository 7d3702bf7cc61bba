"""Simulated runs as collectors would have seen them: each look's exposition, and the hub."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path

from rich.console import Console

from lab.engines import RunOptions
from lab.progress import Stages
from lab.results.outcome import Outcome
from lab.results.snapshot import Snapshot, rates_of
from lab.runs.run import outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.live_actions import LiveAction
from params.data import Data
from views.live import metrics
from views.live.hub import Hub, Scene

_LOOKS = 24


class Recorder(Data, frozen=False):
    """An audience that keeps what Prometheus would read at each look."""

    hub: Hub
    every_ns: int
    texts: list[str] = field(default_factory=list)
    outcome: Outcome | None = None
    reads_books = True
    next_ns: int = 0

    def see(self, snapshot: Snapshot) -> Iterable[LiveAction]:
        self.next_ns = snapshot.time_ns + self.every_ns
        self.hub.publish(snapshot)
        self.texts.append(metrics.exposition(self.hub))
        return ()


def recorded(name: str, *changes: str) -> Recorder:
    """A scenario that was simulated and watched."""
    experiment = Experiment.of(catalogue.load(name, changes))
    fabric = experiment.fabric
    bps = {link.name: experiment.cable(link).rate_bps for link in fabric.links}
    scene = Scene(experiment.scenario, fabric, rates_of(fabric, bps), "sim")
    recorder = Recorder(Hub(scene), max(1, experiment.least_ns // _LOOKS))
    with tempfile.TemporaryDirectory() as out:
        options = RunOptions(Path(out), engine="sim")
        stages = Stages(Console(quiet=True))
        recorder.outcome = outcome_of(experiment, options, stages, recorder)
    return recorder

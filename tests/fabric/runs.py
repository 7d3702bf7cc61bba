"""Scenarios, run as a user would, in the simulator or on Mininet with either switch."""

from __future__ import annotations

import csv
import io
import json
import shlex
import tempfile
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.engines import RunOptions
from lab.progress import Stages
from lab.runs.run import keep, outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.data import Data
from tests.fabric.captures import Reaction, reactions, recorded
from tests.lab.conftest import closlab

CAPTURED = "measures.pcap=[all]"
TRIES = 3


class Outcome(Data):
    """A run's files, read."""

    experiment: Experiment
    out: Path
    result: dict[str, Any]

    @cached_property
    def _flows(self) -> list[dict[str, str]]:
        with (self.out / "flows.csv").open() as file:
            return list(csv.DictReader(file))

    @property
    def times_ns(self) -> list[int]:
        """How long each message took; all must have arrived."""
        assert all(row["fct_ns"] for row in self._flows), f"not everything arrived: see {self.out}"
        return [int(row["fct_ns"]) for row in self._flows]

    @property
    def mean_ns(self) -> float:
        """How long a message took on average."""
        return sum(self.times_ns) / len(self.times_ns)

    @property
    def whole_ns(self) -> int:
        """From the beginning to the arrival of the last message."""
        pairs = zip(self._flows, self.times_ns, strict=True)
        return max(int(row["start_ns"]) + took for row, took in pairs)

    @property
    def drops(self) -> dict[str, int]:
        """Packets dropped, by reason."""
        return dict(self.result["drops"]["by_reason"])

    @property
    def reordered(self) -> int:
        """Packets that arrived out of order."""
        return int(self.result["roce"]["out_of_order_packets"])

    @property
    def paused_ns(self) -> int:
        """How long senders stood still, all together."""
        return int(self.result["pfc"]["paused_ns"])

    def pauses(self) -> dict[str, int]:
        """XOFF frames by the direction they paused."""
        by_link = self.result["pfc"]["by_link"].items()
        return {name: pause["xoff_frames"] for name, pause in by_link if pause["xoff_frames"]}

    def carried(self, link: str) -> int:
        """Bytes that a direction of a link carried."""
        return int(next(use["bytes"] for use in self.result["links"] if use["name"] == link))

    @property
    def longest_frame(self) -> int:
        """Bytes of the longest frame on any link, if the run was captured."""
        captures = (self.out / "pcaps").glob("*.pcap")
        return max(seen.length for path in captures for seen in recorded(path))

    def reactions(self) -> list[Reaction]:
        """How pauses were obeyed, if the run was captured."""
        return list(reactions(self.out / "pcaps", self.experiment))

    def timeseries(self) -> Iterator[dict[str, str]]:
        """What was noted while it ran."""
        with (self.out / "timeseries.csv").open() as file:
            yield from csv.DictReader(file)


class Place(StrEnum):
    """Where scenarios can run."""

    SIM = "sim"
    MININET = "mininet"
    BMV2 = "bmv2"  # on Mininet, with BMv2 as the switch


class Runner(Data):
    """Runs scenarios somewhere, and keeps what came of them in a folder."""

    place: Place
    folder: Path
    tells: bool = False  # each command, before it runs

    def __call__(
        self,
        name: str,
        *changes: str,
        dilation: int | None = None,
        seed: int | None = None,
        tries: int = TRIES,
    ) -> Outcome:
        """Run a scenario; one the machine could not keep up with again, in slower motion.

        ``dilation`` slows the time of our switches down; BMv2 sets its own pace.
        """
        if seed is not None:
            changes = (*changes, f"seed={seed}")
        if self.place is Place.SIM:
            self._tell(name, changes, "--engine", "sim")
            return _simulate(name, changes, self._new_folder(name))
        if self.place is Place.BMV2:
            dilation = None
        for _ in range(tries):
            outcome = self._emulate(name, changes, dilation)
            if outcome.result["fidelity"]["ok"]:
                break
            dilation = round(outcome.result["dilation"]) * 3
        return outcome

    def _tell(self, name: str, changes: tuple[str, ...], *options: str) -> list[str]:
        """Say a run's command; returns its words."""
        words = [name, *options]
        for change in changes:
            words += ["--set", change]
        if self.tells:
            print("  ./closlab run", shlex.join(words), flush=True)
        return words

    def _emulate(self, name: str, changes: tuple[str, ...], dilation: int | None) -> Outcome:
        options = ["--switch", "bmv2"] if self.place is Place.BMV2 else ["--engine", "mininet"]
        if dilation is not None:
            options += ["--dilation", str(dilation)]
        words = self._tell(name, changes, *options)
        out = self._new_folder(name)
        done = closlab("run", *words, "--out", str(out))
        assert (out / "result.json").exists(), done.stderr
        return _outcome(Experiment.of(catalogue.load(name, changes)), out)

    def _new_folder(self, name: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))


def _outcome(experiment: Experiment, out: Path) -> Outcome:
    return Outcome(experiment, out, json.loads((out / "result.json").read_text()))


def _simulate(name: str, changes: tuple[str, ...], out: Path) -> Outcome:
    """The same as a command would, in this process."""
    experiment = Experiment.of(catalogue.load(name, changes))
    options = RunOptions(out=out, engine="sim")
    outcome = outcome_of(experiment, options, Stages(Console(file=io.StringIO())))
    keep(experiment, outcome, options)
    return _outcome(experiment, out)

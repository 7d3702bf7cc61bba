"""A scenario whose keys are turned: simulated anew with every change, and told beside what it was.

settings ──► scenario ──► run in the simulator ──► verdict, what changed, snapshots, levers
                                                   beside those of the run it began with
"""

from __future__ import annotations

import shlex
import shutil
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab.engines import RunOptions
from lab.engines.sim.parts import threads_here
from lab.errors import LabError
from lab.progress import Told, until
from lab.results.cautions import cautions
from lab.results.outcome import Outcome
from lab.runs.run import INTERRUPTED, check, code_of, concluded, simulate
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.levers import lever, levers, offered
from lab.scenario.model import Scenario, remarks
from views.live.kept import film
from views.report import verdict
from views.report.kept import KeptRun, unkept
from views.report.numbers import FIGURES
from views.report.words import changed

Settings = Mapping[str, str]  # by key, as --set has it; empty: nothing

_SNAPSHOTS = 320  # of a run: as many as a drawing of it tells apart,
_CELLS = 24_000  # or as many as are told in a third of a second: directions in all of them
_MOST_SETTINGS = 64
_HARDLY = 0.005  # of a figure, that it may differ by and be the same


class Overtaken(LabError):  # noqa: N818  (nothing went wrong)
    """Somebody stopped it, or turned something else meanwhile."""


@dataclass
class Tuning:
    """One scenario, and what it is compared with."""

    name: str  # as `closlab run` takes it
    changes: tuple[str, ...]  # it began with
    space: Path  # for the runs
    first: KeptRun = field(init=False)
    _count: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _places: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> KeptRun:
        """The run with nothing turned yet."""
        self.first = self._made(self._scenario({}), threading.Event())
        return self.first

    def offer(self) -> dict[str, Any]:
        """What can be turned, and every key that there is."""
        scenario = self.first.result.scenario
        own = self._scenario({})  # which tells what it says itself from what is so anyway
        return {
            "levers": [asdict(each) for each in levers(own)],
            "keys": [[key.name, key.about] for key in offered(scenario)],
            "verdict": verdict(self.first),
            "command": self._command({}),
        }

    def lever(self, key: str) -> dict[str, Any]:
        """One that somebody looked for."""
        return asdict(lever(self.first.result.scenario, key))

    def stop(self) -> None:
        """End what is simulated."""
        self._stop.set()

    def tried(self, settings: Settings) -> dict[str, Any]:
        """What becomes of it: the latest that asks is answered, who asked before is told so."""
        scenario = self._scenario(settings)
        mine = threading.Event()
        with self._places:
            self._stop.set()
            self._stop = mine
        with self._turn:
            return self._told(self._made(scenario, mine), settings)

    # --- how it is done --------------------------------------------------------------------------

    def _scenario(self, settings: Settings) -> Scenario:
        if len(settings) > _MOST_SETTINGS:
            raise LabError(f"{len(settings)} settings are more than {_MOST_SETTINGS}")
        return catalogue.load(self.name, (*self.changes, *_words(settings)))

    def _made(self, scenario: Scenario, stop: threading.Event) -> KeptRun:
        self._count += 1
        folder = self.space / str(self._count)
        folder.mkdir()
        options = RunOptions(folder, "sim", hurry=True, threads=threads_here())
        check(options)
        made: list[KeptRun] = []
        stages = Told(until(stop, None))

        def conclude(experiment: Experiment, outcome: Outcome) -> int:
            result = concluded(experiment, outcome, options, stages)
            made.append(unkept(experiment, result, outcome))
            return code_of(result)

        try:
            code = simulate(scenario, options, stages, conclude)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if code == INTERRUPTED and stop.is_set():
            raise Overtaken("it was stopped")
        return made[0]

    def _told(self, run: KeptRun, settings: Settings) -> dict[str, Any]:
        result, before = run.result, self.first.result
        figures = [
            [figure.name, figure.told(before), figure.told(result)]
            for figure in FIGURES
            if _differ(figure.of(before), figure.of(result))
        ]
        return {
            "verdict": verdict(run),
            "change": changed(self.first, run) if figures else "",
            "figures": figures,
            "cautions": [*remarks(result.scenario), *cautions(result)],
            "command": self._command(settings),
            **film(run, min(_SNAPSHOTS, _CELLS // (2 * len(run.fabric.links)))),
        }

    def _command(self, settings: Settings) -> str:
        words = ["closlab", "run", self.name, "--engine", "sim"]
        for change in (*self.changes, *_words(settings)):
            words += ["--set", change]
        return shlex.join(words)


def _words(settings: Settings) -> list[str]:
    return [f"{key}={value if value else 'null'}" for key, value in settings.items()]


def _differ(before: float | None, now: float | None) -> bool:
    if before is None or now is None:
        return before is not now
    return abs(now - before) > _HARDLY * max(abs(before), abs(now))

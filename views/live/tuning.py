"""A scenario whose keys are turned: simulated anew with every change, and told beside what it was.

settings ──► scenario ──► run in the simulator ──► what changed, snapshots, levers
                                │                  beside those of the run it began with
                                └─► the same without what is asked about ──► verdict
"""

from __future__ import annotations

import shlex
import shutil
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

from lab.engines import RunOptions
from lab.engines.sim.engine import SIMULATING
from lab.engines.sim.partition import threads_here
from lab.errors import LabError
from lab.progress import Hear, HeardStages, Progress, until
from lab.results.cautions import cautions
from lab.results.outcome import INTERRUPTION, Outcome
from lab.runs.ablation import ASKED, cost
from lab.runs.run import assembled, check, code_of, simulate
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.levers import lever, levers, offered
from lab.scenario.model import Scenario, remarks
from params.data import Data
from views.live.kept import film
from views.report import verdict
from views.report.kept import KeptRun, unkept
from views.report.numbers import FIGURES
from views.report.words import changed

Settings = Mapping[str, str]  # by key, as --set has it; empty: nothing

_SNAPSHOTS = 320  # of a run: as many as a drawing of it tells apart,
_CELLS = 12_000  # or as many as are told in a tenth of a second: directions in all of them
_MAX_SETTINGS = 64
_SOON_S = 0.3  # after the question, when what lasts is shown as far as it is,
_MIN_S = 0.05  # but not before so much of simulating
_HARDLY = 0.005  # of a figure, that it may differ by and be the same


class Overtaken(LabError):  # noqa: N818  (nothing went wrong)
    """Somebody stopped it, or turned something else meanwhile."""


class _Asked(Data, frozen=False):
    """That somebody wants to know what becomes of some settings."""

    settings: Settings
    end: threading.Event = field(default_factory=threading.Event)  # of what is simulated
    is_wanted: bool = True

    def stop(self) -> None:
        """Nobody wants to know any more."""
        self.is_wanted = False
        self.end.set()


class _Made(Data):
    """A run, or how far it came, and what it takes to find out what something in it cost."""

    asked: _Asked
    run: KeptRun
    experiment: Experiment
    outcome: Outcome

    @property
    def is_part(self) -> bool:
        """Whether it was broken off."""
        return self.outcome.ended == INTERRUPTION

    @property
    def asks_price(self) -> bool:
        """Whether its verdict may have to wait for another run."""
        return self.experiment.scenario.question in ASKED and not self.outcome.ended


class Tuning(Data, frozen=False):
    """One scenario, and what it is compared with."""

    name: str  # as `closlab run` takes it
    changes: tuple[str, ...]  # it began with
    space: Path  # for the runs
    first: KeptRun = field(init=False)
    _latest: _Made = field(init=False)
    _known: Experiment | None = None  # whose traffic need not be made again
    _count: int = 0
    _asked: _Asked = field(default_factory=lambda: _Asked({}))  # last
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _places: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> KeptRun:
        """The run with nothing turned yet."""
        self._latest = self._made(self._scenario({}), self._asked, None)
        self.first = self._priced(self._latest)
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
        self._asked.stop()

    def tried(self, settings: Settings, *, whole: bool = False) -> dict[str, Any]:
        """What becomes of it: the latest that asks is answered, who asked before is told so.

        Unless all of it is wanted, of what lasts it is told how far it came soon.
        """
        scenario = self._scenario(settings)
        mine = _Asked(settings)
        with self._places:
            self._asked.stop()
            self._asked = mine
        with self._turn:
            self._latest = self._made(scenario, mine, None if whole else _SOON_S)
            return self._answer(self._latest)

    def price(self, settings: Settings) -> dict[str, Any]:
        """The verdict of what was tried last: another run may be what it takes."""
        with self._turn:
            if self._latest.asked.settings != settings:
                raise Overtaken("something else was tried meanwhile")
            return {"verdict": verdict(self._priced(self._latest))}

    # --- how it is done --------------------------------------------------------------------------

    def _scenario(self, settings: Settings) -> Scenario:
        if len(settings) > _MAX_SETTINGS:
            raise LabError(f"{len(settings)} settings are more than {_MAX_SETTINGS}")
        return catalogue.load(self.name, (*self.changes, *_words(settings)))

    def _made(self, scenario: Scenario, asked: _Asked, patience_s: float | None) -> _Made:
        """A run; one that takes longer than that is broken off."""
        made: list[_Made] = []
        with self._room() as options:

            def conclude(experiment: Experiment, outcome: Outcome) -> int:
                self._known = experiment
                result = assembled(experiment, outcome, options)
                made.append(_Made(asked, unkept(experiment, result, outcome), experiment, outcome))
                return code_of(result)

            stages = HeardStages(_until(asked.end, patience_s))
            simulate(scenario, options, stages, conclude, like=self._known)
        if not asked.is_wanted or not made:
            raise Overtaken("it was stopped")
        asked.end.clear()
        return made[0]

    def _priced(self, made: _Made) -> KeptRun:
        """The same run, with what its scenario asks the price of."""
        if not made.asks_price:
            return made.run
        with self._room() as options:
            stages = HeardStages(until(made.asked.end, None))
            found = cost(made.experiment, made.outcome, options, stages)
        if not made.asked.is_wanted:
            raise Overtaken("it was stopped")
        return replace(made.run, result=made.run.result.model_copy(update={"cost": found}))

    @contextmanager
    def _room(self) -> Iterator[RunOptions]:
        """For one run, of which nothing is left."""
        self._count += 1
        folder = self.space / str(self._count)
        folder.mkdir()
        options = RunOptions(folder, "sim", hurry=True, threads=threads_here())
        check(options)
        try:
            yield options
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _answer(self, made: _Made) -> dict[str, Any]:
        run, before = made.run, self.first.result
        figures = [
            [figure.name, figure.text(before), figure.text(run.result)]
            for figure in (() if made.is_part else FIGURES)
            if _differ(figure.of(before), figure.of(run.result))
        ]
        is_pending = made.is_part or made.asks_price
        return {
            "whole": not made.is_part,
            "verdict": None if is_pending else verdict(run),  # which `price` tells
            "change": changed(self.first, run) if figures else "",
            "figures": figures,
            "cautions": [
                *remarks(run.result.scenario),
                *(() if made.is_part else cautions(run.result)),
            ],
            "command": self._command(made.asked.settings),
            **film(run, min(_SNAPSHOTS, _CELLS // (2 * len(run.fabric.links)))),
        }

    def _command(self, settings: Settings) -> str:
        words = ["closlab", "run", self.name, "--engine", "sim"]
        for change in (*self.changes, *_words(settings)):
            words += ["--set", change]
        return shlex.join(words)


def _until(end: threading.Event, patience_s: float | None) -> Hear:
    """Break off when that is set, or so long from now, once something of it is simulated."""
    broken_off = until(end, None)
    asked_s = time.monotonic()
    due_s: float | None = None

    def hear(now: Progress | None) -> None:
        nonlocal due_s
        if patience_s is not None and now is not None and now.stage == SIMULATING:
            due_s = due_s or max(asked_s + patience_s, time.monotonic() + _MIN_S)
            if time.monotonic() > due_s and not now.is_over:
                end.set()
        broken_off(now)

    return hear


def _words(settings: Settings) -> list[str]:
    return [f"{key}={value if value else 'null'}" for key, value in settings.items()]


def _differ(before: float | None, now: float | None) -> bool:
    if before is None or now is None:
        return before is not now
    return abs(now - before) > _HARDLY * max(abs(before), abs(now))

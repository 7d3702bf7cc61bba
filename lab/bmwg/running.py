"""Runs what tests ask for, as far as it is not kept, and hands back what came of each of them.

`OUT/runs/SECTION-DIGEST` holds a run with the scenario that makes it again; the digest is of all
that it follows from. Tests are asked for their next runs together, so that all processors are busy
though each test waits for what its last runs found.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cached_property
from pathlib import Path

import yaml
from rich.console import Console

from lab.bmwg.bench import Bench
from lab.bmwg.case import SCENARIO, TABLE, Asks, Case, Found
from lab.bmwg.outcome import Outcome
from lab.engines import RunOptions
from lab.errors import LabError, RunError
from lab.machine.parallel import in_parallel
from lab.machine.sources import cache_key
from lab.progress import Stages
from lab.results.result import RESULT
from lab.runs.child import run_in_child
from lab.runs.run import INTERRUPTED, clear, run_quietly
from lab.scenario.model import Scenario
from params.data import Data

_INPUTS = "inputs.txt"


class Job(Data):
    """A run that is to be made: where, and on what."""

    case: Case
    out: Path  # of all runs
    engine: str = "sim"
    switch: str = "soft"
    p4: Path | None = None

    @cached_property
    def inputs(self) -> str:
        """What it follows from."""
        sources = sorted(self.p4.rglob("*.p4")) if self.p4 else []
        program = b"".join(path.read_bytes() for path in sources)
        said = self.engine, self.switch, self.case.keys, self.case.table
        return cache_key(*said, program)

    @property
    def folder(self) -> Path:
        """Its own."""
        return self.out / f"{self.case.section}-{self.inputs[:12]}"

    @property
    def is_kept(self) -> bool:
        """Whether it was made of the same before, to its end."""
        with suppress(OSError):
            noted = (self.folder / _INPUTS).read_text().strip()
            return noted == self.inputs and (self.folder / RESULT).is_file()
        return False

    @property
    def command(self) -> str:
        """What makes it again."""
        words = ["closlab", "run", str(self.folder / SCENARIO), "--engine", self.engine]
        words += ["--switch", self.switch] if self.switch != "soft" else []
        words += ["--p4", str(self.p4)] if self.p4 else []
        return shlex.join(words)


def run_job(job: Job) -> str:
    """Run it in this process and keep it; what went wrong, or nothing."""
    options = RunOptions(out=job.folder, engine="sim", p4=job.p4)
    return _kept(job, lambda scenario: run_quietly(scenario, options, Console(file=io.StringIO())))


def _kept(job: Job, run: Callable[[Scenario], object]) -> str:
    """Lay it out, run it and note that it is whole; what went wrong, or nothing."""
    try:
        run(_laid_out(job))
        (job.folder / _INPUTS).write_text(job.inputs + "\n")
    except LabError as error:
        return error.message
    except OSError as error:
        return str(error)
    return ""


def _laid_out(job: Job) -> Scenario:
    """Its folder, with what makes it again."""
    job.folder.mkdir(parents=True, exist_ok=True)
    clear(job.folder)
    (job.folder / _INPUTS).unlink(missing_ok=True)
    content = job.case.content
    if job.case.table:
        (job.folder / TABLE).write_text(job.case.table)
        content["traffic"]["file"] = TABLE
    (job.folder / SCENARIO).write_text(yaml.safe_dump(content, sort_keys=False))
    return job.case.scenario(job.folder)


def _run_away(job: Job) -> str:
    """The same on Mininet, in a process of its own."""
    options = RunOptions(out=job.folder, engine="mininet", switch=job.switch, hurry=True, p4=job.p4)

    def run(scenario: Scenario) -> None:
        if run_in_child(scenario, options, lambda _now: None) == INTERRUPTED:
            raise KeyboardInterrupt

    return _kept(job, run)


class Workshop(Data, frozen=False):
    """Where runs are made and kept."""

    bench: Bench
    out: Path
    processes: int | None
    stages: Stages
    made: int = 0  # in this call
    kept: int = 0  # found to be there
    _asked: set[str] = field(default_factory=set)
    _troubles: dict[str, str] = field(default_factory=dict)

    @property
    def asked(self) -> int:
        """How many different runs tests asked for, made now or before."""
        return len(self._asked)

    def job(self, case: Case) -> Job:
        """A case as a run here."""
        bench = self.bench
        return Job(case, self.out / "runs", bench.engine, bench.switch, bench.p4)

    def tell(self, cases: Sequence[Case]) -> dict[Case, Found | str]:
        """What each found, made now or before; or what went wrong."""
        jobs = {case: self.job(case) for case in dict.fromkeys(cases)}
        by_inputs = {job.inputs: job for job in jobs.values()}
        missing = [
            job for job in by_inputs.values()
            if job.inputs not in self._troubles and not job.is_kept
        ]  # fmt: skip
        self.kept += len(by_inputs) - len(missing)
        self._asked |= by_inputs.keys()
        if missing:
            self._make(missing)
        return {
            case: self._troubles.get(job.inputs) or Found(job.folder) for case, job in jobs.items()
        }

    def doubted(self, cases: Sequence[Case]) -> int:
        """How many runs are not to be trusted, by their own word."""
        found = (Found(self.job(case).folder).result.fidelity for case in cases)
        return sum(not fidelity.ok for fidelity in found)

    def _make(self, missing: Sequence[Job]) -> None:
        if self.bench.engine == "sim":
            for job, trouble in in_parallel(run_job, missing, self.processes, self.stages):
                self._note(job, trouble)
            return
        with self.stages("Running on Mininet, one by one", len(missing)) as stage:
            for job in missing:
                self._note(job, _run_away(job))
                stage.advance()
                stage.look()

    def _note(self, job: Job, trouble: str) -> None:
        self.made += 1
        if trouble:
            self._troubles[job.inputs] = trouble


def carry_out(
    tests: Mapping[str, Asks[Outcome]], workshop: Workshop
) -> dict[str, Outcome | LabError]:
    """Every test to its end, all of them at once; of one that cannot be, why."""
    done: dict[str, Outcome | LabError] = {}
    answers: dict[str, Sequence[Found] | None] = dict.fromkeys(tests)
    while answers:
        wanted: dict[str, Sequence[Case]] = {}
        for name in [*answers]:
            came = answers.pop(name)  # what runs found is held no longer than it is read
            try:
                wanted[name] = tests[name].send(came)  # type: ignore[arg-type]  # None begins it
            except StopIteration as stop:
                done[name] = stop.value
            except LabError as error:
                done[name] = error
        costs = workshop.tell([case for cases in wanted.values() for case in cases])
        for name, cases in wanted.items():
            failed = [(case, found) for case in cases if isinstance(found := costs[case], str)]
            if failed:
                case, why = failed[0]
                tests[name].close()
                done[name] = RunError(f"{why}\n  in: {workshop.job(case).command}")
            else:
                answers[name] = [found for case in cases if isinstance(found := costs[case], Found)]
        costs.clear()
    return {name: done[name] for name in tests}

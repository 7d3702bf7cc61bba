"""``closlab reproduce``: runs what a published result needs, compares, and writes down what came.

`DIR/NAME/reproduce.json` (schema closlab.reproduce/1) and `DIR/NAME/index.html` hold theirs beside
ours, with the verdict; `DIR/NAME/CASE/SEED` each run, with its scenario, its report and what it
took. A run that is kept and follows from the same code and scenario is not made again.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from lab.engines import RunOptions
from lab.errors import LabError, RunError
from lab.machine.parallel import in_parallel
from lab.machine.paths import writing_to
from lab.machine.sources import cache_key
from lab.progress import Stages
from lab.reproduce import page
from lab.reproduce.observed import Observed
from lab.reproduce.paper import FOLDER, Reproduction, chosen, names, read
from lab.reproduce.verdict import PROCESSORS, Compared, Judged, Verdict, compared, took_s
from lab.results.result import REPORT, RESULT
from lab.runs.provenance import closlab_now
from lab.runs.run import INTERRUPTED, clear, run_quietly
from lab.scenario.model import Scenario
from params.data import Data
from views.report import write_report

SCHEMA = "closlab.reproduce/1"
KEPT, PAGE = "reproduce.json", "index.html"
_INPUTS, _PROCESSOR, _SCENARIO = "inputs.txt", "processor_s.txt", "scenario.yaml"
_COLOURS = {Verdict.WITHIN: "green", Verdict.OUTSIDE: "red", Verdict.UNVERIFIED: "yellow"}
_HELD = {True: "[green]met[/]", False: "[red]not met[/]", None: ""}


class Job(Data):
    """One run of a reproduction."""

    name: str
    case: str
    seed: int
    scenario: Scenario
    out: Path
    is_expected_to_end: bool

    @property
    def inputs(self) -> str:
        """What it follows from."""
        return cache_key(self.scenario.model_dump_json(), _beside(self.name))

    @property
    def is_kept(self) -> bool:
        """Whether it was made of the same before, to its end."""
        noted = self.out / _INPUTS
        return (
            noted.is_file()
            and noted.read_text().strip() == self.inputs
            and (self.out / RESULT).is_file()
            and (self.out / _PROCESSOR).is_file()
        )

    @property
    def processor_s(self) -> float:
        """The processor time that it took, with its report."""
        return float((self.out / _PROCESSOR).read_text())


def _beside(name: str) -> bytes:
    """What lies beside a reproduction's file, such as a distribution that its scenario reads."""
    files = (path for path in sorted((FOLDER / name).glob("*.txt")) if path.is_file())
    return b"".join(path.read_bytes() for path in files)


def reproduce(
    asked: Sequence[str], out: Path, processes: int | None, console: Console, *, is_all: bool
) -> int:
    """Make published results again; the exit code says whether all ran."""
    wanted = names() if is_all else chosen(asked)
    done: list[Judged] = []
    failed: list[str] = []
    for name in wanted:
        try:
            judged = reproduced(name, out, processes, console)
        except KeyboardInterrupt:
            console.print(f"Interrupted at {name}: what is kept in {out}/ is not run again.")
            return INTERRUPTED
        except LabError as error:
            if not is_all:
                raise
            failed.append(name)
            console.print(f"[red]{name}[/]: {error.message}", highlight=False, soft_wrap=True)
            continue
        done.append(judged)
        shown = Console()
        shown.print(_table(judged))
        for line in judged.lines:
            if line.holds is False or (line.line.reason and line.ratio):
                shown.print(f"{line.line.what}: {line.line.reason or 'no reason is known'}")
        colour = _COLOURS[judged.verdict]
        shown.print(f"{name}: [{colour}]{judged.sentence}[/]", highlight=False)
        shown.print(f"With the runs: {out}/{name}/{PAGE}", highlight=False, soft_wrap=True)
    if len(wanted) > 1:
        with writing_to(out):
            (out / PAGE).write_text(page.summary(done))
        _tell_all(done, failed, out)
    return 1 if failed else 0


def reproduced(name: str, out: Path, processes: int | None, console: Console) -> Judged:
    """One of them, run as far as it is not kept, and written down."""
    paper = read(name)
    jobs = list(_jobs(name, paper, out / name))
    missing = [job for job in jobs if not job.is_kept]
    console.print(f"{name}: {paper.title}", highlight=False, soft_wrap=True)
    for job, trouble in (
        in_parallel(run_job, missing, processes, Stages(console)) if missing else ()
    ):
        if trouble:
            raise RunError(f"{name}: {job.case}, seed {job.seed}: {trouble}")
    by_seed = [
        {job.case: Observed(job.out) for job in jobs if job.seed == seed}
        for seed in range(1, paper.seeds + 1)
    ]
    judged = replace(compared(name, paper, by_seed), took_s=took_s(job.processor_s for job in jobs))
    with writing_to(out):
        content = json.dumps(_content(judged, jobs), indent=2) + "\n"
        (out / name / KEPT).write_text(content)
        links = {(job.case, job.seed): f"{job.case}/{job.seed}/{REPORT}" for job in jobs}
        commands = {
            job.case: shlex.join(("closlab", "run", str(job.out / _SCENARIO), "--engine", "sim"))
            for job in reversed(jobs)
        }
        (out / name / PAGE).write_text(page.document(judged, links, commands))
    return judged


def _jobs(name: str, paper: Reproduction, out: Path) -> Iterator[Job]:
    for case in paper.cases:
        for seed in range(1, paper.seeds + 1):
            scenario = paper.scenario_of(case, seed)
            ends = case not in paper.unfinished
            yield Job(name, case, seed, scenario, out / case / str(seed), ends)


def run_job(job: Job) -> str:
    """Run it in this process and keep it; what went wrong, or nothing."""
    began = process_time()
    try:
        job.out.mkdir(parents=True, exist_ok=True)
        clear(job.out)
        (job.out / _INPUTS).unlink(missing_ok=True)
        options = RunOptions(out=job.out, engine="sim")
        result = run_quietly(job.scenario, options, Console(file=io.StringIO()))
        if job.is_expected_to_end and (result.ended or result.flows.failed):
            why = result.ended or f"{result.flows.failed} messages did not arrive"
            return f"it did not come to its end: {why}"
        content = job.scenario.model_dump(mode="json", exclude_none=True)
        (job.out / _SCENARIO).write_text(yaml.safe_dump(content, sort_keys=False))
        write_report(job.out)
        (job.out / _PROCESSOR).write_text(f"{process_time() - began:.1f}\n")
        (job.out / _INPUTS).write_text(job.inputs + "\n")
    except LabError as error:
        return error.message
    except OSError as error:
        return str(error)
    return ""


def _content(judged: Judged, jobs: Sequence[Job]) -> dict[str, Any]:
    """All of it for machines."""
    paper = judged.paper
    return {
        "schema": SCHEMA,
        "name": judged.name,
        "title": paper.title,
        "source": paper.source.model_dump(mode="json"),
        "theirs": paper.theirs.strip(),
        "here": paper.here.strip(),
        "verdict": judged.verdict.value,
        "lines": [line.record() for line in judged.lines],
        "causes": [line.record() for line in judged.causes],
        "took_s": judged.took_s,
        "runs": [
            {"case": job.case, "seed": job.seed, "folder": f"{job.case}/{job.seed}",
             "changes": list(paper.cases[job.case]), "inputs": job.inputs,
             "processor_s": job.processor_s}
            for job in jobs
        ],
        "provenance": closlab_now(),
    }  # fmt: skip


def _table(judged: Judged) -> Table:
    table = Table(title=judged.paper.title, title_justify="left")
    for head in ("what", "theirs", "ours", "ours / theirs", "criterion", ""):
        table.add_column(head, justify="right" if head.startswith("ours") else "left")
    for line in judged.lines:
        table.add_row(*_row(line), _HELD[line.holds])
    return table


def _row(line: Compared) -> tuple[str, str, str, str, str]:
    return (
        line.line.what,
        page.theirs(line.line),
        page.ours(line),
        f"{line.ratio:.3f}" if line.ratio is not None else "",
        line.line.criterion,
    )


def _tell_all(done: Sequence[Judged], failed: Sequence[str], out: Path) -> None:
    """The summary."""
    table = Table("name", "published by", "lines met", "verdict", f"on {PROCESSORS} processors")
    for judged in done:
        colour = _COLOURS[judged.verdict]
        counted = [line for line in judged.lines if line.holds is not None]
        met = f"{sum(bool(line.holds) for line in counted)} of {len(counted)}"
        verdict = f"[{colour}]{judged.verdict.value}[/]"
        took = f"{judged.took_s:.0f} s"
        table.add_row(judged.name, judged.paper.source.venue, met, verdict, took)
    for name in failed:
        table.add_row(name, "", "", "[red]did not run[/]", "")
    console = Console()
    console.print(table)
    within = sum(judged.verdict is Verdict.WITHIN for judged in done)
    console.print(
        f"{within} of {len(done) + len(failed)} are within their criterion: {out}/{PAGE}",
        highlight=False,
        soft_wrap=True,
    )

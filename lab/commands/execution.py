"""What ``closlab run`` does: a scenario on an engine, from checking it to showing the result."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console

from lab.commands.options import make_out, seconds_of
from lab.engines import EXACT, RunOptions
from lab.engines.sim.checkpoint import discard
from lab.engines.sim.partition import threads_here
from lab.engines.sim.ranks import Launched, Ranks, launched
from lab.errors import LabError, refuse, refuse_beside
from lab.progress import Stages
from lab.results import columns
from lab.results.outcome import INTERRUPTION, Outcome
from lab.results.reports import write as write_reports
from lab.results.tables import result_tables
from lab.runs.run import (
    INTERRUPTED,
    KEPT,
    assembled,
    check,
    clear,
    code_of,
    concluded,
    save_making_room,
    simulate,
)
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario, remarks
from params.data import Data
from params.load_balancing import Policy

if TYPE_CHECKING:
    from lab.engines.mininet.engine import EmulatedFabric
    from lab.runs.machines.file import Machine
    from views.live.show import Show


class Page(Data):
    """A live page that is asked for."""

    port: int
    gnmi: int | None  # of gNMI, if that is asked for
    pace_ns: int | None  # in the simulator; None: what suits the run, 0: as much as it can


def page_of(engine: str, live: bool, pace: str | None, port: int, gnmi: int | None) -> Page | None:
    """What is to be served meanwhile, if anything is."""
    if pace is not None and not (live and engine == "sim"):
        raise LabError(
            "--pace is for the simulator when it is watched",
            "Say --engine sim --live --pace 100us/s; on Mininet time passes as --dilation says.",
        )
    if not live:
        if gnmi is not None:
            raise LabError("--gnmi tells of a run that is watched", "Say --live as well.")
        return None
    # Here and below: who does not watch does not wait for what a page and Mininet need.
    from views.live.pace import pace_of
    from views.live.server import require

    require()
    return Page(port, gnmi, None if pace is None else 0 if pace == "0" else pace_of(pace))


def execute(
    name: str,
    changes: tuple[str, ...],
    seed: int | None,
    out: Path | None,
    *,
    engine: str,
    prompt: bool,
    switch: str = "soft",
    is_json: bool = False,
    dilation: int | None = None,
    leisure: int = 1,
    p4: Path | None = None,
    reports: str | None = None,
    tls: bool = False,
    jobs: int | None = None,
    checkpoint: str | None = None,
    accuracy: str = EXACT,
    machines: Path | None = None,
    page: Page | None = None,
) -> None:
    """Check everything that can be checked, then run; by all ranks, if a launcher of MPI started
    several of this."""
    with ExitStack() as stack:
        how = launched()
        ranks, elsewhere = (None, None) if how is None else _joined(how, engine, stack)
        chosen = catalogue.load(name, (*changes, *([] if seed is None else [f"seed={seed}"])))
        options = RunOptions(
            out=Path(),
            engine=engine,
            switch=switch,
            prompt=prompt,
            dilation=dilation,
            leisure=leisure,
            hurry=leisure == 1 and not prompt and page is None,
            reports=reports,
            p4=p4,
            tls=tls,
            threads=jobs or (threads_here() if ranks is None else ranks.threads_each),
            ranks=ranks,
            accuracy=accuracy,
            checkpoint_s=None if checkpoint is None else seconds_of("--checkpoint", checkpoint),
        )
        check(options)
        if accuracy != EXACT:
            refuse_beside(f"{{}} would not see what --accuracy {accuracy} leaves out",
                          (page, "--live"),
                          (chosen.measures.pcap, "kept packets (--pcap)"))  # fmt: skip
        refuse(
            (checkpoint is not None and page,
             "who watches a run may change it, which no checkpoint has",
             "Leave out --live or --checkpoint."),
            (checkpoint is not None and out is None,
             "--checkpoint: a run goes on from what is in its folder",
             "Say which that is, each time: --out DIR"),
            (jobs is not None and engine != "sim", "--jobs are threads of the simulator",
             "Leave it out, or say --engine sim."),
            (reports not in (None, *columns.KINDS), f"--reports: there is no kind '{reports}'",
             "It is csv or parquet."),
            (reports and not chosen.telemetry.share,
             "--reports: no packet of this scenario carries telemetry",
             "Say which share of them is to: --set int.share=0.01"),
            (ranks and page,
             "who watches a run watches one process, and this run has several ranks",
             "Leave out --live, or run without mpirun."),
            (machines and page,
             "who watches a run watches one machine, and this run has several",
             "Leave out --live or --machines."),
        )  # fmt: skip
        if reports is not None:
            columns.require(reports)
        shared = None if machines is None else _shared(machines, chosen, options)
        folder = elsewhere or make_out(out, chosen.name)
        clear(folder)
        for text in [] if elsewhere else remarks(chosen):
            print(f"closlab: {text}", file=sys.stderr)
        with ExitStack() as shown:
            options = replace(options, out=folder)
            code = _run(chosen, options, page, shown, shared, is_json=is_json)
        if code != INTERRUPTED:
            discard(folder)
        if code == INTERRUPTED and not (folder / KEPT[0]).exists():
            print("closlab: interrupted before anything was measured: no result", file=sys.stderr)
            if out is None:
                shutil.rmtree(folder, ignore_errors=True)
        raise typer.Exit(code)


def _joined(how: Launched, engine: str, stack: ExitStack) -> tuple[Ranks, Path | None]:
    """All ranks; and where this one keeps the program that it compiles, if it is not the first,
    which keeps all else."""
    from lab.commands.ranks import joined  # which few runs need
    from lab.machine.scratch import scratch

    ranks = stack.enter_context(joined(how, engine))
    return ranks, None if ranks.is_first else stack.enter_context(scratch())


def _shared(file: Path, scenario: Scenario, options: RunOptions) -> tuple[Machine, ...]:
    """The machines that a run is to be shared out among, if it can be."""
    from lab.runs.machines.file import read  # which few runs need
    from lab.runs.machines.lead import check_shareable

    check_shareable(scenario, options)
    return read(file)


def _run(
    scenario: Scenario,
    options: RunOptions,
    page: Page | None,
    stack: ExitStack,
    machines: tuple[Machine, ...] | None,
    *,
    is_json: bool,
) -> int:
    is_heard = options.ranks is None or options.ranks.is_first
    stages = Stages(Console(stderr=True, quiet=not is_heard))

    def concluded(experiment: Experiment, outcome: Outcome) -> int:
        if options.ranks is not None:
            options.ranks.leave()  # lest the others wait while one writes
        return conclude(experiment, outcome, options, stages, is_json=is_json)

    def at_the_prompt(up: EmulatedFabric, experiment: Experiment, name: str) -> None:
        from lab.commands.prompt import prompt
        from lab.machine.supervisor import supervisor

        since_ns = time.monotonic_ns()
        had_traffic = prompt(
            up, stages.console, lambda outcome: concluded(experiment, outcome), name
        )
        if not had_traffic and supervisor.befallen is None:
            keep_by_hand(*up.by_hand(since_ns), options, stages)

    def before_eyes(experiment: Experiment) -> Show:
        from views.live.server import serving
        from views.live.show import Show

        assert page is not None
        show = Show(experiment, page.pace_ns)
        address = stack.enter_context(serving(show.hub, page.port, page.gnmi))
        stages.console.print(f"To be watched:  {address}", highlight=False, soft_wrap=True)
        return show

    if options.engine == "sim":
        return simulate(scenario, options, stages, concluded, before_eyes if page else None)
    if machines is not None:
        from lab.runs.machines.lead import lead

        return lead(scenario, options, machines, stages, concluded)
    from lab.runs.emulate import emulate  # which brings what the simulator has no use for

    attend = at_the_prompt if options.prompt else None
    beside: Callable[[str], AbstractContextManager[object]] = nullcontext
    if page is not None:
        from views.live.attend import attended

        beside = partial(attended, port=page.port, gnmi_port=page.gnmi)
    return emulate(scenario, options, stages, concluded, LabError.show, attend, beside)


def keep_by_hand(
    experiment: Experiment, outcome: Outcome, options: RunOptions, stages: Stages
) -> None:
    """Keep what was done at a prompt where the hosts were never let send."""
    from views.report import write_report

    save_making_room(assembled(experiment, outcome, options), experiment, outcome, options, stages)
    stages.console.print(
        f"What was done and seen: {write_report(options.out)}", highlight=False, soft_wrap=True
    )


def conclude(
    experiment: Experiment,
    outcome: Outcome,
    options: RunOptions,
    stages: Stages,
    *,
    is_json: bool = False,
) -> int:
    """Keep and show what was found out; the exit code says whether all of it arrived
    and whether to believe it."""
    result = concluded(experiment, outcome, options, stages)
    result_tables(stages.console, experiment.fabric, result)
    save_making_room(result, experiment, outcome, options, stages)
    if options.reports and outcome.telemetry:
        kept = write_reports(outcome.telemetry, options.out, options.reports)
        stages.console.print(f"Telemetry reports: {kept}", highlight=False, soft_wrap=True)
    from views.report import write_and_tell  # which nothing waits for before

    report, verdict = write_and_tell(options.out)
    stages.console.print(verdict, style="bold", highlight=False, markup=False, soft_wrap=True)
    stages.console.print(f"All of it, with pictures: {report}", highlight=False, soft_wrap=True)
    if experiment.scenario.measures.pcap and experiment.settings.lb.policy is Policy.CONGA:
        from lab.engines.mininet.tap import conga_hint

        captures = f"{options.out}/pcaps/FILE.pcap"
        stages.console.print(conga_hint(captures), highlight=False, soft_wrap=True)
    if is_json:
        print(json.dumps(result.content(), indent=2))
    if result.ended == INTERRUPTION:
        stages.console.print(
            f"Interrupted: what was measured until then is kept in {options.out}/",
            highlight=False,
            soft_wrap=True,
        )
    return code_of(result)

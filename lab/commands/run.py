"""``closlab run``: a scenario on an engine, from checking it to showing what came of it."""

from __future__ import annotations

import errno
import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from controller import Policy
from lab.commands.options import Changes, Dilation, Json, Name, Out, Seed, make_out
from lab.engines import ENGINES, SWITCHES, RunOptions
from lab.engines.mininet.capsule import name_addresses, run_in_capsule
from lab.engines.mininet.running import Registration
from lab.engines.mininet.tap import conga_hint
from lab.errors import LabError, RunError
from lab.machine import tools
from lab.machine.program import source_in
from lab.progress import Stages
from lab.report import write_report
from lab.results.outcome import INTERRUPTION, Outcome
from lab.results.result import save
from lab.results.tables import result_tables
from lab.runs.run import INTERRUPTED, KEPT, NOT_WHOLE, UNBELIEVED, assembled, outcome_of, writing_to
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario, remarks


def command(
    scenario: Name,
    changes: Changes = None,
    seed: Seed = None,
    out: Out = None,
    engine: Annotated[str, typer.Option("--engine", help="mininet or sim.")] = "mininet",
    switch: Annotated[
        str, typer.Option("--switch", help="soft (ours) or bmv2 (mininet).")
    ] = "soft",
    dilation: Dilation = None,
    pcap: Annotated[bool, typer.Option("--pcap", help="Keep what crosses each link.")] = False,
    pcap_link: Annotated[
        list[str] | None,
        typer.Option("--pcap-link", metavar="LINK", help="Keep what crosses one."),
    ] = None,
    p4: Annotated[
        Path | None,
        typer.Option("--p4", metavar="DIR", help="Your own copy of p4src, instead of it."),
    ] = None,
    prompt: Annotated[
        bool, typer.Option("--cli", help="Stay at the mininet> prompt instead of measuring.")
    ] = False,
    is_json: Json = False,
) -> None:
    """Run a scenario. Ends with 0; 1: not everything arrived; 3: do not trust this run."""
    links = ["all"] if pcap else pcap_link or []
    execute(
        scenario,
        (*(changes or ()), *([f"measures.pcap=[{','.join(links)}]"] if links else [])),
        seed,
        out,
        engine=engine,
        switch=switch,
        prompt=prompt,
        is_json=is_json,
        dilation=dilation,
        p4=p4,
    )


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
    p4: Path | None = None,
) -> None:
    """Check everything that can be checked, then run."""
    for what, chosen_one, known in (("engine", engine, ENGINES), ("switch", switch, SWITCHES)):
        if chosen_one not in known:
            raise RunError(
                f"there is no {what} '{chosen_one}'", f"Choose one of {', '.join(known)}."
            )
    if engine == "sim" and switch != "soft":
        raise RunError(
            "the simulator's switches are our own", "Leave --switch out, or --engine sim."
        )
    if seed is not None:
        changes = (*changes, f"seed={seed}")
    chosen = catalogue.load(name, changes)
    source_in(p4)
    tools.require_compiler()
    if engine == "mininet":
        tools.require_emulation()
        if switch == "bmv2":
            tools.require_bmv2()
    elif prompt:
        raise RunError("the simulator has no prompt", "Leave --cli out, or the engine.")
    folder = make_out(out, chosen.name)
    options = RunOptions(
        out=folder,
        engine=engine,
        switch=switch,
        prompt=prompt,
        dilation=dilation,
        p4=p4,
    )
    for file in KEPT:  # what an earlier run left there is no result of this one
        (folder / file).unlink(missing_ok=True)
    shutil.rmtree(folder / "pcaps", ignore_errors=True)
    for text in remarks(chosen):
        print(f"closlab: {text}", file=sys.stderr)
    run = _simulate if engine == "sim" else _run_in_capsule
    code = run(chosen, options, is_json=is_json)
    if code == INTERRUPTED and not (folder / KEPT[0]).exists():
        print("closlab: interrupted before anything was measured: no result", file=sys.stderr)
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
    raise typer.Exit(code)


def _simulate(chosen: Scenario, options: RunOptions, *, is_json: bool) -> int:
    stages = Stages(Console(stderr=True))
    try:
        with writing_to(options.out):
            experiment = Experiment.of(chosen)
            outcome = outcome_of(experiment, options, stages)
            return conclude(experiment, outcome, options, stages, is_json=is_json)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run_in_capsule(chosen: Scenario, options: RunOptions, *, is_json: bool) -> int:
    registration = Registration(chosen.name)
    try:
        code = run_in_capsule(
            lambda: _emulate(chosen, options, registration, is_json=is_json), registration.announce
        )
    finally:
        registration.withdraw()
    if code == 137:
        raise RunError("the run was killed; nothing of it is left behind")
    return code


def _emulate(
    scenario: Scenario, options: RunOptions, registration: Registration, *, is_json: bool
) -> int:
    """Called inside a capsule, where Mininet is known to be; an error ends the capsule."""
    from lab.commands.prompt import prompt
    from lab.engines.mininet.engine import bring_up

    console = Console(stderr=True)
    stages = Stages(console)
    try:
        with writing_to(options.out):
            experiment = Experiment.of(scenario)

            def concluded(outcome: Outcome) -> int:
                return conclude(experiment, outcome, options, stages, is_json=is_json)

            with bring_up(experiment, options, stages) as up:
                name_addresses(up.emulation.addresses(), registration.names)
                registration.furnish(*up.emulation.whereabouts())
                if options.prompt:
                    prompt(up, console, concluded, registration.name)
                    return 0
                outcome = up.measure()
            return concluded(outcome)
    except LabError as error:
        error.show()
        return 1
    except KeyboardInterrupt:
        console.print("Everything is taken down.")
        return INTERRUPTED


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
    result = assembled(experiment, outcome, options)
    result_tables(stages.console, experiment.fabric, result)
    try:
        save(result, experiment, outcome, options.out)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        # The program can be compiled again, what was measured cannot be measured again.
        (options.out / "fabric.json").unlink(missing_ok=True)
        save(result, experiment, outcome, options.out)
        stages.console.print("[yellow]The disk is full[/]: fabric.json gave way to the results.")
    report = write_report(options.out)
    stages.console.print(f"All of it, with pictures: {report}", highlight=False, soft_wrap=True)
    if experiment.scenario.measures.pcap and experiment.settings.lb.policy is Policy.CONGA:
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
        return INTERRUPTED
    if result.ended or result.flows.failed:
        return NOT_WHOLE
    return 0 if result.fidelity.ok else UNBELIEVED

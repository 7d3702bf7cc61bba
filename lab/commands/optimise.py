"""``closlab optimise``: values of keys that serve a workload best, searched for with Optuna."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from lab.commands.options import Changes, Json, Name, Out, Processes, make_out
from lab.machine.dask_cluster import LOCAL, of_this_machine, require_dask
from lab.optimise.answer import chosen, compare, write_answer
from lab.optimise.levers import levers_of
from lab.optimise.page import lines, optimised
from lab.optimise.search import Asked, Runs, objective, require_optuna, search
from lab.progress import Stages
from views.report import REPORT


def command(
    scenario: Name,
    over: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP|KEY=LOW..HIGH|KEY=A,B", help="What may be turned."),
    ] = None,
    objectives: Annotated[
        list[str] | None,
        typer.Option("--for", metavar="FIGURE", help="What is to be little: p99, job, pause ..."),
    ] = None,
    changes: Changes = None,
    trials: Annotated[int, typer.Option(min=1, max=10_000)] = 64,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="With how many a trial is run.")] = 3,
    patience: Annotated[
        int, typer.Option(min=1, help="End if so many trials bring nothing better.")
    ] = 32,
    seed: Annotated[int, typer.Option(min=0, help="Of the search itself.")] = 1,
    losses: Annotated[
        bool, typer.Option("--losses", help="Allow packets to be lost, as the answer's price.")
    ] = False,
    also: Annotated[
        list[str] | None, typer.Option(metavar="SCENARIO", help="Search for this workload, too.")
    ] = None,
    tests: Annotated[
        list[str] | None,
        typer.Option("--test", metavar="SCENARIO", help="Compare on this workload, too."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=2, max=1000, help="Seeds of the last choice and of comparisons.")
    ] = 8,
    processes: Processes = None,
    cluster: Annotated[
        str | None,
        typer.Option("--on", metavar="dask|ADDRESS", help="Spread runs over a Dask cluster."),
    ] = None,
    out: Out = None,
    is_json: Json = False,
) -> None:
    """Search values of keys that serve a workload best, and compare them with what is published.

    A folder that has a search already is gone on with.
    """
    require_optuna()
    if cluster is not None:
        require_dask()
    keys = tuple(dict.fromkeys(map(objective, objectives or ("p99", "pause"))))
    names = tuple(dict.fromkeys((scenario, *(also or ()))))
    levers, fixed = levers_of(names, tuple(changes or ()), tuple(over or ("ecn",)))
    asked = Asked(names, fixed, levers, keys, seeds, trials, patience, seed, losses)
    folder = make_out(out, f"optimise-{Path(scenario).stem}")
    stages = Stages(Console(stderr=True))
    with ExitStack() as stack:
        if cluster == LOCAL:  # one for all that is run, as it takes seconds to start
            cluster = stack.enter_context(of_this_machine(processes or os.cpu_count() or 1))
        jobs = Runs(asked, processes, cluster, stages)
        found = search(asked, folder, jobs)
        answer = chosen(found, jobs, repeats)
        compared = compare(asked, answer, tests or (), repeats, processes, cluster, stages)
    others = write_answer(asked, answer, folder)
    optimised(found, answer, compared, others, folder / REPORT)
    content = {
        "answer": list(answer.changes), "fixed": list(fixed), "why_over": found.why_over,
        "trials": len(found.tried), "stopped": found.stopped, "failed": found.failed,
        "front": [asdict(one) for one in found.front], "importance": found.importance,
        "compared": [asdict(one) for one in compared], "not_in_sonic": others,
    }  # fmt: skip
    (folder / "answer.json").write_text(json.dumps(content, indent=1) + "\n")
    print(json.dumps(content, indent=2) if is_json else "\n".join(lines(found, answer, compared)))
    if not is_json:
        print(
            f"{folder}/: {REPORT}, answer.yaml (keys), answer.config_db.json (SONiC), answer.json"
        )

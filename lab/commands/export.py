"""``closlab export``: traffic and results in the formats of others."""

from __future__ import annotations

import json
import shlex
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer
import yaml

from lab.commands.options import Changes
from lab.errors import LabError, RunError, ScenarioError
from lab.machine.paths import cannot_write
from lab.results import columns
from lab.runs.machines.containers import MAKERS
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from lab.scenario.traffic import make_workload
from topologies import export_ns3
from traffic.collectives import Schedule, SizeError, TrafficError, prove
from traffic.jobs import Workload
from traffic.traces import chakra, ns3, table
from views.report import KeptRun, find_runs, nccl, perfetto, read_run
from views.report.kept import read_result

_KINDS = {
    "chakra": "a scenario's traffic as Chakra's execution traces, a file a rank",
    "flows": "a run's messages as a table, CSV or Parquet",
    "ns3": "a run's flows and fabric as flow.txt and topology.txt of ns-3 (HPCC, ConWeave)",
    "perfetto": "a run's messages, work, pauses and queues as a trace for Perfetto's UI",
    "nccl-tests": "runs of a collective as nccl-tests prints them, in text or JSON",
    "containerlab": "containers of containerlab to emulate a scenario on (run --machines)",
    "kubernetes": "pods of Kubernetes to emulate a scenario on (run --machines)",
}
_OF_SCENARIOS = ("chakra", *MAKERS)


def command(
    names: Annotated[
        list[str],
        typer.Argument(
            help="A scenario (chakra, containerlab, kubernetes), or folders of runs (the others)."
        ),
    ],
    kind: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="KIND",
            help="chakra, flows, ns3, perfetto, nccl-tests, containerlab, or kubernetes.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="NAME of NAME.0.et; .csv, .parquet, .json or .txt."),
    ] = None,
    changes: Changes = None,
    machines: Annotated[
        int | None,
        typer.Option(min=2, help="How many containers or pods: 2, unless told."),
    ] = None,
) -> None:
    """Write traffic, results or machines in a format that others read."""
    if kind not in _KINDS:
        kinds = "; ".join(f"{name}: {what}" for name, what in _KINDS.items())
        raise LabError(f"--as: there is no kind '{kind}'", kinds)
    if machines is not None and kind not in MAKERS:
        raise LabError(f"--machines: nothing is started for {kind}", "Leave it out.")
    if changes and kind not in _OF_SCENARIOS:
        raise LabError("--set changes a scenario, and a run is over", "Leave it out.")
    if kind != "nccl-tests" and len(names) > 1:
        raise LabError(f"--as {kind} takes one name", "Give one after the other.")
    try:
        if kind == "chakra":
            _chakra(names[0], tuple(changes or ()), out)
        elif kind in MAKERS:
            _containers(kind, names[0], tuple(changes or ()), machines or 2, out)
        elif kind == "flows":
            _flows(names[0], out)
        elif kind == "ns3":
            _ns3(names[0], out)
        elif kind == "perfetto":
            _perfetto(names[0], out)
        else:
            _nccl(names, out)
    except OSError as error:
        raise cannot_write(str(out or "."), error) from None


def _containers(
    kind: str, name: str, changes: tuple[str, ...], count: int, out: Path | None
) -> None:
    """A folder with an orchestrator's file, and that of the machines which it starts."""
    from lab.runs.machines.lead import shares  # which brings an engine along

    scenario = catalogue.load(name, changes)
    made = MAKERS[kind](scenario.name, count)
    # Now, not when they are up: whether they can share in it.
    shares(scenario.fabric(), [machine["name"] for machine in made.machines["machines"]])
    folder = out or Path(f"{scenario.name}-machines")
    folder.mkdir(parents=True, exist_ok=True)
    for file, content in ((made.name, made.content), ("machines.yaml", made.machines)):
        (folder / file).write_text(yaml.safe_dump(content, sort_keys=False))
    words = "".join(f" --set {shlex.quote(change)}" for change in changes)
    print(f"cd {folder} && {made.up}")
    print(f"closlab run {name}{words} --machines {folder}/machines.yaml")


def _workload(scenario: Scenario) -> Workload:
    try:
        return make_workload(scenario.traffic, scenario.site(scenario.fabric()))
    except TrafficError as error:
        raise ScenarioError(f"scenario '{scenario.name}': {error}") from None


def _chakra(name: str, changes: tuple[str, ...], out: Path | None) -> None:
    scenario = catalogue.load(name, changes)
    schedule = _workload(scenario).schedule
    proof = _proven(schedule)
    base = out or Path(f"{scenario.name}.et") / scenario.name
    files = chakra.write(schedule, base.with_name(base.name.removesuffix(".et")))
    print(f"{files[0]} to {files[-1].name}{proof}")


def _proven(schedule: Schedule) -> str:
    """What others are told of the collectives that they get, as the end of a line."""
    if not any(activity.collective for activity in schedule.activities):
        return ""
    try:
        prove(schedule)
    except SizeError as error:
        return f"; not proven, for {error.message}"
    except TrafficError as error:
        raise LabError(f"not written, for it is wrong: {error}", "Please report it.") from None
    return "; proven to compute what its collectives promise, whatever the timing"


def _flows(name: str, out: Path | None) -> None:
    run = read_run(Path(name))
    path = out or Path("flows.csv")
    kind = path.suffix.lstrip(".")
    if kind not in columns.KINDS:
        raise LabError(f"{path}: a table is .csv or .parquet", "Name it so.")
    if not run.flows:
        raise RunError(f"{name} keeps no messages", "Run it with measures.flows=true.")
    names = (*table.COLUMNS, "fct_ns", "slowdown", "step", "what")
    began = [flow for flow in run.flows if flow.start_ns is not None]
    rows = [attrgetter(*names)(flow) for flow in sorted(began, key=attrgetter("start_ns"))]
    columns.write(path, kind, names, rows)
    print(f"{path}: {len(rows):,} messages")


def _ns3(name: str, out: Path | None) -> None:
    """Both files, in a folder: the flows begin when they did in the run."""
    run = read_run(Path(name))
    began = [flow for flow in run.flows if flow.start_ns is not None]
    if not began:
        raise RunError(f"{name} keeps no messages", "Run it with measures.flows=true.")
    number = {host.name: at for at, host in enumerate(run.fabric.hosts)}
    flows = ((number[f.src], number[f.dst], f.bytes, f.start_ns or 0) for f in began)
    experiment = Experiment.of(run.result.scenario)
    of_links = {link: experiment.cable(link) for link in experiment.fabric.links}
    cables = {link: (each.rate_bps, each.delay_ns) for link, each in of_links.items()}
    folder = out or Path("ns3")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "flow.txt").write_text("".join(ns3.written(flows)))
    (folder / "topology.txt").write_text("".join(export_ns3(experiment.fabric, cables)))
    print(
        f"{folder}/flow.txt: {len(began):,} flows, from 2 s on; {folder}/topology.txt: the fabric"
    )


def _perfetto(name: str, out: Path | None) -> None:
    path = out or Path("trace.json")
    content = perfetto.trace(read_run(Path(name)))
    path.write_text(json.dumps(content, separators=(",", ":")) + "\n")
    events = len(content["traceEvents"])
    print(f"{path}: {events:,} events, for https://ui.perfetto.dev or chrome://tracing")


def _nccl(names: list[str], out: Path | None) -> None:
    runs: list[KeptRun] = [read_result(run) for name in names for run in find_runs(Path(name))]
    rows = nccl.rows_of(runs, lambda run: _workload(run.result.scenario))
    if out is not None and out.suffix == ".json":
        out.write_text(json.dumps(nccl.content(rows, runs), indent=1) + "\n")
        return
    text = "\n".join(nccl.text(rows, runs))
    if out is None:
        print(text)
    else:
        out.write_text(f"{text}\n")

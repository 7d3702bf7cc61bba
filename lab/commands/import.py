"""``closlab import``: somebody's workload, or somebody's fabric, as a scenario."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from lab.configs.basis import Options
from lab.configs.brought import import_fabric
from lab.configs.device import is_device, read_device, with_hosts
from lab.configs.fabric import has_configurations, read_fabric
from lab.errors import LabError
from lab.scenario.import_workload import import_workload


def command(
    file: Annotated[
        Path,
        typer.Argument(help="A file; of Chakra's traces, or of switches, their folder."),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write; without it NAME.lab.")
    ] = None,
    size: Annotated[
        str | None,
        typer.Option("--bytes", help="The data of MSCCL's schedules, or htsim's flows of size 0."),
    ] = None,
    groups: Annotated[
        Path | None, typer.Option(help="The process groups of Chakra's traces, JSON.")
    ] = None,
    tflops: Annotated[
        float | None, typer.Option(help="How fast ranks of Chakra's traces compute.")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(help="How many GPUs, where a file of AICB does not say.")
    ] = None,
    scale: Annotated[
        float | None, typer.Option(help="Shrinks bytes and times of AICB's: 0.001.")
    ] = None,
    topology: Annotated[
        Path | None, typer.Option(help="A fabric's file: run the workload on that.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="The chip of switches, for a folder of theirs.")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option(help="Which neighbours of switches are hosts: 'gpu*'.")
    ] = None,
) -> None:
    """Say what a workload's or a fabric's file is, check it, and write a scenario that runs it.

    Workloads: flows as CSV (start_ns,src,dst,bytes), htsim's connection matrices (.cm), ns-3's
    flow.txt (HPCC, ConWeave), GOAL, Chakra's execution traces (NAME.RANK.et), MSCCL's schedules
    (.xml), AICB's workloads (.txt). Fabrics: networkx' JSON, GraphML, htsim's .topo, ns-3's
    topology.txt, InfraGraph, the P4 tutorials' topology.json, containerlab's and netlab's
    topologies, SONiC's minigraph.xml; a folder of switches' configurations (SONiC's config_db.json,
    EOS's texts, NVUE's YAML, with FRR's and adapters' beside them), with their thresholds, maps and
    cables; or one of SONiC's SKUs.
    """
    extras = {
        "bytes": size, "groups": None if groups is None else str(groups), "tflops": tflops,
        "gpus": gpus, "scale": scale,
    }  # fmt: skip
    folder = Path(f"{file.name.partition('.')[0] or 'trace'}.lab") if out is None else out
    if is_device(file) or has_configurations(file):
        asked = [f"--{key}" for key, value in (extras | {"topology": topology}).items() if value]
        if asked:
            raise LabError(f"{asked[0]} is for workloads, and {file} is a fabric", "Leave it out.")
        if is_device(file):
            if hosts is not None:
                raise LabError("--hosts is for a folder of configurations", "Leave it out.")
            fabric = with_hosts(read_device(file, None, "", Options()))
            print(f"A SKU's folder: its switch, with a host at each of {len(fabric.hosts)} ports")
        else:
            fabric = read_fabric(file, hosts)
        report = import_fabric(fabric, folder, profile)
        print(f"{len(report.switches)} switches; {len(report.differs)} values differ among them")
        print(f"What became of all that they say: {folder / 'report.txt'}")
        print(f"Try: closlab run {shlex.quote(str(folder / 'scenario.yaml'))} --engine sim")
        return
    if profile is not None or hosts is not None:
        raise LabError(
            f"--profile and --hosts are for a folder of switches' configurations; {file} is none",
            "Leave them out, or put each switch's config_db.json into a folder.",
        )
    left = {key: value for key, value in extras.items() if value is not None}
    for line in import_workload(file, folder, left, topology).lines():
        print(line)

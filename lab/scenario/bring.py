"""Somebody's workload, brought as a scenario: the file is looked at, and copied beside it."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from lab.errors import RunError, ScenarioError
from lab.quantity import duration, size
from lab.scenario.traffic import read_traffic
from traffic.collectives import Schedule, Site, SpecError, TrafficError
from traffic.traces import ChakraSpec, TraceSpec, kind_of
from traffic.traces.chakra import files_of

_HOSTS_PER_LEAF = 8
_GUESSED_HOSTS = 1 << 16
WHAT = {
    "table": "flows in a table",
    "htsim": "a connection matrix of htsim",
    "goal": "a schedule in GOAL",
    "chakra": "execution traces of Chakra",
    "msccl": "a collective's schedule of MSCCL",
    "aicb": "a workload of AICB",
}


@dataclass(frozen=True, slots=True)
class Brought:
    """What a file turned out to be."""

    kind: str
    ranks: int
    schedule: Schedule
    scenario: Path

    def lines(self) -> list[str]:
        """What there is to say of it."""
        plan = self.schedule
        messages = [at for at in range(len(plan)) if plan.src[at] != plan.dst[at]]
        sent = sum(plan.size[at] for at in messages)
        names = [activity.name for activity in plan.activities if activity.kind == "collective"]
        busiest = max(
            (sum(plan.delay_ns[at] for at in plan.starts(rank) if plan.src[at] == plan.dst[at]))
            for rank in range(plan.ranks)
        )
        told = [f"{WHAT[self.kind]}: {self.ranks} ranks, {len(messages):,} messages, {size(sent)}"]
        if names:
            ops = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
            told.append(f"collectives: {ops}")
        if busiest:
            told.append(f"a rank computes for up to {duration(busiest)}")
        return [*told, f"Try: closlab run {self.scenario} --engine sim"]


def bring(path: Path, out: Path, extras: dict[str, Any]) -> Brought:
    """Look at a file, and write a scenario with the file beside it; ``extras``: keys it needs."""
    try:
        kind = kind_of(path)
        if kind == "msccl" and "bytes" not in extras:
            raise SpecError(f"{path}: MSCCL's schedules are for any size", "say it: --bytes 1MB")
        key = ChakraSpec.FILE if kind == "chakra" else TraceSpec.FILE
        traffic = {"kind": kind, key: str(path), **extras}
        spec = read_traffic(traffic)
        assert isinstance(spec, TraceSpec)
        schedule = spec.schedule(Site(_GUESSED_HOSTS))
    except TrafficError as error:
        raise ScenarioError(error.message, error.cure) from None
    ranks = 1 + max(chain(schedule.src, schedule.dst))
    files = files_of(path) if kind == "chakra" else [path]
    if groups := extras.get("groups"):
        files.append(Path(groups))
        traffic["groups"] = Path(groups).name
    if out.exists():
        raise RunError(f"{out} is there already", "Name another folder with --out.")
    try:
        out.mkdir(parents=True)
        for file in files:
            shutil.copyfile(file, out / file.name)
        traffic[key] = _named(path, files)
        scenario = out / "scenario.yaml"
        scenario.write_text(yaml.safe_dump(_scenario(path, kind, ranks, traffic), sort_keys=False))
    except OSError as error:
        raise RunError(f"{out} cannot be written: {error.strerror}") from None
    return Brought(kind, ranks, schedule, scenario)


def _named(path: Path, files: list[Path]) -> str:
    """The name by which the copies are found."""
    return files[0].name if path.is_dir() else path.name


def _scenario(path: Path, kind: str, ranks: int, traffic: dict[str, Any]) -> dict[str, Any]:
    """A fabric with a host for each rank, every uplink's worth of them below a leaf."""
    below = min(_HOSTS_PER_LEAF, max(1, -(-ranks // 2)))
    leaves = max(2, -(-ranks // below))
    return {
        "name": re.sub("[^a-z0-9]+", "-", path.name.partition(".")[0].lower()).strip("-") or kind,
        "about": f"{WHAT[kind][0].upper()}{WHAT[kind][1:]}, brought from {path.name}.",
        "topology": {
            "kind": "leaf-spine", "leaves": leaves, "spines": below, "hosts_per_leaf": below,
        },
        "link": {"rate_gbps": 100, "delay_ns": 1000, "mtu": 4096},
        "buffer": {"bytes": "16MB"},
        "traffic": traffic,
    }  # fmt: skip

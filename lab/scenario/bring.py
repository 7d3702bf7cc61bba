"""Somebody's workload, brought as a scenario: the file is looked at, and copied beside it."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from files import is_file
from lab.errors import RunError, ScenarioError
from lab.quantity import duration, size
from lab.scenario import fabrics
from lab.scenario.traffic import read_traffic
from topologies import Imported, NodeKind, TopologyError
from traffic.collectives import Schedule, Site, SpecError, TrafficError
from traffic.traces import ChakraSpec, TraceError, TraceSpec, kind_of
from traffic.traces.chakra import files_of
from traffic.traces.guess import KNOWN

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


_TRIED_BYTES = "1MB"  # that each host sends another, on a fabric brought alone


@dataclass(frozen=True, slots=True)
class Brought:
    """What files turned out to be, and the scenario that was written."""

    told: list[str]
    scenario: Path

    def lines(self) -> list[str]:
        """What there is to say of it."""
        return [*self.told, f"Try: closlab run {self.scenario} --engine sim"]


@dataclass(frozen=True, slots=True)
class _Part:
    """A section of the scenario, and what there is to say of it."""

    section: dict[str, Any]
    files: list[Path]
    told: list[str]
    ranks: int
    about: str


def bring(path: Path, out: Path, extras: dict[str, Any], topology: Path | None = None) -> Brought:
    """Look at a file, and write a scenario with the file beside it; ``extras``: keys it needs.

    ``topology``: the file of the fabric to run on, if it is to be none of the lab's.
    """
    fabric = None if topology is None else _fabric(topology)
    workload = None
    try:
        workload = _workload(path, extras)
    except TraceError as error:
        if topology is None and is_file(path):
            fabric = _fabric(path, is_sure=path.suffix in fabrics.SUFFIXES)
        if topology is not None or fabric is None:
            cure = (
                f"{error.cure}; or a fabric: {fabrics.KNOWN}" if error.cure == KNOWN else error.cure
            )
            raise ScenarioError(error.message, cure) from None
    except TrafficError as error:
        raise ScenarioError(error.message, error.cure) from None
    parts = [part for part in (workload, fabric) if part is not None]
    if workload is not None and fabric is not None and workload.ranks > fabric.ranks:
        raise ScenarioError(
            f"{path} has {workload.ranks} ranks, and {topology} {fabric.ranks} hosts",
            "Bring it on a larger fabric, or on the lab's own.",
        )
    if out.exists():
        raise RunError(f"{out} is there already", "Name another folder with --out.")
    try:
        out.mkdir(parents=True)
        for file in (file for part in parts for file in part.files):
            shutil.copyfile(file, out / file.name)
        scenario = out / "scenario.yaml"
        scenario.write_text(yaml.safe_dump(_scenario(path, workload, fabric), sort_keys=False))
    except OSError as error:
        raise RunError(f"{out} cannot be written: {error.strerror}") from None
    return Brought([line for part in parts for line in part.told], scenario)


def _workload(path: Path, extras: dict[str, Any]) -> _Part:
    kind = kind_of(path)
    if kind == "msccl" and "bytes" not in extras:
        raise SpecError(f"{path}: MSCCL's schedules are for any size", "say it: --bytes 1MB")
    key = ChakraSpec.FILE if kind == "chakra" else TraceSpec.FILE
    section = {"kind": kind, key: str(path), **extras}
    spec = read_traffic(section)
    assert isinstance(spec, TraceSpec)
    schedule = spec.schedule(Site(_GUESSED_HOSTS))
    ranks = 1 + max(chain(schedule.src, schedule.dst))
    files = files_of(path) if kind == "chakra" else [path]
    section[key] = files[0].name if path.is_dir() else path.name
    if groups := extras.get("groups"):
        files.append(Path(groups))
        section["groups"] = Path(groups).name
    return _Part(section, files, _told(kind, ranks, schedule), ranks, WHAT[kind])


def _told(kind: str, ranks: int, plan: Schedule) -> list[str]:
    messages = [at for at in range(len(plan)) if plan.src[at] != plan.dst[at]]
    sent = sum(plan.size[at] for at in messages)
    names = [activity.name for activity in plan.activities if activity.kind == "collective"]
    busiest = max(
        (sum(plan.delay_ns[at] for at in plan.starts(rank) if plan.src[at] == plan.dst[at]))
        for rank in range(plan.ranks)
    )
    told = [f"{WHAT[kind]}: {ranks} ranks, {len(messages):,} messages, {size(sent)}"]
    if names:
        ops = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
        told.append(f"collectives: {ops}")
    if busiest:
        told.append(f"a rank computes for up to {duration(busiest)}")
    return told


def _fabric(path: Path, *, is_sure: bool = True) -> _Part | None:
    """The fabric of a file; None if it is none, and need not be one."""
    try:
        kind, imported = fabrics.described(path)
    except TopologyError as error:
        if isinstance(error, fabrics.NoFabricError) and not is_sure:
            return None
        raise ScenarioError(str(error)) from None
    told = f"{fabrics.WHAT[kind]}: {_counted(imported)}"
    section = {"kind": "file", "path": path.name}
    return _Part(section, [path], [told], len(imported.fabric.hosts), fabrics.WHAT[kind])


def _counted(imported: Imported) -> str:
    fabric = imported.fabric
    kinds = [switch.kind for switch in fabric.switches]
    tiers = (
        (kinds.count(kind), kind.name.lower())
        for kind in (NodeKind.LEAF, NodeKind.SPINE, NodeKind.CORE)
    )
    told = [_several(len(fabric.hosts), "host")]
    told += [_several(count, name) for count, name in tiers if count]
    return ", ".join([*told, _several(len(fabric.links), "cable")])


def _several(count: int, name: str) -> str:
    many = "leaves" if name == "leaf" else f"{name}s"
    return f"{count:,} {name if count == 1 else many}"


def _scenario(path: Path, workload: _Part | None, fabric: _Part | None) -> dict[str, Any]:
    """A fabric with a host for each rank, every uplink's worth of them below a leaf."""
    about = workload or fabric
    assert about is not None
    below = min(_HOSTS_PER_LEAF, max(1, -(-about.ranks // 2)))
    ours = {
        "kind": "leaf-spine", "leaves": max(2, -(-about.ranks // below)), "spines": below,
        "hosts_per_leaf": below,
    }  # fmt: skip
    named = re.sub("[^a-z0-9]+", "-", path.name.partition(".")[0].lower()).strip("-")
    return {
        "name": named or about.section["kind"],
        "about": f"{about.about[0].upper()}{about.about[1:]}, brought from {path.name}.",
        "topology": fabric.section if fabric else ours,
        "link": {"rate_gbps": 100, "delay_ns": 1000, "mtu": 4096},
        "buffer": {"bytes": "16MB"},
        "traffic": workload.section if workload else {"kind": "permutation", "bytes": _TRIED_BYTES},
    }

"""Somebody's workload, brought as a scenario: the file is looked at, and copied beside it."""

from __future__ import annotations

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from controller import RoomError
from files import is_file
from lab.errors import LabError, RunError, ScenarioError
from lab.scenario import catalogue, fabrics, near
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from lab.scenario.traffic import read_traffic
from params.data import Data
from params.quantity import duration, size
from topologies import Imported, NodeKind, TopologyError
from traffic.collectives import Schedule, Site, SpecError, TrafficError
from traffic.traces import ChakraSpec, TraceError, TraceSpec, UnknownKindError, kind_of
from traffic.traces.chakra import files_of
from traffic.traces.guess import KNOWN

_HOSTS_PER_LEAF = 8
_GUESSED_HOSTS = 1 << 16
_SCENARIO = "scenario.yaml"
WHAT = {
    "table": "flows in a table",
    "htsim": "a connection matrix of htsim",
    "ns3": "flows of ns-3",
    "goal": "a schedule in GOAL",
    "chakra": "execution traces of Chakra",
    "msccl": "a collective's schedule of MSCCL",
    "aicb": "a workload of AICB",
}


_TRIED_BYTES = "1MB"  # that each host sends another, on a fabric brought alone


class Brought(Data):
    """What files turned out to be, and the scenario that was written."""

    notes: list[str]
    scenario: Path

    def lines(self) -> list[str]:
        """What there is to say of it."""
        shown = str(self.scenario)
        named = shlex.quote(f"./{shown}" if shown.startswith("-") else shown)
        return [*self.notes, f"Try: closlab run {named} --engine sim"]


class _Part(Data):
    """A section of the scenario, and what there is to say of it."""

    section: dict[str, Any]
    files: list[Path]
    named: dict[str, Path]  # those that the section names, by its keys
    notes: list[str]
    ranks: int
    about: str

    def naming(self, names: Mapping[Path, str]) -> dict[str, Any]:
        """The section, its files called so."""
        return {**self.section, **{key: names[file] for key, file in self.named.items()}}


def import_workload(
    path: Path, out: Path, extras: dict[str, Any], topology: Path | None = None
) -> Brought:
    """Look at a file, and write a scenario with the file beside it; ``extras``: keys it needs.

    ``topology``: the file of the fabric to run on, if it is to be none of the lab's. What is
    written has been made as ``closlab run`` makes it: what would not run is refused here.
    """
    fabric = None if topology is None else _fabric(topology)
    workload = None
    try:
        workload = _workload(path, extras)
    except TraceError as error:
        is_unknown = isinstance(error, UnknownKindError)
        if topology is None and is_file(path):
            fabric = _fabric(path, is_sure=is_unknown and path.suffix in fabrics.SUFFIXES)
        if topology is not None or fabric is None:
            cure = _cure(path, fabrics_too=topology is None) if is_unknown else error.cure
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
    files = list(dict.fromkeys(file for part in parts for file in part.files))
    memory = _checked(_scenario(path, workload, fabric, {file: str(file) for file in files}))
    names = _names(files)
    content = _scenario(path, workload, fabric, names) | {"buffer": memory}
    try:
        out.mkdir(parents=True)
        for file, name in names.items():
            shutil.copyfile(file, out / name)
        scenario = out / _SCENARIO
        scenario.write_text(yaml.safe_dump(content, sort_keys=False))
    except OSError as error:
        raise RunError(f"{out} cannot be written: {error.strerror}") from None
    return Brought([line for part in parts for line in part.notes], scenario)


def _cure(path: Path, *, fabrics_too: bool) -> str:
    """What a file of no known kind is nearest to, and what there is."""
    known = f"{KNOWN}; or a fabric: {fabrics.KNOWN}" if fabrics_too else KNOWN
    kinds = (*near.WORKLOADS, *near.FABRICS) if fabrics_too else near.WORKLOADS
    nearest = near.nearest_kinds(path, kinds)
    return f"nearest to it is {nearest}\n{known}" if nearest else known


def _names(files: list[Path]) -> dict[Path, str]:
    """What files are called beside the scenario: as they were, each once."""
    names: dict[Path, str] = {}
    for file in files:
        name = file.name
        while name in (_SCENARIO, *names.values()):
            name = f"brought-{name}"
        names[file] = name
    return names


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    """Refuse a scenario that would not run; the memory with which it does."""
    memory = dict(content["buffer"])
    for _ in NodeKind:  # one kind of switch after the other says what it needs
        try:
            catalogue.check(Scenario.model_validate(content | {"buffer": memory}))
        except RoomError as error:
            memory["bytes"] = f"{-(-error.enough // 10**6)}MB"
        except (ValueError, LabError, TrafficError):
            break  # which is said below
    Experiment.of(catalogue.made(content | {"buffer": memory}))
    return memory


def _workload(path: Path, extras: dict[str, Any]) -> _Part:
    kind = kind_of(path)
    if kind == "msccl" and "bytes" not in extras:
        raise SpecError(f"{path}: MSCCL's schedules are for any size", "say it: --bytes 1MB")
    key = ChakraSpec.FILE if kind == "chakra" else TraceSpec.FILE
    section = {"kind": kind, key: str(path), **extras}
    spec = read_traffic(section)
    assert isinstance(spec, TraceSpec)
    schedule = spec.own_schedule(Site(_GUESSED_HOSTS))
    # A table says of no more hosts than it names.
    ranks = 1 + max(chain(schedule.src, schedule.dst)) if kind == "table" else schedule.ranks
    files = files_of(path) if kind == "chakra" else [path]
    named = {key: files[0] if path.is_dir() else path}
    if groups := extras.get("groups"):
        named["groups"] = Path(groups)
    lines, remarks = _lines(kind, ranks, schedule), spec.remarks()
    if not any(src != dst for src, dst in zip(schedule.src, schedule.dst, strict=True)):
        nothing = "nothing in it goes from one rank to another, and so over no fabric"
        raise TraceError(f"{path} comes to no message", "; ".join(remarks) or nothing)
    files = list(dict.fromkeys([*files, *named.values()]))
    return _Part(section, files, named, [*lines, *remarks], ranks, WHAT[kind])


def _lines(kind: str, ranks: int, plan: Schedule) -> list[str]:
    messages = [at for at in range(len(plan)) if plan.src[at] != plan.dst[at]]
    sent = sum(plan.size[at] for at in messages)
    names = [activity.name for activity in plan.activities if activity.kind == "collective"]
    busiest = max(
        (sum(plan.delay_ns[at] for at in plan.starts(rank) if plan.src[at] == plan.dst[at]))
        for rank in range(plan.ranks)
    )
    lines = [f"{WHAT[kind]}: {ranks} ranks, {len(messages):,} messages, {size(sent)}"]
    if names:
        ops = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
        lines.append(f"collectives: {ops}")
    if busiest:
        lines.append(f"a rank computes for up to {duration(busiest)}")
    return lines


def _fabric(path: Path, *, is_sure: bool = True) -> _Part | None:
    """The fabric of a file; None if it is none, and need not be one."""
    try:
        kind, imported, beside, notes = fabrics.described(path)
    except fabrics.NoFabricError as error:
        nearest = near.nearest_kinds(path, near.FABRICS)
        if not is_sure:
            return None
        raise ScenarioError(str(error), f"nearest to it is {nearest}" if nearest else "") from None
    except TopologyError as error:
        raise ScenarioError(str(error)) from None
    what = fabrics.WHAT[kind]
    lines = [f"{what}: {_counted(imported)}"]
    if beside:
        lines.append(f"described beside it: {', '.join(file.name for file in beside)}")
    lines += notes
    section = {"kind": "file"}
    hosts = len(imported.fabric.hosts)
    return _Part(section, [path, *beside], {"path": path}, lines, hosts, what)


def _counted(imported: Imported) -> str:
    fabric = imported.fabric
    kinds = [switch.kind for switch in fabric.switches]
    tiers = (
        (kinds.count(kind), kind.name.lower())
        for kind in (NodeKind.LEAF, NodeKind.SPINE, NodeKind.CORE)
    )
    counts = [_several(len(fabric.hosts), "host")]
    counts += [_several(count, name) for count, name in tiers if count]
    rates = Counter(link.speed.rate_bps for link in fabric.links if link.speed.rate_bps)
    at = ", ".join(f"{count:,} at {bps / 10**9:,g} Gb/s" for bps, count in sorted(rates.items()))
    return ", ".join([*counts, _several(len(fabric.links), "cable") + (f" ({at})" if at else "")])


def _several(count: int, name: str) -> str:
    many = "leaves" if name == "leaf" else f"{name}s"
    return f"{count:,} {name if count == 1 else many}"


def _scenario(
    path: Path, workload: _Part | None, fabric: _Part | None, names: Mapping[Path, str]
) -> dict[str, Any]:
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
        "topology": fabric.naming(names) if fabric else ours,
        "link": {"rate_gbps": 100, "delay_ns": 1000, "mtu": 4096},
        "buffer": {"bytes": "16MB"},
        "traffic": workload.naming(names)
        if workload
        else {"kind": "permutation", "bytes": _TRIED_BYTES},
    }

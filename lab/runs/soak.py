"""A fabric on Mininet that stays up for long, under faults by lot: is it at the end what it was?

Round after round its hosts do the same all-reduce; every fourth time nothing is done to it, the
others have faults, all of which let go. The rounds without faults tell its throughput, at the start
and at the end, and after each round it is counted what all processes in the sandbox have: memory,
descriptors, threads, and files.
"""

from __future__ import annotations

import csv
import os
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from lab.engines import RunOptions
from lab.results import conservation
from lab.runs.chaos import Faults, a_fault, quiet
from lab.runs.emulate import emulate
from lab.runs.run import assembled
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from params.data import Data

if TYPE_CHECKING:
    from lab.engines.mininet.engine import EmulatedFabric

_LEAVES, _SPINES, _HOSTS_PER_LEAF = 2, 2, 2
_CALM = 4  # of so many rounds one has no faults
_SHARE = 0.25  # of the rounds: the start, and the end
_SLOWER = 0.05
# What may be more at the end; of all else nothing. What switches record grows up to two files;
# gRPC keeps as many threads as it once needed; and a switch's port takes three descriptors more
# when it first has to send many frames at once.
_GROWTH = {
    "threads": 4,
    "memory_bytes": 16 << 20,
    "files": 1,
    "file_bytes": 130_000_000,
    "descriptors": 3 * (2 * _LEAVES * _SPINES + _LEAVES * _HOSTS_PER_LEAF),
}
_Each = TypeVar("_Each")
_FIRST_ROUNDS = 8  # until all that is kept has been used once


class Held(Data):
    """What all processes of a sandbox have together."""

    processes: int
    threads: int
    descriptors: int
    memory_bytes: int  # of their own, unlike what they share with files
    files: int
    file_bytes: int

    @classmethod
    def now(cls, folder: Path) -> Held:
        """As it is, and what is in a folder."""
        counted = [each for each in map(_held_by, Path("/proc").glob("[0-9]*")) if each]
        sizes = []
        for path in folder.rglob("*"):
            with suppress(OSError):
                if path.is_file():
                    sizes.append(path.stat().st_size)
        threads, descriptors, memory_bytes = map(sum, zip(*counted, strict=True))
        return cls(len(counted), threads, descriptors, memory_bytes, len(sizes), sum(sizes))


def _held_by(process: Path) -> tuple[int, int, int] | None:
    """A process's threads, descriptors and memory; None if it is gone."""
    try:
        pages, shared = map(int, (process / "statm").read_text().split()[1:3])
        threads, descriptors = (len([*(process / name).iterdir()]) for name in ("task", "fd"))
    except OSError:
        return None
    return threads, descriptors, (pages - shared) * os.sysconf("SC_PAGE_SIZE")


class Round(Data):
    """One all-reduce."""

    number: int
    at_s: float
    took_s: float
    faults: int
    jct_ns: int | None
    is_believed: bool
    held: Held

    def row(self) -> dict[str, object]:
        """As a line of a table."""
        return {**{name: value for name, value in asdict(self).items() if name != "held"},
                **asdict(self.held)}  # fmt: skip


def scenario_of(seed: int) -> dict[str, Any]:
    """What is run all the time."""
    return {
        "name": f"soak-{seed}",
        "about": f"What closlab chaos --for runs, with seed {seed}.",
        "topology": {
            "kind": "leaf-spine", "leaves": _LEAVES, "spines": _SPINES,
            "hosts_per_leaf": _HOSTS_PER_LEAF,
        },
        "traffic": {
            "kind": "collective", "op": "all-reduce", "algorithm": "ring", "bytes": "2MB"
        },
        "transport": {"recovery": "selective", "rto_ns": "200us", "retry_limit": 250},
        "reroute_ns": "20us",
        "measures": {"series": False},
        "seed": seed,
    }  # fmt: skip


def faults_of(seed: int, number: int) -> Faults:
    """What happens in a round: none of it for good."""
    if number % _CALM == 0:
        return []
    rng = random.Random(f"{seed}/{number}")  # noqa: S311
    hosts = _LEAVES * _HOSTS_PER_LEAF
    names = range(1, _LEAVES + 1), range(1, _SPINES + 1)
    faults = [
        fault
        for _ in range(rng.randrange(1, 4))
        for fault in a_fault(
            rng,
            [f"leaf{leaf}-spine{spine}" for leaf in names[0] for spine in names[1]],
            [f"h{n + 1}-leaf{n // _HOSTS_PER_LEAF + 1}" for n in range(hosts)],
            [*(f"leaf{n}" for n in names[0]), *(f"spine{n}" for n in names[1])],
            hosts,
        )
    ]
    usual = {"for_ns": "100us"}
    return [fault if fault["action"] == "restart" else usual | fault for fault in faults]


def soak(seed: int, for_s: float, out: Path, say: Callable[[str], None]) -> int:
    """Keep a fabric busy for so long; the exit code: whether what must hold did."""

    def attend(up: EmulatedFabric, experiment: Experiment, _name: str) -> int:
        rounds: list[Round] = []
        complaints, began = [], time.monotonic()
        with (out / "soak.csv").open("w", newline="") as file:
            table: csv.DictWriter[str] | None = None
            while time.monotonic() - began < for_s or len(rounds) < 2 * _FIRST_ROUNDS:
                one, wrong = _round(up, experiment, seed, len(rounds), began, options)
                rounds.append(one)
                if table is None:
                    table = csv.DictWriter(file, one.row().keys())
                    table.writeheader()
                table.writerow(one.row())
                file.flush()
                for what in wrong:
                    say(f"round {one.number}: {what}")
                complaints += wrong
                if one.number % 20 == 0:
                    say(_line(one))
        found = judged(rounds)
        for what in found:
            say(what)
        say(summary(rounds))
        return 1 if found or complaints else 0

    options = RunOptions(out=out, engine="mininet")
    scenario = catalogue.made(scenario_of(seed))
    return emulate(
        scenario, options, quiet(), lambda *_: 0, lambda error: say(error.message), attend
    )


def _round(
    up: EmulatedFabric,
    experiment: Experiment,
    seed: int,
    number: int,
    began: float,
    options: RunOptions,
) -> tuple[Round, list[str]]:
    faults = faults_of(seed, number)
    begins = time.monotonic()
    chosen = catalogue.made(scenario_of(seed) | {"faults": faults})
    now = replace(up, experiment=Experiment.of(chosen))
    outcome = now.measure()
    wrong = conservation.violations(experiment.fabric, outcome) + now.strays(outcome.end_ns)
    result = assembled(now.experiment, outcome, options)
    if outcome.fidelity.ok and (result.flows.failed or outcome.ended):  # else it is told why
        wrong.append(f"{result.flows.failed} messages did not arrive: {outcome.ended}")
    took_s = time.monotonic() - begins
    return Round(
        number, round(begins - began, 2), round(took_s, 2), len(faults), result.jct_ns,
        outcome.fidelity.ok, Held.now(options.out),
    ), wrong  # fmt: skip


def _line(one: Round) -> str:
    held = one.held
    return (
        f"round {one.number}, {one.at_s:,.0f} s: {(one.jct_ns or 0) / 1e3:,.1f} us, "
        f"{held.processes} processes, {held.threads} threads, {held.descriptors} descriptors, "
        f"{held.memory_bytes / 1e6:,.1f} MB, {held.files} files of {held.file_bytes / 1e6:,.1f} MB"
    )


def _ends(several: Sequence[_Each]) -> tuple[Sequence[_Each], Sequence[_Each]]:
    """The first of several, and the last."""
    count = max(1, round(_SHARE * len(several)))
    return several[:count], several[-count:]


def _calm_jct_ns(rounds: Iterable[Round]) -> tuple[float, float] | None:
    """How long one took at the start and at the end, of those that tell: without faults, and to be
    believed; None if there are none.
    """
    durations = [one.jct_ns for one in rounds if not one.faults and one.jct_ns and one.is_believed]
    if not durations:
        return None
    first, last = _ends(durations)
    return median(first), median(last)


def judged(rounds: Sequence[Round]) -> list[str]:
    """What has changed between start and end that should not have."""
    found = []
    calm = _calm_jct_ns(rounds)
    if calm is None:
        return ["no round without faults was to be believed: the machine could not keep up"]
    first, last = calm
    if abs(first / last - 1) > _SLOWER:
        found.append(f"throughput at the end is {first / last:.1%} of that at the start")
    early, late = _ends(rounds[min(_FIRST_ROUNDS, len(rounds) // 2) :])
    for name in (each.name for each in fields(Held)):
        before, after = (min(getattr(one.held, name) for one in some) for some in (early, late))
        if after > before + _GROWTH.get(name, 0):
            found.append(f"{name.replace('_', ' ')} grew from {before:,} to {after:,}")
    return found


def summary(rounds: Sequence[Round]) -> str:
    """What came of it, in a line."""
    faults = sum(one.faults for one in rounds)
    doubtful = sum(not one.is_believed for one in rounds)
    said = f"{len(rounds)} all-reduces, {faults} faults, {doubtful} rounds not to be believed"
    if calm := _calm_jct_ns(rounds):
        first, last = calm
        said += f"; without faults {first / 1e3:,.1f} us at the start, {last / 1e3:,.1f} at the end"
    return said

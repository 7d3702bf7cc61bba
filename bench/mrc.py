"""`closlab bench mrc`: a ring all-reduce of 64 hosts by RoCEv2 and by MRC, as in MRC's figure 16.

    closlab bench mrc [--bytes 4MB,16MB,64MB] [--seeds N] [--racks N] [--jobs N] [--out DIR]

Eight racks of eight hosts at 400 Gb/s and eight spines, 500 ns a cable. Each hop of the ring leads
to another rack, and each host reduces over sixteen channels. What is compared is how these reach
the next host: by one queue pair, whose packets all take the one way that its hash chooses (ecmp),
by a queue pair for each channel, or by one MRC connection over 256 ways; RoCEv2 with PFC and no
congestion control, with which it came furthest here, MRC with trimming and NSCC. MRC's authors ran
it on 64 adapters with messages from 4 MB to 16 GB (arXiv 2605.04333, figure 16).

Beside the measured bandwidth stands a bound that no transport passes. It follows from the fabric
alone: a host has its whole share on its cable, frame by frame; and of a round no packet leaves
before those of the round before have come.

The folder has a report with the plot, a table of all figures (sweep.csv), and by its number each
run that was made for it: figures are kept (`bench/kept.py`), and who was interrupted goes on from
there. Seeds have hashes and losses of their own. The exit code is 0 if what figure 16 says holds
here, of each seed.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from pydantic import TypeAdapter, ValidationError
from rich.console import Console
from rich.table import Table

from bench.kept import figures
from lab.progress import Stages
from lab.runs.sweep import Variant, lay_out, make, run_one
from lab.scenario import catalogue
from lab.scenario.model import Scenario
from params.data import Data
from params.quantity import percent, size
from params.units import Size
from views.report.sweep import Sweep

_BUSBW = "collective.busbw_gbps"
_RATE_GBPS, _DELAY_NS, _MTU, _CHANNELS = 400, 500, 4096, 16
# The least a packet takes beside its payload: Ethernet, IPv4, UDP, BTH, ICRC; FCS, preamble, gap.
_BESIDE = 14 + 20 + 8 + 12 + 4 + 24
_LINKS = 4  # from host to host

_PAUSED = "pfc.enabled=true", "ecn.enabled=false", "lb.policy=ecmp"
_CUT = (
    *("pfc.enabled=false", "trim={enabled: true, threshold: 400KB}", "lb.policy=structured"),
    "ecn={enabled: true, kmin: 80KB, kmax: 320KB, pmax: 1}",
    "schedule={kind: ets, weights: {3: 3, 5: 1}}",
    "transport={kind: mrc, cc: nscc, entropies: 256, timeout: 10, queue_pairs: 1}",
)
ONE, MANY, MRC, LOSSY = "RoCEv2 x 1", "RoCEv2 x 16", "MRC", "MRC with 0.1 % lost"
SCHOOLS: Mapping[str, tuple[str, ...]] = {
    ONE: (*_PAUSED, "transport={kind: roce, queue_pairs: 1}"),
    MANY: (*_PAUSED, f"transport={{kind: roce, queue_pairs: {_CHANNELS}}}"),
    MRC: _CUT,
    LOSSY: (*_CUT, "loss.rate=0.001"),
}


class Fabric(Data):
    """So many racks of so many hosts, and as many spines."""

    racks: int

    @property
    def hosts(self) -> int:
        """How many the ring has."""
        return self.racks**2

    def changes(self) -> tuple[str, ...]:
        """What makes it of the scenario allreduce-ring; the next host is always in another rack."""
        n = self.racks
        ranks = ", ".join(f"h{n * rack + at + 1}" for at in range(n) for rack in range(n))
        return (
            f"topology={{kind: leaf-spine, leaves: {n}, spines: {n}, hosts_per_leaf: {n}}}",
            f"link={{rate_gbps: {_RATE_GBPS}, delay_ns: {_DELAY_NS}, mtu: {_MTU}}}",
            "buffer.bytes=32MB",
            f"traffic.channels={_CHANNELS}",
            f"traffic.ranks=[{ranks}]",
            "measures={series: false, flows: false}",
        )

    def bound_gbps(self, reduced: float) -> float:
        """The most bus bandwidth that a ring can have."""
        rounds = 2 * (self.hosts - 1)
        whole_ns = rounds / self.hosts * reduced * (1 + _BESIDE / _MTU) * 8 / _RATE_GBPS
        packet_ns = (_MTU + _BESIDE) * 8 / _RATE_GBPS
        message = reduced / self.hosts / _CHANNELS
        packet_ns = min(packet_ns, (message + _BESIDE) * 8 / _RATE_GBPS)
        message_ns = message * (1 + _BESIDE / _MTU) * 8 / _RATE_GBPS
        round_ns = message_ns + (_LINKS - 1) * packet_ns + _LINKS * _DELAY_NS
        return rounds / self.hosts * reduced * 8 / max(whole_ns, rounds * round_ns)


def load(fabric: Fabric, changes: tuple[str, ...]) -> Scenario:
    """The ring, by a school that is given by its name (school=...)."""
    schools = [change.partition("=")[2] for change in changes if change.startswith("school=")]
    others = tuple(change for change in changes if not change.startswith("school="))
    scenario = catalogue.load(
        "allreduce-ring",
        (*fabric.changes(), *(own for school in schools for own in SCHOOLS[school]), *others),
    )
    about = f"{fabric.hosts} hosts at {_RATE_GBPS} Gb/s reduce around a ring, rack by rack."
    return scenario.model_copy(update={"name": "ring-by-transport", "about": about})


Found = Mapping[str, Mapping[float, list[float]]]  # by school and bytes: Gb/s, of each seed


def found_in(sweep: Sweep) -> Found:
    """What a sweep found."""
    found: dict[str, dict[float, list[float]]] = {}
    for run in sweep.runs:
        school, reduced = run.values[0], float(_bytes(run.values[1]))
        found.setdefault(school, {}).setdefault(reduced, []).append(run.figures[_BUSBW])
    return found


def sayings(found: Found, bounds: Mapping[float, float]) -> dict[str, bool]:
    """What figure 16 says, and whether it holds of these, whatever the seed."""
    largest = max(bounds)
    kept = min(found[LOSSY][largest]) / max(found[MRC][largest])
    least = min(min(found[MRC][at]) / bound for at, bound in bounds.items())
    most = max(max(found[ONE][at]) / _RATE_GBPS for at in bounds)
    schools = list(pairwise((ONE, MANY, MRC)))
    return {
        f"one queue pair has at most half of the line rate: {percent(most)}": most <= 0.5,
        "the order of the schools is the same at every size": all(
            max(found[one][at]) < min(found[other][at]) for one, other in schools for at in bounds
        ),
        f"MRC has at least 90 % of the bound: {percent(least)}": least >= 0.9,
        f"of {size(largest)} a loss of 0.1 % costs MRC at most 5 %: {percent(1 - kept)}": kept
        >= 0.95,
    }


def _bytes(text: str) -> int:
    found: int = TypeAdapter(Size).validate_python(text)
    return found


def _sizes(text: str) -> list[str]:
    sizes = text.split(",")
    try:
        wrong = [each for each in sizes if not _bytes(each)]
    except ValidationError as error:
        raise argparse.ArgumentTypeError(str(error.errors()[0]["ctx"]["error"])) from None
    if wrong or len(set(sizes)) < len(sizes):
        raise argparse.ArgumentTypeError(f"{text}: write each size once, and no 0")
    return sizes


def _table(found: Found, bounds: Mapping[float, float]) -> Table:
    table = Table("bus bandwidth, Gb/s", *(size(at) for at in bounds))
    for school, points in found.items():
        table.add_row(school, *(_read(points[at]) for at in bounds))
    table.add_row("the bound", *(f"{bound:.1f}" for bound in bounds.values()))
    return table


def _read(rates: Sequence[float]) -> str:
    if len(rates) == 1:
        return f"{rates[0]:.1f}"
    return f"{fmean(rates):.1f} ({min(rates):.1f} to {max(rates):.1f})"


class _Failed(Exception):  # noqa: N818  (it says what failed)
    """What went wrong with a run."""


def known_or_run(variant: Variant) -> dict[str, float] | str:
    """A run's figures, or what went wrong; run if they are not known."""

    def run() -> str:
        found = run_one(variant)
        if isinstance(found, str):
            raise _Failed(found)
        return json.dumps(found)

    try:
        found: dict[str, float] = json.loads(figures("mrc", variant.scenario, run))
    except _Failed as failure:
        return str(failure)
    return found


def main(words: Sequence[str]) -> int:
    """Measure, draw and print."""
    parser = argparse.ArgumentParser(prog="closlab bench mrc")
    usual = "4MB,16MB,64MB"
    parser.add_argument("--bytes", type=_sizes, default=usual, metavar="SIZE,SIZE", help=usual)
    for option, value, least, most in (
        ("seeds", "runs of each", 1, 100),
        ("racks", "of as many hosts", 2, 16),
        ("jobs", "runs at once, or a processor each", 1, 256),
    ):
        span = range(least, most + 1)
        parser.add_argument(f"--{option}", type=int, choices=span, metavar="N", help=value)
    parser.set_defaults(seeds=1, racks=8)
    parser.add_argument("--out", type=Path, default=Path("runs/bench-mrc"), metavar="DIR")
    given = parser.parse_args(words)
    fabric, sizes = Fabric(given.racks), given.bytes
    varied = [
        [f"school={school}" for school in SCHOOLS],
        [f"traffic.bytes={each}" for each in sizes],
    ]
    if given.seeds > 1:
        varied.append([f"seed={seed}" for seed in range(1, given.seeds + 1)])
    grid = lay_out(
        lambda changes: load(fabric, changes),
        (),
        varied,
        given.out,
        command=shlex.join(("closlab", "bench", "mrc", *words)),
        bounds={_BUSBW: {each: fabric.bound_gbps(_bytes(each)) for each in sizes}},
    )
    given.out.mkdir(parents=True, exist_ok=True)
    made = make(grid, given.jobs, Stages(Console(stderr=True)), simulate=known_or_run)
    for failure in made.failures:
        print(failure)
    if made.found is None or len(made.done) < len(grid.variants):
        return 1
    found = found_in(made.found)
    bounds = {float(_bytes(each)): fabric.bound_gbps(_bytes(each)) for each in sizes}
    Console(width=110).print(_table(found, bounds))
    held = sayings(found, bounds)
    for saying, holds in held.items():
        print(f"{'holds' if holds else 'FAILS'}: {saying}")
    print(f"With the plot: {given.out}/report.html")
    return 0 if all(held.values()) else 1

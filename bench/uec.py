"""`closlab bench uec`: UET here beside the published figures of UET's reference simulator, htsim.

    closlab bench uec [NAME...] [--all] [--seeds N] [--matrix FILE.cm] [--json FILE]

Messages of 2 MB at 100 Gb/s through three tiers of a fat-tree, 1 us a hop, packets of 4,096 bytes,
queues of 43 packets (a bandwidth-delay product) that trim, marks from 9 to 35 of them, what is cut
before everything else, as htsim has all of that. The figure is when the last sender has its last
acknowledgement, in microseconds; htsim's are those that its repository keeps as what its tests
must give (validate_outputs). Whom the permutation pairs, and which hash chooses ways, are our own:
what flows that keep one way come to, is by lot. A packet takes 4,222 bytes of a wire (headers of
98, a CRC, and what Ethernet adds) for 4,096 of a message, where htsim counts 4,150 for 4,086: 1.5 %
more. With --all those of 1,024 hosts as well, a minute or so each.

One figure is one draw of hashes and pairs. With --seeds every row is run with so many, from 1 on,
and what stands against htsim's figure is their median, with the least and the most beside it; with
--matrix permutations of 1,024 hosts pair whom a file of htsim's pairs.

Where a row is more than 5 % off, the reason stands below the table, with what htsim itself comes to
by another draw, or in a fabric that is like ours in that. A row that is off these too makes the
command fail.

A figure follows from closlab's code and the row's settings alone, and is kept (`bench/kept.py`):
who was interrupted goes on from there.

Slow links: by name they have a tenth of their rate in htsim, by its source (fat_tree_topology.cpp)
a quarter, and only on the way from eight cores down to one switch of the first pod, as here. Its
slow queue is a quarter as long as well, with marks from a quarter on; so is it here, by
buffer.follow_rate.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.kept import figures
from lab.engines import RunOptions
from lab.progress import Stages
from lab.runs.run import keep, outcome_of
from lab.scenario import catalogue
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario

_TOLERANCE = 0.05
_PACKET = 4_198
_FABRIC = (
    *("buffer.bytes=64MB", "buffer.lossy_alpha=1", "transport.kind=uet", "measures.series=false"),
    f"trim={{enabled: true, threshold: {43 * _PACKET}, reserved: {86 * _PACKET}}}",
    f"ecn={{enabled: true, kmin: {9 * _PACKET}, kmax: {35 * _PACKET}, pmax: 1}}",
    "pfc.enabled=false",
)
_ONE = "traffic={kind: flows, flows: [{src: h1, dst: h128, bytes: 2MB}]}"
_SLOW_LINKS = ", ".join(  # all that lead down to one of a pod's switches
    f"{{at_ns: 0, action: slow, link: spine1-core{core}, share: 0.25, direction: down}}"
    for core in range(1, 9)
)
_SLOW = f"faults=[{_SLOW_LINKS}]", "reroute_ns=0", "buffer.follow_rate=true"


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of htsim's, and what gives ours."""

    name: str
    published_us: float
    k: int
    changes: tuple[str, ...]
    reason: str = ""  # why ours may be another
    others_us: tuple[float, ...] = ()  # what htsim comes to for that reason


def _incast(senders: int) -> str:
    return f"traffic={{kind: incast, senders: {senders}, bytes: 2MB}}"


def _permutation(name: str, published_us: float, k: int, entropy: str, *more: str) -> Row:
    changes = ("traffic={kind: permutation, bytes: 2MB}", f"transport.entropy={entropy}", *more)
    return Row(name, published_us, k, ("transport.cc=nscc", *changes))


_EVEN = (
    "128 entropies are 128 neighbouring UDP ports; of these the CRC of a leaf here sends 16 by "
    "each of its eight ways, htsim's hash 3 to 32. With 16 by each, which is one line of its "
    "fat_tree_switch.cpp, htsim takes {}."
)
_BY_LOT = "which flows share a way is by lot: with -seed 1 to 7 htsim takes {}."


ROWS = (
    Row("one flow, nscc", 176.2, 8, ("transport.cc=nscc", _ONE)),
    Row("one flow, rccc", 177.4, 8, ("transport.cc=rccc", _ONE)),
    Row("15 to 1, nscc", 2478.5, 4, ("transport.cc=nscc", _incast(15))),
    Row("15 to 1, rccc", 2464.0, 4, ("transport.cc=rccc", _incast(15))),
    Row("127 to 1, nscc", 21_029.0, 8, ("transport.cc=nscc", _incast(127))),
    Row("127 to 1, rccc", 20_891.0, 8, ("transport.cc=rccc", _incast(127))),
    _permutation("16 hosts, sprayed", 194.0, 4, "bitmap"),
    _permutation("16 hosts, one path", 527.8, 4, "single"),
    _permutation("1,024 hosts, oblivious", 212.8, 16, "oblivious"),
    _permutation("1,024 hosts, bitmap", 200.5, 16, "bitmap"),
    _permutation("1,024 hosts, reps", 198.2, 16, "reps"),
    replace(
        _permutation("1,024 hosts, one path", 889.9, 16, "single"),
        reason=_BY_LOT,
        others_us=(880.7, 1_003.3, 1_041.0, 1_013.0, 855.6, 1_059.5, 886.5),
    ),
    replace(
        _permutation("8 core links at a quarter, oblivious", 280.8, 16, "oblivious", *_SLOW),
        reason=_EVEN,
        others_us=(240.6,),
    ),
    _permutation("8 core links at a quarter, bitmap", 220.3, 16, "bitmap", *_SLOW),
    _permutation("8 core links at a quarter, reps", 206.7, 16, "reps", *_SLOW),
)
_LARGE = 16


@dataclass(frozen=True, slots=True)
class Measured:
    """A row, and what it came to here, run by run."""

    row: Row
    runs_us: tuple[float, ...]

    @property
    def us(self) -> float:
        """What stands against htsim's figure."""
        return median(self.runs_us)

    @property
    def difference(self) -> float:
        """How much more it is."""
        return self.us / self.row.published_us - 1

    @property
    def is_near(self) -> bool:
        """Whether it is htsim's figure, but for a little."""
        return abs(self.difference) <= _TOLERANCE

    @property
    def is_explained(self) -> bool:
        """Whether it is that, or among what htsim comes to for the row's reason."""
        known = (self.row.published_us, *self.row.others_us)
        return min(known) * (1 - _TOLERANCE) <= self.us <= max(known) * (1 + _TOLERANCE)

    @property
    def note(self) -> str:
        """Why it differs."""
        if not self.is_explained:
            return "no reason is known"
        return self.row.reason.format(", ".join(f"{us:,.1f}" for us in self.row.others_us))

    def record(self) -> dict[str, object]:
        """For machines."""
        return {
            "name": self.row.name,
            "htsim_us": self.row.published_us,
            "closlab_us": self.us,
            "difference": round(self.difference, 4),
            "runs_us": list(self.runs_us),
        }


def measured(row: Row, console: Console, seed: int, matrix: Path | None) -> float:
    """When all is over, in microseconds; simulated if it never was."""
    scenario = scenario_of(row, seed, matrix)
    pairs = matrix.read_bytes() if matrix else b""
    return float(figures("uec", scenario, lambda: str(simulated(scenario, console)), pairs))


def scenario_of(row: Row, seed: int, matrix: Path | None) -> Scenario:
    """What is run; a matrix pairs whom it says."""
    pairs = (f"traffic={{kind: htsim, file: {matrix.absolute()}}}",) if matrix else ()
    topology = f"topology={{kind: fat-tree, k: {row.k}}}"
    return catalogue.load("incast", (topology, *_FABRIC, *row.changes, *pairs, f"seed={seed}"))


def simulated(scenario: Scenario, console: Console) -> float:
    """When all is over, in microseconds."""
    experiment = Experiment.of(scenario)
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(out=Path(folder), engine="sim")
        result = keep(experiment, outcome_of(experiment, options, Stages(console)), options)
    assert result.flows.failed == 0, scenario
    return result.duration_ns / 1000


def main(words: list[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="closlab bench uec")
    parser.add_argument("names", nargs="*", help="rows whose names contain one of these")
    parser.add_argument("--all", action="store_true", help="those of 1,024 hosts as well")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="runs of each")
    parser.add_argument("--matrix", type=Path, metavar="FILE.cm", help="pairs of 1,024 hosts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures there as well")
    given = parser.parse_args(words)
    if given.seeds < 1:
        parser.error("--seeds must be positive")
    if given.matrix and not given.matrix.is_file():
        parser.error(f"there is no {given.matrix}")
    chosen = [
        row
        for row in ROWS
        if any(name in row.name for name in given.names)
        or (not given.names and (given.all or row.k < _LARGE))
    ]
    if not chosen:
        parser.error(f"no row is called so; there are: {'; '.join(row.name for row in ROWS)}")
    console = Console(stderr=True)
    table = Table("2 MB, 100 Gb/s", "htsim, us", "closlab, us", "least to most", "difference")
    done: list[Measured] = []
    for row in chosen:
        matrix = given.matrix if row.k == _LARGE else None
        seeds = range(1, given.seeds + 1)
        runs = tuple(measured(row, console, seed, matrix) for seed in seeds)
        figure = Measured(row, runs)
        done.append(figure)
        table.add_row(
            row.name,
            f"{row.published_us:,.1f}",
            f"{figure.us:,.1f}",
            f"{min(runs):,.1f} to {max(runs):,.1f}" if len(runs) > 1 else "",
            f"{figure.difference:+.1%}",
        )
        if given.json:
            given.json.write_text(json.dumps([each.record() for each in done], indent=1))
    shown = Console(width=110, highlight=False)
    shown.print(table)
    for figure in done:
        if not figure.is_near:
            shown.print(f"{figure.row.name}, {figure.difference:+.1%}: {figure.note}")
    return 0 if all(figure.is_explained for figure in done) else 1

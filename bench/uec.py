"""`closlab bench uec`: UET here beside the published figures of UET's reference simulator, htsim.

    closlab bench uec [NAME...] [--all] [--seeds N] [--matrix FILE.cm] [--json FILE]

Rows, figures and scenarios are those of `reproduce/uec-*`: messages of 2 MB at 100 Gb/s through
three tiers of a fat-tree. With --all those of 1,024 hosts as well, a minute or so each.

One figure is one draw of hashes and pairs. With --seeds every row is run with so many, from 1 on,
and what stands against htsim's figure is their median, with the least and the most beside it; with
--matrix permutations of 1,024 hosts pair whom a file of htsim's pairs.

Where a row is more than 5 % off, the reason stands below the table, with what htsim itself comes to
by another draw, or in a fabric that is like ours in that. A row that is off these too makes the
command fail.

A figure follows from closlab's code and the row's settings alone, and is kept (`bench/kept.py`):
who was interrupted goes on from there.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from functools import cache
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.kept import figures
from lab.engines import RunOptions
from lab.progress import Stages
from lab.reproduce.paper import Line, Reproduction, read
from lab.runs.run import keep, outcome_of
from lab.scenario.experiment import Experiment
from lab.scenario.model import Scenario
from params.data import Data

_TOLERANCE = 0.05
_LARGE = 16  # ways up from a switch, of a fabric that takes a minute
_PAPERS = {"uec-incast": "", "uec-permutation": "", "uec-slow-links": "8 core links at a quarter, "}
# What htsim itself takes, in microseconds, for a row's reason: by other seeds, or an even hash.
_OTHERS_US = {
    "1,024 hosts, one path": (880.7, 1_003.3, 1_041.0, 1_013.0, 855.6, 1_059.5, 886.5),
    "8 core links at a quarter, oblivious": (240.6,),
}


class Row(Data):
    """A figure of htsim's, and what gives ours."""

    name: str
    paper: Reproduction
    line: Line

    @property
    def case(self) -> str:
        """Which of its paper's."""
        return (self.line.ours or "").partition(".")[0]

    @property
    def published_us(self) -> float:
        """Htsim's figure."""
        return self.line.published[0] / 1000

    @property
    def others_us(self) -> tuple[float, ...]:
        """What htsim comes to otherwise, for the reason that the row has."""
        return _OTHERS_US.get(self.name, ())

    @property
    def is_large(self) -> bool:
        """Whether it takes a minute or so."""
        return getattr(self.paper.scenario_of(self.case, 1).topology, "k", 0) == _LARGE


@cache
def rows() -> tuple[Row, ...]:
    """All that were published."""
    return tuple(
        Row(beginning + line.what.lower(), paper, line)
        for name, beginning in _PAPERS.items()
        for paper in (read(name),)
        for line in paper.lines
        if line.published
    )


class Measured(Data):
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
        return " ".join(self.row.line.reason.split())

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
    return row.paper.scenario_of(row.case, seed, pairs)


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
        for row in rows()
        if any(name in row.name for name in given.names)
        or (not given.names and (given.all or not row.is_large))
    ]
    if not chosen:
        parser.error(f"no row is called so; there are: {'; '.join(row.name for row in rows())}")
    console = Console(stderr=True)
    table = Table("2 MB, 100 Gb/s", "htsim, us", "closlab, us", "least to most", "difference")
    done: list[Measured] = []
    for row in chosen:
        matrix = given.matrix if row.is_large else None
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

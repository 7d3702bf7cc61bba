"""`closlab bench growth`: how costs grow with hosts, packets, tables, threads; and since when.

    closlab bench growth [--most X] [--rounds N] [--json FILE] [--plot FILE.svg]
                         [--check [FILE]] [--beside FOLDER]

A figure is a ratio: our time by that in which the same processor compresses a byte (zlib, level
1), measured before and after each of ours, every round anew; the median of the rounds counts. So
how quick a machine is, and most of what it does besides, falls out. How large its caches are stays,
and how much of them its neighbours leave.

--check compares with a file of --json, of the same machine; with bench/growth.json, which is kept
with the code, if none is named: what became dearer by more than 15 % is measured again, three times
at most, and if it stays so the exit code is 1. --beside measures another tree of closlab in turns
with this one, and compares with that instead: the surer way, on whatever machine. --most leaves
larger sizes out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

from bench import sim, switch, tables
from compiler import compile_program
from params.data import Data
from params.quantity import PLAIN
from switch.program import Program
from views.report import svg
from views.report.charts import lines

HERE = Path(__file__).parent
SCHEMA = "closlab.growth/1"
KEPT = HERE / "growth.json"
ALLOWED = 1.15
AGAIN = 3  # times that what seems dearer is measured anew


class Probe(Data):
    """Something to measure: at some place of a chart's axis, in nanoseconds."""

    chart: str
    axis: str
    series: str
    at: int
    takes_ns: Callable[[], float]

    @property
    def name(self) -> str:
        """What tells it from others."""
        return f"{self.series}, {self.at:,} {self.axis}"


def _simulated(*words: str, by_clock: bool = False) -> float:
    """What a packet-hop of the simulator's takes."""
    run = sim.measure_whole(sim.words().parse_args(words))
    return (run.wall_s if by_clock else run.processor_s) * 1e9 / run.account.delivered


def _built(*words: str) -> float:
    """What a host takes until everything is in place."""
    work = sim.experiment(sim.words().parse_args(words))
    with tempfile.TemporaryDirectory() as folder:
        run = sim.measure(work, Path(folder), until_ns=0)
    return run.built_s * 1e9 / len(work.fabric.hosts)


def _looked_up(case: tables.TableLoad, size: int) -> float:
    source = compile_program(tables.HERE / "tables.p4").json_text.encode()
    program = Program.load(source, name="tables")
    return tables.measure(tables.driver(), program, case, size, 1 << 18, seed=1)[0]


def _routed(size: int) -> float:
    library = switch.open_load(switch.build_load())
    return switch.pipeline_ns(library, Program.load(switch.router(), name="l3"), size, 1)


_FABRICS = {  # hosts: leaves, spines, hosts a leaf
    16: ("--leaves=4", "--spines=2", "--hosts=4"),
    128: (),
    512: ("--leaves=32", "--spines=16", "--hosts=16"),
    1024: ("--k=16",),
}


def probes() -> Iterator[Probe]:
    """All there are."""
    hop = "a packet-hop"
    for hosts, shape in _FABRICS.items():
        size = f"--bytes={max(500_000, 64_000_000 // hosts)}"
        takes = partial(_simulated, *shape, size)
        yield Probe("Simulator, by size", "hosts", hop, hosts, takes)
    for hosts, shape in _FABRICS.items():
        takes = partial(_built, *shape, "--bytes=4000")
        yield Probe("Simulator, set-up", "hosts", "a host put in place", hosts, takes)
    for packets in (50, 500, 5000):
        takes = partial(_simulated, f"--bytes={4000 * packets}")
        yield Probe("Simulator, by length of messages", "packets", hop, packets, takes)
    for threads in (1, 2):
        takes = partial(_simulated, "--bytes=2000000", f"--jobs={threads}", by_clock=True)
        yield Probe("Simulator, by the clock", "threads", hop, threads, takes)
    for case in tables.CASES:
        for entries in case.sizes:
            takes = partial(_looked_up, case, entries)
            yield Probe("A packet with one lookup", "entries", case.title, entries, takes)
    for length in switch.SIZES:
        takes = partial(_routed, length)
        yield Probe("A packet through a router", "bytes", "a routed packet", length, takes)


# --- measuring ----------------------------------------------------------------------------------


@cache
def _block() -> bytes:
    """A megabyte that is neither all the same nor noise."""
    return bytes((7 * n * n + n // 3) % 251 for n in range(1 << 20))


def _unit_ns() -> float:
    """What a byte takes to compress, here and now."""
    best, block = float("inf"), _block()
    for _ in range(3):
        began = time.process_time_ns()
        zlib.compress(block, 1)
        best = min(best, (time.process_time_ns() - began) / len(block))
    return best


def _ratio(probe: Probe, tree: Path) -> float:
    """A probe's figure in a tree, once; in a process of its own, so that memory is fresh."""
    words = [sys.executable, "-m", "bench.growth", "--probe", probe.name]
    before = _unit_ns()
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tree)
    if done.returncode:
        raise RuntimeError(f"{probe.name}, in {tree}: {done.stderr.strip()[-400:]}")
    return float(done.stdout) / min(before, _unit_ns())


def _measured(
    chosen: Sequence[Probe], trees: Sequence[Path], rounds: int
) -> list[dict[str, float]]:
    """The medians, by tree; trees take turns."""
    found: list[dict[str, list[float]]] = [{probe.name: [] for probe in chosen} for _ in trees]
    for _ in range(rounds):
        for probe in chosen:
            for tree, figures in zip(trees, found, strict=True):
                figures[probe.name].append(_ratio(probe, tree))
    return [{name: statistics.median(each) for name, each in figures.items()} for figures in found]


def dearer(found: Mapping[str, float], kept: Mapping[str, float]) -> dict[str, float]:
    """By how much what costs more than it may does."""
    times = {name: found[name] / kept[name] for name in found.keys() & kept.keys()}
    return {name: each for name, each in sorted(times.items()) if each > ALLOWED}


def settled(
    found: dict[str, float],
    kept: dict[str, float],
    again: Callable[[Sequence[str]], tuple[Mapping[str, float], Mapping[str, float]]],
) -> dict[str, float]:
    """What stays dearer when it is measured again: of us, and of what we compare with."""
    for _ in range(AGAIN):
        names = list(dearer(found, kept))
        if not names:
            break
        ours, theirs = again(names)
        for figures, news in ((found, ours), (kept, theirs)):
            for name, figure in news.items():
                figures[name] = min(figures[name], figure)
    return dearer(found, kept)


# --- telling ------------------------------------------------------------------------------------


def _processor() -> str:
    """This machine's, in its own words."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "?")


def _kept(path: Path) -> dict[str, float]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise SystemExit(f"closlab: {path} cannot be read: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise SystemExit(f"closlab: {path} is no file of `closlab bench growth --json`")
    if found["processor"] != _processor():
        print(f"{path} is of another processor ({found['processor']}): --beside is surer")
    return dict(found["figures"])


def drawn(found: Mapping[str, float], chosen: Sequence[Probe]) -> svg.Drawing:
    """How they grow, an axis a kind."""
    whole, y = svg.Drawing(0, "What things cost, and how that grows"), 0.0
    for chart in dict.fromkeys(probe.chart for probe in chosen):
        part = [probe for probe in chosen if probe.chart == chart]
        series: dict[str, dict[float, float]] = {}
        for probe in part:
            series.setdefault(probe.series, {})[probe.at] = found[probe.name]
        across, up = (part[0].axis, PLAIN), ("worth compressing so many bytes", PLAIN)
        made = lines(chart, across, up, series, is_log=True)
        whole.text(0, y + svg.FONT, chart)
        whole.put(made, 0, y + 2 * svg.FONT)
        y += made.height + 4 * svg.FONT
    whole.height = y
    return whole


def words() -> argparse.ArgumentParser:
    """What may be said."""
    parser = argparse.ArgumentParser(prog="closlab bench growth", description=__doc__)
    parser.add_argument("--most", type=int, default=100_000, help="of hosts, packets, entries ...")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures there")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw them")
    compare = "compare with it; with bench/growth.json if none is named"
    parser.add_argument("--check", type=Path, nargs="?", const=KEPT, metavar="FILE", help=compare)
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="of another closlab")
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, tell, compare."""
    arguments = words().parse_args(argv)
    if arguments.probe:
        print(next(each for each in probes() if each.name == arguments.probe).takes_ns())
        return 0
    chosen = [probe for probe in probes() if probe.at <= arguments.most]
    trees = [HERE.parent, *([arguments.beside] if arguments.beside else [])]
    found: dict[str, float] = {}
    kept = _kept(arguments.check) if arguments.check else {}
    for probe in chosen:
        ours, *theirs = _measured([probe], trees, arguments.rounds)
        found |= ours
        for figures in theirs:
            kept |= figures
        beside = f"{found[probe.name] / kept[probe.name]:8.2f}" if probe.name in kept else ""
        print(f"{probe.name:36}{found[probe.name]:10.1f}{beside}", flush=True)

    def again(names: Sequence[str]) -> tuple[Mapping[str, float], Mapping[str, float]]:
        print(f"again: {'; '.join(names)}", flush=True)
        those = [probe for probe in chosen if probe.name in names]
        ours, *theirs = _measured(those, trees, arguments.rounds)
        return ours, theirs[0] if theirs else {}

    stays = settled(found, kept, again)
    if arguments.json:
        content = {"schema": SCHEMA, "processor": _processor(), "figures": found}
        arguments.json.write_text(json.dumps(content, indent=1) + "\n")
    if arguments.plot:
        arguments.plot.write_text(drawn(found, chosen).to_svg(has_ground=True))
    for name, times in stays.items():
        print(f"{name} costs {times:.2f} times what it did; {ALLOWED} is allowed")
    return 1 if stays else 0


if __name__ == "__main__":
    sys.exit(main())

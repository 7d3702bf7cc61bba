"""`closlab bench cores`: by how many threads or ranks a run could be shared, and what bounds it.

    closlab bench cores [--k K] [--bytes N] [--barrier-ns N] [--workers 1 2 4 ...]

A permutation over a fat tree at 400 Gb/s is simulated by one thread, which notes how many events
each part has in each turn. A turn is as long as a cable (the lookahead), and takes as long as
whoever has most to do in it: threads begin with their own shares and take over what others have not
begun with, ranks keep theirs. From the notes follows, for any number of either, for how much of
their time they are idle (imbalance), and, with what it takes to meet, their efficiency: one
thread's time by theirs, summed up. An event is taken to cost what it does by one thread.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from heapq import heappop, heapreplace
from io import StringIO
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from bench import sim
from lab.engines.sim.engine import build
from lab.engines.sim.partition import by_rank, partition
from lab.progress import Stages
from lab.scenario.experiment import Experiment
from topologies import Fabric

_MAX_NOTES = 20_000_000
_BARRIER_NS = 3000  # of a turn that is shared: threads here meet in some 1 to 3 us, ranks in 2 to 5
_PART_NS = 30  # to see that a part has nothing to do, or to begin with one that has

Turn = list[tuple[int, int]]  # of parts that have any: which, and how many events


class Notes(NamedTuple):
    """Of a run by one thread."""

    turns: list[Turn]
    event_ns: float
    parts: int


def noted(work: Experiment) -> Notes:
    """Simulate it, and note."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        stages = Stages(Console(file=StringIO()))
        _, simulation = build(work, Path(folder), stages, stack)
        shares = simulation.note_shares(_MAX_NOTES)
        simulation.start()
        began = time.process_time()
        simulation.run(10**10)
        took_s = time.process_time() - began
        events = simulation.account().events
        turns = [
            [(part, count) for _, part, count in of_turn]
            for _, of_turn in groupby(shares(), key=itemgetter(0))
        ]
    return Notes(turns, took_s * 1e9 / events, len(work.fabric.switches))


def by_threads(turn: Turn, workers: int, parts_: int, event_ns: float) -> float:
    """How long a turn takes so many: each its own parts, then what others have not begun with."""
    shares: list[deque[float]] = [deque() for _ in range(workers)]
    for part, count in turn:
        shares[part * workers // parts_].append(count * event_ns + _PART_NS)
    busy, end = [(0.0, worker) for worker in range(workers)], 0.0
    while busy:
        end, worker = busy[0]
        order = (shares[(worker + step) % workers] for step in range(workers))
        if (share := next(filter(None, order), None)) is not None:
            heapreplace(busy, (end + share.popleft(), worker))
        else:
            heappop(busy)
    return end


def by_ranks(turn: Turn, owners: Sequence[int], workers: int, event_ns: float) -> float:
    """The same of ranks, which keep their parts."""
    ends = [0.0] * workers
    for part, count in turn:
        ends[owners[part]] += count * event_ns + _PART_NS
    return max(ends)


def owners_of(fabric: Fabric, ranks: int) -> list[int]:
    """Which rank has each part, by its number among one thread's."""
    before = partition(fabric, 1)
    after, bounds = by_rank(fabric, before, ranks)
    found = [0] * (1 + max(before.values()))
    for node, part in before.items():
        found[part] = sum(after[node] >= bound for bound in bounds[1:])
    return found


def line_of(title: str, notes: Notes, workers: int, took: Iterable[float], barrier_ns: int) -> str:
    """A line: idle for imbalance, and efficiency with what it takes to meet."""
    alone = sum(count * notes.event_ns + _PART_NS for turn in notes.turns for _, count in turn)
    spans = sum(took)
    meeting = barrier_ns * len(notes.turns) * (workers > 1)
    idle, efficiency = 1 - alone / (workers * spans), alone / (workers * (spans + meeting))
    return f"{workers:4} {title}: idle {idle:5.1%}, efficiency {efficiency:5.2f}"


def main(argv: Sequence[str]) -> int:
    """Simulate, model, and print."""
    parser = argparse.ArgumentParser(prog="closlab bench cores", description=__doc__)
    parser.add_argument("--k", type=int, default=16)
    parser.add_argument("--bytes", type=int, default=200_000)
    parser.add_argument("--barrier-ns", type=int, default=_BARRIER_NS)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4, 8, 16, 32])
    given = parser.parse_args(argv)
    words = ["--gbps=400", f"--k={given.k}", f"--bytes={given.bytes}"]
    work = sim.experiment(sim.words().parse_args(words))
    notes = noted(work)
    events = sum(count for turn in notes.turns for _, count in turn)
    print(
        f"{len(work.fabric.hosts):,} hosts, {notes.parts} parts, {events:,} events in "
        f"{len(notes.turns):,} turns, {notes.event_ns:.0f} ns each"
    )
    for workers in given.workers:
        spans = (by_threads(t, workers, notes.parts, notes.event_ns) for t in notes.turns)
        print(line_of("threads", notes, workers, spans, given.barrier_ns))
        owners = owners_of(work.fabric, workers)
        spans = (by_ranks(t, owners, workers, notes.event_ns) for t in notes.turns)
        print(line_of("ranks  ", notes, workers, spans, given.barrier_ns), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`closlab bench size`: what a packet-hop costs at 1,024 hosts, by what it does at 128.

    closlab bench size [--rounds N]

Permutations over fat trees at 400 Gb/s, of 16 MB a host for 128 (k=8) and of 2 MB for 1,024 (k=16),
in turns, each by one thread in a process of its own; of the rounds the least counts. Time is that
of a processor while the fabric is simulated, without building it; memory is all of a process.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

from bench import sim

SIZES = {128: ("--k=8", "--bytes=16000000"), 1024: ("--k=16", "--bytes=2000000")}


class Figures(NamedTuple):
    """Of a run, or the least of some."""

    hop_ns: float
    wall_s: float
    memory_mb: int


def measured(words: Sequence[str]) -> Figures:
    """A run, by this process."""
    run = sim.measure_whole(sim.words().parse_args(["--gbps=400", *words]))
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return Figures(1e9 / run.hops_per_s, run.wall_s, memory_mb)


def _apart(words: Sequence[str]) -> Figures:
    """The same, by another."""
    command = [sys.executable, "-m", "bench.size", "--one", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"closlab: {' '.join(words)}: {done.stderr.strip()[-400:]}")
    return Figures(*json.loads(done.stdout))


def _least(runs: Sequence[Figures]) -> Figures:
    return Figures(*(min(column) for column in zip(*runs, strict=True)))


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="closlab bench size", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(argv)
    runs: dict[int, list[Figures]] = {hosts: [] for hosts in SIZES}
    for _ in range(given.rounds):
        for hosts, size in SIZES.items():
            runs[hosts].append(_apart(size))
    found = {hosts: _least(each) for hosts, each in runs.items()}
    for hosts, least in found.items():
        print(
            f"{hosts:5,} hosts: {least.hop_ns:6.0f} ns a hop, "
            f"{least.wall_s:5.2f} s by the clock, {least.memory_mb:4} MB"
        )
    small, large = found.values()
    print(f"{large.hop_ns / small.hop_ns:.2f} times the cost", flush=True)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measured(sys.argv[2:])))
    else:
        sys.exit(main(sys.argv[1:]))

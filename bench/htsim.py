"""`closlab bench htsim`: the job of `bench sim` beside htsim, in turns, where htsim is on the PATH.

    closlab bench htsim [--rounds N] [--jobs N] [--bytes N] [--json FILE]

128 hosts at 16 leaves and 8 spines, 100 Gb/s links of 1 us, packets of 4,000 bytes, a permutation
of 20 MB, PFC. htsim's RoCE (`htsim_roce`, of csg-htsim) has the same hosts send to the same ones,
by one way each that a hash chose, through lossless queues. Ours runs the whole P4 program, by one
thread and by --jobs of them. Time is that by the clock, ours without building the fabric, htsim's
whole: it builds in hundredths of a second. Of htsim's hops, which it does not tell, there are as
many as links that packets and an acknowledgement for each have to cross.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import sim
from traffic.collectives import Schedule

_PROGRAM = "htsim_roce"
_PACKET = 4_000
_LINKS = 4  # between hosts of different leaves
_LONGEST_S = 600
_TOPOLOGY = """\
Nodes {hosts}
Tiers 2
Podsize {hosts}

Tier 0
Downlink_speed_Gbps {gbps}
Radix_Down {per_leaf}
Radix_Up {spines}
Downlink_Latency_ns 1000

Tier 1
Downlink_speed_Gbps {gbps}
Radix_Down {leaves}
Downlink_Latency_ns 1000
"""


class Run(NamedTuple):
    """What a simulator took, and for how many packet-hops."""

    took_s: float
    hops: int


def _theirs(program: str, job: argparse.Namespace) -> Run:
    schedule = sim.permutation(job.leaves * job.hosts, job.hosts, job.bytes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = _words(folder, schedule, job)
        began = time.perf_counter()
        done = subprocess.run(
            [program, *words], cwd=folder, capture_output=True, text=True, timeout=_LONGEST_S,
            check=False,
        )  # fmt: skip
        took_s = time.perf_counter() - began
    messages = len(schedule.src)
    ended = sum(line.startswith("Flow") and "finished" in line for line in done.stdout.splitlines())
    if done.returncode or ended != messages:
        raise SystemExit(
            f"closlab: {_PROGRAM} ended with {done.returncode} and {ended} of {messages} messages: "
            f"{(done.stderr or done.stdout).strip()[-300:]}"
        )
    packets = -(-job.bytes // _PACKET) * messages
    return Run(took_s, 2 * _LINKS * packets)


def _words(folder: Path, schedule: Schedule, job: argparse.Namespace) -> list[str]:
    """What tells htsim of the fabric and of who sends to whom, in files beside it."""
    hosts = job.leaves * job.hosts
    shape = {
        "gbps": job.gbps,
        "per_leaf": job.hosts,
        "spines": job.spines,
        "leaves": job.leaves,
    }
    (folder / "fabric.topo").write_text(_TOPOLOGY.format(hosts=hosts, **shape))
    pairs = [
        f"{src}->{dst} start 0 size {size}\n"
        for src, dst, size in zip(schedule.src, schedule.dst, schedule.size, strict=True)
    ]
    head = f"Nodes {hosts}\nConnections {len(pairs)}\n"
    (folder / "pairs.cm").write_text(head + "".join(pairs))
    return [
        *("-nodes", str(hosts), "-topo", "fabric.topo", "-tm", "pairs.cm", "-o", "out"),
        *("-queue_type", "lossless_input", "-q", "400", "-pfc_thresholds", "12", "15"),
        *("-strat", "ecmp_host", "-paths", "1", "-mtu", str(_PACKET)),
        *("-linkspeed", str(1000 * job.gbps), "-end", "30000"),
    ]


def _ours(size: int, jobs: int) -> Run:
    """By a process of its own."""
    words = ["--one", str(jobs), "--bytes", str(size)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.htsim", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"closlab: {done.stderr.strip()[-400:]}")
    return Run(*json.loads(done.stdout))


def main(argv: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="closlab bench htsim", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="threads, besides one")
    parser.add_argument("--bytes", type=int, default=20_000_000, help="a message")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures there")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    job = sim.words().parse_args([f"--bytes={given.bytes}", f"--jobs={given.one or 1}"])
    if given.one:
        run = sim.measure_whole(job)
        print(json.dumps(Run(run.wall_s, run.account.delivered)))
        return 0
    program = shutil.which(_PROGRAM)
    runs: dict[str, list[Run]] = {}
    for _ in range(given.rounds):
        if program:
            runs.setdefault("htsim", []).append(_theirs(program, job))
        for jobs in sorted({1, given.jobs}):
            runs.setdefault(f"closlab, {jobs}", []).append(_ours(given.bytes, jobs))
    _tell(runs)
    if not program:
        print(f"htsim is not compared: {_PROGRAM} is not on PATH")
    if given.json:
        given.json.write_text(json.dumps(runs, indent=1) + "\n")
    return 0


def _tell(runs: dict[str, list[Run]]) -> None:
    """Each round's, and how many times as quick as htsim of the same round."""
    for name, each in runs.items():
        seconds = ", ".join(f"{run.took_s:.2f}" for run in each)
        rate = median(run.hops / run.took_s for run in each) / 1e6
        line = f"{name:12}{seconds:>24} s   {rate:6.2f} M packet-hops/s"
        if name != "htsim" and (beside := runs.get("htsim")):
            pairs = [*zip(each, beside, strict=True)]
            quicker = ", ".join(f"{their.took_s / our.took_s:.2f}" for our, their in pairs)
            hops = median(our.hops / our.took_s * their.took_s / their.hops for our, their in pairs)
            line += f"   {quicker} times as quick, {hops:.2f} of its hops"
        print(line)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
